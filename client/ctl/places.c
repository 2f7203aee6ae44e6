/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Addresses as people write them: partitions by name, files of stored trees by path. */
#include "client/ctl/places.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Can --at change this argument? Only an address that is read, not one that something goes to. */
static bool takes_at(const struct ctl *ctl, int index)
{
	return ctl->options->at && (index == 0 || strcmp(ctl->verb, "cat") == 0);
}

/* ---- what is written ---- */

/*
 * A path may have an @ itself, so its moment is behind the last one. Moments have colons, so a
 * colon behind an @ begins no path.
 */
static void split(const char *text, struct ctl_place *place)
{
	const char *rest = text + strcspn(text, "/:@");
	const char *at = *rest == ':' ? strrchr(rest, '@') : strchr(rest, '@');

	*place = (struct ctl_place){ .partition = text, .partition_length = (size_t)(rest - text) };
	if (at)
		place->moment = at + 1;
	if (*rest != ':')
		return;
	place->path = rest + 1;
	place->path_length = at ? (size_t)(at - place->path) : strlen(place->path);
	/* "docs:mail/" is "docs:mail", and "docs:/" and "docs:." are "docs:". */
	while (place->path_length > 0 && place->path[0] == '/') {
		place->path++;
		place->path_length--;
	}
	while (place->path_length > 0 && place->path[place->path_length - 1] == '/')
		place->path_length--;
	if (place->path_length == 1 && place->path[0] == '.')
		place->path_length = 0;
}

bool ctl_place_is_named(const struct ctl_place *place)
{
	return place->partition_length > 0 &&
	       !(place->partition[0] >= '0' && place->partition[0] <= '9');
}

/* The paths of a tree belong together, so only verbs that read take one, where they read. */
static int check_path(const struct ctl *ctl, int index, const struct ctl_place *place)
{
	static const char *const verbs[] = { "ls",       "stat",     "get",    "cat",    "cp",
					     "export",   "log",      "diff",   "search", "check",
					     "checksum", "attr get", "attr ls" };

	if (!place->path)
		return CTL_OK;
	if (place->partition_length == 0)
		return ctl_fail(ctl, CTL_USAGE,
				"'%s': a partition is missing before the colon; for instance "
				"docs:mail/letter.txt",
				ctl->arguments[index]);
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (strcmp(verbs[i], ctl->verb) == 0 &&
		    (index == 0 || strcmp("cat", verbs[i]) == 0))
			return CTL_OK;
	return ctl_fail(ctl, CTL_USAGE,
			"%s: '%s' is a path, which can only be read: a tree changes as a whole, by "
			"`import --update`; `get` and `export` bring its old files back",
			ctl->verb, ctl->arguments[index]);
}

/* ---- names ---- */

/*
 * A partition that was removed since has its name at the device's moments. True: it was found
 * there.
 */
static bool find_in_the_past(struct ctl *ctl, const char *name, const char *moment_text,
			     uint64_t *partition)
{
	struct osd_client_address root = { 0 };
	struct osd_client_moment moment;
	struct error_text sentence;
	struct osd_client_error error;

	return moment_text &&
	       osd_client_parse_moment(moment_text, ctl_now_ms(), &moment, &sentence) == 0 &&
	       moment.kind != OSD_CLIENT_AGO &&
	       osd_client_resolve(ctl->client, root, &moment, &root.version, &error) == 0 &&
	       root.version != 0 &&
	       osd_client_find_named(ctl->client, name, root.version, partition, &error) == 0;
}

static int fail_name(const struct ctl *ctl, const char *name, const struct osd_client_error *error)
{
	if (error->result == -ENOTUNIQ)
		return ctl_fail(ctl, CTL_USAGE, "%s", error->sentence.text);
	if (ctl_exit_of(error) == CTL_DENIED)
		return ctl_fail(
			ctl, CTL_DENIED,
			"the name '%s' can't be looked up, for that takes the right to list "
			"partitions: %s; give the partition's ID",
			name, error->sentence.text);
	return ctl_fail_command(ctl, error);
}

