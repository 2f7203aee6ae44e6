/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What the verbs `nand …` share: they read image files of this host and need no target. */
#ifndef MUNINN_CLIENT_CTL_NAND_H
#define MUNINN_CLIENT_CTL_NAND_H

#include <stdio.h>

#include "client/ctl/ctl.h"
#include "nand/inspect.h"
#include "nand/nand.h"

/*
 * Opens for reading only. Warns on stderr if a process has it open for writing. CTL_OK or, with a
 * message, why not.
 */
int nand_tool_open(const struct ctl *ctl, const char *path, struct nand **nand);

/* Is there an image? CTL_OK or, with a message, why not. */
int nand_tool_check(const struct ctl *ctl, const char *path);

/* The exit code for an error of nand/. */
enum ctl_exit nand_tool_exit(int result);

/* Are colours wanted? Not in files and pipes, and not with NO_COLOR set (no-color.org). */
bool nand_tool_colours(void);

/* Opens the file of --svg. NULL, with a message: it can't be written. */
FILE *nand_tool_svg(const struct ctl *ctl);
/* Ends it: CTL_OK, or CTL_LOCAL with a message. */
int nand_tool_svg_end(const struct ctl *ctl, FILE *svg);

#endif
