/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Finds the muninnctl that was built with a test program. */
#ifndef MUNINN_TESTS_CLIENT_MUNINNCTL_PATH_H
#define MUNINN_TESTS_CLIENT_MUNINNCTL_PATH_H

#include <libgen.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/*
 * Finds build/bin/muninnctl, or build/VARIANT/bin/muninnctl, from the path of a program in
 * build/tests/VARIANT/FOLDER/. `path` has 4096 bytes.
 */
static inline void muninnctl_path(char *path)
{
	char self[2048], variant[64], build[2048];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

	assert_true(length > 0);
	self[length] = '\0';
	dirname(dirname(self));
	snprintf(variant, sizeof(variant), "%.60s", strrchr(self, '/') + 1);
	snprintf(build, sizeof(build), "%.2000s", dirname(dirname(self)));
	if (strcmp(variant, "release") == 0)
		snprintf(path, 4096, "%s/bin/muninnctl", build);
	else
		snprintf(path, 4096, "%s/%s/bin/muninnctl", build, variant);
	assert_int_equal(access(path, X_OK), 0);
}

#endif
