/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The thread that backs a device up while it serves. */
#include "daemon/module/backup.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/thread.h"
#include "daemon/module/device.h"
#include "engine/engine.h"
#include "nand/image_copy.h"

/* Linux's name for it stands in a header that does not go with the C library's. */
#ifndef SIOCOUTQ
#define SIOCOUTQ TIOCOUTQ
#endif

#define TELL_US      100000
#define PAUSE_MS_MAX 500
#define LAST_WORD_S  5 /* until the listener has space for it */

struct backup {
	pthread_t thread;
	const struct device *device;
	struct nand *nand;
	struct engine *engine;
	int fds[BACKUP_FILES];
	bool ends; /* atomic: the device closes */
	bool over; /* atomic */
	uint64_t told_us;
};

/* ---- the listener ---- */

static void tell(const struct backup *backup, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static void tell(const struct backup *backup, const char *format, ...)
{
	char line[BACKUP_LINE_BYTES];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	/* If nobody hears it, is_wanted notices. */
	(void)send(backup->fds[BACKUP_LISTENER], line, strlen(line), MSG_NOSIGNAL);
}

/* Now and then, and only when he has heard the last one. */
static void tell_progress(struct backup *backup, struct nand_image_copy *copy)
{
	uint64_t now_us = clock_microseconds(), done, total;
	int unheard = 0;

	if (now_us - backup->told_us < TELL_US ||
	    ioctl(backup->fds[BACKUP_LISTENER], SIOCOUTQ, &unheard) || unheard)
		return;
	backup->told_us = now_us;
	nand_image_copy_progress(copy, &done, &total);
	tell(backup, "copied %" PRIu64 " %" PRIu64, done, total);
}

/* He says nothing; if there is something to read, it is that he has gone. */
static int check_wanted(const struct backup *backup, struct error_text *error)
{
	struct pollfd listener = { .fd = backup->fds[BACKUP_LISTENER], .events = POLLIN };

	if (__atomic_load_n(&backup->ends, __ATOMIC_ACQUIRE))
		return error_set(error, -ESHUTDOWN,
				 "the device is closed: its units were removed, or the service "
				 "stops");
	if (poll(&listener, 1, 0) > 0)
		return error_set(error, -ECANCELED, "who asked for the backup has gone");
	return 0;
}

/* ---- copying ---- */

/* As long as others use the device, it copies half of the time. */
static void leave_time(const struct backup *backup, struct nand_image_copy *copy, uint64_t began_us,
		       uint64_t moved)
{
	uint64_t took_ms = (clock_microseconds() - began_us) / 1000;

	if (took_ms && device_pages_moved(backup->device) != moved)
		nand_image_copy_pause(copy, (uint32_t)min_u64(took_ms, PAUSE_MS_MAX));
}

static int copy_on(struct backup *backup, struct nand_image_copy *copy, struct error_text *error)
{
	int result;

	do {
		uint64_t began_us = clock_microseconds();
		uint64_t moved = device_pages_moved(backup->device);

		result = check_wanted(backup, error);
		if (!result)
			result = nand_image_copy_step(copy, error);
		tell_progress(backup, copy);
		if (result > 0)
			leave_time(backup, copy, began_us, moved);
	} while (result > 0);
	return result;
}

static int make_copy(struct backup *backup, uint64_t *held_us, uint64_t *bytes,
		     struct error_text *error)
{
	struct nand_image_copy *copy;
	uint64_t total;
	int result = nand_image_copy_open(backup->nand, backup->fds[BACKUP_IMAGE],
					  backup->fds[BACKUP_NVRAM], NULL, &copy, error);

	if (result)
		return result;
	result = engine_begin_copy(backup->engine, copy, held_us);
	if (result) {
		error_set(error, result, "the device can't be copied: %s", strerror(-result));
	} else {
		tell(backup, "instant %" PRIu64, *held_us);
		result = copy_on(backup, copy, error);
	}
	nand_image_copy_progress(copy, bytes, &total);
	nand_image_copy_close(copy);
	return result;
}

/* The log says it, too: the listener may be gone. */
static void tell_end(const struct backup *backup, int result, uint64_t held_us, uint64_t bytes,
		     const struct error_text *error)
{
	const char *path = nand_path(backup->nand);

	if (result) {
		log_line(result == -ECANCELED || result == -ESHUTDOWN ? LOG_LEVEL_INFO
								      : LOG_LEVEL_WARNING,
			 "%s: the backup has ended without a copy: %s", path, error->text);
		tell(backup, "failed %d %s", -result, error->text);
		return;
	}
	log_line(LOG_LEVEL_INFO,
		 "%s: a backup is complete: %" PRIu64 " bytes; commands waited %" PRIu64
		 " us for its instant",
		 path, bytes, held_us);
	tell(backup, "done %" PRIu64, bytes);
}

static void *back_up(void *context)
{
	struct backup *backup = context;
	struct error_text error = { "" };
	uint64_t held_us = 0, bytes = 0;
	int result = make_copy(backup, &held_us, &bytes, &error);

	tell_end(backup, result, held_us, bytes, &error);
	for (int i = 0; i < BACKUP_FILES; i++)
		close(backup->fds[i]);
	__atomic_store_n(&backup->over, true, __ATOMIC_RELEASE);
	return NULL;
}

/* ---- its life ---- */

int backup_begin(const struct device *device, struct nand *nand, struct engine *engine,
		 const int fds[BACKUP_FILES], struct backup **backup, struct error_text *error)
{
	const struct timeval last_word = { .tv_sec = LAST_WORD_S };
	struct backup *new = calloc(1, sizeof(*new));
	int result;

	if (!new)
		return error_set(error, -ENOMEM, "out of memory");
	*new = (struct backup){ .device = device, .nand = nand, .engine = engine };
	memcpy(new->fds, fds, sizeof(new->fds));
	if (setsockopt(fds[BACKUP_LISTENER], SOL_SOCKET, SO_SNDTIMEO, &last_word,
		       sizeof(last_word))) {
		free(new);
		return error_set(error, -EINVAL, "a backup needs a socket to tell how far it is");
	}
	result = thread_start(&new->thread, "muninn-backup", back_up, new);
	if (result) {
		free(new);
		return error_set(error, result, "no thread can be started: %s", strerror(-result));
	}
	*backup = new;
	return 0;
}

bool backup_is_over(const struct backup *backup)
{
	return __atomic_load_n(&backup->over, __ATOMIC_ACQUIRE);
}

void backup_end(struct backup *backup)
{
	if (!backup)
		return;
	__atomic_store_n(&backup->ends, true, __ATOMIC_RELEASE);
	pthread_join(backup->thread, NULL);
	free(backup);
}
