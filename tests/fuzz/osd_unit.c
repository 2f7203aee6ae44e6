/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The logical unit that the osd target's commands go to. */
#include "tests/fuzz/osd_unit.h"
#include "tests/engine/by_address.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "common/bytes.h"
#include "common/log.h"
#include "engine/objects/objects.h"
#include "osd/functions.h"
#include "tests/fuzz/osd_damage.h"
#include "tests/fuzz/osd_flash.h"
#include "tests/fuzz/osd_sign.h"
#include "wire/wire.h"

/* Small pages and segments: little data goes a long way. */
static const struct nand_geometry geometry = {
	.page_bytes = 512,
	.spare_bytes = 64,
	.pages_per_block = 8,
	.blocks = 512,
	.channels = 1,
	.dies_per_channel = 1,
};
#define SMALL_BLOCKS 48

/* Little at a time, so that a collection of three members has something left for the next time. */
static const struct osd_portions portions = {
	.members = 1,
	.candidates = 1,
	.turn = 2,
	.search_work = 1 << 17,
	.pages = 2,
	.entries = 4,
	.objects = 8,
	.written = 64,
	.records = 64,
};

/* How long the retention of the scene LOCKED is: more than passes in a sequence. */
#define LOCK_MS UINT64_C(3600000)

/* Most that the digest looks at. */
#define DIGEST_IDS         64
#define DIGEST_DATA_BYTES  2048
#define DIGEST_VALUE_BYTES 4096
#define DIGEST_ATTRIBUTES  64
/*
 * The root's count of starts, which no initiator sees as it is stored; and that a genuine request
 * came, which may be noted whether it is executed or not.
 */
#define DIGEST_NOT_PAGE   0xBFFFFFFFU
#define DIGEST_NOT_STARTS 0x20U
#define DIGEST_NOT_NONCES 0x21U

static uint64_t read_clock(void *context)
{
	return ((const struct osd_fuzz_unit *)context)->now_ms;
}

static struct engine_options options_of(struct osd_fuzz_unit *unit)
{
	return (struct engine_options){
		.muninn.rows = 1,
		.muninn.segment_pages = 8,
		.muninn.record_bytes = 128,
		.onode_cache_entries = 1,
		.directory_cache_nodes = 1,
		.version_cache_entries = 1,
		.clock_ms = read_clock,
		.clock_context = unit,
	};
}

static void must(int result, const struct error_text *error, const char *what)
{
	if (result == 0)
		return;
	fprintf(stderr, "%s: %s (%d)\n", what, error->text, result);
	abort();
}

/* There are tasks with odd tags, of whoever asks. */
static uint32_t choose_tasks(void *context, const struct osd_task_choice *choice, bool abort,
			     osd_task_found *found, void *found_context)
{
	(void)context;
	(void)abort;
	if (choice->one && choice->tag % 2 == 0)
		return 0;
	if (found && choice->every_nexus)
		found(found_context, 3 - choice->nexus);
	if (found)
		found(found_context, choice->nexus);
	return 1;
}

static void open_target(struct osd_fuzz_unit *unit)
{
	static const struct osd_task_set tasks = { .choose = choose_tasks };
	struct engine_options options = options_of(unit);
	struct osd_options osd;
	struct error_text error = { "" };

	must(engine_open(unit->nand, &options, &unit->engine, &error), &error, "engine_open");
	osd_keys_options(&osd);
	must(osd_device_create(unit->engine, osd_keys_uuid, &osd, &unit->device), &error,
	     "osd_device_create");
	unit->device->portions = portions;
	osd_background_by_hand(&unit->device->background);
	osd_merge_job_by_hand(unit->device->merge_job);
	osd_device_set_tasks(unit->device, &tasks);
}

/* ---- scenes ---- */

static struct engine_txn *begin(struct osd_fuzz_unit *unit)
{
	struct engine_txn *txn;
	struct error_text error = { "" };

	must(engine_begin(unit->engine, ENGINE_WRITE, &txn), &error, "engine_begin");
	return txn;
}

