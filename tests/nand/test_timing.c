/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Virtual time is arithmetic: every case here has a formula, and the clock must show exactly its
 * value.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "tests/nand/fixture.h"

#include "nand/timing.h"

/* A page of 4096 + 128 bytes at 1000 ps a byte: 4224 ns. */
enum { READ_NS = 50000, PROGRAM_NS = 600000, ERASE_NS = 3000000, TRANSFER_NS = 4224 };

static const struct nand_timing virtual_timing = {
	.mode = NAND_TIMING_VIRTUAL,
	.page_read_ns = READ_NS,
	.page_program_ns = PROGRAM_NS,
	.block_erase_ns = ERASE_NS,
	.transfer_ps_per_byte = 1000,
};

static void set_timing(struct nand *nand, struct nand_timing timing)
{
	struct error_text error = { "" };

	if (nand_set_timing(nand, &timing, &error) < 0)
		fail_msg("%s", error.text);
}

/* 64 blocks of 16 pages on the dies that are asked for. */
static struct nand *open_dies(uint32_t channels, uint32_t dies_per_channel)
{
	struct nand_geometry geometry = small_geometry;
	struct nand *nand;

	geometry.pages_per_block = 16;
	geometry.blocks = 64;
	geometry.channels = channels;
	geometry.dies_per_channel = dies_per_channel;
	assert_int_equal(nand_open_memory(&geometry, 0, &nand, NULL), 0);
	nand_set_violation_policy(nand, NAND_VIOLATION_FAILS);
	set_timing(nand, virtual_timing);
	return nand;
}

static uint8_t buffer[4096];

/*
 * One call with `each` pages of the first `dies` blocks, a page of each block in turn. Returns the
 * time it took.
 */
static uint64_t striped(struct nand *nand, enum nand_operation operation, uint32_t dies,
			uint32_t each)
{
	struct nand_page_io io[64 * 16];
	uint64_t before = nand_now_ns(nand);
	size_t count = 0;

	for (uint32_t page = 0; page < each; page++)
		for (uint32_t block = 0; block < dies; block++)
			io[count++] = (struct nand_page_io){ block * 16 + page, buffer, NULL };
	if (operation == NAND_READ)
		assert_int_equal(nand_read(nand, NAND_CAUSE_USER, io, count), 0);
	else
		assert_int_equal(nand_program(nand, NAND_CAUSE_USER, io, count), 0);
	return nand_now_ns(nand) - before;
}

static uint64_t read_one(struct nand *nand, uint64_t page)
{
	struct nand_page_io io = { page, buffer, NULL };
	uint64_t before = nand_now_ns(nand);

	assert_int_equal(nand_read(nand, NAND_CAUSE_USER, &io, 1), 0);
	return nand_now_ns(nand) - before;
}

static void test_one_die_takes_the_sum_of_its_operations(void **state)
{
	struct nand *nand = open_dies(1, 1);
	struct nand_page_io spare_only = { 0, NULL, buffer };
	uint64_t expected = 0;

	(void)state;
	for (int round = 0; round < 7; round++) {
		for (uint64_t page = 0; page < 16; page++) {
			assert_int_equal(program_filled(nand, page, 0), 0);
			assert_int_equal(read_filled(nand, page / 2, 0), 0);
		}
		assert_int_equal(nand_read(nand, NAND_CAUSE_USER, &spare_only, 1), 0);
		assert_int_equal(nand_erase(nand, NAND_CAUSE_USER, 0), 0);
		expected += 16 * (TRANSFER_NS + PROGRAM_NS) + 16 * (READ_NS + TRANSFER_NS) +
			    (READ_NS + 128) + ERASE_NS;
		assert_int_equal(nand_now_ns(nand), expected);
	}
	assert_int_equal(nand_close(nand), 0);
}

