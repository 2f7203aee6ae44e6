/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Decides which method protects a command, and whether its check values, nonce and key are right.
 */
#include "osd/security.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include <openssl/crypto.h>
#include <openssl/rand.h>

#include "common/bytes.h"
#include "osd/execute.h"
#include "osd/keys.h"
#include "osd/security_start.h"

/*
 * Nonces that the unit remembers if the options do not say: 5 MB, allocated with the first one.
 */
#define NONCES_DEFAULT 65536

/* ---- the logical unit ---- */

/* Keys and policy belong to the present: going back in time leaves them as they are. */
static void set_lasting_pages(struct engine *engine)
{
	const uint32_t pages[] = { OSD_ROOT_SECURITY,
				   OSD_PARTITION_SECURITY,
				   OSD_PARTITION_FROZEN_AUDITS,
				   OSD_PARTITION_ATTRIBUTES_ACCESS,
				   osd_private_page(ENGINE_ROOT),
				   osd_private_page(ENGINE_PARTITION) };

	engine_set_lasting_pages(engine, pages, sizeof(pages) / sizeof(pages[0]));
}

int osd_security_create(struct osd_device *device, const struct osd_options *options)
{
	struct osd_security *security = calloc(1, sizeof(*security));
	int result = 0;

	if (!security)
		return -ENOMEM;
	device->security = security;
	security->nonces_max = options && options->nonces_max ? options->nonces_max
							      : NONCES_DEFAULT;
	set_lasting_pages(device->engine);
	pthread_mutex_init(&security->lock, NULL);
	pthread_mutex_init(&security->memo_lock, NULL);
	if (RAND_bytes(security->token_secret, sizeof(security->token_secret)) != 1)
		result = -ENOMEM;
	if (result == 0 && options && options->has_device_key)
		result = osd_keys_open(security, options->device_key, device->uuid,
				       device->system_id);
	if (result == 0)
		result = osd_security_start(device);
	if (result != 0)
		osd_security_destroy(device);
	return result;
}

void osd_security_destroy(struct osd_device *device)
{
	struct osd_security *security = device->security;

	if (security->nonces)
		osd_security_stop(device, osd_nonces_newest(security->nonces));
	osd_nonces_destroy(security->nonces);
	pthread_mutex_destroy(&security->lock);
	pthread_mutex_destroy(&security->memo_lock);
	OPENSSL_cleanse(security, sizeof(*security));
	free(security);
	device->security = NULL;
}

int osd_security_token(const struct osd_device *device, uint64_t nexus,
		       uint8_t token[OSD_SECURITY_TOKEN_BYTES])
{
	uint8_t number[8], value[OSD_CHECK_VALUE_BYTES];
	const struct iovec pieces[] = { { number, sizeof(number) } };
	int result;

	put_be64(number, nexus);
	result = osd_check_value(device->security->token_secret, pieces, 1, value);
	memcpy(token, value, OSD_SECURITY_TOKEN_BYTES);
	return result;
}

/* ---- method and key of a command ---- */

static uint64_t partition_of(const struct osd_request *request)
{
	return request->cdb.partition & ENGINE_LAST_PARTITION_ID;
}

/*
 * Commands that the root's method and keys protect: those on the root, and those that make or
 * remove partitions.
 */
static bool is_of_root(const struct osd_request *request)
{
	if (request->cdb.action == OSD_SET_KEY)
		return (request->cdb.command_options & 3) != OSD_SET_WORKING_KEY;
	return request->entry->target == OSD_TARGET_ROOT ||
	       request->entry->target == OSD_TARGET_NEW_PARTITION ||
	       request->cdb.action == OSD_REMOVE_PARTITION || partition_of(request) == 0;
}

/* The partition that a command of the root removes or duplicates; 0: none. */
static uint64_t reached_partition(const struct osd_request *request)
{
	switch (request->cdb.action) {
	case OSD_REMOVE_PARTITION:
		return partition_of(request);
	case OSD_CREATE_CLONE:
	case OSD_CREATE_SNAPSHOT:
		return request->cdb.address & ENGINE_LAST_PARTITION_ID;
	default:
		return 0;
	}
}

/* Whose method and keys count for the command. */
static int name_policy(struct osd_request *request)
{
	uint64_t partition = is_of_root(request) ? 0 : request->cdb.partition;

	return osd_security_find_policy(request, partition, &request->security.policy);
}

