/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Directories, progress, the pointer to the manifest, its object, and the IDs of a partition. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <openssl/evp.h>
#include <openssl/sha.h>

#include "client/read_fully.h"
#include "client/tree_private.h"
#include "common/bytes.h"

/* ---- directories ---- */

DIR *tree_open_names(int folder, const char *path, int flags)
{
	int fd = openat(folder, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags), error;
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);

	if (fd >= 0 && !stream) {
		error = errno;
		close(fd);
		errno = error;
	}
	return stream;
}

/* ---- progress ---- */

void tree_count_bytes(void *context, uint64_t bytes)
{
	struct tree_count *count = context;

	count->bytes += bytes;
	if (count->options->progress)
		count->options->progress(count->options->context, 0, bytes);
}

void tree_count_file(struct tree_count *count, uint64_t length)
{
	if (count->options->progress)
		count->options->progress(count->options->context, 1,
					 length > count->bytes ? length - count->bytes : 0);
}

/* ---- pointer ---- */

int tree_read_pointer(struct osd_client *client, struct osd_client_address partition,
		      struct tree_pointer *pointer, struct osd_client_error *error)
{
	uint8_t value[TREE_POINTER_BYTES];
	uint32_t length = 0;
	int result = osd_client_get_attribute(client, partition, TREE_PARTITION_PAGE,
					      TREE_PARTITION_MANIFEST, value, sizeof(value),
					      &length, error);

	if (result == -ENODATA)
		return outcome_set(
			error, -ENODATA,
			"the partition holds no directory tree; `muninnctl import` stores one");
	if (result == -ENOBUFS || (result == 0 && length != sizeof(value)))
		return outcome_set(
			error, -EBADMSG,
			"the partition's pointer to a manifest has %u bytes instead of %u", length,
			TREE_POINTER_BYTES);
	if (result < 0)
		return result;
	pointer->object = get_be64(value);
	pointer->length = get_be64(value + 8);
	memcpy(pointer->sha256, value + 16, sizeof(pointer->sha256));
	return 0;
}

int tree_write_pointer(struct osd_client *client, uint64_t partition,
		       const struct tree_pointer *pointer, struct osd_client_error *error)
{
	uint8_t value[TREE_POINTER_BYTES];
	const struct osd_client_value sets[] = {
		{ .page = TREE_PARTITION_PAGE,
		  .number = TREE_PARTITION_MANIFEST,
		  .value = value,
		  .length = sizeof(value) },
		{ .page = TREE_PARTITION_PAGE, .number = TREE_PARTITION_UPDATE },
	};

	put_be64(value, pointer->object);
	put_be64(value + 8, pointer->length);
	memcpy(value + 16, pointer->sha256, sizeof(pointer->sha256));
	return osd_client_set_attributes(client,
					 (struct osd_client_address){ .partition = partition },
					 sets, sizeof(sets) / sizeof(sets[0]), error);
}

bool tree_is_stored(struct osd_client *client, const struct tree_report *report)
{
	const struct osd_client_address address = { .partition = report->partition };
	struct osd_client_error error;
	struct tree_pointer pointer;

	return report->has_ended && tree_read_pointer(client, address, &pointer, &error) == 0 &&
	       pointer.object == report->manifest_object;
}

/* ---- the mark of an update ---- */

int tree_read_update(struct osd_client *client, struct osd_client_address partition, bool *marked,
		     uint64_t *begun_ms, struct osd_client_error *error)
{
	uint8_t value[TREE_UPDATE_BYTES];
	uint32_t length = 0;
	int result = osd_client_get_attribute(client, partition, TREE_PARTITION_PAGE,
					      TREE_PARTITION_UPDATE, value, sizeof(value), &length,
					      error);

	*marked = result == 0 || result == -ENOBUFS;
	*begun_ms = result == 0 && length == sizeof(value) ? get_be64(value + 8) : 0;
	return result == -ENODATA || result == -ENOBUFS ? 0 : result;
}