/* `is_to_make`: none may have the name. */
static int find_named(struct ctl *ctl, int index, struct ctl_place *place, bool is_to_make,
		      uint64_t *partition)
{
	struct osd_client_error error;
	char name[OSD_VERSION_NAME_MAX + 1] = "";
	int code;

	if (place->partition_length < sizeof(name))
		memcpy(name, place->partition, place->partition_length);
	if (!osd_client_name_is_valid(name))
		return ctl_fail(
			ctl, CTL_USAGE,
			"address '%.80s' begins neither with an ID, as 0x10000/0x10004, nor "
			"with a name, as docs:a/path@yesterday",
			ctl->arguments[index]);
	if (strcmp(ctl->verb, "key mint") == 0)
		return ctl_fail(ctl, CTL_USAGE,
				"key mint asks no target what '%s' is; give the partition's ID",
				name);
	code = ctl_connect(ctl);
	if (code != CTL_OK)
		return code;
	if (osd_client_find_named(ctl->client, name, 0, partition, &error) == 0)
		return CTL_OK;
	if (error.result == -ENOENT && is_to_make) {
		strcpy(place->new_name, name);
		return CTL_OK;
	}
	if (error.result == -ENOENT &&
	    find_in_the_past(ctl, name, takes_at(ctl, index) ? ctl->options->at : place->moment,
			     partition))
		return CTL_OK;
	if (error.result == -ENOTUNIQ && is_to_make)
		return ctl_fail(ctl, CTL_EXISTS, "%s", error.sentence.text);
	return fail_name(ctl, name, &error);
}

/* ---- places ---- */

static bool is_number(const char *text)
{
	return text[0] >= '0' && text[0] <= '9' &&
	       strspn(text, "0123456789abcdefABCDEFxX") == strlen(text);
}

/* Everything but the path: the partition by number, the object, and a version. */
static int parse_numbers(struct ctl *ctl, const char *text, struct ctl_place *place,
			 uint64_t partition)
{
	char plain[2 * OSD_CLIENT_ADDRESS_TEXT], number[24] = "";
	const char *rest = place->path ? "" : place->partition + place->partition_length;
	size_t rest_length = place->path     ? 0
			     : place->moment ? (size_t)(place->moment - 1 - rest)
					     : strlen(rest);
	bool is_version = place->moment && is_number(place->moment);
	struct error_text error;
	int length;

	if (ctl_place_is_named(place))
		snprintf(number, sizeof(number), "0x%" PRIx64, partition);
	length = snprintf(plain, sizeof(plain), "%s%.*s%.*s%s%s", number,
			  ctl_place_is_named(place) ? 0 : (int)place->partition_length,
			  place->partition, (int)rest_length, rest, is_version ? "@" : "",
			  is_version ? place->moment : "");
	if ((size_t)length >= sizeof(plain))
		return ctl_fail(ctl, CTL_USAGE, "address '%.80s' is too long", text);
	if (osd_client_parse_address(plain, &place->address, &error) < 0)
		return ctl_fail(ctl, CTL_USAGE, "%s", error.text);
	if (place->path && !place->address.partition)
		return ctl_fail(ctl, CTL_USAGE, "'%.80s': the device has no paths, partitions have",
				text);
	return CTL_OK;
}

static int read_place(struct ctl *ctl, int index, bool is_to_make, struct ctl_place *place)
{
	uint64_t partition = 0;
	const char *text;
	int code;

	*place = (struct ctl_place){ .partition = "" };
	if (index >= ctl->argument_count)
		return CTL_OK;
	text = ctl->arguments[index];
	split(text, place);
	code = check_path(ctl, index, place);
	if (code == CTL_OK && ctl_place_is_named(place))
		code = find_named(ctl, index, place, is_to_make, &partition);
	if (code == CTL_OK && !place->new_name[0])
		code = parse_numbers(ctl, text, place, partition);
	return code;
}

/* The object that ~N of a path counts back from has to be found first. */
static int resolve(struct ctl *ctl, struct ctl_place *place, const char *moment)
{
	int code = CTL_OK;

	if (place->path && moment[0] == '~') {
		code = ctl_find_file(ctl, place);
		if (code == CTL_OK)
			place->path = NULL;
	}
	if (code == CTL_OK)
		code = ctl_resolve(ctl, moment, &place->address);
	if (code == CTL_NOT_FOUND && place->path && !ctl->options->json)
		fprintf(stderr, "muninnctl: if '@%s' is a part of the path, write @now behind it\n",
			moment);
	return code;
}

