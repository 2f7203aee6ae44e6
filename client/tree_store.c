/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Stores files as new objects: small ones as one command each, many in flight; larger ones piece by
 * piece and marked complete at the end.
 */
#include "client/tree_store.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <openssl/evp.h>
#include <openssl/sha.h>

#include "client/read_fully.h"
#include "client/sparse_file.h"
#include "common/bytes.h"

/*
 * Other initiators may create objects meanwhile. Passes over IDs that are taken, so many at most.
 */
#define TAKEN_MAX 10000U
/* USERNAME holds the path, if it is not longer. */
#define USERNAME_BYTES_MAX 255U

/* A file that travels in one command. */
struct small_file {
	struct osd_request request;
	struct importer *importer;
	size_t index; /* of the manifest's entry */
	struct osd_client_value sets[4];
	uint8_t complete[TREE_COMPLETE_BYTES];
	uint8_t status[TREE_STATUS_BYTES];
	struct ahead_file *file;
};

int importer_fail(struct importer *importer, const struct osd_client_error *error)
{
	if (importer->result == 0) {
		importer->result = error->result;
		outcome_give(error, importer->error);
	}
	return importer->result;
}

int importer_fail_local(struct importer *importer, int result, const char *path)
{
	if (importer->result == 0)
		importer->result = outcome_set_local(importer->error, result, "%s/%s: %s",
						     importer->directory, path, strerror(-result));
	return importer->result;
}

/* ---- acknowledged ---- */

/* One write for one line, so that whoever kills this process finds whole lines. */
static int write_line(int fd, const char *line, size_t length)
{
	ssize_t written = write(fd, line, length);

	if (written < 0)
		return errno == EINTR ? -ECANCELED : -errno;
	return (size_t)written == length ? 0 : -ENOSPC;
}

int importer_log(struct importer *importer, const struct manifest_entry *entry)
{
	char hex[2 * MANIFEST_SHA256_BYTES + 1];
	char *path = NULL, *line = NULL;
	int length, result = 0;

	/* Whoever interrupts it because nobody reads the log does not wait for the log again. */
	if (importer->options->log_fd < 0 || importer->result == -ECANCELED)
		return 0;
	manifest_hex(entry->sha256, sizeof(entry->sha256), hex);
	if (manifest_escape(entry->path, &path) < 0)
		return importer_fail_local(importer, -ENOMEM, entry->path);
	length = asprintf(&line, "0x%" PRIx64 " %" PRIu64 " %s %s\n", entry->object, entry->length,
			  hex, path);
	result = length < 0 ? -ENOMEM : write_line(importer->options->log_fd, line, (size_t)length);
	if (result == -ECANCELED && importer->result == 0)
		importer->result =
			outcome_set_local(importer->error, result, "import: interrupted");
	else if (result < 0 && importer->result == 0)
		importer->result = outcome_set_local(
			importer->error, result, "the log can't be written: %s", strerror(-result));
	free(line);
	free(path);
	return result;
}

/* `sent`: bytes of content; holes of long files are none. */
static void acknowledged(struct importer *importer, size_t index, uint64_t sent,
			 struct tree_count *count)
{
	const struct manifest_entry *entry = &importer->manifest->entries[index];

	importer->report->added++;
	importer->report->sent_bytes += sent;
	importer_log(importer, entry);
	tree_count_file(count, entry->length);
}

/* ---- attributes ---- */

void tree_encode_complete(const struct manifest_entry *entry, uint8_t complete[TREE_COMPLETE_BYTES])
{
	put_be64(complete, entry->length);
	memcpy(complete + 8, entry->sha256, sizeof(entry->sha256));
}

void tree_encode_status(const struct manifest_entry *entry, uint8_t status[TREE_STATUS_BYTES])
{
	put_be32(status, entry->mode);
	put_be64(status + 4, (uint64_t)entry->seconds);
	put_be32(status + 12, entry->nanoseconds);
}

static struct osd_client_value import_value(const struct importer *importer)
{
	return (struct osd_client_value){
		.page = TREE_OBJECT_PAGE,
		.number = TREE_OBJECT_IMPORT,
		.value = importer->import_id,
		.length = sizeof(importer->import_id),
	};
}

