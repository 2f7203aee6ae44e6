/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Streams of `send`: what is written is read, and whatever was changed on the way is noticed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/stream.h"
#include "common/bytes.h"

static const struct stream_header header = {
	.system = "a system of the tes", .partition = 0x10000, .from = 0, .to = 77
};

static const struct stream_record records[] = {
	{ .type = STREAM_REMOVED, .object = 0x10000 },
	{ .type = STREAM_DATA,
	  .object = 0x10001,
	  .offset = 4096,
	  .length = 5,
	  .data = (const uint8_t *)"raven" },
	{ .type = STREAM_LENGTH, .object = 0x10001, .offset = 9000 },
};

#define RECORDS (sizeof(records) / sizeof(records[0]))

/* Writes all of it to a file of no name. Returns its descriptor. */
static int write_all(bool with_end)
{
	FILE *file = tmpfile();
	struct error_text error;
	struct stream stream;
	int fd;

	assert_non_null(file);
	fd = dup(fileno(file));
	fclose(file);
	assert_int_equal(stream_open(&stream, fd, "the test"), 0);
	assert_int_equal(stream_write_header(&stream, &header, &error), 0);
	for (size_t n = 0; n < RECORDS; n++)
		assert_int_equal(stream_write(&stream, &records[n], &error), 0);
	if (with_end)
		assert_int_equal(stream_write_end(&stream, &error), 0);
	stream_close(&stream);
	return fd;
}

/* Reads it to its end: 0, or the error. */
static int read_all(int fd, size_t *count)
{
	struct stream_header found;
	struct stream_record record;
	struct error_text error = { 0 };
	struct stream stream;
	int result;

	*count = 0;
	lseek(fd, 0, SEEK_SET);
	assert_int_equal(stream_open(&stream, fd, "the test"), 0);
	result = stream_read_header(&stream, &found, &error);
	if (result == 0) {
		assert_memory_equal(found.system, header.system, STREAM_SYSTEM_BYTES);
		assert_int_equal(found.partition, header.partition);
		assert_int_equal(found.to, header.to);
	}
	while (result == 0 && (result = stream_read(&stream, &record, &error)) == 1) {
		const struct stream_record *wanted = &records[*count];

		assert_true(*count < RECORDS);
		assert_int_equal(record.type, wanted->type);
		assert_int_equal(record.object, wanted->object);
		assert_int_equal(record.offset, wanted->offset);
		assert_int_equal(record.length, wanted->length);
		if (record.length)
			assert_memory_equal(record.data, wanted->data, record.length);
		++*count;
		result = 0;
	}
	if (result)
		assert_true(strlen(error.text) > 0);
	stream_close(&stream);
	return result;
}

static void test_what_is_written_is_read(void **state)
{
	int fd = write_all(true);
	size_t count;

	(void)state;
	assert_int_equal(read_all(fd, &count), 0);
	assert_int_equal(count, RECORDS);
	close(fd);
}

static void test_the_documented_example_is_the_record(void **state)
{
	static const uint8_t wanted[] = { 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0,
					  0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 };
	uint8_t bytes[56 + 32];
	int fd = write_all(true);

	(void)state;
	assert_int_equal(pread(fd, bytes, sizeof(bytes), 0), sizeof(bytes));
	assert_memory_equal(bytes, "MUNSEND\1", 8);
	assert_memory_equal(bytes + 56, wanted, sizeof(wanted));
	close(fd);
}

static void test_each_changed_bit_and_each_cut_is_noticed(void **state)
{
	int fd = write_all(true);
	off_t length = lseek(fd, 0, SEEK_END);
	size_t count;

	(void)state;
	for (off_t at = 0; at < length; at++) {
		uint8_t byte, changed;

		assert_int_equal(pread(fd, &byte, 1, at), 1);
		changed = byte ^ (uint8_t)(1 << at % 8);
		assert_int_equal(pwrite(fd, &changed, 1, at), 1);
		assert_int_equal(read_all(fd, &count), -EBADMSG);
		assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	}
	while (length-- > 0) {
		assert_int_equal(ftruncate(fd, length), 0);
		assert_int_equal(read_all(fd, &count), -EBADMSG);
	}
	close(fd);
}

static void test_without_its_trailer_it_is_torn(void **state)
{
	int fd = write_all(false);
	size_t count;

	(void)state;
	assert_int_equal(read_all(fd, &count), -EBADMSG);
	assert_int_equal(count, RECORDS);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_written_is_read),
		cmocka_unit_test(test_the_documented_example_is_the_record),
		cmocka_unit_test(test_each_changed_bit_and_each_cut_is_noticed),
		cmocka_unit_test(test_without_its_trailer_it_is_torn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