static void test_a_vector_on_one_die_takes_the_sum_too(void **state)
{
	struct nand *nand = open_dies(1, 1);

	(void)state;
	assert_int_equal(striped(nand, NAND_PROGRAM, 1, 16), 16 * (TRANSFER_NS + PROGRAM_NS));
	assert_int_equal(striped(nand, NAND_READ, 1, 16), 16 * (READ_NS + TRANSFER_NS));
	assert_int_equal(nand_close(nand), 0);
}

/* Each die's transfers fall behind one another's and never wait again: the dies are what limits. */
static void test_few_dies_of_a_channel_are_limited_by_the_dies(void **state)
{
	(void)state;
	for (uint32_t dies = 1; dies <= 8; dies *= 2) {
		struct nand *nand = open_dies(1, dies);

		assert_int_equal(striped(nand, NAND_PROGRAM, dies, 16),
				 (dies - 1) * TRANSFER_NS + 16 * (TRANSFER_NS + PROGRAM_NS));
		assert_int_equal(striped(nand, NAND_READ, dies, 16),
				 (dies - 1) * TRANSFER_NS + 16 * (READ_NS + TRANSFER_NS));
		assert_int_equal(nand_close(nand), 0);
	}
}

/*
 * With 32 dies, 31 transfers take longer than a read: the bus never rests between the first and the
 * last of them.
 */
static void test_many_dies_of_a_channel_are_limited_by_the_channel(void **state)
{
	struct nand *nand = open_dies(1, 32);
	struct nand_timing slow_bus = virtual_timing;

	(void)state;
	striped(nand, NAND_PROGRAM, 32, 16);
	assert_int_equal(striped(nand, NAND_READ, 32, 16), READ_NS + 32 * 16 * TRANSFER_NS);
	assert_int_equal(nand_close(nand), 0);

	nand = open_dies(1, 32);
	slow_bus.transfer_ps_per_byte = 10000;
	set_timing(nand, slow_bus);
	assert_int_equal(striped(nand, NAND_PROGRAM, 32, 16),
			 32 * 16 * 10 * TRANSFER_NS + PROGRAM_NS);
	assert_int_equal(nand_close(nand), 0);
}

static void test_channels_do_not_disturb_one_another(void **state)
{
	uint64_t expected = 16 * (TRANSFER_NS + PROGRAM_NS);

	(void)state;
	for (uint32_t channels = 1; channels <= 64; channels *= 2) {
		struct nand *nand = open_dies(channels, 1);

		assert_int_equal(striped(nand, NAND_PROGRAM, channels, 16), expected);
		assert_int_equal(nand_close(nand), 0);
	}
}

/*
 * The order of submission is not the order of the bus: a die that is ready does not wait for one
 * that is not.
 */
static void test_a_channel_serves_whoever_is_ready_first(void **state)
{
	struct nand *nand = open_dies(1, 2);
	struct nand_page_io io[32];

	(void)state;
	for (uint32_t i = 0; i < 32; i++)
		io[i] = (struct nand_page_io){ i, buffer,
					       NULL }; /* all of die 0, then all of die 1 */
	assert_int_equal(nand_program(nand, NAND_CAUSE_USER, io, 32), 0);
	assert_int_equal(nand_now_ns(nand), TRANSFER_NS + 16 * (TRANSFER_NS + PROGRAM_NS));
	assert_int_equal(nand_close(nand), 0);
}

static void test_blocks_are_dealt_to_the_dies_in_turn(void **state)
{
	struct nand *nand = open_dies(2, 2);
	const struct {
		uint32_t other_block;
		uint64_t expected_ns;
	} cases[] = {
		{ 1, READ_NS + TRANSFER_NS },     /* another channel */
		{ 2, READ_NS + 2 * TRANSFER_NS }, /* another die of the channel */
		{ 3, READ_NS + TRANSFER_NS },
		{ 4, 2 * (READ_NS + TRANSFER_NS) }, /* the same die */
	};

	(void)state;
	for (uint64_t block = 0; block < 5; block++)
		assert_int_equal(program_filled(nand, block * 16, 0), 0);
	for (size_t i = 0; i < 4; i++) {
		struct nand_page_io io[] = { { 0, buffer, NULL },
					     { cases[i].other_block * 16ULL, buffer, NULL } };
		uint64_t before = nand_now_ns(nand);

		assert_int_equal(nand_read(nand, NAND_CAUSE_USER, io, 2), 0);
		assert_int_equal(nand_now_ns(nand) - before, cases[i].expected_ns);
	}
	assert_int_equal(nand_close(nand), 0);
}

