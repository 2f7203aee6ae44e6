/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Functions that take several commands, of an object that somebody changes in between. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <openssl/sha.h>

#include "client/osd_client.h"
#include "common/bytes.h"
#include "engine/history.h"
#include "tests/client/local_target.h"
#include "tests/engine/by_address.h"

#define PARTITION 0x10000
#define OBJECT    0x10000
#define LENGTH    (UINT64_C(9) << 20) /* a command digests 8 MiB at most */

struct scene {
	struct local_target target;
	bool changes; /* the object, behind the first CHECKSUM */
	unsigned checksums;
	uint8_t digest[32];
};

static void must(int result)
{
	assert_int_equal(result, 0);
}

static void change(struct scene *scene)
{
	const struct engine_address object = { .partition = PARTITION, .object = OBJECT };
	struct engine_txn *txn;

	must(engine_begin(scene->target.engine, ENGINE_WRITE, &txn));
	must(engine_write(txn, object, 0, "A", 1));
	must(engine_write(txn, object, LENGTH - 1, "B", 1));
	must(engine_commit(txn, true));
}

static void execute(void *context, struct loopback_command *command)
{
	struct scene *scene = context;
	bool is_checksum = get_be16(command->cdb + 8) == OSD_EXECUTE &&
			   get_be16(command->cdb + 40) == OSD_FUNCTION_CHECKSUM;

	local_target_execute(&scene->target, 1, command);
	if (!is_checksum)
		return;
	if (scene->checksums++ == 0 && scene->changes)
		change(scene);
}

static int take_digest(void *context, const uint8_t *items, size_t length)
{
	struct osd_item item;

	if (osd_item_find(items, length, OSD_ITEM_DIGEST, &item) == 0)
		memcpy(context, item.value, 32);
	return 0;
}

static int set_up(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));
	struct osd_client_address object = { PARTITION, OBJECT, 0 };

	local_target_open(&scene->target, 64 << 20, (const uint8_t[16]){ 1 }, NULL);
	local_target_start(&scene->target, OSD_2, execute, scene);
	must(osd_client_create_partition(scene->target.client, PARTITION, -1, NULL, NULL));
	must(osd_client_create(scene->target.client, PARTITION, OBJECT, 1, NULL, NULL, NULL));
	must(osd_client_truncate(scene->target.client, object, LENGTH, NULL));
	scene->changes = true;
	*state = scene;
	return 0;
}

static int tear_down(void **state)
{
	struct scene *scene = *state;

	local_target_close(&scene->target);
	free(scene);
	return 0;
}

/* Whether the last digest is that of zeros with these bytes at the beginning and the end. */
static bool is_digest_of(const struct scene *scene, uint8_t first, uint8_t last)
{
	uint8_t *content = calloc(1, LENGTH), digest[32];

	assert_non_null(content);
	content[0] = first;
	content[LENGTH - 1] = last;
	SHA256(content, LENGTH, digest);
	free(content);
	return memcmp(digest, scene->digest, 32) == 0;
}

static bool checksum(struct scene *scene)
{
	const struct osd_client_address object = { PARTITION, OBJECT, 0 };
	bool one_state;

	must(osd_client_execute_at_one_state(scene->target.client, OSD_FUNCTION_CHECKSUM, object,
					     NULL, 0, take_digest, scene->digest, &one_state,
					     NULL));
	return one_state;
}

static void test_a_checksum_is_that_of_the_object_when_it_began(void **state)
{
	struct scene *scene = *state;

	assert_true(checksum(scene));
	assert_int_equal(scene->checksums, 2);
	assert_true(is_digest_of(scene, 0, 0));
	assert_true(checksum(scene));
	assert_true(is_digest_of(scene, 'A', 'B'));
}

static void test_without_history_the_present_is_read_and_the_caller_told(void **state)
{
	const struct engine_retention none = { .kind = ENGINE_RETAIN_NONE };
	struct scene *scene = *state;
	struct engine_txn *txn;

	must(engine_begin(scene->target.engine, ENGINE_RESCUE, &txn));
	must(engine_retention_set(txn, PARTITION, &none, false));
	must(engine_commit(txn, true));
	/* The view ends with the change, and all begins again. */
	assert_false(checksum(scene));
	assert_int_equal(scene->checksums, 4);
	assert_true(is_digest_of(scene, 'A', 'B'));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_checksum_is_that_of_the_object_when_it_began,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_without_history_the_present_is_read_and_the_caller_told, set_up,
			tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
