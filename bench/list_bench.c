/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* `muninn-bench list`: fills a unit and measures what an entry of LIST costs. */
#include "bench/list_bench.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/bytes.h"
#include "engine/options.h"
#include "nand/nand.h"
#include "osd/osd.h"
#include "wire/vendor.h"
#include "wire/wire.h"

#define PARTITION UINT64_C(0x10000)
/* Objects come behind the collection, so that its ID is known before theirs. */
#define COLLECTION   UINT64_C(0x10000)
#define FIRST_OBJECT (COLLECTION + 1)

struct list_bench_options list_bench_defaults(void)
{
	return (struct list_bench_options){
		.objects = 1000000,
		.answer_bytes = 64 << 10,
		.steps = 20,
		.size_bytes = UINT64_C(4) << 30,
	};
}

/* ---- the unit ---- */

struct bench_unit {
	struct nand *nand;
	struct engine *engine;
	struct osd_device *device;
	uint8_t *answer;
};

static int open_engine(struct bench_unit *unit, const struct list_bench_options *options,
		       struct error_text *error)
{
	static const uint8_t uuid[16] = { 0x4c };
	struct engine_options engine_options = { .directory_cache_nodes = options->nodes };
	int result = engine_open(unit->nand, &engine_options, &unit->engine, error);

	if (result == 0)
		result = osd_device_create(unit->engine, uuid, NULL, &unit->device);
	return result;
}

static void close_engine(struct bench_unit *unit)
{
	if (unit->device)
		osd_device_destroy(unit->device);
	if (unit->engine)
		engine_close(unit->engine);
	unit->device = NULL;
	unit->engine = NULL;
}

static void unit_close(struct bench_unit *unit)
{
	close_engine(unit);
	if (unit->nand)
		nand_close(unit->nand);
	free(unit->answer);
}

static int unit_open(struct bench_unit *unit, const struct list_bench_options *options,
		     struct error_text *error)
{
	struct nand_geometry geometry = nand_geometry_default(options->size_bytes);
	struct engine_options engine_options = { 0 };
	uint64_t nvram_bytes;
	int result = engine_nvram_bytes(&geometry, &engine_options, &nvram_bytes, error);

	unit->answer = malloc(options->answer_bytes);
	if (!unit->answer)
		return error_set(error, -ENOMEM, "out of memory");
	if (result == 0)
		result = nand_open_memory(&geometry, nvram_bytes, &unit->nand, error);
	if (result == 0)
		result = engine_format(unit->nand, &engine_options, error);
	return result == 0 ? open_engine(unit, options, error) : result;
}

/* Executes a command with a set list or a get list as its Data-Out. */
static int execute(struct bench_unit *unit, struct osd_cdb *decoded,
		   const struct osd_list_writer *list, struct osd_command *command,
		   struct error_text *error)
{
	uint8_t cdb[OSD_CDB_BYTES_MAX];
	struct osd_sense sense = { 0 };
	size_t length;

	decoded->version = OSD_2;
	decoded->format = OSD_ATTRIBUTES_LIST;
	if (list && list->role == OSD_LIST_TO_SET)
		decoded->set_data.length = (uint32_t)list->length;
	else if (list)
		decoded->get_list.length = (uint32_t)list->length;
	if (osd_cdb_encode(decoded, cdb, &length) != 0)
		return error_set(error, -EINVAL, "%s: no CDB", osd_action_name(decoded->action));
	command->cdb = cdb;
	command->cdb_length = length;
	command->data_out = list ? list->data : NULL;
	command->data_out_length = list ? list->length : 0;
	osd_execute(unit->device, command);
	if (command->status == SCSI_STATUS_GOOD)
		return 0;
	osd_sense_decode(command->sense, command->sense_length, &sense);
	return error_set(error, -EIO, "%s: status %02x, %s", osd_action_name(decoded->action),
			 command->status, osd_sense_code_name(sense.code));
}

/* ---- filling ---- */

static int create_container(struct bench_unit *unit, uint16_t action, uint64_t object,
			    struct error_text *error)
{
	struct osd_cdb cdb = { .action = action, .partition = PARTITION, .object = object };
	struct osd_command command = { 0 };

	return execute(unit, &cdb, NULL, &command, error);
}

/*
 * Creates objects that become members with the same command, and begins again with an empty cache.
 */
static int fill(struct bench_unit *unit, const struct list_bench_options *options,
		struct error_text *error)
{
	uint8_t list_bytes[64], collection[8];
	struct osd_list_writer list;
	uint64_t left = options->objects;
	int result = create_container(unit, OSD_CREATE_PARTITION, 0, error);

