/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Long transfers, several pieces in flight, and past holes: against an OSD in memory, the target
 * itself, and one that lies.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/transfer.h"
#include "common/bytes.h"
#include "tests/client/local_target.h"
#include "tests/client/memory_osd.h"

#define PARTITION 0x10000
#define OBJECT    0x10005

static const struct osd_client_address ADDRESS = { PARTITION, OBJECT, 0 };

struct stream {
	uint8_t *data;
	size_t length, at;
	int fails_at; /* piece number; 0 = never */
};

static ssize_t next_piece(void *context, void *data, size_t capacity, uint64_t *offset)
{
	struct stream *stream = context;
	size_t take = min_u64(capacity, stream->length - stream->at);

	if (stream->fails_at && --stream->fails_at == 0)
		return -EBADF;
	memcpy(data, stream->data + stream->at, take);
	*offset = stream->at;
	stream->at += take;
	return (ssize_t)take;
}

static int take_piece(void *context, const void *data, size_t length)
{
	struct stream *stream = context;

	if (stream->fails_at && --stream->fails_at == 0)
		return -EBADF;
	assert_true(length <= stream->length - stream->at);
	memcpy(stream->data + stream->at, data, length);
	stream->at += length;
	return 0;
}

static void test_long_transfers_arrive_as_they_left(void **state)
{
	const struct transfer_options options = { .chunk_bytes = 50001 };
	struct memory_osd osd = { 0 };
	struct osd_client *client;
	struct loopback *loopback = loopback_start(memory_osd_execute, &osd, OSD_2, &client);
	struct stream up = { .length = 2000000 }, down = { .length = 2000000 };
	struct osd_client_error error;
	uint64_t moved;

	(void)state;
	up.data = malloc(up.length);
	down.data = calloc(1, down.length);
	for (size_t i = 0; i < up.length; i++)
		up.data[i] = (uint8_t)rand();
	assert_int_equal(osd_client_create_partition(client, PARTITION, -1, NULL, NULL), 0);
	assert_int_equal(osd_client_create(client, PARTITION, OBJECT, 1, NULL, NULL, NULL), 0);
	assert_int_equal(
		transfer_upload(client, ADDRESS, next_piece, &up, &options, &moved, &error), 0);
	assert_int_equal(moved, up.length);
	assert_int_equal(memory_osd_find(&osd, PARTITION, OBJECT)->length, up.length);
	assert_int_equal(transfer_download(client, ADDRESS, 0, up.length, take_piece, &down,
					   &options, &moved, &error),
			 0);
	assert_int_equal(moved, up.length);
	assert_memory_equal(up.data, down.data, up.length);
	/* A range, and one that goes on behind the end. */
	down.at = 0;
	assert_int_equal(transfer_download(client, ADDRESS, 777, 123456, take_piece, &down,
					   &options, &moved, &error),
			 0);
	assert_int_equal(moved, 123456);
	assert_memory_equal(up.data + 777, down.data, 123456);
	down.at = 0;
	assert_int_equal(transfer_download(client, ADDRESS, 1900000, UINT64_MAX / 2, take_piece,
					   &down, &options, &moved, &error),
			 0);
	assert_int_equal(moved, 100000);
	assert_memory_equal(up.data + 1900000, down.data, 100000);
	loopback_stop(loopback, client);
	memory_osd_free(&osd);
	free(up.data);
	free(down.data);
}

