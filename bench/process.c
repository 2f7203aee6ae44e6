/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Starts and ends programs; reads what the kernel has counted for a process. */
#include "bench/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_NO_PROGRAM = 127 };

/* In the child. Does not return. */
static void become(char *const argv[], const struct bench_process_options *options, int output)
{
	int log = options->log ? open(options->log, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(output, STDOUT_FILENO);
	if (log >= 0)
		dup2(log, STDERR_FILENO);
	if (options->variable)
		setenv(options->variable, options->value, 1);
	if (!options->folder || chdir(options->folder) == 0)
		execvp(argv[0], argv);
	fprintf(stderr, "%s: %s\n", argv[0], strerror(errno));
	_exit(EXIT_NO_PROGRAM);
}

int bench_process_start(struct bench_process *process, char *const argv[],
			const struct bench_process_options *options, struct error_text *error)
{
	static const struct bench_process_options none;
	int ends[2], result;

	*process = (struct bench_process){ 0 };
	if (pipe2(ends, O_CLOEXEC) < 0)
		return error_set(error, -errno, "no pipe for %s: %s", argv[0], strerror(errno));
	fflush(NULL);
	process->pid = fork();
	if (process->pid == 0)
		become(argv, options ? options : &none, ends[1]);
	result = -errno;
	close(ends[1]);
	if (process->pid < 0) {
		process->pid = 0;
		close(ends[0]);
		return error_set(error, result, "cannot start %s: %s", argv[0], strerror(-result));
	}
	process->output = fdopen(ends[0], "r");
	if (process->output)
		return 0;
	close(ends[0]);
	bench_process_end(process, SIGKILL);
	return error_set(error, -ENOMEM, "cannot start %s: out of memory", argv[0]);
}

int bench_process_wait(struct bench_process *process)
{
	char rest[256];
	int status = 0;

	/* To its end, so that the program is not killed for what it still has to say. */
	while (process->output && fgets(rest, sizeof(rest), process->output))
		;
	if (process->output)
		fclose(process->output);
	while (waitpid(process->pid, &status, 0) < 0 && errno == EINTR)
		;
	*process = (struct bench_process){ 0 };
	return status;
}

void bench_process_end(struct bench_process *process, int signal)
{
	if (!process->pid)
		return;
	kill(process->pid, signal);
	bench_process_wait(process);
}

int bench_process_run(char *const argv[], const struct bench_process_options *options,
		      struct error_text *error)
{
	struct bench_process process;
	char said[256] = "", line[256];
	int result = bench_process_start(&process, argv, options, error), status;

	if (result < 0)
		return result;
	while (fgets(line, sizeof(line), process.output))
		memcpy(said, line, sizeof(said));
	status = bench_process_wait(&process);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	said[strcspn(said, "\n")] = '\0';
	if (!said[0] && options && options->log)
		bench_last_line(options->log, said, sizeof(said));
	return error_set(error, -EIO, "%s failed: %s", argv[0], said);
}

void bench_last_line(const char *path, char *line, size_t bytes)
{
	FILE *file = fopen(path, "r");
	char read[512];

	line[0] = '\0';
	while (file && fgets(read, sizeof(read), file)) {
		read[strcspn(read, "\n")] = '\0';
		if (read[0])
			snprintf(line, bytes, "%s", read);
	}
	if (file)
		fclose(file);
}

pid_t bench_process_child(pid_t pid)
{
	char path[64];
	FILE *file;
	int child = 0;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
	file = fopen(path, "r");
	if (!file)
		return 0;
	if (fscanf(file, "%d", &child) != 1)
		child = 0;
	fclose(file);
	return child;
}

double bench_process_seconds(pid_t pid)
{
	struct timespec used;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &used) != 0)
		return 0;
	return (double)used.tv_sec + (double)used.tv_nsec * 1e-9;
}

int bench_process_io(pid_t pid, struct bench_process_io *io)
{
	char path[64], line[128];
	unsigned long long value;
	unsigned found = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/io", (int)pid);
	file = fopen(path, "r");
	if (!file)
		return -errno;
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "read_bytes: %llu", &value) == 1) {
			io->read_bytes = value;
			found++;
		} else if (sscanf(line, "write_bytes: %llu", &value) == 1) {
			io->write_bytes = value;
			found++;
		}
	}
	fclose(file);
	return found == 2 ? 0 : -ENODATA;
}

int bench_process_folder(char *folder, size_t bytes, struct error_text *error)
{
	ssize_t length = readlink("/proc/self/exe", folder, bytes);

	if (length < 0)
		return error_set(error, -errno, "/proc/self/exe: %s", strerror(errno));
	if ((size_t)length >= bytes)
		return error_set(error, -ENAMETOOLONG, "/proc/self/exe: too long a name");
	folder[length] = '\0';
	*strrchr(folder, '/') = '\0';
	return 0;
}

void bench_catch_interrupts(void (*interrupt)(int number))
{
	const struct sigaction action = { .sa_handler = interrupt };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}
