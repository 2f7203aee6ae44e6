/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Objects of many pages: writing, checking, going back. */
#include "tests/engine/history/object_pages.h"

void write_object(struct fixture *f, struct engine_address address, uint32_t first, uint32_t end,
		  uint8_t round)
{
	uint8_t page[PAGE];

	begin(f, ENGINE_WRITE);
	for (uint32_t at = first; at < end; at++) {
		memset(page, round, sizeof(page));
		put_le32(page, at);
		assert_int_equal(engine_write(f->txn, address, (uint64_t)at * PAGE, page, PAGE), 0);
	}
	commit(f);
}

void write_pages(struct fixture *f, uint64_t partition, uint32_t first, uint32_t end, uint8_t round)
{
	write_object(f, address_of(partition, OBJECT), first, end, round);
}

void write_all(struct fixture *f, uint8_t round)
{
	write_pages(f, PARTITION, 0, PAGES, round);
}

void check_pages(struct fixture *f, struct engine_address address, uint32_t first, uint32_t end,
		 uint8_t round)
{
	uint8_t page[PAGE];
	uint64_t got;

	begin(f, ENGINE_READ);
	for (uint32_t at = first; at < end; at++) {
		assert_int_equal(
			engine_read(f->txn, address, (uint64_t)at * PAGE, page, PAGE, &got), 0);
		assert_int_equal(got, PAGE);
		assert_int_equal(get_le32(page), at);
		assert_int_equal(page[PAGE - 1], round);
	}
	commit(f);
}

void check_all(struct fixture *f, uint8_t round)
{
	check_pages(f, address_of(PARTITION, OBJECT), 0, PAGES, round);
}

void undo(struct fixture *f, uint64_t partition, uint32_t modifications)
{
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_undo(f->txn, partition, OBJECT, modifications), 0);
	commit(f);
}

void undo_without_data(struct fixture *f, uint64_t partition, uint32_t modifications)
{
	uint64_t before = put_so_far(f);

	undo(f, partition, modifications);
	assert_in_range(put_so_far(f) - before, 1, RECORDS_PUT_MAX);
}

int object_go_back(struct fixture *f, uint64_t partition, uint64_t ms)
{
	begin(f, ENGINE_WRITE);
	return end(f, engine_rollback_object(f->txn, partition, OBJECT, at_time(ms)));
}

void push(struct fixture *f)
{
	for (uint8_t round = 0; round < 3; round++)
		write_pages(f, OTHERS, 0, PAGES, round);
}

void roll_back_to_time(struct fixture *f, uint64_t partition, uint64_t ms)
{
	roll_back(f, partition, at_time(ms));
	f->now += 2 * SECOND;
}