static void add_partition(struct engine_txn *txn, uint64_t partition)
{
	struct engine_address address = { .partition = partition };
	struct error_text error = { "" };
	uint8_t data[1500];

	memset(data, 'd', sizeof(data));
	must(engine_partition_create(txn, partition, NULL), &error, "partition");
	must(engine_create(txn, partition, ENGINE_USER_OBJECT, 0, 4, NULL), &error, "objects");
	must(engine_create(txn, partition, ENGINE_COLLECTION, 0, 1, NULL), &error, "collection");
	address.object = OSD_SCENE_OBJECT;
	must(engine_write(txn, address, 0, data, sizeof(data)), &error, "write");
	must(engine_attribute_set(txn, address, 0x10000, 1, data, 8), &error, "attribute");
	must(engine_attribute_set(txn, address, 0x10000, 2, data, 700), &error, "attribute");
	address.object++;
	must(engine_write(txn, address, 4000, data, 700), &error, "write behind a hole");
	address.object = 0;
	must(engine_attribute_set(txn, address, 0x30010000, 1, data, 16), &error, "attribute");
}

/* A command of the first initiator, which must succeed. */
static void execute(struct osd_fuzz_unit *unit, const struct osd_cdb *cdb, const uint8_t *out,
		    size_t out_length)
{
	uint8_t bytes[OSD_CDB_BYTES_MAX], in[64];
	struct osd_command command = { .cdb = bytes,
				       .data_out = out,
				       .data_out_length = out_length,
				       .data_in = in,
				       .data_in_capacity = sizeof(in),
				       .nexus = 1 };

	fuzz_check(osd_cdb_encode(cdb, bytes, &command.cdb_length) == 0);
	if (!osd_execute_at_once(unit->device, &command, NULL))
		osd_execute(unit->device, &command);
	fuzz_check(command.status == SCSI_STATUS_GOOD);
}

/* It asks for what EXECUTE has. */
static void subscribe(struct osd_fuzz_unit *unit)
{
	struct osd_cdb cdb = {
		.version = OSD_2, .action = OSD_EXECUTE, .format = OSD_ATTRIBUTES_LIST, .length = 64
	};
	struct osd_item_writer writer;
	uint8_t out[32];

	osd_items_begin(&writer, out, sizeof(out));
	osd_item_add_number(&writer, OSD_ITEM_FEATURES, OSD_FEATURES_ALL);
	cdb.address = osd_execute_address(OSD_FUNCTION_SUBSCRIBE, (uint32_t)writer.length);
	execute(unit, &cdb, out, writer.length);
}

/* Three of the four objects are members of the collection. */
static void add_members(struct osd_fuzz_unit *unit)
{
	struct osd_cdb cdb = { .version = OSD_2,
			       .action = OSD_SET_ATTRIBUTES,
			       .format = OSD_ATTRIBUTES_CDB,
			       .partition = OSD_SCENE_PARTITION,
			       .set_page = OSD_USER_OBJECT_COLLECTIONS,
			       .set_number = 1,
			       .set_length = 8 };

	put_be64(cdb.set_value, OSD_SCENE_COLLECTION);
	for (uint64_t i = 0; i < 3; i++) {
		cdb.object = OSD_SCENE_OBJECT + i;
		execute(unit, &cdb, NULL, 0);
	}
}

