/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Mints credentials, signs commands with them, and verifies the answers. */
#include "client/security.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <time.h>

#include <openssl/crypto.h>
#include <openssl/rand.h>

#include "client/client_private.h"
#include "common/bytes.h"

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* ---- credentials ---- */

int osd_credential_mint(enum osd_version version, struct osd_capability *capability,
			const uint8_t secret[OSD_KEY_BYTES],
			const uint8_t system_id[OSD_SYSTEM_ID_BYTES],
			struct osd_credential *credential)
{
	capability->format = version == OSD_1 ? OSD_CAPABILITY_OSD1 : OSD_CAPABILITY_OSD2;
	capability->algorithm = OSD_INTEGRITY_HMAC_SHA1;
	capability->descriptor_type = osd_descriptor_type(version, capability->object_type);
	*credential = (struct osd_credential){ .version = version, .method = capability->method };
	osd_capability_encode(version, capability, credential->capability);
	return osd_capability_key(version, secret, credential->capability, system_id,
				  credential->key);
}

enum osd_secret osd_secret_of_command(const struct osd_cdb *cdb)
{
	unsigned key_to_set = cdb->command_options & 3;

	switch (cdb->action) {
	case OSD_SET_MASTER_KEY:
		return OSD_SECRET_MASTER;
	case OSD_SET_KEY:
		if (key_to_set == OSD_SET_WORKING_KEY)
			return OSD_SECRET_PARTITION;
		return key_to_set == OSD_SET_ROOT_KEY ? OSD_SECRET_MASTER : OSD_SECRET_ROOT;
	case OSD_CREATE_PARTITION:
	case OSD_REMOVE_PARTITION:
	case OSD_CREATE_CLONE:
	case OSD_CREATE_SNAPSHOT:
		return OSD_SECRET_ROOT;
	default:
		return osd_names_root(cdb->partition) ? OSD_SECRET_ROOT : OSD_SECRET_WORKING;
	}
}

int osd_credential_for_command(const struct osd_cdb *cdb, uint8_t method, uint8_t key_version,
			       const uint8_t secret[OSD_KEY_BYTES],
			       const uint8_t system_id[OSD_SYSTEM_ID_BYTES],
			       struct osd_credential *credential)
{
	uint8_t given = cdb->capability[OSD_FIELD_OBJECT_TYPE - OSD_FIELD_CAPABILITY_FORMAT];
	uint8_t type = given ? given : (uint8_t)request_object_type(cdb);
	bool is_container = type == OSD_TYPE_ROOT || type == OSD_TYPE_PARTITION;
	struct osd_capability capability = {
		.key_version = key_version,
		.method = method,
		.expires_ms = now_ms() + OSD_CREDENTIAL_LIFETIME_MS,
		.object_type = type,
		.permissions = OSD_PERMISSIONS_ALL,
		.partition = cdb->partition,
		.object = is_container ? 0 : cdb->object,
	};

	return osd_credential_mint(cdb->version, &capability, secret, system_id, credential);
}

/* ---- the client ---- */

enum {
	INQUIRY = 0x12,
	VITAL_PAGE_INFORMATION = 0xB0,
	VITAL_PAGE_SECURITY_TOKEN = 0xB1,
	VITAL_PAGE_HEAD_BYTES = 4
};

struct page_command {
	struct session_task task; /* first: the session knows only this */
	bool finished;
};

static void page_done(struct session_task *task)
{
	((struct page_command *)task)->finished = true;
}

/* The `bytes` behind the head of a vital product data page, at most 32. */
static int read_page(struct osd_client *client, uint8_t code, uint8_t *value, size_t bytes,
		     struct osd_client_error *error)
{
	uint8_t page[VITAL_PAGE_HEAD_BYTES + 32] = { 0 };
	size_t length = VITAL_PAGE_HEAD_BYTES + bytes;
	struct page_command command = {
		.task = { .cdb = { INQUIRY, 1, code, 0, (uint8_t)length },
			  .cdb_length = 6,
			  .in = { { page, length } },
			  .in_count = 1,
			  .done = page_done },
	};
	int result = session_submit(client->session, &command.task);

	while (result == 0 && !command.finished)
		session_step(client->session, -1);
	if (result == 0)
		result = command.task.result;
	if (result < 0)
		return outcome_set(error, result, "INQUIRY: %s", strerror(-result));
	if (command.task.status != 0 || command.task.in_received < length ||
	    get_be16(page + 2) < bytes)
		return outcome_set(error, -EOPNOTSUPP,
				   "the target does not answer INQUIRY page 0x%02x as OSD security "
				   "needs it",
				   code);
	memcpy(value, page + VITAL_PAGE_HEAD_BYTES, bytes);
	return 0;
}

