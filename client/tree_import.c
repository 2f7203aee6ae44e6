/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Stores a tree: the files, then the manifest, then the partition's pointer to it. An update goes
 * on with the objects of the stored tree, and changes what differs.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "client/tree_store.h"
#include "common/bytes.h"

/* Does the stored manifest have this text already? 1, 0, or -ENOMEM. */
static int is_stored(const struct manifest *old, const char *text, size_t length)
{
	char *old_text;
	size_t old_length;
	int same;

	if (manifest_format(old, &old_text, &old_length) < 0)
		return -ENOMEM;
	same = old_length == length && memcmp(old_text, text, length) == 0;
	free(old_text);
	return same;
}

static int refuse_tree(const struct importer *importer)
{
	return outcome_set(importer->error, -EEXIST,
			   "partition 0x%" PRIx64
			   " holds a directory tree already; --update makes it as the directory "
			   "is, --replace puts a new one in its place",
			   importer->partition);
}

/* Somebody may have stored a tree meanwhile, and with it have removed objects of this import. */
static int refuse_new_tree(struct importer *importer)
{
	const struct osd_client_address address = { .partition = importer->partition };
	struct osd_client_error error;
	struct tree_pointer pointer;
	int result;

	if (importer->old_manifest)
		return 0;
	result = tree_read_pointer(importer->client, address, &pointer, &error);
	if (result == 0)
		return importer->result = refuse_tree(importer);
	return result == -ENODATA ? 0 : importer_fail(importer, &error);
}

/* Stores the manifest, unless the stored one (`old`, NULL: none) says the same. */
static int store_manifest(struct importer *importer, const struct manifest *old)
{
	struct manifest_entry entry = { .path = (char *)"muninn-tree" };
	struct tree_pointer pointer;
	struct osd_client_error error;
	char *text;
	size_t length, links;
	int stored = 0;

	links = manifest_take_out(importer->manifest);
	if (links == SIZE_MAX || manifest_format(importer->manifest, &text, &length) < 0)
		return importer_fail_local(importer, -ENOMEM, "manifest");
	importer->report->hard_links -= links;
	importer->report->left_out += links;
	if (old && !importer->marked)
		stored = is_stored(old, text, length);
	if (stored < 0)
		importer_fail_local(importer, stored, "manifest");
	else if (!stored)
		tree_store_text(importer, text, length, &entry);
	free(text);
	if (importer->result < 0 || stored || refuse_new_tree(importer) < 0)
		return importer->result;
	pointer = (struct tree_pointer){ .object = entry.object, .length = entry.length };
	memcpy(pointer.sha256, entry.sha256, sizeof(pointer.sha256));
	importer->report->manifest_object = entry.object;
	importer->report->has_ended = true;
	if (tree_write_pointer(importer->client, importer->partition, &pointer, &error) < 0)
		return importer_fail(importer, &error);
	return 0;
}

/* The partition may have been chosen by the target. */
static int make_partition(struct importer *importer)
{
	int result = osd_client_create_named(importer->client, importer->partition, -1,
					     importer->options->name, &importer->partition,
					     importer->error);

	importer->report->made_partition = result == 0;
	importer->report->partition = importer->partition;
	return result;
}

/*
 * Makes sure that there is a partition without a tree, or with one that may be replaced or updated.
 * `old`: the tree to update; *has_old: there is one.
 */
static int prepare_partition(struct importer *importer, struct manifest *old, bool *has_old)
{
	struct osd_client_address address = { .partition = importer->partition };
	const struct tree_options *options = importer->options;
	struct tree_pointer pointer;
	uint64_t begun_ms;
	int result;

	*has_old = false;
	importer->old_manifest = 0;
	if (importer->partition == 0)
		return make_partition(importer);
	result = tree_read_pointer(importer->client, address, &pointer, importer->error);
	if (result == -ENOENT)
		return make_partition(importer);
	if (result < 0 && result != -ENODATA)
		return result;
	if (result == 0 && !options->replace && !options->update)
		return refuse_tree(importer);
	if (result == 0)
		importer->old_manifest = pointer.object;
	if (result == 0 && options->update) {
		*has_old = true;
		importer->report->manifest_object = pointer.object;
		result = tree_read_update(importer->client, address, &importer->marked, &begun_ms,
					  importer->error);
		if (result == 0)
			result = tree_read_manifest(importer->client, address, &pointer, old,
						    importer->error);
		if (result < 0)
			return result;
	}
	if (options->clean)
		return tree_clean(importer->client, importer->partition, importer->report,
				  importer->error);
	return 0;
}

