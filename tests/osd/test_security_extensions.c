/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Extension capabilities: a command works on further objects only with a capability for each, which is genuine, made for
 * this request, and allows it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "tests/osd/secured.h"

#define M (&secured_manager)

/* In P beside O: an object, and collections with O as their member. */
#define SECOND   (O + 1)
#define LINEAR   (O + 2)
#define TRACKING (O + 3)
/* Partitions: another one with an object of the same number; a snapshot and a clone of P. */
#define OTHER    (P + 1)
#define SNAPSHOT (P + 2)
#define CLONE    (P + 3)
#define NEW      (P + 9)

#define FIELD_CONTINUATION 48

static struct key_pair other_working;

static void make_objects(struct unit *unit)
{
	struct call call;

	unit_create(unit, P, SECOND);
	unit_write(unit, SECOND, 0, "second", 6);
	call = call_of(OSD_CREATE_COLLECTION, P, LINEAR);
	call_run(unit, &call);
	expect_good(unit);
	unit_set(unit, P, O, OSD_USER_OBJECT_COLLECTIONS, 1, "\0\0\0\0\0\1\0\7", 8);
	call = call_of(OSD_CREATE_USER_TRACKING_COLLECTION, P, TRACKING);
	call_run(unit, &call);
	expect_good(unit);
}

static void make_partitions(struct unit *unit)
{
	struct call call;

	unit_create_partition(unit, OTHER);
	unit_create(unit, OTHER, O);
	call = call_of(OSD_WRITE, OTHER, O);
	call_data(&call, "other", 5);
	call_run(unit, &call);
	expect_good(unit);
	call = call_of(OSD_CREATE_SNAPSHOT, SNAPSHOT, 0);
	call.cdb.address = P;
	call_run(unit, &call);
	expect_good(unit);
	call = call_of(OSD_CREATE_CLONE, CLONE, 0);
	call.cdb.address = P;
	call_run(unit, &call);
	expect_good(unit);
	secured_set_keys_of(unit, OTHER, 0x51, &other_working);
}

static int set_up(void **state)
{
	secured_set_up(state);
	make_objects(*state);
	make_partitions(*state);
	return 0;
}

#define with_scene(test) cmocka_unit_test_setup_teardown(test, set_up, unit_tear_down)

/* ---- commands with a further object ---- */

static void add_source(struct call *call, uint64_t partition, uint64_t object, bool attributes)
{
	struct osd_copy_source source = { .partition = partition,
					  .object = object,
					  .attributes = attributes };
	uint8_t content[OSD_COPY_SOURCE_BYTES];

	osd_copy_source_encode(&source, content);
	call_descriptor(call, OSD_CONTINUATION_COPY_SOURCE, content, sizeof(content));
}

static void fill_copy(struct call *call)
{
	add_source(call, P, SECOND, false);
}

static void fill_copy_with_attributes(struct call *call)
{
	add_source(call, P, SECOND, true);
}

static void fill_compare(struct call *call)
{
	uint8_t content[OSD_USER_OBJECT_BYTES];

	put_be64(content, P);
	put_be64(content + 8, SECOND);
	call_descriptor(call, OSD_CONTINUATION_USER_OBJECT, content, sizeof(content));
	call->cdb.length = call->data_in_capacity = 256;
}

static void fill_source_collection(struct call *call)
{
	call->cdb.address = LINEAR;
}

static void fill_query(struct call *call)
{
	static const uint8_t list[20] = { OSD_QUERY_ALL,
					  0,
					  0,
					  0,
					  0,
					  0,
					  0,
					  12,
					  0,
					  0,
					  0,
					  1,
					  0,
					  0,
					  0,
					  OSD_INFORMATION_LOGICAL_LENGTH };

	call_descriptor(call, OSD_CONTINUATION_QUERY_LIST, list, sizeof(list));
	call->cdb.address = TRACKING;
}

static void fill_source_partition(struct call *call)
{
	call->cdb.address = P;
}

static void fill_snapshot(struct call *call)
{
	call->cdb.address = SNAPSHOT;
}

