/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Makes the objects of a stored tree, or of an interrupted import, equal to the files of a
 * directory.
 *
 * First it looks at all of them, by lists of many if the target lists attributes. If an object's
 * attributes say that it holds what the manifest says, and the file has the same length and time,
 * its content stays unread. It compares the others byte by byte with their files, and writes the
 * ranges that differ. What an interrupted import has completed is compared with the file by its
 * SHA-256: nobody has said that the directory is still the same one.
 *
 * A file of up to TREE_SMALL_BYTES changes with one command, so it is the old one or the new one. A
 * longer one loses TREE_OBJECT_COMPLETE while it is written.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/sha.h>

#include "client/read_fully.h"
#include "client/tree_ranges.h"
#include "client/tree_store.h"
#include "common/bytes.h"

enum { USERNAME_BYTES = 256 };

/* An object that a file goes on with, as the first look found it. */
struct kept {
	const struct manifest_entry *old; /* NULL: there is none */
	bool is_leftover;                 /* of an interrupted import, not of the present tree */
	uint64_t length;                  /* of the object */
	bool has_length;                  /* the target has told it */
	bool is_whole;                    /* holds what `old` says */
	bool has_complete;                /* with this value */
	bool has_status, has_username;    /* as they have to be */
	uint8_t complete[TREE_COMPLETE_BYTES];
};

struct tree_update {
	struct importer *importer;
	struct kept *kept; /* by index in the new manifest */
};

static struct manifest_entry *entry_at(const struct tree_update *update, size_t index)
{
	return &update->importer->manifest->entries[index];
}

/* ---- looking ---- */

/* Files whose objects are looked for, by the objects' IDs. */
struct look {
	struct tree_update *update;
	struct wanted {
		uint64_t object;
		size_t index;
	} * wanted;
	size_t count, next; /* those before `next` have been found, or are not there */
};

static bool is_number(const struct osd_attribute *attribute, uint32_t number)
{
	return attribute->page == OSD_USER_OBJECT_INFORMATION && attribute->number == number;
}

static bool has_value(const struct osd_attribute *attribute, const struct osd_client_value *wanted)
{
	return attribute->length == wanted->length && attribute->present == wanted->length &&
	       (wanted->length == 0 ||
		memcmp(attribute->value, wanted->value, wanted->length) == 0);
}

static void note_attribute(struct tree_update *update, size_t index,
			   const struct osd_attribute *attribute)
{
	const struct manifest_entry *entry = entry_at(update, index);
	struct kept *kept = &update->kept[index];
	struct osd_client_value username = tree_username_value(entry), wanted;
	uint8_t status[TREE_STATUS_BYTES];

	if (is_number(attribute, OSD_INFORMATION_LOGICAL_LENGTH) && attribute->present == 8) {
		kept->has_length = true;
		kept->length = get_be64(attribute->value);
	} else if (is_number(attribute, OSD_INFORMATION_USERNAME)) {
		kept->has_username = has_value(attribute, &username);
	}
	if (attribute->page != TREE_OBJECT_PAGE)
		return;
	if (attribute->number == TREE_OBJECT_STATUS) {
		tree_encode_status(entry, status);
		wanted = tree_status_value(status);
		kept->has_status = has_value(attribute, &wanted);
	} else if (attribute->number == TREE_OBJECT_COMPLETE &&
		   attribute->present == TREE_COMPLETE_BYTES) {
		kept->has_complete = true;
		memcpy(kept->complete, attribute->value, TREE_COMPLETE_BYTES);
	}
}

/* After its attributes have been noted. */
static int take_object_of(struct tree_update *update, size_t index)
{
	struct importer *importer = update->importer;
	struct kept *kept = &update->kept[index];
	const struct manifest_entry *old = kept->old;
	uint8_t complete[TREE_COMPLETE_BYTES];

	if (!kept->has_length) {
		importer->result = outcome_set(
			importer->error, -EPROTO,
			"the target does not tell the length of object 0x%" PRIx64, old->object);
		return importer->result;
	}
	tree_encode_complete(old, complete);
	kept->is_whole = kept->length == old->length && kept->has_complete &&
			 memcmp(kept->complete, complete, sizeof(complete)) == 0;
	entry_at(update, index)->object = old->object;
	return 0;
}

/* Somebody removed the objects of those before `id`: there will be new ones for the files. */
static void pass_over(struct look *look, uint64_t id)
{
	while (look->next < look->count && look->wanted[look->next].object < id)
		look->update->kept[look->wanted[look->next++].index].old = NULL;
}

