/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What differs between two trees, as far as manifests tell: names, modes, times, links. The target
 * compares contents.
 */
#ifndef MUNINN_CLIENT_TREE_DIFF_H
#define MUNINN_CLIENT_TREE_DIFF_H

#include "client/tree.h"

/* A stored tree and its names by object. All zero: none. */
struct tree_names {
	struct manifest manifest;
	uint64_t manifest_object; /* 0: there is no tree */
	struct tree_name {
		uint64_t object;
		const char *path;
		const struct manifest_entry
			*file; /* the name's own, or the one that it is a hard link to */
	} * names;             /* of files, by object, then path */
	size_t count;
};

/*
 * Reads the tree of a partition, at a version if wanted. -ENODATA: there is none; -EINPROGRESS: a
 * half updated one; -EBADMSG; -ENOMEM. `names` is empty on error.
 */
int tree_names_load(struct osd_client *client, struct osd_client_address partition,
		    struct tree_names *names, struct osd_client_error *error);
/* The index of a manifest, which it takes over also on error. -ENOMEM. */
int tree_names_of(struct manifest *manifest, uint64_t manifest_object, struct tree_names *names);
void tree_names_free(struct tree_names *names);

/* The first name of an object; NULL: the tree does not have it. */
const struct tree_name *tree_names_find(const struct tree_names *names, uint64_t object);

/*
 * Do the manifests show that the object's attributes must differ: other content, mode, time,
 * owner or name?
 */
bool tree_names_explain(const struct tree_names *from, const struct tree_names *to,
			uint64_t object);

enum tree_difference_kind {
	/* Of a file that is in both trees. */
	TREE_RENAMED, /* from_path to to_path */
	TREE_LINKED,  /* to_path is one more name of it; also of a new file: all names but the first
		       */
	TREE_UNLINKED, /* from_path is none any more; also of a removed file */
	/* Of whatever is in both. */
	TREE_MODE,
	TREE_TIME,
	TREE_OWNER,
	TREE_XATTRS, /* extended attributes */
	TREE_TARGET, /* of a symbolic link */
	/* Of directories and symbolic links. */
	TREE_ADDED,
	TREE_REMOVED,
};

struct tree_difference {
	enum tree_difference_kind kind;
	uint64_t object;                        /* of files; else 0 */
	const struct manifest_entry *from, *to; /* NULL: not there */
	const char *from_path, *to_path;
};

/*
 * Files by object, then directories and links by path. A result other than 0 of `each` ends it and
 * is returned. -ENOMEM.
 */
typedef int tree_each_difference(void *context, const struct tree_difference *difference);
int tree_compare(const struct tree_names *from, const struct tree_names *to,
		 tree_each_difference *each, void *context);

#endif