int osd_client_system_id(struct osd_client *client, uint8_t system_id[OSD_SYSTEM_ID_BYTES],
			 struct osd_client_error *error)
{
	return read_page(client, VITAL_PAGE_INFORMATION, system_id, OSD_SYSTEM_ID_BYTES, error);
}

int osd_client_secure(struct osd_client *client, osd_client_credential *give, void *context,
		      struct osd_client_error *error)
{
	int result = give ? read_page(client, VITAL_PAGE_SECURITY_TOKEN, client->security_token,
				      OSD_SECURITY_TOKEN_BYTES, error)
			  : 0;

	if (result < 0)
		return result;
	client->give_credential = give;
	client->credential_context = context;
	return 0;
}

/* ---- signing ---- */

/* Answers with attributes of several objects have no place for one of the command. */
static bool has_place_for_response(const struct osd_cdb *cdb)
{
	return cdb->objects <= 1 && !cdb->list_attributes &&
	       cdb->action != OSD_GET_MEMBER_ATTRIBUTES && cdb->action != OSD_SET_MEMBER_ATTRIBUTES;
}

int security_begin(const struct osd_client *client, struct osd_request *request)
{
	struct osd_request_security *security = &request->security;
	struct osd_cdb *cdb = &request->cdb;
	struct osd_credential credential;
	int result;

	*security = (struct osd_request_security){ .method = OSD_NOSEC };
	if (!client->give_credential)
		return 0;
	result = client->give_credential(client->credential_context, cdb, &credential);
	if (result == -ENOENT)
		return 0;
	if (result == 0 && credential.version != cdb->version)
		result = -EINVAL;
	if (result == 0) {
		memcpy(cdb->capability, credential.capability, sizeof(cdb->capability));
		memcpy(security->key, credential.key, sizeof(security->key));
		security->method = credential.method;
		security->gets_response = credential.method >= OSD_CMDRSP &&
					  has_place_for_response(cdb);
	}
	OPENSSL_cleanse(&credential, sizeof(credential));
	return result;
}

/* ---- extension capabilities ---- */

/* Asks for the credential for a further object. -ENOENT: there is none, or nothing is signed. */
static int give_extension(const struct osd_client *client, const struct osd_cdb *other,
			  struct osd_credential *credential)
{
	struct osd_cdb cdb = *other;

	cdb.version = client->version;
	osd_capability_nosec(&cdb, request_object_type(&cdb));
	if (!client->give_credential || client->version != OSD_2)
		return -ENOENT;
	return client->give_credential(client->credential_context, &cdb, credential);
}

int osd_request_extend(struct osd_client *client, struct osd_request *request, uint8_t *segment,
		       size_t capacity, const struct osd_cdb *others, size_t count)
{
	uint8_t list[OSD_REQUEST_EXTENSIONS_MAX * OSD_EXTENSION_BYTES] = { 0 };
	size_t added = 0, length = request->data_length;
	struct osd_credential credential;
	int result = count <= OSD_REQUEST_EXTENSIONS_MAX ? 0 : -EINVAL;

	for (size_t i = 0; result == 0 && i < count; i++) {
		result = give_extension(client, &others[i], &credential);
		if (result == 0) {
			memcpy(list + added * OSD_EXTENSION_BYTES, credential.capability,
			       OSD2_CAPABILITY_BYTES);
			memcpy(request->extensions[added++].key, credential.key, OSD_KEY_BYTES);
		}
		OPENSSL_cleanse(&credential, sizeof(credential));
		result = result == -ENOENT ? 0 : result;
	}
	request->extension_count = added;
	if (result == 0 && added > 0)
		length = osd_continuation_add(segment, length, capacity, request->cdb.action,
					      OSD_CONTINUATION_EXTENSION_CAPABILITIES, list,
					      (uint32_t)(added * OSD_EXTENSION_BYTES));
	if (result == 0 && length == 0 && added > 0)
		result = -EINVAL;
	if (result != 0)
		security_forget(request);
	if (result != 0 || added == 0)
		return result;
	for (size_t i = 0; i < added; i++)
		request->extensions[i].place = segment + length - (added - i) * OSD_EXTENSION_BYTES;
	request->data = segment;
	request->data_length = length;
	request->cdb.continuation_length = (uint32_t)length;
	return 0;
}

int request_extend_by(struct osd_client *client, struct osd_request *request,
		      const struct osd_cdb *other, uint8_t *segment, size_t capacity,
		      struct osd_client_error *error)
{
	int result = osd_request_extend(client, request, segment, capacity, other, 1);

	if (result == 0)
		return 0;
	return outcome_set_local(error, result, "%s: there is no credential for 0x%llx/0x%llx: %s",
				 osd_action_name(request->cdb.action),
				 (unsigned long long)other->partition,
				 (unsigned long long)other->object, strerror(-result));
}

