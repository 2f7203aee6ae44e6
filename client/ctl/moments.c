/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Moments in arguments: what they are on the target, how addresses of the past are printed, and why
 * a text is no moment.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "client/ctl/ctl.h"
#include "client/ctl/items.h"

uint64_t ctl_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

int ctl_parse_moment(const struct ctl *ctl, const char *text, struct osd_client_moment *moment)
{
	struct error_text error;
	uint64_t now = ctl_now_ms();
	char wanted[CTL_TIME_TEXT], present[CTL_TIME_TEXT];

	if (osd_client_parse_moment(text, now, moment, &error) < 0)
		return ctl_fail(ctl, CTL_USAGE, "%s", error.text);
	/* The target would take it for the present, and a wrong year must not look like success. */
	if (moment->kind == OSD_CLIENT_AT_TIME && moment->value > now)
		return ctl_fail(
			ctl, CTL_USAGE, "'%.80s' lies in the future: it is %s, and now is %s", text,
			ctl_format_time(moment->value, wanted), ctl_format_time(now, present));
	return CTL_OK;
}

int ctl_moment(const struct ctl *ctl, int index, struct osd_client_moment *moment)
{
	*moment = (struct osd_client_moment){ 0 };
	return index < ctl->argument_count ? ctl_parse_moment(ctl, ctl->arguments[index], moment)
					   : CTL_OK;
}

int ctl_add_moment(struct ctl *ctl, struct osd_item_writer *writer, uint16_t tag,
		   const struct osd_client_moment *moment)
{
	if (moment->kind == OSD_CLIENT_NOW)
		return CTL_OK;
	if (tag)
		osd_item_open(writer, tag);
	if (osd_client_add_moment(writer, moment) < 0)
		return ctl_fail(ctl, CTL_USAGE,
				"%s: ~N counts the modifications of one object; take a version or "
				"a time",
				ctl->verb);
	if (tag)
		osd_item_end(writer);
	return CTL_OK;
}

/* ---- what is no moment ---- */

/* A number that a function tells of the device or a partition; 0: it tells none. */
static uint64_t ask(struct ctl *ctl, enum osd_function function, struct osd_client_address address,
		    uint16_t tag)
{
	struct items found = { .length = 0 };
	struct osd_client_error error;

	if (osd_client_execute(ctl->client, function, address, NULL, 0, items_take, &found,
			       &error) < 0)
		return 0;
	return items_number(&found, tag);
}

/* Writes a moment as the user gave it. */
static void write_moment(const struct osd_client_moment *moment, char text[CTL_MOMENT_TEXT])
{
	if (moment->kind == OSD_CLIENT_AT_TIME)
		ctl_format_time(moment->value, text);
	else if (moment->kind == OSD_CLIENT_AT_NAME)
		snprintf(text, CTL_MOMENT_TEXT, "%s", moment->name);
	else
		snprintf(text, CTL_MOMENT_TEXT, "%s%" PRIu64,
			 moment->kind == OSD_CLIENT_AT_SEQUENCE ? "#" : "", moment->value);
}

/* The number of the device's last command; 0: not known. */
static int take_committed(void *context, const uint8_t *data, size_t length)
{
	uint64_t *committed = context;
	struct osd_item_reader reader;
	struct osd_item entry;
	char name[64];

	osd_items_read(&reader, data, length);
	while (osd_item_next(&reader, &entry) == 1)
		if (entry.tag == OSD_ITEM_ENTRY &&
		    strcmp(entry_text(&entry, OSD_ITEM_NAME, name, sizeof(name)),
			   "committed_sequence") == 0)
			*committed = entry_number(&entry, OSD_ITEM_VALUE);
	return 0;
}

static uint64_t last_sequence(struct ctl *ctl)
{
	struct osd_client_error error;
	uint64_t committed = 0;

	if (osd_client_execute(ctl->client, OSD_FUNCTION_STATISTICS,
			       (struct osd_client_address){ 0 }, NULL, 0, take_committed,
			       &committed, &error) < 0)
		return 0;
	return committed;
}

