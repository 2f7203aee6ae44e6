/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* put and append. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/ctl/ctl.h"
#include "client/ctl/way_back.h"
#include "client/read_fully.h"
#include "client/sparse_file.h"
#include "common/bytes.h"

/* The content to store. Its beginning is in memory, so that short content can go in one command. */
struct source {
	const char *name;
	int fd;
	uint8_t *head;
	size_t head_length, head_used;
	uint64_t position; /* in the object, of the next piece */
	uint64_t size;     /* 0: not known */
	/* Long content where no data is: leaves zeros as holes. */
	bool leaves_holes;
	uint64_t written_end; /* behind the last piece that is sent */
	struct progress *progress;
};

static void close_source(struct source *source)
{
	if (source->fd > STDIN_FILENO)
		close(source->fd);
	free(source->head);
}

/*
 * Opens argument 1, or standard input. Reads one chunk and a byte, to see whether one chunk is
 * enough.
 */
static int open_source(const struct ctl *ctl, struct source *source)
{
	bool from_stdin = ctl->argument_count < 2 || strcmp(ctl->arguments[1], "-") == 0;
	size_t capacity = ctl->options->chunk_bytes + 1;
	struct stat status;
	ssize_t got;

	*source = (struct source){ .name = from_stdin ? "standard input" : ctl->arguments[1],
				   .fd = STDIN_FILENO };
	if (!from_stdin) {
		source->fd = open(source->name, O_RDONLY | O_CLOEXEC);
		if (source->fd < 0) {
			ctl_fail(ctl, CTL_LOCAL, "%s: %s", source->name, strerror(errno));
			return CTL_LOCAL;
		}
	}
	if (fstat(source->fd, &status) == 0 && S_ISREG(status.st_mode))
		source->size = (uint64_t)status.st_size;
	source->head = malloc(capacity);
	got = source->head ? read_fully(source->fd, source->head, capacity) : -ENOMEM;
	if (got < 0) {
		close_source(source);
		ctl_fail(ctl, CTL_LOCAL, "%s: %s", source->name, strerror((int)-got));
		return CTL_LOCAL;
	}
	source->head_length = (size_t)got;
	return CTL_OK;
}

static bool is_short(const struct ctl *ctl, const struct source *source)
{
	return source->head_length <= ctl->options->chunk_bytes;
}

static ssize_t read_source(void *context, void *data, size_t capacity, uint64_t *offset)
{
	struct source *source = context;
	size_t buffered = min_u64(source->head_length - source->head_used, capacity);
	ssize_t got;

	memcpy(data, source->head + source->head_used, buffered);
	source->head_used += buffered;
	got = read_fully(source->fd, (uint8_t *)data + buffered, capacity - buffered);
	if (got < 0)
		return got == -EINTR ? -ECANCELED : got;
	*offset = source->position;
	source->position += buffered + (uint64_t)got;
	return (ssize_t)buffered + got;
}

/* The next piece to send. Leaves out pieces of zeros before it. */
static ssize_t read_next(void *context, void *data, size_t capacity, uint64_t *offset)
{
	struct source *source = context;
	ssize_t got = read_source(source, data, capacity, offset);

	while (got > 0 && source->leaves_holes && sparse_is_zero(data, (size_t)got)) {
		progress_add(source->progress, (uint64_t)got, 0);
		got = read_source(source, data, capacity, offset);
	}
	if (got > 0)
		source->written_end = source->position;
	return got;
}

static void add_bytes(void *context, uint64_t bytes)
{
	progress_add(context, bytes, 0);
}

/* ---- one command ---- */

static int create_short(struct ctl *ctl, const struct source *source,
			struct osd_client_address *address, struct osd_client_error *error)
{
	if (source->head_length == 0)
		return osd_client_create(ctl->client, address->partition, address->object, 1,
					 &address->object, NULL, error);
	return osd_client_create_and_write(ctl->client, address->partition, address->object,
					   source->head, source->head_length, &address->object,
					   error);
}

