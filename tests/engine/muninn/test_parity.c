/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The code that gives back lost pages: its documented bytes, and all losses that it is for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <errno.h>

#include "common/bytes.h"
#include "engine/muninn/hash.h"
#include "engine/muninn/parity.h"

enum { HEAD = 44, SPARE = 4096, PAGE_MAX = 4096 };

/* A group of pages, and what they were before some were lost. */
struct group {
	struct parity parity;
	struct nand_page_io pages[PARITY_GROUP_PAGES_MAX];
	uint8_t *data, *spares, *data_before, *spares_before, *scratch;
	uint64_t random;
};

static uint64_t next(struct group *group)
{
	return hash_mix(group->random += UINT64_C(0x9e3779b97f4a7c15));
}

static void group_make(struct group *group, uint32_t page_bytes, uint32_t pages, uint32_t losses,
		       uint64_t seed)
{
	const struct parity_shape shape = parity_shape(page_bytes, HEAD, pages, losses);
	size_t bytes = (size_t)shape.group_pages * page_bytes;
	size_t spare_bytes = (size_t)shape.group_pages * SPARE;

	assert_true(shape.head_bytes + shape.share_bytes <= SPARE);
	*group = (struct group){
		.data = calloc(1, bytes),
		.spares = calloc(1, spare_bytes),
		.data_before = malloc(bytes),
		.spares_before = malloc(spare_bytes),
		.scratch = malloc(parity_scratch_bytes(&shape)),
		.random = seed,
	};
	assert_int_equal(parity_create(&group->parity, &shape), 0);
	for (uint32_t n = 0; n < shape.group_pages; n++)
		group->pages[n] =
			(struct nand_page_io){ .page = n,
					       .data = group->data + (size_t)n * page_bytes,
					       .spare = group->spares + (size_t)n * SPARE };
}

/* Pages are added in an order that the seed tells. */
static void encode(const struct parity *parity, const struct nand_page_io *group, uint8_t *scratch,
		   uint64_t seed)
{
	uint32_t pages = parity->shape.group_pages, first = (uint32_t)(hash_mix(seed) % pages);
	uint32_t step = walk_step(pages);

	memset(scratch, 0xA5, parity_scratch_bytes(&parity->shape));
	parity_begin(parity, scratch);
	for (uint32_t n = 0; n < pages; n++) {
		uint32_t number = (first + n * step) % pages;

		parity_add(parity, number, &group[number], scratch);
	}
	parity_end(parity, group, scratch);
}

static void group_fill(struct group *group)
{
	const struct parity_shape *shape = &group->parity.shape;

	for (uint32_t n = 0; n < shape->group_pages; n++) {
		uint8_t *data = group->pages[n].data, *spare = group->pages[n].spare;

		for (uint32_t i = 0; i < shape->page_bytes; i++)
			data[i] = (uint8_t)next(group);
		for (uint32_t i = 0; i < HEAD; i++)
			spare[i] = (uint8_t)next(group);
	}
	encode(&group->parity, group->pages, group->scratch, group->random);
	memcpy(group->data_before, group->data, (size_t)shape->group_pages * shape->page_bytes);
	memcpy(group->spares_before, group->spares, (size_t)shape->group_pages * SPARE);
}

static void group_free(struct group *group)
{
	parity_destroy(&group->parity);
	free(group->data);
	free(group->spares);
	free(group->data_before);
	free(group->spares_before);
	free(group->scratch);
}

static void lose(struct group *group, uint32_t page)
{
	memset(group->pages[page].data, 0xA5, group->parity.shape.page_bytes);
	memset(group->pages[page].spare, 0xA5, SPARE);
}

/* Pages are as they were; of the spare areas that counts for the heads. */
static void check(const struct group *group)
{
	const struct parity_shape *shape = &group->parity.shape;

	assert_memory_equal(group->data, group->data_before,
			    (size_t)shape->group_pages * shape->page_bytes);
	for (uint32_t n = 0; n < shape->group_pages; n++)
		assert_memory_equal(group->spares + (size_t)n * SPARE,
				    group->spares_before + (size_t)n * SPARE, HEAD);
}

