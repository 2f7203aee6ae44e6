/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* ls of a path. */
#ifndef MUNINN_CLIENT_CTL_LIST_TREE_H
#define MUNINN_CLIENT_CTL_LIST_TREE_H

#include "client/ctl/places.h"

/* What is in the directory at a place of a tree, or the file there, one a line. An exit code. */
int list_tree(struct ctl *ctl, const struct ctl_place *place);

#endif