/* The weakest method that the command may use. */
static int required_method(struct osd_request *request, uint8_t *method)
{
	uint8_t own = OSD_NOSEC, extended = OSD_NOSEC, least = OSD_NOSEC;
	int result = osd_security_method_at(request, &request->security.policy, method);

	if (result == 0 && reached_partition(request) != 0)
		result = osd_security_method_of(request, reached_partition(request), &own);
	if (result == 0)
		result = osd_extensions_method(request, &extended);
	/*
	 * A key that anybody could set would protect nothing. The numbers of the key exchange are
	 * in the data.
	 */
	if (request->cdb.action == OSD_SET_KEY)
		least = OSD_CMDRSP;
	else if (request->cdb.action == OSD_SET_MASTER_KEY)
		least = OSD_ALLDATA;
	*method = (uint8_t)max_u64(max_u64(*method, own), max_u64(extended, least));
	return result;
}

static struct osd_key_name key_of_command(const struct osd_request *request)
{
	struct engine_address policy = request->security.policy.address;
	struct osd_key_name working = { OSD_KEY_WORKING, policy.partition,
					request->security.capability.key_version, policy.version };

	if (request->cdb.action == OSD_SET_MASTER_KEY)
		return (struct osd_key_name){ .kind = OSD_KEY_MASTER };
	if (request->cdb.action == OSD_SET_KEY) {
		unsigned to_set = request->cdb.command_options & 3;

		if (to_set == OSD_SET_WORKING_KEY)
			return (struct osd_key_name){ OSD_KEY_PARTITION, policy.partition, 0,
						      policy.version };
		return (struct osd_key_name){ .kind = to_set == OSD_SET_ROOT_KEY ? OSD_KEY_MASTER
										 : OSD_KEY_ROOT };
	}
	if (is_of_root(request))
		return (struct osd_key_name){ .kind = OSD_KEY_ROOT };
	return working;
}

/* ---- the request ---- */

/* Is the request's check value that of `key`? */
static int compare_request_value(const struct osd_request *request, uint8_t method,
				 const uint8_t key[OSD_KEY_BYTES], bool *equal)
{
	const struct osd_security_layout *layout = osd_security_layout(request->cdb.version);
	uint8_t expected[OSD_CHECK_VALUE_BYTES_MAX] = { 0 }, token[OSD_SECURITY_TOKEN_BYTES];
	const uint8_t *cdb = request->command->cdb;
	int result;

	if (method == OSD_CAPKEY) {
		result = osd_security_token(request->device, request->command->nexus, token);
		if (result == 0)
			result = osd_token_check_value(key, token, expected);
	} else {
		result = osd_request_check_value(request->cdb.version, key, cdb, expected);
	}
	*equal = result == 0 && osd_check_values_equal(expected, cdb + layout->check_value,
						       layout->check_value_bytes);
	return result;
}

static int check_request_value(struct osd_request *request)
{
	struct osd_security_state *state = &request->security;
	bool equal;
	int result = compare_request_value(request, state->method, state->key, &equal);

	if (result != 0)
		return osd_result(request, result, 0);
	if (!equal)
		return osd_fail_field(request,
				      osd_security_layout(request->cdb.version)->check_value);
	state->authenticated = state->method >= OSD_CMDRSP;
	return 0;
}

/* Finds the capability key, if the request has the check value that this key makes. */
static int find_signer(const struct osd_request *request, const struct osd_capability *capability,
		       uint8_t key[OSD_KEY_BYTES], bool *is_signed)
{
	struct osd_key secret;
	int result = osd_key_find(request, key_of_command(request), &secret);

	*is_signed = false;
	if (result == 0)
		result = osd_capability_key(request->cdb.version, secret.authentication,
					    request->cdb.capability, request->device->system_id,
					    key);
	OPENSSL_cleanse(&secret, sizeof(secret));
	if (result == 0)
		result = compare_request_value(request, capability->method, key, is_signed);
	return result == -ENOENT || result == -EBADMSG ? 0 : result;
}

/*
 * Did the sender ask for a method where none is demanded? Existing initiators send bytes there that
 * are no capability, but none of these has a right check value.
 */