static void restore(struct group *group, const uint32_t *lost, uint32_t count)
{
	for (uint32_t n = 0; n < count; n++)
		lose(group, lost[n]);
	assert_int_equal(parity_restore(&group->parity, group->pages, lost, count, group->scratch),
			 0);
	check(group);
	memcpy(group->spares, group->spares_before,
	       (size_t)group->parity.shape.group_pages * SPARE);
}

/* ---- the documented bytes ---- */

static void test_shares_have_the_documented_bytes(void **state)
{
	/* 8 pages of 12 bytes with heads of 2, of which two may be lost. */
	const struct parity_shape shape = parity_shape(12, 2, 8, 2);
	static const uint8_t documented[8][5] = {
		{ 0x08, 0x00, 0x00, 0x00, 0x00 }, { 0x00, 0x00, 0x00, 0x00, 0x00 },
		{ 0x00, 0xff, 0x00, 0x00, 0x95 }, { 0x00, 0x00, 0x00, 0x00, 0x00 },
		{ 0x00, 0x00, 0x00, 0x00, 0x00 }, { 0x97, 0x93, 0x00, 0x00, 0x00 },
		{ 0x9f, 0x6c, 0x00, 0x00, 0x95 }, { 0xe3, 0x98, 0x00, 0x00, 0x4f },
	};
	uint8_t data[8][12], spares[8][7], scratch[256];
	struct nand_page_io pages[8];
	struct parity parity;

	(void)state;
	assert_int_equal(shape.share_bytes, 5);
	assert_true(parity_scratch_bytes(&shape) <= sizeof(scratch));
	assert_int_equal(parity_create(&parity, &shape), 0);
	memset(data, 0, sizeof(data));
	memset(spares, 0, sizeof(spares));
	for (uint32_t n = 0; n < 8; n++) {
		data[n][0] = (uint8_t)(n + 1);
		data[n][11] = (uint8_t)(1 << n);
		spares[n][0] = (uint8_t)(0x10 * n);
		pages[n] = (struct nand_page_io){ .data = data[n], .spare = spares[n] };
	}
	encode(&parity, pages, scratch, 1);
	for (uint32_t n = 0; n < 8; n++) {
		for (uint32_t i = 0; i < 5; i++)
			if (spares[n][2 + i] != documented[n][i])
				print_error("share %u, byte %u is %02x\n", n, i, spares[n][2 + i]);
		assert_memory_equal(spares[n] + 2, documented[n], 5);
	}
	parity_destroy(&parity);
}

static void test_the_shape_is_what_the_documents_say(void **state)
{
	(void)state;
	struct parity_shape shape = parity_shape(4096, HEAD, 256, 1);

	assert_int_equal(shape.group_pages, 128);
	assert_int_equal(shape.share_bytes, 33);
	assert_int_equal(parity_shape(4096, HEAD, 256, 5).share_bytes, 169);
	assert_int_equal(parity_shape(4096, HEAD, 256, 6).share_bytes, 204);
	shape = parity_shape(512, HEAD, 8, 1);
	assert_int_equal(shape.group_pages, 8);
	assert_int_equal(shape.share_bytes, 80);
	assert_int_equal(parity_shape(4096, HEAD, 256, 0).share_bytes, 0);
}

/* ---- losses ---- */

static void test_each_page_of_a_group_can_be_lost(void **state)
{
	(void)state;
	for (uint32_t pages = 8; pages <= PARITY_GROUP_PAGES_MAX; pages *= 2)
		for (uint32_t losses = 1; losses <= 4; losses += 3) {
			struct group group;

			group_make(&group, 512, pages, losses, pages);
			group_fill(&group);
			for (uint32_t lost = 0; lost < pages; lost++)
				restore(&group, &lost, 1);
			group_free(&group);
		}
}