/* Does the device have the moment, and was the partition not there then? */
static bool was_gone(struct ctl *ctl, uint64_t partition, const struct osd_client_moment *moment)
{
	struct osd_client_address address = { .partition = 0 };
	struct osd_client_error error;
	uint64_t value;

	/* The target only looks for a version when something is read there. */
	if (osd_client_resolve(ctl->client, address, moment, &address.version, &error) < 0 ||
	    osd_client_get_number(ctl->client, address, OSD_ROOT_INFORMATION, OSD_ROOT_PARTITIONS,
				  &value, &error) < 0)
		return false;
	address.partition = partition;
	return osd_client_get_number(ctl->client, address, OSD_PARTITION_INFORMATION,
				     OSD_INFORMATION_PARTITION_ID, &value, &error) == -ENOENT;
}

static int fail_gone(struct ctl *ctl, const char *where, const char *wanted)
{
	return ctl_fail(ctl, CTL_NOT_FOUND,
			"%s is no moment of %s: it was not there then, as `muninnctl ls` of 0@%s "
			"shows",
			wanted, where, wanted);
}

static int fail_time(struct ctl *ctl, struct osd_client_address address, const char *where,
		     const struct osd_client_moment *moment, const struct osd_client_error *error)
{
	const struct osd_client_address partition = { .partition = address.partition };
	uint64_t horizon = ask(ctl, OSD_FUNCTION_RETENTION, partition, OSD_ITEM_HORIZON);
	char wanted[CTL_TIME_TEXT], reached[CTL_TIME_TEXT];

	ctl_format_time(moment->value, wanted);
	if (horizon == 0)
		return ctl_fail_command(ctl, error);
	if (moment->value <= horizon)
		return ctl_fail(ctl, CTL_NOT_FOUND,
				"the history of %s reaches back to %s, not to %s; `muninnctl "
				"versions` lists older moments that are kept",
				where, ctl_format_time(horizon, reached), wanted);
	if (!address.partition)
		return ctl_fail(ctl, CTL_NOT_FOUND,
				"%s is no moment of %s yet: the target's clock is behind this "
				"host's",
				wanted, where);
	if (was_gone(ctl, address.partition, moment))
		return fail_gone(ctl, where, wanted);
	return ctl_fail(ctl, CTL_NOT_FOUND,
			"%s is no moment of %s: it was made in that very second, or another "
			"partition had its ID then, or the target's clock is behind this host's",
			wanted, where);
}

static int fail_sequence(struct ctl *ctl, const char *where, const struct osd_client_moment *moment)
{
	uint64_t last = last_sequence(ctl);

	if (last != 0 && moment->value > last)
		return ctl_fail(ctl, CTL_NOT_FOUND,
				"no command has had the number #%" PRIu64 " yet: the last one was "
				"#%" PRIu64,
				moment->value, last);
	return ctl_fail(ctl, CTL_NOT_FOUND,
			"the history of %s does not reach back to #%" PRIu64 ", or another "
			"partition had its ID then; `muninnctl log` of an object shows numbers "
			"that can be reached",
			where, moment->value);
}

/* Single objects have every number from the partition's first on, the partition only moments. */
static bool has_objects_at(struct ctl *ctl, uint64_t partition,
			   const struct osd_client_moment *moment)
{
	struct osd_client_address address = { .partition = partition };
	struct osd_client_error error;

	return osd_client_resolve(ctl->client, address, moment, &address.version, &error) == 0;
}

int ctl_fail_moment(struct ctl *ctl, struct osd_client_address address,
		    const struct osd_client_moment *moment, const struct osd_client_error *error)
{
	char where[64] = "the device", wanted[CTL_MOMENT_TEXT];

	write_moment(moment, wanted);
	if (error->result == -ESTALE && moment->kind == OSD_CLIENT_AT_TIME)
		return ctl_fail(
			ctl, CTL_NOT_FOUND,
			"%s lies before the target's present time epoch (`muninnctl time-epoch`); "
			"go by version, by name, or by a number that `muninnctl log` of an object "
			"shows, as #N",
			wanted);
	/* Is the error about the moment, not about the partition or object? */
	if (error->result != -ENOENT || !error->has_sense ||
	    error->sense.code != SENSE_INVALID_FIELD_IN_PARAMETER_LIST ||
	    moment->kind == OSD_CLIENT_NOW || moment->kind == OSD_CLIENT_AGO)
		return ctl_fail_command(ctl, error);
	if (address.partition)
		snprintf(where, sizeof(where), "partition 0x%" PRIx64, address.partition);
	/* If the moment is older than the kept history of the partition, that is the message. */
	if (moment->kind == OSD_CLIENT_AT_TIME)
		return fail_time(ctl, address, where, moment, error);
	if (address.partition && moment->kind == OSD_CLIENT_AT_SEQUENCE &&
	    has_objects_at(ctl, address.partition, moment))
		return ctl_fail(ctl, CTL_NOT_FOUND,
				"%s lies within the first moment of %s, which it has only as a "
				"whole; its objects can be read and rolled back there one by one",
				wanted, where);
	if (address.partition && was_gone(ctl, address.partition, moment))
		return fail_gone(ctl, where, wanted);
	switch (moment->kind) {
	case OSD_CLIENT_AT_NAME:
		return ctl_fail(ctl, CTL_NOT_FOUND,
				"%s has no version with the name '%s'; `muninnctl versions` lists "
				"what it has",
				where, moment->name);
	case OSD_CLIENT_AT_SEQUENCE:
		return fail_sequence(ctl, where, moment);
	default:
		return ctl_fail(ctl, CTL_NOT_FOUND,
				"%s has no version %" PRIu64
				"; `muninnctl versions` lists what it has",
				where, moment->value);
	}
}

