/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Unpacks a tree. It makes directories first and gives them modes and times last; files arrive many
 * at once. manifest_parse has made sure that no path leaves the directory. Everything is made anew,
 * or is there already as an interrupted export has made it. So nothing else that exists is ever
 * followed or overwritten.
 *
 * Small files are written by a second thread, one after the other, while more of them arrive. Where
 * a name might be that of a file that is not whole, it has written all that it was given.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <openssl/evp.h>
#include <openssl/sha.h>

#include "client/aside.h"
#include "client/sparse_file.h"
#include "client/tree_file.h"
#include "common/bytes.h"

/* Files that have arrived and are not written; so many, or so many bytes. */
#define UNWRITTEN_MAX       64U
#define UNWRITTEN_BYTES_MAX (8U << 20)

/* What of a file may differ. */
#define CONTENT "content (SHA-256)"
#define LENGTH  "length"

struct exporter {
	struct osd_client *client;
	struct osd_client_address partition;
	struct tree_destination destination;
	const struct tree_options *options;
	struct manifest manifest;
	struct tree_report *report;
	struct tree_flight flight;
	struct aside *writer;
	uint64_t unwritten_bytes; /* that the writer has */
	int result;               /* the first error */
	struct osd_client_error *error;
	struct osd_client_error damage; /* of the first file whose content can't be had */
};

struct small_file {
	struct aside_task task;
	struct osd_request request;
	struct exporter *exporter;
	size_t index;
	struct osd_client_value get;
	uint64_t length; /* of the object, as the target says */
	bool differs;    /* from what was stored */
	int result;      /* of writing it */
	struct tree_lack lack;
	uint8_t data[];
};

static int fail(struct exporter *exporter, const struct osd_client_error *error)
{
	if (exporter->result == 0) {
		exporter->result = error->result;
		outcome_give(error, exporter->error);
	}
	return exporter->result;
}

static int fail_local(struct exporter *exporter, int result, const char *path)
{
	if (exporter->result == 0)
		exporter->result = outcome_set_local(exporter->error, result, "%s/%s: %s",
						     exporter->destination.directory, path,
						     strerror(-result));
	return exporter->result;
}

/* ---- files ---- */

static void warn_incomplete(struct exporter *exporter, const struct manifest_entry *entry,
			    const char *what, int result)
{
	struct error_text sentence;

	exporter->report->incomplete++;
	if (!exporter->options->warn)
		return;
	error_set(&sentence, 0, "%s/%s: %s can't be given: %s", exporter->destination.directory,
		  entry->path, what, strerror(-result));
	exporter->options->warn(exporter->options->context, sentence.text);
}

static void warn_of_lack(struct exporter *exporter, const struct manifest_entry *entry,
			 const struct tree_lack *lack)
{
	if (lack->owner < 0)
		warn_incomplete(exporter, entry, "the owner", lack->owner);
	if (lack->xattr < 0)
		warn_incomplete(exporter, entry, lack->xattr_name, lack->xattr);
}

/* `why` NULL: another warning tells of it. */
static void leave_out(struct exporter *exporter, const struct manifest_entry *entry,
		      const char *why)
{
	struct error_text sentence;

	exporter->report->left_out++;
	if (!why || !exporter->options->warn)
		return;
	error_set(&sentence, 0, "%s/%s: %s; it is left out%s", exporter->destination.directory,
		  entry->path, why, entry->type == MANIFEST_DIRECTORY ? ", and what is in it" : "");
	exporter->options->warn(exporter->options->context, sentence.text);
}

/* Its content can't be had. That is no reason to keep the others back. */
static int leave_out_damaged(struct exporter *exporter, size_t index,
			     const struct osd_client_error *error)
{
	struct manifest_entry *entry = &exporter->manifest.entries[index];

	entry->left_out = true;
	leave_out(exporter, entry, error->sentence.text);
	if (exporter->damage.result == 0) {
		exporter->damage = *error;
		outcome_set(&exporter->damage, error->result, "%s: %s", entry->path,
			    error->sentence.text);
	}
	return error->result;
}

static int leave_out_differing(struct exporter *exporter, size_t index, const char *what)
{
	struct osd_client_error error;

	outcome_set(&error, -EBADMSG,
		    "object 0x%llx: its %s is not that of the file that was stored",
		    (unsigned long long)exporter->manifest.entries[index].object, what);
	return leave_out_damaged(exporter, index, &error);
}