static void fill_nothing(struct call *call)
{
	(void)call;
}

struct use {
	uint16_t action;
	uint64_t partition, object;
	uint8_t type;     /* of what is addressed */
	uint16_t present; /* what the capability in the CDB has to permit */
	void (*fill)(struct call *call);
	/* The further object, and what its capability has to permit. */
	uint64_t further_partition, further_object;
	uint8_t further_type;
	uint16_t further_permissions;
};

static const struct use uses[] = {
	{ OSD_COPY_USER_OBJECTS, P, 0, OSD_TYPE_USER_OBJECT,
	  OSD_PERMISSION_CREATE | OSD_PERMISSION_WRITE | OSD_PERMISSION_M_OBJECT, fill_copy, P,
	  SECOND, OSD_TYPE_USER_OBJECT, OSD_PERMISSION_READ },
	{ OSD_COPY_USER_OBJECTS, P, 0, OSD_TYPE_USER_OBJECT,
	  OSD_PERMISSION_CREATE | OSD_PERMISSION_WRITE | OSD_PERMISSION_M_OBJECT,
	  fill_copy_with_attributes, P, SECOND, OSD_TYPE_USER_OBJECT,
	  OSD_PERMISSION_READ | OSD_PERMISSION_GET_ATTR },
	{ OSD_READ_MAPS_AND_COMPARE, P, O, OSD_TYPE_USER_OBJECT,
	  OSD_PERMISSION_READ | OSD_PERMISSION_M_OBJECT, fill_compare, P, SECOND,
	  OSD_TYPE_USER_OBJECT, OSD_PERMISSION_READ },
	{ OSD_CREATE_USER_TRACKING_COLLECTION, P, 0, OSD_TYPE_COLLECTION,
	  OSD_PERMISSION_CREATE | OSD_PERMISSION_M_OBJECT, fill_source_collection, P, LINEAR,
	  OSD_TYPE_COLLECTION, OSD_PERMISSION_READ },
	{ OSD_QUERY, P, LINEAR, OSD_TYPE_COLLECTION, OSD_PERMISSION_QUERY | OSD_PERMISSION_M_OBJECT,
	  fill_query, P, TRACKING, OSD_TYPE_COLLECTION, OSD_PERMISSION_WRITE },
	{ OSD_CREATE_SNAPSHOT, NEW, 0, OSD_TYPE_PARTITION,
	  OSD_PERMISSION_CREATE | OSD_PERMISSION_GLOBAL, fill_source_partition, P, 0,
	  OSD_TYPE_PARTITION, OSD_PERMISSION_READ },
	{ OSD_CREATE_CLONE, NEW + 1, 0, OSD_TYPE_PARTITION,
	  OSD_PERMISSION_CREATE | OSD_PERMISSION_GLOBAL, fill_source_partition, P, 0,
	  OSD_TYPE_PARTITION, OSD_PERMISSION_READ },
	{ OSD_REFRESH_SNAPSHOT_OR_CLONE, SNAPSHOT, 0, OSD_TYPE_PARTITION,
	  OSD_PERMISSION_OBJ_MGMT | OSD_PERMISSION_WRITE | OSD_PERMISSION_REMOVE, fill_nothing, P,
	  0, OSD_TYPE_PARTITION, OSD_PERMISSION_READ },
	{ OSD_RESTORE_PARTITION_FROM_SNAPSHOT, P, 0, OSD_TYPE_PARTITION,
	  OSD_PERMISSION_OBJ_MGMT | OSD_PERMISSION_WRITE | OSD_PERMISSION_REMOVE, fill_snapshot,
	  SNAPSHOT, 0, OSD_TYPE_PARTITION, OSD_PERMISSION_READ },
};

#define USES (sizeof(uses) / sizeof(uses[0]))

/* The command with all permissions on what it addresses, and none on anything else. */
static struct signed_call call_of_use(struct unit *unit, const struct use *use, uint8_t method)
{
	struct signed_call call =
		signed_call_of(unit, use->action, use->partition, use->object, method);

