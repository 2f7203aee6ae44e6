/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Devices, images and pages with known contents for the tests of nand/. */
#include "tests/nand/fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/crc32c.h"
#include "common/log.h"

const struct nand_geometry small_geometry = {
	.page_bytes = 4096,
	.spare_bytes = 128,
	.pages_per_block = 8,
	.blocks = 16,
	.channels = 2,
	.dies_per_channel = 1,
};

enum test_device test_device;
enum nand_space_kind test_space;
static uint32_t codec_page_bytes; /* of the device opened last */

static const char *const device_names[] = { "mmap", "file", "file, threads", "headers" };

static bool host_has_io_uring(void)
{
	const struct nand_mover_options options = { .fd = 0, .depth = 1 };
	struct nand_mover *mover;

	if (nand_uring_open(&options, &mover) < 0)
		return false;
	mover->operations->close(mover);
	return true;
}

int run_on_devices(enum test_device end, const char *name, const struct CMUnitTest *tests,
		   size_t count, CMFixtureFunction setup, CMFixtureFunction teardown)
{
	int failures = 0;

	for (int device = 0; device < (int)end; device++) {
		char group[128];

		if (device == TEST_DEVICE_FILE && !host_has_io_uring())
			continue;
		test_device = (enum test_device)device;
		snprintf(group, sizeof(group), "%s on %s", name, device_names[device]);
		failures += _cmocka_run_group_tests(group, tests, count, setup, teardown);
	}
	return failures;
}

static struct nand *open_path(const char *path)
{
	const struct nand_options options = {
		.backend = test_device == TEST_DEVICE_MMAP ? NAND_BACKEND_MMAP : NAND_BACKEND_FILE,
		.io = test_device == TEST_DEVICE_FILE_THREADS ? NAND_IO_THREADS : NAND_IO_URING,
		.space = test_space,
	};
	struct error_text error = { "" };
	struct nand *nand;

	if (nand_open_with(path, &options, &nand, &error) < 0)
		fail_msg("nand_open_with: %s", error.text);
	nand_set_violation_policy(nand, NAND_VIOLATION_FAILS);
	return nand;
}

/* The image loses its name as soon as it is open. */
static struct nand *open_nameless(const struct nand_geometry *geometry)
{
	struct error_text error = { "" };
	struct test_directory *directory;
	struct nand *nand;
	void *state;

	assert_int_equal(directory_setup(&state), 0);
	directory = state;
	if (nand_create(directory->image, geometry, TEST_NVRAM_BYTES, &error) < 0)
		fail_msg("nand_create: %s", error.text);
	nand = open_path(directory->image);
	assert_int_equal(directory_teardown(&state), 0);
	return nand;
}

struct nand *open_device(const struct nand_geometry *geometry)
{
	struct error_text error = { "" };
	struct nand *nand;

	codec_page_bytes = geometry->page_bytes;
	if (test_device == TEST_DEVICE_MMAP)
		assert_int_equal(nand_open_memory(geometry, TEST_NVRAM_BYTES, &nand, &error), 0);
	else if (test_device == TEST_DEVICE_HEADERS)
		assert_int_equal(
			nand_open_headers(geometry, TEST_NVRAM_BYTES, &test_codec, &nand, &error),
			0);
	else
		nand = open_nameless(geometry);
	nand_set_violation_policy(nand, NAND_VIOLATION_FAILS);
	log_capture();
	return nand;
}

struct nand *open_small(void)
{
	return open_device(&small_geometry);
}

void raw_read(struct nand *nand, uint64_t page, uint8_t *data, uint8_t *spare)
{
	assert_int_equal(nand->backend->read(nand, page, data, spare), 0);
}

void raw_write(struct nand *nand, uint64_t page, const uint8_t *data, const uint8_t *spare)
{
	assert_int_equal(nand->backend->write(nand, page, data, spare), 0);
}

void raw_flip_data(struct nand *nand, uint64_t page, uint32_t byte, uint8_t bits)
{
	uint8_t data[65536], spare[NAND_SPARE_BYTES_MAX];

	raw_read(nand, page, data, spare);
	data[byte] ^= bits;
	raw_write(nand, page, data, spare);
}

void raw_flip_spare(struct nand *nand, uint64_t page, uint32_t byte, uint8_t bits)
{
	uint8_t data[65536], spare[NAND_SPARE_BYTES_MAX];

	raw_read(nand, page, data, spare);
	spare[byte] ^= bits;
	raw_write(nand, page, data, spare);
}

int directory_setup(void **state)
{
	const char *parent = getenv("TMPDIR");
	struct test_directory *directory = calloc(1, sizeof(*directory));

	if (!directory)
		return -1;
	snprintf(directory->directory, sizeof(directory->directory), "%s/muninn-nand-XXXXXX",
		 parent && strlen(parent) < 32 ? parent : "/tmp");
	if (!mkdtemp(directory->directory)) {
		free(directory);
		return -1;
	}
	snprintf(directory->image, sizeof(directory->image), "%s/image", directory->directory);
	snprintf(directory->nvram, sizeof(directory->nvram), "%s.nvram", directory->image);
	log_capture();
	*state = directory;
	return 0;
}

int directory_teardown(void **state)
{
	struct test_directory *directory = *state;
	int result;

	unlink(directory->image);
	unlink(directory->nvram);
	result = rmdir(directory->directory);
	free(directory);
	return result;
}

struct nand *open_image_ok(const struct test_directory *directory)
{
	return open_path(directory->image);
}

struct nand *create_image(const struct test_directory *directory)
{
	struct error_text error = { "" };
	int result;

