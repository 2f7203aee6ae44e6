/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Directory trees in a partition: one object for each file, and a manifest object (manifest.h) with
 * the rest. An attribute of the partition points to the manifest and is set last, so a tree is
 * there as a whole or not at all. docs/muninnctl.md describes attributes and manifest.
 */
#ifndef MUNINN_CLIENT_TREE_H
#define MUNINN_CLIENT_TREE_H

#include "client/manifest.h"
#include "client/osd_client.h"

/* Application-defined pages, as in "MU". */
#define TREE_OBJECT_PAGE    0x00014D55U
#define TREE_PARTITION_PAGE 0x30014D55U

/*
 * Of TREE_OBJECT_PAGE: length (8) and SHA-256 (32) of the content. An object without it is not
 * complete.
 */
#define TREE_OBJECT_COMPLETE 1U
#define TREE_COMPLETE_BYTES  40U
/*
 * Of TREE_OBJECT_PAGE, set with the object's creation: 8 random bytes, one value for all objects of
 * an import.
 */
#define TREE_OBJECT_IMPORT 2U
#define TREE_IMPORT_BYTES  8U
/*
 * Of TREE_OBJECT_PAGE: permission bits (4), modification time in seconds (8) and nanoseconds (4).
 */
#define TREE_OBJECT_STATUS 3U
#define TREE_STATUS_BYTES  16U
/* Of TREE_PARTITION_PAGE: object (8), length (8), SHA-256 (32) of the manifest. */
#define TREE_PARTITION_MANIFEST 1U
#define TREE_POINTER_BYTES      48U
/*
 * Of TREE_PARTITION_PAGE, while an update changes objects of the tree: its TREE_OBJECT_IMPORT (8),
 * when it began in ms since 1970 (8). Meanwhile the manifest does not fit the objects, so only an
 * update may go on with them.
 */
#define TREE_PARTITION_UPDATE 2U
#define TREE_UPDATE_BYTES     16U

struct tree_report {
	uint64_t files, directories, symlinks, hard_links;
	uint64_t bytes;    /* content of files */
	uint64_t skipped;  /* devices, pipes and sockets */
	uint64_t excluded; /* names that a pattern matched; what is below them does not count */
	uint64_t removed;  /* objects of former or unfinished imports */
	uint64_t manifest_object;
	/* Of an import, files: new objects; other content; only other attributes; unchanged. */
	uint64_t added, changed, touched, unchanged;
	uint64_t sent_bytes; /* of content */
	/*
	 * Of an import: names that could not be read; files that changed whenever they were read.
	 * Of an export: entries whose paths are too long for it, or whose content can't be had.
	 * `warn` has said which.
	 */
	uint64_t left_out, torn;
	/* Of an export that fails: all is there but what it left out; the error is the first one's.
	 */
	bool brought_the_rest;
	/* Owners and extended attributes that could not be read or given; `warn` has said which. */
	uint64_t incomplete;
	/* Of an import, files that an interrupted one had stored; of an export, that it had
	 * brought. */
	uint64_t resumed;
	/* Of an import: how far it has come. */
	bool has_begun; /* objects may have been stored, or changed */
	bool has_ended; /* the command was sent that makes the tree of the manifest the present one
			 */
	bool made_partition;
	uint64_t partition;
};

struct tree_options {
	size_t chunk_bytes; /* as of struct transfer_options */
	bool replace; /* import: replaces the stored tree, and removes its objects afterwards */
	bool update;  /* import: makes the stored tree equal to the directory, by its differences */
	bool checksum; /* update: compare the content of all files, also of those with the same
			  length and time */
	bool clean;    /* import: first tree_clean, so that it goes on with nothing */
	/*
	 * import: leaves out what these patterns match, with everything below: the path from the
	 * directory on if there is a slash in the pattern, otherwise the name.
	 */
	const char *const *excludes;
	size_t exclude_count;
	bool one_file_system; /* import: does not go into what is mounted below the directory */
	/*
	 * import: stores nothing, and only counts. An update tells each difference by `differs`, of
	 * files; whether one of another time has another content too is not looked at.
	 */
	bool dry_run;
	void (*differs)(void *context, const char *what, const char *path); /* may be NULL */
	const char *name;  /* import: of a partition that it makes; NULL: none */
	const char *below; /* export: brings this directory of the tree, or file, only; NULL: all */
	int log_fd; /* import: gets "OID LENGTH SHA256 PATH" for each object that is acknowledged;
		       -1 = no log */
	/* All may be NULL. */
	void (*total)(void *context, uint64_t files,
		      uint64_t bytes); /* once, before the first progress */
	void (*progress)(void *context, uint64_t files, uint64_t bytes); /* additional ones */
	void (*warn)(void *context, const char *sentence);
	void *context;
};

/*
 * Stores a directory, and creates the partition if it does not exist; 0: creates one with an ID
 * that the target chooses. -EEXIST: it holds a tree already. Small files are one command each;
 * larger ones are complete when TREE_OBJECT_COMPLETE is set. What can't be read, file or directory,
 * stays as an update finds it in the old tree, or as an interrupted import has completed it.
 * Otherwise it is left out.
 *
 * On error everything acknowledged stays, and the next import into the partition goes on with it:
 * objects that hold a file's content already become the file's. At its end it removes those that
 * it did not need.
 *
 * With `update` an object stays that of its file. TREE_OBJECT_COMPLETE shows what an interrupted
 * update left, and the next update makes it right.
 */
int tree_import(struct osd_client *client, uint64_t partition, const char *directory,
		const struct tree_options *options, struct tree_report *report,
		struct osd_client_error *error);

/*
 * Removes all objects of a partition that imports have made but its tree does not use. `removed` of
 * the report counts them.
 */
int tree_clean(struct osd_client *client, uint64_t partition, struct tree_report *report,
	       struct osd_client_error *error);

/*
 * After tree_import has failed: is the tree there as a whole all the same, because nothing but the
 * answer to its last command is missing? The client may be another one.
 */
bool tree_is_stored(struct osd_client *client, const struct tree_report *report);

/*
 * Unpacks the tree of a partition into a directory that does not exist or is empty, or goes on
 * where the same export was interrupted. Checks content against the manifest. -ENOENT: the tree has
 * nothing `below`; -ENOTDIR: that is a file. -ENODATA: no tree there. -EINPROGRESS: an update of it
 * is not complete. -EBADMSG: something is not as the manifest says. -EBUSY: an export into it runs.
 * On error the files that are there are whole. If the content of files can't be had, it brings all
 * others before it fails; the same export tries those files again.
 */
int tree_export(struct osd_client *client, struct osd_client_address partition,
		const char *directory, const struct tree_options *options,
		struct tree_report *report, struct osd_client_error *error);

#endif