static void test_channels_and_dies_can_be_other_than_the_geometry_says(void **state)
{
	struct nand *nand = open_dies(4, 2);
	struct nand_timing timing = virtual_timing;

	(void)state;
	timing.channels = timing.dies_per_channel = 1;
	set_timing(nand, timing);
	assert_int_equal(striped(nand, NAND_PROGRAM, 8, 4), 32 * (TRANSFER_NS + PROGRAM_NS));
	assert_int_equal(nand_close(nand), 0);
}

/* A mixed load from a seed; returns a sum that everything visible goes into. */
static uint64_t run_mixed_load(uint64_t seed)
{
	struct nand *nand = open_dies(2, 3);
	struct nand_page_io io[40];
	struct histogram_snapshot latency;
	uint32_t next[64] = { 0 };
	uint64_t sum = 0;

	for (int step = 0; step < 2000; step++) {
		size_t count = 0, wanted = 1 + (seed >> 60);

		for (uint32_t block = 0; block < 64; block++) {
			if (next[block] < 16)
				continue;
			assert_int_equal(nand_erase(nand, NAND_CAUSE_USER, block), 0);
			next[block] = 0;
		}
		while (count < wanted) {
			uint32_t block = (uint32_t)((seed = seed * 6364136223846793005U + 1) >> 58);

			if (next[block] < 16)
				io[count++] = (struct nand_page_io){ block * 16 + next[block]++,
								     buffer, NULL };
		}
		assert_int_equal(nand_program(nand, NAND_CAUSE_USER, io, count), 0);
		assert_int_equal(nand_read(nand, NAND_CAUSE_USER, io, 1), 0);
		sum = sum * 31 + nand_now_ns(nand);
	}
	for (int operation = 0; operation < NAND_OPERATIONS; operation++) {
		nand_latency(nand, operation, &latency);
		for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++)
			sum = sum * 31 + latency.buckets[i];
	}
	assert_int_equal(nand_close(nand), 0);
	return sum;
}

static void test_two_runs_with_one_seed_are_identical(void **state)
{
	uint64_t first = run_mixed_load(42);

	(void)state;
	assert_true(run_mixed_load(42) == first);
	assert_true(run_mixed_load(43) != first);
}

/* What the model must say, by looking at everything that was ever planned. */
struct plain_model {
	uint64_t die_free_ns[64];
	uint64_t sum_ns; /* of all latencies */
	size_t count;
	struct {
		uint64_t from_ns, to_ns;
	} planned[2048]; /* on the one channel, in no order */
};

/* The first time from `ready_ns` on when the channel is free for so long. */
static uint64_t plan_plainly(struct plain_model *model, uint64_t ready_ns, uint64_t length_ns)
{
	for (size_t i = 0; i < model->count;) {
		bool overlaps = model->planned[i].from_ns < ready_ns + length_ns &&
				ready_ns < model->planned[i].to_ns;

		ready_ns = overlaps ? model->planned[i].to_ns : ready_ns;
		i = overlaps ? 0 : i + 1;
	}
	model->planned[model->count].from_ns = ready_ns;
	model->planned[model->count++].to_ns = ready_ns + length_ns;
	return ready_ns;
}

/* All times are multiples of what a spare area takes, so that gaps can be filled exactly. */
enum { SPARE_NS = 128, PLAIN_READ_NS = TRANSFER_NS };

