/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* `muninn-bench hold`: the scene, the thread that reads, and what is measured of each command. */
#include "bench/hold_bench.h"

#include <errno.h>
#include <jansson.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/bytes.h"
#include "engine/options.h"
#include "nand/nand.h"
#include "wire/vendor.h"

/* The commands' nexus, which subscribes, and that of the threads beside. */
enum { NEXUS = 1, NEXUS_BESIDE };
/* Of one command when the scene is made. */
#define PART_BYTES  (UINT64_C(1) << 20)
#define CREATE_PART 1024u
/* Of a command beside. */
#define BESIDE_BYTES 4096u
/* As a served device has (daemon/module/device.c). */
#define SEALING_THREADS 4

struct hold_options hold_defaults(void)
{
	return (struct hold_options){ .mib = 256,
				      .members = 65535,
				      .modifications = 65536,
				      .records_max = HOLD_RECORDS_MAX };
}

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* ---- commands ---- */

/* Executes with the scene's answer buffer. */
static void run(struct hold_scene *scene, struct hold_call *call, struct osd_command *command)
{
	uint8_t cdb[OSD_CDB_BYTES_MAX];
	uint64_t in = call->in_length;

	if (call->cdb.retrieved.length)
		in = call->cdb.retrieved.offset + call->cdb.retrieved.length;
	*command = (struct osd_command){ .cdb = cdb,
					 .data_out = call->data ? call->data : call->out,
					 .data_out_length = call->data ? call->cdb.length
								       : call->out_length,
					 .data_in = scene->answer,
					 .data_in_capacity = in,
					 .nexus = NEXUS };
	if (osd_cdb_encode(&call->cdb, cdb, &command->cdb_length) != 0)
		abort(); /* none of these can't be expressed */
	osd_execute(scene->device, command);
}

/* 0, or -EIO with what the command said. */
static int check(const struct hold_call *call, const struct osd_command *command,
		 struct error_text *error)
{
	struct osd_sense sense = { 0 };

	if (command->status == SCSI_STATUS_GOOD)
		return 0;
	osd_sense_decode(command->sense, command->sense_length, &sense);
	if (sense.key == SENSE_RECOVERED_ERROR)
		return 0;
	return error_set(error, -EIO, "%s: status %02x, %s, field %u",
			 osd_action_name(call->cdb.action), command->status,
			 osd_sense_code_name(sense.code), sense.has_field ? sense.field : 0);
}

int hold_execute(struct hold_scene *scene, struct hold_call *call, struct error_text *error)
{
	struct osd_command command;

	run(scene, call, &command);
	free(call->out);
	return check(call, &command, error);
}

/* ---- the scene ---- */

static uint64_t read_clock(void *context)
{
	return ((struct hold_scene *)context)->now_ms;
}

/* What comes is of another moment. */
static void step_clock(struct hold_scene *scene)
{
	scene->now_ms += 2000;
}

static int create(struct hold_scene *scene, uint16_t action, uint64_t object,
		  struct error_text *error)
{
	struct hold_call call;

	hold_call_begin(&call, action, object);
	return hold_execute(scene, &call, error);
}

/* A part at a time. */
static int write_object(struct hold_scene *scene, uint64_t object, uint64_t bytes,
			struct error_text *error)
{
	int result = 0;

	for (uint64_t offset = 0; result == 0 && offset < bytes; offset += PART_BYTES) {
		struct hold_call call;

		hold_call_begin(&call, OSD_WRITE, object);
		call.cdb.address = offset;
		call.cdb.length = min_u64(PART_BYTES, bytes - offset);
		call.data = scene->data + offset;
		result = hold_execute(scene, &call, error);
	}
	return result;
}

static int modify_often(struct hold_scene *scene, struct error_text *error)
{
	int result = 0;

	for (uint32_t n = 0; result == 0 && n < scene->options->modifications + 1; n++)
		result = write_object(scene, HOLD_MODIFIED, 16, error);
	return result;
}