/* 1: no other one is wanted. */
static int take_listed(void *context, uint64_t id, struct osd_list_reader *attributes)
{
	struct look *look = context;
	struct osd_attribute attribute;
	size_t index;

	pass_over(look, id);
	if (look->next < look->count && look->wanted[look->next].object == id) {
		index = look->wanted[look->next++].index;
		while (osd_list_next(attributes, &attribute) == 1)
			note_attribute(look->update, index, &attribute);
		if (take_object_of(look->update, index) < 0)
			return look->update->importer->result;
	}
	return look->next == look->count;
}

static int take_attribute(void *context, const struct osd_attribute *attribute)
{
	const struct look *look = context;

	note_attribute(look->update, look->wanted[look->next].index, attribute);
	return 0;
}

/* With a command for each object. */
static int look_one_by_one(struct look *look, const struct osd_client_value *gets, size_t count)
{
	struct tree_update *update = look->update;
	struct importer *importer = update->importer;
	struct osd_client_address address = { .partition = importer->partition };
	struct osd_client_error error;
	int result;

	for (; look->next < look->count && importer->result == 0; look->next++) {
		const struct wanted *wanted = &look->wanted[look->next];

		address.object = wanted->object;
		result = osd_client_get_attributes(importer->client, address, gets, count,
						   take_attribute, look, &error);
		if (result == -ENOENT)
			update->kept[wanted->index].old = NULL;
		else if (result < 0)
			importer_fail(importer, &error);
		else
			take_object_of(update, wanted->index);
	}
	return importer->result;
}

static int by_object(const void *left, const void *right)
{
	const struct wanted *a = left, *b = right;

	return (a->object > b->object) - (a->object < b->object);
}

static int look_at_objects(struct look *look)
{
	const struct osd_client_value gets[] = {
		{ TREE_OBJECT_PAGE, TREE_OBJECT_COMPLETE, NULL, TREE_COMPLETE_BYTES },
		{ TREE_OBJECT_PAGE, TREE_OBJECT_STATUS, NULL, TREE_STATUS_BYTES },
		{ OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_LOGICAL_LENGTH, NULL, 8 },
		{ OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_USERNAME, NULL, USERNAME_BYTES },
	};
	const size_t count = sizeof(gets) / sizeof(gets[0]);
	struct importer *importer = look->update->importer;
	struct osd_client_error error;
	int result;

	if (look->count == 0)
		return 0;
	qsort(look->wanted, look->count, sizeof(*look->wanted), by_object);
	result = osd_client_list_attributes(
		importer->client, (struct osd_client_address){ .partition = importer->partition },
		look->wanted[0].object, gets, count, take_listed, look, &error);
	if (result == -EOPNOTSUPP)
		return look_one_by_one(look, gets, count);
	if (result < 0)
		return importer_fail(importer, &error);
	pass_over(look, UINT64_MAX);
	return 0;
}

/* All of them in one walk over the partition's objects, from the lowest that is wanted on. */
static int look_for_all(struct tree_update *update)
{
	struct importer *importer = update->importer;
	size_t count = importer->manifest->count;
	struct look look = { .update = update, .wanted = calloc(count, sizeof(*look.wanted)) };
	int result;

	if (!look.wanted)
		return importer_fail_local(importer, -ENOMEM, "import");
	for (size_t i = 0; i < count; i++)
		if (update->kept[i].old)
			look.wanted[look.count++] =
				(struct wanted){ update->kept[i].old->object, i };
	result = look_at_objects(&look);
	free(look.wanted);
	return result;
}

/* Gives files that have no object yet those of `from`. */
static int match_with(struct tree_update *update, const struct manifest *from, bool is_leftover)
{
	struct importer *importer = update->importer;
	size_t count = importer->manifest->count;
	size_t *matches = calloc(count, sizeof(*matches));

	if (!matches || tree_match(importer->manifest, from, matches) < 0) {
		free(matches);
		return importer_fail_local(importer, -ENOMEM, "import");
	}
	for (size_t i = 0; i < count; i++)
		if (!update->kept[i].old && matches[i] != SIZE_MAX) {
			update->kept[i].old = &from->entries[matches[i]];
			update->kept[i].is_leftover = is_leftover;
		}
	free(matches);
	return 0;
}