struct osd_client_value tree_complete_value(const uint8_t complete[TREE_COMPLETE_BYTES])
{
	return (struct osd_client_value){
		.page = TREE_OBJECT_PAGE,
		.number = TREE_OBJECT_COMPLETE,
		.value = complete,
		.length = TREE_COMPLETE_BYTES,
	};
}

struct osd_client_value tree_status_value(const uint8_t status[TREE_STATUS_BYTES])
{
	return (struct osd_client_value){
		.page = TREE_OBJECT_PAGE,
		.number = TREE_OBJECT_STATUS,
		.value = status,
		.length = TREE_STATUS_BYTES,
	};
}

struct osd_client_value tree_username_value(const struct manifest_entry *entry)
{
	size_t length = strlen(entry->path);

	return (struct osd_client_value){
		.page = OSD_USER_OBJECT_INFORMATION,
		.number = OSD_INFORMATION_USERNAME,
		.value = entry->path,
		.length = length > USERNAME_BYTES_MAX ? 0 : (uint32_t)length,
	};
}

/* Adds nothing when the path is too long. */
static size_t add_username(const struct manifest_entry *entry, struct osd_client_value *sets,
			   size_t count)
{
	sets[count] = tree_username_value(entry);
	return count + (sets[count].length > 0);
}

/* ---- IDs ---- */

/* The next ID for an entry's new object. */
static int take_id(struct importer *importer, struct manifest_entry *entry)
{
	const struct osd_client_ids *ids = &importer->ids;

	if (importer->next_object == 0) {
		if (importer->result == 0)
			importer->result =
				outcome_set(importer->error, -EFBIG,
					    "the partition has no free IDs behind its highest one");
		return importer->result;
	}
	entry->object = importer->next_object;
	importer->next_object = entry->object > ids->last - ids->step ? 0
								      : entry->object + ids->step;
	return 0;
}

/* ---- sending small files ---- */

static void small_done(struct osd_request *request);

static void small_free(struct small_file *small)
{
	free(small->file);
	free(small);
}

static int submit_small(struct importer *importer, struct small_file *small)
{
	struct manifest_entry *entry = &importer->manifest->entries[small->index];
	int result = take_id(importer, entry);

	if (result < 0)
		return result;
	small->request = (struct osd_request){
		.cdb = { .action = entry->length ? OSD_CREATE_AND_WRITE : OSD_CREATE,
			 .partition = importer->partition,
			 .object = entry->object },
		.data = small->file->data,
		.data_length = entry->length,
		.sets = small->sets,
		.set_count = add_username(entry, small->sets, 3),
		.done = small_done,
		.context = small,
	};
	result = osd_client_submit(importer->client, &small->request);
	if (result < 0 && importer->result == 0)
		importer->result =
			client_not_submitted(importer->client, result, "import", importer->error);
	return result;
}

static void small_done(struct osd_request *request)
{
	struct small_file *small = request->context;
	struct importer *importer = small->importer;
	struct tree_count count = { .options = importer->options };
	const int result = request->error.result;

	/* A submission that fails leaves its reason with the importer, not in the request. */
	if (result == -EEXIST && importer->taken++ < TAKEN_MAX) {
		if (submit_small(importer, small) == 0)
			return;
	} else if (result < 0) {
		importer_fail(importer, &request->error);
	} else {
		acknowledged(importer, small->index, request->data_length, &count);
	}
	tree_flight_end(&importer->flight, request->data_length);
	small_free(small);
}

int tree_leave_out(struct importer *importer, struct manifest_entry *entry, int result)
{
	if (importer_leave_out(importer, entry, result, "it is left out"))
		return importer->result;
	importer->report->files--;
	importer->report->bytes -= entry->length;
	entry->left_out = true;
	return 0;
}

/* ---- small files ---- */