/* Sends data and length together, so that a reader sees the old content or the new one. */
static int replace_short(struct ctl *ctl, const struct source *source,
			 struct osd_client_address address, struct osd_client_error *error)
{
	uint8_t length[8];
	struct osd_client_value set = {
		.page = OSD_USER_OBJECT_INFORMATION,
		.number = OSD_INFORMATION_LOGICAL_LENGTH,
		.value = length,
		.length = sizeof(length),
	};
	struct osd_request request = {
		.cdb = { .action = OSD_WRITE },
		.data = source->head,
		.data_length = source->head_length,
		.sets = &set,
		.set_count = 1,
	};

	if (source->head_length == 0)
		return osd_client_truncate(ctl->client, address, 0, error);
	put_be64(length, source->head_length);
	osd_request_address(&request, address);
	osd_client_run(ctl->client, &request);
	*error = request.error;
	return error->result;
}

/* If there is nothing to send, the object still has to be there. */
static int check_object(struct ctl *ctl, struct osd_client_address address,
			struct osd_client_error *error)
{
	uint64_t length;

	return osd_client_get_number(ctl->client, address, OSD_USER_OBJECT_INFORMATION,
				     OSD_INFORMATION_LOGICAL_LENGTH, &length, error);
}

static int write_short(struct ctl *ctl, const struct source *source,
		       struct osd_client_address address, struct osd_client_error *error)
{
	if (source->head_length == 0)
		return check_object(ctl, address, error);
	return osd_client_write(ctl->client, address, ctl->options->offset, source->head,
				source->head_length, error);
}

/* A new object whose content begins at the offset, or none: in one command. */
static int create_at_offset(struct ctl *ctl, const struct source *source,
			    struct osd_client_address address, struct osd_client_error *error)
{
	struct osd_request request = {
		.cdb = { .action = OSD_CREATE_AND_WRITE, .address = ctl->options->offset },
		.data = source->head,
		.data_length = source->head_length,
	};

	if (source->head_length == 0)
		return create_short(ctl, source, &address, error);
	osd_request_address(&request, address);
	osd_client_run(ctl->client, &request);
	*error = request.error;
	return error->result;
}

static int put_short(struct ctl *ctl, const struct source *source,
		     struct osd_client_address *address, struct osd_client_error *error)
{
	const struct ctl_options *options = ctl->options;
	int result = -ENOENT;

	if (address->object && options->has_offset) {
		result = write_short(ctl, source, *address, error);
		if (result == -ENOENT)
			result = create_at_offset(ctl, source, *address, error);
		/* Somebody else has made it in between. */
		return result == -EEXIST ? write_short(ctl, source, *address, error) : result;
	}
	if (address->object && options->replace)
		result = replace_short(ctl, source, *address, error);
	return result == -ENOENT ? create_short(ctl, source, address, error) : result;
}

/* ---- many ---- */

/*
 * Does it fit an object of this partition, as far as this side can know before the target refuses
 * it?
 */
static int check_length(const struct ctl *ctl, const struct source *source,
			struct osd_client_address address, struct osd_client_error *error)
{
	const struct osd_client_address partition = { .partition = address.partition };
	uint64_t offset = ctl->options->offset;
	struct osd_client_ids ids;

	/* If this fails, the next command says why. */
	if (osd_client_find_ids(ctl->client, partition, &ids, NULL) < 0 ||
	    (offset <= ids.bytes_max && source->size <= ids.bytes_max - offset))
		return 0;
	*error = (struct osd_client_error){ .result = -EFBIG };
	return error_set(&error->sentence, -EFBIG,
			 "%s does not fit: objects of partition 0x%" PRIx64
			 ", whose IDs are packed, have at most %" PRIu64
			 " bytes; put it in one made with `mkpart --layout flat`",
			 source->name, address.partition, ids.bytes_max);
}

/* Gives up the content, in a way that leads back. */
static int empty_object(struct ctl *ctl, struct osd_client_address address, struct way_back *back,
			struct osd_client_error *error)
{
	int result = check_object(ctl, address, error);

