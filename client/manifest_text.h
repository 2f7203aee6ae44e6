/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What writing and reading a manifest's text share. */
#ifndef MUNINN_CLIENT_MANIFEST_TEXT_H
#define MUNINN_CLIENT_MANIFEST_TEXT_H

#include <stdbool.h>

#define MANIFEST_FIRST_LINE "muninn-tree 2\n"
/* Without owners and extended attributes; it is still read. */
#define MANIFEST_FIRST_LINE_1 "muninn-tree 1\n"
#define MANIFEST_LAST_WORD    "end"

/* Does this byte of a path or link target stand for itself? */
bool manifest_plain(unsigned char c);

#endif