/* A command for a file has failed. */
static int fail_read(struct exporter *exporter, size_t index, const struct osd_client_error *error)
{
	if (outcome_concerns_object(error))
		return leave_out_damaged(exporter, index, error);
	return fail(exporter, error);
}

static void arrived(struct exporter *exporter, const struct manifest_entry *entry,
		    struct tree_count *count)
{
	exporter->report->files++;
	exporter->report->bytes += entry->length;
	tree_count_file(count, entry->length);
}

/* ---- by the writer ---- */

static int write_small(const struct exporter *exporter, const struct manifest_entry *entry,
		       struct small_file *small)
{
	struct tree_file file;
	int result = tree_file_create(&exporter->destination, entry, &file);
	struct sparse_file content = { .fd = file.fd };

	if (result < 0)
		return result;
	result = sparse_file_write(&content, small->data, entry->length);
	if (result == 0)
		result = sparse_file_end(&content);
	return tree_file_end(&exporter->destination, entry, &file, result, &small->lack);
}

/* Changes nothing of the exporter. */
static void check_and_write(void *context, struct aside_task *task)
{
	const struct exporter *exporter = context;
	struct small_file *small = (struct small_file *)task;
	const struct manifest_entry *entry = &exporter->manifest.entries[small->index];
	uint8_t digest[MANIFEST_SHA256_BYTES];

	SHA256(small->data, entry->length, digest);
	if (memcmp(digest, entry->sha256, sizeof(digest)) != 0)
		small->differs = true;
	else
		small->result = write_small(exporter, entry, small);
}

/* ---- small files ---- */

static void take_written(struct exporter *exporter, struct small_file *small)
{
	const struct manifest_entry *entry = &exporter->manifest.entries[small->index];
	struct tree_count count = { .options = exporter->options };

	exporter->unwritten_bytes -= entry->length;
	warn_of_lack(exporter, entry, &small->lack);
	if (small->differs)
		leave_out_differing(exporter, small->index, CONTENT);
	else if (small->result < 0)
		fail_local(exporter, small->result, entry->path);
	else
		arrived(exporter, entry, &count);
	free(small);
}

/* Takes back what the writer has done. Waits until it has no more than it may have. */
static void pace_writer(struct exporter *exporter, size_t files_max, uint64_t bytes_max)
{
	bool wait = true;
	struct aside_task *task;

	do {
		wait = aside_outstanding(exporter->writer) > files_max ||
		       exporter->unwritten_bytes > bytes_max;
		task = aside_take(exporter->writer, wait);
		if (task)
			take_written(exporter, (struct small_file *)task);
	} while (task);
}

/* Everything that arrives has been written. */
static void settle(struct exporter *exporter)
{
	tree_flight_drain(&exporter->flight);
	pace_writer(exporter, 0, 0);
}

static bool has_length(const struct small_file *small)
{
	struct exporter *exporter = small->exporter;
	const struct manifest_entry *entry = &exporter->manifest.entries[small->index];

	if (small->length == entry->length && small->request.received == entry->length)
		return true;
	leave_out_differing(exporter, small->index, LENGTH);
	return false;
}

static void small_done(struct osd_request *request)
{
	struct small_file *small = request->context;
	struct exporter *exporter = small->exporter;
	struct osd_list_reader reader;
	struct osd_attribute attribute;

	tree_flight_end(&exporter->flight, request->buffer_length);
	if (request->error.result < 0) {
		fail_read(exporter, small->index, &request->error);
	} else {
		if (osd_request_attributes(request, &reader) == 0 &&
		    osd_list_next(&reader, &attribute) == 1 && attribute.length == 8 &&
		    attribute.present == 8)
			small->length = get_be64(attribute.value);
		if (exporter->result == 0 && has_length(small)) {
			exporter->unwritten_bytes += request->buffer_length;
			aside_give(exporter->writer, &small->task);
			return;
		}
	}
	free(small);
}

