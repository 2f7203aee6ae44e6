/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Leaves an instruction beside an image for the daemon that has it open, and waits for the answer.
 */
#include "client/ctl/instruction.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/ctl/nand.h"
#include "nand/left.h"

enum {
	LOOK_MS = 20,
	ANSWER_MS = 10000, /* the daemon looks twice a second; its flash may be busy */
};

long instruction_holder(struct ctl *ctl, int *code)
{
	*code = nand_tool_check(ctl, ctl->url);
	return *code == CTL_OK ? nand_image_holder(ctl->url) : 0;
}

/* Waits until the daemon has removed the file. False: it has not, in time. */
static bool wait_for_daemon(const char *path)
{
	for (int waited = 0; access(path, F_OK) == 0; waited += LOOK_MS) {
		if (waited >= ANSWER_MS)
			return false;
		poll(NULL, 0, LOOK_MS);
	}
	return true;
}

/* The first line of a file. False: there is no such file. */
static bool read_line(const char *path, char *line, size_t capacity)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got;

	if (fd < 0)
		return false;
	got = read(fd, line, capacity - 1);
	close(fd);
	line[got > 0 ? got : 0] = '\0';
	line[strcspn(line, "\n")] = '\0';
	return true;
}

/* Reads why the daemon refused, and removes that file. False: it did not refuse. */
static bool take_refusal(const char *path, char *reason, size_t capacity)
{
	if (!read_line(path, reason, capacity))
		return false;
	nand_left_remove(path);
	return true;
}

/* Whether another instruction waits for the next daemon, whose place this one would take. */
static bool is_taken(const char *path, const char *text)
{
	char waiting[128];

	return read_line(path, waiting, sizeof(waiting)) &&
	       (strncmp(text, waiting, strlen(waiting)) != 0 || text[strlen(waiting)] != '\n');
}

int instruction_leave(struct ctl *ctl, const char *name, const char *text, long holder,
		      enum ctl_exit refused, const char *subject)
{
	char *path = nand_left_path(ctl->url, name);
	char *refusal = path ? nand_left_path(path, "refused") : NULL, reason[128];
	int result = refusal ? 0 : -ENOMEM, code = CTL_OK;
	bool taken;

	/* A refusal that nobody has waited for. */
	if (result == 0)
		nand_left_remove(refusal);
	taken = result == 0 && holder <= 0 && is_taken(path, text);
	if (result == 0 && !taken)
		result = nand_left_put(path, text);
	if (taken)
		code = ctl_fail(
			ctl, CTL_EXISTS,
			"%s: %s: %s is there already, and waits for the service with "
			"something else: start the service, then repeat this; or remove the "
			"file to take that back",
			name, subject, path);
	else if (result < 0)
		code = ctl_fail(ctl, nand_tool_exit(result), "%s: %s", path ? path : ctl->url,
				strerror(-result));
	else if (holder > 0 && !wait_for_daemon(path))
		code = ctl_fail(ctl, CTL_TARGET,
				"%s: process %ld, which has the image open, has not looked at %s; "
				"its log may say why; it may still carry it out",
				name, holder, path);
	else if (holder > 0 && take_refusal(refusal, reason, sizeof(reason)))
		code = ctl_fail(ctl, refused, "%s: %s: %s", name, subject, reason);
	free(path);
	free(refusal);
	return code;
}
