/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Finds the allocator's library. */
#include "daemon/allocator.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZERS = 1 };
#else
enum { SANITIZERS = 0 };
#endif

#define JEMALLOC "libjemalloc.so.2"

/* In the folder of the C library, which is right for this processor and this distribution. */
static bool find_jemalloc(char library[PATH_MAX])
{
	/* Hosts whose /lib is not /usr/lib have only what starts them in the first. */
	static const char *const roots[] = { "", "/usr" };
	Dl_info libc;
	const char *end;

	if (!dladdr((void *)(uintptr_t)abort, &libc) || !libc.dli_fname ||
	    !(end = strrchr(libc.dli_fname, '/')))
		return false;
	for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++) {
		snprintf(library, PATH_MAX, "%s%.*s/" JEMALLOC, roots[i],
			 (int)(end - libc.dli_fname), libc.dli_fname);
		if (access(library, R_OK) == 0)
			return true;
	}
	return false;
}

int allocator_find(const char *configured, char library[PATH_MAX], struct error_text *error)
{
	library[0] = '\0';
	if (SANITIZERS || strcmp(configured, ALLOCATOR_SYSTEM) == 0)
		return 0;
	if (strcmp(configured, ALLOCATOR_JEMALLOC) != 0) {
		if (access(configured, R_OK))
			return error_set(error, -errno, "allocator %s: %s", configured,
					 strerror(errno));
		snprintf(library, PATH_MAX, "%s", configured);
		return 0;
	}
	if (!find_jemalloc(library)) {
		library[0] = '\0';
		log_line(LOG_LEVEL_WARNING,
			 "jemalloc is not installed, so tgtd uses the C library's allocator: "
			 "install the package libjemalloc2, or set allocator = system");
	}
	return 0;
}