/* One command reads the data, and the length to compare. */
static int fetch_small(struct exporter *exporter, size_t index)
{
	const struct manifest_entry *entry = &exporter->manifest.entries[index];
	struct small_file *small = malloc(sizeof(*small) + entry->length);
	int result;

	if (!small)
		return fail_local(exporter, -ENOMEM, entry->path);
	small->exporter = exporter;
	small->index = index;
	small->length = UINT64_MAX;
	small->differs = false;
	small->result = 0;
	small->lack = (struct tree_lack){ 0 };
	small->get = (struct osd_client_value){
		.page = OSD_USER_OBJECT_INFORMATION,
		.number = OSD_INFORMATION_LOGICAL_LENGTH,
		.length = 8,
	};
	small->request = (struct osd_request){
		.cdb = { .action = entry->length ? OSD_READ : OSD_GET_ATTRIBUTES },
		.buffer = small->data,
		.buffer_length = entry->length,
		.gets = &small->get,
		.get_count = 1,
		.done = small_done,
		.context = small,
	};
	osd_request_address(&small->request,
			    (struct osd_client_address){ .partition = exporter->partition.partition,
							 .object = entry->object,
							 .version = exporter->partition.version });
	result = osd_client_submit(exporter->client, &small->request);
	if (result < 0) {
		free(small);
		if (exporter->result == 0)
			exporter->result = client_not_submitted(exporter->client, result, "export",
								exporter->error);
		return result;
	}
	tree_flight_add(&exporter->flight, entry->length);
	return 0;
}

struct large_file {
	struct sparse_file file;
	EVP_MD_CTX *hash;
};

static int write_large(void *context, const void *data, size_t length)
{
	struct large_file *large = context;

	if (EVP_DigestUpdate(large->hash, data, length) != 1)
		return -ENOMEM;
	return sparse_file_write(&large->file, data, length);
}

/* Zeros count in the digest all the same. */
static int skip_large(void *context, uint64_t length)
{
	static const uint8_t zeros[65536];
	struct large_file *large = context;

	sparse_file_skip(&large->file, length);
	while (length > 0) {
		size_t part = min_u64(length, sizeof(zeros));

		if (EVP_DigestUpdate(large->hash, zeros, part) != 1)
			return -ENOMEM;
		length -= part;
	}
	return 0;
}

/* 0, or the error, which has been told or is kept. */
static int download_large(struct exporter *exporter, size_t index, struct large_file *large,
			  struct tree_count *count)
{
	const struct manifest_entry *entry = &exporter->manifest.entries[index];
	const struct transfer_options options = { .chunk_bytes = exporter->options->chunk_bytes,
						  .progress = tree_count_bytes,
						  .progress_context = count };
	struct osd_client_address address = exporter->partition;
	uint8_t digest[MANIFEST_SHA256_BYTES];
	struct osd_client_error error;
	uint64_t length = 0;

	address.object = entry->object;
	if (osd_client_get_number(exporter->client, address, OSD_USER_OBJECT_INFORMATION,
				  OSD_INFORMATION_LOGICAL_LENGTH, &length, &error) < 0)
		return fail_read(exporter, index, &error);
	if (length != entry->length)
		return leave_out_differing(exporter, index, LENGTH);
	if (transfer_download_sparse(exporter->client, address, 0, length, write_large, skip_large,
				     large, &options, &length, &error) < 0)
		return error.local && !error.sentence.text[0]
			       ? fail_local(exporter, error.result, entry->path)
			       : fail_read(exporter, index, &error);
	if (EVP_DigestFinal_ex(large->hash, digest, NULL) != 1)
		return fail_local(exporter, -ENOMEM, entry->path);
	if (length != entry->length || memcmp(digest, entry->sha256, sizeof(digest)) != 0)
		return leave_out_differing(exporter, index, CONTENT);
	return 0;
}

/* 0: it is there. */
static int fetch_whole(struct exporter *exporter, size_t index, const struct tree_file *file,
		       struct tree_count *count)
{
	const struct manifest_entry *entry = &exporter->manifest.entries[index];
	struct large_file large = { .file = { .fd = file->fd }, .hash = EVP_MD_CTX_new() };
	struct tree_lack lack;
	int result;

	if (!large.hash || EVP_DigestInit_ex(large.hash, EVP_sha256(), NULL) != 1)
		result = fail_local(exporter, -ENOMEM, entry->path);
	else
		result = download_large(exporter, index, &large, count);
	EVP_MD_CTX_free(large.hash);
	if (result == 0)
		result = sparse_file_end(&large.file);
	result = tree_file_end(&exporter->destination, entry, file, result, &lack);
	warn_of_lack(exporter, entry, &lack);
	return result < 0 && !entry->left_out ? fail_local(exporter, result, entry->path) : result;
}