	call.capability.object_type = use->type;
	call.capability.descriptor_type = osd_descriptor_type(OSD_2, use->type);
	if (use->action == OSD_CREATE_SNAPSHOT || use->action == OSD_CREATE_CLONE)
		call.secret = M->root.authentication;
	use->fill(&call.call);
	return call;
}

static struct granted *extend(struct signed_call *call, const struct use *use)
{
	return signed_extend(call, use->further_partition, use->further_object, use->further_type,
			     use->further_permissions);
}

/* 26/00, with a field pointer into Data-Out: to `field` of the CDB's capability in extension capability 0. */
static void expect_extension_field(struct unit *unit, const struct signed_call *call,
				   uint16_t field)
{
	struct osd_sense sense = unit_sense(unit);
	size_t list =
		call->call.cdb.continuation_length - call->extension_count * OSD_EXTENSION_BYTES;

	assert_int_equal(sense.key, SENSE_ILLEGAL_REQUEST);
	assert_int_equal(sense.code, SENSE_INVALID_FIELD_IN_PARAMETER_LIST);
	assert_true(sense.has_field && !sense.field_in_cdb);
	assert_int_equal(sense.field - list + OSD_FIELD_CAPABILITY_FORMAT, field);
	assert_int_equal(unit->command.data_in_length, 0);
}

static void test_the_capability_of_the_cdb_is_for_no_other_object(void **state)
{
	struct unit *unit = *state;

	for (size_t i = 0; i < SECURED_METHODS; i++) {
		uint64_t before = secured_close(unit, secured_methods[i]);

		for (size_t j = 0; j < USES; j++) {
			struct signed_call call = call_of_use(unit, &uses[j], secured_methods[i]);

			/* It has GLOBAL and M_OBJECT, too. */
			signed_run(unit, &call);
			expect_field(unit, 129);
			assert_int_equal(contents_of(unit), before);
		}
		secured_reopen(unit, secured_methods[i]);
	}
}

static void test_each_further_object_needs_exactly_its_permissions(void **state)
{
	struct unit *unit = *state;
	uint64_t before = secured_close(unit, OSD_CMDRSP);

	for (size_t i = 0; i < USES; i++) {
		const struct use *use = &uses[i];
		struct signed_call call;

		for (unsigned bit = 0; bit < 16; bit++) {
			if (!(use->further_permissions >> bit & 1))
				continue;
			call = call_of_use(unit, use, OSD_CMDRSP);
			extend(&call, use)->capability.permissions = (uint16_t) ~(1u << bit);
			signed_run(unit, &call);
			expect_extension_field(unit, &call, 129);
			assert_int_equal(contents_of(unit), before);
		}
		for (unsigned bit = 0; bit < 16; bit++) {
			if (!(use->present >> bit & 1))
				continue;
			call = call_of_use(unit, use, OSD_CMDRSP);
			call.capability.permissions = (uint16_t) ~(1u << bit);
			extend(&call, use)->capability.permissions = 0xFFFC;
			signed_run(unit, &call);
			expect_field(unit, 129);
			assert_int_equal(contents_of(unit), before);
		}
		call = call_of_use(unit, use, OSD_CMDRSP);
		call.capability.permissions = use->present;
		extend(&call, use);
		signed_run(unit, &call);
		expect_good(unit);
		before = contents_of(unit);
	}
}

static void test_every_method_takes_them(void **state)
{
	struct unit *unit = *state;

	for (size_t i = 0; i < SECURED_METHODS; i++) {
		secured_close(unit, secured_methods[i]);
		for (size_t j = 0; j < 5; j++) {
			struct signed_call call = call_of_use(unit, &uses[j], secured_methods[i]);

			extend(&call, &uses[j]);
			signed_run(unit, &call);
			expect_good(unit);
		}
		secured_reopen(unit, secured_methods[i]);
	}
}

/* A copy of the other partition's object into P. */
static struct signed_call copy_of_other(struct unit *unit, uint8_t method)
{
	struct signed_call call = signed_call_of(unit, OSD_COPY_USER_OBJECTS, P, 0, method);

