/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What differs between two moments of a partition: its objects and, where it holds a directory
 * tree, its names.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/ctl/ctl.h"
#include "client/ctl/items.h"
#include "client/ctl/places.h"
#include "client/tree_diff.h"

#define PARAMETERS_BYTES 512

struct difference_list {
	struct ctl *ctl;
	struct ctl_list output;
	struct tree_names from, to;
	const struct ctl_place *place; /* what is asked about */
	struct progress progress;
};

/* One line. Texts may be NULL, numbers may be absent. */
struct line {
	uint64_t object; /* 0: none */
	const char *differs;
	bool has_offset, has_length;
	uint64_t offset, length;
	const char *before, *after; /* the old and the new */
	const char *path;
	const char *was; /* its path before */
	bool is_directory;
};

/* ---- output ---- */

static int print_escaped(const char *text, const char *behind)
{
	char *escaped;

	if (manifest_escape(text, &escaped) < 0)
		return -ENOMEM;
	printf(" %s%s", escaped, behind);
	free(escaped);
	return 0;
}

static int print_line(const struct line *line)
{
	int result = 0;

	if (line->object)
		printf("0x%" PRIx64 " %s", line->object, line->differs);
	else
		printf("- %s", line->differs);
	if (line->has_offset)
		printf(" %" PRIu64 "+%" PRIu64, line->offset, line->length);
	else if (line->has_length)
		printf(" %" PRIu64, line->length);
	if (line->before)
		result = print_escaped(line->before, "");
	if (line->after && result == 0)
		result = print_escaped(line->after, "");
	if (line->path && result == 0)
		result = print_escaped(line->path, line->is_directory ? "/" : "");
	putchar('\n');
	return result;
}

static json_t *line_json(const struct line *line)
{
	json_t *object = json_pack("{s:o,s:s}", "object",
				   line->object ? ctl_json_id(line->object) : json_null(),
				   "differs", line->differs);

	if (line->has_offset)
		json_object_set_new(object, "offset", json_integer((json_int_t)line->offset));
	if (line->has_length)
		json_object_set_new(object, "length", json_integer((json_int_t)line->length));
	if (line->before)
		ctl_json_with_text(object, "from", line->before);
	if (line->after)
		ctl_json_with_text(object, "to", line->after);
	if (line->path)
		ctl_json_with_text(object, "path", line->path);
	return object;
}

/* Is it below the path that is asked about, or was it before? */
static bool is_asked_for(const struct ctl_place *place, const struct line *line)
{
	if (!place->path)
		return true;
	return line->path &&
	       (ctl_place_has(place, line->path) || (line->was && ctl_place_has(place, line->was)));
}

static int tell(struct difference_list *list, const struct line *line)
{
	if (!is_asked_for(list->place, line))
		return 0;
	return list->output.is_json ? ctl_list_add(&list->output, line_json(line))
				    : print_line(line);
}

/* ---- objects, as the target compares them ---- */

static const char *difference_name(uint64_t kind)
{
	static const char *const names[] = {
		[OSD_DIFFERENCE_ADDED] = "added",
		[OSD_DIFFERENCE_REMOVED] = "removed",
		[OSD_DIFFERENCE_DATA] = "data",
		[OSD_DIFFERENCE_LENGTH] = "length",
		[OSD_DIFFERENCE_ATTRIBUTES] = "attributes",
	};

	return kind >= OSD_DIFFERENCE_ADDED && kind <= OSD_DIFFERENCE_ATTRIBUTES ? names[kind]
										 : "unknown";
}

static bool is_manifest(const struct difference_list *list, uint64_t object)
{
	return object &&
	       (object == list->from.manifest_object || object == list->to.manifest_object);
}

static int tell_object(struct difference_list *list, const struct osd_item *entry)
{
	uint64_t kind = entry_number(entry, OSD_ITEM_KIND),
		 object = entry_number(entry, OSD_ITEM_OBJECT);
	/* The newer tree's name, if that tree has the object. */
	const struct tree_name *newer = tree_names_find(&list->to, object);
	const struct tree_name *name = newer ? newer : tree_names_find(&list->from, object);
	const struct line line = {
		.object = object,
		.differs = difference_name(kind),
		.has_offset = kind == OSD_DIFFERENCE_DATA,
		.has_length = kind == OSD_DIFFERENCE_DATA || kind == OSD_DIFFERENCE_LENGTH,
		.offset = entry_number(entry, OSD_ITEM_OFFSET),
		.length = entry_number(entry, OSD_ITEM_LENGTH),
		.path = name ? name->file->path : NULL,
	};

	/* Leaves out what the lines from the manifests say better, at the end. */
	if (is_manifest(list, object) || (kind == OSD_DIFFERENCE_ATTRIBUTES &&
					  tree_names_explain(&list->from, &list->to, object)))
		return 0;
	return tell(list, &line);
}