static int is_signed(const struct osd_request *request, bool *is_signed)
{
	const struct osd_capability *capability = &request->security.capability;
	uint8_t format = request->cdb.version == OSD_1 ? OSD_CAPABILITY_OSD1 : OSD_CAPABILITY_OSD2;
	uint8_t key[OSD_KEY_BYTES];
	int result;

	*is_signed = false;
	if (capability->format != format || capability->algorithm != OSD_INTEGRITY_HMAC_SHA1 ||
	    capability->method < OSD_CAPKEY || capability->method > OSD_ALLDATA)
		return 0;
	result = find_signer(request, capability, key, is_signed);
	OPENSSL_cleanse(key, sizeof(key));
	return result;
}

/* Makes the list of nonces for the first one. */
static int open_nonces(struct osd_security *security)
{
	int result = 0;

	pthread_mutex_lock(&security->lock);
	if (!security->nonces)
		result = osd_nonces_create(
			security->nonces_max,
			max_u64(security->started_ms,
				security->nonces_bound_ms ? security->nonces_bound_ms + 1 : 0),
			security->nonces_bound_ms, &security->nonces);
	pthread_mutex_unlock(&security->lock);
	return result;
}

static struct osd_nonce_owner owner_of(const struct osd_request *request)
{
	const struct osd_security_state *state = &request->security;
	struct osd_nonce_owner owner = { state->policy.address.partition, state->key, 0 };

	/* The key can't be another one, or the request's check value would be wrong. */
	if (state->nonce_noted_of == owner.partition)
		owner.noted_ms = state->nonce_noted_ms;
	return owner;
}

static int check_nonce(struct osd_request *request)
{
	struct osd_security *security = request->device->security;
	const struct engine_address policy = request->security.policy.address;
	const struct osd_nonce_owner owner = owner_of(request);
	uint64_t now = engine_txn_time(request->txn), past, future, before;
	int result = osd_security_nonce_window(request, policy, &past, &future);

	if (result == 0)
		result = open_nonces(security);
	if (result != 0)
		return osd_result(request, result, 0);
	/* What is not newer than this may have been accepted before the start. */
	before = osd_ahead_of(&security->ahead_at_start, &owner);
	result = osd_nonces_take(security->nonces, &owner, osd_security_nonce(request),
				 max_u64(now - min_u64(now, past), before + 1), now + future);
	if (result == -EEXIST)
		return osd_fail(request, SENSE_ILLEGAL_REQUEST, SENSE_NONCE_NOT_UNIQUE);
	if (result == -ERANGE)
		return osd_fail(request, SENSE_ILLEGAL_REQUEST, SENSE_NONCE_TIMESTAMP_OUT_OF_RANGE);
	if (result == -EAGAIN) {
		request->security.nonce_to_note_ms = get_be48(osd_security_nonce(request));
		return result;
	}
	return osd_result(request, result, 0);
}

bool osd_security_note_nonce(struct osd_request *request)
{
	struct osd_security_state *state = &request->security;
	const struct osd_nonce_owner owner = owner_of(request);
	uint64_t bound_ms;
	bool for_all;
	int result;

	if (state->nonce_to_note_ms == 0)
		return false;
	result = osd_security_raise_bound(request->device, &owner, request->time_ms,
					  state->nonce_to_note_ms, &bound_ms, &for_all);
	state->nonce_to_note_ms = 0;
	if (result == 0 && for_all)
		osd_nonces_noted(request->device->security->nonces, bound_ms);
	if (result == 0 && !for_all) {
		state->nonce_noted_ms = bound_ms;
		state->nonce_noted_of = owner.partition;
	}
	return osd_result(request, result, 0) == 0;
}

/* Was the capability withdrawn? Only working keys and their capabilities can be. */
static int check_frozen(struct osd_request *request)
{
	if (key_of_command(request).kind != OSD_KEY_WORKING)
		return 0;
	return osd_capability_check_frozen(request, &request->security.capability,
					   request->security.policy.address);
}

/* ---- the whole check ---- */

/* Finds whose method and keys count at present, and the weakest method that the command may use. */
static int find_policy(struct osd_request *request, uint8_t *least)
{
	int result = name_policy(request);

	if (result == 0)
		result = required_method(request, least);
	return osd_result(request, result, 0);
}

