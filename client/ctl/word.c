/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Leaves a word beside an image for the daemon that has it open, and waits for the answer. */
#include "client/ctl/word.h"

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

long word_holder(struct ctl *ctl, int *code)
{
	*code = nand_tool_check(ctl, ctl->url);
	return *code == CTL_OK ? nand_image_holder(ctl->url) : 0;
}

/* Waits until the daemon has taken the word up. False: it has not, in time. */
static bool wait_for_daemon(const char *word)
{
	for (int waited = 0; access(word, F_OK) == 0; waited += LOOK_MS) {
		if (waited >= ANSWER_MS)
			return false;
		poll(NULL, 0, LOOK_MS);
	}
	return true;
}

/* Why the daemon refused, and forgets that; false: it has not. */
static bool take_refusal(const char *path, char *reason, size_t capacity)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got;

	if (fd < 0)
		return false;
	got = read(fd, reason, capacity - 1);
	close(fd);
	nand_left_remove(path);
	reason[got > 0 ? got : 0] = '\0';
	reason[strcspn(reason, "\n")] = '\0';
	return true;
}

int word_leave(struct ctl *ctl, const char *name, const char *text, long holder,
	       enum ctl_exit refused, const char *subject)
{
	char *word = nand_left_path(ctl->url, name);
	char *refusal = word ? nand_left_path(word, "refused") : NULL, reason[128];
	int result = refusal ? 0 : -ENOMEM, code = CTL_OK;

	/* One that nobody has waited for. */
	if (result == 0)
		nand_left_remove(refusal);
	if (result == 0)
		result = nand_left_put(word, text);
	if (result < 0)
		code = ctl_fail(ctl, nand_tool_exit(result), "%s: %s", word ? word : ctl->url,
				strerror(-result));
	else if (holder > 0 && !wait_for_daemon(word))
		code = ctl_fail(ctl, CTL_TARGET,
				"%s: process %ld, which has the image open, has not taken %s "
				"up; its log may say why, and it still may do so",
				name, holder, word);
	else if (holder > 0 && take_refusal(refusal, reason, sizeof(reason)))
		code = ctl_fail(ctl, refused, "%s: %s: %s", name, subject, reason);
	free(word);
	free(refusal);
	return code;
}
