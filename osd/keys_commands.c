/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* SET KEY and SET MASTER KEY. */
#include <errno.h>

#include <openssl/crypto.h>

#include "common/bytes.h"
#include "osd/execute.h"

/* How long the unit waits for the second step of SET MASTER KEY. */
#define EXCHANGE_MS 10000

static unsigned key_to_set(const struct osd_request *request)
{
	return request->cdb.command_options & 3;
}

/* Without a device key there is nothing to encrypt keys with. */
static int check_device_key(struct osd_request *request)
{
	if (request->device->security->has_device_key)
		return 0;
	return osd_fail(request, SENSE_ILLEGAL_REQUEST, SENSE_INVALID_COMMAND_OPERATION_CODE);
}

/* ---- SET KEY ---- */

int osd_check_set_key(struct osd_request *request)
{
	bool of_root = key_to_set(request) == OSD_SET_ROOT_KEY;

	if (check_device_key(request) != 0)
		return -EINVAL;
	if (key_to_set(request) == 0)
		return osd_fail_field(request, OSD_FIELD_COMMAND_OPTIONS);
	if (of_root != (request->cdb.partition == 0))
		return osd_fail_field(request, OSD_FIELD_PARTITION);
	return 0;
}

static struct osd_key_name name_to_set(const struct osd_request *request,
				       const struct osd_key_fields *fields)
{
	uint64_t partition = request->subject.address.partition;

	switch (key_to_set(request)) {
	case OSD_SET_ROOT_KEY:
		return (struct osd_key_name){ .kind = OSD_KEY_ROOT };
	case OSD_SET_PARTITION_KEY:
		return (struct osd_key_name){ OSD_KEY_PARTITION, partition, 0, 0 };
	default:
		return (struct osd_key_name){ OSD_KEY_WORKING, partition, fields->key_version, 0 };
	}
}

static struct osd_key_name name_above(struct osd_key_name name)
{
	struct osd_key_name above = { .kind = name.kind - 1 };

	if (above.kind == OSD_KEY_PARTITION)
		above.partition = name.partition;
	return above;
}

/* A new working key is no longer frozen, whatever the old one was. */
static int thaw(struct osd_request *request, uint8_t version)
{
	struct engine_address partition = { .partition = request->subject.address.partition };
	uint64_t frozen;
	uint8_t value[2];
	int result = osd_security_number(request, partition, OSD_PARTITION_SECURITY,
					 OSD_SECURITY_FROZEN_KEYS, &frozen);

	if (result != 0 || !(frozen >> version & 1))
		return result;
	put_be16(value, (uint16_t)(frozen & ~(UINT64_C(1) << version)));
	return osd_attribute_set_at(request->txn, partition, OSD_PARTITION_SECURITY,
				    OSD_SECURITY_FROZEN_KEYS, value, sizeof(value));
}

int osd_set_key(struct osd_request *request)
{
	struct osd_key_fields fields;
	struct osd_key above, key = { 0 };
	struct osd_key_name name;
	int result;

	osd_key_fields_decode(OSD_SET_KEY, request->cdb.key_bytes, &fields);
	name = name_to_set(request, &fields);
	result = osd_key_find(request, name_above(name), &above);
	if (result == 0)
		result = osd_derive_keys(above.generation, fields.seed, sizeof(fields.seed),
					 key.authentication, key.generation);
	if (result == 0) {
		memcpy(key.identifier, fields.identifier, sizeof(key.identifier));
		result = osd_key_store(request, name, &key, &above);
	}
	if (result == 0 && name.kind == OSD_KEY_WORKING)
		result = thaw(request, name.version);
	OPENSSL_cleanse(&above, sizeof(above));
	OPENSSL_cleanse(&key, sizeof(key));
	return osd_result(request, result, OSD_FIELD_PARTITION);
}

/* ---- SET MASTER KEY ---- */

int osd_check_set_master_key(struct osd_request *request)
{
	unsigned step = key_to_set(request);

	if (check_device_key(request) != 0)
		return -EINVAL;
	if (step != OSD_SEED_EXCHANGE && step != OSD_CHANGE_MASTER_KEY)
		return osd_fail_field(request, OSD_FIELD_COMMAND_OPTIONS);
	return 0;
}

static int fail_parameters(struct osd_request *request)
{
	return osd_fail(request, SENSE_ILLEGAL_REQUEST, SENSE_INVALID_FIELD_IN_PARAMETER_LIST);
}

/* The parameter data in Data-Out. */
static const uint8_t *parameters(const struct osd_request *request)
{
	return request->command->data_out + request->out_data;
}

