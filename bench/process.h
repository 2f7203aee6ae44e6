/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Programs that a benchmark starts, and ends by their process IDs; what a process costs. Where
 * Muninn's own programs are, and what interrupts a benchmark.
 */
#ifndef MUNINN_BENCH_PROCESS_H
#define MUNINN_BENCH_PROCESS_H

#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "common/error.h"

struct bench_process {
	pid_t pid;    /* 0: none */
	FILE *output; /* what it writes to stdout */
};

/* What a child gets of its own; all may be NULL: as this process. */
struct bench_process_options {
	const char *folder;           /* its working directory */
	const char *log;              /* where its stderr goes, absolute */
	const char *variable, *value; /* of its environment */
};

/*
 * Starts a program, found in PATH. It dies with this process. Exit code 127: no such program.
 * -errno with a sentence.
 */
int bench_process_start(struct bench_process *process, char *const argv[],
			const struct bench_process_options *options, struct error_text *error);

/* Reads the rest of its output, closes that and waits for its end; returns what waitpid says of it.
 */
int bench_process_wait(struct bench_process *process);

/* Sends the signal and waits, as long as the program takes. Nothing happens without a process. */
void bench_process_end(struct bench_process *process, int signal);

/* Runs a program to its end. -EIO with its last words when its exit code is not 0. */
int bench_process_run(char *const argv[], const struct bench_process_options *options,
		      struct error_text *error);

/* The last line of a file; "" if there is none. */
void bench_last_line(const char *path, char *line, size_t bytes);

/* The first child of a process; 0: it has none. */
pid_t bench_process_child(pid_t pid);

/* Processor time of all threads of a process, dead ones included. 0: there is no such process. */
double bench_process_seconds(pid_t pid);

/* Bytes that a process had the kernel read from and write to storage. -errno. */
struct bench_process_io {
	uint64_t read_bytes, write_bytes;
};
int bench_process_io(pid_t pid, struct bench_process_io *io);

/* The folder of the running program, where Muninn's other programs are. -errno with a sentence. */
int bench_process_folder(char *folder, size_t bytes, struct error_text *error);

/* An interrupted run goes on, so that it stops what it has started and removes its folder. */
void bench_catch_interrupts(void (*interrupt)(int number));

#endif
