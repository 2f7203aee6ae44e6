/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Commands of a load: which, where, as OSD or disk, and whether they brought what was written. */
#include <endian.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "bench/load_private.h"
#include "common/bytes.h"
#include "wire/standard.h"

#define PARTITION    UINT64_C(0x10000)
#define FIRST_OBJECT UINT64_C(0x10000)

enum {
	TEST_UNIT_READY = 0x00,
	SYNCHRONIZE_CACHE_10 = 0x35,
	READ_16 = 0x88,
	WRITE_16 = 0x8A,
	DISK_BLOCK_BYTES = 512,
	/* How often a fresh session is asked until nothing is left to be told. */
	UNIT_ATTENTIONS_MAX = 8,
	TIMEOUT_MS = 120000,
};

uint64_t load_stamp(uint64_t place)
{
	return random_mix(place + RANDOM_STEP);
}

/* Where in bytes at a place the first page begins. */
static uint32_t first_page(uint64_t place)
{
	return (uint32_t)(align_up(place, LOAD_PAGE_BYTES) - place);
}

static void write_stamps(uint8_t *data, uint64_t place, uint32_t bytes)
{
	for (uint32_t at = first_page(place); at < bytes; at += LOAD_PAGE_BYTES)
		put_be64(data + at, load_stamp(place + at));
}

/* False: some page is not the one that was written there. */
static bool stamps_right(const uint8_t *data, uint64_t place, uint32_t bytes)
{
	for (uint32_t at = first_page(place); at < bytes; at += LOAD_PAGE_BYTES)
		if (get_be64(data + at) != load_stamp(place + at))
			return false;
	return true;
}

/* ---- ends of commands ---- */

static void judge(struct load_slot *slot, int result, size_t received, const char *what)
{
	const struct load_stream *stream = slot->session->stream;

	if (result == 0 && slot->reads && received != stream->block_bytes) {
		result = -EPROTO;
		what = "a READ brought less than was asked for";
	} else if (result == 0 && slot->reads && stream->verify &&
		   !stamps_right(slot->buffer, slot->place, stream->block_bytes)) {
		result = -EIO;
		what = "a READ brought other data than was written";
	}
	load_done(slot, result, what);
}

static void osd_done(struct osd_request *request)
{
	judge(request->context, request->error.result, request->received,
	      request->error.sentence.text);
}

static struct load_slot *slot_of(struct session_task *task)
{
	return (struct load_slot *)((uint8_t *)task - offsetof(struct load_slot, task));
}

static int submit_disk(struct load_slot *slot, bool flush);

/* In its place the disk has told that space gets scarce: it wants to have it again. */
static bool is_warning(const struct session_task *task)
{
	const uint8_t *sense = task->sense;

	return task->result == 0 && task->status && task->sense_length >= 14 &&
	       (sense[2] & 0x0F) == SENSE_UNIT_ATTENTION &&
	       get_be16(sense + 12) == SENSE_THIN_PROVISIONING_SOFT_THRESHOLD_REACHED;
}

static void disk_done(struct session_task *task)
{
	struct load_slot *slot = slot_of(task);
	int result = task->result < 0 ? task->result : task->status ? -EIO : 0;

	if (is_warning(task) && submit_disk(slot, !slot->reads && !slot->writes) == 0)
		return;
	judge(slot, result, task->in_received, "the disk refused a command");
}

/* ---- begins ---- */

static int submit_osd(struct load_slot *slot, bool flush)
{
	const struct load_stream *stream = slot->session->stream;
	struct osd_request *request = &slot->request;
	struct osd_client_address address = { 0 };

	*request = (struct osd_request){ .done = osd_done, .context = slot };
	if (flush) {
		request->cdb.action = OSD_FLUSH_OSD;
		request->cdb.flush_scope = OSD_FLUSH_RECURSIVE;
	} else {
		address.partition = PARTITION;
		address.object = FIRST_OBJECT + slot->place / stream->unit.object_bytes;
		request->cdb.action = slot->writes ? OSD_WRITE : OSD_READ;
		request->cdb.address = slot->place % stream->unit.object_bytes;
	}
	if (slot->writes) {
		request->data = slot->buffer;
		request->data_length = stream->block_bytes;
	} else if (slot->reads) {
		request->buffer = slot->buffer;
		request->buffer_length = stream->block_bytes;
	}
	osd_request_address(request, address);
	return osd_client_submit(slot->session->client, request);
}

static int submit_disk(struct load_slot *slot, bool flush)
{
	const struct load_stream *stream = slot->session->stream;
	const struct iovec data = { slot->buffer, stream->block_bytes };
	struct session_task *task = &slot->task;

	memset(task, 0, sizeof(*task));
	task->done = disk_done;
	task->cdb_length = 16;
	task->cdb[0] = slot->writes ? WRITE_16 : READ_16;
	put_be64(task->cdb + 2, slot->place / DISK_BLOCK_BYTES);
	put_be32(task->cdb + 10, stream->block_bytes / DISK_BLOCK_BYTES);
	if (flush) {
		memset(task->cdb, 0, sizeof(task->cdb));
		task->cdb[0] = SYNCHRONIZE_CACHE_10;
		task->cdb_length = 10;
	} else if (slot->writes) {
		task->out[0] = data;
		task->out_count = 1;
	} else {
		task->in[0] = data;
		task->in_count = 1;
	}
	return osd_client_submit_scsi(slot->session->client, task);
}