/* Chooses the IDs of new objects. Finds a file that is too long before anything is stored. */
static int prepare_ids(struct importer *importer)
{
	const struct osd_client_address partition = { .partition = importer->partition };
	const struct manifest *manifest = importer->manifest;
	struct osd_client_ids *ids = &importer->ids;
	int result = osd_client_find_ids(importer->client, partition, ids, importer->error);

	for (size_t i = 0; i < manifest->count && result == 0; i++)
		if (manifest->entries[i].type == MANIFEST_FILE &&
		    manifest->entries[i].length > ids->bytes_max)
			result = outcome_set(
				importer->error, -EFBIG,
				"%s/%s has %" PRIu64 " bytes, and objects of partition 0x%" PRIx64
				", whose IDs are packed, have at most %" PRIu64
				"; import it into one made with `mkpart --layout flat`",
				importer->directory, manifest->entries[i].path,
				manifest->entries[i].length, importer->partition, ids->bytes_max);
	if (result == 0)
		result = tree_first_free(importer->client, importer->partition, ids,
					 &importer->next_object, importer->error);
	importer->report->has_begun = result == 0;
	return result;
}

/*
 * What interrupted imports have left. IDs ascend, and the manifest is the last object of its tree,
 * so it is behind that.
 */
static int find_leftovers(struct importer *importer, struct manifest *leftovers)
{
	const uint64_t manifest = importer->old_manifest;

	if (importer->report->made_partition || importer->options->clean || manifest == UINT64_MAX)
		return 0;
	return tree_find_leftovers(importer, manifest ? manifest + 1 : OSD_FIRST_ID, leftovers);
}

/* Gives files the objects that are there for them, and changes what differs. */
static int update_files(struct importer *importer, const struct manifest *old,
			const struct manifest *leftovers)
{
	struct tree_update *update;
	int result = tree_update_begin(importer, old, leftovers, &update);

	if (result == 0)
		result = tree_store_files(importer);
	if (result == 0)
		result = tree_update_change(update);
	tree_update_free(update);
	return result;
}

/* ---- what an import would do ---- */

static void tell(const struct importer *importer, const char *what, const char *path)
{
	if (importer->options->differs)
		importer->options->differs(importer->options->context, what, path);
}

/* By what the manifests say of a file that is in both. */
static void compare_file(struct importer *importer, const struct manifest_entry *entry,
			 const struct manifest_entry *old)
{
	struct tree_report *report = importer->report;

	if (entry->length != old->length || entry->seconds != old->seconds ||
	    entry->nanoseconds != old->nanoseconds) {
		report->changed++;
		tell(importer, "changed", entry->path);
	} else if (entry->mode != old->mode || strcmp(entry->path, old->path) != 0 ||
		   !manifest_same_owner(entry, old) || !manifest_same_xattrs(entry, old)) {
		report->touched++;
		tell(importer, "touched", entry->path);
	} else {
		report->unchanged++;
	}
}

/* `seen` has a place for each entry of `old`. */
static void compare_files(struct importer *importer, const struct manifest *old,
			  const size_t *matches, bool *seen)
{
	for (size_t i = 0; i < importer->manifest->count; i++) {
		const struct manifest_entry *entry = &importer->manifest->entries[i];

		if (entry->type != MANIFEST_FILE)
			continue;
		if (matches[i] == SIZE_MAX) {
			importer->report->added++;
			tell(importer, "new", entry->path);
		} else {
			seen[matches[i]] = true;
			compare_file(importer, entry, &old->entries[matches[i]]);
		}
	}
	for (size_t i = 0; i < old->count; i++)
		if (old->entries[i].type == MANIFEST_FILE && !seen[i]) {
			importer->report->removed++;
			tell(importer, "removed", old->entries[i].path);
		}
}