/* Does the capability still have the key that the request was signed by? */
static int check_key_again(struct osd_request *request)
{
	struct osd_security_state *state = &request->security;
	uint8_t key[OSD_KEY_BYTES] = { 0 };
	int result = osd_capability_find_key(request, key_of_command(request),
					     request->cdb.capability, OSD_CAPABILITY_OF_CDB, key);
	bool same = osd_check_values_equal(key, state->key, OSD_KEY_BYTES);

	OPENSSL_cleanse(key, sizeof(key));
	if (result != 0)
		return result;
	return same ? 0
		    : osd_fail_field(request,
				     osd_security_layout(request->cdb.version)->check_value);
}

/*
 * Checks what others may have changed since an earlier transaction of the same command. That the
 * request came in time and unchanged is settled.
 */
static int check_again(struct osd_request *request)
{
	struct osd_security_state *state = &request->security;
	uint8_t least = OSD_ALLDATA;

	if (find_policy(request, &least) != 0)
		return -EINVAL;
	if (least > state->method)
		return osd_fail_field(request, OSD_FIELD_SECURITY_METHOD);
	if (state->method == OSD_NOSEC)
		return 0;
	if (check_key_again(request) != 0 || check_frozen(request) != 0 ||
	    osd_capability_check_attributes(request) != 0 ||
	    osd_extensions_check_again(request) != 0)
		return -EINVAL;
	return 0;
}

int osd_security_check_command(struct osd_request *request)
{
	struct osd_security_state *state = &request->security;
	bool is_asked_for = true;
	uint8_t least = OSD_ALLDATA;
	int result = 0;

	if (state->checked)
		return check_again(request);
	if (find_policy(request, &least) != 0)
		return -EINVAL;
	osd_capability_decode(request->cdb.version, request->cdb.capability, &state->capability);
	if (least == OSD_NOSEC)
		result = is_signed(request, &is_asked_for);
	if (result != 0)
		return osd_result(request, result, 0);
	if (!is_asked_for) {
		state->checked = true;
		return 0;
	}
	/* What follows uses up the nonce, which an attempt that fails could not give back. */
	if (request->attempt)
		return osd_result(request, -EINPROGRESS, 0);
	if (osd_capability_check_head(request, &state->capability,
				      (uint8_t)max_u64(least, OSD_CAPKEY), OSD_ALLDATA,
				      OSD_CAPABILITY_OF_CDB) != 0)
		return -EINVAL;
	state->method = state->capability.method;
	if (osd_capability_find_key(request, key_of_command(request), request->cdb.capability,
				    OSD_CAPABILITY_OF_CDB, state->key) != 0 ||
	    check_request_value(request) != 0 ||
	    (state->method >= OSD_CMDRSP && check_nonce(request) != 0) ||
	    check_frozen(request) != 0 || osd_capability_check(request) != 0 ||
	    osd_security_check_buffers(request) != 0 || osd_extensions_check(request) != 0)
		return -EINVAL;
	state->checked = true;
	return 0;
}

/* Is there so much to sum up that others would wait for it? */
static bool is_worth_summing_ahead(const struct osd_request *request, uint8_t method)
{
	if (request->security.checked || !request->device->security->has_device_key ||
	    method < OSD_CAPKEY || method > OSD_ALLDATA)
		return false;
	return request->extensions.content ||
	       (request->mode != ENGINE_READ && method >= OSD_CMDRSP);
}

void osd_security_sum_ahead(struct osd_request *request)
{
	struct osd_security_state *state = &request->security;
	struct osd_capability capability;
	uint8_t key[OSD_KEY_BYTES];
	bool is_signed = false;
	int result;

	osd_capability_decode(request->cdb.version, request->cdb.capability, &capability);
	if (!is_worth_summing_ahead(request, capability.method) ||
	    engine_begin(request->device->engine, ENGINE_READ, &request->txn) != 0)
		return;
	result = name_policy(request);
	state->capability = capability;
	if (result == 0)
		result = find_signer(request, &capability, key, &is_signed);
	if (result == 0 && is_signed)
		osd_extensions_find_keys(request);
	engine_abort(request->txn);
	/* If something is wrong, the check itself finds it later, and says so. */
	if (result == 0 && is_signed && capability.method >= OSD_CMDRSP)
		osd_security_sum(request, capability.method, key, &state->sums);
	if (result == 0 && is_signed)
		osd_extensions_sum(request, capability.method);
	OPENSSL_cleanse(key, sizeof(key));
}