static void test_errors_end_a_transfer_with_nothing_left_in_flight(void **state)
{
	const struct transfer_options options = { .chunk_bytes = 1000 };
	struct memory_osd osd = { 0 };
	struct osd_client *client;
	struct loopback *loopback = loopback_start(memory_osd_execute, &osd, OSD_2, &client);
	uint8_t data[100000] = { 1 };
	struct stream stream = { .data = data, .length = sizeof(data) };
	struct osd_client_error error;
	uint64_t moved;

	(void)state;
	assert_int_equal(
		transfer_upload(client, ADDRESS, next_piece, &stream, &options, &moved, &error),
		-ENOENT);
	assert_int_equal(moved, 0);
	assert_false(error.local);
	assert_int_equal(osd_client_outstanding(client), 0);
	assert_int_equal(osd_client_create_partition(client, PARTITION, -1, NULL, NULL), 0);
	assert_int_equal(osd_client_create(client, PARTITION, OBJECT, 1, NULL, NULL, NULL), 0);
	stream.at = 0;
	stream.fails_at = 40;
	assert_int_equal(
		transfer_upload(client, ADDRESS, next_piece, &stream, &options, &moved, &error),
		-EBADF);
	assert_true(error.local);
	assert_int_equal(moved, 39000);
	assert_int_equal(osd_client_outstanding(client), 0);
	stream.at = 0;
	stream.fails_at = 10;
	assert_int_equal(transfer_download(client, ADDRESS, 0, 39000, take_piece, &stream, &options,
					   &moved, &error),
			 -EBADF);
	assert_int_equal(osd_client_outstanding(client), 0);
	osd.dies_at = osd.commands + 20;
	stream.at = 0;
	stream.fails_at = 0;
	assert_int_equal(
		transfer_upload(client, ADDRESS, next_piece, &stream, &options, &moved, &error),
		-ECONNRESET);
	assert_true(error.sentence.text[0] != '\0');
	loopback_stop(loopback, client);
	memory_osd_free(&osd);
}

/* ---- past holes ---- */

#define TEBIBYTE (UINT64_C(1) << 40)

/*
 * What came of an object: bytes of data, of which those that are not zero are summed up with their
 * places, and zeros.
 */
struct received {
	uint64_t at, data, zeros, sum;
	bool fails;
};

static int take_data(void *context, const void *data, size_t length)
{
	struct received *received = context;
	const uint8_t *bytes = data;

	for (size_t i = 0; i < length; i++)
		received->sum += bytes[i] * (received->at + i + 1);
	received->at += length;
	received->data += length;
	return 0;
}

static int take_zeros(void *context, uint64_t length)
{
	struct received *received = context;

	received->at += length;
	received->zeros += length;
	return received->fails ? -EBADF : 0;
}

static uint64_t sum_of(uint64_t at, uint8_t byte, uint64_t count)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < count; i++)
		sum += byte * (at + i + 1);
	return sum;
}

static void write_bytes(struct osd_client *client, uint64_t at, uint8_t byte, size_t count)
{
	uint8_t *data = malloc(count);

	memset(data, byte, count);
	assert_int_equal(osd_client_write(client, ADDRESS, at, data, count, NULL), 0);
	free(data);
}

static uint64_t counted;

static void count_progress(void *context, uint64_t bytes)
{
	(void)context;
	counted += bytes;
}

static void test_what_holds_no_data_does_not_cross_the_network(void **state)
{
	const struct transfer_options options = { .chunk_bytes = 65536,
						  .progress = count_progress };
	const uint64_t middle = TEBIBYTE / 2 + 777;
	struct received received = { 0 };
	struct osd_client_error error;
	struct local_target target;
	uint64_t moved;

	(void)state;
	local_target_serve(&target, 64 << 20);
	assert_int_equal(osd_client_create_partition(target.client, PARTITION, -1, NULL, NULL), 0);
	assert_int_equal(osd_client_create(target.client, PARTITION, OBJECT, 1, NULL, NULL, NULL),
			 0);
	write_bytes(target.client, 0, 'a', 100000);
	write_bytes(target.client, middle, 'b', 300000);
	write_bytes(target.client, middle + 330000, 'c', 10);
	assert_int_equal(osd_client_truncate(target.client, ADDRESS, TEBIBYTE, NULL), 0);

	counted = 0;
	assert_int_equal(transfer_download_sparse(target.client, ADDRESS, 0, TEBIBYTE, take_data,
						  take_zeros, &received, &options, &moved, &error),
			 0);
	assert_int_equal(moved, TEBIBYTE);
	assert_int_equal(counted, TEBIBYTE);
	assert_int_equal(received.data + received.zeros, TEBIBYTE);
	assert_in_range(received.data, 400010, 500000);
	assert_int_equal(received.sum, sum_of(0, 'a', 100000) + sum_of(middle, 'b', 300000) +
					       sum_of(middle + 330000, 'c', 10));
	/* A range that begins in data and ends in it, or behind the object. */
	received = (struct received){ .at = 50000 };
	assert_int_equal(transfer_download_sparse(target.client, ADDRESS, 50000, middle + 5 - 50000,
						  take_data, take_zeros, &received, &options,
						  &moved, &error),
			 0);
	assert_int_equal(moved, middle + 5 - 50000);
	assert_int_equal(received.sum, sum_of(50000, 'a', 50000) + sum_of(middle, 'b', 5));
	/* Errors of the caller end it. */
	received = (struct received){ .fails = true };
	assert_int_equal(transfer_download_sparse(target.client, ADDRESS, 0, TEBIBYTE, take_data,
						  take_zeros, &received, &options, &moved, &error),
			 -EBADF);
	assert_true(error.local && error.sentence.text[0] == '\0');
	assert_int_equal(osd_client_outstanding(target.client), 0);
	local_target_close(&target);
}