/*
 * First step: answers the initiator's number with one of the unit's. A newer exchange replaces one
 * that is under way.
 */
static int exchange_seeds(struct osd_request *request)
{
	struct osd_security *security = request->device->security;
	struct osd_master_exchange fresh = { .under_way = true,
					     .started_ms = engine_txn_time(request->txn) };
	uint8_t answer[OSD_SEED_BYTES_MAX];
	struct osd_key_fields fields;
	const uint8_t *number;
	uint8_t group;
	size_t length;
	int result;

	osd_key_fields_decode(OSD_SET_MASTER_KEY, request->cdb.key_bytes, &fields);
	group = fields.dh_group;
	if (osd_dh_bytes(group) == 0)
		return osd_fail_field(request, OSD_FIELD_OBJECT);
	if (osd_seed_decode(parameters(request), request->out_data_length, group, &number) != 0)
		return fail_parameters(request);
	memcpy(fresh.application, number, osd_dh_bytes(group));
	result = osd_dh_begin(group, &fresh.pair);
	if (result != 0)
		return osd_result(request, result, 0);
	pthread_mutex_lock(&security->lock);
	security->exchange = fresh;
	pthread_mutex_unlock(&security->lock);
	length = osd_seed_encode(group, fresh.pair.own, answer);
	length = min_u64(length, request->in_data_length);
	memcpy(request->command->data_in, answer, length);
	request->command->data_in_length = length;
	OPENSSL_cleanse(&fresh, sizeof(fresh));
	return 0;
}

/*
 * Takes the exchange under way, so that it is used only once. False: there is none, or it is too
 * old.
 */
static bool take_exchange(struct osd_request *request, struct osd_master_exchange *exchange)
{
	struct osd_security *security = request->device->security;
	uint64_t now = engine_txn_time(request->txn);

	pthread_mutex_lock(&security->lock);
	*exchange = security->exchange;
	OPENSSL_cleanse(&security->exchange, sizeof(security->exchange));
	pthread_mutex_unlock(&security->lock);
	return exchange->under_way && now - min_u64(now, exchange->started_ms) <= EXCHANGE_MS;
}

/* Makes the new key from what both sides exchanged, under the old one. */
static int store_master(struct osd_request *request, const uint8_t *shared, size_t bytes)
{
	static const struct osd_key nothing_above;
	struct osd_key_name name = { .kind = OSD_KEY_MASTER };
	struct osd_key_fields fields;
	struct osd_key old, key = { 0 };
	int result = osd_key_find(request, name, &old);

	osd_key_fields_decode(OSD_SET_MASTER_KEY, request->cdb.key_bytes, &fields);
	memcpy(key.identifier, fields.identifier, sizeof(key.identifier));
	if (result == 0)
		result = osd_derive_keys(old.generation, shared, bytes, key.authentication,
					 key.generation);
	if (result == 0)
		result = osd_key_store(request, name, &key, &nothing_above);
	OPENSSL_cleanse(&old, sizeof(old));
	OPENSSL_cleanse(&key, sizeof(key));
	return osd_result(request, result, 0);
}

/* Second step: both numbers come once more, so that nobody can have put others in between. */
static int change_master_key(struct osd_request *request)
{
	struct osd_master_exchange exchange;
	uint8_t shared[OSD_DH_BYTES_MAX];
	const uint8_t *application, *device;
	bool same = take_exchange(request, &exchange);
	size_t bytes = osd_dh_bytes(exchange.pair.group);
	int result;

	same = same && osd_change_master_decode(parameters(request), request->out_data_length,
						exchange.pair.group, &application, &device) == 0;
	same = same && memcmp(application, exchange.application, bytes) == 0 &&
	       memcmp(device, exchange.pair.own, bytes) == 0;
	if (!same) {
		OPENSSL_cleanse(&exchange, sizeof(exchange));
		return fail_parameters(request);
	}
	result = osd_dh_share(&exchange.pair, exchange.application, shared);
	OPENSSL_cleanse(&exchange, sizeof(exchange));
	if (result == -EINVAL)
		return fail_parameters(request);
	result = result == 0 ? store_master(request, shared, bytes)
			     : osd_result(request, result, 0);
	OPENSSL_cleanse(shared, sizeof(shared));
	return result;
}

int osd_set_master_key(struct osd_request *request)
{
	return key_to_set(request) == OSD_SEED_EXCHANGE ? exchange_seeds(request)
							: change_master_key(request);
}