int ctl_check_moment(struct ctl *ctl, struct osd_client_address partition,
		     const struct osd_client_moment *moment)
{
	struct osd_client_error error;
	struct osd_item_writer writer;
	uint8_t parameters[128];

	osd_items_begin(&writer, parameters, sizeof(parameters));
	if (moment->kind == OSD_CLIENT_NOW || osd_client_add_moment(&writer, moment) < 0 ||
	    osd_client_execute(ctl->client, OSD_FUNCTION_VIEW, partition, parameters, writer.length,
			       NULL, NULL, &error) == 0)
		return CTL_OK;
	return ctl_fail_moment(ctl, partition, moment, &error);
}

/* ---- addresses at a moment ---- */

/*
 * Notes the text of a moment that the target gave the number of a view. If there are too many, the
 * number itself is printed.
 */
static void note_view(struct ctl *ctl, struct osd_client_address address,
		      const struct osd_client_moment *moment)
{
	char text[CTL_TIME_TEXT];

	if (moment->kind == OSD_CLIENT_AT_TIME)
		ctl_format_time(moment->value, text);
	else if (moment->kind == OSD_CLIENT_AT_SEQUENCE)
		snprintf(text, sizeof(text), "#%" PRIu64, moment->value);
	else
		return;
	if (ctl->view_count == CTL_VIEWS_MAX)
		return;
	ctl->views[ctl->view_count].partition = address.partition;
	ctl->views[ctl->view_count].version = address.version;
	memcpy(ctl->views[ctl->view_count].moment, text, sizeof(text));
	ctl->view_count++;
}

const char *ctl_format_address(const struct ctl *ctl, struct osd_client_address address,
			       char text[OSD_CLIENT_ADDRESS_TEXT])
{
	const struct osd_client_address plain = { .partition = address.partition,
						  .object = address.object };
	size_t used;

	osd_client_format_address(address, text);
	for (int view = 0; view < ctl->view_count; view++) {
		/* A view of the device holds for each partition. */
		if ((ctl->views[view].partition &&
		     ctl->views[view].partition != address.partition) ||
		    ctl->views[view].version != address.version)
			continue;
		used = strlen(osd_client_format_address(plain, text));
		snprintf(text + used, OSD_CLIENT_ADDRESS_TEXT - used, "@%s",
			 ctl->views[view].moment);
		break;
	}
	return text;
}

int ctl_resolve(struct ctl *ctl, const char *text, struct osd_client_address *address)
{
	struct osd_client_moment moment;
	struct osd_client_error outcome;
	int code = ctl_parse_moment(ctl, text, &moment);

	if (code != CTL_OK)
		return code;
	if (moment.kind == OSD_CLIENT_AGO && !address->object)
		return ctl_fail(ctl, CTL_USAGE,
				"~N counts the modifications of one object; of a partition, take a "
				"version or a time");
	code = ctl_connect(ctl);
	if (code != CTL_OK)
		return code;
	/* ~N would soon mean something else, so prints the sequence number. */
	if (osd_client_count_back(ctl->client, *address, &moment, &outcome) < 0 ||
	    osd_client_resolve(ctl->client, *address, &moment, &address->version, &outcome) < 0)
		return ctl_fail_moment(ctl, *address, &moment, &outcome);
	note_view(ctl, *address, &moment);
	return CTL_OK;
}
