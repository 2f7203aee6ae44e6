/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What the target does with contents and space by itself: search, checksum, merge, statistics. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/ctl/ctl.h"
#include "client/ctl/items.h"
#include "client/ctl/merging.h"
#include "client/ctl/places.h"
#include "wire/expression.h"

#define PARAMETERS_BYTES 2048

/* ---- search ---- */

struct search {
	struct ctl *ctl;
	struct osd_client_address address; /* what is searched */
	const struct ctl_place *place;     /* as it is written */
	const struct tree_names *tree;     /* NULL: it is not written as a path */
	struct ctl_list matches;
	uint64_t count;
	struct progress progress;
};

static int print_match(struct search *search, const char *where, uint64_t offset, uint64_t bytes)
{
	search->count++;
	if (search->matches.is_json)
		return ctl_list_add(
			&search->matches,
			ctl_json_with_text(json_pack("{s:I,s:I}", "offset", (json_int_t)offset,
						     "length", (json_int_t)bytes),
					   "address", where));
	ctl_print_text(where);
	printf(" %" PRIu64 "+%" PRIu64 "\n", offset, bytes);
	return 0;
}

/* Under each name of the object that is asked for; objects that have none are no part of the tree.
 */
static int print_by_name(struct search *search, uint64_t object, uint64_t offset, uint64_t bytes)
{
	const struct tree_names *tree = search->tree;
	const struct tree_name *name = tree_names_find(tree, object);
	int result = 0;

	for (; result == 0 && name && name < tree->names + tree->count && name->object == object;
	     name++) {
		char *where;

		if (!ctl_place_has(search->place, name->path))
			continue;
		where = ctl_place_text(search->ctl, search->place, name->path, "");
		result = where ? print_match(search, where, offset, bytes) : -ENOMEM;
		free(where);
	}
	return result;
}

static int take_matches(void *context, const uint8_t *data, size_t length)
{
	struct search *search = context;
	struct osd_item_reader reader;
	struct osd_item item;
	int result;

	progress_clear(&search->progress);
	osd_items_read(&reader, data, length);
	while (osd_item_next(&reader, &item) == 1) {
		struct osd_client_address address = search->address;
		char text[OSD_CLIENT_ADDRESS_TEXT];
		uint64_t offset = entry_number(&item, OSD_ITEM_OFFSET),
			 bytes = entry_number(&item, OSD_ITEM_LENGTH);

		if (item.tag != OSD_ITEM_ENTRY)
			continue;
		/* The target prints objects without the version that a packed ID may have. */
		if (!address.object)
			address.object = entry_number(&item, OSD_ITEM_OBJECT);
		ctl_format_address(search->ctl, address, text);
		result = search->tree ? print_by_name(search, address.object, offset, bytes)
				      : print_match(search, text, offset, bytes);
		if (result < 0)
			return result;
	}
	return progress_items(&search->progress, data, length);
}

/* The target would refuse it too, but not say why. */
static int check_expression(const struct ctl *ctl, const char *text)
{
	struct expression *expression = malloc(sizeof(*expression));
	int result = expression
			     ? expression_compile((const uint8_t *)text, strlen(text), expression)
			     : -ENOMEM;

	free(expression);
	if (result == -EINVAL)
		return ctl_fail(
			ctl, CTL_USAGE,
			"search: '%s' is no POSIX extended regular expression of at most %d "
			"bytes without back references and word boundaries",
			text, EXPRESSION_BYTES_MAX);
	if (result == -E2BIG)
		return ctl_fail(ctl, CTL_USAGE,
				"search: the regular expression '%s' is too large when its bounds, "
				"of at most %d, are written out in %d steps",
				text, EXPRESSION_REPEAT_MAX, EXPRESSION_STEPS_MAX);
	return result == 0 ? CTL_OK : ctl_fail(ctl, CTL_LOCAL, "search: no memory");
}

/* A file is searched alone; of a directory's partition other matches are left out. */
static int find_searched(struct ctl *ctl, struct ctl_place *place, struct search *search)
{
	const struct manifest_entry *entry = NULL;
	int code = ctl_place(ctl, 0, place);

	search->place = place;
	if (code == CTL_OK && place->path)
		code = ctl_load_tree(ctl, place->address, &search->tree);
	if (code == CTL_OK && place->path)
		code = ctl_find_entry(ctl, place, search->tree, &entry);
	search->address = place->address;
	if (code == CTL_OK && entry && entry->type == MANIFEST_FILE)
		search->address.object = entry->object;
	if (code == CTL_OK && !search->address.partition)
		return ctl_fail(ctl, CTL_USAGE,
				"search needs a partition, PID, an object, PID/OID, or a path of a "
				"tree, PID:PATH");
	return code;
}

