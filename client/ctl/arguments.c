/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Arguments behind the URL. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
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

/* ---- moments ---- */

static int parse_moment(const struct ctl *ctl, const char *text, struct osd_client_moment *moment)
{
	struct error_text error;
	uint64_t now = ctl_now_ms();
	char wanted[CTL_TIME_TEXT], present[CTL_TIME_TEXT];

	if (osd_client_parse_moment(text, now, moment, &error) < 0)
		return ctl_fail(ctl, CTL_USAGE, "%s", error.text);
	/* The target would take it for the present: a wrong year must not look like success. */
	if (moment->kind == OSD_CLIENT_AT_TIME && moment->value > now)
		return ctl_fail(
			ctl, CTL_USAGE, "'%.80s' lies in the future: it is %s, and now is %s", text,
			ctl_format_time(moment->value, wanted), ctl_format_time(now, present));
	return CTL_OK;
}

/* How far the history of a partition reaches back; 0: not known. */
static uint64_t horizon_of(struct ctl *ctl, struct osd_client_address partition)
{
	struct items found = { .length = 0 };
	struct osd_client_error error;

	if (osd_client_execute(ctl->client, OSD_FUNCTION_RETENTION, partition, NULL, 0, items_take,
			       &found, &error) < 0)
		return 0;
	return items_number(&found, OSD_ITEM_HORIZON);
}

int ctl_fail_moment(struct ctl *ctl, struct osd_client_address address,
		    const struct osd_client_moment *moment, const struct osd_client_error *error)
{
	const struct osd_client_address partition = { .partition = address.partition };
	char where[64] = "the device", wanted[CTL_TIME_TEXT], reached[CTL_TIME_TEXT];
	uint64_t horizon;

	if (error->result == -ESTALE && moment->kind == OSD_CLIENT_AT_TIME)
		return ctl_fail(
			ctl, CTL_NOT_FOUND,
			"%s is no certain moment: the target's clock was ahead then, or is behind "
			"now, so it is not known what was when; `muninnctl log` of an object "
			"shows sequence numbers, which can be taken as #N",
			ctl_format_time(moment->value, wanted));
	/* Of the moment, not of what it is a moment of. */
	if (error->result != -ENOENT || !error->has_sense ||
	    error->sense.code != SENSE_INVALID_FIELD_IN_PARAMETER_LIST)
		return ctl_fail_command(ctl, error);
	if (address.partition)
		snprintf(where, sizeof(where), "partition 0x%" PRIx64, address.partition);
	switch (moment->kind) {
	case OSD_CLIENT_AT_NAME:
		return ctl_fail(ctl, CTL_NOT_FOUND,
				"%s has no version with the name '%s'; `muninnctl versions` lists "
				"what it has",
				where, moment->name);
	case OSD_CLIENT_AT_VERSION:
		return ctl_fail(ctl, CTL_NOT_FOUND,
				"%s has no version %" PRIu64
				"; `muninnctl versions` lists what it has",
				where, moment->value);
	case OSD_CLIENT_AT_TIME:
		horizon = horizon_of(ctl, partition);
		if (horizon == 0)
			break;
		if (moment->value > horizon && address.partition)
			return ctl_fail(
				ctl, CTL_NOT_FOUND,
				"%s is no moment of %s: it was gone then (`muninnctl ls` of "
				"0@%s lists what was there), or it was made in that very "
				"second, or the target's clock is behind this host's",
				ctl_format_time(moment->value, wanted), where, wanted);
		if (moment->value > horizon)
			return ctl_fail(ctl, CTL_NOT_FOUND,
					"%s is no moment of %s yet: the target's clock is behind "
					"this host's",
					ctl_format_time(moment->value, wanted), where);
		return ctl_fail(ctl, CTL_NOT_FOUND,
				"the history of %s reaches back to %s, not to %s; `muninnctl "
				"versions` lists older moments that are kept",
				where, ctl_format_time(horizon, reached),
				ctl_format_time(moment->value, wanted));
	case OSD_CLIENT_AT_SEQUENCE:
		return ctl_fail(ctl, CTL_NOT_FOUND,
				"the history of %s does not reach back to #%" PRIu64
				"; `muninnctl log` of an object shows numbers that can be reached",
				where, moment->value);
	default:
		break;
	}
	return ctl_fail_command(ctl, error);
}