/* Takes `file` over; the entry says what is in it. */
static int send_small(struct importer *importer, struct ahead_file *file)
{
	struct manifest_entry *entry = &importer->manifest->entries[file->index];
	struct small_file *small = malloc(sizeof(*small));

	if (!small) {
		free(file);
		return importer_fail_local(importer, -ENOMEM, entry->path);
	}
	small->file = file;
	small->importer = importer;
	small->index = file->index;
	tree_encode_complete(entry, small->complete);
	tree_encode_status(entry, small->status);
	small->sets[0] = import_value(importer);
	small->sets[1] = tree_complete_value(small->complete);
	small->sets[2] = tree_status_value(small->status);
	if (submit_small(importer, small) < 0)
		small_free(small);
	else
		tree_flight_add(&importer->flight, small->request.data_length);
	return importer->result;
}

static int store_small(struct importer *importer, size_t index, const struct reading *reading)
{
	struct manifest_entry *entry = &importer->manifest->entries[index];
	struct ahead_file *file = malloc(sizeof(*file) + entry->length);
	ssize_t got;
	int result;

	if (!file)
		return importer_fail_local(importer, -ENOMEM, entry->path);
	file->index = index;
	got = read_fully(reading->fd, file->data, entry->length);
	result = got < 0 ? (int)got : importer_end_reading(importer, entry, reading, (uint64_t)got);
	if (result < 0) {
		free(file);
		return result;
	}
	SHA256(file->data, entry->length, entry->sha256);
	return send_small(importer, file);
}

int tree_store_read(struct importer *importer, struct ahead_file *file)
{
	struct manifest_entry *entry = &importer->manifest->entries[file->index];
	size_t index = file->index;

	if (file->result < 0) {
		free(file);
		return tree_store_file(importer, index);
	}
	importer_take_status(importer, entry, &file->status);
	memcpy(entry->sha256, file->sha256, sizeof(entry->sha256));
	return send_small(importer, file);
}

/* ---- large ones ---- */

struct content {
	const struct reading *reading; /* NULL: `text` */
	const char *text;
	uint64_t length; /* to read at most */
	uint64_t position;
	uint64_t sent; /* without what is left out as a hole */
	int error;     /* of reading */
	EVP_MD_CTX *hash;
};

/* The next piece that is not all zeros, so that holes stay holes. */
static ssize_t read_content(void *context, void *data, size_t capacity, uint64_t *offset)
{
	struct content *content = context;

	for (;;) {
		size_t wanted = min_u64(capacity, content->length - content->position);
		ssize_t got = (ssize_t)wanted;

		if (wanted == 0)
			return 0;
		if (content->reading)
			got = read_fully(content->reading->fd, data, wanted);
		else
			memcpy(data, content->text + content->position, wanted);
		if (got < 0)
			content->error = (int)got;
		if (got <= 0)
			return got;
		if (EVP_DigestUpdate(content->hash, data, (size_t)got) != 1)
			return -ENOMEM;
		*offset = content->position;
		content->position += (uint64_t)got;
		if (!sparse_is_zero(data, (size_t)got))
			return got;
	}
}

/* CREATE with the import's mark. The entry gets the ID that was free. */
static int create_large(struct importer *importer, struct manifest_entry *entry)
{
	struct osd_client_value sets[2];
	int result = -EEXIST;

	sets[0] = import_value(importer);
	while (result == -EEXIST && importer->taken < TAKEN_MAX) {
		struct osd_request request = {
			.cdb = { .action = OSD_CREATE, .partition = importer->partition },
			.sets = sets,
			.set_count = add_username(entry, sets, 1),
		};

		if (take_id(importer, entry) < 0)
			return importer->result;
		request.cdb.object = entry->object;
		result = osd_client_run(importer->client, &request);
		if (result < 0 && result != -EEXIST)
			return importer_fail(importer, &request.error);
		importer->taken += result == -EEXIST;
	}
	return result;
}

