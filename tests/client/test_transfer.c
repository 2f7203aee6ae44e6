/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Long transfers, several pieces in flight, against an OSD in memory. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_long_transfers_arrive_as_they_left),
		cmocka_unit_test(test_errors_end_a_transfer_with_nothing_left_in_flight),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