	if (result < 0)
		return result;
	way_back_keep(ctl, address, back);
	result = osd_client_truncate(ctl->client, address, 0, error);
	/* Without an answer nobody knows; what has not changed takes the way back unharmed. */
	back->is_changed = result == 0 ||
			   (back->version != 0 && osd_client_failed(ctl->client, NULL) < 0);
	return result;
}

/* Makes sure that the object is there and ready to be filled. */
static int prepare_long(struct ctl *ctl, struct osd_client_address *address, struct way_back *back,
			struct osd_client_error *error)
{
	uint64_t length;
	int result = -ENOENT;

	if (address->object && ctl->options->has_offset)
		result = osd_client_get_number(ctl->client, *address, OSD_USER_OBJECT_INFORMATION,
					       OSD_INFORMATION_LOGICAL_LENGTH, &length, error);
	else if (address->object && ctl->options->replace)
		result = empty_object(ctl, *address, back, error);
	if (result == -ENOENT) {
		result = osd_client_create(ctl->client, address->partition, address->object, 1,
					   &address->object, NULL, error);
		back->is_new = result == 0;
	}
	/* Somebody else has made it in between. */
	if (result == -EEXIST && ctl->options->has_offset)
		result = 0;
	back->object = *address;
	back->in_place = result == 0 && ctl->options->has_offset && !back->is_new;
	return result;
}

static int put_long(struct ctl *ctl, struct source *source, struct osd_client_address *address,
		    uint64_t *stored, struct way_back *back, struct osd_client_error *error)
{
	struct progress progress;
	struct transfer_options options = {
		.chunk_bytes = ctl->options->chunk_bytes,
		.progress = add_bytes,
		.progress_context = &progress,
	};
	int result = check_length(ctl, source, *address, error);

	ctl_catch_signals(ctl);
	if (result == 0)
		result = prepare_long(ctl, address, back, error);
	if (result < 0)
		return result;
	source->position = ctl->options->offset;
	source->leaves_holes = !ctl->options->has_offset;
	source->progress = &progress;
	progress_begin(&progress, ctl, "put", source->size, 0);
	result = transfer_upload(ctl->client, *address, read_next, source, &options, NULL, error);
	/* Only the length tells of a hole at the end. */
	if (result == 0 && source->written_end < source->position && source->leaves_holes)
		result = osd_client_truncate(ctl->client, *address, source->position, error);
	*stored = source->position - ctl->options->offset;
	progress_end(&progress);
	return result;
}

static int report_failure(const struct ctl *ctl, const struct source *source,
			  struct osd_client_error *error)
{
	/* Errors of read_source come without a sentence. */
	if (error->local && error->result == -ECANCELED)
		error_set(&error->sentence, 0, "%s: interrupted", ctl->verb);
	else if (error->local && !error->sentence.text[0])
		error_set(&error->sentence, 0, "%s: %s", source->name, strerror(-error->result));
	if (error->result == -EEXIST && !ctl->options->has_offset)
		return ctl_fail(ctl, CTL_EXISTS, "%s; %s", error->sentence.text,
				ctl->options->replace
					? "it was not there just before: try again, or, where IDs "
					  "are packed, take one from 0x100000000 on"
					: "--replace stores it in place of the old content");
	return ctl_fail(ctl, ctl_exit_of(error), "%s", error->sentence.text);
}

