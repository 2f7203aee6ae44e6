/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Moves long data in pieces, several of them in flight. */
#include "client/transfer.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "client/client_private.h"
#include "common/bytes.h"

/* Memory for pieces in flight, whatever their size; two are always allowed. */
#define BUFFER_BYTES (16U << 20)
#define SLOTS_MAX    64U

struct slot {
	struct osd_request request;
	uint8_t *buffer;
	bool busy;
};

struct transfer {
	struct osd_client *client;
	const struct transfer_options *options;
	struct slot *slots;
	unsigned slot_count;
	uint64_t moved;
	int result; /* the first error */
	struct osd_client_error *error;
};

static int begin(struct transfer *transfer, struct osd_client *client,
		 const struct transfer_options *options, struct osd_client_error *error)
{
	uint64_t wanted = max_u64(BUFFER_BYTES / options->chunk_bytes, 2);

	*transfer = (struct transfer){ .client = client, .options = options, .error = error };
	transfer->slot_count =
		(unsigned)min_u64(min_u64(wanted, SLOTS_MAX), osd_client_queue_depth(client));
	transfer->slots = calloc(transfer->slot_count, sizeof(*transfer->slots));
	if (!transfer->slots) {
		transfer->slot_count = 0;
		outcome_set_local(error, -ENOMEM, "transfer: out of memory");
		return -ENOMEM;
	}
	for (unsigned i = 0; i < transfer->slot_count; i++) {
		transfer->slots[i].buffer = malloc(options->chunk_bytes);
		if (!transfer->slots[i].buffer)
			return outcome_set_local(
				error, -ENOMEM,
				"transfer: out of memory; a smaller --chunk may help");
	}
	return 0;
}

static void end(struct transfer *transfer)
{
	for (unsigned i = 0; i < transfer->slot_count; i++)
		free(transfer->slots[i].buffer);
	free(transfer->slots);
}

static void fail(struct transfer *transfer, const struct osd_client_error *error)
{
	if (transfer->result < 0)
		return;
	transfer->result = error->result;
	outcome_give(error, transfer->error);
}

/* The caller's own function failed, and has the sentence. */
static void fail_silently(struct transfer *transfer, int result)
{
	struct osd_client_error error = { .result = result, .local = true };

	fail(transfer, &error);
}

static void submit(struct transfer *transfer, struct slot *slot)
{
	struct osd_client_error error;
	int result = osd_client_submit(transfer->client, &slot->request);

	slot->busy = result == 0;
	if (result == 0)
		return;
	client_not_submitted(transfer->client, result, "transfer", &error);
	fail(transfer, &error);
}

static void note_progress(struct transfer *transfer, uint64_t bytes)
{
	transfer->moved += bytes;
	if (transfer->options->progress)
		transfer->options->progress(transfer->options->progress_context, bytes);
}

/* The slot's request is the first member: the request is the slot. */
static struct slot *slot_of(struct osd_request *request)
{
	return (struct slot *)request;
}

/* ---- up ---- */

static void piece_written(struct osd_request *request)
{
	struct transfer *transfer = request->context;

	slot_of(request)->busy = false;
	if (request->error.result < 0)
		fail(transfer, &request->error);
	else
		note_progress(transfer, request->data_length);
}

static struct slot *free_slot(struct transfer *transfer)
{
	for (unsigned i = 0; i < transfer->slot_count; i++)
		if (!transfer->slots[i].busy)
			return &transfer->slots[i];
	return NULL;
}

static bool any_busy(const struct transfer *transfer)
{
	for (unsigned i = 0; i < transfer->slot_count; i++)
		if (transfer->slots[i].busy)
			return true;
	return false;
}

/* Reads and submits one piece. False at the end or on error. */
static bool upload_piece(struct transfer *transfer, struct slot *slot,
			 struct osd_client_address address, transfer_read *read, void *context)
{
	uint64_t offset = 0;
	ssize_t got = read(context, slot->buffer, transfer->options->chunk_bytes, &offset);

	if (got < 0)
		fail_silently(transfer, (int)got);
	if (got <= 0)
		return false;
	slot->request = (struct osd_request){
		.cdb = { .action = OSD_WRITE, .address = offset },
		.data = slot->buffer,
		.data_length = (size_t)got,
		.done = piece_written,
		.context = transfer,
	};
	osd_request_address(&slot->request, address);
	submit(transfer, slot);
	return transfer->result == 0;
}

int transfer_upload(struct osd_client *client, struct osd_client_address address,
		    transfer_read *read, void *context, const struct transfer_options *options,
		    uint64_t *sent, struct osd_client_error *error)
{
	struct transfer transfer;
	bool more = true;

	transfer.result = begin(&transfer, client, options, error);
	while (transfer.result == 0 && more) {
		struct slot *slot = free_slot(&transfer);

		if (slot)
			more = upload_piece(&transfer, slot, address, read, context);
		/* Steps also while there are free slots, so that the target is kept busy. */
		osd_client_step(client, slot ? 0 : -1);
	}
	while (any_busy(&transfer))
		osd_client_step(client, -1);
	if (sent)
		*sent = transfer.moved;
	end(&transfer);
	return transfer.result;
}

/* ---- down ---- */

static void piece_read(struct osd_request *request)
{
	struct transfer *transfer = request->context;

	slot_of(request)->busy = false;
	if (request->error.result < 0)
		fail(transfer, &request->error);
}

static void download_piece(struct transfer *transfer, struct slot *slot,
			   struct osd_client_address address, uint64_t offset, size_t length)
{
	slot->request = (struct osd_request){
		.cdb = { .action = OSD_READ, .address = offset },
		.buffer = slot->buffer,
		.buffer_length = length,
		.done = piece_read,
		.context = transfer,
	};
	osd_request_address(&slot->request, address);
	submit(transfer, slot);
}

int transfer_download(struct osd_client *client, struct osd_client_address address, uint64_t offset,
		      uint64_t length, transfer_write *write, void *context,
		      const struct transfer_options *options, uint64_t *received,
		      struct osd_client_error *error)
{
	struct transfer transfer;
	uint64_t asked = 0, begun = 0, written = 0; /* bytes; commands */
	bool ended = false;

	transfer.result = begin(&transfer, client, options, error);
	assert(transfer.result < 0 || transfer.slot_count > 0);
	while (transfer.result == 0 && !ended && (asked < length || written < begun)) {
		struct slot *oldest;

		while (transfer.result == 0 && asked < length &&
		       begun - written < transfer.slot_count) {
			size_t take = min_u64(length - asked, options->chunk_bytes);

			download_piece(&transfer, &transfer.slots[begun % transfer.slot_count],
				       address, offset + asked, take);
			asked += take;
			begun++;
		}
		oldest = &transfer.slots[written % transfer.slot_count];
		while (oldest->busy)
			osd_client_step(client, -1);
		if (transfer.result < 0)
			break;
		note_progress(&transfer, oldest->request.received);
		if (oldest->request.received > 0) {
			int result = write(context, oldest->buffer, oldest->request.received);

			if (result < 0)
				fail_silently(&transfer, result);
		}
		ended = oldest->request.received < oldest->request.buffer_length;
		written++;
	}
	while (any_busy(&transfer))
		osd_client_step(client, -1);
	if (received)
		*received = transfer.moved;
	end(&transfer);
	return transfer.result;
}
