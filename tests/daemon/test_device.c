/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* A flash device that units stand on: both back ends, refusals, and what lies beside the image. */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/log.h"
#include "daemon/module/device.h"
#include "daemon/module/options.h"
#include "tests/daemon/device_image.h"
#include "tests/engine/by_address.h"

#define P UINT64_C(0x10000)

static struct device_image image;
static char last_warning[1024];

static void keep_warning(enum log_level level, const char *line)
{
	if (level <= LOG_LEVEL_WARNING)
		snprintf(last_warning, sizeof(last_warning), "%s", line);
}

static int setup(void **state)
{
	(void)state;
	last_warning[0] = '\0';
	log_configure(keep_warning, LOG_LEVEL_WARNING);
	device_image_make(&image);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	device_image_remove(&image);
	return 0;
}

static struct device *open_with(enum nand_backend_kind backend)
{
	const struct nand_options nand = { .backend = backend };
	const struct engine_options engine = { 0 };
	struct error_text error = { "" };
	struct device *device = NULL;

	if (device_open(image.path, &nand, &engine, &(struct scrub_options){ 0 }, &device, &error))
		fail_msg("%s", error.text);
	return device;
}

static void create_partition(struct device *device, uint64_t partition)
{
	struct engine_txn *txn;

	assert_int_equal(engine_begin(device_engine(device), ENGINE_WRITE, &txn), 0);
	assert_int_equal(engine_partition_create(txn, partition, NULL), 0);
	assert_int_equal(engine_commit(txn, true), 0);
}

static int find_partition(struct device *device, uint64_t partition)
{
	const struct engine_address address = { .partition = partition };
	struct engine_stat stat;
	struct engine_txn *txn;
	int result;

	assert_int_equal(engine_begin(device_engine(device), ENGINE_READ, &txn), 0);
	result = engine_stat(txn, address, &stat);
	engine_abort(txn);
	return result;
}

static void test_what_one_back_end_stored_the_other_finds(void **state)
{
	struct device *device = open_with(NAND_BACKEND_FILE);
	uint8_t uuid[16];

	(void)state;
	memcpy(uuid, device_uuid(device), sizeof(uuid));
	create_partition(device, P);
	assert_int_equal(device_close(device), 0);
	device = open_with(NAND_BACKEND_MMAP);
	assert_memory_equal(device_uuid(device), uuid, sizeof(uuid));
	assert_int_equal(find_partition(device, P), 0);
	create_partition(device, P + 1);
	assert_int_equal(device_close(device), 0);
	device = open_with(NAND_BACKEND_FILE);
	assert_int_equal(find_partition(device, P), 0);
	assert_int_equal(find_partition(device, P + 1), 0);
	assert_int_equal(find_partition(device, P + 2), -ENOENT);
	assert_int_equal(device_close(device), 0);
}

static void assert_refused(const char *path, int result, const char *reason)
{
	const struct nand_options nand = { 0 };
	const struct engine_options engine = { 0 };
	struct error_text error = { "" };
	struct device *device = NULL;

	assert_int_equal(
		device_open(path, &nand, &engine, &(struct scrub_options){ 0 }, &device, &error),
		result);
	assert_null(device);
	if (!strstr(error.text, reason))
		fail_msg("refused with '%s', which does not say '%s'", error.text, reason);
}

/* Under its own name: another name of an open image is refused. */
static void test_units_share_a_device_that_is_open(void **state)
{
	struct device *device = open_with(NAND_BACKEND_MMAP);
	struct device *other = open_with(NAND_BACKEND_MMAP);

	(void)state;
	assert_ptr_equal(device, other);
	create_partition(device, P);
	assert_int_equal(device_close(device), 0);
	assert_int_equal(find_partition(other, P), 0);
	create_partition(other, P + 1);
	assert_int_equal(device_close(other), 0);
	device = open_with(NAND_BACKEND_FILE);
	assert_int_equal(find_partition(device, P + 1), 0);
	assert_int_equal(device_close(device), 0);
}

