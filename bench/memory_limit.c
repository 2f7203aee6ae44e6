/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Makes a control group of the kernel's memory controller. */
#include "bench/memory_limit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Where each version has its groups, and the file of the limit. */
static const struct {
	const char *folder, *limit;
} versions[] = {
	{ "/sys/fs/cgroup/memory", "memory.limit_in_bytes" },
	{ "/sys/fs/cgroup", "memory.max" },
};

static int write_number(const char *group, const char *name, uint64_t number)
{
	char path[PATH_MAX + 64], text[32];
	int length = snprintf(text, sizeof(text), "%llu\n", (unsigned long long)number);
	int fd, result = 0;

	snprintf(path, sizeof(path), "%s/%s", group, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, text, (size_t)length) != length)
		result = -errno;
	close(fd);
	return result;
}

int bench_memory_limit_begin(struct bench_memory_limit *limit, uint64_t bytes,
			     struct error_text *error)
{
	int result = -ENOENT;

	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		snprintf(limit->group, sizeof(limit->group), "%s/muninn-bench-%d",
			 versions[i].folder, (int)getpid());
		if (mkdir(limit->group, 0755) < 0) {
			result = -errno;
			continue;
		}
		result = write_number(limit->group, versions[i].limit, bytes);
		if (!result)
			return 0;
		rmdir(limit->group);
	}
	limit->group[0] = '\0';
	return error_set(error, result, "no control group with a limit of memory can be made: %s",
			 strerror(-result));
}

int bench_memory_limit_enter(const struct bench_memory_limit *limit)
{
	return limit->group[0] ? write_number(limit->group, "cgroup.procs", (uint64_t)getpid()) : 0;
}

void bench_memory_limit_end(struct bench_memory_limit *limit)
{
	if (limit->group[0])
		rmdir(limit->group);
	limit->group[0] = '\0';
}
