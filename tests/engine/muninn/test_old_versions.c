/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Old versions on a device that is merged all the time: every one of a few keys is kept, others are
 * put beside them. Look-ups find each exactly, whatever merging moved, and read few pages.
 *
 * Runs for each index.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>

#include "common/finding.h"
#include "common/log.h"
#include "engine/muninn/directory.h"
#include "engine/muninn/image_load.h"
#include "nand/faults.h"
#include "nand/power.h"
#include "tests/engine/flush_now.h"
#include "tests/engine/index_under_test.h"
#include "tests/engine/muninn/losses.h"
#include "tests/engine/small_flash.h"

enum {
	SEGMENT_PAGES = 64,
	PAGES_PER_BLOCK = 8,
	SEGMENTS = 100,
	WATCHED = 4,
	OTHERS = 1500,
	BETWEEN = 12, /* puts of others behind each of a watched key */
	VERSIONS = 1500,
	NEWER = 1000, /* versions of a key in front of one that is looked up */
	VALUE_BYTES = 90,
	SEGMENTS_AT_ONCE = 4,
	REMOVED_EACH = 41,    /* every so many-th version is a tombstone ... */
	REPEATED_EACH = 3,    /* ... or is put twice by its command, ... */
	ABORTED_EACH = 29,    /* ... or comes behind one that is aborted */
	NEWER_VERSIONS = 10,  /* that are looked up so */
	LOSSES = 12,          /* of NVRAM */
	CUTS = 36,            /* of the power ... */
	CUT_OPERATIONS = 500, /* ... within so many operations of the flash */
	LOOK_UP_EACH = 6,     /* so many-th cut all versions are looked up */
	ROOM_BYTES = 1000,    /* of images, behind what the index needs */
};

static const struct nand_geometry nand = SMALL_FLASH(SEGMENTS * SEGMENT_PAGES / PAGES_PER_BLOCK);

static uint8_t boot_id[16] = { 1 };

static const struct engine_options options = {
	.muninn = { .rows = 1, .segment_pages = SEGMENT_PAGES, .record_bytes = 112 },
	.records.boot_id = boot_id,
};

struct scene {
	struct model *model;
	uint64_t numbers[WATCHED][VERSIONS + 1];
	uint32_t versions;   /* of each watched key, so far */
	uint64_t freed;      /* segments, by merging */
	bool keeps_versions; /* of watched keys */
	bool is_off;         /* the power: nothing more is put */
};