int osd_security_tag_of(struct osd_request *request, struct engine_address address,
			enum engine_type type, uint32_t number, uint64_t *tag)
{
	struct engine_address present = { .partition = address.partition,
					  .object = address.object };
	struct engine_stat now;

	bool is_present = false;
	int result = 0;

	*tag = 0;
	if (type == ENGINE_ROOT)
		return 0;
	if (address.version != 0 || address.ago != 0)
		result = osd_security_is_present(request, address, &is_present);
	if (result != 0)
		return osd_result(request, result, 0);
	/* Whoever withdraws the present object withdraws its past, too. */
	if (is_present) {
		result = osd_stat_at(request, present, &now);
		if (result != 0 && result != -ENOENT)
			return osd_result(request, result, 0);
		address = result == 0 ? present : address;
	}
	return osd_result(request,
			  osd_security_number(request, address,
					      osd_first_page(type) + OSD_PAGE_POLICY_SECURITY,
					      number, tag),
			  0);
}

int osd_security_check_subject(struct osd_request *request)
{
	const struct osd_security_layout *layout = osd_security_layout(request->cdb.version);
	const struct osd_capability *capability = &request->security.capability;
	const struct osd_subject *subject = &request->subject;
	bool is_new = request->entry->target == OSD_TARGET_NEW_USER_OBJECT ||
		      request->entry->target == OSD_TARGET_NEW_COLLECTION ||
		      request->entry->target == OSD_TARGET_NEW_PARTITION;
	uint32_t number = request->entry->target == OSD_TARGET_NEW_USER_OBJECT
				  ? OSD_SECURITY_USER_OBJECT_POLICY_ACCESS_TAG
				  : OSD_SECURITY_POLICY_ACCESS_TAG;
	uint64_t tag;

	assert(request->security.checked);
	/* Then somebody has opened this view in the meantime, and nobody has judged what it shows.
	 */
	if (request->security.policy.shows_nothing)
		return osd_fail_field(request, OSD_FIELD_PARTITION);
	if (request->security.method == OSD_NOSEC)
		return 0;
	if (osd_capability_check_range(request) != 0)
		return -EINVAL;
	if (!is_new && capability->object_type != osd_wire_type(subject->stat.type))
		return osd_fail_field(request, OSD_FIELD_OBJECT_TYPE);
	if (!is_new && capability->created_ms != 0 &&
	    capability->created_ms != subject->stat.times_ms[ENGINE_TIME_CREATED])
		return osd_fail_field(request, OSD_FIELD_CREATED_TIME);
	if (capability->policy_tag == 0)
		return 0;
	if (osd_security_tag_of(request, subject->address, subject->stat.type, number, &tag) != 0)
		return -EINVAL;
	return tag == capability->policy_tag ? 0 : osd_fail_field(request, layout->policy_tag);
}

/* ---- the answer ---- */

void osd_security_good_response(const struct osd_request *request,
				uint8_t value[OSD_CHECK_VALUE_BYTES_MAX])
{
	memset(value, 0, OSD_CHECK_VALUE_BYTES_MAX);
	/* Without memory the value stays zero, which no initiator accepts. */
	if (request->security.authenticated &&
	    osd_response_check_value(request->security.key, osd_security_nonce(request),
				     SCSI_STATUS_GOOD, NULL, 0, value) != 0)
		memset(value, 0, OSD_CHECK_VALUE_BYTES_MAX);
}

void osd_security_sign_sense(struct osd_request *request)
{
	struct osd_command *command = request->command;
	size_t bytes;
	uint8_t *place, value[OSD_CHECK_VALUE_BYTES];

	if (!request->security.authenticated || command->sense_length == 0)
		return;
	place = osd_sense_check_value_place(command->sense, command->sense_length, &bytes);
	assert(place && bytes >= sizeof(value));
	if (osd_response_check_value(request->security.key, osd_security_nonce(request),
				     command->status, command->sense, command->sense_length,
				     value) == 0)
		memcpy(place, value, sizeof(value));
}

void osd_security_forget(struct osd_request *request)
{
	size_t used = offsetof(struct osd_security_state, extensions);

	if (request->extensions.content)
		used = sizeof(request->security);
	OPENSSL_cleanse(&request->security, used);
}