/* Plans the read of a whole page, or of its spare area, as one of a vector. */
static void add_read(struct nand_page_io *io, struct plain_model *model, uint32_t die, bool whole)
{
	uint64_t ready_ns = model->die_free_ns[die] + PLAIN_READ_NS;
	uint64_t transfer_ns = whole ? TRANSFER_NS : SPARE_NS;

	io[model->count] = (struct nand_page_io){ die * UINT64_C(16), whole ? buffer : NULL,
						  whole ? NULL : buffer };
	ready_ns = plan_plainly(model, ready_ns, transfer_ns);
	model->die_free_ns[die] = ready_ns + transfer_ns;
	model->sum_ns += ready_ns + transfer_ns;
}

/* Reads the vector, and compares latencies and the clock with the model. */
static void read_as_planned(struct nand *nand, const struct nand_page_io *io,
			    const struct plain_model *model)
{
	struct nand_timing timing = virtual_timing;
	struct histogram_snapshot latency;
	uint64_t begun_ns;

	timing.page_read_ns = PLAIN_READ_NS;
	set_timing(nand, timing);
	begun_ns = nand_now_ns(nand);
	assert_int_equal(nand_read(nand, NAND_CAUSE_USER, io, model->count), 0);
	nand_latency(nand, NAND_READ, &latency);
	assert_int_equal(latency.sum_ns, model->sum_ns);
	assert_int_equal(nand_now_ns(nand) - begun_ns, latency.most_ns);
}

/* Some of the reads fill gaps between the transfers of others. */
static void test_a_channel_is_used_as_early_as_possible(void **state)
{
	static struct nand_page_io io[2048];
	uint64_t seed = 1;

	(void)state;
	for (uint32_t dies = 2; dies <= 16; dies++) {
		struct nand *nand = open_dies(1, dies);
		struct plain_model model = { .count = 0 };

		striped(nand, NAND_PROGRAM, dies, 1);
		while (model.count < 500) {
			seed = seed * 6364136223846793005U + 1;
			add_read(io, &model, (uint32_t)(seed >> 33) % dies, (seed >> 40) % 4 == 0);
		}
		read_as_planned(nand, io, &model);
		assert_int_equal(nand_close(nand), 0);
	}
}

/*
 * Two dies fill each other's gaps, to the nanosecond and so often that not all of these transfers
 * could be remembered. Neighbours are one; so the gap in front of all of them is still known.
 */
static void test_transfers_without_a_gap_between_them_are_remembered_as_one(void **state)
{
	static struct nand_page_io io[2048];
	struct nand *nand = open_dies(1, 3);
	struct plain_model model = { .count = 0 };

	(void)state;
	striped(nand, NAND_PROGRAM, 3, 1);
	add_read(io, &model, 0, false);
	add_read(io, &model, 1, false);
	add_read(io, &model, 0, true);
	for (int i = 0; i < 600; i++) {
		add_read(io, &model, 0, true);
		add_read(io, &model, 1, true);
	}
	add_read(io, &model, 2, false);
	assert_int_equal(model.die_free_ns[2], PLAIN_READ_NS + 3 * SPARE_NS);
	read_as_planned(nand, io, &model);
	assert_int_equal(nand_close(nand), 0);
}

static void test_latencies_of_a_vector_include_waiting(void **state)
{
	struct nand *nand = open_dies(1, 1);
	struct histogram_snapshot latency;

	(void)state;
	striped(nand, NAND_PROGRAM, 1, 3);
	nand_latency(nand, NAND_PROGRAM, &latency);
	assert_int_equal(latency.count, 3);
	assert_int_equal(latency.least_ns, TRANSFER_NS + PROGRAM_NS);
	assert_int_equal(latency.most_ns, 3 * (TRANSFER_NS + PROGRAM_NS));
	assert_int_equal(latency.sum_ns, 6 * (TRANSFER_NS + PROGRAM_NS));
	nand_latency(nand, NAND_READ, &latency);
	assert_int_equal(latency.count, 0);
	assert_int_equal(nand_close(nand), 0);
}

