/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The client over /dev/sgN. The driver is played by a thread: like the kernel's, it takes headers
 * by write, reads and writes the buffers of the program, and gives headers back by read, in an
 * order of its own. Behind it is an OSD in memory.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>
#include <scsi/sg.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/sg.h"
#include "common/bytes.h"
#include "tests/client/memory_osd.h"
#include "wire/envelope.h"
#include "wire/status.h"

#define P 0x10000
#define O 0x10005

enum { LETTERS_MAX = 64, HELD_MAX = 16, INQUIRY = 0x12 };

static const struct osd_client_address PARTITION = { P, 0, 0 }, OBJECT = { P, O, 0 };

struct letter {
	uint64_t tag;
	uint8_t *bytes; /* NULL: none */
	size_t length;
};

struct driver {
	int fd;
	pthread_t thread;
	struct memory_osd osd;
	struct letter letters[LETTERS_MAX];
	/* So many commands are answered together, the last one first; 0: each at once. */
	unsigned together;
	struct sg_io_hdr held[HELD_MAX];
	unsigned held_count;
	/* What the test wants. */
	void (*meddle)(struct sg_io_hdr *header, uint8_t *data, size_t length);
	bool silent;
	unsigned attentions; /* so many SENDs end with a unit attention first */
	/* What it has seen. */
	unsigned sends, fetches, plain, most_held;
	uint32_t instances[2]; /* upper halves of tags: the first, and another one */
};

/* ---- the driver's side ---- */

static size_t segments_bytes(const struct sg_io_hdr *header)
{
	const struct sg_iovec *segments = header->dxferp;
	size_t bytes = 0;

	for (unsigned i = 0; i < header->iovec_count; i++)
		bytes += segments[i].iov_len;
	return bytes;
}

static void copy(const struct sg_io_hdr *header, uint8_t *data, bool to_program)
{
	const struct sg_iovec *segments = header->dxferp;

	for (unsigned i = 0; i < header->iovec_count; i++) {
		if (to_program)
			memcpy(segments[i].iov_base, data, segments[i].iov_len);
		else
			memcpy(data, segments[i].iov_base, segments[i].iov_len);
		data += segments[i].iov_len;
	}
}

static void fail_command(struct sg_io_hdr *header, uint8_t key, uint16_t code)
{
	const struct osd_sense sense = { .key = key, .code = code };

	header->status = SCSI_STATUS_CHECK_CONDITION;
	header->sb_len_wr = (uint8_t)osd_sense_encode(&sense, header->sbp, header->mx_sb_len);
	header->resid = (int)header->dxfer_len;
}

static struct letter *find_letter(struct driver *driver, uint64_t tag)
{
	for (size_t i = 0; i < LETTERS_MAX; i++)
		if (driver->letters[i].bytes && driver->letters[i].tag == tag)
			return &driver->letters[i];
	return NULL;
}

static void note_instance(struct driver *driver, uint64_t tag)
{
	uint32_t instance = (uint32_t)(tag >> 32);

	if (!driver->instances[0])
		driver->instances[0] = instance;
	else if (driver->instances[0] != instance)
		driver->instances[1] = instance;
}

static void take_letter(struct driver *driver, struct sg_io_hdr *header, uint64_t tag)
{
	driver->sends++;
	note_instance(driver, tag);
	if (driver->attentions > 0) {
		driver->attentions--;
		fail_command(header, SENSE_UNIT_ATTENTION, 0x2900);
		return;
	}
	assert_null(find_letter(driver, tag));
	for (size_t i = 0; i < LETTERS_MAX; i++) {
		struct letter *letter = &driver->letters[i];

		if (letter->bytes)
			continue;
		*letter = (struct letter){ tag, malloc(header->dxfer_len), header->dxfer_len };
		copy(header, letter->bytes, false);
		return;
	}
	fail();
}