static int fetch_large(struct exporter *exporter, size_t index)
{
	const struct manifest_entry *entry = &exporter->manifest.entries[index];
	struct tree_count count = { .options = exporter->options };
	struct tree_file file;
	int result;

	/* So that no file that arrives meanwhile has the name of the one that is not whole. */
	settle(exporter);
	if (exporter->result < 0)
		return exporter->result;
	result = tree_file_create(&exporter->destination, entry, &file);
	if (result < 0)
		return fail_local(exporter, result, entry->path);
	result = fetch_whole(exporter, index, &file, &count);
	if (result == 0)
		arrived(exporter, entry, &count);
	return result;
}

/* Is the content of the entry there, under this path? 1, 0, or the error, which is kept. */
static int has_file(struct exporter *exporter, const char *path, const struct manifest_entry *entry)
{
	int result = tree_destination_has(&exporter->destination, path, entry);

	if (result == -EEXIST && exporter->result == 0)
		exporter->result = outcome_set_local(
			exporter->error, result,
			"%s/%s is not as the interrupted export has left it: move it away, and the "
			"same command goes on",
			exporter->destination.directory, path);
	if (result == -ECANCELED && exporter->result == 0)
		exporter->result =
			client_not_submitted(exporter->client, result, "export", exporter->error);
	return result < 0 ? fail_local(exporter, result, path) : result;
}

/* ---- the rest ---- */

/* Has an interrupted export made it? */
static bool has_symlink(const struct exporter *exporter, const struct manifest_entry *entry)
{
	char target[PATH_MAX];
	ssize_t length =
		readlinkat(exporter->destination.root, entry->path, target, sizeof(target));
	bool same = length == (ssize_t)strlen(entry->target) &&
		    memcmp(target, entry->target, (size_t)length) == 0;

	errno = EEXIST;
	return exporter->destination.resumes && same;
}

static int make_symlink(struct exporter *exporter, const struct manifest_entry *entry)
{
	const struct timespec times[2] = {
		{ .tv_nsec = UTIME_OMIT },
		{ .tv_sec = entry->seconds, .tv_nsec = entry->nanoseconds },
	};

	if (symlinkat(entry->target, exporter->destination.root, entry->path) < 0 &&
	    (errno != EEXIST || !has_symlink(exporter, entry))) {
		if (errno != ENAMETOOLONG)
			return fail_local(exporter, -errno, entry->path);
		/* The target: some file systems have shorter ones. */
		leave_out(exporter, entry, strerror(ENAMETOOLONG));
		return 0;
	}
	if (utimensat(exporter->destination.root, entry->path, times, AT_SYMLINK_NOFOLLOW) < 0)
		return fail_local(exporter, -errno, entry->path);
	if (entry->user != MANIFEST_NO_OWNER &&
	    fchownat(exporter->destination.root, entry->path, entry->user, entry->group,
		     AT_SYMLINK_NOFOLLOW) < 0 &&
	    (errno != EPERM || geteuid() == 0))
		warn_incomplete(exporter, entry, "the owner", -errno);
	exporter->report->symlinks++;
	return 0;
}

static int make_directory(struct exporter *exporter, size_t index)
{
	const struct manifest_entry *entry = &exporter->manifest.entries[index];

	/* The first is the destination itself. One that was there is no link elsewhere. */
	if (index > 0 && mkdirat(exporter->destination.root, entry->path, 0700) < 0 &&
	    (errno != EEXIST || !exporter->destination.resumes))
		return fail_local(exporter, -errno, entry->path);
	exporter->report->directories++;
	return 0;
}

static int make_file(struct exporter *exporter, size_t index)
{
	const struct manifest_entry *entry = &exporter->manifest.entries[index];
	struct tree_count count = { .options = exporter->options };
	int result = has_file(exporter, entry->path, entry);

	if (result < 0)
		return result;
	if (result > 0) {
		exporter->report->resumed++;
		arrived(exporter, entry, &count);
		return 0;
	}
	return entry->length <= TREE_SMALL_BYTES ? fetch_small(exporter, index)
						 : fetch_large(exporter, index);
}