static int compare_with(struct importer *importer, const struct manifest *old)
{
	size_t *matches = calloc(importer->manifest->count + 1, sizeof(*matches));
	bool *seen = calloc(old->count + 1, sizeof(*seen));
	int result = matches && seen ? tree_match(importer->manifest, old, matches) : -ENOMEM;

	if (result == 0)
		compare_files(importer, old, matches, seen);
	else
		importer_fail_local(importer, result, "import");
	free(matches);
	free(seen);
	return result;
}

static int rehearse(struct importer *importer)
{
	const struct osd_client_address address = { .partition = importer->partition };
	struct manifest old = { 0 };
	const struct manifest none = { 0 };
	struct tree_pointer pointer;
	bool has_old;
	int result = -ENOENT;

	if (importer->partition)
		result = tree_read_pointer(importer->client, address, &pointer, importer->error);
	if (result == 0 && !importer->options->replace && !importer->options->update)
		return refuse_tree(importer);
	if (result == 0 && importer->options->update)
		result = tree_read_manifest(importer->client, address, &pointer, &old,
					    importer->error);
	has_old = result == 0 && importer->options->update;
	if (result == 0 || result == -ENOENT || result == -ENODATA)
		result = tree_keep_unread(importer, &old, &none);
	if (result == 0 && has_old)
		result = compare_with(importer, &old);
	else if (result == 0)
		importer->report->added = importer->report->files;
	manifest_free(&old);
	return result;
}

/* ---- importing ---- */

static int import(struct importer *importer)
{
	const struct tree_options *options = importer->options;
	struct tree_report *report = importer->report;
	struct manifest old = { 0 }, leftovers = { 0 };
	bool has_old;
	int result = prepare_partition(importer, &old, &has_old);

	if (result == 0)
		result = prepare_ids(importer);
	if (result == 0)
		result = find_leftovers(importer, &leftovers);
	if (result == 0)
		result = tree_keep_unread(importer, &old, &leftovers);
	if (result == 0 && options->total)
		options->total(options->context, report->files, report->bytes);
	if (result == 0)
		result = has_old || leftovers.count ? update_files(importer, &old, &leftovers)
						    : tree_store_files(importer);
	if (result == 0 && leftovers.count)
		result = tree_clean_leftovers(importer->client, importer->partition,
					      importer->manifest, &leftovers, report,
					      importer->error);
	if (result == 0)
		result = store_manifest(importer, has_old ? &old : NULL);
	if (result == 0 && (options->replace || options->update))
		result = tree_clean(importer->client, importer->partition, report, importer->error);
	manifest_free(&old);
	manifest_free(&leftovers);
	return result;
}

int tree_import(struct osd_client *client, uint64_t partition, const char *directory,
		const struct tree_options *options, struct tree_report *report,
		struct osd_client_error *error)
{
	struct manifest manifest = { 0 };
	struct importer importer = {
		.client = client,
		.flight = { .client = client },
		.partition = partition,
		.directory = directory,
		.options = options,
		.manifest = &manifest,
		.report = report,
		.error = error,
	};
	int result;

	*report = (struct tree_report){ .partition = partition };
	if (getrandom(importer.import_id, sizeof(importer.import_id), 0) !=
	    (ssize_t)sizeof(importer.import_id))
		return outcome_set_local(error, -EIO, "import: the system gives no random bytes");
	result = tree_walk(directory, options, &manifest, &importer.unread, report, error);
	if (result == 0)
		result = options->dry_run ? rehearse(&importer) : import(&importer);
	tree_place_leave(&importer.place);
	tree_unread_free(&importer.unread);
	manifest_free(&manifest);
	return result;
}