	call.capability.object_type = OSD_TYPE_USER_OBJECT;
	call.capability.descriptor_type = OSD_DESCRIPTOR_OBJECT;
	add_source(&call.call, OTHER, O, false);
	return call;
}

static void extend_by_other(struct signed_call *call)
{
	signed_extend(call, OTHER, O, OSD_TYPE_USER_OBJECT, OSD_PERMISSION_READ)->secret =
		other_working.authentication;
}

/* ---- what a genuine one does not allow ---- */

static void change_format(struct osd_capability *capability)
{
	capability->format = OSD_CAPABILITY_OSD1;
}

static void change_algorithm(struct osd_capability *capability)
{
	capability->algorithm = 2;
}

static void change_key_version(struct osd_capability *capability)
{
	capability->key_version = 0;
}

static void weaken(struct osd_capability *capability)
{
	capability->method = OSD_CAPKEY;
}

static void strengthen(struct osd_capability *capability)
{
	capability->method = OSD_ALLDATA;
}

static void let_expire(struct osd_capability *capability)
{
	capability->expires_ms = UNIT_CLOCK - 1;
}

static void change_created_time(struct osd_capability *capability)
{
	capability->created_ms = UNIT_CLOCK + 1;
}

static void change_type(struct osd_capability *capability)
{
	capability->object_type = OSD_TYPE_COLLECTION;
	capability->descriptor_type = OSD_DESCRIPTOR_COLLECTION;
}

static void change_descriptor(struct osd_capability *capability)
{
	capability->descriptor_type = OSD_DESCRIPTOR_PARTITION;
}

static void change_tag(struct osd_capability *capability)
{
	capability->policy_tag = 77;
}

static void restrict_attributes(struct osd_capability *capability)
{
	capability->attributes_access = 1;
}

static void restrict_range(struct osd_capability *capability)
{
	capability->range_length = 1 << 20;
}

static void change_epoch(struct osd_capability *capability)
{
	capability->boot_epoch = 999;
}

static void test_each_field_of_a_genuine_one_counts(void **state)
{
	static const struct {
		void (*change)(struct osd_capability *capability);
		uint16_t field;
	} cases[] = {
		{ change_format, 80 },        { change_algorithm, 81 },
		{ change_key_version, 81 },   { weaken, 82 },
		{ strengthen, 82 },           { let_expire, 84 },
		{ change_created_time, 122 }, { change_type, 128 },
		{ change_descriptor, 135 },   { restrict_attributes, 136 },
		{ change_tag, 140 },          { change_epoch, 144 },
		{ restrict_range, 168 },
	};
	struct unit *unit = *state;
	uint64_t before = secured_close(unit, OSD_CMDRSP);

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct signed_call call = call_of_use(unit, &uses[0], OSD_CMDRSP);

		cases[i].change(&extend(&call, &uses[0])->capability);
		signed_run(unit, &call);
		expect_extension_field(unit, &call, cases[i].field);
		assert_true(answer_is_signed(unit));
		assert_int_equal(contents_of(unit), before);
	}
}

static void test_one_for_another_object_is_none(void **state)
{
	struct unit *unit = *state;
	uint64_t before = secured_close(unit, OSD_CMDRSP);

	for (size_t i = 0; i < 3; i++) {
		struct signed_call call = call_of_use(unit, &uses[0], OSD_CMDRSP);
		struct granted *granted = extend(&call, &uses[0]);

		if (i == 0)
			granted->capability.object = O;
		else if (i == 1)
			granted->capability.partition = P | UINT64_C(1) << 48;
		else
			granted->capability.partition = SNAPSHOT;
		signed_run(unit, &call);
		expect_field(unit, 129);
		assert_int_equal(contents_of(unit), before);
	}
}

