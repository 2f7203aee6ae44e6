/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The stream that `send` writes and `receive` reads: a partition, or what differs between two of
 * its versions. docs/stream.md has it byte by byte.
 */
#ifndef MUNINN_CLIENT_STREAM_H
#define MUNINN_CLIENT_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <openssl/evp.h>

#include "common/error.h"

#define STREAM_SYSTEM_BYTES 20
#define STREAM_PAYLOAD_MAX  (8u << 20)

enum stream_type {
	STREAM_END = 0,
	STREAM_OBJECT = 1,     /* a new object */
	STREAM_REMOVED = 2,    /* an object that is gone */
	STREAM_DATA = 3,       /* at `offset` */
	STREAM_HOLE = 4,       /* at `offset`; the payload is its length */
	STREAM_LENGTH = 5,     /* `offset` is that of the object */
	STREAM_ATTRIBUTES = 6, /* those that follow are all that the object has */
	STREAM_ATTRIBUTE = 7,  /* page, number, value; of object 0: of the partition */
};

struct stream_header {
	uint8_t system[STREAM_SYSTEM_BYTES]; /* of the source: which device */
	uint64_t partition;                  /* of the source */
	uint64_t from, to; /* sequence numbers of the versions; from 0: all of it */
};

struct stream_record {
	uint32_t type; /* enum stream_type */
	uint32_t length;
	uint64_t object, offset;
	const uint8_t *data;
};

struct stream {
	int fd;
	const char *name; /* for messages */
	EVP_MD_CTX *digest;
	uint32_t crc;    /* of the record before */
	uint64_t bytes;  /* so far */
	uint8_t *buffer; /* when it is read: a payload */
};

/* `name` as in messages; both outlive the stream. -ENOMEM. */
int stream_open(struct stream *stream, int fd, const char *name);
void stream_close(struct stream *stream);

/* -errno of the file with a sentence. */
int stream_write_header(struct stream *stream, const struct stream_header *header,
			struct error_text *error);
int stream_write(struct stream *stream, const struct stream_record *record,
		 struct error_text *error);
/* The trailer: without it the stream is torn. */
int stream_write_end(struct stream *stream, struct error_text *error);

/* -EBADMSG: it is no such stream, of another version, torn or damaged; with a sentence. */
int stream_read_header(struct stream *stream, struct stream_header *header,
		       struct error_text *error);
/*
 * The next record, which has passed its checksum; its data hold until the next call. 1; 0: the
 * trailer, and all that was read is what was written.
 */
int stream_read(struct stream *stream, struct stream_record *record, struct error_text *error);

#endif