/* It knows no maps. */
static void test_where_holes_are_not_told_everything_is_read(void **state)
{
	const struct transfer_options options = { .chunk_bytes = 1 << 20 };
	const uint64_t length = 20 << 20;
	struct memory_osd osd = { 0 };
	struct osd_client *client;
	struct loopback *loopback = loopback_start(memory_osd_execute, &osd, OSD_2, &client);
	struct received received = { 0 };
	struct osd_client_error error;
	uint64_t moved;

	(void)state;
	assert_int_equal(osd_client_create_partition(client, PARTITION, -1, NULL, NULL), 0);
	assert_int_equal(osd_client_create(client, PARTITION, OBJECT, 1, NULL, NULL, NULL), 0);
	write_bytes(client, length - 10, 'z', 10);
	assert_int_equal(transfer_download_sparse(client, ADDRESS, 0, length, take_data, take_zeros,
						  &received, &options, &moved, &error),
			 0);
	assert_int_equal(moved, length);
	assert_int_equal(received.data, length);
	assert_int_equal(received.sum, sum_of(length - 10, 'z', 10));
	loopback_stop(loopback, client);
	memory_osd_free(&osd);
}

/* Answers READ MAP with these entries, says that there were so many, and READ with "x". */
struct liar {
	struct osd_map_entry entries[4];
	size_t count;
	uint64_t length;
	size_t bytes;
};

static void lie(void *context, struct loopback_command *command)
{
	const struct liar *liar = context;

	if (get_be16(command->cdb + 8) == OSD_READ) {
		memset(command->in, 'x', command->in_capacity);
		command->in_length = command->in_capacity;
		return;
	}
	put_be64(command->in, liar->length);
	for (size_t i = 0; i < liar->count; i++)
		osd_map_entry_encode(&liar->entries[i],
				     command->in + OSD_MAP_HEAD_BYTES + i * OSD_MAP_ENTRY_BYTES);
	command->in_length = liar->bytes;
}

static void test_maps_that_make_no_sense_lead_to_an_end(void **state)
{
	const struct liar liars[] = {
		{ .bytes = 3 },
		{ .bytes = 8, .length = UINT64_MAX },
		{ { { OSD_MAP_DATA, 100, UINT64_MAX - 50 } }, 1, 16, 24 },
		{ { { OSD_MAP_DATA, 100, 50000000 }, { OSD_MAP_DATA, 100, 10 } }, 2, 32, 40 },
		{ { { OSD_MAP_DATA, 0, 10 }, { OSD_MAP_DATA, 0, 10 } }, 2, 1000, 40 },
		{ { { OSD_MAP_DATA, UINT32_MAX, 0 } }, 1, 16, 24 },
	};
	const struct transfer_options options = { .chunk_bytes = 1 << 20 };
	const uint64_t length = 30 << 20;

	(void)state;
	for (size_t i = 0; i < sizeof(liars) / sizeof(liars[0]); i++) {
		struct osd_client *client;
		struct liar liar = liars[i];
		struct loopback *loopback = loopback_start(lie, &liar, OSD_2, &client);
		struct received received = { 0 };
		struct osd_client_error error;
		uint64_t moved;

		assert_int_equal(transfer_download_sparse(client, ADDRESS, 0, length, take_data,
							  take_zeros, &received, &options, &moved,
							  &error),
				 0);
		assert_int_equal(moved, length);
		assert_int_equal(received.data + received.zeros, length);
		loopback_stop(loopback, client);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_long_transfers_arrive_as_they_left),
		cmocka_unit_test(test_what_holds_no_data_does_not_cross_the_network),
		cmocka_unit_test(test_where_holes_are_not_told_everything_is_read),
		cmocka_unit_test(test_maps_that_make_no_sense_lead_to_an_end),
		cmocka_unit_test(test_errors_end_a_transfer_with_nothing_left_in_flight),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
