/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The file `devices` of the state directory: one path a line, in the order in which they came. */
#include "daemon/known.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"

static void name_list(const char *state_dir, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%s/devices", state_dir);
}

bool known_has(const char *state_dir, const char *image)
{
	char path[PATH_MAX], *line = NULL;
	size_t capacity = 0;
	bool has = false;
	ssize_t length;
	FILE *file;

	name_list(state_dir, path);
	file = fopen(path, "re");
	if (!file)
		return false;
	while (!has && (length = getline(&line, &capacity, file)) > 0) {
		line[strcspn(line, "\n")] = '\0';
		has = strcmp(line, image) == 0;
	}
	free(line);
	fclose(file);
	return has;
}

/* After a last line without its end, as a power loss leaves one, or an editor. */
static bool is_torn(int fd, off_t bytes)
{
	char last = '\n';

	return bytes && pread(fd, &last, 1, bytes - 1) == 1 && last != '\n';
}

/* The whole line or nothing; then it makes it stable: the next start may follow a power loss. */
static int append(const char *path, const char *line)
{
	int fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600), result = 0;
	size_t bytes = strlen(line);
	struct stat before;
	ssize_t written;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &before)) {
		result = -errno;
		close(fd);
		return result;
	}
	/* `line` begins with the end of the line before it. */
	if (!is_torn(fd, before.st_size)) {
		line++;
		bytes--;
	}
	written = write(fd, line, bytes);
	if (written != (ssize_t)bytes)
		result = written < 0 ? -errno : -ENOSPC;
	else if (fdatasync(fd))
		result = -errno;
	if (result && written > 0 && ftruncate(fd, before.st_size))
		result = -errno; /* the next line ends the torn one */
	close(fd);
	return result;
}

void known_add(const char *state_dir, const char *image)
{
	char path[PATH_MAX], line[PATH_MAX + 3];
	int result;

	if (known_has(state_dir, image))
		return;
	name_list(state_dir, path);
	snprintf(line, sizeof(line), "\n%s\n", image);
	result = append(path, line);
	if (result)
		log_line(LOG_LEVEL_WARNING,
			 "%s: %s: a later start will not tell that %s was there, if it is missing "
			 "then",
			 path, strerror(-result), image);
}