/* Notes how a moment is written that has got the number of a view. One too many is shown by its number. */
static void note_view(struct ctl *ctl, struct osd_client_address address,
		      const struct osd_client_moment *moment)
{
	char text[CTL_TIME_TEXT];

	if (moment->kind == OSD_CLIENT_AT_TIME)
		ctl_format_time(moment->value, text);
	else if (moment->kind == OSD_CLIENT_AT_SEQUENCE)
		snprintf(text, sizeof(text), "#%" PRIu64, moment->value);
	else if (moment->kind == OSD_CLIENT_AGO)
		snprintf(text, sizeof(text), "~%" PRIu64, moment->value);
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
		/* A view of the device is one of each partition. */
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
	int code = parse_moment(ctl, text, &moment);

	if (code != CTL_OK)
		return code;
	if (moment.kind == OSD_CLIENT_AGO && !address->object)
		return ctl_fail(ctl, CTL_USAGE,
				"~N counts the modifications of one object; of a partition, take a "
				"version or a time");
	code = ctl_connect(ctl);
	if (code != CTL_OK)
		return code;
	if (osd_client_resolve(ctl->client, *address, &moment, &address->version, &outcome) < 0)
		return ctl_fail_moment(ctl, *address, &moment, &outcome);
	note_view(ctl, *address, &moment);
	return CTL_OK;
}

/* Addresses that --at is about: what is read, not where something goes. */
static bool takes_at(const struct ctl *ctl, int index)
{
	return ctl->options->at && (index == 0 || strcmp(ctl->verb, "cat") == 0);
}

static int parse_address(struct ctl *ctl, int index, struct osd_client_address *address)
{
	struct error_text error;
	const char *text, *at;
	char plain[OSD_CLIENT_ADDRESS_TEXT];

	if (index >= ctl->argument_count) {
		*address = (struct osd_client_address){ 0 };
		return CTL_OK;
	}
	text = ctl->arguments[index];
	at = strchr(text, '@');
	if (!at || (at[1] >= '0' && at[1] <= '9' &&
		    strspn(at + 1, "0123456789abcdefABCDEFxX") == strlen(at + 1))) {
		if (osd_client_parse_address(text, address, &error) < 0)
			return ctl_fail(ctl, CTL_USAGE, "%s", error.text);
		return CTL_OK;
	}
	if ((size_t)(at - text) >= sizeof(plain))
		return ctl_fail(ctl, CTL_USAGE, "address '%.80s' is too long", text);
	memcpy(plain, text, (size_t)(at - text));
	plain[at - text] = '\0';
	if (osd_client_parse_address(plain, address, &error) < 0)
		return ctl_fail(ctl, CTL_USAGE, "%s", error.text);
	return ctl_resolve(ctl, at + 1, address);
}

int ctl_address(struct ctl *ctl, int index, struct osd_client_address *address)
{
	int code = parse_address(ctl, index, address);

	if (code != CTL_OK || !takes_at(ctl, index))
		return code;
	if (index < ctl->argument_count && strchr(ctl->arguments[index], '@'))
		return ctl_fail(
			ctl, CTL_USAGE,
			"'%s' has a moment, and --at gives another one; leave one of them out",
			ctl->arguments[index]);
	return ctl_resolve(ctl, ctl->options->at, address);
}

int ctl_moment(const struct ctl *ctl, int index, struct osd_client_moment *moment)
{
	*moment = (struct osd_client_moment){ 0 };
	return index < ctl->argument_count ? parse_moment(ctl, ctl->arguments[index], moment)
					   : CTL_OK;
}

