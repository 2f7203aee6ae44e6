/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* import and export. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "client/ctl/places.h"
#include "client/tree.h"

struct tree_run {
	struct ctl *ctl;
	struct progress progress;
};

/* What the tree can take at most where it goes; 0: nobody can tell. */
static uint64_t room_for(struct ctl *ctl)
{
	const struct osd_client_address root = { .partition = 0 };
	struct osd_client_error error;
	struct statvfs status;
	uint64_t capacity;

	if (strcmp(ctl->verb, "export") == 0)
		return statvfs(ctl->arguments[1], &status) == 0
			       ? (uint64_t)status.f_bavail * status.f_frsize
			       : 0;
	return osd_client_get_number(ctl->client, root, OSD_ROOT_INFORMATION,
				     OSD_ROOT_TOTAL_CAPACITY, &capacity, &error) == 0
		       ? capacity
		       : 0;
}

/* Holes take no room, so it may fit all the same. */
static void warn_of_size(struct ctl *ctl, uint64_t bytes)
{
	uint64_t room = room_for(ctl);
	char size[CTL_SIZE_TEXT], there[CTL_SIZE_TEXT];

	if (room != 0 && bytes > room)
		fprintf(stderr, "muninnctl: %s: the files have %s, and there is room for %s\n",
			ctl->verb, ctl_format_size(bytes, size), ctl_format_size(room, there));
}

static void begin(void *context, uint64_t files, uint64_t bytes)
{
	struct tree_run *run = context;

	warn_of_size(run->ctl, bytes);
	progress_begin(&run->progress, run->ctl, run->ctl->verb, bytes, files);
}

static void add(void *context, uint64_t files, uint64_t bytes)
{
	struct tree_run *run = context;

	progress_add(&run->progress, bytes, files);
}

static void warn(void *context, const char *sentence)
{
	(void)context;
	ctl_warn(sentence);
}

static void print_difference(void *context, const char *what, const char *path)
{
	(void)context;
	printf("%s ", what);
	ctl_print_text(path);
	putchar('\n');
}

static struct tree_options options_of(struct tree_run *run, int log_fd)
{
	return (struct tree_options){
		.chunk_bytes = run->ctl->options->chunk_bytes,
		.replace = run->ctl->options->replace,
		.update = run->ctl->options->update,
		.checksum = run->ctl->options->checksum,
		.clean = run->ctl->options->clean,
		.excludes = run->ctl->options->excludes,
		.exclude_count = run->ctl->options->exclude_count,
		.one_file_system = run->ctl->options->one_file_system,
		.dry_run = run->ctl->options->dry_run,
		.differs = run->ctl->options->json ? NULL : print_difference,
		.log_fd = log_fd,
		.total = begin,
		.progress = add,
		.warn = warn,
		.context = run,
	};
}

static void print_update(const struct tree_report *report)
{
	char size[CTL_SIZE_TEXT];

	printf("; %" PRIu64 " new, %" PRIu64 " changed, %" PRIu64 " with other attributes, %" PRIu64
	       " as before, %s sent",
	       report->added, report->changed, report->touched, report->unchanged,
	       ctl_format_size(report->sent_bytes, size));
}

static json_t *report_json(const struct tree_report *report, bool imported)
{
	const struct {
		const char *name;
		uint64_t value;
	} counts[] = {
		{ "files", report->files },
		{ "directories", report->directories },
		{ "symlinks", report->symlinks },
		{ "hard_links", report->hard_links },
		{ "bytes", report->bytes },
		{ "skipped", report->skipped },
		{ "removed", report->removed },
		{ "incomplete", report->incomplete },
		{ "resumed", report->resumed },
		{ "left_out", report->left_out },
		/* Of imports only. */
		{ "added", report->added },
		{ "changed", report->changed },
		{ "touched", report->touched },
		{ "unchanged", report->unchanged },
		{ "sent_bytes", report->sent_bytes },
		{ "excluded", report->excluded },
		{ "torn", report->torn },
	};
	size_t count = sizeof(counts) / sizeof(counts[0]) - (imported ? 0 : 7);
	json_t *object = json_object();

	for (size_t i = 0; i < count; i++)
		json_object_set_new(object, counts[i].name,
				    json_integer((json_int_t)counts[i].value));
	json_object_set_new(object, "manifest", ctl_json_id(report->manifest_object));
	return object;
}