static void set_scene(struct osd_fuzz_unit *unit, enum osd_scene scene)
{
	struct engine_address address = { .partition = OSD_SCENE_PARTITION,
					  .object = OSD_SCENE_OBJECT };
	const struct engine_retention lock = { .kind = ENGINE_RETAIN_SNAPSHOTS,
					       .locked_until_ms = unit->now_ms + LOCK_MS };
	struct error_text error = { "" };
	const uint8_t packed = OSD_LAYOUT_PACKED;
	struct engine_txn *txn;
	uint32_t version;

	if (scene == OSD_SCENE_EMPTY)
		return;
	txn = begin(unit);
	add_partition(txn, OSD_SCENE_PARTITION);
	must(engine_partition_create(txn, OSD_SCENE_PARTITION + 1, NULL), &error, "partition");
	must(engine_commit(txn, false), &error, "commit");
	add_members(unit);
	if (scene == OSD_SCENE_SECURED)
		osd_sign_secure(unit);
	if (!osd_scene_has_version(scene))
		return;
	txn = begin(unit);
	must(engine_snapshot(txn, OSD_SCENE_PARTITION, "scene", &version), &error, "snapshot");
	must(engine_write(txn, address, 100, "changed", 7), &error, "write");
	must(engine_truncate(txn, address, 1000), &error, "truncate");
	address.object = OSD_SCENE_OBJECT + 2;
	must(engine_remove(txn, address), &error, "remove");
	address.object = 0;
	if (scene == OSD_SCENE_PACKED)
		must(engine_attribute_set(txn, address, OSD_MUNINN_PARTITION, OSD_MUNINN_LAYOUT,
					  &packed, 1),
		     &error, "layout");
	if (scene == OSD_SCENE_LOCKED)
		must(engine_retention_set(txn, OSD_SCENE_PARTITION, &lock, false), &error, "lock");
	must(engine_commit(txn, false), &error, "commit");
}

/* ---- the unit ---- */

/*
 * A flash with a scene on it, as a clean end of the target left it: made once, put back for each
 * sequence.
 */
struct stage {
	struct nand *nand; /* NULL: not made yet */
	struct osd_flash_state *state;
	uint64_t now_ms;
	uint64_t version_created, version_digest; /* of scenes that have a version */
	uint64_t horizon;
};

static void format(struct osd_fuzz_unit *unit, enum osd_scene scene)
{
	struct nand_geometry shape = geometry;
	struct engine_options options = options_of(unit);
	struct error_text error = { "" };
	uint64_t nvram_bytes; /* depends on the shape, but the smaller one fits */

	if (scene == OSD_SCENE_SMALL || scene == OSD_SCENE_LOCKED)
		shape.blocks = SMALL_BLOCKS;
	must(engine_nvram_bytes(&geometry, &options, &nvram_bytes, &error), &error, "NVRAM");
	must(nand_open_memory(&shape, nvram_bytes, &unit->nand, &error), &error, "flash");
	must(engine_format(unit->nand, &options, &error), &error, "engine_format");
}

static void remember_version(struct osd_fuzz_unit *unit, struct stage *stage)
{
	struct engine_address partition = { .partition = OSD_SCENE_PARTITION, .version = 1 };
	struct error_text error = { "" };
	struct engine_history history;
	struct engine_txn *txn;
	struct engine_stat stat;

	must(engine_begin(unit->engine, ENGINE_READ, &txn), &error, "engine_begin");
	must(engine_stat(txn, partition, &stat), &error, "version");
	must(engine_history(txn, OSD_SCENE_PARTITION, &history), &error, "engine_history");
	engine_abort(txn);
	stage->horizon = history.horizon_sequence;
	unit->version_created = stage->version_created = stat.created_sequence;
	stage->version_digest = osd_fuzz_unit_version_digest(unit);
	fuzz_check(stage->version_digest != 0);
}