static void answer_letter(struct driver *driver, struct sg_io_hdr *header, uint64_t tag)
{
	struct letter *letter = find_letter(driver, tag);
	struct envelope_letter content;
	struct loopback_command command;
	struct envelope_answer answer;
	uint8_t *data = calloc(1, header->dxfer_len);
	uint16_t bad_field;

	driver->fetches++;
	assert_non_null(letter);
	assert_int_equal(
		envelope_letter_decode(letter->bytes, letter->length, &content, &bad_field), 0);
	command = (struct loopback_command){
		.cdb = content.cdb,
		.cdb_length = content.cdb_length,
		.out = letter->bytes + ENVELOPE_HEAD_BYTES,
		.out_length = content.data_length,
		.in = data + ENVELOPE_HEAD_BYTES,
		.in_capacity = header->dxfer_len - ENVELOPE_HEAD_BYTES,
	};
	memory_osd_execute(&driver->osd, &command);
	answer = (struct envelope_answer){ command.status, command.sense, command.sense_length,
					   command.in_length, content.data_length };
	envelope_answer_encode(&answer, data);
	header->resid = (int)(command.in_capacity - command.in_length);
	if (driver->meddle)
		driver->meddle(header, data, header->dxfer_len);
	copy(header, data, true);
	free(letter->bytes);
	letter->bytes = NULL;
	free(data);
}

static void perform(struct driver *driver, struct sg_io_hdr *header)
{
	struct envelope_cdb cdb;
	uint16_t bad_field;

	header->status = 0;
	header->host_status = 0;
	header->resid = 0;
	header->sb_len_wr = 0;
	assert_int_equal(header->interface_id, 'S');
	assert_int_equal(segments_bytes(header), header->dxfer_len);
	if (header->cmdp[0] == INQUIRY) {
		static uint8_t inquiry[96] = { 0x11, 0, 5, 2, 91, 0, 0, 2, 'M', 'U', 'N', 'I' };

		driver->plain++;
		assert_int_equal(header->cmd_len, 6);
		assert_in_range(header->dxfer_len, 36, sizeof(inquiry));
		copy(header, inquiry, true);
		return;
	}
	assert_int_equal(header->cmd_len, ENVELOPE_CDB_BYTES);
	assert_int_equal(envelope_cdb_decode(header->cmdp, ENVELOPE_CDB_BYTES, &cdb, &bad_field),
			 0);
	assert_int_equal(cdb.length, header->dxfer_len);
	assert_int_equal(header->dxfer_direction,
			 cdb.operation == ENVELOPE_SEND ? SG_DXFER_TO_DEV : SG_DXFER_FROM_DEV);
	if (cdb.operation == ENVELOPE_SEND)
		take_letter(driver, header, cdb.tag);
	else
		answer_letter(driver, header, cdb.tag);
}

static void give_back(struct driver *driver)
{
	if (driver->held_count > driver->most_held)
		driver->most_held = driver->held_count;
	while (driver->held_count > 0) {
		const struct sg_io_hdr *header = &driver->held[--driver->held_count];

		/* The program may have gone. */
		if (send(driver->fd, header, sizeof(*header), MSG_NOSIGNAL) < 0)
			return;
	}
}

static void *serve(void *context)
{
	struct driver *driver = context;
	struct sg_io_hdr header;

	while (recv(driver->fd, &header, sizeof(header), 0) == (ssize_t)sizeof(header)) {
		if (driver->silent)
			continue;
		perform(driver, &header);
		driver->held[driver->held_count++] = header;
		if (driver->held_count >= driver->together)
			give_back(driver);
	}
	return NULL;
}

static struct driver driver;