static void test_usage_is_work_and_not_waiting(void **state)
{
	struct nand *nand = open_dies(2, 2);
	struct nand_usage usage;

	(void)state;
	striped(nand, NAND_PROGRAM, 3, 5); /* dies 0 and 2 share channel 0 */
	assert_int_equal(nand_erase(nand, NAND_CAUSE_USER, 9), 0); /* die 1 */
	nand_read_usage(nand, &usage);
	assert_int_equal(usage.dies, 4);
	assert_int_equal(usage.channels, 2);
	assert_int_equal(usage.die_busy_ns, 15 * (TRANSFER_NS + PROGRAM_NS) + ERASE_NS);
	assert_int_equal(usage.die_busy_ns_most, 5 * (TRANSFER_NS + PROGRAM_NS) + ERASE_NS);
	assert_int_equal(usage.channel_busy_ns, 15 * TRANSFER_NS);
	assert_int_equal(usage.channel_busy_ns_most, 10 * TRANSFER_NS);
	assert_int_equal(nand_close(nand), 0);
}

static void test_without_a_model_of_time_there_is_no_usage_and_no_latency(void **state)
{
	static const struct nand_usage no_usage;
	static const struct histogram_snapshot no_latency;
	struct nand *nand = open_small();
	struct nand_usage usage;
	struct histogram_snapshot latency;

	(void)state;
	memset(&usage, 0xFF, sizeof(usage));
	memset(&latency, 0xFF, sizeof(latency));
	assert_int_equal(program_filled(nand, 0, 0), 0);
	nand_read_usage(nand, &usage);
	nand_latency(nand, NAND_PROGRAM, &latency);
	assert_memory_equal(&usage, &no_usage, sizeof(usage));
	assert_memory_equal(&latency, &no_latency, sizeof(latency));
	assert_int_equal(nand_close(nand), 0);
}

static void test_the_host_can_let_virtual_time_pass(void **state)
{
	struct nand *nand = open_dies(1, 1);

	(void)state;
	nand_advance_ns(nand, 12345);
	assert_int_equal(nand_now_ns(nand), 12345);
	assert_int_equal(program_filled(nand, 0, 0), 0);
	assert_int_equal(nand_now_ns(nand), 12345 + TRANSFER_NS + PROGRAM_NS);
	assert_int_equal(nand_close(nand), 0);
}

static void test_setting_timing_begins_again(void **state)
{
	struct nand *nand = open_dies(1, 1);
	struct histogram_snapshot latency;
	struct nand_timing timing;

	(void)state;
	assert_int_equal(program_filled(nand, 0, 0), 0);
	assert_int_equal(nand_timing_preset("none", &timing), 0);
	set_timing(nand, timing);
	assert_int_equal(program_filled(nand, 1, 0), 0);
	assert_int_equal(nand_now_ns(nand), 0);
	nand_latency(nand, NAND_PROGRAM, &latency);
	assert_int_equal(latency.count, 0);
	set_timing(nand, virtual_timing);
	assert_int_equal(read_one(nand, 0), READ_NS + TRANSFER_NS);
	assert_int_equal(nand_now_ns(nand), READ_NS + TRANSFER_NS);
	assert_int_equal(nand_close(nand), 0);
}

static void test_what_was_not_done_takes_no_time(void **state)
{
	struct nand *nand = open_dies(1, 1);

	(void)state;
	log_capture();
	assert_int_equal(program_filled(nand, 3, 0), -EPERM);
	assert_int_equal(read_filled(nand, 0, 0), -ENODATA);
	assert_int_equal(nand_erase(nand, NAND_CAUSE_USER, 64), -ERANGE);
	assert_int_equal(nand_now_ns(nand), 0);
	assert_int_equal(nand_close(nand), 0);
}

