/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * A device that is copied while somebody writes: the copy is the device as it was between two
 * transactions, with all that was committed before the copy began; also where it is opened on
 * another host, which trusts only what was flushed.
 *
 * Runs for each index.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/bytes.h"
#include "engine/check.h"
#include "engine/engine.h"
#include "engine/options.h"
#include "nand/image_copy.h"
#include "tests/engine/by_address.h"
#include "tests/engine/index_under_test.h"
#include "tests/engine/small_flash.h"

enum { PAGES = 24, PAGE_BYTES = 512, ROUNDS = 4, ERASED_MEANWHILE = 40 };

static const struct nand_geometry geometry = SMALL_FLASH(400);
static const struct engine_address first = { .partition = ENGINE_FIRST_ID,
					     .object = ENGINE_FIRST_ID };
static const struct engine_address second = { .partition = ENGINE_FIRST_ID,
					      .object = ENGINE_FIRST_ID + 1 };

struct scene {
	char folder[64], image[96], copy[96], copy_nvram[112];
	struct nand *nand;
	struct engine *engine;
	uint64_t written; /* atomic: rounds that the writer has committed in both objects */
	bool ends;        /* atomic */
};

static struct engine_options options_of(const uint8_t boot_id[16])
{
	return (struct engine_options){
		.muninn = { .index = index_under_test(),
			    .rows = 1,
			    .segment_pages = 8,
			    .record_bytes = 256 },
		.records.boot_id = boot_id,
		.sealing_threads = 2,
		.merging_thread = true,
	};
}

static const uint8_t this_host[16] = { 1 }, other_host[16] = { 2 };

static void open_device(const char *path, const uint8_t boot_id[16], struct nand **nand,
			struct engine **engine)
{
	const struct engine_options options = options_of(boot_id);
	struct error_text error = { "" };

	if (nand_open(path, nand, &error) || engine_open(*nand, &options, engine, &error))
		fail_msg("%s: %s", path, error.text);
}

static void make_device(struct scene *scene)
{
	const struct engine_options options = options_of(this_host);
	struct error_text error = { "" };
	struct engine_txn *txn;
	uint64_t bytes;

	strcpy(scene->folder, "/tmp/muninn-copied-XXXXXX");
	assert_non_null(mkdtemp(scene->folder));
	snprintf(scene->image, sizeof(scene->image), "%s/image", scene->folder);
	snprintf(scene->copy, sizeof(scene->copy), "%s/copy", scene->folder);
	snprintf(scene->copy_nvram, sizeof(scene->copy_nvram), "%s.nvram", scene->copy);
	assert_int_equal(engine_nvram_bytes(&geometry, &options, &bytes, &error), 0);
	assert_int_equal(nand_create(scene->image, &geometry, bytes, &error), 0);
	assert_int_equal(nand_open(scene->image, &scene->nand, &error), 0);
	assert_int_equal(engine_format(scene->nand, &options, &error), 0);
	assert_int_equal(nand_close(scene->nand), 0);
	open_device(scene->image, this_host, &scene->nand, &scene->engine);
	assert_int_equal(engine_begin(scene->engine, ENGINE_WRITE, &txn), 0);
	assert_int_equal(engine_partition_create(txn, ENGINE_FIRST_ID, NULL), 0);
	assert_int_equal(
		engine_create(txn, ENGINE_FIRST_ID, ENGINE_USER_OBJECT, ENGINE_FIRST_ID, 1, NULL),
		0);
	assert_int_equal(engine_create(txn, ENGINE_FIRST_ID, ENGINE_USER_OBJECT,
				       ENGINE_FIRST_ID + 1, 1, NULL),
			 0);
	assert_int_equal(engine_commit(txn, false), 0);
}

static void remove_device(struct scene *scene)
{
	char nvram[112];

	assert_int_equal(engine_close(scene->engine), 0);
	assert_int_equal(nand_close(scene->nand), 0);
	snprintf(nvram, sizeof(nvram), "%s.nvram", scene->image);
	assert_int_equal(unlink(scene->image), 0);
	assert_int_equal(unlink(nvram), 0);
	assert_int_equal(rmdir(scene->folder), 0);
}

/* ---- the writer ---- */

static bool write_number(struct scene *scene, struct engine_address address, uint64_t number)
{
	uint8_t page[PAGE_BYTES];
	struct engine_txn *txn;
	int result;

	for (size_t at = 0; at < sizeof(page); at += sizeof(number))
		put_le64(page + at, number);
	if (engine_begin(scene->engine, ENGINE_WRITE, &txn))
		return false;
	result = engine_write(txn, address, number % PAGES * PAGE_BYTES, page, sizeof(page));
	if (result) {
		engine_abort(txn);
		return false;
	}
	return engine_commit(txn, false) == 0;
}