static int report(const struct ctl *ctl, const struct tree_report *report)
{
	char size[CTL_SIZE_TEXT];

	if (ctl->options->json)
		return ctl_print_json(stdout,
				      report_json(report, strcmp(ctl->verb, "import") == 0));
	printf("%" PRIu64 " files, %s, %" PRIu64 " directories, %" PRIu64
	       " symbolic links, %" PRIu64 " hard links",
	       report->files, ctl_format_size(report->bytes, size), report->directories,
	       report->symlinks, report->hard_links);
	if (report->skipped)
		printf(", %" PRIu64 " skipped", report->skipped);
	if (report->excluded)
		printf(", %" PRIu64 " excluded", report->excluded);
	if (ctl->options->update)
		print_update(report);
	if (report->resumed)
		printf("; resumed: %" PRIu64 " files were there already", report->resumed);
	if (report->left_out)
		printf(", %" PRIu64 " left out%s", report->left_out,
		       strcmp(ctl->verb, "import") == 0 ? " or as before" : "");
	if (report->torn)
		printf(", %" PRIu64 " changed while they were read", report->torn);
	if (report->incomplete)
		printf(", %" PRIu64 " without all of their attributes", report->incomplete);
	if (report->removed)
		printf(", %" PRIu64 " old objects removed", report->removed);
	if (ctl->options->dry_run)
		printf("; nothing was stored\n");
	else
		printf("; manifest 0x%" PRIx64 "\n", report->manifest_object);
	return ctl_end_output(ctl);
}

