/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Runs fio(1) and reads its JSON. */
#include "bench/fio.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>
#include <sys/wait.h>

#include "bench/process.h"

enum { ARGUMENTS_MAX = 20, ARGUMENT_BYTES = 512 };

/* What fio is told; the same as the NAND's file back end does for itself. */
struct command {
	char text[ARGUMENTS_MAX][ARGUMENT_BYTES];
	char *argv[ARGUMENTS_MAX + 1];
};

static void make_command(const struct bench_fio *fio, struct command *command)
{
	int count = 0;

	memset(command, 0, sizeof(*command));
#define ADD(...) snprintf(command->text[count++], ARGUMENT_BYTES, __VA_ARGS__)
	ADD("fio");
	ADD("--name=muninn");
	ADD("--filename=%s", fio->path);
	ADD("--offset=%llu", (unsigned long long)fio->offset);
	ADD("--size=%llu", (unsigned long long)fio->bytes);
	ADD("--bs=%u", fio->block_bytes);
	ADD("--iodepth=%u", fio->depth);
	ADD("--ioengine=io_uring");
	ADD("--direct=1");
	ADD("--fixedbufs=1");
	ADD("--registerfiles=1");
	ADD("--thread=1");
	ADD("--output-format=json");
	if (fio->write) {
		ADD("--rw=write");
		ADD("--overwrite=1");
	} else {
		ADD("--rw=randread");
		ADD("--norandommap=1");
		ADD("--time_based=1");
		ADD("--runtime=%.0fms", fio->seconds * 1000);
		ADD("--readonly");
	}
#undef ADD
	for (int i = 0; i < count; i++)
		command->argv[i] = command->text[i];
}

static int read_results(json_t *object, bool write, double *operations, double *bytes)
{
	json_t *job = json_array_get(json_object_get(object, "jobs"), 0);
	json_t *direction = json_object_get(job, write ? "write" : "read");
	json_t *iops = json_object_get(direction, "iops");
	json_t *bandwidth = json_object_get(direction, "bw_bytes");

	if (!json_is_number(iops) || !json_is_number(bandwidth) ||
	    json_integer_value(json_object_get(job, "error")) != 0)
		return -EIO;
	*operations = json_number_value(iops);
	*bytes = json_number_value(bandwidth);
	return *operations > 0 ? 0 : -EIO;
}

int bench_run_fio(const struct bench_fio *fio, double *operations, double *bytes,
		  struct error_text *error)
{
	struct command command;
	struct bench_process process;
	json_error_t parse_error;
	json_t *object;
	int status, result;

	if (strpbrk(fio->path, ":\\") || strlen(fio->path) > ARGUMENT_BYTES - 16)
		return error_set(error, -EINVAL,
				 "%s: fio takes no name with ':' or '\\', nor one so long",
				 fio->path);
	make_command(fio, &command);
	result = bench_process_start(&process, command.argv, NULL, error);
	if (result < 0)
		return result;
	object = json_loadf(process.output, 0, &parse_error);
	status = bench_process_wait(&process);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127) {
		json_decref(object);
		return error_set(error, -ENOENT,
				 "fio is not installed: scripts/bootstrap bench does that");
	}
	result = WIFEXITED(status) && WEXITSTATUS(status) == 0 && object
			 ? read_results(object, fio->write, operations, bytes)
			 : -EIO;
	json_decref(object);
	return result < 0 ? error_set(error, result, "fio failed on %s; its messages are above",
				      fio->path)
			  : 0;
}