static uint64_t host_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void test_real_time_is_never_early(void **state)
{
	static const uint32_t read_ns[] = { 1000, 15000, 90000, 700000 };
	struct nand *nand = open_dies(1, 1);
	struct nand_timing timing = { .mode = NAND_TIMING_REAL };

	(void)state;
	assert_int_equal(program_filled(nand, 0, 0), 0);
	for (size_t i = 0; i < sizeof(read_ns) / sizeof(read_ns[0]); i++) {
		timing.page_read_ns = read_ns[i];
		set_timing(nand, timing);
		for (int repeat = 0; repeat < 20; repeat++) {
			uint64_t before = host_ns();

			read_one(nand, 0);
			assert_true(host_ns() - before >= read_ns[i]);
		}
	}
	assert_int_equal(nand_close(nand), 0);
}

/* No host reads a page in a nanosecond. */
static void test_calls_that_the_host_ended_late_are_counted(void **state)
{
	struct nand *nand = open_dies(1, 1);
	struct nand_timing timing = { .mode = NAND_TIMING_REAL, .page_read_ns = 1 };
	struct nand_usage usage;

	(void)state;
	assert_int_equal(program_filled(nand, 0, 0), 0);
	set_timing(nand, timing);
	for (int repeat = 0; repeat < 20; repeat++)
		read_one(nand, 0);
	nand_read_usage(nand, &usage);
	assert_int_equal(usage.late_calls, 20);
	assert_in_range(usage.late_ns_most, 1, UINT64_C(60) * 1000000000);
	set_timing(nand, timing);
	nand_read_usage(nand, &usage);
	assert_int_equal(usage.late_calls, 0);
	assert_int_equal(nand_close(nand), 0);
}

static void test_measured_time_is_the_hosts(void **state)
{
	struct nand *nand = open_dies(1, 1);
	struct nand_timing timing = virtual_timing;
	struct histogram_snapshot latency;
	uint64_t before, took;

	(void)state;
	timing.mode = NAND_TIMING_MEASURED;
	set_timing(nand, timing);
	before = host_ns();
	for (uint64_t page = 0; page < 16; page++)
		assert_int_equal(program_filled(nand, page, 0), 0);
	took = host_ns() - before;
	nand_latency(nand, NAND_PROGRAM, &latency);
	assert_int_equal(latency.count, 16);
	assert_true(latency.sum_ns > 0 && latency.sum_ns <= took);
	/* The host reads the pages of a call one behind the other. */
	before = host_ns();
	striped(nand, NAND_READ, 1, 16);
	took = host_ns() - before;
	nand_latency(nand, NAND_READ, &latency);
	assert_int_equal(latency.count, 16);
	assert_true(latency.sum_ns > 0 && latency.sum_ns <= took);
	assert_int_equal(nand_close(nand), 0);
}

static void test_presets_can_be_overridden_field_by_field(void **state)
{
	struct nand_timing timing;

	(void)state;
	assert_int_equal(
		nand_timing_parse("tlc,mode=virtual,read=60.5us,channels=3", &timing, NULL), 0);
	assert_int_equal(timing.mode, NAND_TIMING_VIRTUAL);
	assert_int_equal(timing.page_read_ns, 60500);
	assert_int_equal(timing.page_program_ns, 1125000);
	assert_int_equal(timing.block_erase_ns, 4500000);
	assert_int_equal(timing.transfer_ps_per_byte, 2500);
	assert_int_equal(timing.channels, 3);
	assert_int_equal(timing.dies_per_channel, 0);
	assert_int_equal(nand_timing_parse("none", &timing, NULL), 0);
	assert_int_equal(timing.mode, NAND_TIMING_OFF);
}

static void test_the_muninn_preset_is_one_access_at_a_time(void **state)
{
	struct nand *nand = open_dies(4, 2);
	struct nand_timing timing;

	(void)state;
	assert_int_equal(nand_timing_parse("muninn,mode=virtual", &timing, NULL), 0);
	set_timing(nand, timing);
	assert_int_equal(striped(nand, NAND_PROGRAM, 8, 4), 32 * 15000);
	assert_int_equal(striped(nand, NAND_READ, 8, 4), 32 * 15000);
	assert_int_equal(nand_erase(nand, NAND_CAUSE_USER, 0), 0);
	assert_int_equal(nand_now_ns(nand), 64 * 15000);
	assert_int_equal(nand_close(nand), 0);
}