static int open_log(const struct ctl *ctl, int *fd)
{
	*fd = -1;
	if (!ctl->options->log)
		return CTL_OK;
	*fd = open(ctl->options->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (*fd < 0)
		return ctl_fail(ctl, CTL_LOCAL, "%s: %s", ctl->options->log, strerror(errno));
	return CTL_OK;
}

static int fail_tree(const struct ctl *ctl, const struct osd_client_error *error)
{
	return ctl_fail(ctl, ctl_exit_of(error), "%s", error->sentence.text);
}

/* After a failure: what is there, and how to go on. A partition without anything goes again. */
static void say_what_is_there(struct ctl *ctl, const struct tree_report *stored)
{
	const uint64_t files = stored->added + stored->resumed;
	struct osd_client_error error;
	int result = -ENOTEMPTY;

	/* It has not come so far as to change anything. */
	if (!stored->has_begun && !stored->made_partition)
		return;
	if (stored->has_ended && ctl_recover(ctl) && tree_is_stored(ctl->client, stored)) {
		ctl_warn("import: the tree is stored as a whole all the same");
		return;
	}
	if (stored->made_partition && files == 0 && ctl_recover(ctl))
		result = osd_client_remove_partition(ctl->client, stored->partition, false, &error);
	if (result == 0 || result == -ENOENT) {
		ctl_warn("import: nothing of it is there");
		return;
	}
	fprintf(stderr,
		"muninnctl: import: at least %" PRIu64 " files of it are there and stay. The same "
		"command goes on with them.\n",
		files);
	if (!ctl->options->update)
		fprintf(stderr,
			"muninnctl: import: `muninnctl import 0x%" PRIx64 " --clean`, without a "
			"directory, removes them.\n",
			stored->partition);
}

/* `import --clean` without a directory. */
static int clean(struct ctl *ctl)
{
	struct tree_report cleaned = { 0 };
	struct osd_client_error error;
	struct ctl_place place;
	int code = ctl_place(ctl, 0, &place);

	if (code == CTL_OK && (!place.address.partition || place.address.object || place.path))
		return ctl_fail(ctl, CTL_USAGE, "import --clean needs a partition, PID or a name");
	if (code == CTL_OK)
		code = ctl_connect(ctl);
	if (code != CTL_OK)
		return code;
	ctl_catch_signals(ctl);
	if (tree_clean(ctl->client, place.address.partition, &cleaned, &error) < 0)
		return fail_tree(ctl, &error);
	if (ctl->options->json)
		return ctl_print_json(stdout,
				      json_pack("{s:I}", "removed", (json_int_t)cleaned.removed));
	printf("%" PRIu64 " old objects removed\n", cleaned.removed);
	return ctl_end_output(ctl);
}

static int check_import(const struct ctl *ctl)
{
	if (ctl->options->update && ctl->options->replace)
		return ctl_fail(ctl, CTL_USAGE, "import: either --update or --replace");
	if (ctl->options->checksum && !ctl->options->update)
		return ctl_fail(ctl, CTL_USAGE, "import: --checksum is for --update");
	if (ctl->argument_count == 1 && !ctl->options->clean)
		return ctl_fail(ctl, CTL_USAGE,
				"import needs a directory; only --clean goes without one");
	if (ctl->argument_count == 1 && (ctl->options->update || ctl->options->replace))
		return ctl_fail(ctl, CTL_USAGE, "import: --update and --replace need a directory");
	if (ctl->argument_count == 1 && ctl->options->dry_run)
		return ctl_fail(ctl, CTL_USAGE,
				"import: --clean without a directory removes objects at once; "
				"there is no --dry-run of it");
	return CTL_OK;
}

/* The argument as a partition of the present, or as the name of one to make. */
static int import_into(struct ctl *ctl, struct ctl_place *place)
{
	int code = ctl_place_to_make(ctl, 0, place);

	if (code == CTL_OK && !place->new_name[0] && !place->address.partition)
		return ctl_fail(ctl, CTL_USAGE,
				"import needs a partition, PID or a name; '%s' is the device",
				ctl->arguments[0]);
	return code;
}

int verb_import(struct ctl *ctl)
{
	struct tree_run run = { .ctl = ctl };
	struct ctl_place place;
	struct osd_client_error error;
	struct tree_options options;
	struct tree_report stored;
	int log_fd, result, code = check_import(ctl);

	if (code == CTL_OK && ctl->argument_count == 1)
		return clean(ctl);
	if (code == CTL_OK)
		code = import_into(ctl, &place);
	if (code == CTL_OK)
		code = ctl_connect(ctl);
	if (code == CTL_OK)
		code = open_log(ctl, &log_fd);
	if (code != CTL_OK)
		return code;
	options = options_of(&run, log_fd);
	options.name = place.new_name[0] ? place.new_name : NULL;
	ctl_catch_signals(ctl);
	result = tree_import(ctl->client, place.address.partition, ctl->arguments[1], &options,
			     &stored, &error);
	progress_end(&run.progress);
	if (log_fd >= 0)
		close(log_fd);
	if (result < 0) {
		code = fail_tree(ctl, &error);
		say_what_is_there(ctl, &stored);
		return code;
	}
	code = report(ctl, &stored);
	return code == CTL_OK && stored.left_out + stored.torn + stored.incomplete > 0 ? CTL_FAILED
										       : code;
}

/* Warnings have named what is missing. */
static int fail_export_partly(const struct ctl *ctl, const struct osd_client_error *error)
{
	return ctl_fail(ctl, ctl_exit_of(error),
			"export: %s has everything but what was left out, first %s. The same "
			"command tries that again.",
			ctl->arguments[1], error->sentence.text);
}

int verb_export(struct ctl *ctl)
{
	struct tree_run run = { .ctl = ctl };
	struct ctl_place place;
	struct osd_client_error error;
	struct tree_options options = options_of(&run, -1);
	struct tree_report unpacked;
	char *below = NULL;
	int result, code = ctl_place(ctl, 0, &place);

	if (code == CTL_OK && (!place.address.partition || place.address.object))
		return ctl_fail(ctl, CTL_USAGE,
				"export needs a partition, PID, or a directory of its tree, "
				"PID:PATH; '%s' is %s",
				ctl->arguments[0],
				place.address.object ? "an object" : "the device");
	if (code == CTL_OK)
		code = ctl_connect(ctl);
	if (code == CTL_OK && place.path && place.path_length > 0) {
		below = strndup(place.path, place.path_length);
		if (!below)
			return ctl_fail(ctl, CTL_LOCAL, "export: out of memory");
	}
	if (code != CTL_OK)
		return code;
	options.below = below;
	ctl_catch_signals(ctl);
	result = tree_export(ctl->client, place.address, ctl->arguments[1], &options, &unpacked,
			     &error);
	progress_end(&run.progress);
	free(below);
	if (result == 0) {
		code = report(ctl, &unpacked);
		return code == CTL_OK && unpacked.left_out + unpacked.incomplete > 0 ? CTL_FAILED
										     : code;
	}
	if (unpacked.brought_the_rest) {
		code = report(ctl, &unpacked);
		return code == CTL_OK ? fail_export_partly(ctl, &error) : code;
	}
	if (options.below && result == -ENOTDIR)
		return ctl_fail(ctl, CTL_USAGE, "%s", error.sentence.text);
	code = fail_tree(ctl, &error);
	if (unpacked.directories)
		fprintf(stderr,
			"muninnctl: export: %s has %" PRIu64 " files of it, each whole. The same "
			"command goes on with the others.\n",
			ctl->arguments[1], unpacked.files);
	return code;
}