/* Objects that are members of the collection, and so many of them of the other one. */
static int make_members(struct hold_scene *scene, struct error_text *error)
{
	uint32_t left = scene->options->members, part = OSD_WHOLE_MEMBERS_MAX;
	uint64_t next = HOLD_MEMBER;
	uint8_t collection[8], list[256];
	int result = create(scene, OSD_CREATE, next - 1, error);

	while (result == 0 && left > 0) {
		uint32_t count = (uint32_t)min_u64(left, CREATE_PART);
		struct osd_list_writer writer;
		struct hold_call call;

		hold_call_begin(&call, OSD_CREATE, 0);
		call.cdb.objects = (uint16_t)count;
		osd_list_begin(&writer, OSD_2, OSD_LIST_TO_SET, list, sizeof(list));
		put_be64(collection, HOLD_COLLECTION);
		osd_list_add_value(&writer, OSD_USER_OBJECT_COLLECTIONS, 1, collection, 8);
		put_be64(collection, HOLD_PART);
		if (part > 0)
			osd_list_add_value(&writer, OSD_USER_OBJECT_COLLECTIONS, 2, collection, 8);
		part -= (uint32_t)min_u64(part, count);
		call.cdb.set_data.length = (uint32_t)writer.length;
		call.out = malloc(writer.length);
		memcpy(call.out, list, writer.length);
		call.out_length = writer.length;
		result = hold_execute(scene, &call, error);
		next += count;
		left -= count;
	}
	return result;
}

static int subscribe(struct hold_scene *scene, struct error_text *error)
{
	struct osd_item_writer writer;
	struct hold_call call;

	hold_call_begin(&call, OSD_EXECUTE, 0);
	call.cdb.partition = 0;
	call.out = malloc(64);
	osd_items_begin(&writer, call.out, 64);
	osd_item_add_number(&writer, OSD_ITEM_FEATURES, OSD_FEATURES_ALL);
	call.out_length = writer.length;
	call.cdb.address = osd_execute_address(OSD_FUNCTION_SUBSCRIBE, (uint32_t)writer.length);
	call.cdb.length = call.in_length = 1024;
	return hold_execute(scene, &call, error);
}

static int make_objects(struct hold_scene *scene, struct error_text *error)
{
	static const uint64_t objects[] = { HOLD_READ,     HOLD_LARGE,   HOLD_MODIFIED, HOLD_OLD,
					    HOLD_APPENDED, HOLD_WRITTEN, HOLD_FREE };
	struct engine_statistics statistics;
	struct hold_call call;
	int result = create(scene, OSD_CREATE_PARTITION, 0, error);

	for (size_t n = 0; result == 0 && n < sizeof(objects) / sizeof(objects[0]); n++)
		result = create(scene, OSD_CREATE, objects[n], error);
	if (result == 0)
		result = create(scene, OSD_CREATE_COLLECTION, HOLD_COLLECTION, error);
	if (result == 0)
		result = create(scene, OSD_CREATE_COLLECTION, HOLD_PART, error);
	if (result == 0)
		result = create(scene, OSD_CREATE_USER_TRACKING_COLLECTION, HOLD_TRACKING, error);
	if (result == 0)
		result = subscribe(scene, error);
	step_clock(scene);
	if (result == 0)
		result = write_object(scene, HOLD_READ, BESIDE_BYTES, error);
	if (result == 0)
		result = write_object(scene, HOLD_OLD, scene->object_bytes, error);
	engine_read_statistics(scene->engine, &statistics);
	scene->sequence = statistics.committed_sequence;
	step_clock(scene);
	if (result == 0)
		result = write_object(scene, HOLD_OLD, scene->object_bytes, error);
	if (result == 0)
		result = write_object(scene, HOLD_LARGE, scene->object_bytes, error);
	if (result == 0)
		result = modify_often(scene, error);
	if (result == 0)
		result = make_members(scene, error);
	hold_call_begin(&call, OSD_REMOVE, HOLD_FREE);
	return result == 0 ? hold_execute(scene, &call, error) : result;
}