static void test_settings_that_make_no_sense_say_what_is_wrong(void **state)
{
	static const struct {
		const char *text, *fragment;
	} cases[] = {
		{ "", "must begin with none, muninn, slc, mlc or tlc" },
		{ "qlc", "not with 'qlc'" },
		{ "slc,read", "read is ''" },
		{ "slc,read=5", "with ns, us, ms or s" },
		{ "slc,read=-5us", "read is '-5us'" },
		{ "slc,read=2s", "from 0ns to 1000000000ns" },
		{ "slc,mode=fast", "must be off, measured, real or virtual" },
		{ "slc,channels=65", "channels is '65', must be a number from 0 to 64" },
		{ "slc,write=5us", "there is no setting 'write'" },
		{ "slc,,read=5us", "there is no setting ''" },
	};
	struct nand_timing timing = virtual_timing;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct error_text error = { "" };

		assert_int_equal(nand_timing_parse(cases[i].text, &timing, &error), -EINVAL);
		if (!strstr(error.text, cases[i].fragment))
			fail_msg("\"%s\" is not in \"%s\"", cases[i].fragment, error.text);
	}
	assert_memory_equal(&timing, &virtual_timing, sizeof(timing));
}

static void test_timing_out_of_its_limits_is_refused_and_changes_nothing(void **state)
{
	struct nand *nand = open_dies(1, 1);
	struct nand_timing timing = virtual_timing, found;
	struct error_text error = { "" };

	(void)state;
	timing.block_erase_ns = NAND_TIMING_NS_MAX + 1;
	assert_int_equal(nand_set_timing(nand, &timing, &error), -EINVAL);
	assert_non_null(strstr(error.text, "block erase time in ns is 1000000001"));
	nand_get_timing(nand, &found);
	assert_int_equal(found.block_erase_ns, ERASE_NS);
	assert_int_equal(nand_close(nand), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_die_takes_the_sum_of_its_operations),
		cmocka_unit_test(test_a_vector_on_one_die_takes_the_sum_too),
		cmocka_unit_test(test_few_dies_of_a_channel_are_limited_by_the_dies),
		cmocka_unit_test(test_many_dies_of_a_channel_are_limited_by_the_channel),
		cmocka_unit_test(test_channels_do_not_disturb_one_another),
		cmocka_unit_test(test_a_channel_serves_whoever_is_ready_first),
		cmocka_unit_test(test_blocks_are_dealt_to_the_dies_in_turn),
		cmocka_unit_test(test_channels_and_dies_can_be_other_than_the_geometry_says),
		cmocka_unit_test(test_two_runs_with_one_seed_are_identical),
		cmocka_unit_test(test_a_channel_is_used_as_early_as_possible),
		cmocka_unit_test(test_transfers_without_a_gap_between_them_are_remembered_as_one),
		cmocka_unit_test(test_latencies_of_a_vector_include_waiting),
		cmocka_unit_test(test_usage_is_work_and_not_waiting),
		cmocka_unit_test(test_without_a_model_of_time_there_is_no_usage_and_no_latency),
		cmocka_unit_test(test_the_host_can_let_virtual_time_pass),
		cmocka_unit_test(test_setting_timing_begins_again),
		cmocka_unit_test(test_what_was_not_done_takes_no_time),
		cmocka_unit_test(test_real_time_is_never_early),
		cmocka_unit_test(test_calls_that_the_host_ended_late_are_counted),
		cmocka_unit_test(test_measured_time_is_the_hosts),
		cmocka_unit_test(test_presets_can_be_overridden_field_by_field),
		cmocka_unit_test(test_the_muninn_preset_is_one_access_at_a_time),
		cmocka_unit_test(test_settings_that_make_no_sense_say_what_is_wrong),
		cmocka_unit_test(test_timing_out_of_its_limits_is_refused_and_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