static int sign_extensions(const struct osd_client *client, struct osd_request *request)
{
	const uint8_t *token = request->security.method == OSD_CAPKEY ? client->security_token
								      : NULL;
	int result = 0;

	for (size_t i = 0; result == 0 && i < request->extension_count; i++)
		result = osd_extension_check_value(
			request->extensions[i].key, token, request->task.cdb, request->data,
			request->cdb.continuation_length, request->extensions[0].place,
			request->extension_count,
			request->extensions[i].place + OSD_EXTENSION_CHECK_VALUE);
	return result;
}

/* ---- the request ---- */

/* Data-Out from `offset` on, behind the command data: in scratch. */
static uint8_t *in_scratch(const struct osd_request *request, uint64_t offset)
{
	return request->scratch + (offset - request->data_length);
}

static struct iovec segment_of(const struct osd_request *request, const struct osd_segment *segment)
{
	if (segment->length == 0)
		return (struct iovec){ NULL, 0 };
	return (struct iovec){ in_scratch(request, segment->offset), segment->length };
}

static int sign_data(struct osd_request *request)
{
	const struct osd_request_security *security = &request->security;
	const struct osd_cdb *cdb = &request->cdb;
	size_t behind = cdb->continuation_length, data = request->data_length - behind;
	const struct osd_integrity_lengths lengths = { data, cdb->set_data.length,
						       cdb->get_list.length };
	const struct iovec pieces[] = {
		{ data ? (uint8_t *)request->data + behind : NULL, data },
		segment_of(request, &cdb->set_data),
		segment_of(request, &cdb->get_list),
	};

	if (security->out_encoded == OSD_OFFSET_UNUSED)
		return 0;
	return osd_data_out_integrity(cdb->version, security->key, security->nonce, &lengths,
				      pieces, 3, in_scratch(request, security->out_integrity));
}

static int sign_continuation(struct osd_request *request)
{
	struct osd_request_security *security = &request->security;

	memset(security->continuation_value, 0, sizeof(security->continuation_value));
	if (security->method < OSD_CMDRSP || request->cdb.continuation_length == 0)
		return 0;
	return osd_continuation_check_value(security->key, security->nonce, request->data,
					    request->cdb.continuation_length,
					    security->continuation_value);
}

int security_sign(const struct osd_client *client, struct osd_request *request)
{
	struct osd_request_security *security = &request->security;
	enum osd_version version = request->cdb.version;
	const struct osd_security_layout *layout = osd_security_layout(version);
	uint8_t *cdb = request->task.cdb;
	uint8_t value[OSD_CHECK_VALUE_BYTES];
	int result;

	if (security->method == OSD_NOSEC)
		return 0;
	put_be48(security->nonce, now_ms());
	if (RAND_bytes(security->nonce + 6, 6) != 1)
		return -ENOMEM;
	memcpy(cdb + layout->nonce, security->nonce, OSD_NONCE_BYTES);
	put_be32(cdb + layout->data_in_offset, security->in_encoded);
	put_be32(cdb + layout->data_out_offset, security->out_encoded);
	result = sign_extensions(client, request);
	if (result == 0)
		result = sign_continuation(request);
	if (result == 0)
		result = sign_data(request);
	if (result == 0)
		result = security->method == OSD_CAPKEY
				 ? osd_token_check_value(security->key, client->security_token,
							 value)
				 : osd_request_check_value(version, security->key, cdb, value);
	if (result == 0)
		memcpy(cdb + layout->check_value, value, sizeof(value));
	return result;
}

bool security_retype(const struct osd_client *client, struct osd_request *request)
{
	const struct osd_sense *sense = &request->error.sense;
	struct osd_cdb *cdb = &request->cdb;
	const struct osd_security_layout *layout = osd_security_layout(cdb->version);
	uint8_t method = request->security.method;
	struct osd_credential credential;
	int result;

	if (request->retyped || method == OSD_NOSEC || !request->error.has_sense ||
	    sense->code != SENSE_INVALID_FIELD_IN_CDB || !sense->has_field ||
	    sense->field != OSD_FIELD_OBJECT_TYPE || cdb->object == 0 ||
	    request_object_type(cdb) != OSD_TYPE_USER_OBJECT)
		return false;
	request->retyped = true;
	osd_capability_nosec(cdb, OSD_TYPE_COLLECTION);
	result = client->give_credential(client->credential_context, cdb, &credential);
	/* The buffers are laid out for another method. */
	if (result == 0 && credential.version == cdb->version && credential.method == method) {
		memcpy(request->security.key, credential.key, sizeof(request->security.key));
		memcpy(request->task.cdb + OSD_FIELD_CAPABILITY_FORMAT, credential.capability,
		       layout->capability_bytes);
	} else if (result == 0) {
		result = -EINVAL;
	}
	OPENSSL_cleanse(&credential, sizeof(credential));
	return result == 0;
}