static void test_what_can_not_be_opened_is_named_and_left_alone(void **state)
{
	struct device *device;
	char other[256];

	(void)state;
	assert_refused("/nonexistent/image", -ENOENT, "/nonexistent/image");
	device = open_with(NAND_BACKEND_MMAP);
	snprintf(other, sizeof(other), "%s/./%s", image.folder, strrchr(image.path, '/') + 1);
	assert_refused(other, -EBUSY, other);
	assert_int_equal(device_close(device), 0);
	/* A refusal has left nothing open. */
	assert_int_equal(device_close(open_with(NAND_BACKEND_FILE)), 0);
	assert_int_equal(device_close(NULL), 0);
}

static void test_a_device_that_is_not_formatted_is_closed_again(void **state)
{
	struct nand_geometry geometry = nand_geometry_default(32 << 20);
	struct error_text error;
	char blank[128];

	(void)state;
	snprintf(blank, sizeof(blank), "%s/blank", image.folder);
	assert_int_equal(nand_create(blank, &geometry, 1 << 20, &error), 0);
	assert_refused(blank, -ENODEV, "");
	assert_refused(blank, -ENODEV, "");
}

static void test_a_device_of_another_engine_is_refused(void **state)
{
	const struct nand_options nand_options = { 0 };
	struct error_text error = { "" };
	struct device *device = NULL;
	struct lun_options options;
	struct nand *nand;

	(void)state;
	assert_int_equal(nand_open(image.path, &nand, &error), 0);
	assert_int_equal(nand_set_contents(nand, "huginn", &error), 0);
	assert_int_equal(nand_close(nand), 0);
	assert_refused(image.path, -EINVAL, "which this program does not have");
	assert_int_equal(lun_options_parse("engine=muninn", &options, &error), 0);
	assert_int_equal(device_open(image.path, &nand_options, &options.engine,
				     &(struct scrub_options){ 0 }, &device, &error),
			 -EINVAL);
	assert_non_null(strstr(error.text, "and is to be opened with \"muninn\""));
}

/* Leaves a word beside the image of an open device, which is refused for a reason. */
static void leave_refused(const char *name, const char *reason)
{
	char word[128], refused[160], written[160];
	FILE *file;

	snprintf(word, sizeof(word), "%s.%s", image.path, name);
	snprintf(refused, sizeof(refused), "%s.refused", word);
	/* Renamed when complete: the daemon must not find half a word. */
	snprintf(written, sizeof(written), "%s.new", word);
	file = fopen(written, "w");
	assert_non_null(file);
	assert_true(fputs("0x10000\n", file) >= 0);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(rename(written, word), 0);
	for (int waited_ms = 0; access(word, F_OK) == 0; waited_ms += 10) {
		assert_true(waited_ms < 10000);
		poll(NULL, 0, 10);
	}
	assert_int_equal(unlink(refused), 0);
	if (!strstr(last_warning, reason))
		fail_msg("%s", last_warning);
}

/* The words themselves are tested end to end; here that a device with either back end has them. */
static void test_a_word_beside_the_image_is_answered(void **state)
{
	(void)state;
	for (int backend = NAND_BACKEND_MMAP; backend <= NAND_BACKEND_FILE; backend++) {
		struct device *device = open_with((enum nand_backend_kind)backend);

		leave_refused("unlock", "there is no such partition");
		assert_int_equal(device_close(device), 0);
	}
}

static uint32_t capabilities_lacking;

uint32_t __real_engine_capabilities(const struct engine *engine);
uint32_t __wrap_engine_capabilities(const struct engine *engine);
uint32_t __wrap_engine_capabilities(const struct engine *engine)
{
	return __real_engine_capabilities(engine) & ~capabilities_lacking;
}

static void test_words_about_history_are_refused_by_an_engine_that_keeps_none(void **state)
{
	struct device *device;

	(void)state;
	capabilities_lacking = ENGINE_HAS_RETENTION;
	device = open_with(NAND_BACKEND_MMAP);
	leave_refused("unlock", "keeps no history that could be locked");
	leave_refused("time-epoch", "records no times of its own");
	assert_int_equal(device_close(device), 0);
	capabilities_lacking = 0;
}

#define with_image(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_image(test_what_one_back_end_stored_the_other_finds),
		with_image(test_units_share_a_device_that_is_open),
		with_image(test_what_can_not_be_opened_is_named_and_left_alone),
		with_image(test_a_device_that_is_not_formatted_is_closed_again),
		with_image(test_a_device_of_another_engine_is_refused),
		with_image(test_a_word_beside_the_image_is_answered),
		with_image(test_words_about_history_are_refused_by_an_engine_that_keeps_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
