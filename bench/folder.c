/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Makes and removes folders. */
#include "bench/folder.h"

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int bench_folder_make(const char *parent, char *folder, size_t bytes, struct error_text *error)
{
	char absolute[PATH_MAX];

	folder[0] = '\0';
	if (!realpath(parent, absolute))
		return error_set(error, -errno, "%s: %s", parent, strerror(errno));
	if (strlen(absolute) + sizeof("/muninn-bench-XXXXXX") > bytes)
		return error_set(error, -ENAMETOOLONG, "%s: too long a name", parent);
	snprintf(folder, bytes, "%s/muninn-bench-XXXXXX", absolute);
	if (mkdtemp(folder))
		return 0;
	folder[0] = '\0';
	return error_set(error, -errno, "%s: %s", parent, strerror(errno));
}

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *where)
{
	(void)status;
	(void)kind;
	(void)where;
	return remove(path);
}

void bench_folder_remove(const char *folder)
{
	if (folder[0])
		nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}