static int take_objects(void *context, const uint8_t *data, size_t length)
{
	struct difference_list *list = context;
	struct osd_item_reader reader;
	struct osd_item entry;
	int result = 0;

	progress_clear(&list->progress);
	osd_items_read(&reader, data, length);
	while (result == 0 && osd_item_next(&reader, &entry) == 1)
		if (entry.tag == OSD_ITEM_ENTRY)
			result = tell_object(list, &entry);
	return result == 0 ? progress_items(&list->progress, data, length) : result;
}

/* ---- what manifests tell ---- */

/* "2026-01-31T12:00:00.123456789Z" */
static const char *format_file_time(const struct manifest_entry *entry, char text[64])
{
	time_t seconds = (time_t)entry->seconds;
	struct tm parts;
	size_t length;

	if (!gmtime_r(&seconds, &parts))
		return "?";
	length = strftime(text, 48, "%Y-%m-%dT%H:%M:%S", &parts);
	snprintf(text + length, 64 - length, ".%09" PRIu32 "Z", entry->nanoseconds);
	return text;
}

/* "0:0"; "?" of a tree whose manifest does not tell. */
static const char *format_owner(const struct manifest_entry *entry, char text[64])
{
	if (entry->user == MANIFEST_NO_OWNER)
		return "?";
	snprintf(text, 64, "%" PRIu32 ":%" PRIu32, entry->user, entry->group);
	return text;
}

static int take_name(void *context, const struct tree_difference *difference)
{
	static const char *const names[] = {
		[TREE_RENAMED] = "renamed", [TREE_LINKED] = "linked", [TREE_UNLINKED] = "unlinked",
		[TREE_MODE] = "mode",       [TREE_TIME] = "time",     [TREE_TARGET] = "target",
		[TREE_OWNER] = "owner",     [TREE_XATTRS] = "xattrs", [TREE_ADDED] = "added",
		[TREE_REMOVED] = "removed",
	};
	const struct manifest_entry *from = difference->from, *to = difference->to;
	const struct manifest_entry *entry = to ? to : from;
	char before[64], after[64];
	struct line line = {
		.object = difference->object,
		.differs = names[difference->kind],
		.path = difference->to_path && difference->kind != TREE_UNLINKED
				? difference->to_path
				: difference->from_path,
		.is_directory = entry->type == MANIFEST_DIRECTORY,
	};

	switch (difference->kind) {
	case TREE_RENAMED:
		line.before = line.was = difference->from_path;
		break;
	case TREE_MODE:
		assert(from && to);
		snprintf(before, sizeof(before), "%04" PRIo32, from->mode);
		snprintf(after, sizeof(after), "%04" PRIo32, to->mode);
		line.before = before;
		line.after = after;
		break;
	case TREE_TIME:
		assert(from && to);
		line.before = format_file_time(from, before);
		line.after = format_file_time(to, after);
		break;
	case TREE_OWNER:
		assert(from && to);
		line.before = format_owner(from, before);
		line.after = format_owner(to, after);
		break;
	case TREE_TARGET:
		assert(from && to);
		line.before = from->target;
		line.after = to->target;
		break;
	default:
		break;
	}
	return tell(context, &line);
}

/*
 * Loads the tree at a moment. Without a tree, or with one that can't be read, objects have no
 * names.
 */
static int load_names(struct ctl *ctl, struct osd_client_address partition,
		      const struct osd_client_moment *moment, struct tree_names *names)
{
	struct osd_client_error error;
	char sentence[512];
	int result = osd_client_resolve(ctl->client, partition, moment, &partition.version, &error);

	if (result < 0)
		return ctl_fail_moment(ctl, partition, moment, &error);
	result = tree_names_load(ctl->client, partition, names, &error);
	if (result == 0 || result == -ENODATA)
		return CTL_OK;
	if (result != -EBADMSG && result != -EINPROGRESS && result != -ENOENT)
		return ctl_fail_command(ctl, &error);
	snprintf(sentence, sizeof(sentence), "no names of files: %.400s", error.sentence.text);
	ctl_warn(sentence);
	return CTL_OK;
}

