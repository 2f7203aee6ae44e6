/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* get and cat. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/ctl/ctl.h"
#include "client/sparse_file.h"
#include "common/bytes.h"

#define PARTIAL_SUFFIX ".partial"

/* One byte behind the other, to a descriptor. */
static int write_on(void *context, const void *data, size_t length)
{
	const int *fd = context;
	const uint8_t *bytes = data;

	while (length > 0) {
		ssize_t written = write(*fd, bytes, length);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return -errno;
		bytes += written;
		length -= (size_t)written;
	}
	return 0;
}

static int write_file(void *context, const void *data, size_t length)
{
	return sparse_file_write(context, data, length);
}

static int skip_in_file(void *context, uint64_t length)
{
	sparse_file_skip(context, length);
	return 0;
}

static void add_bytes(void *context, uint64_t bytes)
{
	progress_add(context, bytes, 0);
}

/* The range that the options name, in the object as it is now. */
static int find_range(struct ctl *ctl, struct osd_client_address address, uint64_t *offset,
		      uint64_t *length)
{
	struct osd_client_error error;
	uint64_t size;

	if (osd_client_get_number(ctl->client, address, OSD_USER_OBJECT_INFORMATION,
				  OSD_INFORMATION_LOGICAL_LENGTH, &size, &error) < 0) {
		if (error.result == -EINVAL && error.has_sense)
			return ctl_fail(ctl, CTL_USAGE,
					"%s: 0x%" PRIx64 "/0x%" PRIx64
					" is a collection, which has no content; `coll ls` lists "
					"its members",
					ctl->verb, address.partition, address.object);
		return ctl_fail_command(ctl, &error);
	}
	*offset = min_u64(ctl->options->offset, size);
	*length = size - *offset;
	if (ctl->options->has_length)
		*length = min_u64(*length, ctl->options->length);
	return CTL_OK;
}

/* `skip` NULL: zeros are written as other bytes are. */
static int fetch(struct ctl *ctl, struct osd_client_address address, transfer_write *write,
		 transfer_skip *skip, void *context, const char *name, uint64_t *received)
{
	struct osd_client_error error = { 0 };
	struct progress progress;
	struct transfer_options options = {
		.chunk_bytes = ctl->options->chunk_bytes,
		.progress = add_bytes,
		.progress_context = &progress,
	};
	uint64_t offset = 0, length = 0;
	int result, code = find_range(ctl, address, &offset, &length);

	if (code != CTL_OK)
		return code;
	progress_begin(&progress, ctl, ctl->verb, length, 0);
	result = skip ? transfer_download_sparse(ctl->client, address, offset, length, write, skip,
						 context, &options, received, &error)
		      : transfer_download(ctl->client, address, offset, length, write, context,
					  &options, received, &error);
	progress_end(&progress);
	if (result == 0)
		return CTL_OK;
	if (error.local && result == -ECANCELED)
		return ctl_fail(ctl, CTL_INTERRUPTED, "%s: interrupted", ctl->verb);
	if (error.local && result == -EPIPE && ctl_reader_is_gone())
		return CTL_LOCAL;
	if (error.local && !error.sentence.text[0])
		return ctl_fail(ctl, CTL_LOCAL, "%s: %s", name, strerror(-error.result));
	return ctl_fail_command(ctl, &error);
}

static int fetch_to_stdout(struct ctl *ctl, struct osd_client_address address, uint64_t *received)
{
	int fd = STDOUT_FILENO;

	return fetch(ctl, address, write_on, NULL, &fd, "standard output", received);
}

/*
 * Is it there, and something that no file may take the place of: a device, a pipe, a symbolic link
 * (/dev/stdout is one), a directory?
 */
static bool is_special(const char *name)
{
	struct stat stat;

	return lstat(name, &stat) == 0 && !S_ISREG(stat.st_mode);
}

/* Writes where the name leads, zeros too: a device holds something else there. */
static int fetch_into(struct ctl *ctl, struct osd_client_address address, const char *name,
		      uint64_t *received)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666), code;

	if (fd < 0)
		return ctl_fail(ctl, CTL_LOCAL, "%s: %s", name, strerror(errno));
	code = fetch(ctl, address, write_on, NULL, &fd, name, received);
	if (close(fd) < 0 && code == CTL_OK)
		code = ctl_fail(ctl, CTL_LOCAL, "%s: %s", name, strerror(errno));
	return code;
}

/* Writes a file beside the right one, and renames it when it is complete, or removes it. */
static int fetch_file(struct ctl *ctl, struct osd_client_address address, const char *name,
		      uint64_t *received)
{
	struct sparse_file file = { .fd = -1 };
	char *partial;
	int result, code;

	if (asprintf(&partial, "%s" PARTIAL_SUFFIX, name) < 0)
		return ctl_fail(ctl, CTL_LOCAL, "out of memory");
	file.fd = open(partial, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (file.fd < 0) {
		code = ctl_fail(ctl, CTL_LOCAL, "%s: %s", partial, strerror(errno));
		free(partial);
		return code;
	}
	ctl_catch_signals(ctl);
	code = fetch(ctl, address, write_file, skip_in_file, &file, partial, received);
	result = code == CTL_OK ? sparse_file_end(&file) : 0;
	if (close(file.fd) < 0 && result == 0)
		result = -errno;
	if (code == CTL_OK && result == 0 && rename(partial, name) < 0)
		result = -errno;
	if (code == CTL_OK && result < 0)
		code = ctl_fail(ctl, CTL_LOCAL, "%s: %s", name, strerror(-result));
	if (code != CTL_OK)
		unlink(partial);
	free(partial);
	return code;
}

static int report(const struct ctl *ctl, struct osd_client_address address, uint64_t bytes,
		  FILE *to)
{
	char text[OSD_CLIENT_ADDRESS_TEXT];

	if (!ctl->options->json)
		return CTL_OK;
	return ctl_print_json(to, json_pack("{s:s,s:I}", "address",
					    ctl_format_address(ctl, address, text), "bytes",
					    (json_int_t)bytes));
}

int verb_get(struct ctl *ctl)
{
	bool to_stdout = ctl->argument_count < 2 || strcmp(ctl->arguments[1], "-") == 0;
	struct osd_client_address address;
	uint64_t received = 0;
	int code = ctl_object_address(ctl, 0, &address);

	if (code == CTL_OK)
		code = ctl_connect(ctl);
	if (code != CTL_OK)
		return code;
	if (to_stdout)
		code = fetch_to_stdout(ctl, address, &received);
	else if (is_special(ctl->arguments[1]))
		code = fetch_into(ctl, address, ctl->arguments[1], &received);
	else
		code = fetch_file(ctl, address, ctl->arguments[1], &received);
	/* Standard output has the data. */
	return code == CTL_OK ? report(ctl, address, received, to_stdout ? stderr : stdout) : code;
}

static int cat_one(struct ctl *ctl, int index, struct osd_client_address address, void *context)
{
	uint64_t received = 0;
	int code = fetch_to_stdout(ctl, address, &received);

	(void)index;
	(void)context;
	return code == CTL_OK ? report(ctl, address, received, stderr) : code;
}

int verb_cat(struct ctl *ctl)
{
	int done;

	return ctl_for_each_object(ctl, 0, NULL, cat_one, NULL, &done);
}