static void test_every_two_pages_of_a_group_can_be_lost(void **state)
{
	struct group group;
	uint32_t lost[2];

	(void)state;
	group_make(&group, 512, 32, 2, 1);
	group_fill(&group);
	for (lost[0] = 0; lost[0] < 32; lost[0]++)
		for (lost[1] = lost[0] + 1; lost[1] < 32; lost[1]++)
			restore(&group, lost, 2);
	group_free(&group);
}

/* So many different pages, ascending. */
static void choose(struct group *group, uint32_t *lost, uint32_t count)
{
	uint32_t pages = group->parity.shape.group_pages, chosen = 0;

	for (uint32_t page = 0; page < pages; page++)
		if (next(group) % (pages - page) < count - chosen)
			lost[chosen++] = page;
	assert_int_equal(chosen, count);
}

static void test_any_pages_can_be_lost_as_many_as_there_are_parities(void **state)
{
	uint32_t lost[PARITY_LOSSES_MAX];

	(void)state;
	for (uint32_t losses = 1; losses <= PARITY_LOSSES_MAX; losses++) {
		struct group group;

		/* A size that no vector register divides. */
		group_make(&group, 1000, PARITY_GROUP_PAGES_MAX, losses, losses);
		group_fill(&group);
		for (uint32_t n = 0; n < 40; n++) {
			uint32_t count = 1 + (uint32_t)(next(&group) % losses);

			choose(&group, lost, count);
			restore(&group, lost, count);
		}
		/* Those at the end, whose shares are parity of shares; those at the beginning. */
		for (uint32_t n = 0; n < losses; n++)
			lost[n] = PARITY_GROUP_PAGES_MAX - losses + n;
		restore(&group, lost, losses);
		for (uint32_t n = 0; n < losses; n++)
			lost[n] = n;
		restore(&group, lost, losses);
		group_free(&group);
	}
}

static void test_more_losses_than_parities_are_refused_and_nothing_is_touched(void **state)
{
	const uint32_t lost[] = { 3, 4, 90 };
	struct group group;

	(void)state;
	group_make(&group, 512, PARITY_GROUP_PAGES_MAX, 2, 5);
	group_fill(&group);
	assert_int_equal(parity_restore(&group.parity, group.pages, lost, 3, group.scratch),
			 -EBADMSG);
	check(&group);
	group_free(&group);
}

/* ---- runs ---- */

static void test_a_run_s_parity_has_the_documented_bytes(void **state)
{
	/* 3 pages of 12 bytes, of which two may be lost: as a group of 8 with zeros behind them. */
	const struct parity_shape shape = parity_shape(12, 2, 8, 2);
	static const uint8_t documented[2][12] = { { [11] = 0x07 }, { [0] = 0x6f, [11] = 0x87 } };
	uint8_t bytes[5][12] = { { 0 } };
	struct parity parity;

	(void)state;
	assert_int_equal(parity_create(&parity, &shape), 0);
	assert_int_equal(parity_run_more(&shape, 3), 2);
	assert_int_equal(parity_run_more(&shape, 8), 2);
	assert_int_equal(parity_run_more(&shape, 9), 4);
	for (uint32_t n = 0; n < 3; n++) {
		bytes[n][0] = (uint8_t)(n + 1);
		bytes[n][11] = (uint8_t)(1 << n);
	}
	parity_run_encode(&parity, bytes[0], 3);
	for (uint32_t n = 0; n < 2; n++)
		for (uint32_t i = 0; i < 12; i++)
			if (bytes[3 + n][i] != documented[n][i])
				print_error("parity %u, byte %u is %02x\n", n, i, bytes[3 + n][i]);
	assert_memory_equal(bytes[3], documented, sizeof(documented));
	parity_destroy(&parity);
}

/* A run of pages with their parity, and what it was. */
struct run {
	struct parity parity;
	uint32_t pages, all;
	uint8_t *bytes, *before, *scratch;
	bool *lost;
};