void security_forget(struct osd_request *request)
{
	OPENSSL_cleanse(request->security.key, sizeof(request->security.key));
	for (size_t i = 0; i < request->extension_count; i++)
		OPENSSL_cleanse(request->extensions[i].key, sizeof(request->extensions[i].key));
}

/* ---- answers ---- */

static bool sense_is_right(struct osd_request *request, uint8_t *place, size_t bytes)
{
	const struct osd_request_security *security = &request->security;
	struct session_task *task = &request->task;
	uint8_t given[OSD_CHECK_VALUE_BYTES], value[OSD_CHECK_VALUE_BYTES];

	memcpy(given, place, sizeof(given));
	memset(place, 0, bytes);
	if (osd_response_check_value(security->key, security->nonce, task->status, task->sense,
				     task->sense_length, value) != 0)
		return false;
	memcpy(place, given, sizeof(given));
	return osd_check_values_equal(given, value, sizeof(value));
}

/* Status GOOD: the value is the first attribute that came. */
static bool good_is_right(const struct osd_request *request)
{
	const struct osd_request_security *security = &request->security;
	struct osd_list_reader reader;
	struct osd_attribute attribute;
	uint8_t value[OSD_CHECK_VALUE_BYTES];
	const uint8_t *list;
	size_t length;

	if (!security->gets_response)
		return true;
	if (request_retrieved(request, &list, &length) < 0 ||
	    osd_list_read(&reader, request->cdb.version, OSD_LIST_RETRIEVED, list, length) < 0 ||
	    osd_list_next(&reader, &attribute) != 1 || attribute.present < sizeof(value))
		return false;
	return osd_response_check_value(security->key, security->nonce, 0, NULL, 0, value) == 0 &&
	       osd_check_values_equal(attribute.value, value, sizeof(value));
}

static bool status_is_right(struct osd_request *request)
{
	struct session_task *task = &request->task;
	size_t bytes = 0;
	uint8_t *place = osd_sense_check_value_place(task->sense, task->sense_length, &bytes);

	if (place)
		return sense_is_right(request, place, bytes);
	/* An unsigned refusal counts as a refusal; any other unsigned answer is wrong. */
	return request->error.result < 0 || (task->status == 0 && good_is_right(request));
}

/* ALLDATA: checks the information behind the data, and cuts it off. */
static bool data_is_right(struct osd_request *request)
{
	const struct osd_request_security *security = &request->security;
	const struct osd_cdb *cdb = &request->cdb;
	struct session_task *task = &request->task;
	size_t bytes = osd_data_in_integrity_bytes(cdb->version);
	const uint8_t *behind_data = request->scratch + request->lists_length;
	const uint8_t *information;
	struct osd_integrity_lengths lengths;
	uint8_t expected[64];

	/* With status GOOD, data comes wherever there is space for it. */
	if (task->in_received == 0)
		return task->status != 0 || security->in_encoded == OSD_OFFSET_UNUSED;
	assert(bytes <= sizeof(expected));
	if (security->in_encoded == OSD_OFFSET_UNUSED ||
	    task->in_received < security->in_integrity + bytes)
		return false;
	information = behind_data + (security->in_integrity - request->buffer_length);
	lengths = (struct osd_integrity_lengths){ .data = get_be64(information),
						  .gets = get_be64(information + 8) };
	if (lengths.data > request->buffer_length || lengths.gets > request->retrieved_length)
		return false;
	const struct iovec pieces[] = {
		{ request->buffer, lengths.data },
		{ (void *)(behind_data +
			   (lengths.gets ? request->retrieved_offset - request->buffer_length : 0)),
		  lengths.gets },
	};

	if (osd_data_in_integrity(cdb->version, security->key, security->nonce, &lengths, pieces, 2,
				  expected) != 0 ||
	    !osd_check_values_equal(information, expected, bytes))
		return false;
	request->received = min_u64(request->received, lengths.data);
	task->in_received = lengths.gets ? request->retrieved_offset + lengths.gets : lengths.data;
	return true;
}

void security_verify(struct osd_request *request)
{
	struct osd_client_error *error = &request->error;

	/* CAPKEY says nothing about answers. */
	if (request->security.method < OSD_CMDRSP || request->task.result < 0)
		return;
	/* Whatever came with a refusal does not count. */
	if ((request->security.method == OSD_ALLDATA && error->result == 0 &&
	     !data_is_right(request)) ||
	    !status_is_right(request)) {
		*error = (struct osd_client_error){ .result = -EBADMSG,
						    .status = request->task.status };
		error_set(&error->sentence, 0,
			  "%s: the answer is not signed with the credential's key: it was changed "
			  "on the way, or the unit has another key or none here (`muninnctl key "
			  "show` "
			  "shows its keys; leave --key out to trust an unsigned answer)",
			  osd_action_name(request->cdb.action));
		request->received = 0;
	}
}
