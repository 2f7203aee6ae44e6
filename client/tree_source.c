/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The files of the directory that an import reads. Others may change or remove them meanwhile, and
 * some may not be read. One such file does not end an import: it is read once more, or left out,
 * and muninnctl says so.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "client/tree_store.h"

/*
 * The clock of files goes on in steps; most kernels make 100 to 1000 a second. Who writes twice in
 * one step leaves the time as it was. That is not seen where times are coarser, as with FAT.
 */
#define STEP_NS_MAX 20000000

static void warn(struct importer *importer, const struct manifest_entry *entry, const char *what)
{
	struct error_text sentence;

	if (!importer->options->warn)
		return;
	error_set(&sentence, 0, "%s/%s: %s", importer->directory, entry->path, what);
	importer->options->warn(importer->options->context, sentence.text);
}

void tree_place_leave(struct tree_place *place)
{
	if (place->is_open)
		close(place->fd);
	place->is_open = false;
}

/* To the directory of the first `length` bytes of a path. */
static int go_to(const struct importer *importer, struct tree_place *place, const char *path,
		 size_t length)
{
	char *whole;
	int fd;

	tree_place_leave(place);
	if (asprintf(&whole, "%s/%.*s", importer->directory, (int)length, path) < 0)
		return -ENOMEM;
	fd = open(whole, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		fd = -errno;
	free(whole);
	if (fd < 0)
		return fd;
	*place = (struct tree_place){ .is_open = true, .fd = fd, .path = path, .length = length };
	return 0;
}

int importer_open_path(const struct importer *importer, struct tree_place *place, const char *path)
{
	const char *slash = strrchr(path, '/');
	size_t length = slash ? (size_t)(slash - path) : 0;
	int result = 0, fd;

	if (!place->is_open || place->length != length || memcmp(place->path, path, length) != 0)
		result = go_to(importer, place, path, length);
	if (result < 0)
		return result;
	/* What was a file may be a pipe now, for which nobody waits. */
	fd = openat(place->fd, slash ? slash + 1 : path,
		    O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

void importer_take_status(struct importer *importer, struct manifest_entry *entry,
			  const struct stat *status)
{
	importer->report->bytes += (uint64_t)status->st_size - entry->length;
	entry->length = (uint64_t)status->st_size;
	entry->mode = status->st_mode & 07777;
	entry->user = status->st_uid;
	entry->group = status->st_gid;
	entry->seconds = status->st_mtim.tv_sec;
	entry->nanoseconds = (uint32_t)status->st_mtim.tv_nsec;
}

int importer_begin_reading(struct reading *reading)
{
	clock_gettime(CLOCK_REALTIME, &reading->began);
	return fstat(reading->fd, &reading->before) < 0 ? -errno : 0;
}

static int64_t nanoseconds_between(const struct timespec *from, const struct timespec *to)
{
	return ((int64_t)to->tv_sec - from->tv_sec) * 1000000000 + to->tv_nsec - from->tv_nsec;
}

/* Until the next write surely changes the file's time. False: it would have done so anyway. */
static bool wait_for_its_time(const struct reading *reading)
{
	int64_t age = nanoseconds_between(&reading->before.st_mtim, &reading->began);
	struct timespec rest = { .tv_nsec = STEP_NS_MAX + 1 - age };

	if (age > STEP_NS_MAX || age < -STEP_NS_MAX)
		return false;
	while (nanosleep(&rest, &rest) < 0 && errno == EINTR)
		;
	return true;
}

int importer_open(struct importer *importer, struct manifest_entry *entry, struct reading *reading)
{
	int result;

	reading->fd = importer_open_path(importer, &importer->place, entry->path);
	if (reading->fd < 0)
		return reading->fd;
	result = importer_begin_reading(reading);
	if (result == 0 && wait_for_its_time(reading))
		result = importer_begin_reading(reading);
	if (result == 0 && !S_ISREG(reading->before.st_mode))
		result = -ESTALE;
	if (result < 0) {
		close(reading->fd);
		return result;
	}
	importer_take_status(importer, entry, &reading->before);
	return reading->fd;
}

bool importer_is_unchanged(const struct reading *reading)
{
	const struct stat *before = &reading->before;
	struct timespec ended;
	struct stat now;

	if (fstat(reading->fd, &now) < 0 || now.st_size != before->st_size ||
	    nanoseconds_between(&now.st_mtim, &before->st_mtim) != 0)
		return false;
	clock_gettime(CLOCK_REALTIME, &ended);
	return nanoseconds_between(&before->st_mtim, &reading->began) > STEP_NS_MAX ||
	       nanoseconds_between(&ended, &before->st_mtim) > 0;
}

int importer_end_reading(struct importer *importer, struct manifest_entry *entry,
			 const struct reading *reading, uint64_t length)
{
	if (!importer_is_unchanged(reading)) {
		if (!reading->is_last)
			return -EAGAIN;
		importer->report->torn++;
		warn(importer, entry,
		     "it changed while it was read, twice; what is stored may be a mixture of old "
		     "and new");
	}
	importer->report->bytes += length - entry->length;
	entry->length = length;
	return 0;
}

bool tree_concerns_all(int result)
{
	return result == -ENOMEM || result == -EMFILE || result == -ENFILE;
}

int importer_leave_out(struct importer *importer, struct manifest_entry *entry, int result,
		       const char *consequence)
{
	char what[256];

	if (tree_concerns_all(result))
		return importer_fail_local(importer, result, entry->path);
	snprintf(what, sizeof(what), "%s; %s",
		 result == -ESTALE ? "it is no file any more" : strerror(-result), consequence);
	warn(importer, entry, what);
	importer->report->left_out++;
	return 0;
}