int tree_update_begin(struct importer *importer, const struct manifest *old,
		      const struct manifest *leftovers, struct tree_update **created)
{
	struct tree_update *update = calloc(1, sizeof(*update));
	int result;

	*created = update;
	if (update) {
		update->importer = importer;
		update->kept = calloc(importer->manifest->count, sizeof(*update->kept));
	}
	if (!update || !update->kept)
		return importer_fail_local(importer, -ENOMEM, "import");
	result = match_with(update, old, false);
	if (result == 0)
		result = match_with(update, leftovers, true);
	return result == 0 ? look_for_all(update) : result;
}

void tree_update_free(struct tree_update *update)
{
	if (!update)
		return;
	free(update->kept);
	free(update);
}

/* ---- writing ---- */

/* Attributes of an object that have to change. */
struct changes {
	struct osd_client_value sets[4];
	size_t count;
	uint8_t length[8], complete[TREE_COMPLETE_BYTES], status[TREE_STATUS_BYTES];
};

static void find_changes(const struct manifest_entry *entry, const struct kept *kept,
			 struct changes *changes)
{
	changes->count = 0;
	put_be64(changes->length, entry->length);
	tree_encode_complete(entry, changes->complete);
	tree_encode_status(entry, changes->status);
	if (kept->length != entry->length)
		changes->sets[changes->count++] = (struct osd_client_value){
			.page = OSD_USER_OBJECT_INFORMATION,
			.number = OSD_INFORMATION_LOGICAL_LENGTH,
			.value = changes->length,
			.length = sizeof(changes->length),
		};
	if (!kept->has_complete ||
	    memcmp(kept->complete, changes->complete, sizeof(changes->complete)) != 0)
		changes->sets[changes->count++] = tree_complete_value(changes->complete);
	if (!kept->has_status)
		changes->sets[changes->count++] = tree_status_value(changes->status);
	if (!kept->has_username)
		changes->sets[changes->count++] = tree_username_value(entry);
}

/*
 * Before the first change of an object: from now on the stored manifest does not fit the objects.
 */
static int mark(struct importer *importer)
{
	struct osd_client_error error;

	if (importer->marked)
		return 0;
	if (tree_mark_update(importer->client, importer->partition, importer->import_id, &error) <
	    0)
		return importer_fail(importer, &error);
	importer->marked = true;
	return 0;
}

/* One command: a range of data (length 0: none) and attributes. */
static int change_object(struct tree_update *update, size_t index, uint64_t offset,
			 const void *data, size_t length, const struct changes *changes)
{
	struct importer *importer = update->importer;
	const struct manifest_entry *entry = entry_at(update, index);
	struct osd_request request = {
		.cdb = { .action = length ? OSD_WRITE : OSD_SET_ATTRIBUTES,
			 .partition = importer->partition,
			 .object = entry->object,
			 .address = offset },
		.data = data,
		.data_length = length,
		.sets = changes->sets,
		.set_count = changes->count,
	};

	if (!update->kept[index].is_leftover && mark(importer) != 0)
		return importer->result;
	if (osd_client_run(importer->client, &request) < 0)
		return importer_fail(importer, &request.error);
	importer->report->sent_bytes += length;
	return 0;
}

static void count_change(struct tree_update *update, size_t index, bool content,
			 const struct changes *changes, struct tree_count *count)
{
	struct importer *importer = update->importer;
	const struct manifest_entry *entry = entry_at(update, index),
				    *old = update->kept[index].old;
	bool same_in_manifest = manifest_same_owner(entry, old) && manifest_same_xattrs(entry, old);

	/* What is left over is new to the present tree. */
	if (update->kept[index].is_leftover && content)
		importer->report->added++;
	else if (update->kept[index].is_leftover)
		importer->report->resumed++;
	else if (content)
		importer->report->changed++;
	else if (changes->count > 0 || !same_in_manifest)
		importer->report->touched++;
	else
		importer->report->unchanged++;
	if (content || update->kept[index].is_leftover)
		importer_log(importer, entry);
	tree_count_file(count, entry->length);
}

/* Of an interrupted import only what has this very path is known to be the file. */
static bool may_stay(const struct kept *kept, const struct manifest_entry *entry)
{
	return !kept->is_leftover || (kept->is_whole && strcmp(kept->old->path, entry->path) == 0);
}

/*
 * Whether the object holds a whole file: as the old tree says, or as an update has stored it that
 * was interrupted then. Length and SHA-256 of it go to the entry.
 */