int ctl_place(struct ctl *ctl, int index, struct ctl_place *place)
{
	int code = read_place(ctl, index, false, place);

	if (code == CTL_OK && place->moment && !is_number(place->moment))
		code = resolve(ctl, place, place->moment);
	if (code != CTL_OK || !takes_at(ctl, index))
		return code;
	if (place->moment)
		return ctl_fail(
			ctl, CTL_USAGE,
			"'%s' has a moment, and --at gives another one; leave one of them out",
			ctl->arguments[index]);
	return resolve(ctl, place, ctl->options->at);
}

int ctl_place_to_make(struct ctl *ctl, int index, struct ctl_place *place)
{
	int code = read_place(ctl, index, true, place);

	if (code == CTL_OK && (place->moment || takes_at(ctl, index)))
		return ctl_fail(ctl, CTL_DENIED,
				"%s: the past can only be read; leave @MOMENT and --at out",
				ctl->verb);
	/* Behind a new name nothing was read. */
	if (code == CTL_OK &&
	    (place->address.object ||
	     (place->new_name[0] && place->partition[place->partition_length] == '/')))
		return ctl_fail(ctl, CTL_USAGE,
				"%s needs a partition, PID or a name; '%s' is an "
				"object",
				ctl->verb, ctl->arguments[index]);
	return code;
}

int ctl_check_new_name(struct ctl *ctl, const char *name)
{
	struct osd_client_error error;
	uint64_t partition;
	int code;

	if (!osd_client_name_is_valid(name))
		return ctl_fail(ctl, CTL_USAGE,
				"'%.80s' can't be the name of a partition: it is 1 to %d bytes of "
				"UTF-8, begins with an ASCII letter, has no control characters and "
				"none of / : @, and is not \"now\", \"root\", \"master\" or "
				"\"new\"",
				name, OSD_VERSION_NAME_MAX);
	code = ctl_connect(ctl);
	if (code != CTL_OK)
		return code;
	if (osd_client_find_named(ctl->client, name, 0, &partition, &error) == 0)
		return ctl_fail(ctl, CTL_EXISTS, "partition 0x%" PRIx64 " has the name '%s'",
				partition, name);
	if (error.result == -ENOTUNIQ)
		return ctl_fail(ctl, CTL_EXISTS, "%s", error.sentence.text);
	return error.result == -ENOENT ? CTL_OK : fail_name(ctl, name, &error);
}

int ctl_partition_to_make(struct ctl *ctl, int index, uint64_t *requested,
			  char name[OSD_VERSION_NAME_MAX + 1])
{
	struct ctl_place place;
	int code = ctl_place_to_make(ctl, index, &place);

	if (code == CTL_OK && ctl_place_is_named(&place) && !place.new_name[0])
		return ctl_fail(ctl, CTL_EXISTS, "partition 0x%" PRIx64 " has the name '%.*s'",
				place.address.partition, (int)place.partition_length,
				place.partition);
	if (code == CTL_OK && place.new_name[0] && ctl->options->name)
		return ctl_fail(ctl, CTL_USAGE, "%s: the name is there twice: '%s', and --name",
				ctl->verb, place.new_name);
	if (code == CTL_OK && index < ctl->argument_count && !place.new_name[0] &&
	    !place.address.partition)
		return ctl_fail(ctl, CTL_USAGE, "%s needs a partition, PID; '%s' is the device",
				ctl->verb, ctl->arguments[index]);
	if (code == CTL_OK && ctl->options->name)
		code = ctl_check_new_name(ctl, ctl->options->name);
	if (code != CTL_OK)
		return code;
	*requested = place.address.partition;
	strcpy(name, ctl->options->name ? ctl->options->name : place.new_name);
	return CTL_OK;
}

/* ---- paths ---- */

void ctl_forget_tree(struct ctl *ctl)
{
	if (ctl->tree)
		tree_names_free(ctl->tree);
	free(ctl->tree);
	ctl->tree = NULL;
}