/* Thousands of faults a second are nothing to tell of. */
static void drop_line(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

static void make_stage(struct stage *stage, enum osd_scene scene)
{
	struct osd_fuzz_unit unit = { .now_ms = UINT64_C(1700000000000) };

	log_configure(drop_line, LOG_LEVEL_ERROR);
	osd_keys_begin(&unit.keys);
	format(&unit, scene);
	open_target(&unit);
	set_scene(&unit, scene);
	if (osd_scene_has_version(scene))
		remember_version(&unit, stage);
	osd_fuzz_unit_close(&unit);
	stage->nand = unit.nand;
	stage->state = osd_flash_remember(unit.nand);
	/* A target that starts takes no nonces from before. */
	stage->now_ms = unit.now_ms + 1000;
}

void osd_fuzz_unit_open(struct osd_fuzz_unit *unit, enum osd_scene scene)
{
	static struct stage stages[OSD_SCENES];
	struct stage *stage = &stages[scene];

	if (!stage->nand)
		make_stage(stage, scene);
	osd_flash_restore(stage->state);
	unit->nand = stage->nand;
	unit->now_ms = stage->now_ms;
	unit->version_created = stage->version_created;
	unit->version_digest = stage->version_digest;
	unit->horizon = stage->horizon;
	unit->damage = 0;
	unit->worn = false;
	osd_keys_begin(&unit->keys);
	open_target(unit);
	if (scene != OSD_SCENE_EMPTY)
		subscribe(unit);
}

void osd_fuzz_unit_close(struct osd_fuzz_unit *unit)
{
	int result;

	osd_damage_choose(unit, 0);
	osd_device_destroy(unit->device);
	result = engine_close(unit->engine);
	fuzz_check(result == 0 || (unit->worn && result == -EIO));
}

void osd_fuzz_unit_restart(struct osd_fuzz_unit *unit)
{
	osd_device_destroy(unit->device);
	engine_abandon(unit->engine);
	osd_damage_lift(unit);
	open_target(unit);
	osd_damage_restore(unit);
}

void osd_fuzz_unit_merge(struct osd_fuzz_unit *unit)
{
	struct engine_merge_result result = { 0 };
	int merged = engine_merge(unit->engine, &result);

	fuzz_check(merged == 0 || merged == -EAGAIN || merged == -ENOSPC ||
		   (unit->damage != 0 && merged == -EBADMSG));
}

void osd_fuzz_unit_step(struct osd_fuzz_unit *unit)
{
	osd_merge_job_step(unit->device->merge_job);
	osd_background_step(&unit->device->background);
}

struct osd_fuzz_locks osd_fuzz_unit_locks(struct osd_fuzz_unit *unit)
{
	static const uint64_t partitions[2] = { 0, OSD_SCENE_PARTITION };
	struct osd_fuzz_locks locks = { 0 };
	struct error_text error = { "" };
	struct engine_txn *txn;

	must(engine_begin(unit->engine, ENGINE_READ, &txn), &error, "engine_begin");
	for (int i = 0; i < 2; i++) {
		struct engine_retention retention;

		if (engine_retention_get(txn, partitions[i], &retention) == 0)
			locks.until_ms[i] = retention.locked_until_ms;
	}
	engine_abort(txn);
	return locks;
}

bool osd_fuzz_unit_is_locked(struct osd_fuzz_unit *unit)
{
	struct engine_retention retention = { 0 };
	struct engine_history history = { 0 };
	struct error_text error = { "" };
	struct engine_txn *txn;
	int result;

	must(engine_begin(unit->engine, ENGINE_READ, &txn), &error, "engine_begin");
	result = engine_retention_get(txn, OSD_SCENE_PARTITION, &retention);
	if (result == 0)
		result = engine_history(txn, OSD_SCENE_PARTITION, &history);
	engine_abort(txn);
	return result == 0 && retention.locked_until_ms > unit->now_ms &&
	       (retention.kind == ENGINE_RETAIN_ALL ||
		(retention.kind == ENGINE_RETAIN_SNAPSHOTS && retention.keep_all_ms == 0)) &&
	       history.horizon_sequence <= unit->horizon;
}

uint64_t osd_fuzz_unit_commits(const struct osd_fuzz_unit *unit)
{
	return unit->engine->transactions;
}

/* ---- the digest ---- */

struct digest {
	struct engine_txn *txn;
	uint64_t sum;
};

static void add_bytes(struct digest *digest, const void *bytes, size_t size)
{
	digest->sum = XXH3_64bits_withSeed(bytes, size, digest->sum);
}

static void add_number(struct digest *digest, uint64_t number)
{
	uint8_t bytes[8];

	put_le64(bytes, number);
	add_bytes(digest, bytes, sizeof(bytes));
}

static void add_attributes(struct digest *digest, struct engine_address address)
{
	uint8_t value[DIGEST_VALUE_BYTES];
	uint32_t page = 0, number = 0, length;
	int result = 0;

	for (unsigned count = 0; count < DIGEST_ATTRIBUTES; count++) {
		result = engine_attribute_next(digest->txn, address, &page, &number, value,
					       sizeof(value), &length);
		if (result != 0)
			break;
		if (page != DIGEST_NOT_PAGE ||
		    (number != DIGEST_NOT_STARTS && number != DIGEST_NOT_NONCES)) {
			add_number(digest, page);
			add_number(digest, number);
			add_number(digest, length);
			add_bytes(digest, value, min_u64(length, sizeof(value)));
		}
		if (++number == 0)
			page++;
	}
	fuzz_check(result == 0 || result == -ENOENT);
}

static void add_data(struct digest *digest, struct engine_address address, uint64_t length)
{
	uint8_t data[DIGEST_DATA_BYTES];
	uint64_t got, end = length > sizeof(data) ? length - sizeof(data) : 0;

	fuzz_check(engine_read(digest->txn, address, 0, data, sizeof(data), &got) == 0);
	fuzz_check(got == min_u64(length, sizeof(data)));
	add_bytes(digest, data, got);
	if (end == 0)
		return;
	fuzz_check(engine_read(digest->txn, address, end, data, sizeof(data), &got) == 0);
	fuzz_check(got == sizeof(data));
	add_bytes(digest, data, got);
}

/* An object, or with object 0 a partition or the root. */
static void add_object(struct digest *digest, struct engine_address address)
{
	struct engine_stat stat;

	fuzz_check(engine_stat(digest->txn, address, &stat) == 0);
	add_number(digest, address.object);
	add_number(digest, stat.type);
	add_number(digest, stat.length);
	add_number(digest, stat.used_bytes);
	add_number(digest, stat.members);
	add_number(digest, stat.collections);
	add_number(digest, stat.version);
	add_number(digest, stat.times_ms[ENGINE_TIME_CREATED]);
	add_number(digest, stat.times_ms[ENGINE_TIME_ATTRIBUTES_MODIFIED]);
	add_number(digest, stat.times_ms[ENGINE_TIME_DATA_MODIFIED]);
	add_attributes(digest, address);
	if (stat.type == ENGINE_USER_OBJECT)
		add_data(digest, address, stat.length);
}

static void add_objects(struct digest *digest, struct engine_address partition,
			enum engine_list what)
{
	uint64_t ids[DIGEST_IDS], next;
	size_t count;

	fuzz_check(engine_list(digest->txn, partition, what, 0, ids, DIGEST_IDS, &count, &next) ==
		   0);
	add_number(digest, next);
	for (size_t i = 0; i < count; i++) {
		struct engine_address address = partition;

		address.object = ids[i];
		add_object(digest, address);
	}
}

uint64_t osd_fuzz_unit_version_digest(struct osd_fuzz_unit *unit)
{
	struct engine_address partition = { .partition = OSD_SCENE_PARTITION, .version = 1 };
	struct error_text error = { "" };
	struct digest digest = { .sum = 0 };
	struct engine_stat stat;

	must(engine_begin(unit->engine, ENGINE_READ, &digest.txn), &error, "engine_begin");
	if (engine_stat(digest.txn, partition, &stat) == 0 &&
	    stat.created_sequence == unit->version_created) {
		add_objects(&digest, partition, ENGINE_LIST_USER_OBJECTS);
		add_objects(&digest, partition, ENGINE_LIST_COLLECTIONS);
	}
	engine_abort(digest.txn);
	return digest.sum;
}

uint64_t osd_fuzz_unit_digest(struct osd_fuzz_unit *unit)
{
	struct engine_address root = { 0 };
	struct error_text error = { "" };
	struct digest digest = { .sum = 0 };
	uint64_t ids[DIGEST_IDS], next;
	size_t count;

	must(engine_begin(unit->engine, ENGINE_READ, &digest.txn), &error, "engine_begin");
	add_object(&digest, root);
	fuzz_check(engine_list(digest.txn, root, ENGINE_LIST_PARTITIONS, 0, ids, DIGEST_IDS, &count,
			       &next) == 0);
	add_number(&digest, next);
	for (size_t i = 0; i < count; i++) {
		struct engine_address partition = { .partition = ids[i] };

		add_number(&digest, ids[i]);
		add_object(&digest, partition);
		add_objects(&digest, partition, ENGINE_LIST_USER_OBJECTS);
		add_objects(&digest, partition, ENGINE_LIST_COLLECTIONS);
	}
	engine_abort(digest.txn);
	return digest.sum;
}