static bool take_whole(struct manifest_entry *entry, const struct kept *kept)
{
	bool is_newer = !kept->is_whole && kept->has_complete &&
			get_be64(kept->complete) == kept->length;

	entry->length = is_newer ? kept->length : kept->old->length;
	memcpy(entry->sha256, is_newer ? kept->complete + 8 : kept->old->sha256,
	       sizeof(entry->sha256));
	return kept->is_whole || is_newer;
}

/* Of a file that can't be read. */
static int stay(struct tree_update *update, size_t index, int result)
{
	struct importer *importer = update->importer;
	struct manifest_entry *entry = entry_at(update, index);
	const struct kept *kept = &update->kept[index];
	const struct manifest_entry *old = kept->old;
	uint64_t length = entry->length;
	bool is_whole;

	if (!may_stay(kept, entry))
		return tree_leave_out(importer, entry, result);
	is_whole = take_whole(entry, kept);
	if (importer_leave_out(importer, entry, result,
			       is_whole ? "it stays as it was stored" : "it is left out"))
		return importer->result;
	importer->report->bytes += entry->length - length;
	entry->left_out = !is_whole;
	/* Objects do not tell the owner. */
	if (!kept->is_leftover && manifest_copy_owner(entry, old) < 0)
		return importer_fail_local(importer, -ENOMEM, entry->path);
	entry->mode = old->mode;
	entry->seconds = old->seconds;
	entry->nanoseconds = old->nanoseconds;
	return 0;
}

/* Does the object of an interrupted import hold the file whose SHA-256 is known? */
static bool is_there_already(const struct tree_update *update, size_t index)
{
	const struct manifest_entry *entry = entry_at(update, index);
	const struct kept *kept = &update->kept[index];

	return kept->is_leftover && kept->is_whole && !update->importer->options->checksum &&
	       entry->length == kept->length &&
	       memcmp(entry->sha256, kept->old->sha256, sizeof(entry->sha256)) == 0;
}

/* ---- a small file: one command ---- */

/* The bytes from the first to the last that differ. The object is read into `object`. */
static int compare_small(struct tree_update *update, size_t index, const uint8_t *file,
			 uint8_t *object, size_t *first, size_t *end)
{
	struct importer *importer = update->importer;
	const struct manifest_entry *entry = entry_at(update, index);
	const struct kept *kept = &update->kept[index];
	struct osd_client_address address = { .partition = importer->partition,
					      .object = entry->object };
	struct osd_client_error error;
	size_t got = 0;

	*first = 0;
	*end = entry->length;
	if (is_there_already(update, index)) {
		*end = 0;
		return 0;
	}
	if (min_u64(kept->length, entry->length) > 0 &&
	    osd_client_read(importer->client, address, 0, object,
			    min_u64(kept->length, entry->length), &got, &error) < 0)
		return importer_fail(importer, &error);
	memset(object + got, 0, entry->length - got);
	while (*first < *end && file[*first] == object[*first])
		++*first;
	while (*end > *first && file[*end - 1] == object[*end - 1])
		--*end;
	return 0;
}

static int change_small(struct tree_update *update, size_t index, const struct reading *reading,
			uint8_t *file, uint8_t *object)
{
	struct importer *importer = update->importer;
	struct manifest_entry *entry = entry_at(update, index);
	const struct kept *kept = &update->kept[index];
	size_t first, end;
	struct tree_count count = { .options = importer->options };
	struct changes changes;
	ssize_t length = read_fully(reading->fd, file, entry->length);
	int result = length < 0 ? (int)length
				: importer_end_reading(importer, entry, reading, (uint64_t)length);

	if (result < 0)
		return result;
	SHA256(file, entry->length, entry->sha256);
	if (compare_small(update, index, file, object, &first, &end) != 0)
		return importer->result;
	find_changes(entry, kept, &changes);
	if ((end > first || changes.count > 0) &&
	    change_object(update, index, first, file + first, end - first, &changes) != 0)
		return importer->result;
	count_change(update, index, end > first || kept->length != entry->length, &changes, &count);
	return 0;
}

/* ---- a large one ---- */

static void add_sent(void *context, uint64_t bytes)
{
	struct importer *importer = context;

	importer->report->sent_bytes += bytes;
}

