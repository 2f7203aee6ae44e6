/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Keeps an object's old content while a new one takes its place. */
#include "client/ctl/way_back.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "client/ctl/items.h"

#define PARAMETERS_BYTES 128

void way_back_keep(struct ctl *ctl, struct osd_client_address object, struct way_back *back)
{
	const struct osd_client_address partition = { .partition = object.partition };
	uint8_t parameters[PARAMETERS_BYTES];
	struct osd_item_writer writer;
	struct items found = { 0 };
	struct osd_client_error ignored;
	char name[OSD_VERSION_NAME_MAX + 1];

	back->object = object;
	snprintf(name, sizeof(name), "before-put-of-0x%" PRIx64 "-%" PRIu64 "-%d", object.object,
		 ctl_now_ms(), (int)getpid());
	osd_items_begin(&writer, parameters, sizeof(parameters));
	osd_item_add_text(&writer, OSD_ITEM_NAME, name);
	back->version = osd_client_execute(ctl->client, OSD_FUNCTION_SNAPSHOT, partition,
					   writer.data, writer.length, items_take, &found,
					   &ignored) == 0
				? items_number(&found, OSD_ITEM_VERSION)
				: 0;
}

/* Calls a function whose only parameter is the version. */
static int execute(struct ctl *ctl, enum osd_function function, struct osd_client_address address,
		   uint64_t version, struct osd_client_error *error)
{
	const struct osd_client_moment moment = { .kind = OSD_CLIENT_AT_VERSION, .value = version };
	uint8_t parameters[PARAMETERS_BYTES];
	struct osd_item_writer writer;

	osd_items_begin(&writer, parameters, sizeof(parameters));
	osd_client_add_moment(&writer, &moment);
	return osd_client_execute(ctl->client, function, address, writer.data, writer.length, NULL,
				  NULL, error);
}

static void drop(struct ctl *ctl, const struct way_back *back)
{
	const struct osd_client_address partition = { .partition = back->object.partition };
	struct osd_client_error error;

	/* If it does not work, the version takes room, and `versions` shows it. */
	if (execute(ctl, OSD_FUNCTION_DROP, partition, back->version, &error) < 0)
		fprintf(stderr,
			"muninnctl: %s: version %" PRIu64 " of partition 0x%" PRIx64
			" was for this command only, and can't be dropped: %s\n",
			ctl->verb, back->version, partition.partition, error.sentence.text);
}

void way_back_forget(struct ctl *ctl, const struct way_back *back)
{
	/* A signal, or a connection that is lost, must not leave it behind. */
	if (back->version != 0 && ctl_recover(ctl))
		drop(ctl, back);
	else if (back->version != 0)
		fprintf(stderr,
			"muninnctl: %s: version %" PRIu64 " of partition 0x%" PRIx64
			" was for this command only; `drop` removes it\n",
			ctl->verb, back->version, back->object.partition);
}

static int go(struct ctl *ctl, const struct way_back *back, struct osd_client_error *error)
{
	int result;

	if (back->is_new)
		return osd_client_remove(ctl->client, back->object, error);
	result = execute(ctl, OSD_FUNCTION_ROLLBACK, back->object, back->version, error);
	/* What has come of the new content takes the room, and nobody wants it any more. */
	if (result == -ENOSPC && osd_client_truncate(ctl->client, back->object, 0, error) == 0)
		result = execute(ctl, OSD_FUNCTION_ROLLBACK, back->object, back->version, error);
	return result;
}

void way_back_go(struct ctl *ctl, const struct way_back *back)
{
	bool leads_back = back->is_new || back->version != 0;
	char text[OSD_CLIENT_ADDRESS_TEXT];
	struct osd_client_error error = { 0 };
	int result = -EIO;

	osd_client_format_address(back->object, text);
	if (back->in_place) {
		fprintf(stderr, "muninnctl: %s: %s keeps what of it has arrived\n", ctl->verb,
			text);
		return;
	}
	if (!back->is_new && !back->is_changed) {
		way_back_forget(ctl, back);
		return;
	}
	if (leads_back && ctl_recover(ctl))
		result = go(ctl, back, &error);
	if (result == 0)
		fprintf(stderr, "muninnctl: %s: %s %s\n", ctl->verb, text,
			back->is_new ? "is removed again" : "has its old content again");
	else if (back->is_new && result == -ENOENT)
		fprintf(stderr, "muninnctl: %s: %s is gone; somebody else has removed it\n",
			ctl->verb, text);
	else if (back->is_new || back->version == 0)
		fprintf(stderr, "muninnctl: %s: %s is there, but not whole\n", ctl->verb, text);
	else
		fprintf(stderr,
			"muninnctl: %s: %s is not whole%s%s; `rollback URL %s %" PRIu64
			"` brings its old content back\n",
			ctl->verb, text, error.sentence.text[0] ? ": " : "", error.sentence.text,
			text, back->version);
	if (result == 0)
		way_back_forget(ctl, back);
}
