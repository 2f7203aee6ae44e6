/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * After a failure of the host no sum tells whether the headers of buffers are right, so each of
 * them is held against what serials there can be.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "common/bytes.h"
#include "engine/muninn/nvram.h"
#include "engine/muninn/row.h"
#include "engine/muninn/store.h"
#include "engine/open.h"
#include "tests/engine/small_flash.h"

static const struct nand_geometry flash = SMALL_FLASH(160);

struct host {
	struct nand *nand;
	uint8_t boot[16];
	struct engine_options options;
};

static int open_store(const struct host *host, struct record_store **store, struct error_text *why)
{
	return engine_open_records(host->nand, &host->options, store, why);
}

/* The word can't be the serial of a slot that the failure has left. */
static void expect_refused(const struct host *host, uint8_t *word, uint64_t serial)
{
	const uint64_t right = get_le64(word);
	struct error_text why = { "" };
	struct record_store *store;

	put_le64(word, serial);
	assert_int_equal(open_store(host, &store, &why), -EINVAL);
	assert_non_null(strstr(why.text, "the headers of a buffer"));
	put_le64(word, right);
}

static void test_the_serial_of_every_slot_is_held_against_those_that_were_given(void **state)
{
	struct host host = {
		.options = { .muninn = { .rows = 1, .segment_pages = 8, .record_bytes = 256 } }
	};
	struct error_text why = { "" };
	struct record_store *store;
	struct muninn_geometry geometry;
	uint64_t bytes, beyond;
	uint8_t *headers;

	(void)state;
	host.options.records.boot_id = host.boot;
	assert_int_equal(engine_nvram_bytes(&flash, &host.options, &bytes, &why), 0);
	assert_int_equal(nand_open_memory(&flash, bytes, &host.nand, &why), 0);
	assert_int_equal(engine_format(host.nand, &host.options, &why), 0);
	assert_int_equal(open_store(&host, &store, &why), 0);
	geometry = ((struct muninn_store *)(void *)store)->geometry;
	beyond = state_read((struct muninn_store *)(void *)store, STATE_NEXT_SERIAL_AT) +
		 SERIALS_AHEAD_MAX;
	store->operations->close(store, false);
	host.boot[0]++;
	for (uint32_t buffer = 0; buffer < geometry.buffers; buffer++) {
		headers = (uint8_t *)nand_nvram(host.nand, NULL) + geometry.buffers_at +
			  buffer * geometry.buffer_bytes + geometry.slot_headers_at;
		for (uint32_t slot = 0; slot < buffer_slots(&geometry); slot++) {
			uint8_t *word = headers + slot * SLOT_HEADER_BYTES + SLOT_SERIAL_AT;

			expect_refused(&host, word, 0);
			expect_refused(&host, word, beyond);
		}
	}
	/* All of them were right before. */
	assert_int_equal(open_store(&host, &store, &why), 0);
	assert_int_equal(store->operations->close(store, true), 0);
	assert_int_equal(nand_close(host.nand), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_the_serial_of_every_slot_is_held_against_those_that_were_given),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
