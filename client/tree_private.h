/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What import and export share. */
#ifndef MUNINN_CLIENT_TREE_PRIVATE_H
#define MUNINN_CLIENT_TREE_PRIVATE_H

#include <dirent.h>

#include "client/client_private.h"
#include "client/transfer.h"
#include "client/tree.h"

/* Files up to this size are stored by one command and read by one. */
#define TREE_SMALL_BYTES (1U << 20)

/* Where a partition's manifest is. */
struct tree_pointer {
	uint64_t object;
	uint64_t length;
	uint8_t sha256[MANIFEST_SHA256_BYTES];
};

/* -ENODATA: no tree; -ENOENT: no partition; -EBADMSG: the attribute has another form. */
int tree_read_pointer(struct osd_client *client, struct osd_client_address partition,
		      struct tree_pointer *pointer, struct osd_client_error *error);
/* Also ends an update of the former tree. */
int tree_write_pointer(struct osd_client *client, uint64_t partition,
		       const struct tree_pointer *pointer, struct osd_client_error *error);

/* Whether an update is under way or was interrupted, and when it began. */
int tree_read_update(struct osd_client *client, struct osd_client_address partition, bool *marked,
		     uint64_t *begun_ms, struct osd_client_error *error);
/* Notes that one begins now. */
int tree_mark_update(struct osd_client *client, uint64_t partition,
		     const uint8_t import_id[TREE_IMPORT_BYTES], struct osd_client_error *error);

/* Reads and checks the manifest. */
int tree_read_manifest(struct osd_client *client, struct osd_client_address partition,
		       const struct tree_pointer *pointer, struct manifest *manifest,
		       struct osd_client_error *error);

/*
 * What a walk could not read, in its order. Nobody knows what is there now, so what is stored of it
 * stays (tree_unread.c).
 */
struct tree_unread {
	struct tree_gap {
		char *path;
		size_t at; /* entries of the walk before it */
		int error;
		bool has_entry; /* the entry before it is this directory's */
	} * gaps;
	size_t count, capacity;
};

/* -ENOMEM. */
int tree_unread_add(struct tree_unread *unread, const char *path, size_t at, int error,
		    bool has_entry);
void tree_unread_free(struct tree_unread *unread);

/*
 * Entries of everything below `directory`, parents first, names in byte order; objects and
 * checksums are still 0. Counts into `report`. A directory that can't be read is an entry with
 * nothing below it; a name of which nothing is known has none.
 */
int tree_walk(const char *directory, const struct tree_options *options, struct manifest *manifest,
	      struct tree_unread *unread, struct tree_report *report,
	      struct osd_client_error *error);

/*
 * Opens a directory, whose path begins at the directory `folder`, to read its names; `flags`:
 * further ones of open(2). NULL, and errno.
 */
DIR *tree_open_names(int folder, const char *path, int flags);

/* Does a pattern of the options match this path, whatever is above it? */
bool tree_is_excluded(const struct tree_options *options, const char *path);

/* Is an error one of this process or machine, not of the file? */
bool tree_concerns_all(int result);

/* Removes `leftovers` that are no objects of `manifest`, of a tree that is not there yet. */
int tree_clean_leftovers(struct osd_client *client, uint64_t partition,
			 const struct manifest *manifest, const struct manifest *leftovers,
			 struct tree_report *report, struct osd_client_error *error);

/* The lowest ID of the partition's layout from which on all IDs are free. */
int tree_first_free(struct osd_client *client, uint64_t partition, const struct osd_client_ids *ids,
		    uint64_t *id, struct osd_client_error *error);

/* The SHA-256 of a file from where it stands to its end. -ECANCELED: the client is stopped. */
int tree_hash_file(const struct osd_client *client, int fd, uint8_t sha256[MANIFEST_SHA256_BYTES]);

/*
 * Commands that are under way at the same time. They leave in batches, so that both ends have fewer
 * system calls for each.
 */
struct tree_flight {
	struct osd_client *client;
	size_t count;
	uint64_t bytes; /* of data that they carry */
	size_t unsent;  /* since the last step */
};

/* One was submitted, and has ended. */
void tree_flight_add(struct tree_flight *flight, uint64_t bytes);
void tree_flight_end(struct tree_flight *flight, uint64_t bytes);
/* Sends what has not left. */
void tree_flight_push(struct tree_flight *flight);
/* Steps until there is room for another command, or at the end until none is under way. */
void tree_flight_pace(struct tree_flight *flight);
void tree_flight_drain(struct tree_flight *flight);

/* What has been told of the progress of one file. */
struct tree_count {
	const struct tree_options *options;
	uint64_t bytes;
};

/* More bytes of a large one; as a `progress` of struct transfer_options. */
void tree_count_bytes(void *count, uint64_t bytes);

/* All of its `length` bytes, and the file. */
void tree_count_file(struct tree_count *count, uint64_t length);

#endif
