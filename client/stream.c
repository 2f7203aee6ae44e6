/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Writes and reads streams, with a checksum in each record that goes on from the one before. */
#include "client/stream.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/read_fully.h"
#include "common/bytes.h"
#include "common/crc32c.h"

/* "MUNSEND" and the version of the format. */
static const uint8_t magic[8] = { 'M', 'U', 'N', 'S', 'E', 'N', 'D', 1 };

#define HEADER_BYTES 56
#define HEAD_BYTES   32
#define DIGEST_BYTES 32

int stream_open(struct stream *stream, int fd, const char *name)
{
	*stream = (struct stream){ .fd = fd, .name = name, .digest = EVP_MD_CTX_new() };
	stream->buffer = malloc(STREAM_PAYLOAD_MAX);
	if (stream->digest && stream->buffer &&
	    EVP_DigestInit_ex(stream->digest, EVP_sha256(), NULL) == 1)
		return 0;
	stream_close(stream);
	return -ENOMEM;
}

void stream_close(struct stream *stream)
{
	EVP_MD_CTX_free(stream->digest);
	free(stream->buffer);
	*stream = (struct stream){ .fd = -1 };
}

/* All that goes by is digested, but for the trailer's own digest. */
static void note(struct stream *stream, const uint8_t *data, size_t length)
{
	EVP_DigestUpdate(stream->digest, data, length);
	stream->bytes += length;
}

/* ---- writing ---- */

static int put(struct stream *stream, const uint8_t *data, size_t length, struct error_text *error)
{
	while (length > 0) {
		ssize_t written = write(stream->fd, data, length);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return error_set(error, -errno, "%s: %s", stream->name, strerror(errno));
		data += written;
		length -= (size_t)written;
	}
	return 0;
}

int stream_write_header(struct stream *stream, const struct stream_header *header,
			struct error_text *error)
{
	uint8_t bytes[HEADER_BYTES] = { 0 };

	memcpy(bytes, magic, sizeof(magic));
	memcpy(bytes + 8, header->system, STREAM_SYSTEM_BYTES);
	put_be64(bytes + 28, header->partition);
	put_be64(bytes + 36, header->from);
	put_be64(bytes + 44, header->to);
	stream->crc = crc32c(0, bytes, 52);
	put_be32(bytes + 52, stream->crc);
	note(stream, bytes, sizeof(bytes));
	return put(stream, bytes, sizeof(bytes), error);
}

static void encode_head(const struct stream *stream, const struct stream_record *record,
			uint8_t head[HEAD_BYTES])
{
	put_be32(head, record->type);
	put_be32(head + 4, record->length);
	put_be64(head + 8, record->object);
	put_be64(head + 16, record->offset);
	put_be32(head + 24, crc32c(stream->crc, head, 24));
	put_be32(head + 28, crc32c(get_be32(head + 24), record->data, record->length));
}

int stream_write(struct stream *stream, const struct stream_record *record,
		 struct error_text *error)
{
	uint8_t head[HEAD_BYTES];
	int result;

	encode_head(stream, record, head);
	stream->crc = get_be32(head + 28);
	note(stream, head, sizeof(head));
	result = put(stream, head, sizeof(head), error);
	if (record->length)
		note(stream, record->data, record->length);
	return result ? result : put(stream, record->data, record->length, error);
}

int stream_write_end(struct stream *stream, struct error_text *error)
{
	uint8_t digest[EVP_MAX_MD_SIZE], head[HEAD_BYTES];
	struct stream_record record = { .type = STREAM_END, .length = DIGEST_BYTES };
	int result;

	record.offset = stream->bytes;
	EVP_DigestFinal_ex(stream->digest, digest, NULL);
	record.data = digest;
	encode_head(stream, &record, head);
	result = put(stream, head, sizeof(head), error);
	return result ? result : put(stream, digest, DIGEST_BYTES, error);
}

/* ---- reading ---- */

/* All of it, or -EBADMSG: the stream ends before. */
static int get(struct stream *stream, uint8_t *data, size_t length, struct error_text *error)
{
	ssize_t got = length ? read_fully(stream->fd, data, length) : 0;

	if (got == -EINTR)
		return error_set(error, -ECANCELED, "interrupted");
	if (got < 0)
		return error_set(error, (int)got, "%s: %s", stream->name, strerror((int)-got));
	if ((size_t)got < length)
		return error_set(error, -EBADMSG,
				 "%s: the stream ends after %" PRIu64
				 " bytes, before its trailer: it is torn",
				 stream->name, stream->bytes + (uint64_t)got);
	return 0;
}

static int damaged(const struct stream *stream, struct error_text *error)
{
	return error_set(error, -EBADMSG,
			 "%s: the stream is damaged at byte %" PRIu64 " or soon behind it",
			 stream->name, stream->bytes);
}

int stream_read_header(struct stream *stream, struct stream_header *header,
		       struct error_text *error)
{
	uint8_t bytes[HEADER_BYTES];
	int result = get(stream, bytes, sizeof(bytes), error);

	if (result)
		return result;
	if (memcmp(bytes, magic, sizeof(magic) - 1) != 0)
		return error_set(error, -EBADMSG, "%s is no stream of `muninnctl send`",
				 stream->name);
	if (bytes[7] != magic[7])
		return error_set(error, -EBADMSG,
				 "%s has version %u of the format, and this program reads %u only",
				 stream->name, bytes[7], magic[7]);
	stream->crc = crc32c(0, bytes, 52);
	if (get_be32(bytes + 52) != stream->crc)
		return damaged(stream, error);
	note(stream, bytes, sizeof(bytes));
	memcpy(header->system, bytes + 8, STREAM_SYSTEM_BYTES);
	header->partition = get_be64(bytes + 28);
	header->from = get_be64(bytes + 36);
	header->to = get_be64(bytes + 44);
	return 0;
}

static int check_end(struct stream *stream, const struct stream_record *record,
		     struct error_text *error)
{
	uint8_t digest[EVP_MAX_MD_SIZE];

	EVP_DigestFinal_ex(stream->digest, digest, NULL);
	if (record->length != DIGEST_BYTES || record->offset != stream->bytes ||
	    memcmp(digest, record->data, DIGEST_BYTES) != 0)
		return damaged(stream, error);
	return 0;
}

int stream_read(struct stream *stream, struct stream_record *record, struct error_text *error)
{
	uint8_t head[HEAD_BYTES];
	int result = get(stream, head, sizeof(head), error);

	if (result)
		return result;
	*record = (struct stream_record){ .type = get_be32(head),
					  .length = get_be32(head + 4),
					  .object = get_be64(head + 8),
					  .offset = get_be64(head + 16),
					  .data = stream->buffer };
	/* The length is only to be believed with its checksum. */
	if (get_be32(head + 24) != crc32c(stream->crc, head, 24) ||
	    record->length > STREAM_PAYLOAD_MAX || record->type > STREAM_ATTRIBUTE)
		return damaged(stream, error);
	result = get(stream, stream->buffer, record->length, error);
	if (result)
		return result;
	if (get_be32(head + 28) != crc32c(get_be32(head + 24), stream->buffer, record->length))
		return damaged(stream, error);
	if (record->type == STREAM_END)
		return check_end(stream, record, error);
	stream->crc = get_be32(head + 28);
	note(stream, head, sizeof(head));
	note(stream, stream->buffer, record->length);
	return 1;
}
