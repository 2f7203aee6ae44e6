/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Devices, images in a directory of their own, and pages with known contents, for the tests of
 * nand/.
 */
#ifndef MUNINN_TESTS_NAND_FIXTURE_H
#define MUNINN_TESTS_NAND_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "nand/private.h"

#define TEST_NVRAM_BYTES 10000 /* not a multiple of any page, on purpose */

/* 16 blocks of 8 pages of 4096 + 128 bytes on 2 channels with 1 die each. */
extern const struct nand_geometry small_geometry;

/* What the devices of this run of the tests are made of. */
enum test_device {
	TEST_DEVICE_MMAP,
	TEST_DEVICE_FILE,         /* io_uring; skipped where the host has none */
	TEST_DEVICE_FILE_THREADS, /* the same without io_uring */
	TEST_IMAGE_DEVICES,       /* those before have an image in a file */
	TEST_DEVICE_HEADERS = TEST_IMAGE_DEVICES,
	TEST_DEVICES,
};
extern enum test_device test_device;

/*
 * Of devices of TEST_DEVICE_HEADERS: knows pages of fill_page by their contents, keeps a byte of
 * each.
 */
extern const struct nand_payload_codec test_codec;

/* Of images that are opened; NAND_SPACE_DEFAULT unless a test program says otherwise. */
extern enum nand_space_kind test_space;

/* Runs a group of tests once on each kind of device below `end`. Returns the number of failures. */
int run_on_devices(enum test_device end, const char *name, const struct CMUnitTest *tests,
		   size_t count, CMFixtureFunction setup, CMFixtureFunction teardown);
#define RUN_ON_ALL_DEVICES(tests, setup, teardown)                                               \
	run_on_devices(TEST_DEVICES, __FILE__, tests, sizeof(tests) / sizeof((tests)[0]), setup, \
		       teardown)
#define RUN_ON_IMAGES(tests, setup, teardown)                                                   \
	run_on_devices(TEST_IMAGE_DEVICES, __FILE__, tests, sizeof(tests) / sizeof((tests)[0]), \
		       setup, teardown)

/*
 * A device of small_geometry, or another, that answers -EPERM to broken rules and leaves nothing
 * behind.
 */
struct nand *open_small(void);
struct nand *open_device(const struct nand_geometry *geometry);

/*
 * The bytes of a page where they are kept, past all rules and checks. `spare` is spare_bytes long.
 */
void raw_read(struct nand *nand, uint64_t page, uint8_t *data, uint8_t *spare);
void raw_write(struct nand *nand, uint64_t page, const uint8_t *data, const uint8_t *spare);
void raw_flip_data(struct nand *nand, uint64_t page, uint32_t byte, uint8_t bits);
void raw_flip_spare(struct nand *nand, uint64_t page, uint32_t byte, uint8_t bits);

/*
 * cmocka setup and teardown: an empty directory, whose paths `image` and `nvram` below are; removed
 * with its files.
 */
struct test_directory {
	char directory[64];
	char image[96];
	char nvram[112];
};
int directory_setup(void **state);
int directory_teardown(void **state);

/*
 * Creates and opens; both must succeed. Skips the test where devices have no image. The handle
 * answers -EPERM to broken rules.
 */
struct nand *create_image(const struct test_directory *directory);
struct nand *open_image_ok(const struct test_directory *directory);

/* Must fail with `result` and a message that has all of `fragments` (NULL ends the list). */
void assert_open_fails(const struct test_directory *directory, int result,
		       const char *const *fragments);

/* Contents that depend on page number and `generation`, to be checked without being kept. */
void fill_page(const struct nand *nand, uint64_t page, uint32_t generation, uint8_t *data,
	       uint8_t *spare);

/* nand_program of one such page, and its result; nand_read of one, compared, with its result. */
int program_filled(struct nand *nand, uint64_t page, uint32_t generation);
int read_filled(struct nand *nand, uint64_t page, uint32_t generation);

/* The bytes of a file, to be compared or changed. */
void file_read(const char *path, uint64_t offset, void *to, size_t bytes);
void file_write(const char *path, uint64_t offset, const void *from, size_t bytes);
void file_flip(const char *path, uint64_t offset, uint8_t bits);
uint64_t file_bytes(const char *path);
uint32_t file_crc(const char *path);
bool file_exists(const char *path);

/* Log lines since the last call of log_capture, instead of on stderr. */
void log_capture(void);
const char *log_captured(void);

#endif