/* Into the first object, then into the second: at every moment that has the same, or is behind. */
static void *write_on(void *context)
{
	struct scene *scene = context;
	uint64_t number = 0;

	while (!__atomic_load_n(&scene->ends, __ATOMIC_ACQUIRE)) {
		number++;
		if (!write_number(scene, first, number) || !write_number(scene, second, number))
			return "the writer failed";
		__atomic_store_n(&scene->written, number, __ATOMIC_RELEASE);
	}
	return NULL;
}

static uint64_t written(struct scene *scene)
{
	return __atomic_load_n(&scene->written, __ATOMIC_ACQUIRE);
}

static uint64_t erased(struct scene *scene)
{
	struct nand_counters counters;
	uint64_t blocks = 0;

	nand_read_counters(scene->nand, &counters);
	for (int cause = 0; cause < NAND_CAUSES; cause++)
		blocks += counters.by_cause[cause].blocks_erased;
	return blocks;
}

/* ---- the copy ---- */

static int open_empty(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	return fd;
}

/* Returns how far the writer was, at least, at its instant. */
static uint64_t copy_device(struct scene *scene)
{
	int image_fd = open_empty(scene->copy), nvram_fd = open_empty(scene->copy_nvram);
	struct error_text error = { "" };
	struct nand_image_copy *copy;
	uint64_t before, held_us, erased_before;
	int result;

	if (nand_image_copy_open(scene->nand, image_fd, nvram_fd, NULL, &copy, &error))
		fail_msg("%s", error.text);
	before = written(scene);
	assert_int_equal(engine_begin_copy(scene->engine, copy, &held_us), 0);
	/* Much of what the copy is to have is erased before it is copied. */
	erased_before = erased(scene);
	while (erased(scene) - erased_before < ERASED_MEANWHILE)
		sched_yield();
	while ((result = nand_image_copy_step(copy, &error)) > 0)
		;
	if (result)
		fail_msg("%s", error.text);
	nand_image_copy_close(copy);
	close(image_fd);
	close(nvram_fd);
	return before;
}

/* The highest number of an object, whose other pages have the ones before it. */
static uint64_t read_number(struct engine *engine, struct engine_address address)
{
	uint8_t data[PAGES * PAGE_BYTES];
	struct engine_txn *txn;
	uint64_t got, most = 0;

	assert_int_equal(engine_begin(engine, ENGINE_READ, &txn), 0);
	assert_int_equal(engine_read(txn, address, 0, data, sizeof(data), &got), 0);
	engine_abort(txn);
	assert_int_equal(got, sizeof(data));
	for (uint64_t page = 0; page < PAGES; page++)
		most = max_u64(most, get_le64(data + page * PAGE_BYTES));
	for (uint64_t number = most - PAGES + 1; number <= most; number++) {
		const uint8_t *page = data + number % PAGES * PAGE_BYTES;

		assert_int_equal(get_le64(page), number);
		assert_int_equal(get_le64(page + PAGE_BYTES - 8), number);
	}
	return most;
}

static void fail_finding(void *context, const struct finding *finding)
{
	(void)context;
	fail_msg("%s", finding->text);
}

static void check_whole(struct engine *engine)
{
	struct findings findings = { .take = fail_finding };
	struct engine_check check = { .findings = &findings, .versions = true };

	assert_int_equal(engine_check(engine, &check), 0);
	assert_int_equal(findings.count, 0);
}

static void check_copy(struct scene *scene, const uint8_t boot_id[16], uint64_t before)
{
	struct engine *engine;
	struct nand *nand;
	uint64_t of_first, of_second;

	open_device(scene->copy, boot_id, &nand, &engine);
	of_first = read_number(engine, first);
	of_second = read_number(engine, second);
	assert_true(of_second >= before);
	assert_in_range(of_first - of_second, 0, 1);
	check_whole(engine);
	assert_int_equal(engine_close(engine), 0);
	assert_int_equal(nand_close(nand), 0);
	unlink(scene->copy);
	unlink(scene->copy_nvram);
}

static void test_a_copy_is_the_device_between_two_transactions(void **state)
{
	struct scene scene = { .ends = false };
	void *failure;
	pthread_t thread;

	(void)state;
	make_device(&scene);
	assert_int_equal(pthread_create(&thread, NULL, write_on, &scene), 0);
	/* Until its oldest numbers are gone, and merging has begun. */
	while (written(&scene) < PAGES || erased(&scene) < 2 * geometry.blocks)
		sched_yield();
	for (int round = 0; round < ROUNDS; round++) {
		uint64_t before = copy_device(&scene);

		check_copy(&scene, round % 2 ? other_host : this_host, before);
	}
	__atomic_store_n(&scene.ends, true, __ATOMIC_RELEASE);
	assert_int_equal(pthread_join(thread, &failure), 0);
	if (failure)
		fail_msg("%s", (const char *)failure);
	assert_int_equal(read_number(scene.engine, second), written(&scene));
	remove_device(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_copy_is_the_device_between_two_transactions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