int verb_search(struct ctl *ctl)
{
	struct search search = { .ctl = ctl };
	struct ctl_place place;
	struct osd_client_error error;
	uint8_t parameters[PARAMETERS_BYTES];
	struct osd_item_writer writer;
	int result, code = find_searched(ctl, &place, &search);

	osd_items_begin(&writer, parameters, sizeof(parameters));
	osd_item_add_text(&writer, ctl->options->regex ? OSD_ITEM_REGEX : OSD_ITEM_PATTERN,
			  ctl->arguments[1]);
	if (strlen(ctl->arguments[1]) > OSD_PATTERN_BYTES_MAX || ctl->arguments[1][0] == '\0')
		return ctl_fail(ctl, CTL_USAGE, "search: a pattern has 1 to %d bytes",
				OSD_PATTERN_BYTES_MAX);
	if (code == CTL_OK && ctl->options->regex)
		code = check_expression(ctl, ctl->arguments[1]);
	if (code == CTL_OK)
		code = ctl_connect(ctl);
	if (code != CTL_OK)
		return code;
	search.matches = ctl_list_of(ctl);
	progress_watch(&search.progress, ctl, "search");
	result = osd_client_execute(ctl->client, OSD_FUNCTION_SEARCH, search.address, parameters,
				    writer.length, take_matches, &search, &error);
	progress_end(&search.progress);
	if (result < 0)
		return ctl_fail_command(ctl, &error);
	code = ctl_list_end(&search.matches, ctl);
	/* As with grep, scripts can tell that nothing matched. */
	return code == CTL_OK && search.count == 0 ? CTL_NOT_FOUND : code;
}

/* ---- checksum ---- */

struct checksum {
	struct items found; /* of the last result */
	struct progress progress;
};

static int take_digest(void *context, const uint8_t *data, size_t length)
{
	struct checksum *checksum = context;
	int result = items_take(&checksum->found, data, length);

	return result == 0 ? progress_items(&checksum->progress, data, length) : result;
}

static int checksum_report(const struct ctl *ctl, struct osd_client_address address,
			   const struct items *found)
{
	char hexadecimal[65], text[OSD_CLIENT_ADDRESS_TEXT];
	struct osd_item digest;

	if (!items_find(found, OSD_ITEM_DIGEST, &digest) || digest.length != 32)
		return ctl_fail(ctl, CTL_TARGET, "checksum: the target's answer has no digest");
	for (int i = 0; i < 32; i++)
		snprintf(hexadecimal + 2 * i, 3, "%02x", digest.value[i]);
	ctl_format_address(ctl, address, text);
	if (ctl->options->json)
		return ctl_print_json(stdout,
				      json_pack("{s:s,s:s,s:I}", "address", text, "sha256",
						hexadecimal, "length",
						(json_int_t)items_number(found, OSD_ITEM_LENGTH)));
	printf("%s  %s\n", hexadecimal, text);
	return ctl_end_output(ctl);
}

int verb_checksum(struct ctl *ctl)
{
	const struct ctl_options *options = ctl->options;
	struct checksum checksum = { .found.length = 0 };
	struct osd_client_address address;
	struct osd_client_error error;
	uint8_t parameters[PARAMETERS_BYTES];
	struct osd_item_writer writer;
	bool one_state;
	int result, code = ctl_object_address(ctl, 0, &address);

	osd_items_begin(&writer, parameters, sizeof(parameters));
	if (options->has_offset)
		osd_item_add_number(&writer, OSD_ITEM_OFFSET, options->offset);
	if (options->has_length)
		osd_item_add_number(&writer, OSD_ITEM_LENGTH, options->length);
	if (code == CTL_OK)
		code = ctl_connect(ctl);
	if (code != CTL_OK)
		return code;
	progress_watch(&checksum.progress, ctl, "checksum");
	result = osd_client_execute_at_one_state(ctl->client, OSD_FUNCTION_CHECKSUM, address,
						 parameters, writer.length, take_digest, &checksum,
						 &one_state, &error);
	progress_end(&checksum.progress);
	if (result == 0 && !one_state)
		ctl_warn("checksum: the target gave no view of the object; if somebody changed it "
			 "meanwhile, this is the digest of no content that it ever had");
	return result < 0 ? ctl_fail_command(ctl, &error)
			  : checksum_report(ctl, address, &checksum.found);
}

/* ---- merge ---- */

#define MERGE_POLL_MS 200

int merging_step(struct ctl *ctl, enum osd_merge_action action, struct items *found)
{
	struct osd_client_error error;
	uint8_t parameters[64];
	struct osd_item_writer writer;

	osd_items_begin(&writer, parameters, sizeof(parameters));
	osd_item_add_number(&writer, OSD_ITEM_ACTION, action);
	if (osd_client_execute(ctl->client, OSD_FUNCTION_MERGE, (struct osd_client_address){ 0 },
			       parameters, writer.length, items_take, found, &error) < 0)
		return ctl_fail_command(ctl, &error);
	return CTL_OK;
}

