/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The manifest of a directory tree that is stored in a partition: names, modes, times, links, and
 * which object holds which file. It is a text; docs/muninnctl.md describes it byte by byte.
 *
 * A manifest may come from anybody. manifest_parse accepts only trees that can be unpacked into an
 * empty directory without ever leaving it.
 */
#ifndef MUNINN_CLIENT_MANIFEST_H
#define MUNINN_CLIENT_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

#define MANIFEST_SHA256_BYTES 32U
/* The longest manifest that is read: some ten million files. */
#define MANIFEST_BYTES_MAX (UINT64_C(2) << 30)

enum manifest_type {
	MANIFEST_DIRECTORY = 'd',
	MANIFEST_FILE = 'f',
	MANIFEST_SYMLINK = 'l',
	MANIFEST_HARD_LINK = 'h'
};

/* An owner that is not known: of a manifest of version 1. */
#define MANIFEST_NO_OWNER UINT32_MAX

struct manifest_xattr {
	char *name;
	uint8_t *value;
	size_t length;
};

struct manifest_entry {
	enum manifest_type type;
	uint32_t mode;   /* permission bits, 07777; not of hard links and symbolic links */
	int64_t seconds; /* modification time; not of hard links */
	uint32_t nanoseconds;
	uint32_t user, group;          /* not of hard links */
	struct manifest_xattr *xattrs; /* of directories and files, by name; owned */
	size_t xattr_count;
	uint64_t object;                       /* files */
	uint64_t length;                       /* files */
	uint8_t sha256[MANIFEST_SHA256_BYTES]; /* files */
	size_t linked; /* hard links: index of the file's entry, lower than its own */
	char *path;    /* relative, "." for the tree's root; owned */
	char *target;  /* symbolic links; owned */
	bool left_out; /* manifest_take_out removes it */
	bool stays;    /* of an import: the entry is a stored one, its file was not looked at */
};

struct manifest {
	struct manifest_entry *entries;
	size_t count, capacity;
};

void manifest_free(struct manifest *manifest);

/* Appends a zeroed entry; NULL: out of memory. The pointer is good until the next one is added. */
struct manifest_entry *manifest_add(struct manifest *manifest);

/* Adds a copy of an extended attribute to an entry. -ENOMEM. */
int manifest_add_xattr(struct manifest_entry *entry, const char *name, const void *value,
		       size_t length);
/* Do two entries have the same owner, and the same extended attributes? */
bool manifest_same_owner(const struct manifest_entry *a, const struct manifest_entry *b);
bool manifest_same_xattrs(const struct manifest_entry *a, const struct manifest_entry *b);
/*
 * No empty part, no "." or "..", no part of more than 255 bytes. A path that begins with / has an
 * empty part.
 */
bool manifest_path_is_clean(const char *path);
/* Takes the owner and the extended attributes of another entry. -ENOMEM. */
int manifest_copy_owner(struct manifest_entry *to, const struct manifest_entry *from);

/*
 * Removes entries that are left out, and hard links to them. Returns how many of these; SIZE_MAX:
 * no memory.
 */
size_t manifest_take_out(struct manifest *manifest);

/*
 * The same, but a hard link that stays takes the place of its file, and the file's other links are
 * links to it. -ENOMEM.
 */
int manifest_leave_out(struct manifest *manifest);

/*
 * Makes a directory of the tree the root of what is left. A hard link to a file outside takes that
 * file's place. -ENOENT: the tree has no such path; -ENOTDIR: it is no directory; -ENOMEM.
 */
int manifest_take_below(struct manifest *manifest, const char *directory);

/* The text; `*text` is the caller's to free. -ENOMEM. */
int manifest_format(const struct manifest *manifest, char **text, size_t *length);

/*
 * Parses a text and checks all of it: form, checksum, paths (relative, no "." or "..", no empty
 * part, parent an earlier directory, names of at most 255 bytes), links. `manifest` is empty on
 * error. -EBADMSG with a sentence that names the line; -ENOMEM.
 */
int manifest_parse(const char *text, size_t length, struct manifest *manifest,
		   struct error_text *error);

/*
 * Bytes as printable text without blanks: all but letters, digits and ._-+=,:@/~ become %XX. `*to`
 * is the caller's.
 */
int manifest_escape(const char *from, char **to);

/* "d2c7…": 2 * length characters and NUL. */
void manifest_hex(const uint8_t *bytes, size_t length, char *text);

#endif
