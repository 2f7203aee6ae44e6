/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * unlock, time-epoch: an administrator's instructions on the target's host, which no initiator can
 * give.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/ctl/instruction.h"
#include "wire/wire.h"

int verb_unlock(struct ctl *ctl)
{
	char text[32], subject[48];
	uint64_t partition;
	long holder;
	int code;

	if (ctl_parse_number(ctl->arguments[0], OSD_LAST_PARTITION_ID, &partition) < 0 ||
	    (partition != 0 && partition < OSD_FIRST_ID))
		return ctl_fail(ctl, CTL_USAGE,
				"unlock: '%s' is no partition ID; they begin at 0x10000, and 0 is "
				"the device",
				ctl->arguments[0]);
	snprintf(text, sizeof(text), "0x%" PRIx64 "\n", partition);
	snprintf(subject, sizeof(subject), "partition 0x%" PRIx64, partition);
	holder = instruction_holder(ctl, &code);
	if (code == CTL_OK)
		code = instruction_leave(ctl, "unlock", text, holder, CTL_NOT_FOUND, subject);
	if (code != CTL_OK)
		return code;
	if (holder <= 0)
		ctl_warn("no daemon has the image open: the lock ends when the service starts; "
			 "its log will say so, or that there is no such partition");
	if (ctl->options->json)
		return ctl_print_json(stdout,
				      json_pack("{s:o}", "unlocks", ctl_json_id(partition)));
	return CTL_OK;
}

/* ---- time-epoch ---- */

/* Somebody types TIME to the minute. */
#define FAR_MS (2 * 60 * 1000)

static bool is_far(uint64_t a, uint64_t b)
{
	return a > b + FAR_MS || b > a + FAR_MS;
}

int verb_time_epoch(struct ctl *ctl)
{
	const char *time = ctl->arguments[0];
	struct osd_client_moment moment;
	struct error_text error;
	uint64_t now_ms = ctl_now_ms();
	char text[32], present[CTL_TIME_TEXT];
	long holder;
	int code;

	if (osd_client_parse_moment(time, now_ms, &moment, &error) < 0)
		return ctl_fail(ctl, CTL_USAGE, "time-epoch: %s", error.text);
	/* A time that is counted from now says nothing about the clock. */
	if (moment.kind != OSD_CLIENT_AT_TIME || time[strspn(time, "@")] == '-')
		return ctl_fail(ctl, CTL_USAGE,
				"time-epoch: '%.80s' does not say what time it is; for instance %s",
				time, ctl_format_time(now_ms, present));
	if (is_far(moment.value, now_ms))
		return ctl_fail(
			ctl, CTL_USAGE,
			"time-epoch: by this host's clock it is %s, not %.80s; if the clock is "
			"wrong, set it first",
			ctl_format_time(now_ms, present), time);
	holder = instruction_holder(ctl, &code);
	if (code != CTL_OK)
		return code;
	if (holder <= 0)
		return ctl_fail(
			ctl, CTL_LOCAL,
			"time-epoch: no daemon has %s open; start the service first, because "
			"TIME counts from the moment when you give it",
			ctl->url);
	snprintf(text, sizeof(text), "%" PRIu64 "\n", moment.value);
	code = instruction_leave(ctl, "time-epoch", text, holder, CTL_TARGET, ctl->url);
	if (code != CTL_OK || !ctl->options->json)
		return code;
	return ctl_print_json(stdout,
			      json_pack("{s:s}", "time_epoch", ctl_format_time(now_ms, present)));
}