static void test_times_and_tags_that_are_right_are_accepted(void **state)
{
	struct unit *unit = *state;
	struct signed_call call;
	struct granted *granted;

	unit_set(unit, P, SECOND, OSD_USER_OBJECT_SECURITY, OSD_SECURITY_POLICY_ACCESS_TAG,
		 "\0\0\0\x4D", 4);
	secured_close(unit, OSD_CMDRSP);
	call = call_of_use(unit, &uses[0], OSD_CMDRSP);
	granted = extend(&call, &uses[0]);
	granted->capability.policy_tag = 77;
	granted->capability.created_ms = UNIT_CLOCK;
	granted->capability.expires_ms = 0;
	signed_run(unit, &call);
	expect_good(unit);
}

static void test_what_the_partition_has_frozen_opens_nothing(void **state)
{
	struct unit *unit = *state;
	uint8_t mask[2] = { 0, 1 << KEY_VERSION }, audit[20] = "withdrawn account";
	struct signed_call call;
	uint64_t before;

	unit_set(unit, OTHER, 0, OSD_PAGES_PARTITION + OSD_PAGES_VENDOR, 1, audit, sizeof(audit));
	secured_set_method(unit, OTHER, OSD_CMDRSP);
	before = secured_close(unit, OSD_CMDRSP);
	call = copy_of_other(unit, OSD_CMDRSP);
	extend_by_other(&call);
	memcpy(call.extensions[0].capability.audit, audit, sizeof(audit));
	signed_run(unit, &call);
	expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_SECURITY_AUDIT_VALUE_FROZEN);
	assert_int_equal(contents_of(unit), before);

	call = signed_call_of(unit, OSD_SET_ATTRIBUTES, OTHER, 0, OSD_CMDRSP);
	call.secret = other_working.authentication;
	call_set(&call.call, OSD_PARTITION_SECURITY, OSD_SECURITY_FROZEN_KEYS, mask, 2);
	signed_run(unit, &call);
	expect_good(unit);
	before = contents_of(unit);
	call = copy_of_other(unit, OSD_CMDRSP);
	extend_by_other(&call);
	signed_run(unit, &call);
	expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_SECURITY_WORKING_KEY_FROZEN);
	assert_int_equal(contents_of(unit), before);
}

/* ---- what is not genuine ---- */

static void test_every_bit_is_protected(void **state)
{
	struct unit *unit = *state;

	for (size_t i = 0; i < SECURED_METHODS; i++) {
		uint64_t before = secured_close(unit, secured_methods[i]);

		for (size_t bit = 0; bit < 8 * (size_t)OSD_EXTENSION_BYTES; bit++) {
			struct signed_call call = call_of_use(unit, &uses[0], secured_methods[i]);
			struct encoded_call encoded;

			extend(&call, &uses[0]);
			signed_encode(unit, &call, &encoded);
			extensions_of(&encoded, &call)[bit / 8] ^= (uint8_t)(1 << bit % 8);
			signed_execute(unit, &call, &encoded);
			assert_int_equal(unit->command.status, SCSI_STATUS_CHECK_CONDITION);
			assert_int_equal(contents_of(unit), before);
		}
		secured_reopen(unit, secured_methods[i]);
	}
}

/*
 * Whoever has a right to the destination alone can sign request and segment, but not the extension capability that somebody
 * else has sent.
 */
static void test_no_bit_can_be_changed_by_those_without_its_key(void **state)
{
	struct unit *unit = *state;
	uint64_t before = secured_close(unit, OSD_CMDRSP);

	for (size_t bit = 0; bit < 8 * (size_t)OSD_EXTENSION_BYTES; bit++) {
		struct signed_call call = call_of_use(unit, &uses[0], OSD_CMDRSP);
		struct encoded_call encoded;

		extend(&call, &uses[0]);
		signed_encode(unit, &call, &encoded);
		extensions_of(&encoded, &call)[bit / 8] ^= (uint8_t)(1 << bit % 8);
		call.extension_count = 0;
		signed_again(unit, &call, &encoded);
		call.extension_count = 1;
		signed_execute(unit, &call, &encoded);
		/* Format, algorithm and method are looked at before the value; so is whose key it is. */
		if (bit / 8 > 2 && (bit / 8 < 72 || bit / 8 >= 80))
			expect_extension_field(unit, &call, unit_layout()->check_value);
		else
			assert_int_equal(unit->command.status, SCSI_STATUS_CHECK_CONDITION);
		assert_int_equal(contents_of(unit), before);
	}
}

