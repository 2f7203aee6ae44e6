/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* muninn-bench: measures the engine by itself, and served units. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bench/disk_history.h"
#include "bench/history_bench.h"
#include "bench/hold_bench.h"
#include "bench/import_bench.h"
#include "bench/iscsi_bench.h"
#include "bench/list_bench.h"
#include "bench/merge_model_bench.h"
#include "bench/nand_bench.h"
#include "bench/paper.h"
#include "bench/peers_bench.h"
#include "bench/report.h"
#include "bench/ribbon_bench.h"
#include "bench/threads_bench.h"

/* Exit codes. */
enum { DONE = 0, FAILED = 1, WRONG_USE = 2 };

static const char usage[] =
	"muninn-bench run [OPTION...]     phases of operations on a fresh store\n"
	"muninn-bench paper [OPTION...]   the experiments of the paper\n"
	"muninn-bench nand [OPTION...]    the emulated NAND beside memcpy and fio\n"
	"muninn-bench list [OPTION...]    what listing objects and members costs\n"
	"muninn-bench hold [OPTION...]    how long each command holds up the others\n"
	"muninn-bench threads [OPTION...] what the engine does for threads that call it at once\n"
	"muninn-bench history [OPTION...] what snapshots, rollbacks and old versions cost\n"
	"muninn-bench disk-history [OPTION...]  what the history of a disk costs\n"
	"muninn-bench iscsi [OPTION...]   a served unit beside stock tgtd and fio\n"
	"muninn-bench import [OPTION...]  directory trees, beside tar and borg\n"
	"muninn-bench peers [OPTION...]   the record store beside RocksDB, LevelDB and LMDB\n"
	"muninn-bench ribbon [OPTION...]  the parts of the ribbon index by themselves\n"
	"muninn-bench merging [OPTION...] ways of merging beside the engine's, simulated\n"
	"muninn-bench COMMAND --help      more\n";

static int fail(const char *command, const struct error_text *error, int code)
{
	fprintf(stderr, "muninn-bench %s: %s\n", command, error->text);
	if (code == WRONG_USE)
		fprintf(stderr, "`muninn-bench %s --help` lists the options\n", command);
	return code;
}

static int command_run(int argc, char **argv)
{
	struct bench_options options;
	struct error_text error;
	int result = bench_options_parse(&options, argc, argv, &error);

	if (result > 0) {
		fputs(bench_run_help, stdout);
		return DONE;
	}
	if (result)
		return fail("run", &error, WRONG_USE);
	if (bench_run(&options, stdout, stderr, &error))
		return fail("run", &error, FAILED);
	return DONE;
}

static int command_paper(int argc, char **argv)
{
	struct paper_options options;
	struct error_text error;
	int result = paper_options_parse(&options, argc, argv, &error);

	if (result > 0) {
		fputs(bench_paper_help, stdout);
		return DONE;
	}
	if (result)
		return fail("paper", &error, WRONG_USE);
	if (paper_run(&options, stdout, stderr, &error))
		return fail("paper", &error, FAILED);
	return DONE;
}

static int command(int argc, char **argv)
{
	if (argc >= 2 && strcmp(argv[1], "run") == 0)
		return command_run(argc - 1, argv + 1);
	if (argc >= 2 && strcmp(argv[1], "paper") == 0)
		return command_paper(argc - 1, argv + 1);
	if (argc >= 2 && strcmp(argv[1], "nand") == 0)
		return nand_bench_main(argc - 1, argv + 1, stdout, stderr);
	if (argc >= 2 && strcmp(argv[1], "list") == 0)
		return list_bench_main(argc - 1, argv + 1, stdout, stderr);
	if (argc >= 2 && strcmp(argv[1], "hold") == 0)
		return hold_bench_main(argc - 1, argv + 1, stdout, stderr);
	if (argc >= 2 && strcmp(argv[1], "threads") == 0)
		return threads_bench_main(argc - 1, argv + 1, stdout, stderr);
	if (argc >= 2 && strcmp(argv[1], "history") == 0)
		return history_bench_main(argc - 1, argv + 1, stdout, stderr);
	if (argc >= 2 && strcmp(argv[1], "disk-history") == 0)
		return disk_history_main(argc - 1, argv + 1, stdout, stderr);
	if (argc >= 2 && strcmp(argv[1], "iscsi") == 0)
		return iscsi_bench_main(argc - 1, argv + 1, stdout, stderr);
	if (argc >= 2 && strcmp(argv[1], "import") == 0)
		return import_bench_main(argc - 1, argv + 1, stdout, stderr);
	if (argc >= 2 && strcmp(argv[1], "peers") == 0)
		return peers_bench_main(argc - 1, argv + 1, stdout, stderr);
	if (argc >= 2 && strcmp(argv[1], "ribbon") == 0)
		return ribbon_bench_main(argc - 1, argv + 1, stdout, stderr);
	if (argc >= 2 && strcmp(argv[1], "merging") == 0)
		return merge_model_bench_main(argc - 1, argv + 1, stdout, stderr);
	if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0)) {
		fputs(usage, stdout);
		return DONE;
	}
	if (argc >= 2)
		fprintf(stderr, "muninn-bench: %s: no such command\n", argv[1]);
	fputs(usage, stderr);
	return WRONG_USE;
}

int main(int argc, char **argv)
{
	int code = command(argc, argv);

	/* Figures that nobody gets are none. */
	if (code != DONE || (fflush(stdout) == 0 && !ferror(stdout)))
		return code;
	fprintf(stderr, "muninn-bench: the output can't be written: %s\n", strerror(errno));
	return FAILED;
}