static bool has_path(const struct tree_names *names, const struct ctl_place *place)
{
	for (size_t i = 0; names->manifest_object && i < names->manifest.count; i++)
		if (ctl_place_has(place, names->manifest.entries[i].path))
			return true;
	return false;
}

/* A slip in a path must not look as if nothing had changed there. */
static int check_path(const struct difference_list *list)
{
	const struct ctl_place *place = list->place;

	if (has_path(&list->from, place) || has_path(&list->to, place))
		return CTL_OK;
	if (!list->from.manifest_object && !list->to.manifest_object)
		return ctl_fail(list->ctl, CTL_NOT_FOUND,
				"diff: partition 0x%" PRIx64 " has a directory tree that can be "
				"read at neither moment",
				place->address.partition);
	return ctl_fail(list->ctl, CTL_NOT_FOUND,
			"diff: the tree of partition 0x%" PRIx64 " has '%.*s' at neither moment",
			place->address.partition, (int)place->path_length, place->path);
}

/* ---- the verb ---- */

static int compare(struct difference_list *list, struct osd_client_address address,
		   const struct osd_item_writer *writer)
{
	struct ctl *ctl = list->ctl;
	struct osd_client_error error;
	int result;

	progress_watch(&list->progress, ctl, "diff");
	result = osd_client_execute(ctl->client, OSD_FUNCTION_DIFF, address, writer->data,
				    writer->length, take_objects, list, &error);
	progress_end(&list->progress);
	if (result < 0)
		return ctl_fail_command(ctl, &error);
	if (list->from.manifest_object && list->to.manifest_object &&
	    tree_compare(&list->from, &list->to, take_name, list) < 0)
		return ctl_fail(ctl, CTL_LOCAL, "diff: out of memory");
	return CTL_OK;
}

/* A partition, or a path in its tree, which may be gone at either moment. */
static int find_compared(struct ctl *ctl, struct ctl_place *place,
			 struct osd_client_address *address)
{
	int code = ctl_place(ctl, 0, place);

	*address = place->address;
	if (code == CTL_OK && (!address->partition || address->object))
		return ctl_fail(ctl, CTL_USAGE,
				"diff needs a partition, PID, or a path of its tree, PID:PATH; "
				"'%s' is %s",
				ctl->arguments[0], address->object ? "an object" : "the device");
	if (code == CTL_OK && place->path && ctl->options->raw)
		return ctl_fail(ctl, CTL_USAGE, "diff: --raw is about objects, not about paths");
	return code;
}

int verb_diff(struct ctl *ctl)
{
	struct ctl_place place;
	struct difference_list list = { .ctl = ctl, .output = ctl_list_of(ctl), .place = &place };
	struct osd_client_moment from, to;
	struct osd_client_address address = { 0 };
	uint8_t parameters[PARAMETERS_BYTES];
	struct osd_item_writer writer;
	int code = find_compared(ctl, &place, &address);

	osd_items_begin(&writer, parameters, sizeof(parameters));
	if (code == CTL_OK && address.version)
		return ctl_fail(ctl, CTL_USAGE,
				"diff: both moments are arguments of their own: diff URL PID "
				"MOMENT [MOMENT]");
	if (code == CTL_OK)
		code = ctl_moment(ctl, 1, &from);
	if (code == CTL_OK)
		code = ctl_moment(ctl, 2, &to);
	if (code == CTL_OK)
		code = ctl_add_moment(ctl, &writer, OSD_ITEM_FROM, &from);
	if (code == CTL_OK)
		code = ctl_add_moment(ctl, &writer, OSD_ITEM_TO, &to);
	if (code == CTL_OK)
		code = ctl_connect(ctl);
	if (code == CTL_OK)
		code = ctl_check_moment(ctl, address, &from);
	if (code == CTL_OK)
		code = ctl_check_moment(ctl, address, &to);
	if (code == CTL_OK && !ctl->options->raw)
		code = load_names(ctl, address, &from, &list.from);
	if (code == CTL_OK && !ctl->options->raw)
		code = load_names(ctl, address, &to, &list.to);
	if (code == CTL_OK && place.path)
		code = check_path(&list);
	if (code == CTL_OK)
		code = compare(&list, address, &writer);
	tree_names_free(&list.from);
	tree_names_free(&list.to);
	return code == CTL_OK ? ctl_list_end(&list.output, ctl) : code;
}