static void test_one_made_with_another_key_is_refused(void **state)
{
	struct unit *unit = *state;
	const uint8_t *const secrets[] = { other_working.authentication, M->root.authentication,
					   M->partition.authentication };
	uint64_t before = secured_close(unit, OSD_CMDRSP);

	for (size_t i = 0; i < 3; i++) {
		struct signed_call call = call_of_use(unit, &uses[0], OSD_CMDRSP);

		extend(&call, &uses[0])->secret = secrets[i];
		signed_run(unit, &call);
		expect_extension_field(unit, &call, unit_layout()->check_value);
		assert_int_equal(contents_of(unit), before);
	}
}

/* Puts the extension capability of one request into another one, which is signed anew as far as its sender can. */
static void move(struct unit *unit, struct signed_call *from, struct signed_call *to)
{
	struct encoded_call seen, encoded;

	signed_encode(unit, from, &seen);
	signed_encode(unit, to, &encoded);
	memcpy(extensions_of(&encoded, to), extensions_of(&seen, from), OSD_EXTENSION_BYTES);
	to->extension_count = 0;
	signed_again(unit, to, &encoded);
	to->extension_count = 1;
	signed_execute(unit, to, &encoded);
	free(seen.out);
}

static void test_none_can_be_moved_to_another_request(void **state)
{
	struct unit *unit = *state;

	for (size_t i = 0; i < SECURED_METHODS; i++) {
		uint8_t method = secured_methods[i];
		uint64_t before = secured_close(unit, method);

		for (unsigned way = 0; way < 4; way++) {
			struct signed_call seen = call_of_use(unit, &uses[0], method);
			struct signed_call call = call_of_use(unit, &uses[0], method);

			extend(&seen, &uses[0]);
			/* Way 0: a later request that is the same but for its nonce. */
			if (way > 0)
				memcpy(call.nonce, seen.nonce, sizeof(call.nonce));
			if (way == 1) {
				call.call.cdb.object = call.capability.object = O + 77;
			} else if (way == 2) {
				call.call.continuation_length = 0;
				add_source(&call.call, P, SECOND, true);
			} else if (way == 3) {
				memset(call.capability.discriminator, 3, 12);
			}
			extend(&call, &uses[0]);
			move(unit, &seen, &call);
			expect_extension_field(unit, &call, unit_layout()->check_value);
			assert_int_equal(contents_of(unit), before);
		}
		secured_reopen(unit, method);
	}
}

static void test_with_capkey_one_is_bound_to_its_nexus(void **state)
{
	struct unit *unit = *state;
	uint64_t before = secured_close(unit, OSD_CAPKEY);
	struct signed_call call = call_of_use(unit, &uses[0], OSD_CAPKEY);
	struct encoded_call encoded;

	extend(&call, &uses[0]);
	unit->nexus = 7;
	signed_encode(unit, &call, &encoded);
	unit->nexus = 8;
	call.extension_count = 0;
	signed_again(unit, &call, &encoded);
	call.extension_count = 1;
	signed_execute(unit, &call, &encoded);
	expect_extension_field(unit, &call, unit_layout()->check_value);
	assert_int_equal(contents_of(unit), before);
}

static void test_a_request_with_one_is_not_accepted_twice(void **state)
{
	struct unit *unit = *state;
	struct signed_call call;
	uint64_t after;

	secured_close(unit, OSD_CMDRSP);
	call = call_of_use(unit, &uses[0], OSD_CMDRSP);
	extend(&call, &uses[0]);
	signed_run(unit, &call);
	expect_good(unit);
	after = contents_of(unit);
	signed_run(unit, &call);
	expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_NONCE_NOT_UNIQUE);
	assert_int_equal(contents_of(unit), after);
}

