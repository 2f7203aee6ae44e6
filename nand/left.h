/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Small files beside an image, by which one process leaves a word to another. Private to nand/. */
#ifndef MUNINN_NAND_LEFT_H
#define MUNINN_NAND_LEFT_H

/* IMAGE.NAME; the caller frees it. NULL: no memory. */
char *nand_left_path(const char *image, const char *name);

/* Puts `text` into a file, which is there whole or not at all, on the host's storage. -errno. */
int nand_left_put(const char *path, const char *text);

/* Removes a file for good. -errno. */
int nand_left_remove(const char *path);

#endif