static int make_entry(struct exporter *exporter, size_t index)
{
	const struct manifest_entry *entry = &exporter->manifest.entries[index];

	/* A file that the writer has may be under this name by now. */
	if (tree_is_partial(entry->path))
		settle(exporter);
	switch (entry->type) {
	case MANIFEST_DIRECTORY:
		return make_directory(exporter, index);
	case MANIFEST_SYMLINK:
		return make_symlink(exporter, entry);
	case MANIFEST_FILE:
		return make_file(exporter, index);
	case MANIFEST_HARD_LINK:
		return 0; /* when the files are there */
	}
	return 0;
}

static int make_entries(struct exporter *exporter)
{
	for (size_t i = 0; i < exporter->manifest.count && exporter->result == 0; i++) {
		make_entry(exporter, i);
		tree_flight_pace(&exporter->flight);
		pace_writer(exporter, UNWRITTEN_MAX, UNWRITTEN_BYTES_MAX);
	}
	settle(exporter);
	return exporter->result;
}

static int make_hard_link(struct exporter *exporter, const struct manifest_entry *file,
			  const char *path)
{
	const int root = exporter->destination.root;
	int there = has_file(exporter, path, file);

	if (there < 0)
		return there;
	/* What is there may have lost its file, which was torn and is another one now. */
	if (there > 0 && unlinkat(root, path, 0) < 0)
		return fail_local(exporter, -errno, path);
	return linkat(root, file->path, root, path, 0) < 0 ? fail_local(exporter, -errno, path) : 0;
}

static int make_hard_links(struct exporter *exporter)
{
	const struct manifest *manifest = &exporter->manifest;

	for (size_t i = 0; i < manifest->count; i++) {
		const struct manifest_entry *entry = &manifest->entries[i], *file;

		if (entry->type != MANIFEST_HARD_LINK)
			continue;
		file = &manifest->entries[entry->linked];
		if (file->left_out) {
			leave_out(exporter, entry, "a link to a file that is left out");
			continue;
		}
		if (make_hard_link(exporter, file, entry->path) < 0)
			return exporter->result;
		exporter->report->hard_links++;
	}
	return 0;
}

/*
 * The status, then the marker, which changes the time again: whoever ends this in between can begin
 * again. A mode that shuts its owner out comes behind the marker. The marker stays where files are
 * missing that can be tried again.
 */
static int finish_root(struct exporter *exporter, int fd, const struct manifest_entry *entry,
		       struct tree_lack *lack)
{
	bool shuts_out = (entry->mode & S_IRWXU) != S_IRWXU;
	int result = shuts_out ? 0 : tree_give_status(fd, entry, lack);

	if (result < 0 || exporter->damage.result < 0)
		return result;
	result = tree_destination_finish(&exporter->destination);
	if (result < 0)
		return result;
	return shuts_out ? tree_give_status(fd, entry, lack) : tree_give_time(fd, entry);
}

/* Children before parents: every child changes its parent's time, and a mode may shut us out. */
static int finish_directories(struct exporter *exporter)
{
	const struct manifest *manifest = &exporter->manifest;

	for (size_t i = manifest->count; i-- > 0;) {
		const struct manifest_entry *entry = &manifest->entries[i];
		struct tree_lack lack = { 0 };
		int fd, result;

		if (entry->type != MANIFEST_DIRECTORY)
			continue;
		fd = openat(exporter->destination.root, entry->path,
			    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0)
			result = -errno;
		else if (i == 0)
			result = finish_root(exporter, fd, entry, &lack);
		else
			result = tree_give_status(fd, entry, &lack);
		if (fd >= 0)
			close(fd);
		warn_of_lack(exporter, entry, &lack);
		if (result < 0)
			return fail_local(exporter, result, entry->path);
	}
	return 0;
}

static void announce(const struct exporter *exporter)
{
	uint64_t files = 0, bytes = 0;

	for (size_t i = 0; i < exporter->manifest.count; i++)
		if (exporter->manifest.entries[i].type == MANIFEST_FILE) {
			files++;
			bytes += exporter->manifest.entries[i].length;
		}
	if (exporter->options->total)
		exporter->options->total(exporter->options->context, files, bytes);
}