/* ---- several partitions ---- */

static void test_objects_of_another_secured_partition_can_be_read_with_its_key(void **state)
{
	struct unit *unit = *state;
	struct signed_call call;
	char data[5];

	secured_set_method(unit, OTHER, OSD_CMDRSP);
	secured_close(unit, OSD_CMDRSP);
	call = copy_of_other(unit, OSD_CMDRSP);
	extend_by_other(&call);
	call_get(&call.call, OSD_PAGE_CURRENT_COMMAND, OSD_CURRENT_OBJECT_ID);
	signed_run(unit, &call);
	expect_good(unit);
	call = signed_call_of(unit, OSD_READ, P,
			      get_be64(unit_retrieved(unit, &call.call, 0).value), OSD_CMDRSP);
	call.call.data_in_capacity = call.call.cdb.length = sizeof(data);
	signed_run(unit, &call);
	expect_good(unit);
	assert_memory_equal(unit->data_in, "other", sizeof(data));
}

static void test_a_request_is_as_strong_as_all_its_partitions_ask_for(void **state)
{
	struct unit *unit = *state;
	struct signed_call call;
	uint64_t before;

	secured_set_method(unit, OTHER, OSD_ALLDATA);
	before = secured_close(unit, OSD_CAPKEY);
	for (unsigned method = OSD_NOSEC; method < OSD_ALLDATA; method++) {
		call = copy_of_other(unit, (uint8_t)method);
		extend_by_other(&call);
		signed_run(unit, &call);
		expect_field(unit, 82);
		assert_int_equal(contents_of(unit), before);
	}
	call = copy_of_other(unit, OSD_ALLDATA);
	extend_by_other(&call);
	signed_run(unit, &call);
	expect_good(unit);
}

static void test_nothing_leaves_a_secured_partition_for_an_open_one_unsigned(void **state)
{
	struct unit *unit = *state;
	uint64_t before = contents_of(unit);
	struct signed_call call;
	struct call plain;

	secured_set_method(unit, OTHER, OSD_CMDRSP);
	/* Without capability; with one that nobody has signed; with one whose request nobody has signed. */
	plain = copy_of_other(unit, OSD_NOSEC).call;
	call_run(unit, &plain);
	expect_field(unit, 129);
	call = copy_of_other(unit, OSD_CMDRSP);
	extend_by_other(&call);
	call.extensions[0].secret = M->root.authentication;
	signed_run(unit, &call);
	expect_extension_field(unit, &call, unit_layout()->check_value);
	call = copy_of_other(unit, OSD_NOSEC);
	extend_by_other(&call);
	call.extensions[0].capability.method = OSD_CMDRSP;
	signed_run(unit, &call);
	expect_field(unit, 82);
	assert_int_equal(contents_of(unit), before);
	/* It can be done by who has keys of both. */
	call = copy_of_other(unit, OSD_CMDRSP);
	extend_by_other(&call);
	signed_run(unit, &call);
	expect_good(unit);
}

static void test_what_is_open_needs_none(void **state)
{
	struct unit *unit = *state;
	struct signed_call call;

	secured_close(unit, OSD_CMDRSP);
	call = copy_of_other(unit, OSD_CMDRSP);
	signed_run(unit, &call);
	expect_good(unit);
}

static void test_several_objects_need_one_each(void **state)
{
	struct unit *unit = *state;
	struct signed_call call;
	uint64_t before;

	secured_set_method(unit, OTHER, OSD_CMDRSP);
	before = secured_close(unit, OSD_CMDRSP);
	call = copy_of_other(unit, OSD_CMDRSP);
	add_source(&call.call, P, SECOND, false);
	extend_by_other(&call);
	signed_run(unit, &call);
	expect_field(unit, 129);
	assert_int_equal(contents_of(unit), before);
	/* In any order; one that is not needed does no harm, but has to be genuine. */
	call = copy_of_other(unit, OSD_CMDRSP);
	add_source(&call.call, P, SECOND, false);
	extend(&call, &uses[0]);
	signed_extend(&call, P, O, OSD_TYPE_USER_OBJECT, 0);
	extend_by_other(&call);
	call.extensions[1].secret = M->root.authentication;
	signed_run(unit, &call);
	assert_int_equal(unit_sense(unit).code, SENSE_INVALID_FIELD_IN_PARAMETER_LIST);
	assert_int_equal(contents_of(unit), before);
	fresh_nonce(unit, call.nonce);
	call.extensions[1].secret = M->working[KEY_VERSION].authentication;
	signed_run(unit, &call);
	expect_good(unit);
}

