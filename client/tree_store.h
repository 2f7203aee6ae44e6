/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * An import under way: what storing new files (tree_store.c) and changing old ones (tree_update.c)
 * share.
 */
#ifndef MUNINN_CLIENT_TREE_STORE_H
#define MUNINN_CLIENT_TREE_STORE_H

#include <sys/stat.h>

#include "client/aside.h"
#include "client/tree_private.h"

/* A directory whose files are opened one after the other. All zero: none. */
struct tree_place {
	bool is_open;
	int fd;
	const char *path; /* of a file in it, or below */
	size_t length;    /* of its own path */
};

struct importer {
	struct osd_client *client;
	uint64_t partition;
	const char *directory;
	const struct tree_options *options;
	struct manifest *manifest;
	struct tree_unread unread;
	struct tree_report *report;
	struct osd_client_ids ids;
	uint64_t next_object; /* 0: there are none left */
	unsigned taken;
	uint8_t import_id[TREE_IMPORT_BYTES];
	bool marked;           /* the partition says that an update is under way */
	uint64_t old_manifest; /* the object of the present tree's; 0: there is no tree */
	struct tree_flight flight;
	struct tree_place place;
	int result; /* the first error */
	struct osd_client_error *error;
};

/* One reading of a file. */
struct reading {
	int fd;
	struct timespec began; /* no later than `before` was taken */
	struct stat before;
	bool is_last; /* what it gives is stored in any case */
};

/* A small file that was read before its turn. */
struct ahead_file {
	struct aside_task task;
	size_t index;    /* of the manifest's entry */
	size_t capacity; /* of `data` */
	int result;      /* 0: all of it is there, and it has not changed meanwhile */
	struct stat status;
	uint8_t sha256[MANIFEST_SHA256_BYTES];
	uint8_t data[];
};

/* Keep the first error; return it. */
int importer_fail(struct importer *importer, const struct osd_client_error *error);
int importer_fail_local(struct importer *importer, int result, const char *path);

/*
 * tree_source.c: opens what has this path in the directory, from the place of the last one, if that
 * is in the same directory. The path stays until there is another place. A descriptor, or a
 * negative errno.
 */
int importer_open_path(const struct importer *importer, struct tree_place *place, const char *path);
void tree_place_leave(struct tree_place *place);

/* The entry takes length, owner, mode and time of its file. */
void importer_take_status(struct importer *importer, struct manifest_entry *entry,
			  const struct stat *status);

/*
 * Opens the entry's file, and takes its status. A descriptor, or a negative errno; -ESTALE: it is
 * no file any more.
 */
int importer_open(struct importer *importer, struct manifest_entry *entry, struct reading *reading);

/* It begins: takes the open file's status. A negative errno if there is none. */
int importer_begin_reading(struct reading *reading);

/* Is the file for sure what it was when this began? */
bool importer_is_unchanged(const struct reading *reading);

/*
 * It has been read, `length` bytes of it, which the entry takes. -EAGAIN: it has changed meanwhile,
 * and is to be read once more. When that was the last time, a warning says so.
 */
int importer_end_reading(struct importer *importer, struct manifest_entry *entry,
			 const struct reading *reading, uint64_t length);

/*
 * Says that a file could not be read, and what becomes of it. 0, or the error if it is none of that
 * file alone; it is kept.
 */
int importer_leave_out(struct importer *importer, struct manifest_entry *entry, int result,
		       const char *consequence);

/* tree_store.c: the same of one that the tree will be without. */
int tree_leave_out(struct importer *importer, struct manifest_entry *entry, int result);

/* Notes in the log that an object's content is stored. */
int importer_log(struct importer *importer, const struct manifest_entry *entry);

/* The values of an entry's attributes; they point into the arguments. */
void tree_encode_complete(const struct manifest_entry *entry,
			  uint8_t complete[TREE_COMPLETE_BYTES]);
struct osd_client_value tree_complete_value(const uint8_t complete[TREE_COMPLETE_BYTES]);
void tree_encode_status(const struct manifest_entry *entry, uint8_t status[TREE_STATUS_BYTES]);
struct osd_client_value tree_status_value(const uint8_t status[TREE_STATUS_BYTES]);
/*
 * USERNAME: the path, for people who list the partition. Length 0, which means none, if the path is
 * too long.
 */
struct osd_client_value tree_username_value(const struct manifest_entry *entry);

/*
 * Stores the file of an entry as a new object, which may still be in flight on return. When it is
 * done, the entry has its object and SHA-256, and the new length of a file that has shrunk.
 */
int tree_store_file(struct importer *importer, size_t index);
/* The same for one that was read ahead. `file` is freed when it is over. */
int tree_store_read(struct importer *importer, struct ahead_file *file);
/* Stores a text. Nothing is in flight on return. */
int tree_store_text(struct importer *importer, const char *text, size_t length,
		    struct manifest_entry *entry);

/*
 * tree_leftovers.c: adds to `found` a file for each object from the ID `first` on that an import
 * has made, with what its attributes say of the file. One that is not complete has the length that
 * it has by now, and no SHA-256.
 */
int tree_find_leftovers(struct importer *importer, uint64_t first, struct manifest *found);

/*
 * tree_unread.c: adds to the new manifest, where the walk could not read, what the present tree
 * (`old`) and an interrupted import (`leftovers`) have stored there, and says so. Directories of
 * which only files are known get mode, owner and time of the one above.
 */
int tree_keep_unread(struct importer *importer, const struct manifest *old,
		     const struct manifest *leftovers);

/*
 * tree_ahead.c: stores all files that have no object yet, in the order of their paths; IDs ascend
 * with it. When it returns, nothing is in flight.
 */
int tree_store_files(struct importer *importer);

/*
 * tree_update.c: finds for entries of the new manifest the objects of the partition's present tree,
 * `old`, or else of an interrupted import, `leftovers`, and gives these the content and attributes
 * of the files. Entries without an object are new. It has two steps, and new files are stored in
 * between: so a full device shows before anything of the present tree is changed.
 */
struct tree_update;
int tree_update_begin(struct importer *importer, const struct manifest *old,
		      const struct manifest *leftovers, struct tree_update **update);
int tree_update_change(struct tree_update *update);
void tree_update_free(struct tree_update *update);

/*
 * tree_match.c: finds for each file of `manifest` the index of the entry of `old` whose object it
 * goes on with. That is the file of the same path, or, as after a rename, one that is no longer
 * there and had this length and time. SIZE_MAX: none. `matches` has space for manifest->count.
 * -ENOMEM.
 */
int tree_match(const struct manifest *manifest, const struct manifest *old, size_t *matches);

#endif