static int refuse_half_updated(const struct exporter *exporter)
{
	uint64_t begun_ms;
	time_t begun;
	bool marked;
	char text[32];
	struct tm parts;
	int result = tree_read_update(exporter->client, exporter->partition, &marked, &begun_ms,
				      exporter->error);

	if (result < 0 || !marked)
		return result;
	begun = (time_t)(begun_ms / 1000);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&begun, &parts));
	return outcome_set(exporter->error, -EINPROGRESS,
			   "an update of this tree, begun %s, runs or was interrupted: repeat "
			   "`muninnctl import PID DIR --update`, or export the tree as it was "
			   "before that with --at MOMENT",
			   text);
}

/* What is to be unpacked. */
static int read_tree(struct exporter *exporter, struct tree_pointer *pointer)
{
	const char *below = exporter->options->below;
	struct osd_client_error *error = exporter->error;
	int result = tree_read_pointer(exporter->client, exporter->partition, pointer, error);

	if (result == 0)
		result = refuse_half_updated(exporter);
	if (result == 0)
		result = tree_read_manifest(exporter->client, exporter->partition, pointer,
					    &exporter->manifest, error);
	if (result < 0)
		return result;
	exporter->report->manifest_object = pointer->object;
	result = below ? manifest_take_below(&exporter->manifest, below) : 0;
	if (result == -ENOENT)
		return outcome_set(error, result, "the tree has no directory '%s'", below);
	if (result == -ENOTDIR)
		return outcome_set_local(error, result,
					 "'%s' is no directory; `muninnctl get` brings files out",
					 below);
	return result < 0 ? outcome_set_local(error, result, "export: out of memory") : 0;
}

/* A name of another file system may be too long for this one, a path for a system call. */
static int leave_out_too_long(struct exporter *exporter)
{
	struct manifest *manifest = &exporter->manifest;

	for (size_t i = 0; i < manifest->count; i++) {
		struct manifest_entry *entry = &manifest->entries[i];
		size_t too_long = tree_destination_too_long(&exporter->destination, entry);

		entry->left_out = too_long > 0;
		/* Of what is below such a directory, the warning of that one tells. */
		if (entry->left_out)
			leave_out(exporter, entry,
				  entry->path[too_long] ? NULL : strerror(ENAMETOOLONG));
	}
	return manifest_leave_out(manifest) < 0
		       ? outcome_set_local(exporter->error, -ENOMEM, "export: out of memory")
		       : 0;
}

/* It has come to its end. */
static int tell_damage(struct exporter *exporter)
{
	if (exporter->damage.result == 0)
		return 0;
	exporter->report->brought_the_rest = true;
	return outcome_give(&exporter->damage, exporter->error);
}

static int start_writer(struct exporter *exporter)
{
	int result = aside_create(check_and_write, exporter, &exporter->writer);

	return result < 0 ? outcome_set_local(exporter->error, result,
					      "export: no thread can be started: %s",
					      strerror(-result))
			  : 0;
}

int tree_export(struct osd_client *client, struct osd_client_address partition,
		const char *directory, const struct tree_options *options,
		struct tree_report *report, struct osd_client_error *error)
{
	struct exporter exporter = {
		.client = client,
		.flight = { .client = client },
		.partition = partition,
		.destination = { .client = client,
				 .directory = directory,
				 .root = -1,
				 .marker = -1 },
		.options = options,
		.report = report,
		.error = error,
	};
	struct tree_pointer pointer;
	int result;

	*report = (struct tree_report){ 0 };
	exporter.destination.manifest = &exporter.manifest;
	result = read_tree(&exporter, &pointer);
	if (result == 0)
		result = tree_destination_open(&exporter.destination, error);
	if (result == 0)
		result = leave_out_too_long(&exporter);
	if (result == 0)
		result = tree_destination_begin(&exporter.destination, &pointer, options->below,
						error);
	if (result == 0)
		result = start_writer(&exporter);
	if (result == 0) {
		announce(&exporter);
		result = make_entries(&exporter);
	}
	if (result == 0)
		result = make_hard_links(&exporter);
	if (result == 0)
		result = finish_directories(&exporter);
	if (result == 0)
		result = tell_damage(&exporter);
	aside_destroy(exporter.writer);
	tree_destination_close(&exporter.destination);
	manifest_free(&exporter.manifest);
	return result;
}