static int merge_report(const struct ctl *ctl, const struct items *found)
{
	bool runs = items_number(found, OSD_ITEM_STATE) == OSD_MERGE_RUNNING;
	bool failed = items_number(found, OSD_ITEM_STATE) == OSD_MERGE_FAILED;

	if (ctl->options->json)
		return ctl_print_json(
			stdout,
			json_pack("{s:b,s:b,s:I,s:I,s:I,s:I}", "running", runs, "failed", failed,
				  "steps", (json_int_t)items_number(found, OSD_ITEM_COUNT), "freed",
				  (json_int_t)items_number(found, OSD_ITEM_FREED), "moved",
				  (json_int_t)items_number(found, OSD_ITEM_MOVED), "dropped",
				  (json_int_t)items_number(found, OSD_ITEM_DROPPED)));
	printf("%s: %" PRIu64 " segments freed, %" PRIu64 " records moved, %" PRIu64
	       " dropped, %" PRIu64 " steps\n",
	       runs     ? "running"
	       : failed ? "failed"
			: "idle",
	       items_number(found, OSD_ITEM_FREED), items_number(found, OSD_ITEM_MOVED),
	       items_number(found, OSD_ITEM_DROPPED), items_number(found, OSD_ITEM_COUNT));
	return ctl_end_output(ctl);
}

int merging_outcome(struct ctl *ctl, const char *verb, const struct items *found)
{
	uint64_t sense = items_number(found, OSD_ITEM_SENSE);
	uint16_t code = (uint16_t)sense;

	if (items_number(found, OSD_ITEM_STATE) != OSD_MERGE_FAILED)
		return CTL_OK;
	return ctl_fail(ctl, code == SENSE_QUOTA_ERROR ? CTL_NO_SPACE : CTL_TARGET,
			"%s: the last one ended early [%s, %s %02x/%02x]; the target's log says "
			"why; the same command begins another",
			verb, osd_sense_key_name((uint8_t)(sense >> 16)), osd_sense_code_name(code),
			code >> 8, code & 0xFF);
}

int merging_wait(struct ctl *ctl, const char *verb, struct items *found)
{
	struct progress progress;
	int code = CTL_OK;
	bool cancelled = false;

	progress_watch(&progress, ctl, verb);
	while (code == CTL_OK && items_number(found, OSD_ITEM_STATE) == 1) {
		bool cancel = progress_items(&progress, found->data, found->length) < 0;

		poll(NULL, 0, MERGE_POLL_MS);
		code = merging_step(
			ctl, cancel && !cancelled ? OSD_MERGE_CANCEL : OSD_MERGE_PROGRESS, found);
		cancelled |= cancel;
	}
	if (code == CTL_OK)
		progress_items(&progress, found->data, found->length);
	progress_end(&progress);
	return code == CTL_OK && cancelled ? CTL_INTERRUPTED : code;
}

int verb_merge(struct ctl *ctl)
{
	const char *word = ctl->argument_count > 0 ? ctl->arguments[0] : "start";
	enum osd_merge_action action = OSD_MERGE_START;
	struct items found = { 0 };
	int code;

	if (strcmp(word, "progress") == 0)
		action = OSD_MERGE_PROGRESS;
	else if (strcmp(word, "cancel") == 0)
		action = OSD_MERGE_CANCEL;
	else if (strcmp(word, "start") != 0)
		return ctl_fail(ctl, CTL_USAGE, "merge: '%s' is none of start, progress, cancel",
				word);
	code = ctl_connect(ctl);
	if (code == CTL_OK)
		code = merging_step(ctl, action, &found);
	if (code == CTL_OK && ctl->options->progress && action == OSD_MERGE_START)
		code = merging_wait(ctl, "merge", &found);
	if (code != CTL_OK && code != CTL_INTERRUPTED)
		return code;
	if (merge_report(ctl, &found) != CTL_OK)
		return CTL_LOCAL;
	return code == CTL_OK ? merging_outcome(ctl, "merge", &found) : code;
}

/* ---- statistics ---- */

static int print_statistics(void *context, const uint8_t *data, size_t length)
{
	json_t *object = context;
	struct osd_item_reader reader;
	struct osd_item entry;
	char name[64];

	osd_items_read(&reader, data, length);
	while (osd_item_next(&reader, &entry) == 1) {
		uint64_t value = entry_number(&entry, OSD_ITEM_VALUE);

		if (entry.tag != OSD_ITEM_ENTRY)
			continue;
		entry_text(&entry, OSD_ITEM_NAME, name, sizeof(name));
		if (!object)
			printf("%-25s %" PRIu64 "\n", name, value);
		else if (json_object_set_new(object, name, json_integer((json_int_t)value)) < 0)
			return -ENOMEM;
	}
	return 0;
}

int verb_statistics(struct ctl *ctl)
{
	json_t *object = ctl->options->json ? json_object() : NULL;
	struct osd_client_error error;
	int code = ctl_connect(ctl);

	if (code == CTL_OK && osd_client_execute(ctl->client, OSD_FUNCTION_STATISTICS,
						 (struct osd_client_address){ 0 }, NULL, 0,
						 print_statistics, object, &error) < 0)
		code = ctl_fail_command(ctl, &error);
	if (code != CTL_OK) {
		json_decref(object);
		return code;
	}
	return object ? ctl_print_json(stdout, object) : ctl_end_output(ctl);
}