static int open_scene(struct hold_scene *scene, struct error_text *error)
{
	static const uint8_t uuid[16] = { 0x4d };
	struct nand_geometry geometry;
	struct engine_options options = { .clock_ms = read_clock,
					  .clock_context = scene,
					  .sealing_threads = SEALING_THREADS,
					  .merging_thread = true };
	uint64_t nvram_bytes;
	int result;

	scene->now_ms = UINT64_C(1700000000000);
	scene->object_bytes = (uint64_t)scene->options->mib << 20;
	scene->answer_bytes = max_u64(scene->object_bytes, UINT64_C(8) << 20);
	scene->data = malloc(scene->answer_bytes);
	scene->answer = malloc(scene->answer_bytes + PART_BYTES);
	if (!scene->data || !scene->answer)
		return error_set(error, -ENOMEM, "out of memory");
	memset(scene->data, 'd', scene->answer_bytes);
	/* Everything is there twice, with its history. */
	geometry = nand_geometry_default(16 * scene->answer_bytes + (UINT64_C(512) << 20));
	result = engine_nvram_bytes(&geometry, &options, &nvram_bytes, error);
	if (result == 0)
		result = nand_open_memory(&geometry, nvram_bytes, &scene->nand, error);
	if (result == 0)
		result = engine_format(scene->nand, &options, error);
	if (result == 0)
		result = engine_open(scene->nand, &options, &scene->engine, error);
	if (result == 0)
		result = osd_device_create(scene->engine, uuid, NULL, &scene->device);
	return result == 0 ? make_objects(scene, error) : result;
}

static void close_scene(struct hold_scene *scene)
{
	if (scene->device)
		osd_device_destroy(scene->device);
	if (scene->engine)
		engine_close(scene->engine);
	if (scene->nand)
		nand_close(scene->nand);
	free(scene->data);
	free(scene->answer);
}

/* ---- the threads that go on beside ---- */

/* Executes one command of 4 KiB over and over. */
struct beside {
	struct hold_scene *scene;
	uint16_t action;
	uint64_t object;
	pthread_t thread;
	bool stop;           /* atomic */
	uint64_t count;      /* of commands; atomic */
	uint64_t longest_ns; /* atomic; 0 begins again */
};

static void *work_beside(void *argument)
{
	struct beside *beside = argument;
	struct osd_cdb decoded = { .version = OSD_2,
				   .action = beside->action,
				   .format = OSD_ATTRIBUTES_LIST,
				   .partition = HOLD_PARTITION,
				   .object = beside->object,
				   .length = BESIDE_BYTES };
	uint8_t cdb[OSD_CDB_BYTES_MAX], data[BESIDE_BYTES] = { 0 };
	bool writes = beside->action == OSD_WRITE;
	size_t length;

	if (osd_cdb_encode(&decoded, cdb, &length) != 0)
		abort();
	while (!__atomic_load_n(&beside->stop, __ATOMIC_RELAXED)) {
		struct osd_command command = { .cdb = cdb,
					       .cdb_length = length,
					       .data_out = data,
					       .data_out_length = writes ? sizeof(data) : 0,
					       .data_in = data,
					       .data_in_capacity = writes ? 0 : sizeof(data),
					       .nexus = NEXUS_BESIDE };
		double begun = now_s();
		uint64_t ns;

		osd_execute(beside->scene->device, &command);
		ns = (uint64_t)((now_s() - begun) * 1e9);
		if (ns > __atomic_load_n(&beside->longest_ns, __ATOMIC_RELAXED))
			__atomic_store_n(&beside->longest_ns, ns, __ATOMIC_RELAXED);
		__atomic_fetch_add(&beside->count, 1, __ATOMIC_RELAXED);
		/* Many READs, few WRITEs. */
		if (writes)
			nanosleep(&(struct timespec){ .tv_nsec = 500000 }, NULL);
	}
	return NULL;
}

/* So that one is under way, and the last command's has ended. */
static void await(struct beside *beside)
{
	uint64_t count = __atomic_load_n(&beside->count, __ATOMIC_RELAXED);

	while (__atomic_load_n(&beside->count, __ATOMIC_RELAXED) < count + 2)
		sched_yield();
}

static double longest_ms(const struct beside *beside)
{
	return (double)__atomic_load_n(&beside->longest_ns, __ATOMIC_RELAXED) / 1e6;
}