int ctl_object_address(struct ctl *ctl, int index, struct osd_client_address *address)
{
	int code = ctl_address(ctl, index, address);

	if (code == CTL_OK && !address->object)
		return ctl_fail(ctl, CTL_USAGE,
				"%s needs the address of an object, PID/OID; '%s' names none",
				ctl->verb,
				index < ctl->argument_count ? ctl->arguments[index] : "");
	return code;
}

int ctl_partition_address(struct ctl *ctl, int index, struct osd_client_address *address)
{
	int code = ctl_address(ctl, index, address);

	if (code == CTL_OK && (!address->partition || address->object))
		return ctl_fail(
			ctl, CTL_USAGE, "%s needs the address of a partition, PID; '%s' names none",
			ctl->verb, index < ctl->argument_count ? ctl->arguments[index] : "");
	return code;
}

int ctl_present(const struct ctl *ctl, int code, struct osd_client_address address)
{
	if (code == CTL_OK && address.version)
		return ctl_fail(
			ctl, CTL_DENIED,
			"%s: the past can only be read; leave @MOMENT out, or `rollback` to "
			"it",
			ctl->verb);
	return code;
}

int ctl_scope_address(struct ctl *ctl, int index, struct osd_client_address *address)
{
	int code = ctl_address(ctl, index, address);

	if (code == CTL_OK && address->version)
		return ctl_fail(ctl, CTL_USAGE, "%s is about history as a whole; leave @MOMENT out",
				ctl->verb);
	if (code == CTL_OK && address->object)
		return ctl_fail(
			ctl, CTL_USAGE,
			"%s needs a partition, PID, or 0 for the whole device; '%s' is neither",
			ctl->verb, ctl->arguments[index]);
	return code;
}

int ctl_parse_number(const char *text, uint64_t limit, uint64_t *value)
{
	bool hexadecimal = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	char *end;

	/* strtoull would take blanks and a sign. */
	if (text[0] < '0' || text[0] > '9')
		return -EINVAL;
	errno = 0;
	*value = strtoull(text, &end, hexadecimal ? 16 : 10);
	return errno || *end || *value > limit ? -EINVAL : 0;
}

int ctl_parse_size(const char *text, uint64_t *value)
{
	static const char units[] = "KMGT";
	char digits[32];
	size_t length = strlen(text);
	const char *unit = length > 0 ? strchr(units, text[length - 1]) : NULL;
	unsigned shift = unit && *unit ? 10 * (unsigned)(unit - units + 1) : 0;

	length -= shift > 0;
	if (length == 0 || length >= sizeof(digits))
		return -EINVAL;
	memcpy(digits, text, length);
	digits[length] = '\0';
	if (ctl_parse_number(digits, UINT64_MAX >> shift, value) < 0)
		return -EINVAL;
	*value <<= shift;
	return 0;
}

int ctl_size(const struct ctl *ctl, int index, const char *what, uint64_t *value)
{
	if (ctl_parse_size(ctl->arguments[index], value) < 0)
		return ctl_fail(
			ctl, CTL_USAGE,
			"%s '%s' is no number of bytes; for instance 4096, 0x1000, 64K, 10M, 1G",
			what, ctl->arguments[index]);
	return CTL_OK;
}

static int hex_digit(char c)
{
	const char *digits = "0123456789abcdef";
	const char *found = c ? strchr(digits, c >= 'A' && c <= 'F' ? c + 32 : c) : NULL;

	return found ? (int)(found - digits) : -1;
}

int ctl_parse_hex(const char *text, uint8_t *bytes, size_t *length)
{
	size_t digits = strlen(text);

	if (digits % 2)
		return -EINVAL;
	for (size_t i = 0; i < digits; i += 2) {
		int high = hex_digit(text[i]), low = hex_digit(text[i + 1]);

		if (high < 0 || low < 0)
			return -EINVAL;
		bytes[i / 2] = (uint8_t)(high << 4 | low);
	}
	*length = digits / 2;
	return 0;
}
