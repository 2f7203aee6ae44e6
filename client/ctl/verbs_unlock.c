/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* unlock: the administrator's word that ends a lock, left beside the image for the daemon, which answers there. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/ctl/ctl.h"
#include "client/ctl/nand.h"
#include "engine/engine.h"
#include "nand/left.h"
#include "nand/nand.h"

enum {
	LOOK_MS = 20,
	ANSWER_MS = 10000, /* the daemon looks twice a second; its flash may be busy */
};

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

static int report(struct ctl *ctl, uint64_t partition)
{
	if (ctl->options->json)
		return ctl_print_json(stdout,
				      json_pack("{s:o}", "unlocks", ctl_json_id(partition)));
	return CTL_OK;
}

/* The word is there; what becomes of it? */
static int await_answer(struct ctl *ctl, const char *word, const char *refusal, uint64_t partition)
{
	long holder = nand_image_holder(ctl->url);
	char reason[128];

	if (holder <= 0) {
		ctl_warn("no daemon has the image open: the lock ends when one does, and its log "
			 "says so, or that there is no such partition");
		return report(ctl, partition);
	}
	if (!wait_for_daemon(word))
		return ctl_fail(ctl, CTL_TARGET,
				"unlock: process %ld, which has the image open, has not taken %s "
				"up; its log may say why, and it still may do so",
				holder, word);
	if (take_refusal(refusal, reason, sizeof(reason)))
		return ctl_fail(ctl, CTL_NOT_FOUND, "unlock: partition 0x%" PRIx64 ": %s",
				partition, reason);
	return report(ctl, partition);
}

int verb_unlock(struct ctl *ctl)
{
	char text[32], *word, *refusal;
	uint64_t partition;
	int result, code;

	if (ctl_parse_number(ctl->arguments[0], ENGINE_LAST_PARTITION_ID, &partition) < 0 ||
	    (partition != 0 && partition < OSD_FIRST_ID))
		return ctl_fail(ctl, CTL_USAGE,
				"unlock: '%s' is no partition ID; they begin at 0x10000, and 0 is "
				"the device",
				ctl->arguments[0]);
	code = nand_tool_check(ctl, ctl->url);
	if (code != CTL_OK)
		return code;
	word = nand_left_path(ctl->url, "unlock");
	refusal = nand_left_path(ctl->url, "unlock.refused");
	snprintf(text, sizeof(text), "0x%" PRIx64 "\n", partition);
	result = word && refusal ? 0 : -ENOMEM;
	/* One that nobody has waited for. */
	if (result == 0)
		nand_left_remove(refusal);
	if (result == 0)
		result = nand_left_put(word, text);
	code = result < 0 ? ctl_fail(ctl, nand_tool_exit(result), "%s: %s", word ? word : ctl->url,
				     strerror(-result))
			  : await_answer(ctl, word, refusal, partition);
	free(word);
	free(refusal);
	return code;
}