int verb_put(struct ctl *ctl)
{
	struct osd_client_address address;
	struct osd_client_error error = { 0 };
	char text[OSD_CLIENT_ADDRESS_TEXT];
	struct way_back back = { .version = 0 };
	struct source source;
	uint64_t bytes;
	int result, code = ctl_address(ctl, 0, &address);

	if (code != CTL_OK)
		return code;
	if (!address.partition)
		return ctl_fail(
			ctl, CTL_USAGE,
			"put needs the address of a partition, PID, or of an object, PID/OID");
	code = ctl_present(ctl, code, address);
	if (code != CTL_OK)
		return code;
	if (!address.object && (ctl->options->has_offset || ctl->options->replace))
		return ctl_fail(
			ctl, CTL_USAGE,
			"put: --offset and --replace need the address of an object, PID/OID");
	if (ctl->options->has_offset && ctl->options->replace)
		return ctl_fail(ctl, CTL_USAGE, "put: either --offset or --replace");
	code = ctl_connect(ctl);
	if (code == CTL_OK)
		code = open_source(ctl, &source);
	if (code != CTL_OK)
		return code;
	bytes = source.head_length;
	result = is_short(ctl, &source) ? put_short(ctl, &source, &address, &error)
					: put_long(ctl, &source, &address, &bytes, &back, &error);
	close_source(&source);
	if (result < 0) {
		code = report_failure(ctl, &source, &error);
		way_back_go(ctl, &back);
		return code;
	}
	way_back_forget(ctl, &back);
	osd_client_format_address(address, text);
	if (ctl->options->json)
		return ctl_print_json(stdout, json_pack("{s:s,s:o,s:I}", "address", text, "id",
							ctl_json_id(address.object), "bytes",
							(json_int_t)bytes));
	puts(text);
	return ctl_end_output(ctl);
}

/* ---- append ---- */

struct appended {
	uint64_t first, bytes; /* where it begins in the object, and what was acknowledged */
};

/* One chunk after the other: several at once would land in any order. */
static int append_all(struct ctl *ctl, struct source *source, struct osd_client_address address,
		      struct appended *appended, struct osd_client_error *error)
{
	uint8_t *chunk = malloc(ctl->options->chunk_bytes);
	struct progress progress;
	uint64_t ignored, at;
	ssize_t got;
	int result = 0;

	if (!chunk) {
		*error = (struct osd_client_error){ .result = -ENOMEM, .local = true };
		return -ENOMEM;
	}
	ctl_catch_signals(ctl);
	progress_begin(&progress, ctl, "append", source->size, 0);
	while (result == 0 &&
	       (got = read_source(source, chunk, ctl->options->chunk_bytes, &ignored)) != 0) {
		if (got < 0) {
			*error = (struct osd_client_error){ .result = (int)got, .local = true };
			result = (int)got;
			break;
		}
		result = osd_client_append(ctl->client, address, chunk, (size_t)got, &at, error);
		if (result < 0)
			break;
		if (appended->bytes == 0)
			appended->first = at;
		appended->bytes += (uint64_t)got;
		progress_add(&progress, (uint64_t)got, 0);
	}
	progress_end(&progress);
	free(chunk);
	return result;
}

int verb_append(struct ctl *ctl)
{
	struct osd_client_address address;
	struct osd_client_error error = { 0 };
	char text[OSD_CLIENT_ADDRESS_TEXT];
	struct appended appended = { 0 };
	struct source source;
	int result, code = ctl_object_address(ctl, 0, &address);

	code = ctl_present(ctl, code, address);
	if (code == CTL_OK)
		code = ctl_connect(ctl);
	if (code == CTL_OK)
		code = open_source(ctl, &source);
	if (code != CTL_OK)
		return code;
	result = source.head_length > 0 ? append_all(ctl, &source, address, &appended, &error)
					: check_object(ctl, address, &error);
	close_source(&source);
	osd_client_format_address(address, text);
	if (result < 0) {
		code = report_failure(ctl, &source, &error);
		if (appended.bytes)
			fprintf(stderr,
				"muninnctl: append: %s has %" PRIu64
				" bytes of it or more, from offset %" PRIu64 " on\n",
				text, appended.bytes, appended.first);
		return code;
	}
	if (!ctl->options->json)
		return CTL_OK;
	return ctl_print_json(stdout, json_pack("{s:s,s:I,s:I}", "address", text, "offset",
						(json_int_t)appended.first, "bytes",
						(json_int_t)source.position));
}