	if (result == 0)
		result = create_container(unit, OSD_CREATE_COLLECTION, COLLECTION, error);
	put_be64(collection, COLLECTION);
	osd_list_begin(&list, OSD_2, OSD_LIST_TO_SET, list_bytes, sizeof(list_bytes));
	osd_list_add_value(&list, OSD_USER_OBJECT_COLLECTIONS, 1, collection, sizeof(collection));
	while (result == 0 && left > 0) {
		uint16_t count = (uint16_t)min_u64(left, OSD_CREATE_OBJECTS_MAX);
		struct osd_cdb cdb = { .action = OSD_CREATE,
				       .partition = PARTITION,
				       .objects = count };
		struct osd_command command = { 0 };

		result = execute(unit, &cdb, &list, &command, error);
		left -= count;
	}
	if (result != 0)
		return result;
	close_engine(unit);
	return open_engine(unit, options, error);
}

/* ---- listing ---- */

/* What is listed, and how far. */
struct walk {
	const char *name;
	uint16_t action;
	uint64_t object;
	bool attributes;
	bool changing;       /* between commands an object is added to the list and removed again */
	uint64_t next;       /* ID expected next */
	uint32_t identifier; /* list identifier of the command before */
	bool done;
	uint64_t resident_before; /* memory when it began */
};

/* A point of the curve. */
struct point {
	uint64_t entries, commands, page_reads;
	double seconds;
};

static uint64_t page_reads(const struct bench_unit *unit)
{
	struct nand_counters counters;
	uint64_t reads = 0;

	nand_read_counters(unit->nand, &counters);
	for (int cause = 0; cause < NAND_CAUSES; cause++)
		reads += counters.by_cause[cause].pages_read;
	return reads;
}

