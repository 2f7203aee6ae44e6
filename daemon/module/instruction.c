/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Reads and answers the instructions that an administrator leaves beside an image. */
#include "daemon/module/instruction.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "nand/left.h"

static int read_number(const char *path, uint64_t *number)
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
	*number = strtoull(text, &end, 0);
	return errno || end == text || *end ? -EINVAL : 0;
}

int instruction_read(const char *image, const char *name, uint64_t *number)
{
	char *path = nand_left_path(image, name);
	int result = path ? read_number(path, number) : -ENOMEM;

	free(path);
	return result;
}

/* Logs the reason, and leaves it beside the instruction. */
static void refuse(const char *path, const char *reason)
{
	char *refused = nand_left_path(path, "refused"), *text = NULL;

	log_line(LOG_LEVEL_ERROR, "%s: not carried out: %s", path, reason);
	if (!refused || asprintf(&text, "%s\n", reason) < 0 || nand_left_put(refused, text) < 0)
		log_line(LOG_LEVEL_ERROR,
			 "%s: cannot tell the waiting muninnctl, which will say that it was done",
			 path);
	free(text);
	free(refused);
}

void instruction_answer(const char *image, const char *name, const char *refusal)
{
	char *path = nand_left_path(image, name);

	if (!path) {
		log_line(LOG_LEVEL_ERROR, "%s.%s can't be removed: no memory", image, name);
		return;
	}
	if (refusal)
		refuse(path, refusal);
	if (nand_left_remove(path) < 0)
		log_line(LOG_LEVEL_ERROR, "%s can't be removed: %s", path, strerror(errno));
	free(path);
}
