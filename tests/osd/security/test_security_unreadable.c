/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What security can't read protects as before: a command that has to be refused is refused,
 * whichever of the records can't be read that say so. Without its one fault it is executed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "engine/objects/objects.h"
#include "osd/execute.h"
#include "tests/osd/extended.h"
#include "tests/osd/function_call.h"

#define M (&secured_manager)

#define LIST 3

/* ---- records that can't be read ---- */

/* How many calls of the store are still answered; negative: all. */
static int calls_left = -1;
/* How the next one fails, and perhaps from then on each one about the same record. */
struct damage {
	int error;
	bool lasts;
};
static struct damage damage;
static bool has_failed;
static struct record_key lost;
static const struct record_store_operations *whole;

static bool is_lost(const struct record_key *key)
{
	return key->class == lost.class && key->partition == lost.partition &&
	       key->identifier == lost.identifier && key->piece == lost.piece;
}

/* Missing records are no damage: those that security does not find are not there. */
static int error_of(const struct record_key *key)
{
	if (has_failed)
		return damage.lasts && is_lost(key) ? damage.error : 0;
	if (calls_left < 0 || calls_left-- > 0)
		return 0;
	has_failed = true;
	lost = *key;
	return damage.error;
}

static int get(struct record_store *store, const struct record_key *key, uint64_t bound,
	       void *value, uint32_t capacity, struct record_info *info)
{
	int error = error_of(key);

	return error ? error : whole->get(store, key, bound, value, capacity, info);
}

static int next(struct record_store *store, struct record_key *key, uint64_t bound)
{
	int error = error_of(key);

	return error ? error : whole->next(store, key, bound);
}

/*
 * The service starts anew, so that everything is read, and the call behind the next few fails;
 * `calls` < 0: none does.
 */
static void start_with_damage(struct unit *unit, int calls)
{
	static struct record_store_operations damaged;

	unit_crash(unit);
	secured_restart(unit, M->device_key);
	/* Past all that has been accepted. */
	unit->now_ms += 100000;
	whole = unit->engine->store->operations;
	damaged = *whole;
	damaged.get = get;
	damaged.next = next;
	unit->engine->store->operations = &damaged;
	has_failed = false;
	calls_left = calls;
}

static void end_damage(struct unit *unit)
{
	unit->engine->store->operations = whole;
	calls_left = -1;
}

/* ---- what has to be refused, and why ---- */

/* Whether the call is made for the first time, when nobody demands signatures yet. */
static bool is_open;

/* Policy of a partition. */
static void prepare(struct unit *unit, uint64_t partition, uint32_t page, uint32_t number,
		    const void *value, uint32_t length)
{
	if (is_open)
		unit_set(unit, partition, 0, page, number, value, length);
}

static struct signed_call signed_read(struct unit *unit, uint64_t partition)
{
	struct signed_call call = signed_call_of(unit, OSD_READ, partition, O, OSD_CMDRSP);

	call.call.cdb.length = call.call.data_in_capacity = 16;
	return call;
}

static void without_signature(struct unit *unit, struct signed_call *call)
{
	*call = signed_read(unit, P);
	call->capability.method = OSD_NOSEC;
}

static void without_signature_at_a_version(struct unit *unit, struct signed_call *call)
{
	*call = signed_read(unit, P | UINT64_C(1) << 48);
	call->capability.method = OSD_NOSEC;
}

static void without_signature_of_a_snapshot(struct unit *unit, struct signed_call *call)
{
	*call = signed_read(unit, SNAPSHOT);
	call->capability.method = OSD_NOSEC;
}

static void removal_without_signature(struct unit *unit, struct signed_call *call)
{
	*call = signed_call_of(unit, OSD_REMOVE_PARTITION, P, 0, OSD_CMDRSP);
	call->call.cdb.command_options = OSD_REMOVE_CONTENTS;
	call->capability.method = OSD_NOSEC;
}

static void clone_without_signature(struct unit *unit, struct signed_call *call)
{
	*call = signed_call_of(unit, OSD_CREATE_CLONE, NEW, 0, OSD_CMDRSP);
	call->call.cdb.address = P;
	call->capability.method = OSD_NOSEC;
}

static void clone_without_extension(struct unit *unit, struct signed_call *call)
{
	*call = signed_call_of(unit, OSD_CREATE_CLONE, NEW, 0, OSD_CMDRSP);
	call->call.cdb.address = P;
	call->secret = M->root.authentication;
}

static void key_of_another(struct unit *unit, struct signed_call *call)
{
	*call = signed_read(unit, P);
	call->secret = other_working.authentication;
}

static void frozen_key(struct unit *unit, struct signed_call *call)
{
	prepare(unit, P, OSD_PARTITION_SECURITY, OSD_SECURITY_FROZEN_KEYS,
		(const uint8_t[]){ 0, 1 << KEY_VERSION }, 2);
	*call = signed_read(unit, P);
}