	if (test_device == TEST_DEVICE_HEADERS)
		skip();
	result = nand_create(directory->image, &small_geometry, TEST_NVRAM_BYTES, &error);
	if (result < 0)
		fail_msg("nand_create: %s", error.text);
	return open_image_ok(directory);
}

void assert_open_fails(const struct test_directory *directory, int result,
		       const char *const *fragments)
{
	struct error_text error = { "" };
	struct nand *nand = (struct nand *)1;

	assert_int_equal(nand_open(directory->image, &nand, &error), result);
	assert_null(nand);
	for (; *fragments; fragments++)
		if (!strstr(error.text, *fragments))
			fail_msg("\"%s\" is not in \"%s\"", *fragments, error.text);
}

/* Returns the seed after the last byte. */
static uint32_t fill_bytes(uint32_t seed, uint8_t *to, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes; i++)
		to[i] = (uint8_t)((seed += 0x9E3779B9U) >> 24);
	return seed;
}

static uint32_t page_seed(uint64_t page, uint32_t generation)
{
	return (uint32_t)page * 2654435761U + generation * 40503U;
}

void fill_page(const struct nand *nand, uint64_t page, uint32_t generation, uint8_t *data,
	       uint8_t *spare)
{
	const struct nand_geometry *geometry = nand_geometry(nand);

	fill_bytes(fill_bytes(page_seed(page, generation), data, geometry->page_bytes), spare,
		   nand_spare_usable(geometry));
}

static bool pack_filled(void *context, uint64_t page, const uint8_t *data, const uint8_t *spare,
			uint8_t *to, size_t capacity, size_t *bytes)
{
	uint8_t expected[65536];

	(void)context;
	(void)spare;
	for (uint32_t generation = 0; generation < 64; generation++) {
		/* Generations differ little: few bytes of a page tell them apart. */
		fill_bytes(page_seed(page, generation), expected, codec_page_bytes);
		if (memcmp(expected, data, codec_page_bytes) != 0 || capacity < 1)
			continue;
		to[0] = (uint8_t)generation;
		*bytes = 1;
		return true;
	}
	return false;
}

static bool unpack_filled(void *context, uint64_t page, const uint8_t *from, size_t bytes,
			  const uint8_t *spare, uint8_t *data)
{
	(void)context;
	(void)spare;
	if (bytes != 1)
		return false;
	fill_bytes(page_seed(page, from[0]), data, codec_page_bytes);
	return true;
}

const struct nand_payload_codec test_codec = { .pack = pack_filled, .unpack = unpack_filled };

int program_filled(struct nand *nand, uint64_t page, uint32_t generation)
{
	uint8_t data[65536], spare[NAND_SPARE_BYTES_MAX];
	struct nand_page_io io = { page, data, spare };

	fill_page(nand, page, generation, data, spare);
	return nand_program(nand, NAND_CAUSE_USER, &io, 1);
}

int read_filled(struct nand *nand, uint64_t page, uint32_t generation)
{
	const struct nand_geometry *geometry = nand_geometry(nand);
	uint8_t data[65536], spare[NAND_SPARE_BYTES_MAX];
	uint8_t expected_data[65536], expected_spare[NAND_SPARE_BYTES_MAX];
	struct nand_page_io io = { page, data, spare };
	int result = nand_read(nand, NAND_CAUSE_USER, &io, 1);

	if (result < 0)
		return result;
	fill_page(nand, page, generation, expected_data, expected_spare);
	if (memcmp(data, expected_data, geometry->page_bytes) != 0 ||
	    memcmp(spare, expected_spare, nand_spare_usable(geometry)) != 0)
		fail_msg("page %llu was read, but is not generation %u of it",
			 (unsigned long long)page, generation);
	return 0;
}

static int open_or_fail(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC);

	if (fd < 0)
		fail_msg("cannot open %s", path);
	return fd;
}

void file_read(const char *path, uint64_t offset, void *to, size_t bytes)
{
	int fd = open_or_fail(path, O_RDONLY);

	assert_int_equal(pread(fd, to, bytes, (off_t)offset), bytes);
	close(fd);
}

void file_write(const char *path, uint64_t offset, const void *from, size_t bytes)
{
	int fd = open_or_fail(path, O_WRONLY);

	assert_int_equal(pwrite(fd, from, bytes, (off_t)offset), bytes);
	close(fd);
}

void file_flip(const char *path, uint64_t offset, uint8_t bits)
{
	uint8_t byte;

	file_read(path, offset, &byte, 1);
	byte ^= bits;
	file_write(path, offset, &byte, 1);
}

uint64_t file_bytes(const char *path)
{
	struct stat status;

	assert_int_equal(stat(path, &status), 0);
	return (uint64_t)status.st_size;
}

uint32_t file_crc(const char *path)
{
	static uint8_t buffer[65536];
	int fd = open_or_fail(path, O_RDONLY);
	uint32_t crc = 0;
	ssize_t got;

	while ((got = read(fd, buffer, sizeof(buffer))) > 0)
		crc = crc32c(crc, buffer, (size_t)got);
	assert_int_equal(got, 0);
	close(fd);
	return crc;
}

bool file_exists(const char *path)
{
	return access(path, F_OK) == 0;
}

static char captured[8192];
static pthread_mutex_t capture_lock = PTHREAD_MUTEX_INITIALIZER;

static void capture_line(enum log_level level, const char *line)
{
	size_t used;

	(void)level;
	pthread_mutex_lock(&capture_lock);
	used = strlen(captured);
	snprintf(captured + used, sizeof(captured) - used, "%s\n", line);
	pthread_mutex_unlock(&capture_lock);
}

void log_capture(void)
{
	captured[0] = 0;
	log_configure(capture_line, LOG_LEVEL_DEBUG);
}

const char *log_captured(void)
{
	return captured;
}
