/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Plays the security manager of the osd target: its keys and their exchange. */
#include "tests/fuzz/osd_keys.h"

#include <string.h>

#include "common/bytes.h"
#include "wire/wire.h"

const uint8_t osd_keys_uuid[16] = { 0x10, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };

void osd_keys_options(struct osd_options *options)
{
	/* So few nonces that some are forgotten for others. */
	*options = (struct osd_options){ .has_device_key = true, .nonces_max = 4 };
	memset(options->device_key, 0xC0, sizeof(options->device_key));
	/* Binary, of the logical unit, vendor specific, 16 bytes. */
	put_be32(options->system_id, 0x01000010);
	memcpy(options->system_id + 4, osd_keys_uuid, sizeof(osd_keys_uuid));
}

void osd_keys_fields(enum osd_keys_level level, struct osd_key_fields *fields)
{
	*fields = (struct osd_key_fields){
		.key_version = level == OSD_KEYS_WORKING ? OSD_KEYS_VERSION : 0,
	};
	memset(fields->identifier, 0x10 + (int)level, sizeof(fields->identifier));
	memset(fields->seed, 0x10 + (int)level, sizeof(fields->seed));
}

static void derive(const struct osd_keys_pair *from, const uint8_t *seed, size_t bytes,
		   struct osd_keys_pair *to)
{
	fuzz_check(osd_derive_keys(from->generation, seed, bytes, to->authentication,
				   to->generation) == 0);
}

void osd_keys_begin(struct osd_keys *keys)
{
	/* The same for every input, so they are computed once. */
	static struct osd_keys first;
	static bool known;
	struct osd_keys_pair *pairs = first.pairs;
	struct osd_options options;

	if (!known) {
		osd_keys_options(&options);
		fuzz_check(osd_initial_master_keys(options.device_key, options.system_id,
						   pairs[OSD_KEYS_MASTER].authentication,
						   pairs[OSD_KEYS_MASTER].generation) == 0);
		for (enum osd_keys_level level = OSD_KEYS_ROOT; level < OSD_KEYS_LEVELS; level++) {
			struct osd_key_fields fields;

			osd_keys_fields(level, &fields);
			derive(&pairs[level - 1], fields.seed, sizeof(fields.seed), &pairs[level]);
		}
		known = true;
	}
	*keys = first;
}

/* ---- the exchange ---- */

/*
 * The manager's numbers, of each group: once for all inputs, since it takes long. NULL: no such
 * group.
 */
static const struct osd_dh_pair *own_pair(uint8_t group)
{
	static struct osd_dh_pair pairs[2];
	struct osd_dh_pair *pair = &pairs[group == OSD_DH_GROUP_3072];

	if (osd_dh_bytes(group) == 0)
		return NULL;
	if (pair->group == 0)
		fuzz_check(osd_dh_begin(group, pair) == 0);
	return pair;
}

/* False: it is no SET MASTER KEY. */
static bool decode(const struct osd_input_command *input, struct osd_cdb *cdb,
		   struct osd_key_fields *fields)
{
	uint16_t bad_field;

	if (osd_cdb_decode(input->cdb, input->cdb_length, cdb, &bad_field) != 0 ||
	    cdb->action != OSD_SET_MASTER_KEY)
		return false;
	osd_key_fields_decode(OSD_SET_MASTER_KEY, cdb->key_bytes, fields);
	return true;
}

void osd_keys_complete(const struct osd_keys *keys, struct osd_input_command *input)
{
	const struct osd_dh_pair *pair;
	struct osd_key_fields fields;
	struct osd_cdb cdb;
	size_t length;

	if (!decode(input, &cdb, &fields))
		return;
	if ((cdb.command_options & 3) == OSD_SEED_EXCHANGE) {
		pair = own_pair(fields.dh_group);
		if (!pair)
			return;
		length = osd_seed_encode(pair->group, pair->own, input->out);
	} else {
		pair = own_pair(keys->group);
		if (!pair)
			return;
		length = osd_change_master_encode(pair->group, pair->own, keys->device, input->out);
	}
	input->out_length = input->out_kept = (uint16_t)length;
	fields.parameter_length = (uint32_t)length;
	/* Into the place where both versions have it. */
	osd_key_fields_encode(OSD_SET_MASTER_KEY, &fields, input->cdb + 24);
}

/* The unit has answered with a number, if there was room for all of it. */
static void note_seed(struct osd_keys *keys, const struct osd_key_fields *fields,
		      const uint8_t *answer, size_t length)
{
	const uint8_t *number;

	keys->group = 0;
	if (osd_seed_decode(answer, length, fields->dh_group, &number) != 0)
		return;
	keys->group = fields->dh_group;
	memcpy(keys->device, number, osd_dh_bytes(keys->group));
}

/*
 * The unit has taken the two numbers: those of osd_keys_complete, since no other secret would be
 * known.
 */
static void note_master(struct osd_keys *keys)
{
	const struct osd_dh_pair *pair = own_pair(keys->group);
	uint8_t shared[OSD_DH_BYTES_MAX];
	struct osd_keys_pair *master = &keys->pairs[OSD_KEYS_MASTER];

	fuzz_check(pair != NULL);
	fuzz_check(osd_dh_share(pair, keys->device, shared) == 0);
	keys->former_master = *master;
	keys->has_former_master = true;
	derive(&keys->former_master, shared, osd_dh_bytes(pair->group), master);
	keys->group = 0;
}

/* ---- SET KEY ---- */

static void note_key(struct osd_keys *keys, const struct osd_cdb *cdb)
{
	enum osd_keys_level level = cdb->command_options & 3;
	struct osd_key_fields fields;

	osd_key_fields_decode(OSD_SET_KEY, cdb->key_bytes, &fields);
	if (level != OSD_KEYS_ROOT && cdb->partition != OSD_SCENE_PARTITION)
		return;
	if (level == OSD_KEYS_WORKING && fields.key_version != OSD_KEYS_VERSION)
		return;
	derive(&keys->pairs[level - 1], fields.seed, sizeof(fields.seed), &keys->pairs[level]);
}

void osd_keys_note(struct osd_keys *keys, const struct osd_input_command *input,
		   const uint8_t *answer, size_t length)
{
	struct osd_key_fields fields;
	struct osd_cdb cdb;
	uint16_t bad_field;

	if (!decode(input, &cdb, &fields)) {
		if (osd_cdb_decode(input->cdb, input->cdb_length, &cdb, &bad_field) == 0 &&
		    cdb.action == OSD_SET_KEY)
			note_key(keys, &cdb);
		return;
	}
	if ((cdb.command_options & 3) == OSD_SEED_EXCHANGE)
		note_seed(keys, &fields, answer, length);
	else
		note_master(keys);
}