/* A transfer's error, which is kept, or that of reading the file. */
static int fail_transfer(struct importer *importer, const struct osd_client_error *error)
{
	if (!error->local || error->sentence.text[0])
		return importer_fail(importer, error);
	return error->result == -ESTALE ? -EAGAIN : error->result;
}

/* As a transfer_write: the object, as it arrives. */
static int take_object(void *context, const void *data, size_t length)
{
	return tree_comparison_next(context, data, length);
}

/* Reads object and file to their ends: the ranges, and the file's SHA-256. */
static int compare_large(struct tree_update *update, size_t index,
			 struct tree_comparison *comparison, struct tree_count *count)
{
	struct importer *importer = update->importer;
	struct manifest_entry *entry = entry_at(update, index);
	const struct transfer_options options = { .chunk_bytes = importer->options->chunk_bytes,
						  .progress = tree_count_bytes,
						  .progress_context = count };
	struct osd_client_address address = { .partition = importer->partition,
					      .object = entry->object };
	struct osd_client_error error = { .local = true };

	error.result = transfer_download(importer->client, address, 0,
					 min_u64(update->kept[index].length, entry->length),
					 take_object, comparison, &options, NULL, &error);
	if (error.result == 0) {
		error.local = true;
		error.sentence.text[0] = '\0';
		error.result = tree_comparison_end(comparison, entry->length, entry->sha256);
	}
	return error.result < 0 ? fail_transfer(importer, &error) : 0;
}

static int write_ranges(struct tree_update *update, size_t index, int fd,
			const struct tree_ranges *ranges)
{
	struct importer *importer = update->importer;
	const struct transfer_options options = { .chunk_bytes = importer->options->chunk_bytes,
						  .progress = add_sent,
						  .progress_context = importer };
	struct osd_client_address address = { .partition = importer->partition,
					      .object = entry_at(update, index)->object };
	struct changes incomplete = { .count = 1 };
	struct tree_ranges_reader reader = { .fd = fd, .ranges = ranges };
	struct osd_client_error error;

	incomplete.sets[0] = (struct osd_client_value){ .page = TREE_OBJECT_PAGE,
							.number = TREE_OBJECT_COMPLETE };
	if (change_object(update, index, 0, NULL, 0, &incomplete) != 0)
		return importer->result;
	if (transfer_upload(importer->client, address, tree_ranges_read, &reader, &options, NULL,
			    &error) < 0)
		return fail_transfer(importer, &error);
	return 0;
}

/* The file is read twice. If it changed in between, the SHA-256 would belong to another content. */
static int change_large(struct tree_update *update, size_t index, const struct reading *reading,
			struct tree_comparison *comparison)
{
	struct importer *importer = update->importer;
	struct manifest_entry *entry = entry_at(update, index);
	struct kept *kept = &update->kept[index];
	struct tree_count count = { .options = importer->options };
	const struct tree_ranges *ranges;
	struct changes changes;
	bool content;
	int result = compare_large(update, index, comparison, &count);

	if (result < 0)
		return result;
	ranges = tree_comparison_ranges(comparison);
	content = ranges->count > 0;
	if (content) {
		kept->has_complete = kept->is_whole = false;
		kept->length = max_u64(kept->length, ranges->list[ranges->count - 1].end);
		result = write_ranges(update, index, reading->fd, ranges);
	}
	if (result == 0)
		result = importer_end_reading(importer, entry, reading, entry->length);
	if (result < 0)
		return result;
	content = content || kept->length != entry->length;
	find_changes(entry, kept, &changes);
	if (changes.count > 0 && change_object(update, index, 0, NULL, 0, &changes) != 0)
		return importer->result;
	count_change(update, index, content, &changes, &count);
	return 0;
}

/*
 * What an interrupted import has completed need not come back to be compared. 1: only attributes
 * differ at most, and they are right now; 0: the file is another one. It is read from its beginning
 * next.
 */
static int take_leftover(struct tree_update *update, size_t index, const struct reading *reading)
{
	struct importer *importer = update->importer;
	struct manifest_entry *entry = entry_at(update, index);
	const struct kept *kept = &update->kept[index];
	struct tree_count count = { .options = importer->options };
	struct changes changes;
	int result;

	if (!kept->is_leftover || !kept->is_whole || kept->length != entry->length)
		return 0;
	result = tree_hash_file(importer->client, reading->fd, entry->sha256);
	if (result == -ECANCELED)
		return importer->result = client_not_submitted(importer->client, result, "import",
							       importer->error);
	if (result == 0 && !is_there_already(update, index))
		return lseek(reading->fd, 0, SEEK_SET) < 0 ? -errno : 0;
	if (result == 0)
		result = importer_end_reading(importer, entry, reading, entry->length);
	if (result < 0)
		return result;
	find_changes(entry, kept, &changes);
	if (changes.count > 0 && change_object(update, index, 0, NULL, 0, &changes) != 0)
		return importer->result;
	count_change(update, index, false, &changes, &count);
	return 1;
}

