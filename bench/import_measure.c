/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* `muninn-bench import`: the turns. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/folder.h"
#include "bench/import_bench.h"
#include "bench/servers.h"
#include "client/osd_client.h"
#include "wire/standard.h"

enum { PATH_BYTES = SERVER_PATH_BYTES };

struct run {
	const struct import_bench_options *options;
	struct import_bench_figures *figures;
	const volatile int *stop;
	struct error_text *error;
	struct bench_server server;
	char url[SERVER_URL_BYTES];
	char folder[PATH_BYTES - 16];
	/* All below the folder, so that they go with it. */
	char tree[PATH_BYTES], image[PATH_BYTES], archive[PATH_BYTES], back[PATH_BYTES];
	char repository[PATH_BYTES], log[PATH_BYTES];
	char borg_base[PATH_BYTES + 32];
	char muninnd[PATH_BYTES], muninnctl[PATH_BYTES];
};

/* ---- one program ---- */

static int execute(struct run *run, char *const argv[], double *seconds)
{
	const struct bench_process_options process = { .log = run->log };
	double began;
	int result = 0, fd;

	if (*run->stop)
		return error_set(run->error, -ECANCELED, "interrupted");
	/* What is left to write of the program before does not count. */
	fd = open(run->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || syncfs(fd) < 0)
		result = error_set(run->error, -errno, "%s: %s", run->folder, strerror(errno));
	if (fd >= 0)
		close(fd);
	if (result < 0)
		return result;
	began = bench_seconds();
	result = bench_process_run(argv, &process, run->error);
	*seconds = bench_seconds() - began;
	if (*run->stop)
		return error_set(run->error, -ECANCELED, "interrupted");
	return result;
}

static int make_folder(struct run *run, const char *path)
{
	return mkdir(path, 0700) < 0
		       ? error_set(run->error, -errno, "%s: %s", path, strerror(errno))
		       : 0;
}

/* ---- the tasks ---- */

static int run_ours(struct run *run, enum import_task task, double *seconds)
{
	char *const words[IMPORT_TASKS][7] = {
		[IMPORT_WHOLE] = { run->muninnctl, "import", run->url, "tree", run->tree },
		[IMPORT_BACK] = { run->muninnctl, "export", run->url, "tree", run->back },
		[IMPORT_AGAIN] = { run->muninnctl, "import", run->url, "tree", run->tree,
				   "--update" },
	};
	int result = execute(run, words[task], seconds);

	if (result == 0 && task == IMPORT_BACK) {
		result = source_tree_check(&run->options->tree, run->back, run->error);
		bench_folder_remove(run->back);
	}
	return result;
}

static int run_borg(struct run *run, char *verb, char *what, char *more, double *seconds)
{
	return execute(run,
		       (char *[]){ "env", run->borg_base,
				   "BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK=yes",
				   (char *)run->options->borg, verb, what, more, NULL },
		       seconds);
}

static int run_others(struct run *run, enum import_task task, uint32_t turn, double *seconds)
{
	char name[PATH_BYTES + 16];
	int result;

	switch (task) {
	case IMPORT_WHOLE:
		return execute(run,
			       (char *[]){ "tar", "-C", run->tree, "-cf", run->archive, ".", NULL },
			       seconds);
	case IMPORT_BACK:
		result = make_folder(run, run->back);
		if (result == 0)
			result = execute(
				run,
				(char *[]){ "tar", "-C", run->back, "-xf", run->archive, NULL },
				seconds);
		if (result == 0)
			result = source_tree_check(&run->options->tree, run->back, run->error);
		bench_folder_remove(run->back);
		return result;
	default:
		if (!run->figures->has_borg)
			return 0;
		snprintf(name, sizeof(name), "%s::turn-%u", run->repository, turn);
		return run_borg(run, "create", name, run->tree, seconds);
	}
}

/* ---- a turn ---- */

static int note_used(struct run *run)
{
	const struct osd_client_options options = { 0 };
	const struct osd_client_address root = { 0 };
	struct osd_client_error failure;
	struct osd_client *client;
	int result = osd_client_connect(run->url, &options, &client, run->error);

	if (result < 0)
		return result;
	result = osd_client_get_number(client, root, OSD_ROOT_INFORMATION, OSD_ROOT_USED_CAPACITY,
				       &run->figures->used_bytes, &failure);
	if (result < 0)
		*run->error = failure.sentence;
	osd_client_disconnect(client);
	return result;
}