static void start(uint32_t timeout_ms, struct osd_client **client)
{
	const struct session_options options = { .queue_depth = 32, .timeout_ms = timeout_ms };
	struct session *session;
	int fds[2], small = 1;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
	/* So the driver has room for a few commands only, and the client has to try again. */
	assert_int_equal(setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
	driver.fd = fds[1];
	assert_int_equal(pthread_create(&driver.thread, NULL, serve, &driver), 0);
	assert_int_equal(sg_session_create(fds[0], &options, &session, NULL), 0);
	assert_int_equal(osd_client_on_session(session, OSD_2, client), 0);
}

static void stop(struct osd_client *client)
{
	osd_client_disconnect(client);
	shutdown(driver.fd, SHUT_RDWR);
	pthread_join(driver.thread, NULL);
	close(driver.fd);
	for (size_t i = 0; i < LETTERS_MAX; i++)
		free(driver.letters[i].bytes);
	memory_osd_free(&driver.osd);
}

static int set_up(void **state)
{
	(void)state;
	driver = (struct driver){ .fd = -1 };
	return 0;
}

/* ---- what works ---- */

static int note_id(void *context, uint64_t id)
{
	*(uint64_t *)context = id;
	return 0;
}

static void make_object(struct osd_client *client)
{
	assert_int_equal(osd_client_create_partition(client, P, -1, NULL, NULL), 0);
	assert_int_equal(osd_client_create(client, P, O, 1, NULL, NULL, NULL), 0);
}

static void test_an_object_is_written_and_read(void **state)
{
	enum { BYTES = 1 << 20 };
	uint8_t *data = malloc(BYTES), *back = calloc(1, BYTES);
	struct osd_inquiry_data inquiry;
	struct osd_client *client;
	uint64_t found = 0;
	size_t got;

	(void)state;
	for (size_t i = 0; i < BYTES; i++)
		data[i] = (uint8_t)(i * 7 >> 3);
	start(20000, &client);
	assert_int_equal(osd_client_inquiry(client, &inquiry, NULL), 0);
	assert_int_equal(inquiry.device_type, OSD_PERIPHERAL_DEVICE_TYPE);
	assert_int_equal(driver.plain, 1);
	make_object(client);
	assert_int_equal(osd_client_write(client, OBJECT, 0, data, BYTES, NULL), 0);
	assert_int_equal(osd_client_read(client, OBJECT, 0, back, BYTES, &got, NULL), 0);
	assert_int_equal(got, BYTES);
	assert_memory_equal(data, back, BYTES);
	assert_int_equal(osd_client_list(client, PARTITION, 0, note_id, &found, NULL), 0);
	assert_int_equal(found, O);
	/* Each command is one SEND and one FETCH, and all are of this program. */
	assert_int_equal(driver.sends, driver.fetches);
	assert_int_not_equal(driver.instances[0], 0);
	assert_int_equal(driver.instances[1], 0);
	stop(client);
	free(data);
	free(back);
}

static void test_the_command_inside_fails_as_over_iscsi(void **state)
{
	struct osd_client_error error;
	struct osd_client *client;

	(void)state;
	start(20000, &client);
	make_object(client);
	assert_int_equal(osd_client_create(client, P, O, 1, NULL, NULL, &error), -EEXIST);
	assert_true(error.has_sense);
	assert_int_equal(error.sense.code, SENSE_INVALID_FIELD_IN_CDB);
	assert_int_equal(osd_client_failed(client, NULL), 0);
	stop(client);
}

static unsigned ended;

static void count_end(struct osd_request *request)
{
	assert_int_equal(request->error.result, 0);
	ended++;
}

static void test_many_commands_end_in_any_order(void **state)
{
	enum { COMMANDS = 48 };
	static struct osd_request requests[COMMANDS];
	static uint8_t data[COMMANDS][512], back[512];
	struct osd_client *client;
	size_t got;

	(void)state;
	start(20000, &client);
	make_object(client);
	driver.together = SG_QUEUE_DEPTH_MAX;
	ended = 0;
	for (unsigned i = 0; i < COMMANDS; i++) {
		memset(data[i], (int)i + 1, sizeof(data[i]));
		requests[i] =
			(struct osd_request){ .cdb = { .action = OSD_WRITE, .address = i * 512 },
					      .data = data[i],
					      .data_length = sizeof(data[i]),
					      .done = count_end };
		osd_request_address(&requests[i], OBJECT);
		assert_int_equal(osd_client_submit(client, &requests[i]), 0);
	}
	assert_int_equal(osd_client_drain(client), 0);
	assert_int_equal(ended, COMMANDS);
	assert_int_equal(driver.most_held, SG_QUEUE_DEPTH_MAX);
	driver.together = 0;
	for (unsigned i = 0; i < COMMANDS; i++) {
		assert_int_equal(osd_client_read(client, OBJECT, i * 512, back, 512, &got, NULL),
				 0);
		assert_memory_equal(back, data[i], 512);
	}
	stop(client);
}

static void test_a_send_that_meets_a_unit_attention_is_repeated(void **state)
{
	struct osd_client *client;

	(void)state;
	start(20000, &client);
	driver.attentions = 2;
	make_object(client);
	assert_int_equal(driver.sends, driver.fetches + 2);
	stop(client);
}

/* ---- what does not ---- */

static void test_more_data_than_a_letter_takes_is_refused(void **state)
{
	uint8_t *data = calloc(1, SG_SESSION_DATA_MAX + 1);
	struct osd_client_error error;
	struct osd_client *client;
	size_t got;

	(void)state;
	start(20000, &client);
	make_object(client);
	assert_int_equal(osd_client_write(client, OBJECT, 0, data, SG_SESSION_DATA_MAX, NULL), 0);
	assert_int_equal(osd_client_write(client, OBJECT, 0, data, SG_SESSION_DATA_MAX + 1, &error),
			 -EMSGSIZE);
	assert_non_null(strstr(error.sentence.text, "--chunk"));
	assert_int_equal(
		osd_client_read(client, OBJECT, 0, data, SG_SESSION_DATA_MAX + 1, &got, &error),
		-EMSGSIZE);
	/* The session goes on. */
	assert_int_equal(osd_client_read(client, OBJECT, 0, data, 1, &got, NULL), 0);
	stop(client);
	free(data);
}

static int add_bytes(void *context, const struct osd_attribute *attribute)
{
	*(uint64_t *)context += attribute->length;
	return 0;
}

/* Over iSCSI there is space for all that an object can have; here it is less, and never a part. */
static void test_all_attributes_come_as_far_as_a_letter_takes_them(void **state)
{
	enum { LENGTH = 65528, WHOLE = 16 }; /* 17 of them with their heads are too many */
	static uint8_t value[LENGTH];
	struct osd_client_value set = { 0x10000, 0, value, LENGTH };
	struct osd_client_error error;
	struct osd_client *client;
	uint64_t bytes = 0;

	(void)state;
	start(20000, &client);
	make_object(client);
	for (set.number = 1; set.number <= WHOLE; set.number++)
		assert_int_equal(osd_client_set_attributes(client, OBJECT, &set, 1, NULL), 0);
	assert_int_equal(osd_client_get_all_attributes(client, OBJECT, add_bytes, &bytes, &error),
			 0);
	assert_int_equal(bytes, (uint64_t)WHOLE * LENGTH);
	assert_int_equal(osd_client_set_attributes(client, OBJECT, &set, 1, NULL), 0);
	assert_int_equal(osd_client_get_all_attributes(client, OBJECT, add_bytes, &bytes, &error),
			 -EOVERFLOW);
	assert_non_null(strstr(error.sentence.text, "more attributes"));
	/* So many that not even the head of the last one has room: nobody could see that it is
	 * missing. */
	set.length = LENGTH - 256 - 8;
	assert_int_equal(osd_client_set_attributes(client, OBJECT, &set, 1, NULL), 0);
	set = (struct osd_client_value){ 0x10000, WHOLE + 2, value, 1 };
	assert_int_equal(osd_client_set_attributes(client, OBJECT, &set, 1, NULL), 0);
	assert_int_equal(osd_client_get_all_attributes(client, OBJECT, add_bytes, &bytes, &error),
			 -EOVERFLOW);
	stop(client);
}

/* The session ends with this error and a sentence with these words. */
static void expect_end(void (*meddle)(struct sg_io_hdr *, uint8_t *, size_t), int result,
		       const char *words)
{
	struct error_text why = { "" };
	struct osd_client *client;

	driver = (struct driver){ .meddle = meddle };
	start(20000, &client);
	assert_int_equal(osd_client_create_partition(client, P, -1, NULL, NULL), result);
	assert_int_equal(osd_client_failed(client, &why), result);
	if (!strstr(why.text, words))
		fail_msg("'%s' does not say '%s'", why.text, words);
	stop(client);
}

static void lose_connection(struct sg_io_hdr *header, uint8_t *data, size_t length)
{
	(void)data;
	(void)length;
	header->host_status = 1; /* DID_NO_CONNECT */
}

static void break_format(struct sg_io_hdr *header, uint8_t *data, size_t length)
{
	(void)header;
	(void)length;
	data[0] = 0;
}

static void say_more_data(struct sg_io_hdr *header, uint8_t *data, size_t length)
{
	put_be32(data + 4, (uint32_t)(length - ENVELOPE_HEAD_BYTES - (size_t)header->resid) + 1);
}

static void say_more_sense(struct sg_io_hdr *header, uint8_t *data, size_t length)
{
	(void)header;
	(void)length;
	put_be16(data + 2, ENVELOPE_PLACE_BYTES + 1);
}

static void say_more_used(struct sg_io_hdr *header, uint8_t *data, size_t length)
{
	(void)header;
	(void)length;
	put_be32(data + 8, UINT32_MAX);
}

static void cut_head(struct sg_io_hdr *header, uint8_t *data, size_t length)
{
	(void)data;
	header->resid = (int)length - ENVELOPE_HEAD_BYTES + 1;
}

static void mistake_tag(struct sg_io_hdr *header, uint8_t *data, size_t length)
{
	(void)data;
	(void)length;
	header->pack_id += 1 << 16;
}

static void test_what_ends_the_session(void **state)
{
	(void)state;
	expect_end(lose_connection, -ECONNRESET, "host status 0x01");
	expect_end(break_format, -EPROTO, "answer to an envelope");
	expect_end(say_more_data, -EPROTO, "answer to an envelope");
	expect_end(say_more_sense, -EPROTO, "answer to an envelope");
	expect_end(say_more_used, -EPROTO, "answer to an envelope");
	expect_end(cut_head, -EPROTO, "answer to an envelope");
	expect_end(mistake_tag, -EPROTO, "not asked for");
}

static void refuse_fetch(struct sg_io_hdr *header, uint8_t *data, size_t length)
{
	(void)data;
	(void)length;
	fail_command(header, SENSE_ILLEGAL_REQUEST, SENSE_INVALID_FIELD_IN_CDB);
}

static void test_a_refused_fetch_is_the_outcome_of_its_command(void **state)
{
	struct osd_client_error error;
	struct osd_client *client;

	(void)state;
	start(20000, &client);
	driver.meddle = refuse_fetch;
	assert_int_not_equal(osd_client_create_partition(client, P, -1, NULL, &error), 0);
	assert_true(error.has_sense);
	assert_int_equal(error.sense.key, SENSE_ILLEGAL_REQUEST);
	assert_int_equal(osd_client_failed(client, NULL), 0);
	stop(client);
}

static void test_a_silent_driver_is_not_waited_for(void **state)
{
	struct osd_client *client;

	(void)state;
	driver.silent = true;
	start(50, &client);
	assert_int_equal(osd_client_create_partition(client, P, -1, NULL, NULL), -ETIMEDOUT);
	stop(client);
}

static void test_a_node_that_goes_away_ends_the_session(void **state)
{
	struct error_text why = { "" };
	struct osd_client *client;

	(void)state;
	start(20000, &client);
	make_object(client);
	shutdown(driver.fd, SHUT_RDWR);
	assert_int_not_equal(osd_client_remove(client, OBJECT, NULL), 0);
	assert_int_not_equal(osd_client_failed(client, &why), 0);
	stop(client);
}

/* ---- opening ---- */

static void expect_refused(const char *url, int result, const char *words)
{
	const struct osd_client_options options = { .timeout_ms = 1000 };
	struct osd_client *client;
	struct error_text error = { "" };

	assert_int_equal(osd_client_connect(url, &options, &client, &error), result);
	if (!strstr(error.text, words))
		fail_msg("'%s' does not say '%s'", error.text, words);
}

static void test_only_nodes_of_the_driver_are_opened(void **state)
{
	(void)state;
	expect_refused("sg:/dev/there-is-no-such-node", -ENOENT, "logged in");
	expect_refused("sg:/dev/null", -ENOTTY, "sg:/dev/sgN");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_an_object_is_written_and_read, set_up),
		cmocka_unit_test_setup(test_the_command_inside_fails_as_over_iscsi, set_up),
		cmocka_unit_test_setup(test_many_commands_end_in_any_order, set_up),
		cmocka_unit_test_setup(test_a_send_that_meets_a_unit_attention_is_repeated, set_up),
		cmocka_unit_test_setup(test_more_data_than_a_letter_takes_is_refused, set_up),
		cmocka_unit_test_setup(test_all_attributes_come_as_far_as_a_letter_takes_them,
				       set_up),
		cmocka_unit_test(test_what_ends_the_session),
		cmocka_unit_test_setup(test_a_refused_fetch_is_the_outcome_of_its_command, set_up),
		cmocka_unit_test_setup(test_a_silent_driver_is_not_waited_for, set_up),
		cmocka_unit_test_setup(test_a_node_that_goes_away_ends_the_session, set_up),
		cmocka_unit_test(test_only_nodes_of_the_driver_are_opened),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
