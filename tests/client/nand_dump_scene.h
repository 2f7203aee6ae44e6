/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What tests of `muninnctl nand dump` stand on: a small image whose records are known, the command,
 * and fields of the JSON that it writes.
 */
#ifndef MUNINN_TESTS_CLIENT_NAND_DUMP_SCENE_H
#define MUNINN_TESTS_CLIENT_NAND_DUMP_SCENE_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "engine/records/records.h"
#include "nand/nand.h"

enum {
	RECORDS = 3000,
	SPANNED = 2000, /* records from here on may span pages */
	PAGE = 512,
	SPARE = 160,
	SEGMENT_PAGES = 8,
	BLOCKS = 400,
	PAGES = BLOCKS * 8,
};

/* ---- the image ---- */

struct dump_put {
	struct record_key key;
	uint64_t sequence;
	uint32_t length;
	unsigned flags;
};

extern const struct nand_geometry dump_geometry;
/* What was put into the image, in this order. */
extern struct dump_put dump_puts[RECORDS];
/* The path of the copy that a test has. */
extern char dump_device[128];

/* Fixtures of cmocka: one image for all tests of a program, and a copy of it for each test. */
int dump_make_image(void **state);
int dump_remove_image(void **state);
int dump_copy_image(void **state);
int dump_remove_copy(void **state);

/* A test with a copy. */
#define DUMP_TEST(test) cmocka_unit_test_setup_teardown(test, dump_copy_image, dump_remove_copy)

/* ---- the command ---- */

/* What the last dump_run or dump_expect wrote, to both outputs. */
extern char dump_output[1 << 20];

/* Runs the command on pages of the copy, with options. Returns the exit code. */
int dump_run(const char *pages, const char *options);
/* Fails without this exit code, or without `word` in the output. */
void dump_expect(const char *pages, const char *options, int code, const char *word);
/* Fails where a line has more than 100 bytes. */
void dump_expect_narrow(const char *pages, const char *options);

/* What the command says of a page, or of each page of the image, with --json; the caller's. */
json_t *dump_page(uint64_t page);
json_t *dump_all(void);

/* ---- what it says: each fails if the field or page is not there ---- */

json_int_t dump_number(const json_t *object, const char *name);
bool dump_flag(const json_t *object, const char *name);
const char *dump_text(const json_t *object, const char *name);
/* A text of hexadecimal digits. */
uint64_t dump_hex(const json_t *object, const char *name);
bool dump_is_kind(const json_t *page, const char *kind);
/* The first page of a kind, of all pages. */
const json_t *dump_first_of(const json_t *pages, const char *kind);
/* The first page of the newest root. */
const json_t *dump_last_root(const json_t *pages);

#endif
