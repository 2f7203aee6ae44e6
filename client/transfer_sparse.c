/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Reads a long object past its holes: READ MAP tells where data is, and only data crosses the
 * network.
 */
#include <errno.h>
#include <stdlib.h>

#include "client/client_private.h"
#include "client/transfer.h"
#include "common/bytes.h"

enum {
	MAP_ENTRIES = 4096, /* of one answer */
	MAP_BYTES = OSD_MAP_HEAD_BYTES + MAP_ENTRIES * OSD_MAP_ENTRY_BYTES,
	LENGTH_MIN = 16 << 20, /* reading a shorter object is quicker than asking */
};

/* What is being read; [at, end) remains. */
struct sparse {
	struct osd_client *client;
	struct osd_client_address address;
	uint64_t at, end;
	transfer_write *write;
	transfer_skip *skip;
	void *context;
	const struct transfer_options *options;
	uint64_t received;
	bool ended; /* the object is shorter */
	struct osd_client_error *error;
};

/*
 * Asks for ranges of data in [at, end), ascending. Ranges without space come with a later answer.
 */
static int read_map(const struct sparse *sparse, uint8_t map[MAP_BYTES], size_t *length)
{
	struct osd_request request = {
		.cdb = { .action = OSD_READ_MAP, .address = sparse->at, .map_type = OSD_MAP_DATA },
		.buffer = map,
		.buffer_length = MAP_BYTES
	};
	int result;

	osd_request_address(&request, sparse->address);
	result = osd_client_run(sparse->client, &request);
	*length = request.received;
	return result < 0 ? result : *length < OSD_MAP_HEAD_BYTES ? -EPROTO : 0;
}

/* Bytes up to `to` are zeros. */
static int take_hole(struct sparse *sparse, uint64_t to)
{
	uint64_t bytes = to - sparse->at;
	int result = bytes > 0 ? sparse->skip(sparse->context, bytes) : 0;

	if (result < 0)
		return outcome_set_local(sparse->error, result, "%s", "");
	sparse->at = to;
	sparse->received += bytes;
	if (sparse->options->progress)
		sparse->options->progress(sparse->options->progress_context, bytes);
	return 0;
}

static int take_data(struct sparse *sparse, uint64_t to)
{
	uint64_t wanted = to - sparse->at, got = 0;
	int result = transfer_download(sparse->client, sparse->address, sparse->at, wanted,
				       sparse->write, sparse->context, sparse->options, &got,
				       sparse->error);

	sparse->received += got;
	sparse->at += got;
	sparse->ended = result == 0 && got < wanted;
	return result;
}

/* Ranges that are near to each other are read as one. */
static bool joins(const struct sparse *sparse, uint64_t end, const struct osd_map_entry *entry)
{
	return entry->address <= end || entry->address - end < sparse->options->chunk_bytes;
}

/* Reads the data of a map. If the map was the whole rest, zeros follow its last range. */
static int take_map(struct sparse *sparse, const uint8_t *map, size_t length)
{
	bool whole = get_be64(map) <= length - OSD_MAP_HEAD_BYTES;
	size_t position = OSD_MAP_HEAD_BYTES;
	struct osd_map_entry entry;
	bool more = osd_map_next(map, length, &position, &entry) == 1;
	int result = 0;

	if (!more && !whole)
		return take_data(sparse, sparse->end);
	while (result == 0 && more && !sparse->ended && sparse->at < sparse->end) {
		uint64_t begin = min_u64(max_u64(entry.address, sparse->at), sparse->end);
		uint64_t end = entry.address + entry.length;

		while ((more = osd_map_next(map, length, &position, &entry) == 1) &&
		       joins(sparse, end, &entry))
			end = max_u64(end, entry.address + entry.length);
		result = take_hole(sparse, begin);
		end = min_u64(end, sparse->end);
		if (result == 0 && end > sparse->at)
			result = take_data(sparse, end);
	}
	if (result == 0 && whole && !sparse->ended)
		result = take_hole(sparse, sparse->end);
	return result;
}

static int download(struct sparse *sparse)
{
	uint8_t *map = malloc(MAP_BYTES);
	int result = 0;

	if (!map)
		return outcome_set_local(sparse->error, -ENOMEM, "transfer: out of memory");
	while (result == 0 && sparse->at < sparse->end && !sparse->ended) {
		uint64_t before = sparse->at;
		size_t length = 0;

		/* The target can't tell, or does not let this client ask: reads everything. */
		if (read_map(sparse, map, &length) < 0)
			result = take_data(sparse, sparse->end);
		else
			result = take_map(sparse, map, length);
		if (result == 0 && sparse->at == before && !sparse->ended)
			result = take_data(sparse, sparse->end);
	}
	free(map);
	return result;
}

int transfer_download_sparse(struct osd_client *client, struct osd_client_address address,
			     uint64_t offset, uint64_t length, transfer_write *write,
			     transfer_skip *skip, void *context,
			     const struct transfer_options *options, uint64_t *received,
			     struct osd_client_error *error)
{
	struct sparse sparse = {
		.client = client,
		.address = address,
		.at = offset,
		.end = offset + length,
		.write = write,
		.skip = skip,
		.context = context,
		.options = options,
		.error = error,
	};
	int result;

	if (length < LENGTH_MIN)
		return transfer_download(client, address, offset, length, write, context, options,
					 received, error);
	result = download(&sparse);
	if (received)
		*received = sparse.received;
	return result;
}
