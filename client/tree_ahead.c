/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Stores all files that are new, in the order of their paths; IDs ascend with it. A second thread
 * reads small ones, and sums them up, before their turn. So that goes on while commands leave and
 * are answered.
 *
 * What is read ahead is used only if nothing was strange about it. Otherwise tree_store_file reads
 * the file in its turn, as if nobody had done so before, and says what there is to say.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <openssl/sha.h>

#include "client/read_fully.h"
#include "client/tree_store.h"
#include "common/bytes.h"

/* Files that are read ahead; so many, and so many bytes. */
#define AHEAD_MAX       64U
#define AHEAD_BYTES_MAX (4U << 20)

struct ahead {
	struct importer *importer;
	struct tree_place place; /* the reader's */
	struct aside *reader;
	size_t next; /* entry to look at */
	uint64_t bytes;
};

static bool is_new(const struct manifest_entry *entry)
{
	return entry->type == MANIFEST_FILE && entry->object == 0;
}

static bool is_read_ahead(const struct manifest_entry *entry)
{
	return is_new(entry) && entry->length <= TREE_SMALL_BYTES;
}

/* ---- by the reader ---- */

static int read_whole(struct ahead_file *file, int fd)
{
	struct reading reading = { .fd = fd };
	int result = importer_begin_reading(&reading);
	ssize_t got;

	if (result < 0)
		return result;
	file->status = reading.before;
	if (!S_ISREG(file->status.st_mode) || (uint64_t)file->status.st_size > file->capacity)
		return -EAGAIN;
	got = read_fully(fd, file->data, (size_t)file->status.st_size);
	return got == file->status.st_size && importer_is_unchanged(&reading) ? 0 : -EAGAIN;
}

/* Of what the importer has it reads nothing but the entry's path, which does not change. */
static void read_file(void *context, struct aside_task *task)
{
	struct ahead *ahead = context;
	const struct importer *importer = ahead->importer;
	struct ahead_file *file = (struct ahead_file *)task;
	int fd = importer_open_path(importer, &ahead->place,
				    importer->manifest->entries[file->index].path);

	file->result = fd < 0 ? fd : read_whole(file, fd);
	if (file->result == 0)
		SHA256(file->data, (size_t)file->status.st_size, file->sha256);
	if (fd >= 0)
		close(fd);
}

/* ---- by the importer ---- */

static int give(struct ahead *ahead, size_t index)
{
	const struct manifest_entry *entry = &ahead->importer->manifest->entries[index];
	struct ahead_file *file = malloc(sizeof(*file) + entry->length);

	if (!file)
		return importer_fail_local(ahead->importer, -ENOMEM, entry->path);
	file->index = index;
	file->capacity = entry->length;
	ahead->bytes += file->capacity;
	aside_give(ahead->reader, &file->task);
	return 0;
}

/* Gives the reader as much as it may have. */
static void look_ahead(struct ahead *ahead)
{
	const struct manifest *manifest = ahead->importer->manifest;

	while (ahead->next < manifest->count && ahead->importer->result == 0 &&
	       aside_outstanding(ahead->reader) < AHEAD_MAX && ahead->bytes < AHEAD_BYTES_MAX) {
		if (is_read_ahead(&manifest->entries[ahead->next]))
			give(ahead, ahead->next);
		ahead->next++;
	}
}

/* The next file that has been read. What is under way leaves before anybody waits for it. */
static struct ahead_file *take(struct ahead *ahead)
{
	struct aside_task *task = aside_take(ahead->reader, false);
	struct ahead_file *file;

	if (!task) {
		tree_flight_push(&ahead->importer->flight);
		task = aside_take(ahead->reader, true);
	}
	file = (struct ahead_file *)task;
	if (file)
		ahead->bytes -= file->capacity;
	return file;
}

static void store_next(struct ahead *ahead, size_t index)
{
	struct importer *importer = ahead->importer;
	bool was_read = is_read_ahead(&importer->manifest->entries[index]);
	struct ahead_file *file;

	look_ahead(ahead);
	if (importer->result < 0)
		return;
	file = was_read ? take(ahead) : NULL;
	if (file)
		tree_store_read(importer, file);
	else
		tree_store_file(importer, index);
}

static void drop_rest(struct ahead *ahead)
{
	struct aside_task *task;

	while ((task = aside_take(ahead->reader, true)) != NULL)
		free(task);
}

int tree_store_files(struct importer *importer)
{
	struct ahead ahead = { .importer = importer };
	int result = aside_create(read_file, &ahead, &ahead.reader);

	if (result < 0)
		return importer->result = outcome_set_local(importer->error, result,
							    "import: no thread can be started: %s",
							    strerror(-result));
	for (size_t i = 0; i < importer->manifest->count && importer->result == 0; i++) {
		if (is_new(&importer->manifest->entries[i]))
			store_next(&ahead, i);
		tree_flight_pace(&importer->flight);
	}
	drop_rest(&ahead);
	aside_destroy(ahead.reader);
	tree_place_leave(&ahead.place);
	tree_flight_drain(&importer->flight);
	return importer->result;
}