static int submit(struct load_slot *slot, bool flush, struct error_text *error)
{
	int result;

	slot->session->in_flight++;
	result = slot->session->stream->unit.osd ? submit_osd(slot, flush)
						 : submit_disk(slot, flush);
	if (result == 0)
		return 0;
	slot->session->in_flight--;
	slot->next_free = slot->session->free;
	slot->session->free = slot;
	if (osd_client_failed(slot->session->client, error) == 0)
		error_set(error, result, "a command can't be sent: %s", strerror(-result));
	return result;
}

static uint64_t choose_place(struct load_session *session)
{
	const struct load_stream *stream = session->stream;
	uint64_t blocks = (stream->unit.span_bytes - stream->shift_bytes) / stream->block_bytes;
	uint64_t place;

	if (stream->random)
		return random_below(&session->random, blocks) * stream->block_bytes +
		       stream->shift_bytes;
	place = session->next_place;
	session->next_place += stream->block_bytes;
	if (session->next_place + stream->block_bytes > stream->unit.span_bytes)
		session->next_place = 0;
	return place;
}

static struct load_slot *take_slot(struct load_session *session)
{
	struct load_slot *slot = session->free;

	session->free = slot->next_free;
	return slot;
}

int load_submit(struct load_session *session, uint64_t begun_ns, struct error_text *error)
{
	struct load_stream *stream = session->stream;
	bool flush = stream->operation == LOAD_FLUSH;
	struct load_slot *slot = take_slot(session);

	slot->begun_ns = begun_ns;
	slot->writes = stream->operation == LOAD_WRITE ||
		       (stream->operation == LOAD_MIXED && random_next(&session->random) & 1);
	slot->reads = !slot->writes && !flush;
	slot->place = flush ? 0 : choose_place(session);
	if (slot->writes)
		write_stamps(slot->buffer, slot->place, stream->block_bytes);
	return submit(slot, flush, error);
}

int load_flush(struct load_session *session, struct error_text *error)
{
	struct load_slot *slot = take_slot(session);
	int result;

	slot->writes = false;
	slot->reads = false;
	slot->place = 0;
	result = submit(slot, true, error);
	while (result == 0 && session->in_flight > 0)
		result = osd_client_step(session->client, -1);
	return result;
}

/* ---- sessions ---- */

static void note_done(struct session_task *task)
{
	task->cdb_length = 0;
}

/* A fresh session is told first what has happened to the unit. An OSD's client looks after that. */
static int take_attentions(struct load_session *session, struct error_text *error)
{
	struct session_task task;
	int result = 0;

	for (unsigned i = 0; i < UNIT_ATTENTIONS_MAX; i++) {
		task = (struct session_task){ .cdb = { TEST_UNIT_READY },
					      .cdb_length = 6,
					      .done = note_done };
		result = osd_client_submit_scsi(session->client, &task);
		while (result == 0 && task.cdb_length)
			result = osd_client_step(session->client, -1);
		if (result == 0)
			result = task.result;
		if (result < 0 || task.status == 0)
			break;
	}
	if (result == 0 && task.status != 0)
		result = -EBUSY;
	return result < 0 ? error_set(error, result, "%s is not ready", session->stream->unit.url)
			  : 0;
}

static int make_slots(struct load_session *session)
{
	const struct load_stream *stream = session->stream;
	size_t bytes = align_up(stream->block_bytes ? stream->block_bytes : 1, LOAD_PAGE_BYTES);
	uint64_t *words;

	session->slots = calloc(stream->depth, sizeof(*session->slots));
	session->memory = aligned_alloc(LOAD_PAGE_BYTES, bytes * stream->depth);
	if (!session->slots || !session->memory)
		return -ENOMEM;
	words = (uint64_t *)session->memory;
	for (size_t i = 0; i < bytes * stream->depth / sizeof(*words); i++)
		words[i] = random_next(&session->random);
	for (uint32_t i = 0; i < stream->depth; i++) {
		struct load_slot *slot = &session->slots[i];

		slot->session = session;
		slot->buffer = session->memory + i * bytes;
		slot->next_free = session->free;
		session->free = slot;
	}
	return 0;
}

int load_session_open(struct load_session *session, uint64_t seed, struct error_text *error)
{
	const struct load_stream *stream = session->stream;
	const struct osd_client_options options = {
		.queue_depth = stream->depth,
		.timeout_ms = TIMEOUT_MS,
		.any_device_type = !stream->unit.osd,
	};
	uint64_t blocks = stream->block_bytes ? stream->unit.span_bytes / stream->block_bytes : 0;
	int result;

	session->random = random_stream(seed, session->number);
	session->next_place = blocks * session->number / stream->sessions * stream->block_bytes;
	if (make_slots(session) < 0)
		return error_set(error, -ENOMEM, "out of memory");
	result = osd_client_connect(stream->unit.url, &options, &session->client, error);
	if (result == 0 && !stream->unit.osd)
		result = take_attentions(session, error);
	return result;
}

void load_session_close(struct load_session *session)
{
	osd_client_disconnect(session->client);
	free(session->slots);
	free(session->memory);
}

/* ---- a fresh OSD ---- */

int load_make_objects(const struct load_unit *unit, struct error_text *error)
{
	const struct osd_client_options options = { .timeout_ms = TIMEOUT_MS };
	uint64_t count = (unit->span_bytes + unit->object_bytes - 1) / unit->object_bytes;
	struct osd_client_error failure;
	struct osd_client *client;
	int result = osd_client_connect(unit->url, &options, &client, error);

	if (result < 0)
		return result;
	result = osd_client_create_partition(client, PARTITION, 0, NULL, &failure);
	for (uint64_t i = 0; i < count && result == 0; i++)
		result = osd_client_create(client, PARTITION, FIRST_OBJECT + i, 1, NULL, NULL,
					   &failure);
	if (result < 0)
		*error = failure.sentence;
	osd_client_disconnect(client);
	return result;
}
