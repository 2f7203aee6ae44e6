/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Extended attributes of files and directories, which ACLs and capabilities are, too. */
#ifndef MUNINN_CLIENT_TREE_XATTR_H
#define MUNINN_CLIENT_TREE_XATTR_H

#include "client/manifest.h"

/*
 * Puts those of a file or directory, which is no symbolic link, into its entry, by name. A file
 * system without any has none. 0 or a negative errno; -ENOMEM.
 */
int tree_xattrs_read(const char *path, struct manifest_entry *entry);

/*
 * Gives them to a file or directory. *name: the one that could not be given, with a negative errno.
 * Names that tree_xattrs_read does not keep are passed over.
 */
int tree_xattrs_write(int fd, const struct manifest_entry *entry, const char **name);

#endif