static void no_log(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

static struct record_key watched_key(uint32_t number)
{
	return (struct record_key){ .partition = 1, .identifier = 0x20000 + number };
}

static const struct record_store_operations *operations(const struct scene *scene)
{
	return scene->model->store->operations;
}

/* ---- putting ---- */

/* Every version of a watched key, but for those that a later put of the same command replaces. */
static uint32_t keep_watched(void *context, const struct record_key *key,
			     const struct record_info *info, uint64_t *bounds, uint32_t max)
{
	const struct scene *scene = context;

	(void)max;
	bounds[0] = info->sequence;
	return scene->keeps_versions && key->identifier >= 0x20000;
}

/* Unless the power has failed. */
static void expect_done(struct scene *scene, int result)
{
	struct nand_power_status status;

	nand_power_status(scene->model->nand, &status);
	scene->is_off = status.off;
	assert_true(result == 0 || scene->is_off);
}

static void make_space(struct scene *scene)
{
	const struct record_keep keep = { .context = scene, .bounds = keep_watched };
	struct record_merge merge = { .segments_wanted = SEGMENTS_AT_ONCE,
				      .live_permille_max = 700,
				      .choice = RECORD_MERGE_SAMPLED };

	while (!scene->is_off &&
	       operations(scene)->shortage(scene->model->store, RECORD_ROOM_WRITE)) {
		int result = operations(scene)->merge(scene->model->store, &keep, &merge);

		if (result != -EAGAIN)
			expect_done(scene, result);
	}
	scene->freed += merge.segments_freed;
}

static void put(struct scene *scene, const struct record_key *key, uint64_t content, unsigned flags)
{
	uint8_t value[VALUE_BYTES] = { 0 };
	int result;

	put_le64(value, content);
	result = operations(scene)->put(scene->model->store, key, 1, flags, value,
					flags ? 0 : sizeof(value), RECORD_ROOM_WRITE);
	expect_done(scene, result);
}

static bool is_removed(uint32_t version)
{
	return version % REMOVED_EACH == REMOVED_EACH - 1;
}

static uint64_t content_of(uint32_t number, uint32_t version)
{
	return (uint64_t)number << 32 | version;
}

static void commit(struct scene *scene)
{
	if (scene->is_off)
		operations(scene)->abort(scene->model->store);
	else
		operations(scene)->commit(scene->model->store);
}

/* Of a command's puts the last one counts. */
static void put_watched(struct scene *scene, uint32_t number, uint32_t version)
{
	struct record_key key = watched_key(number);

	if (version % ABORTED_EACH == 0) {
		operations(scene)->begin(scene->model->store, 0);
		put(scene, &key, UINT64_MAX, 0);
		operations(scene)->abort(scene->model->store);
	}
	scene->numbers[number][version] = operations(scene)->begin(scene->model->store, 0);
	if (version % REPEATED_EACH == 0)
		put(scene, &key, UINT64_MAX, 0);
	put(scene, &key, content_of(number, version), is_removed(version) ? RECORD_TOMBSTONE : 0);
	commit(scene);
}

static void put_other(struct scene *scene)
{
	struct record_key key = { .partition = 1,
				  .identifier = 0x10000 + model_below(scene->model, OTHERS) };

	operations(scene)->begin(scene->model->store, 0);
	put(scene, &key, 0, 0);
	commit(scene);
}

/* A version of the keys from `first` on. */
static void put_version(struct scene *scene, uint32_t first)
{
	for (uint32_t number = first; !scene->is_off && number < WATCHED; number++) {
		make_space(scene);
		put_watched(scene, number, scene->versions);
		for (uint32_t n = 0; !scene->is_off && n < BETWEEN; n++)
			put_other(scene);
	}
}

static void put_versions(struct scene *scene, uint32_t count)
{
	for (; count > 0 && !scene->is_off; count--) {
		put_version(scene, 0);
		scene->versions += !scene->is_off;
	}
}

static struct scene *begin(bool keeps_versions)
{
	struct scene *scene = calloc(1, sizeof(*scene));

	assert_non_null(scene);
	scene->model = calloc(1, sizeof(*scene->model));
	assert_non_null(scene->model);
	scene->keeps_versions = keeps_versions;
	scene->model->random = model_setting("MUNINN_SEED", 1);
	print_message("%sMUNINN_SEED=%llu\n", index_setting(),
		      (unsigned long long)scene->model->random);
	model_open(scene->model, &nand, &options);
	return scene;
}

static void end(struct scene *scene)
{
	model_close(scene->model);
	free(scene);
}

/* ---- looking up ---- */

static uint64_t pages_read(const struct scene *scene)
{
	struct record_statistics statistics = { 0 };

	operations(scene)->statistics(scene->model->store, &statistics);
	return statistics.user_page_reads;
}

/* What is found, if anything, is what it should be. Returns the error of the look-up. */
static int try_look_up(const struct scene *scene, uint32_t number, uint32_t version, uint64_t bound)
{
	struct record_key key = watched_key(number);
	uint8_t value[VALUE_BYTES];
	struct record_info info;
	int result = operations(scene)->get(scene->model->store, &key, bound, value, sizeof(value),
					    &info);

	if (result)
		return result;
	assert_int_equal(info.sequence, scene->numbers[number][version]);
	assert_int_equal(!!(info.flags & RECORD_TOMBSTONE), is_removed(version));
	if (!is_removed(version))
		assert_int_equal(get_le64(value), content_of(number, version));
	return 0;
}

/* Returns how many pages it read. */
static uint64_t look_up(const struct scene *scene, uint32_t number, uint32_t version,
			uint64_t bound)
{
	uint64_t before = pages_read(scene);

	assert_int_equal(try_look_up(scene, number, version, bound), 0);
	return pages_read(scene) - before;
}

/* The highest bound as of which a version is the newest. */
static uint64_t last_bound(const struct scene *scene, uint32_t number, uint32_t version)
{
	return version + 1 < scene->versions ? scene->numbers[number][version + 1] - 1
					     : RECORD_NEWEST;
}

/* Every version, as of several bounds. Returns the mean of pages read. */
static double look_up_all(struct scene *scene)
{
	uint64_t reads = 0, count = 0;

	for (uint32_t number = 0; number < WATCHED; number++)
		for (uint32_t version = 0; version < scene->versions; version++) {
			uint64_t first = scene->numbers[number][version];
			uint64_t last = last_bound(scene, number, version);

			reads += look_up(scene, number, version, first);
			reads += look_up(scene, number, version, last);
			reads += look_up(scene, number, version, first + (last - first) / 2);
			count += 3;
		}
	return (double)reads / (double)count;
}

static double look_up_behind(struct scene *scene, uint32_t newer)
{
	uint64_t reads = 0;

	for (uint32_t number = 0; number < WATCHED; number++)
		for (uint32_t n = 0; n < NEWER_VERSIONS; n++) {
			uint32_t version = scene->versions - 1 - newer - n;

			reads += look_up(scene, number, version, scene->numbers[number][version]);
		}
	return (double)reads / (WATCHED * NEWER_VERSIONS);
}

/* ---- what is known of segments ---- */

/* Sealed segments that numbers of old records are known of. */
static uint32_t with_ranges(const struct scene *scene)
{
	const struct muninn_store *store = inside(scene->model);
	uint32_t count = 0;

	for (uint32_t segment = 0; segment < store->geometry.segments; segment++) {
		bool is_sealed = store->segment_rows[segment] != NO_ROW;

		assert_true(is_sealed || !store->older[segment].ranges);
		count += store->older[segment].ranges != NULL;
	}
	return count;
}

static uint64_t segments_memory(const struct scene *scene)
{
	struct record_statistics statistics = { 0 };

	operations(scene)->statistics(scene->model->store, &statistics);
	for (int kind = 0; statistics.memory[kind].name; kind++)
		if (strcmp(statistics.memory[kind].name, "segments") == 0)
			return statistics.memory[kind].bytes;
	return 0;
}

/* Of images on flash: what is behind what the index needs. */
static uint64_t images_bytes_appended(const struct scene *scene)
{
	struct muninn_store *store = inside(scene->model);
	uint64_t bytes = 0;
	const uint8_t *entry;

	for (uint32_t n = 0; (entry = directory_next(store, &n)) != NULL;) {
		struct index_image image;
		uint32_t appended;

		assert_int_equal(image_read(store, entry, &image), 0);
		index_image_appended(store->index, &image, &appended);
		bytes += appended;
		free(image.bytes);
	}
	return bytes;
}

/* What is known of each segment, as an image stores it. */
struct known {
	uint32_t bytes[SEGMENTS];
	uint8_t stored[SEGMENTS][OLDER_STORED_MAX];
};

static struct known *known_now(const struct scene *scene)
{
	const struct muninn_store *store = inside(scene->model);
	struct known *known = calloc(1, sizeof(*known));

	assert_non_null(known);
	for (uint32_t segment = 0; segment < store->geometry.segments; segment++) {
		known->bytes[segment] = older_stored(&store->older[segment]);
		if (known->bytes[segment])
			older_put(&store->older[segment], 0, known->stored[segment]);
	}
	return known;
}

/*
 * What is known now is what was known before, of every segment if the index has a place for that.
 * Returns of how many; *left_out: of how many that is forgotten; NULL: of none.
 */
static uint32_t expect_known(const struct scene *scene, const struct known *before,
			     uint32_t *left_out)
{
	struct known *now = known_now(scene);
	const struct muninn_store *store = inside(scene->model);
	struct index_walk walk = { 0 };
	struct sealed_segment segment;
	uint32_t count = 0;

	while (row_index_next(store->rows[0].index, &walk, &segment)) {
		uint32_t n = segment.segment;

		if (index_under_test() != INDEX_RIBBON) {
			assert_int_equal(now->bytes[n], 0);
		} else if (left_out && !now->bytes[n]) {
			*left_out += before->bytes[n] > 0;
		} else {
			assert_int_equal(now->bytes[n], before->bytes[n]);
			assert_memory_equal(now->stored[n], before->stored[n], now->bytes[n]);
			count += now->bytes[n] > 0;
		}
	}
	free(now);
	return count;
}

/* ---- what a check finds ---- */

static void count_finding(void *context, const struct finding *finding)
{
	uint32_t *count = context;

	assert_int_equal(finding->kind, FINDING_RECORD);
	++*count;
}

static uint32_t findings_of_check(const struct scene *scene)
{
	uint32_t count = 0;
	struct findings findings = { .take = count_finding, .context = &count };
	struct record_check check = { .findings = &findings };

	assert_int_equal(operations(scene)->check(scene->model->store, &check), 0);
	return count;
}

/* ---- tests ---- */

/* With the ribbon index as few behind a restart. */
static void test_every_version_is_found_with_few_page_reads_behind_many_merges(void **state)
{
	struct scene *scene = begin(true);
	double any, behind;

	(void)state;
	put_versions(scene, VERSIONS);
	assert_true(scene->freed > SEGMENTS);
	any = look_up_all(scene);
	behind = look_up_behind(scene, NEWER);
	print_message("page reads: %.2f of any version, %.2f behind %d newer\n", any, behind,
		      NEWER);
	/* On pages that hash functions give, versions of other keys are between those of one. */
	assert_true(behind <= (index_under_test() == INDEX_BLOOM ? 12 : 2));
	assert_true(any <= (index_under_test() == INDEX_BLOOM ? 9 : 2.5));
	if (index_under_test() == INDEX_RIBBON) {
		model_crash(scene->model);
		/* Groups without ranges keep nothing. */
		assert_true(look_up_all(scene) < 1.01 * any);
		assert_true(look_up_behind(scene, NEWER) < 1.01 * behind);
	}
	end(scene);
}

static void test_every_version_is_found_behind_a_restart(void **state)
{
	struct scene *scene = begin(true);
	struct known *known;
	uint32_t count;

	(void)state;
	put_versions(scene, VERSIONS / 2);
	assert_true(with_ranges(scene) > 0);
	known = known_now(scene);
	model_crash(scene->model);
	count = expect_known(scene, known, NULL);
	assert_true(index_under_test() == INDEX_RIBBON ? count > 10 : count == 0);
	free(known);
	look_up_all(scene);
	assert_int_equal(findings_of_check(scene), 0);
	/* Until some are known of again, and some are not. */
	put_versions(scene, VERSIONS / 15);
	assert_true(with_ranges(scene) > 0);
	look_up_all(scene);
	put_versions(scene, VERSIONS / 6);
	look_up_all(scene);
	end(scene);
}

/* Each image lost a page, and is written anew: with what memory knows. */
static void test_images_that_are_written_anew_have_what_is_known(void **state)
{
	struct scene *scene = begin(true);
	struct record_merge mend = { .segments_wanted = 1, .choice = RECORD_MERGE_MENDED };
	struct known *known;

	(void)state;
	put_versions(scene, VERSIONS / 2);
	known = known_now(scene);
	assert_true(lose_of_every_image(scene->model) > 0);
	scrub_all(scene->model);
	while (operations(scene)->damaged(scene->model->store))
		assert_int_equal(operations(scene)->merge(scene->model->store,
							  &(struct record_keep){ 0 }, &mend),
				 0);
	model_crash(scene->model);
	assert_int_equal(expect_known(scene, known, NULL) > 0, index_under_test() == INDEX_RIBBON);
	free(known);
	look_up_all(scene);
	end(scene);
}

/* They have what is known of their first segments, whatever is put from now on. */
static void leave_no_room(struct scene *scene)
{
	struct muninn_store *store = inside(scene->model);
	uint64_t largest = 0;
	const uint8_t *entry;

	for (uint32_t n = 0; (entry = directory_next(store, &n)) != NULL;)
		largest = max_u64(largest, get_le32(entry + DIRECTORY_BYTES_AT));
	store->geometry.image_bytes_max = largest + ROOM_BYTES;
}

static void test_images_without_room_leave_some_segments_out(void **state)
{
	struct scene *scene = begin(true);
	struct known *known;
	uint32_t left_out = 0;

	(void)state;
	put_versions(scene, VERSIONS / 3);
	if (index_under_test() == INDEX_RIBBON)
		leave_no_room(scene);
	put_versions(scene, VERSIONS * 2 / 3);
	known = known_now(scene);
	model_crash(scene->model);
	assert_int_equal(expect_known(scene, known, &left_out) > 0,
			 index_under_test() == INDEX_RIBBON);
	assert_int_equal(left_out > 0, index_under_test() == INDEX_RIBBON);
	free(known);
	look_up_all(scene);
	end(scene);
}

static void test_what_is_noted_of_a_segment_takes_the_place_of_what_was_known(void **state)
{
	struct scene *scene = begin(true);
	struct muninn_store *store = inside(scene->model);
	struct older_pages older;
	uint8_t stored[OLDER_STORED_MAX];
	uint32_t segment = 0;
	uint64_t bytes;

	(void)state;
	put_versions(scene, VERSIONS / 3);
	while (!store->older[segment].ranges)
		segment++;
	older_put(&store->older[segment], 0, stored);
	bytes = store->older_bytes;
	for (uint32_t turn = 0; turn < 2; turn++) {
		older_get(&older, stored);
		store_note_older(store, segment, &older);
		assert_ptr_equal(store->older[segment].ranges, older.ranges);
		assert_int_equal(store->older_bytes, bytes);
	}
	store_forget_older(store, segment);
	assert_true(store->older_bytes < bytes);
	end(scene);
}

/* As wrong ranges in an image would be. */
static void test_a_check_finds_what_is_wrongly_known_of_old_records(void **state)
{
	struct scene *scene = begin(true);
	struct older_pages *older;
	uint32_t segment = 0, bit = 0;

	(void)state;
	put_versions(scene, VERSIONS / 3);
	assert_int_equal(findings_of_check(scene), 0);
	while (!inside(scene->model)->older[segment].ranges)
		segment++;
	older = &inside(scene->model)->older[segment];
	while (!older_bit_is_set(older->map, bit))
		bit++;
	older->ranges->first += older->ranges->unit;
	assert_true(findings_of_check(scene) > 0);
	older->ranges->first -= 2 * older->ranges->unit;
	assert_true(findings_of_check(scene) > 0);
	older->ranges->first += older->ranges->unit;
	assert_int_equal(findings_of_check(scene), 0);
	older->below += 100;
	assert_true(findings_of_check(scene) > 0);
	older->below -= 100;
	older->map[bit / 64] ^= UINT64_C(1) << bit % 64;
	assert_true(findings_of_check(scene) > 0);
	end(scene);
}

/* Whether a version has been committed, of one or more that may have. */
static bool is_there(const struct scene *scene, uint32_t number, uint32_t version)
{
	struct record_key key = watched_key(number);
	uint64_t wanted = scene->numbers[number][version];
	uint8_t value[VALUE_BYTES];
	struct record_info info;

	return wanted &&
	       operations(scene)->get(scene->model->store, &key, wanted, value, sizeof(value),
				      &info) == 0 &&
	       info.sequence == wanted;
}

/*
 * The power fails at some operation, and is back; the host fails with it, if `nvram` says so. What
 * is left are all commands up to one of them: puts the rest of its version.
 */
static void fail_power(struct scene *scene, enum nand_cut_nvram nvram)
{
	const struct nand_power_cut cut = { .after = model_below(scene->model, CUT_OPERATIONS),
					    .page = NAND_CUT_PAGE_GARBAGE,
					    .nvram = nvram,
					    .seed = model_random(scene->model) };
	uint32_t flushed = scene->versions, number = 0;

	assert_int_equal(flush_now(scene->model->store), 0);
	for (uint32_t n = 0; n < WATCHED; n++)
		memset(scene->numbers[n] + flushed, 0, (VERSIONS - flushed) * sizeof(uint64_t));
	assert_int_equal(nand_arm_power_cut(scene->model->nand, &cut, NULL), 0);
	put_versions(scene, VERSIONS - scene->versions);
	assert_true(scene->is_off);
	assert_int_equal(nand_power_on(scene->model->nand), 0);
	boot_id[0] += nvram != NAND_CUT_NVRAM_KEPT;
	model_crash(scene->model);
	scene->is_off = false;
	for (scene->versions = flushed; is_there(scene, WATCHED - 1, scene->versions);)
		scene->versions++;
	while (number < WATCHED && is_there(scene, number, scene->versions))
		number++;
	put_version(scene, number);
	scene->versions++;
}

/* A check compares what is known with all records. */
static void test_what_is_known_is_right_wherever_the_power_fails(void **state)
{
	static const enum nand_cut_nvram nvrams[] = { NAND_CUT_NVRAM_KEPT, NAND_CUT_NVRAM_MIXED,
						      NAND_CUT_NVRAM_FLUSHED };
	struct scene *scene = begin(true);
	uint32_t known = 0;

	(void)state;
	log_configure(no_log, LOG_LEVEL_ERROR);
	put_versions(scene, VERSIONS / 3);
	for (uint32_t n = 0; n < CUTS; n++) {
		fail_power(scene, nvrams[n % 3]);
		known += with_ranges(scene);
		assert_int_equal(findings_of_check(scene), 0);
		if (n % LOOK_UP_EACH == 0)
			look_up_all(scene);
	}
	look_up_all(scene);
	log_configure(NULL, LOG_LEVEL_INFO);
	print_message("%u versions, %.1f segments known behind a cut\n", scene->versions,
		      (double)known / CUTS);
	assert_true(known > 0 || index_under_test() == INDEX_BLOOM);
	end(scene);
}

/* Buffers are gone, and growing groups are made again. Images say what they said. */
static void test_what_is_known_is_right_without_nvram(void **state)
{
	struct scene *scene = begin(true);
	uint32_t known = 0;

	(void)state;
	log_configure(no_log, LOG_LEVEL_ERROR);
	put_versions(scene, VERSIONS / 3);
	for (uint32_t n = 0; n < LOSSES; n++) {
		const struct nand_power_cut cut = { .after = model_below(scene->model,
									 CUT_OPERATIONS),
						    .page = NAND_CUT_PAGE_GARBAGE,
						    .nvram = NAND_CUT_NVRAM_LOST,
						    .seed = model_random(scene->model) };

		assert_int_equal(nand_arm_power_cut(scene->model->nand, &cut, NULL), 0);
		put_versions(scene, VERSIONS - scene->versions);
		assert_true(scene->is_off);
		assert_int_equal(nand_power_on(scene->model->nand), 0);
		scene->model->options.records.recover_without_nvram = true;
		model_crash(scene->model);
		scene->is_off = false;
		known += with_ranges(scene);
		assert_int_equal(findings_of_check(scene), 0);
	}
	log_configure(NULL, LOG_LEVEL_INFO);
	assert_int_equal(known > 0, index_under_test() == INDEX_RIBBON);
	end(scene);
}

/* What is lost may be what is looked for, or not be needed. Nothing else is found in its place. */
static void test_lost_pages_give_errors_and_no_other_version(void **state)
{
	struct scene *scene = begin(true);
	uint32_t found = 0, failed = 0;
	struct nand_faults faults;

	(void)state;
	put_versions(scene, VERSIONS / 2);
	assert_int_equal(nand_faults_parse("seed=5,unreadable=0.02", &faults, NULL), 0);
	assert_int_equal(nand_set_faults(scene->model->nand, &faults, NULL), 0);
	log_configure(no_log, LOG_LEVEL_ERROR);
	for (uint32_t number = 0; number < WATCHED; number++)
		for (uint32_t version = 0; version < scene->versions; version++) {
			int result = try_look_up(scene, number, version,
						 scene->numbers[number][version]);

			assert_true(result == 0 || result == -EBADMSG);
			found += result == 0;
			failed += result != 0;
		}
	log_configure(NULL, LOG_LEVEL_INFO);
	print_message("%u found, %u lost\n", found, failed);
	assert_true(failed > 0 && failed < found / 8);
	end(scene);
}

static void test_memory_is_spent_only_on_segments_with_versions_that_were_moved(void **state)
{
	struct scene *scene = begin(false);
	uint64_t memory = segments_memory(scene);

	(void)state;
	/* Merging moves what is the newest of its key. */
	put_versions(scene, VERSIONS);
	assert_true(scene->freed > SEGMENTS);
	assert_int_equal(with_ranges(scene), 0);
	assert_in_range(segments_memory(scene), memory, memory + 65536);
	assert_true(directory_used(inside(scene->model)) > 0);
	assert_int_equal(images_bytes_appended(scene), 0);
	end(scene);

	scene = begin(true);
	memory = segments_memory(scene);
	put_versions(scene, VERSIONS);
	assert_in_range(with_ranges(scene), 1, SEGMENTS);
	assert_true(segments_memory(scene) > memory);
	assert_int_equal(images_bytes_appended(scene) > 0, index_under_test() == INDEX_RIBBON);
	end(scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_every_version_is_found_with_few_page_reads_behind_many_merges),
		cmocka_unit_test(test_every_version_is_found_behind_a_restart),
		cmocka_unit_test(test_images_that_are_written_anew_have_what_is_known),
		cmocka_unit_test(test_images_without_room_leave_some_segments_out),
		cmocka_unit_test(test_what_is_noted_of_a_segment_takes_the_place_of_what_was_known),
		cmocka_unit_test(test_a_check_finds_what_is_wrongly_known_of_old_records),
		cmocka_unit_test(test_what_is_known_is_right_wherever_the_power_fails),
		cmocka_unit_test(test_what_is_known_is_right_without_nvram),
		cmocka_unit_test(test_lost_pages_give_errors_and_no_other_version),
		cmocka_unit_test(
			test_memory_is_spent_only_on_segments_with_versions_that_were_moved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
