/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* ls of a path: names of the tree that a partition holds, from its manifest alone. */
#include "client/ctl/list_tree.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tree_listing {
	struct ctl *ctl;
	const struct ctl_place *place;
	struct ctl_list list;
};

/* "drwxr-xr-x"; the letter of a hard link is that of its file. */
static void format_mode(const struct manifest_entry *entry, char text[11])
{
	static const char letters[] = "rwxrwxrwx";
	const uint32_t mode = entry->type == MANIFEST_SYMLINK ? 0777 : entry->mode;

	text[0] = entry->type == MANIFEST_DIRECTORY ? 'd'
		  : entry->type == MANIFEST_SYMLINK ? 'l'
						    : '-';
	for (int i = 0; i < 9; i++)
		text[1 + i] = mode >> (8 - i) & 1 ? letters[i] : '-';
	if (mode & 04000)
		text[3] = text[3] == 'x' ? 's' : 'S';
	if (mode & 02000)
		text[6] = text[6] == 'x' ? 's' : 'S';
	if (mode & 01000)
		text[9] = text[9] == 'x' ? 't' : 'T';
	text[10] = '\0';
}

static void print_owner(const struct manifest_entry *entry, const char *mode)
{
	char owner[32] = "?";

	if (entry->user != MANIFEST_NO_OWNER)
		snprintf(owner, sizeof(owner), "%" PRIu32 ":%" PRIu32, entry->user, entry->group);
	printf("%s%c %9s ", mode, entry->xattr_count > 0 ? '+' : ' ', owner);
}

static const char *format_time(const struct manifest_entry *entry, char text[CTL_TIME_TEXT])
{
	return ctl_format_seconds(entry->seconds, entry->nanoseconds / 1000000, text);
}

static json_t *entry_json(const struct tree_listing *listing, const struct manifest_entry *entry,
			  const char *path, const char *address)
{
	static const char *const types[] = { [MANIFEST_DIRECTORY] = "directory",
					     [MANIFEST_FILE] = "file",
					     [MANIFEST_SYMLINK] = "link" };
	char time[CTL_TIME_TEXT], mode[8];
	json_t *object = ctl_json_with_text(json_object(), "address", address);

	ctl_json_with_text(object, "path", path);
	json_object_set_new(object, "type", json_string(types[entry->type]));
	if (object && entry->type == MANIFEST_FILE)
		json_object_set_new(object, "id", ctl_json_id(entry->object));
	if (!object || !listing->ctl->options->long_list)
		return object;
	if (entry->type == MANIFEST_FILE)
		json_object_set_new(object, "length", json_integer((json_int_t)entry->length));
	json_object_set_new(object, "modified", json_string(format_time(entry, time)));
	if (entry->user != MANIFEST_NO_OWNER) {
		json_object_set_new(object, "user", json_integer(entry->user));
		json_object_set_new(object, "group", json_integer(entry->group));
	}
	if (entry->type == MANIFEST_SYMLINK) {
		ctl_json_with_text(object, "target", entry->target);
	} else {
		snprintf(mode, sizeof(mode), "%04" PRIo32, entry->mode);
		json_object_set_new(object, "mode", json_string(mode));
	}
	return object;
}

/* `entry` is that of the content, `path` the name of it. */
static int tell(struct tree_listing *listing, const struct manifest_entry *entry, const char *path)
{
	const char *end = entry->type == MANIFEST_DIRECTORY ? "/" : "";
	char *address = ctl_place_text(listing->ctl, listing->place, path, end);
	char mode[11], time[CTL_TIME_TEXT];
	int result = address ? 0 : -ENOMEM;

	if (result == 0 && listing->list.is_json) {
		result = ctl_list_add(&listing->list, entry_json(listing, entry, path, address));
	} else if (result == 0) {
		if (listing->ctl->options->long_list) {
			format_mode(entry, mode);
			print_owner(entry, mode);
			printf("%12" PRIu64 "  %s  ", entry->length, format_time(entry, time));
		}
		ctl_print_text(address);
		if (listing->ctl->options->long_list && entry->type == MANIFEST_SYMLINK) {
			printf(" -> ");
			ctl_print_text(entry->target);
		}
		putchar('\n');
	}
	free(address);
	return result;
}

/* Is it directly in the directory, or with --recursive anywhere below? */
static bool is_listed(const struct tree_listing *listing, const struct manifest_entry *entry)
{
	const struct ctl_place *place = listing->place;
	const char *rest = entry->path;

	if (strcmp(rest, ".") == 0 || !ctl_place_has(place, rest) ||
	    strlen(rest) == place->path_length)
		return false;
	rest += place->path_length + (place->path_length > 0);
	return listing->ctl->options->recursive || !strchr(rest, '/');
}

int list_tree(struct ctl *ctl, const struct ctl_place *place)
{
	const struct manifest_entry *found, *entry;
	const struct tree_names *tree;
	struct tree_listing listing = { .ctl = ctl, .place = place, .list = ctl_list_of(ctl) };
	int result = 0, code = ctl_load_tree(ctl, place->address, &tree);

	if (code == CTL_OK)
		code = ctl_find_entry(ctl, place, tree, &found);
	if (code != CTL_OK)
		return code;
	for (size_t i = 0; i < tree->manifest.count && result == 0; i++) {
		entry = &tree->manifest.entries[i];
		/* A file or link is listed itself. */
		if (found->type == MANIFEST_DIRECTORY
			    ? !is_listed(&listing, entry)
			    : !ctl_place_has(place, entry->path) || strcmp(entry->path, ".") == 0)
			continue;
		result = tell(&listing,
			      entry->type == MANIFEST_HARD_LINK
				      ? &tree->manifest.entries[entry->linked]
				      : entry,
			      entry->path);
	}
	if (result < 0)
		return ctl_fail(ctl, CTL_LOCAL, "ls: out of memory");
	return ctl_list_end(&listing.list, ctl);
}
