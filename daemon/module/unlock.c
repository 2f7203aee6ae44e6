/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
#include "daemon/module/unlock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "engine/engine.h"
#include "nand/left.h"

/* The number in the file; -EINVAL: something else. */
static int read_partition(const char *path, uint64_t *partition)
{
	char text[64], *end;
	ssize_t got;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return -errno;
	got = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (got <= 0)
		return got < 0 ? -errno : -EINVAL;
	text[got] = '\0';
	text[strcspn(text, "\r\n")] = '\0';
	errno = 0;
	*partition = strtoull(text, &end, 0);
	return errno || end == text || *end ? -EINVAL : 0;
}

static int end_lock(struct engine *engine, uint64_t partition)
{
	struct engine_retention retention;
	struct engine_txn *txn;
	int result = engine_begin(engine, ENGINE_RESCUE, &txn);

	if (result)
		return result;
	result = engine_retention_get(txn, partition, &retention);
	retention.locked_until_ms = 0;
	if (!result)
		result = engine_retention_set(txn, partition, &retention, true);
	if (!result)
		return engine_commit(txn, true);
	engine_abort(txn);
	return result;
}

/* For `muninnctl unlock`, which waits for IMAGE.unlock to go. */
static void refuse(const char *image, const char *reason)
{
	char *path = nand_left_path(image, "unlock.refused"), *text = NULL;

	if (!path || asprintf(&text, "%s\n", reason) < 0 || nand_left_put(path, text) < 0)
		log_line(LOG_LEVEL_ERROR, "%s: who wants to end a lock can't be told of it", image);
	free(text);
	free(path);
}

static const char *reason_of(int result)
{
	return result == -EINVAL   ? "it holds no partition ID"
	       : result == -ENOENT ? "there is no such partition"
				   : strerror(-result);
}

void unlock_take(struct engine *engine, const char *image)
{
	char *path = nand_left_path(image, "unlock");
	uint64_t partition = 0;
	int result;

	if (!path || access(path, F_OK) < 0) {
		free(path);
		return;
	}
	result = read_partition(path, &partition);
	if (!result)
		result = end_lock(engine, partition);
	if (result) {
		log_line(LOG_LEVEL_ERROR, "%s: not carried out: %s", path, reason_of(result));
		refuse(image, reason_of(result));
	} else {
		log_line(LOG_LEVEL_WARNING,
			 "%s: the history of partition 0x%" PRIx64
			 " is no longer locked, by the administrator's word",
			 image, partition);
	}
	if (nand_left_remove(path) < 0)
		log_line(LOG_LEVEL_ERROR, "%s can't be removed: %s", path, strerror(errno));
	free(path);
}