static void frozen_audit(struct unit *unit, struct signed_call *call)
{
	static const uint8_t audit[20] = { 1, 2, 3 };

	prepare(unit, P, OSD_PARTITION_FROZEN_AUDITS, 2, audit, sizeof(audit));
	*call = signed_read(unit, P);
	memcpy(call->capability.audit, audit, sizeof(audit));
}

static void old_tag(struct unit *unit, struct signed_call *call)
{
	*call = signed_read(unit, P);
	call->capability.policy_tag = 77;
}

static void old_tag_at_a_version(struct unit *unit, struct signed_call *call)
{
	*call = signed_read(unit, P | UINT64_C(1) << 48);
	call->capability.policy_tag = 77;
}

static void another_creation(struct unit *unit, struct signed_call *call)
{
	*call = signed_read(unit, P);
	call->capability.created_ms = UNIT_CLOCK - 1;
}

static void attribute_that_is_not_listed(struct unit *unit, struct signed_call *call)
{
	static const uint8_t item[8] = { 0, 1, 0, 3, 0, 0, 0, 1 };

	prepare(unit, P, OSD_PARTITION_ATTRIBUTES_ACCESS, LIST, item, sizeof(item));
	*call = signed_read(unit, P);
	call->capability.attributes_access = LIST;
	call->call.retrieved_capacity = 64;
	call_get(&call->call, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_USERNAME);
}

static void list_that_is_not_there(struct unit *unit, struct signed_call *call)
{
	*call = signed_read(unit, P);
	call->capability.attributes_access = LIST + 1;
}

static void copy_without_extension(struct unit *unit, struct signed_call *call)
{
	*call = copy_of_other(unit, OSD_CMDRSP);
}

static void copy_with_an_old_tag(struct unit *unit, struct signed_call *call)
{
	*call = copy_of_other(unit, OSD_CMDRSP);
	extend_by_other(call);
	call->extensions[0].capability.policy_tag = 77;
}

static void copy_with_a_frozen_key(struct unit *unit, struct signed_call *call)
{
	prepare(unit, OTHER, OSD_PARTITION_SECURITY, OSD_SECURITY_FROZEN_KEYS, "\xFF\xFF", 2);
	*call = copy_of_other(unit, OSD_CMDRSP);
	extend_by_other(call);
}

/* ---- the same without the fault ---- */

static void with_signature(struct unit *unit, struct signed_call *call)
{
	(void)unit;
	call->capability.method = OSD_CMDRSP;
}

static void with_extension(struct unit *unit, struct signed_call *call)
{
	(void)unit;
	call->capability.method = OSD_CMDRSP;
	call->secret = M->root.authentication;
	signed_extend(call, P, 0, OSD_TYPE_PARTITION, OSD_PERMISSION_READ);
}

static void own_key(struct unit *unit, struct signed_call *call)
{
	(void)unit;
	call->secret = M->working[KEY_VERSION].authentication;
}

/* Past security, as no command could. */
static void thaw(struct unit *unit, uint64_t partition)
{
	const struct engine_address address = { .partition = partition };
	struct engine_txn *txn;

	assert_int_equal(engine_begin(unit->engine, ENGINE_WRITE, &txn), 0);
	assert_int_equal(engine_attribute_set(txn, address, OSD_PARTITION_SECURITY,
					      OSD_SECURITY_FROZEN_KEYS, NULL, 0),
			 0);
	assert_int_equal(engine_commit(txn, false), 0);
}

static void thawed_key(struct unit *unit, struct signed_call *call)
{
	(void)call;
	thaw(unit, P);
}

static void another_audit(struct unit *unit, struct signed_call *call)
{
	(void)unit;
	call->capability.audit[0]++;
}

static void tag_of_today(struct unit *unit, struct signed_call *call)
{
	(void)unit;
	call->capability.policy_tag = 78;
}

static void its_creation(struct unit *unit, struct signed_call *call)
{
	(void)unit;
	call->capability.created_ms = UNIT_CLOCK;
}

static void attribute_that_is_listed(struct unit *unit, struct signed_call *call)
{
	(void)unit;
	call->call.has_gets = false;
	call_get(&call->call, 0x10003, 1);
}

static void list_that_is_there(struct unit *unit, struct signed_call *call)
{
	(void)unit;
	call->capability.attributes_access = 0;
}

static void copy_with_extension(struct unit *unit, struct signed_call *call)
{
	(void)unit;
	extend_by_other(call);
}

static void copy_with_the_tag_of_today(struct unit *unit, struct signed_call *call)
{
	(void)unit;
	call->extensions[0].capability.policy_tag = 78;
}

static void copy_with_a_thawed_key(struct unit *unit, struct signed_call *call)
{
	(void)call;
	thaw(unit, OTHER);
}

/* ---- refusals, and the one that is none ---- */

