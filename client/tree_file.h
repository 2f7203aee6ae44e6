/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * A file that an export makes: it is filled under a partial name, gets its status, and then the
 * name it has in the tree. Nothing that exists is followed or overwritten.
 */
#ifndef MUNINN_CLIENT_TREE_FILE_H
#define MUNINN_CLIENT_TREE_FILE_H

#include <limits.h>

#include "client/tree_destination.h"

/* A file that is not whole. */
struct tree_file {
	int fd; /* the caller writes to it */
	char path[PATH_MAX];
};

/* What could not be given to a file or directory: 0, or why not. */
struct tree_lack {
	int owner, xattr;
	const char *xattr_name;
};

/* Under a name that nothing in the tree has. 0 or -errno. */
int tree_file_create(const struct tree_destination *destination, const struct manifest_entry *entry,
		     struct tree_file *file);

/*
 * Closes it. With `result` 0, all is written: it gets its status and its name. Else, or when that
 * fails, it is removed. 0 or the first error.
 */
int tree_file_end(const struct tree_destination *destination, const struct manifest_entry *entry,
		  const struct tree_file *file, int result, struct tree_lack *lack);

/* Owner, mode, extended attributes, and time, as they were stored. 0 or -errno. */
int tree_give_status(int fd, const struct manifest_entry *entry, struct tree_lack *lack);
/* The time alone. */
int tree_give_time(int fd, const struct manifest_entry *entry);

#endif