/* ---- lists that are none ---- */

static void add_list(struct call *call, uint32_t length)
{
	static const uint8_t list[(OSD_EXTENSIONS_MAX + 1) * OSD_EXTENSION_BYTES];

	assert_true(length <= sizeof(list));
	call_descriptor(call, OSD_CONTINUATION_EXTENSION_CAPABILITIES, list, length);
}

static void test_malformed_lists_are_refused(void **state)
{
	static const uint32_t lengths[] = { 0,
					    8,
					    OSD2_CAPABILITY_BYTES,
					    OSD_EXTENSION_BYTES - 1,
					    OSD_EXTENSION_BYTES + 1,
					    (OSD_EXTENSIONS_MAX + 1) * OSD_EXTENSION_BYTES };
	struct unit *unit = *state;
	uint64_t before = secured_close(unit, OSD_CMDRSP);
	struct signed_call call;

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		call = call_of_use(unit, &uses[0], OSD_CMDRSP);
		add_list(&call.call, lengths[i]);
		signed_run(unit, &call);
		expect_field(unit, FIELD_CONTINUATION);
		assert_int_equal(contents_of(unit), before);
	}
	/* One list it is. */
	call = call_of_use(unit, &uses[0], OSD_CMDRSP);
	add_list(&call.call, OSD_EXTENSION_BYTES);
	extend(&call, &uses[0]);
	signed_run(unit, &call);
	expect_field(unit, FIELD_CONTINUATION);
	/* A command without further objects has no place for it. */
	call = signed_call_of(unit, OSD_READ, P, O, OSD_CMDRSP);
	call.call.data_in_capacity = call.call.cdb.length = 5;
	extend(&call, &uses[0]);
	signed_run(unit, &call);
	expect_field(unit, FIELD_CONTINUATION);
	assert_int_equal(contents_of(unit), before);
}

static void test_nosec_does_not_look_at_them(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_COPY_USER_OBJECTS, P, 0);

	add_source(&call, P, SECOND, false);
	add_list(&call, 16);
	call_run(unit, &call);
	expect_good(unit);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_scene(test_the_capability_of_the_cdb_is_for_no_other_object),
		with_scene(test_each_further_object_needs_exactly_its_permissions),
		with_scene(test_every_method_takes_them),
		with_scene(test_each_field_of_a_genuine_one_counts),
		with_scene(test_one_for_another_object_is_none),
		with_scene(test_times_and_tags_that_are_right_are_accepted),
		with_scene(test_what_the_partition_has_frozen_opens_nothing),
		with_scene(test_every_bit_is_protected),
		with_scene(test_no_bit_can_be_changed_by_those_without_its_key),
		with_scene(test_one_made_with_another_key_is_refused),
		with_scene(test_none_can_be_moved_to_another_request),
		with_scene(test_with_capkey_one_is_bound_to_its_nexus),
		with_scene(test_a_request_with_one_is_not_accepted_twice),
		with_scene(test_objects_of_another_secured_partition_can_be_read_with_its_key),
		with_scene(test_a_request_is_as_strong_as_all_its_partitions_ask_for),
		with_scene(test_nothing_leaves_a_secured_partition_for_an_open_one_unsigned),
		with_scene(test_what_is_open_needs_none),
		with_scene(test_several_objects_need_one_each),
		with_scene(test_malformed_lists_are_refused),
		with_scene(test_nosec_does_not_look_at_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