/* The processor time of the thread, which other load on the machine does not change. */
static double cpu_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Resident memory of the process, 0 = not known. */
static uint64_t resident_bytes(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	unsigned long long pages = 0;

	if (file && fscanf(file, "%*u %llu", &pages) != 1)
		pages = 0;
	if (file)
		fclose(file);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Checks the IDs of an answer against those that must come. */
static int check(struct walk *walk, const struct osd_list_head *head, const uint8_t *data,
		 size_t length, struct error_text *error)
{
	struct osd_listed_object object;
	size_t position = OSD_LIST_HEAD_BYTES;

	while (osd_listed_next(head, data, length, &position, &object) == 1) {
		if (object.id != walk->next)
			return error_set(error, -EBADMSG, "%s: ID %#llx where %#llx belongs",
					 walk->name, (unsigned long long)object.id,
					 (unsigned long long)walk->next);
		walk->next++;
	}
	if (head->continuation_id != 0 && head->continuation_id != walk->next)
		return error_set(error, -EBADMSG, "%s: goes on at %#llx, not %#llx", walk->name,
				 (unsigned long long)head->continuation_id,
				 (unsigned long long)walk->next);
	return 0;
}

/* One command, timed. */
static int list_once(struct bench_unit *unit, const struct list_bench_options *options,
		     struct walk *walk, struct point *point, struct error_text *error)
{
	uint8_t list_bytes[16];
	struct osd_list_writer list;
	/* From the start of a list the total is known, and nobody has to count. */
	bool start_of_list = walk->next == FIRST_OBJECT;
	struct osd_cdb cdb = { .action = walk->action,
			       .partition = PARTITION,
			       .object = walk->object,
			       .length = options->answer_bytes,
			       .address = start_of_list ? 0 : walk->next,
			       .list_identifier = walk->identifier,
			       .list_attributes = walk->attributes };
	struct osd_command command = { .data_in = unit->answer,
				       .data_in_capacity = options->answer_bytes };
	uint64_t first = walk->next, reads = page_reads(unit);
	double start = cpu_seconds();
	struct osd_list_head head;
	int result;

	osd_list_begin(&list, OSD_2, OSD_LIST_TO_GET, list_bytes, sizeof(list_bytes));
	osd_list_add_request(&list, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_LOGICAL_LENGTH);
	result = execute(unit, &cdb, walk->attributes ? &list : NULL, &command, error);
	point->seconds += cpu_seconds() - start;
	point->page_reads += page_reads(unit) - reads;
	if (result != 0)
		return result;
	osd_list_head_decode(OSD_2, unit->answer, command.data_in_length, &head);
	result = check(walk, &head, unit->answer, command.data_in_length, error);
	point->entries += walk->next - first;
	point->commands++;
	walk->identifier = head.identifier;
	walk->done = head.continuation_id == 0;
	if (result == 0 && !walk->done && walk->next == first)
		result = error_set(error, -EMSGSIZE, "--answer is too little for an entry");
	return result;
}

static void print(const struct walk *walk, const struct point *point, uint64_t offset,
		  const struct bench_unit *unit, FILE *json, FILE *text)
{
	double entries = (double)point->entries;
	int64_t growth = (int64_t)(resident_bytes() - walk->resident_before);
	struct engine_statistics statistics;
	json_t *object;

	engine_read_statistics(unit->engine, &statistics);
	object = json_pack("{s:s, s:I, s:I, s:I, s:f, s:f, s:I, s:I}", "list", walk->name, "offset",
			   (json_int_t)offset, "entries", (json_int_t)point->entries, "commands",
			   (json_int_t)point->commands, "cpu_ns_per_entry",
			   point->seconds * 1e9 / entries, "page_reads_per_entry",
			   (double)point->page_reads / entries, "resident_growth_bytes",
			   (json_int_t)growth, "cache_bytes_max",
			   (json_int_t)statistics.cache_bytes);
	json_dumpf(object, json, JSON_REAL_PRECISION(6) | JSON_COMPACT);
	fputc('\n', json);
	json_decref(object);
	fprintf(text, "%-24s %9llu %9llu %8llu %12.1f %12.5f %12lld\n", walk->name,
		(unsigned long long)offset, (unsigned long long)point->entries,
		(unsigned long long)point->commands, point->seconds * 1e9 / entries,
		(double)point->page_reads / entries, (long long)growth / 1024);
}

/* Makes an object behind all others, adds it as they are, and removes it. */
static int change_list(struct bench_unit *unit, const struct list_bench_options *options,
		       struct error_text *error)
{
	uint8_t list_bytes[64], collection[8];
	uint64_t object = FIRST_OBJECT + options->objects;
	struct osd_cdb create = { .action = OSD_CREATE, .partition = PARTITION, .object = object };
	struct osd_cdb removal = { .action = OSD_REMOVE, .partition = PARTITION, .object = object };
	struct osd_command command = { 0 };
	struct osd_list_writer list;
	int result;

	put_be64(collection, COLLECTION);
	osd_list_begin(&list, OSD_2, OSD_LIST_TO_SET, list_bytes, sizeof(list_bytes));
	osd_list_add_value(&list, OSD_USER_OBJECT_COLLECTIONS, 1, collection, sizeof(collection));
	result = execute(unit, &create, &list, &command, error);
	command = (struct osd_command){ 0 };
	return result == 0 ? execute(unit, &removal, NULL, &command, error) : result;
}

static int list_all(struct bench_unit *unit, const struct list_bench_options *options,
		    struct walk *walk, FILE *json, FILE *text, struct error_text *error)
{
	uint64_t step = (options->objects + options->steps - 1) / options->steps;
	uint64_t last = FIRST_OBJECT + options->objects;
	int result = 0;

	walk->resident_before = resident_bytes();
	while (result == 0 && !walk->done) {
		uint64_t first = walk->next;
		struct point point = { 0 };

		while (result == 0 && !walk->done && walk->next - first < step) {
			result = walk->changing ? change_list(unit, options, error) : 0;
			if (result == 0)
				result = list_once(unit, options, walk, &point, error);
		}
		if (result == 0)
			print(walk, &point, first - FIRST_OBJECT, unit, json, text);
	}
	if (result == 0 && walk->next != last)
		return error_set(error, -EBADMSG, "%s: ends before %#llx", walk->name,
				 (unsigned long long)last);
	return result;
}

int list_bench_run(const struct list_bench_options *options, FILE *json, FILE *text,
		   struct error_text *error)
{
	struct walk walks[] = {
		{ .name = "objects", .action = OSD_LIST },
		{ .name = "members", .action = OSD_LIST_COLLECTION },
		{ .name = "objects, changing", .action = OSD_LIST, .changing = true },
		{ .name = "members, changing", .action = OSD_LIST_COLLECTION, .changing = true },
		{ .name = "objects with attribute", .action = OSD_LIST, .attributes = true },
		{ .name = "members with attribute",
		  .action = OSD_LIST_COLLECTION,
		  .attributes = true },
	};
	const size_t ids_only = 4, all = sizeof(walks) / sizeof(walks[0]);
	struct bench_unit unit = { 0 };
	int result = unit_open(&unit, options, error);

	if (result == 0)
		result = fill(&unit, options, error);
	if (result == 0)
		fprintf(text, "%-24s %9s %9s %8s %12s %12s %12s\n", "list", "offset", "entries",
			"commands", "CPU ns/entry", "reads/entry", "KiB more");
	for (size_t i = 0; result == 0 && i < (options->ids_only ? ids_only : all); i++) {
		walks[i].next = FIRST_OBJECT;
		walks[i].object = walks[i].action == OSD_LIST_COLLECTION ? COLLECTION : 0;
		result = list_all(&unit, options, &walks[i], json, text, error);
	}
	unit_close(&unit);
	return result;
}
