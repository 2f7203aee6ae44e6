/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The directory that an export fills. While it does, a file in there, the marker, says which tree
 * it is. So the same export goes on after it was interrupted, and no other one does.
 */
#ifndef MUNINN_CLIENT_TREE_DESTINATION_H
#define MUNINN_CLIENT_TREE_DESTINATION_H

#include <limits.h>

#include "client/tree_private.h"

/* The ending of names of files that are not whole. */
#define TREE_PARTIAL ".partial"

struct tree_destination {
	const struct osd_client *client;
	const char *directory;
	const struct manifest *manifest; /* of the tree, or what of it is exported */
	int root;                        /* directory descriptor; -1: not open */
	size_t name_max;                 /* bytes of a name in that file system */
	int marker;                      /* locked as long as it is open; -1: there is none */
	char marker_name[NAME_MAX + 1];
	bool resumes; /* an export of this tree was interrupted here */
};

/* PATH.partial, or PATH.NUMBER.partial. A long name loses its end. */
void tree_partial_name(const char *path, size_t number, char partial[PATH_MAX]);
/* Could this be such a name? */
bool tree_is_partial(const char *path);

/* Makes the directory, or opens it. */
int tree_destination_open(struct tree_destination *destination, struct osd_client_error *error);

/*
 * How many bytes of the entry's path are too long for the file system there, up to the end of a
 * name; 0: the entry can be made. Fewer than the path has: that is so of a directory above it.
 */
size_t tree_destination_too_long(const struct tree_destination *destination,
				 const struct manifest_entry *entry);

/*
 * Begins in a directory that is empty, or goes on in one that has a marker for this tree: removes
 * files that are not whole. `below`: NULL, or which directory of the tree it is. -ENOTEMPTY;
 * -EBUSY: an export into it runs.
 */
int tree_destination_begin(struct tree_destination *destination, const struct tree_pointer *tree,
			   const char *below, struct osd_client_error *error);

/*
 * Is a file there, with the content of the entry? 1; 0: there is none, or there is none any more,
 * because it was torn. -EEXIST: it is another one, which the export has not made.
 */
int tree_destination_has(const struct tree_destination *destination, const char *path,
			 const struct manifest_entry *entry);

/* Everything is there: takes the marker away, which changes the time of the directory. */
int tree_destination_finish(struct tree_destination *destination);

/* In any case. Takes the marker away if there is nothing else. */
void tree_destination_close(struct tree_destination *destination);

#endif