/* Makes the call anew; the first time it prepares the unit, too. Or mends the one fault of it. */
typedef void make_call(struct unit *unit, struct signed_call *call);

static void set_tag(struct unit *unit, uint64_t partition, uint8_t tag)
{
	const uint8_t value[4] = { 0, 0, 0, tag };

	unit_set(unit, partition, O, OSD_USER_OBJECT_SECURITY, OSD_SECURITY_POLICY_ACCESS_TAG,
		 value, sizeof(value));
}

static void demand_signatures(struct unit *unit)
{
	set_tag(unit, P, 77);
	set_tag(unit, OTHER, 78);
	function_subscribe(unit);
	assert_int_equal(function_snapshot(unit, P, NULL), 1);
	set_tag(unit, P, 78);
	secured_set_method(unit, P, OSD_CMDRSP);
	secured_set_method(unit, OTHER, OSD_CMDRSP);
}

/* Starts the service, and executes the call with as long to go and as new as a first one. */
static void run_with_damage(struct unit *unit, struct signed_call *call, int calls)
{
	struct encoded_call encoded;

	start_with_damage(unit, calls);
	fresh_nonce(unit, call->nonce);
	call->capability.expires_ms = unit->now_ms + 1000;
	for (size_t i = 0; i < call->extension_count; i++)
		call->extensions[i].capability.expires_ms = unit->now_ms + 1000;
	signed_encode(unit, call, &encoded);
	unit_execute(unit, encoded.cdb, encoded.cdb_length, encoded.out, encoded.out_length,
		     encoded.in_capacity);
	end_damage(unit);
	free(encoded.out);
}

/* True: so many calls of the store are not all that the command makes. */
static bool is_refused_with_damage(struct unit *unit, make_call *make, int calls)
{
	struct signed_call call;

	make(unit, &call);
	run_with_damage(unit, &call, calls);
	assert_int_not_equal(unit->command.status, SCSI_STATUS_GOOD);
	return has_failed;
}

static void is_executed_without_fault(struct unit *unit, make_call *make, make_call *mend)
{
	struct signed_call call;

	make(unit, &call);
	mend(unit, &call);
	run_with_damage(unit, &call, -1);
	expect_good(unit);
}

static void no_log(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

static void refuse_with_damage(struct unit *unit, make_call *make, make_call *mend)
{
	static const struct damage damages[] = {
		{ -EIO, false }, { -EIO, true }, { -EBADMSG, false }, { -EBADMSG, true }
	};
	struct signed_call call;

	log_configure(no_log, LOG_LEVEL_ERROR);
	is_open = true;
	make(unit, &call);
	is_open = false;
	demand_signatures(unit);
	for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
		int calls = 0;

		damage = damages[i];
		while (is_refused_with_damage(unit, make, calls))
			calls++;
		/* At least the partition has been looked for. */
		assert_true(calls > 0);
	}
	is_executed_without_fault(unit, make, mend);
	log_configure(NULL, LOG_LEVEL_INFO);
}

#define REFUSED(make, mend)                                   \
	static void test_##make(void **state)                 \
	{                                                     \
		refuse_with_damage(*state, &(make), &(mend)); \
	}

REFUSED(without_signature, with_signature)
REFUSED(without_signature_at_a_version, with_signature)
REFUSED(without_signature_of_a_snapshot, with_signature)
REFUSED(removal_without_signature, with_signature)
REFUSED(clone_without_signature, with_extension)
REFUSED(clone_without_extension, with_extension)
REFUSED(key_of_another, own_key)
REFUSED(frozen_key, thawed_key)
REFUSED(frozen_audit, another_audit)
REFUSED(old_tag, tag_of_today)
REFUSED(old_tag_at_a_version, tag_of_today)
REFUSED(another_creation, its_creation)
REFUSED(attribute_that_is_not_listed, attribute_that_is_listed)
REFUSED(list_that_is_not_there, list_that_is_there)
REFUSED(copy_without_extension, copy_with_extension)
REFUSED(copy_with_an_old_tag, copy_with_the_tag_of_today)
REFUSED(copy_with_a_frozen_key, copy_with_a_thawed_key)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_scene(test_without_signature),
		with_scene(test_without_signature_at_a_version),
		with_scene(test_without_signature_of_a_snapshot),
		with_scene(test_removal_without_signature),
		with_scene(test_clone_without_signature),
		with_scene(test_clone_without_extension),
		with_scene(test_key_of_another),
		with_scene(test_frozen_key),
		with_scene(test_frozen_audit),
		with_scene(test_old_tag),
		with_scene(test_old_tag_at_a_version),
		with_scene(test_another_creation),
		with_scene(test_attribute_that_is_not_listed),
		with_scene(test_list_that_is_not_there),
		with_scene(test_copy_without_extension),
		with_scene(test_copy_with_an_old_tag),
		with_scene(test_copy_with_a_frozen_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