/* ---- each file ---- */

static int change_from(struct tree_update *update, size_t index, const struct reading *reading)
{
	struct importer *importer = update->importer;
	const struct manifest_entry *entry = entry_at(update, index);
	struct tree_comparison *comparison;
	uint8_t *file;
	int result = -ENOMEM;

	if (entry->length <= TREE_SMALL_BYTES) {
		file = malloc(2 * entry->length + 1);
		if (file)
			result = change_small(update, index, reading, file, file + entry->length);
		free(file);
	} else {
		result = take_leftover(update, index, reading);
		if (result != 0)
			return result < 0 ? result : 0;
		result = -ENOMEM;
		comparison = tree_comparison_begin(reading->fd);
		if (comparison)
			result = change_large(update, index, reading, comparison);
		tree_comparison_free(comparison);
	}
	return importer->result < 0 ? importer->result : result;
}

static int change_once(struct tree_update *update, size_t index, struct reading *reading)
{
	struct manifest_entry *entry = entry_at(update, index);
	const struct manifest_entry seen = *entry;
	int result = importer_open(update->importer, entry, reading);

	if (result < 0)
		return result;
	if (entry->seconds != seen.seconds || entry->nanoseconds != seen.nanoseconds ||
	    entry->mode != seen.mode)
		update->kept[index].has_status = false;
	result = change_from(update, index, reading);
	close(reading->fd);
	return result;
}

/*
 * A file that changes while it is read is read once more. If it still does, a small one is stored
 * as it was read. A large one is read twice, and the two must be the same. So it becomes a new
 * object, for which one reading does.
 */
static int change_content(struct tree_update *update, size_t index)
{
	struct importer *importer = update->importer;
	struct manifest_entry *entry = entry_at(update, index);
	struct reading reading = { .is_last = false };
	int result = change_once(update, index, &reading);

	if (result == -EAGAIN && importer->result == 0) {
		reading.is_last = entry->length <= TREE_SMALL_BYTES;
		result = change_once(update, index, &reading);
	}
	if (result == -EAGAIN && importer->result == 0) {
		if (update->kept[index].is_leftover || mark(importer) == 0)
			tree_store_file(importer, index);
		return importer->result;
	}
	return result < 0 && importer->result == 0 ? stay(update, index, result) : importer->result;
}

/* Content and time are what the manifest says: only attributes may differ. */
static int change_attributes(struct tree_update *update, size_t index)
{
	struct importer *importer = update->importer;
	struct manifest_entry *entry = entry_at(update, index);
	const struct kept *kept = &update->kept[index];
	struct tree_count count = { .options = importer->options };
	struct changes changes;

	memcpy(entry->sha256, kept->old->sha256, sizeof(entry->sha256));
	find_changes(entry, kept, &changes);
	if (changes.count > 0 && change_object(update, index, 0, NULL, 0, &changes) != 0)
		return importer->result;
	count_change(update, index, false, &changes, &count);
	return 0;
}

static bool may_skip_content(const struct tree_update *update, size_t index)
{
	const struct manifest_entry *entry = entry_at(update, index);
	const struct kept *kept = &update->kept[index];
	const struct manifest_entry *old = kept->old;

	if (entry->stays)
		return kept->is_whole;
	return !update->importer->options->checksum && kept->is_whole && !kept->is_leftover &&
	       entry->length == old->length && entry->seconds == old->seconds &&
	       entry->nanoseconds == old->nanoseconds;
}

int tree_update_change(struct tree_update *update)
{
	struct importer *importer = update->importer;

	for (size_t i = 0; i < importer->manifest->count && importer->result == 0; i++) {
		if (!update->kept[i].old)
			continue;
		if (client_is_stopped(importer->client))
			return importer->result = client_not_submitted(importer->client, -ECANCELED,
								       "import", importer->error);
		if (may_skip_content(update, i))
			change_attributes(update, i);
		else
			change_content(update, i);
	}
	return importer->result;
}