/* The last step: length (the end may be a hole) and mark, together. */
static int complete_large(struct importer *importer, const struct manifest_entry *entry)
{
	uint8_t length[8], complete[TREE_COMPLETE_BYTES], status[TREE_STATUS_BYTES];
	struct osd_client_address address = { .partition = importer->partition,
					      .object = entry->object };
	struct osd_client_value sets[3];
	struct osd_client_error error;

	put_be64(length, entry->length);
	tree_encode_complete(entry, complete);
	tree_encode_status(entry, status);
	sets[0] = (struct osd_client_value){
		.page = OSD_USER_OBJECT_INFORMATION,
		.number = OSD_INFORMATION_LOGICAL_LENGTH,
		.value = length,
		.length = sizeof(length),
	};
	sets[1] = tree_complete_value(complete);
	sets[2] = tree_status_value(status);
	return osd_client_set_attributes(importer->client, address, sets, 3, &error) < 0
		       ? importer_fail(importer, &error)
		       : 0;
}

/* Sends all of it. */
static int upload(struct importer *importer, const struct manifest_entry *entry,
		  struct content *content, struct tree_count *count)
{
	const struct transfer_options options = { .chunk_bytes = importer->options->chunk_bytes,
						  .progress = count ? tree_count_bytes : NULL,
						  .progress_context = count };
	struct osd_client_address address = { .partition = importer->partition,
					      .object = entry->object };
	struct osd_client_error error;

	if (transfer_upload(importer->client, address, read_content, content, &options,
			    &content->sent, &error) == 0)
		return 0;
	if (content->error)
		return content->error;
	if (error.local && !error.sentence.text[0])
		return importer_fail_local(importer, error.result, entry->path);
	return importer_fail(importer, &error);
}

/* An object that nothing will complete. Returns `result`, or what is worse. */
static int drop(struct importer *importer, const struct manifest_entry *entry, int result)
{
	struct osd_client_address address = { .partition = importer->partition,
					      .object = entry->object };
	struct osd_client_error error;

	if (osd_client_remove(importer->client, address, &error) < 0)
		return importer_fail(importer, &error);
	return result;
}

/*
 * `count`: NULL when nobody watches. When the file can't be read, or changes, the object is gone
 * again.
 */
static int store_large(struct importer *importer, struct manifest_entry *entry,
		       struct content *content, struct tree_count *count)
{
	int result;

	content->hash = EVP_MD_CTX_new();
	if (!content->hash || EVP_DigestInit_ex(content->hash, EVP_sha256(), NULL) != 1) {
		EVP_MD_CTX_free(content->hash);
		return importer_fail_local(importer, -ENOMEM, entry->path);
	}
	result = create_large(importer, entry);
	if (result == 0)
		result = upload(importer, entry, content, count);
	if (result == 0 && EVP_DigestFinal_ex(content->hash, entry->sha256, NULL) != 1)
		result = importer_fail_local(importer, -ENOMEM, entry->path);
	EVP_MD_CTX_free(content->hash);
	if (result == 0 && content->reading)
		result = importer_end_reading(importer, entry, content->reading, content->position);
	if (importer->result < 0)
		return importer->result;
	if (result < 0)
		return drop(importer, entry, result);
	entry->length = content->position;
	return complete_large(importer, entry);
}

/* ---- each file ---- */

static int store_once(struct importer *importer, size_t index, struct reading *reading)
{
	struct manifest_entry *entry = &importer->manifest->entries[index];
	struct content content = { .reading = reading };
	struct tree_count count = { .options = importer->options };
	int result;

	result = importer_open(importer, entry, reading);
	if (result < 0)
		return result;
	if (entry->length <= TREE_SMALL_BYTES) {
		result = store_small(importer, index, reading);
	} else {
		content.length = entry->length;
		result = store_large(importer, entry, &content, &count);
		if (result == 0)
			acknowledged(importer, index, content.sent, &count);
	}
	close(reading->fd);
	return result;
}

int tree_store_file(struct importer *importer, size_t index)
{
	struct reading reading = { .is_last = false };
	int result = store_once(importer, index, &reading);

	if (result == -EAGAIN && importer->result == 0) {
		reading.is_last = true;
		result = store_once(importer, index, &reading);
	}
	if (result < 0 && importer->result == 0)
		tree_leave_out(importer, &importer->manifest->entries[index], result);
	return importer->result;
}

int tree_store_text(struct importer *importer, const char *text, size_t length,
		    struct manifest_entry *entry)
{
	struct content content = { .text = text, .length = length };

	return store_large(importer, entry, &content, NULL);
}