/* A fresh unit in a fresh file. */
static int start_unit(struct run *run)
{
	char settings[64] = "";
	const struct bench_server_options options = { .folder = run->image,
						      .muninnd = run->muninnd,
						      .size = run->options->size_bytes,
						      .settings = settings,
						      .units = 1 };
	int result = make_folder(run, run->image);

	if (run->options->index)
		snprintf(settings, sizeof(settings), "index = %s\n", run->options->index);
	if (result == 0)
		result = bench_server_start(&run->server, &options, run->error);
	if (result == 0)
		bench_server_url(&run->server, 1, run->url);
	return result;
}

/* The two sides of each task follow each other; who is first changes from turn to turn. */
static int do_turn(struct run *run, uint32_t turn)
{
	struct import_bench_figures *figures = run->figures;
	int result = start_unit(run);

	for (int task = 0; task < IMPORT_TASKS && result == 0; task++) {
		if (turn % 2)
			result = run_others(run, task, turn, &figures->others[task][turn]);
		if (result == 0)
			result = run_ours(run, task, &figures->ours[task][turn]);
		if (result == 0 && turn % 2 == 0)
			result = run_others(run, task, turn, &figures->others[task][turn]);
		if (result == 0 && task == IMPORT_WHOLE && turn == 0)
			result = note_used(run);
	}
	bench_server_stop(&run->server);
	bench_folder_remove(run->image);
	unlink(run->archive);
	return result;
}

/* ---- all ---- */

/* The first archive of borg; those of the turns find nothing changed. */
static int prepare_borg(struct run *run)
{
	struct error_text nothing;
	char name[PATH_BYTES + 16];
	double seconds;
	int result;

	run->figures->has_borg =
		bench_process_run((char *[]){ (char *)run->options->borg, "--version", NULL },
				  &(struct bench_process_options){ .log = run->log },
				  &nothing) == 0;
	if (!run->figures->has_borg)
		return 0;
	snprintf(run->borg_base, sizeof(run->borg_base), "BORG_BASE_DIR=%s", run->folder);
	result = run_borg(run, "init", "--encryption=none", run->repository, &seconds);
	snprintf(name, sizeof(name), "%s::first", run->repository);
	return result == 0 ? run_borg(run, "create", name, run->tree, &seconds) : result;
}

static int prepare(struct run *run)
{
	int result = bench_folder_make(run->options->folder, run->folder, sizeof(run->folder),
				       run->error);

	if (result < 0)
		return result;
	snprintf(run->tree, sizeof(run->tree), "%s/tree", run->folder);
	snprintf(run->image, sizeof(run->image), "%s/unit", run->folder);
	snprintf(run->archive, sizeof(run->archive), "%s/tree.tar", run->folder);
	snprintf(run->back, sizeof(run->back), "%s/back", run->folder);
	snprintf(run->repository, sizeof(run->repository), "%s/borg", run->folder);
	snprintf(run->log, sizeof(run->log), "%s/log", run->folder);
	snprintf(run->muninnd, sizeof(run->muninnd), "%s/muninnd", run->options->programs);
	snprintf(run->muninnctl, sizeof(run->muninnctl), "%s/muninnctl", run->options->programs);
	result = make_folder(run, run->tree);
	if (result == 0)
		result = source_tree_make(&run->options->tree, run->tree, &run->figures->tree_bytes,
					  run->error);
	return result == 0 ? prepare_borg(run) : result;
}

int import_bench_measure(const struct import_bench_options *options, const volatile int *stop,
			 struct import_bench_figures *figures, struct error_text *error)
{
	struct run run = { .options = options, .figures = figures, .stop = stop, .error = error };
	int result;

	*figures = (struct import_bench_figures){ 0 };
	result = prepare(&run);
	for (uint32_t turn = 0; turn < options->turns && result == 0; turn++)
		result = do_turn(&run, turn);
	bench_folder_remove(run.folder);
	return result;
}
