/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Extended attributes of files and directories, which ACLs and capabilities are, too. Those of a
 * host's own policies, as SELinux' labels, are not kept: they mean nothing elsewhere.
 */
#include "client/tree_xattr.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

#define NAMES_BYTES_MAX 65536 /* of all of a file: the kernel's XATTR_LIST_MAX */
#define VALUE_BYTES_MAX 65536 /* of one: XATTR_SIZE_MAX */

static bool is_kept(const char *name)
{
	static const char *const beginnings[] = { "user.", "trusted.", "system.posix_acl_",
						  "security.capability" };

	for (size_t i = 0; i < sizeof(beginnings) / sizeof(beginnings[0]); i++)
		if (strncmp(name, beginnings[i], strlen(beginnings[i])) == 0)
			return true;
	return false;
}

static int compare_names(const void *a, const void *b)
{
	const struct manifest_xattr *left = a, *right = b;

	return strcmp(left->name, right->name);
}

/* One that is gone meanwhile is none. */
static int read_one(const char *path, const char *name, struct manifest_entry *entry)
{
	ssize_t length = lgetxattr(path, name, NULL, 0);
	void *value;
	int result;

	if (length < 0)
		return errno == ENODATA ? 0 : -errno;
	/* It may grow meanwhile. */
	value = malloc(VALUE_BYTES_MAX);
	if (!value)
		return -ENOMEM;
	length = lgetxattr(path, name, value, VALUE_BYTES_MAX);
	if (length < 0)
		result = errno == ENODATA ? 0 : -errno;
	else
		result = manifest_add_xattr(entry, name, value, (size_t)length);
	free(value);
	return result;
}

int tree_xattrs_read(const char *path, struct manifest_entry *entry)
{
	char few[1024], *names = few;
	ssize_t length = llistxattr(path, few, sizeof(few));
	int result = 0;

	if (length < 0 && errno == ERANGE) {
		names = malloc(NAMES_BYTES_MAX);
		if (!names)
			return -ENOMEM;
		length = llistxattr(path, names, NAMES_BYTES_MAX);
	}
	if (length < 0)
		result = errno == ENOTSUP ? 0 : -errno;
	for (const char *name = names; result == 0 && name < names + length;
	     name += strlen(name) + 1)
		if (is_kept(name))
			result = read_one(path, name, entry);
	if (names != few)
		free(names);
	if (result == 0 && entry->xattr_count > 1)
		qsort(entry->xattrs, entry->xattr_count, sizeof(*entry->xattrs), compare_names);
	return result;
}

int tree_xattrs_write(int fd, const struct manifest_entry *entry, const char **name)
{
	for (size_t i = 0; i < entry->xattr_count; i++) {
		const struct manifest_xattr *xattr = &entry->xattrs[i];

		*name = xattr->name;
		if (is_kept(xattr->name) &&
		    fsetxattr(fd, xattr->name, xattr->value, xattr->length, 0) < 0)
			return -errno;
	}
	return 0;
}