/* ---- measuring ---- */

struct measured {
	double seconds, read_ms, write_ms;
	uint64_t records;
};

static void print(const struct hold_command *command, const struct measured *measured, FILE *json,
		  FILE *text)
{
	json_t *object = json_pack("{s:s, s:f, s:f, s:f, s:I}", "command", command->name, "seconds",
				   measured->seconds, "longest_read_ms", measured->read_ms,
				   "longest_write_ms", measured->write_ms, "records_held",
				   (json_int_t)measured->records);

	json_dumpf(object, json, JSON_REAL_PRECISION(6) | JSON_COMPACT);
	fputc('\n', json);
	json_decref(object);
	fprintf(text, "%-36s %10.3f %14.1f %14.1f %10llu\n", command->name, measured->seconds,
		measured->read_ms, measured->write_ms, (unsigned long long)measured->records);
}

static int measure(struct hold_scene *scene, struct beside beside[2],
		   const struct hold_command *command, struct measured *measured,
		   struct error_text *error)
{
	struct osd_command executed;
	struct hold_call call;
	double begun;
	int result;

	command->fill(scene, &call);
	step_clock(scene);
	for (int n = 0; n < 2; n++) {
		await(&beside[n]);
		__atomic_store_n(&beside[n].longest_ns, 0, __ATOMIC_RELAXED);
	}
	engine_take_longest_turn(scene->engine);
	begun = now_s();
	run(scene, &call, &executed);
	measured->seconds = now_s() - begun;
	for (int n = 0; n < 2; n++)
		await(&beside[n]);
	measured->records = engine_take_longest_turn(scene->engine);
	measured->read_ms = longest_ms(&beside[0]);
	measured->write_ms = longest_ms(&beside[1]);
	result = check(&call, &executed, error);
	free(call.out);
	return result;
}

static int run_commands(struct hold_scene *scene, struct beside beside[2], FILE *json, FILE *text,
			struct error_text *error)
{
	const struct hold_options *options = scene->options;
	uint32_t missed = 0;
	int result = 0;

	fprintf(text, "%-36s %10s %14s %14s %10s\n", "command", "seconds", "longest READ",
		"longest WRITE", "records");
	fprintf(text, "%-36s %10s %14s %14s %10s\n", "", "", "ms", "ms", "in a row");
	for (size_t n = 0; result == 0 && n < hold_command_count; n++) {
		const struct hold_command *command = &hold_commands[n];
		struct measured measured;

		if (options->only && !strstr(command->name, options->only))
			continue;
		result = measure(scene, beside, command, &measured, error);
		if (result == 0)
			print(command, &measured, json, text);
		if (result == 0 && measured.records > options->records_max) {
			fprintf(text, "%s holds others up for more than %u records\n",
				command->name, options->records_max);
			missed++;
		}
	}
	if (result == 0 && missed > 0)
		result = error_set(error, -ERANGE, "commands that missed the goal: %u", missed);
	return result;
}

static int run_beside(struct hold_scene *scene, FILE *json, FILE *text, struct error_text *error)
{
	struct beside beside[2] = {
		{ .scene = scene, .action = OSD_READ, .object = HOLD_READ },
		{ .scene = scene, .action = OSD_WRITE, .object = HOLD_WRITTEN },
	};
	int started = 0, result = 0;

	while (started < 2 &&
	       pthread_create(&beside[started].thread, NULL, work_beside, &beside[started]) == 0)
		started++;
	if (started < 2)
		result = error_set(error, -EAGAIN, "can't start a thread");
	if (result == 0)
		result = run_commands(scene, beside, json, text, error);
	while (started-- > 0) {
		__atomic_store_n(&beside[started].stop, true, __ATOMIC_RELAXED);
		pthread_join(beside[started].thread, NULL);
	}
	return result;
}

int hold_bench_run(const struct hold_options *options, FILE *json, FILE *text,
		   struct error_text *error)
{
	struct hold_scene scene = { .options = options };
	int result = open_scene(&scene, error);

	if (result == 0)
		result = run_beside(&scene, json, text, error);
	close_scene(&scene);
	return result;
}
