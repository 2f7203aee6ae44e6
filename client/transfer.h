/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Long transfers: pieces of an object, several in flight. */
#ifndef MUNINN_CLIENT_TRANSFER_H
#define MUNINN_CLIENT_TRANSFER_H

#include <sys/types.h>

#include "client/osd_client.h"

#define TRANSFER_CHUNK_BYTES_DEFAULT (1U << 20)
#define TRANSFER_CHUNK_BYTES_MIN     512U
#define TRANSFER_CHUNK_BYTES_MAX     (8U << 20) /* what a target of Muninn takes at once */

struct transfer_options {
	size_t chunk_bytes; /* of each command; TRANSFER_CHUNK_BYTES_MIN.._MAX */
	/* Called for bytes that the target has stored or sent. May be NULL. */
	void (*progress)(void *context, uint64_t bytes);
	void *progress_context;
};

/*
 * Gives the next piece to store: at most `capacity` bytes into `data`, and where in the object they
 * go. Returns the number of bytes, 0 at the end, or a negative errno (the caller of transfer_upload
 * knows why).
 */
typedef ssize_t transfer_read(void *context, void *data, size_t capacity, uint64_t *offset);

/*
 * Writes pieces into an existing object, in any order. Waits until everything that it began has
 * ended, also after an error. `sent` (may be NULL): bytes written. Errors of `read` come with an
 * empty sentence.
 */
int transfer_upload(struct osd_client *client, struct osd_client_address address,
		    transfer_read *read, void *context, const struct transfer_options *options,
		    uint64_t *sent, struct osd_client_error *error);

/* Takes the next bytes, in order. 0, or a negative errno that ends the transfer. */
typedef int transfer_write(void *context, const void *data, size_t length);

/*
 * Reads [offset, offset + length) of an object. `received` (may be NULL): bytes given to `write`,
 * fewer than `length` if the object ends before. Errors of `write` come with an empty sentence.
 */
int transfer_download(struct osd_client *client, struct osd_client_address address, uint64_t offset,
		      uint64_t length, transfer_write *write, void *context,
		      const struct transfer_options *options, uint64_t *received,
		      struct osd_client_error *error);

/* Takes `length` bytes of zeros, in the order of the others. As transfer_write. */
typedef int transfer_skip(void *context, uint64_t length);

/*
 * The same for an object that may have holes. Does not read the holes of a long object, but gives
 * them to `skip`, if the target can tell where they are. `received` counts both.
 */
int transfer_download_sparse(struct osd_client *client, struct osd_client_address address,
			     uint64_t offset, uint64_t length, transfer_write *write,
			     transfer_skip *skip, void *context,
			     const struct transfer_options *options, uint64_t *received,
			     struct osd_client_error *error);

#endif