int ctl_load_tree(struct ctl *ctl, struct osd_client_address partition,
		  const struct tree_names **tree)
{
	struct osd_client_error error;
	int code = ctl_connect(ctl);

	partition.object = 0;
	*tree = ctl->tree;
	if (code != CTL_OK || (ctl->tree && ctl->tree_of.partition == partition.partition &&
			       ctl->tree_of.version == partition.version))
		return code;
	ctl_forget_tree(ctl);
	ctl->tree = calloc(1, sizeof(*ctl->tree));
	if (!ctl->tree)
		return ctl_fail(ctl, CTL_LOCAL, "%s: out of memory", ctl->verb);
	*tree = ctl->tree;
	ctl->tree_of = partition;
	if (tree_names_load(ctl->client, partition, ctl->tree, &error) == 0)
		return CTL_OK;
	ctl_forget_tree(ctl);
	return ctl_fail(ctl, ctl_exit_of(&error), "%s", error.sentence.text);
}

bool ctl_place_has(const struct ctl_place *place, const char *path)
{
	return place->path_length == 0 ||
	       (strncmp(path, place->path, place->path_length) == 0 &&
		(path[place->path_length] == '\0' || path[place->path_length] == '/'));
}

/* What stands behind an @ of the path was taken for a moment. */
static int fail_path(const struct ctl *ctl, const struct ctl_place *place)
{
	return ctl_fail(ctl, CTL_NOT_FOUND,
			"the tree of partition 0x%" PRIx64 " has no '%.*s'%s; `muninnctl ls` of "
			"'%.*s:' lists it",
			place->address.partition, (int)place->path_length, place->path,
			place->moment ? " at that moment (behind a name with an @, write @now)"
				      : "",
			(int)place->partition_length, place->partition);
}

int ctl_find_entry(struct ctl *ctl, const struct ctl_place *place, const struct tree_names *tree,
		   const struct manifest_entry **entry)
{
	const struct manifest *manifest = &tree->manifest;

	/* The first entry is the tree's root. */
	*entry = &manifest->entries[0];
	for (size_t i = 0; i < manifest->count && place->path_length > 0; i++) {
		*entry = &manifest->entries[i];
		if (strlen((*entry)->path) == place->path_length &&
		    ctl_place_has(place, (*entry)->path))
			break;
		*entry = NULL;
	}
	if (!*entry)
		return fail_path(ctl, place);
	if ((*entry)->type == MANIFEST_HARD_LINK)
		*entry = &manifest->entries[(*entry)->linked];
	return CTL_OK;
}

int ctl_find_file(struct ctl *ctl, struct ctl_place *place)
{
	const struct manifest_entry *entry;
	const struct tree_names *tree;
	int code = place->path ? ctl_load_tree(ctl, place->address, &tree) : CTL_OK;

	if (code == CTL_OK && place->path)
		code = ctl_find_entry(ctl, place, tree, &entry);
	if (code != CTL_OK || !place->path)
		return code;
	if (entry->type == MANIFEST_DIRECTORY)
		return ctl_fail(
			ctl, CTL_USAGE,
			"%s needs a file, and '%.*s' is a directory; `ls` lists it, `export` "
			"brings it out",
			ctl->verb,
			place->path_length ? (int)place->path_length
					   : (int)place->partition_length + 1,
			place->path_length ? place->path : place->partition);
	if (entry->type == MANIFEST_SYMLINK)
		return ctl_fail(ctl, CTL_USAGE, "%s: '%s' is a symbolic link to '%s'", ctl->verb,
				entry->path, entry->target);
	place->address.object = entry->object;
	return CTL_OK;
}

char *ctl_place_text(const struct ctl *ctl, const struct ctl_place *place, const char *path,
		     const char *end)
{
	char text[OSD_CLIENT_ADDRESS_TEXT];
	const char *moment = strchr(ctl_format_address(ctl, place->address, text), '@');
	char *written;

	/* So that the last @ is none of the path. */
	if (!moment)
		moment = strchr(path, '@') ? "@now" : "";
	if (strcmp(path, ".") == 0)
		path = end = "";
	if (asprintf(&written, "%.*s:%s%s%s", (int)place->partition_length, place->partition, path,
		     end, moment) < 0)
		return NULL;
	return written;
}