int tree_mark_update(struct osd_client *client, uint64_t partition,
		     const uint8_t import_id[TREE_IMPORT_BYTES], struct osd_client_error *error)
{
	uint8_t value[TREE_UPDATE_BYTES];
	const struct osd_client_value set = {
		.page = TREE_PARTITION_PAGE,
		.number = TREE_PARTITION_UPDATE,
		.value = value,
		.length = sizeof(value),
	};
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	memcpy(value, import_id, TREE_IMPORT_BYTES);
	put_be64(value + TREE_IMPORT_BYTES,
		 (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000);
	return osd_client_set_attributes(
		client, (struct osd_client_address){ .partition = partition }, &set, 1, error);
}

/* ---- manifest ---- */

struct text {
	char *bytes;
	size_t length;
};

static int take_text(void *context, const void *data, size_t length)
{
	struct text *text = context;

	memcpy(text->bytes + text->length, data, length);
	text->length += length;
	return 0;
}

static int check_text(const struct text *text, const struct tree_pointer *pointer,
		      struct manifest *manifest, struct osd_client_error *error)
{
	uint8_t digest[MANIFEST_SHA256_BYTES];
	struct error_text sentence;
	int result;

	if (text->length != pointer->length)
		return outcome_set(error, -EBADMSG,
				   "the manifest, object 0x%llx, has only %zu of %llu bytes",
				   (unsigned long long)pointer->object, text->length,
				   (unsigned long long)pointer->length);
	SHA256((const unsigned char *)text->bytes, text->length, digest);
	if (memcmp(digest, pointer->sha256, sizeof(digest)) != 0)
		return outcome_set(error, -EBADMSG,
				   "the manifest, object 0x%llx, is not the one that was stored: "
				   "its SHA-256 differs",
				   (unsigned long long)pointer->object);
	result = manifest_parse(text->bytes, text->length, manifest, &sentence);
	return result < 0 ? outcome_set(error, result, "%s", sentence.text) : 0;
}

int tree_read_manifest(struct osd_client *client, struct osd_client_address partition,
		       const struct tree_pointer *pointer, struct manifest *manifest,
		       struct osd_client_error *error)
{
	const struct transfer_options options = { .chunk_bytes = TRANSFER_CHUNK_BYTES_DEFAULT };
	struct text text = { 0 };
	int result;

	*manifest = (struct manifest){ 0 };
	if (pointer->length > MANIFEST_BYTES_MAX)
		return outcome_set(error, -EBADMSG,
				   "the manifest claims to have %llu bytes; that is too many",
				   (unsigned long long)pointer->length);
	text.bytes = malloc(pointer->length + 1);
	if (!text.bytes)
		return outcome_set_local(error, -ENOMEM, "manifest: out of memory");
	partition.object = pointer->object;
	result = transfer_download(client, partition, 0, pointer->length, take_text, &text,
				   &options, NULL, error);
	/* Between two moments the pointer may be of the one behind. */
	if (result == -ENOENT && partition.version)
		result = outcome_set(error, -ENODATA,
				     "an import was under way at that moment, and no whole "
				     "directory tree was there");
	if (result == 0)
		result = check_text(&text, pointer, manifest, error);
	free(text.bytes);
	return result;
}

/* ---- IDs ---- */

/* Is there an object with an ID of at least `first`? */
static int any_from(struct osd_client *client, uint64_t partition, uint64_t first, bool *any,
		    struct osd_client_error *error)
{
	uint8_t buffer[OSD_LIST_HEAD_BYTES + 8];
	struct osd_list_head head;
	struct osd_request request = {
		.cdb = { .action = OSD_LIST, .partition = partition, .address = first },
		.buffer = buffer,
		.buffer_length = sizeof(buffer),
	};
	int result = osd_client_run(client, &request);

	if (result < 0)
		return outcome_give(&request.error, error);
	if (osd_list_head_decode(request.cdb.version, buffer, request.received, &head) < 0)
		return outcome_set(error, -EPROTO, "LIST: the target's answer has no head");
	*any = head.additional_length > OSD_LIST_HEAD_BYTES - 8;
	return 0;
}

/*
 * Doubles a distance until nothing lies behind it, then halves the interval: 128 short commands at
 * most.
 */
int tree_first_free(struct osd_client *client, uint64_t partition, const struct osd_client_ids *ids,
		    uint64_t *id, struct osd_client_error *error)
{
	/* In steps from the first ID on. */
	const uint64_t end = (ids->last - ids->first) / ids->step;
	uint64_t low = 0, high, distance = 1;
	bool any = false;
	int result = any_from(client, partition, ids->first, &any, error);

	*id = ids->first;
	if (result < 0 || !any)
		return result;
	/* Invariant: something is at or behind `low`, nothing at or behind `high`. */
	for (high = low + distance; any; high = low + distance) {
		if (high < low || high >= end)
			return outcome_set(error, -EFBIG,
					   "the partition has no free IDs behind its highest one");
		result = any_from(client, partition, ids->first + high * ids->step, &any, error);
		if (result < 0)
			return result;
		if (!any)
			break;
		low = high;
		distance *= 2;
	}
	while (high - low > 1) {
		uint64_t middle = low + (high - low) / 2;

		result = any_from(client, partition, ids->first + middle * ids->step, &any, error);
		if (result < 0)
			return result;
		if (any)
			low = middle;
		else
			high = middle;
	}
	*id = ids->first + high * ids->step;
	return 0;
}

/* ---- files ---- */

int tree_hash_file(const struct osd_client *client, int fd, uint8_t sha256[MANIFEST_SHA256_BYTES])
{
	enum { BYTES = 1 << 18 };
	EVP_MD_CTX *hash = EVP_MD_CTX_new();
	uint8_t *buffer = malloc(BYTES);
	ssize_t got = 1;

	if (!hash || !buffer || EVP_DigestInit_ex(hash, EVP_sha256(), NULL) != 1)
		got = -ENOMEM;
	while (got > 0) {
		got = client_is_stopped(client) ? -ECANCELED : read_fully(fd, buffer, BYTES);
		if (got > 0 && EVP_DigestUpdate(hash, buffer, (size_t)got) != 1)
			got = -ENOMEM;
	}
	if (got == 0 && EVP_DigestFinal_ex(hash, sha256, NULL) != 1)
		got = -ENOMEM;
	EVP_MD_CTX_free(hash);
	free(buffer);
	return (int)got;
}

/* ---- commands under way ---- */

/* Of a batch; a part of what the queue holds, so that the target always has some. */
#define FLIGHT_BATCH 16U
#define FLIGHT_BYTES (8U << 20)

void tree_flight_add(struct tree_flight *flight, uint64_t bytes)
{
	flight->count++;
	flight->bytes += bytes;
	flight->unsent++;
}

void tree_flight_end(struct tree_flight *flight, uint64_t bytes)
{
	flight->count--;
	flight->bytes -= bytes;
}

void tree_flight_push(struct tree_flight *flight)
{
	if (flight->unsent > 0)
		osd_client_step(flight->client, 0);
	flight->unsent = 0;
}

void tree_flight_pace(struct tree_flight *flight)
{
	size_t depth = osd_client_queue_depth(flight->client);
	size_t batch = min_u64(FLIGHT_BATCH, (depth + 1) / 2);

	if (flight->unsent < batch && flight->bytes < FLIGHT_BYTES && flight->count < depth)
		return;
	osd_client_step(flight->client, 0);
	while (flight->count > depth - batch || flight->bytes >= FLIGHT_BYTES)
		osd_client_step(flight->client, -1);
	flight->unsent = 0;
}

void tree_flight_drain(struct tree_flight *flight)
{
	while (flight->count > 0)
		osd_client_step(flight->client, -1);
	flight->unsent = 0;
}