static void run_make(struct run *run, uint32_t pages, uint32_t losses)
{
	const struct parity_shape shape = parity_shape(512, HEAD, 16, losses);
	uint64_t random = pages;

	*run = (struct run){ .pages = pages, .all = pages + parity_run_more(&shape, pages) };
	run->bytes = malloc((size_t)run->all * 512);
	run->before = malloc((size_t)run->all * 512);
	run->scratch = malloc(parity_scratch_bytes(&shape));
	run->lost = calloc(run->all, sizeof(*run->lost));
	assert_true(run->bytes && run->before && run->scratch && run->lost);
	assert_int_equal(parity_create(&run->parity, &shape), 0);
	for (uint32_t n = 0; n < pages * 512; n++)
		run->bytes[n] = (uint8_t)hash_mix(random++);
	parity_run_encode(&run->parity, run->bytes, pages);
	memcpy(run->before, run->bytes, (size_t)run->all * 512);
}

static void run_free(struct run *run)
{
	parity_destroy(&run->parity);
	free(run->bytes);
	free(run->before);
	free(run->scratch);
	free(run->lost);
}

/* Loses these pages, and makes them again, or can't. */
static void run_lose(struct run *run, const uint32_t *pages, uint32_t count, int result)
{
	for (uint32_t n = 0; n < count; n++) {
		memset(run->bytes + (size_t)pages[n] * 512, 0xA5, 512);
		run->lost[pages[n]] = true;
	}
	assert_int_equal(
		parity_run_restore(&run->parity, run->bytes, run->pages, run->lost, run->scratch),
		result);
	if (!result)
		assert_memory_equal(run->bytes, run->before, (size_t)run->pages * 512);
	memset(run->lost, 0, run->all * sizeof(*run->lost));
	memcpy(run->bytes, run->before, (size_t)run->all * 512);
}

static void test_each_page_of_a_run_can_be_lost_and_not_two_of_a_group(void **state)
{
	(void)state;
	for (uint32_t pages = 1; pages <= 50; pages++) {
		struct run run;

		run_make(&run, pages, 1);
		for (uint32_t lost = 0; lost < run.all; lost++)
			run_lose(&run, &lost, 1, 0);
		for (uint32_t first = 0; first < pages; first += 16) {
			/* One of the group, and its parity. */
			const uint32_t two[2] = { first, pages + first / 16 };

			run_lose(&run, two, 2, -EBADMSG);
		}
		run_free(&run);
	}
}

/* Also where there are fewer pages than parities. */
static void test_any_three_pages_of_a_group_of_a_run_can_be_lost(void **state)
{
	uint32_t lost[3];

	(void)state;
	for (uint32_t pages = 1; pages <= 16; pages += 5) {
		struct run run;

		run_make(&run, pages, 3);
		for (lost[0] = 0; lost[0] < run.all; lost[0]++)
			for (lost[1] = lost[0]; lost[1] < run.all; lost[1]++)
				for (lost[2] = lost[1]; lost[2] < run.all; lost[2]++)
					run_lose(&run, lost, 3, 0);
		run_free(&run);
	}
}

static void test_a_run_without_parity_gives_nothing_back(void **state)
{
	const uint32_t lost = 2;
	struct run run;

	(void)state;
	run_make(&run, 5, 0);
	assert_int_equal(run.all, 5);
	run_lose(&run, &lost, 0, 0);
	run_lose(&run, &lost, 1, -EBADMSG);
	run_free(&run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shares_have_the_documented_bytes),
		cmocka_unit_test(test_the_shape_is_what_the_documents_say),
		cmocka_unit_test(test_each_page_of_a_group_can_be_lost),
		cmocka_unit_test(test_every_two_pages_of_a_group_can_be_lost),
		cmocka_unit_test(test_any_pages_can_be_lost_as_many_as_there_are_parities),
		cmocka_unit_test(test_more_losses_than_parities_are_refused_and_nothing_is_touched),
		cmocka_unit_test(test_a_run_s_parity_has_the_documented_bytes),
		cmocka_unit_test(test_each_page_of_a_run_can_be_lost_and_not_two_of_a_group),
		cmocka_unit_test(test_any_three_pages_of_a_group_of_a_run_can_be_lost),
		cmocka_unit_test(test_a_run_without_parity_gives_nothing_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
