/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The model of dies and channels, its two clocks, and waiting. */
#include "nand/timing.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "common/bytes.h"
#include "nand/lab.h"

/*
 * Transfers that are planned on a channel and not over yet, in order, neighbours merged. When there
 * are more, the earliest gap is given up. Results are then a little slower, and still the same in
 * every run.
 */
#define RESERVATIONS_MAX 512

#define DIES_MAX     (64 * 64)
#define CHANNELS_MAX 64

/*
 * Limits of how long before its time a sleep ends, so that the rest is waited out awake. Between
 * them it is as long as sleeps were seen to be late.
 */
#define AWAKE_NS_MIN 2000
#define AWAKE_NS_MAX 200000

struct interval {
	uint64_t from_ns, to_ns;
};

struct channel {
	uint64_t busy_ns;
	uint32_t count;
	struct interval reserved[RESERVATIONS_MAX];
};

struct die {
	uint64_t free_ns; /* done with everything submitted so far */
	uint64_t busy_ns;
};

struct timing_state {
	pthread_mutex_t lock; /* all below, but for the atomics */
	struct nand_timing timing;
	uint32_t generation; /* counts nand_set_timing, never 0 */
	uint32_t dies, channels;
	struct die die[DIES_MAX];
	struct channel channel[CHANNELS_MAX];
	uint64_t base_ns; /* the host's clock at nand_set_timing */
	uint64_t late_calls, late_ns_most;
	_Atomic uint64_t virtual_ns;
	_Atomic uint32_t mode; /* enum nand_timing_mode */
	_Atomic uint32_t awake_ns;
	struct histogram latency[NAND_OPERATIONS];
};

static uint64_t host_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* ---- the model ---- */

/* Forgets what is over, and makes space for one more. */
static void tidy(struct channel *channel, uint64_t now_ns)
{
	uint32_t over = 0;

	while (over < channel->count && channel->reserved[over].to_ns <= now_ns)
		over++;
	if (over == 0 && channel->count == RESERVATIONS_MAX) {
		channel->reserved[1].from_ns = channel->reserved[0].from_ns;
		over = 1;
	}
	channel->count -= over;
	memmove(channel->reserved, channel->reserved + over,
		channel->count * sizeof(channel->reserved[0]));
}

/*
 * Promises the channel for `length_ns`, as early as possible from `ready_ns` on. Returns the
 * beginning.
 */
static uint64_t reserve(struct channel *channel, uint64_t now_ns, uint64_t ready_ns,
			uint64_t length_ns)
{
	struct interval *reserved = channel->reserved;
	uint64_t from_ns = ready_ns;
	uint32_t at = 0;
	bool joins_before, joins_after;

	if (length_ns == 0)
		return ready_ns;
	tidy(channel, now_ns);
	while (at < channel->count && reserved[at].from_ns < from_ns + length_ns) {
		from_ns = max_u64(from_ns, reserved[at].to_ns);
		at++;
	}
	channel->busy_ns += length_ns;
	joins_before = at > 0 && reserved[at - 1].to_ns == from_ns;
	joins_after = at < channel->count && reserved[at].from_ns == from_ns + length_ns;
	if (joins_before && joins_after) {
		reserved[at - 1].to_ns = reserved[at].to_ns;
		channel->count--;
		memmove(reserved + at, reserved + at + 1,
			(channel->count - at) * sizeof(*reserved));
	} else if (joins_before) {
		reserved[at - 1].to_ns += length_ns;
	} else if (joins_after) {
		reserved[at].from_ns = from_ns;
	} else {
		memmove(reserved + at + 1, reserved + at,
			(channel->count - at) * sizeof(*reserved));
		reserved[at] = (struct interval){ from_ns, from_ns + length_ns };
		channel->count++;
	}
	assert(channel->count <= RESERVATIONS_MAX);
	return from_ns;
}

/*
 * Puts an operation that arrives at `arrival_ns` on its die and channel. Returns when it is
 * complete.
 */
static uint64_t schedule(struct timing_state *state, enum nand_operation operation, uint32_t block,
			 uint64_t bytes, uint64_t arrival_ns)
{
	const struct nand_timing *timing = &state->timing;
	uint32_t number = block % state->dies;
	struct die *die = &state->die[number];
	struct channel *channel = &state->channel[number % state->channels];
	uint64_t transfer_ns = divide_up(bytes * timing->transfer_ps_per_byte, 1000);
	uint64_t start_ns = max_u64(arrival_ns, die->free_ns);

	switch (operation) {
	case NAND_READ:
		die->busy_ns += timing->page_read_ns + transfer_ns;
		start_ns =
			reserve(channel, arrival_ns, start_ns + timing->page_read_ns, transfer_ns);
		die->free_ns = start_ns + transfer_ns;
		break;
	case NAND_PROGRAM:
		die->busy_ns += transfer_ns + timing->page_program_ns;
		start_ns = reserve(channel, arrival_ns, start_ns, transfer_ns);
		die->free_ns = start_ns + transfer_ns + timing->page_program_ns;
		break;
	default:
		die->busy_ns += timing->block_erase_ns;
		die->free_ns = start_ns + timing->block_erase_ns;
		break;
	}
	return die->free_ns;
}

/* ---- waiting ---- */

/*
 * Makes the calling thread's sleeps precise, once. By default they end microseconds late, which
 * would make short waits useless.
 */
static void want_precise_sleeps(void)
{
	static _Thread_local bool done;

	if (!done)
		prctl(PR_SET_TIMERSLACK, 1UL);
	done = true;
}

/*
 * Sleeps until shortly before the time, then watches the clock. How shortly is learnt from how late
 * sleeps end.
 */
static void wait_until(struct timing_state *state, uint64_t until_ns)
{
	uint64_t awake_ns = atomic_load_explicit(&state->awake_ns, memory_order_relaxed);
	uint64_t now_ns = host_ns();

	if (now_ns + awake_ns < until_ns) {
		uint64_t wake_ns = until_ns - awake_ns, late_ns;
		struct timespec wake = { (time_t)(wake_ns / 1000000000),
					 (long)(wake_ns % 1000000000) };

		want_precise_sleeps();
		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &wake, NULL) == EINTR)
			;
		late_ns = host_ns() - wake_ns;
		/* Up at once, down slowly. */
		awake_ns = late_ns > awake_ns ? late_ns : awake_ns - (awake_ns - late_ns) / 16;
		awake_ns = min_u64(max_u64(awake_ns, AWAKE_NS_MIN), AWAKE_NS_MAX);
		atomic_store_explicit(&state->awake_ns, (uint32_t)awake_ns, memory_order_relaxed);
	}
	while (host_ns() < until_ns)
		;
}

/* ---- what the paths call ---- */

uint64_t nand_timed_now(struct nand *nand)
{
	struct timing_state *state = nand->timing;

	if (!state)
		return 0;
	if (atomic_load(&state->mode) == NAND_TIMING_VIRTUAL)
		return atomic_load(&state->virtual_ns);
	return host_ns();
}

bool nand_timed_measures(struct nand *nand)
{
	return nand_feature_is_on(nand, NAND_FEATURE_TIMING) &&
	       atomic_load(&nand->timing->mode) == NAND_TIMING_MEASURED;
}

bool nand_timed_waits(struct nand *nand)
{
	return nand_feature_is_on(nand, NAND_FEATURE_TIMING) &&
	       atomic_load(&nand->timing->mode) == NAND_TIMING_REAL;
}

bool nand_timed_is_virtual(struct nand *nand)
{
	return nand_feature_is_on(nand, NAND_FEATURE_TIMING) &&
	       atomic_load(&nand->timing->mode) == NAND_TIMING_VIRTUAL;
}

void nand_timed_begin_slow(struct nand *nand, struct nand_timed *timed)
{
	struct timing_state *state = nand->timing;

	pthread_mutex_lock(&state->lock);
	timed->generation = state->generation;
	pthread_mutex_unlock(&state->lock);
	timed->arrival_ns = timed->completion_ns = nand_timed_now(nand);
}

void nand_timed_page_slow(struct nand *nand, struct nand_timed *timed,
			  enum nand_operation operation, uint32_t block, uint64_t bytes)
{
	struct timing_state *state = nand->timing;
	uint64_t complete_ns, from_ns = timed->arrival_ns;

	pthread_mutex_lock(&state->lock);
	if (timed->generation != state->generation) {
		/* Timing was changed in the middle of the call. */
		pthread_mutex_unlock(&state->lock);
		return;
	}
	if (state->timing.mode == NAND_TIMING_MEASURED) {
		from_ns = timed->completion_ns; /* the page before: the host does one after the
						   other */
		complete_ns = host_ns();
	} else {
		complete_ns = schedule(state, operation, block, bytes, timed->arrival_ns);
	}
	histogram_record(&state->latency[operation], complete_ns - from_ns);
	pthread_mutex_unlock(&state->lock);
	timed->completion_ns = max_u64(timed->completion_ns, complete_ns);
}

static void note_late(struct timing_state *state, uint64_t late_ns)
{
	pthread_mutex_lock(&state->lock);
	state->late_calls++;
	state->late_ns_most = max_u64(state->late_ns_most, late_ns);
	pthread_mutex_unlock(&state->lock);
}

void nand_timed_end_slow(struct nand *nand, const struct nand_timed *timed)
{
	struct timing_state *state = nand->timing;
	uint64_t now_ns, seen;

	if (timed->completion_ns == timed->arrival_ns)
		return;
	switch (atomic_load(&state->mode)) {
	case NAND_TIMING_VIRTUAL:
		seen = atomic_load(&state->virtual_ns);
		while (seen < timed->completion_ns &&
		       !atomic_compare_exchange_weak(&state->virtual_ns, &seen,
						     timed->completion_ns))
			;
		break;
	case NAND_TIMING_REAL:
		now_ns = host_ns();
		if (now_ns > timed->completion_ns)
			note_late(state, now_ns - timed->completion_ns);
		else
			wait_until(state, timed->completion_ns);
		break;
	default:
		break;
	}
}

/* ---- setting and reading ---- */

static int check_timing(const struct nand_timing *timing, struct error_text *error)
{
	const struct {
		const char *name;
		uint32_t value, most;
	} limits[] = {
		{ "page read time in ns", timing->page_read_ns, NAND_TIMING_NS_MAX },
		{ "page program time in ns", timing->page_program_ns, NAND_TIMING_NS_MAX },
		{ "block erase time in ns", timing->block_erase_ns, NAND_TIMING_NS_MAX },
		{ "transfer time in ps per byte", timing->transfer_ps_per_byte, 1000000 },
		{ "number of channels", timing->channels, CHANNELS_MAX },
		{ "number of dies per channel", timing->dies_per_channel, 64 },
		{ "mode", timing->mode, NAND_TIMING_VIRTUAL },
	};

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		if (limits[i].value > limits[i].most)
			return error_set(error, -EINVAL,
					 "bad NAND timing: the %s is %u, must be at most %u",
					 limits[i].name, limits[i].value, limits[i].most);
	return 0;
}

/*
 * The state, allocated at the first use and then there until the handle goes. Under nand->lab_lock.
 */
static struct timing_state *timing_state(struct nand *nand)
{
	if (!nand->timing) {
		struct timing_state *state = calloc(1, sizeof(*state));

		if (!state)
			return NULL;
		pthread_mutex_init(&state->lock, NULL);
		nand->timing = state;
	}
	return nand->timing;
}

static void restart(struct timing_state *state, const struct nand_geometry *geometry,
		    const struct nand_timing *timing)
{
	uint32_t dies_per_channel = timing->dies_per_channel ? timing->dies_per_channel
							     : geometry->dies_per_channel;

	pthread_mutex_lock(&state->lock);
	state->timing = *timing;
	state->generation = state->generation == UINT32_MAX ? 1 : state->generation + 1;
	state->channels = timing->channels ? timing->channels : geometry->channels;
	state->dies = state->channels * dies_per_channel;
	memset(state->die, 0, sizeof(state->die));
	memset(state->channel, 0, sizeof(state->channel));
	state->late_calls = state->late_ns_most = 0;
	state->base_ns = host_ns();
	atomic_store(&state->virtual_ns, 0);
	atomic_store(&state->mode, timing->mode);
	for (int operation = 0; operation < NAND_OPERATIONS; operation++)
		histogram_clear(&state->latency[operation]);
	pthread_mutex_unlock(&state->lock);
}

int nand_set_timing(struct nand *nand, const struct nand_timing *timing, struct error_text *error)
{
	struct timing_state *state;
	int result = check_timing(timing, error);

	if (result < 0)
		return result;
	pthread_mutex_lock(&nand->lab_lock);
	state = timing_state(nand);
	if (state) {
		restart(state, &nand->geometry, timing);
		nand_feature_switch(nand, NAND_FEATURE_TIMING, timing->mode != NAND_TIMING_OFF);
	} else {
		result = error_set(error, -ENOMEM, "no memory for the timing of %s", nand->path);
	}
	pthread_mutex_unlock(&nand->lab_lock);
	return result;
}

/* NULL: timing was never set. */
static struct timing_state *existing_state(struct nand *nand)
{
	struct timing_state *state;

	pthread_mutex_lock(&nand->lab_lock);
	state = nand->timing;
	pthread_mutex_unlock(&nand->lab_lock);
	return state;
}

void nand_get_timing(struct nand *nand, struct nand_timing *timing)
{
	struct timing_state *state = existing_state(nand);

	*timing = (struct nand_timing){ 0 };
	if (!state)
		return;
	pthread_mutex_lock(&state->lock);
	*timing = state->timing;
	pthread_mutex_unlock(&state->lock);
}

uint64_t nand_now_ns(struct nand *nand)
{
	struct timing_state *state = existing_state(nand);
	uint64_t base_ns;

	if (!state || atomic_load(&state->mode) == NAND_TIMING_OFF)
		return 0;
	if (atomic_load(&state->mode) == NAND_TIMING_VIRTUAL)
		return atomic_load(&state->virtual_ns);
	pthread_mutex_lock(&state->lock);
	base_ns = state->base_ns;
	pthread_mutex_unlock(&state->lock);
	return host_ns() - base_ns;
}

void nand_advance_ns(struct nand *nand, uint64_t ns)
{
	struct timing_state *state = existing_state(nand);

	if (state && atomic_load(&state->mode) == NAND_TIMING_VIRTUAL)
		atomic_fetch_add(&state->virtual_ns, ns);
}

void nand_latency(struct nand *nand, enum nand_operation operation,
		  struct histogram_snapshot *snapshot)
{
	struct timing_state *state = existing_state(nand);

	assert(operation < NAND_OPERATIONS);
	*snapshot = (struct histogram_snapshot){ 0 };
	if (state)
		histogram_read(&state->latency[operation], snapshot);
}

void nand_read_usage(struct nand *nand, struct nand_usage *usage)
{
	struct timing_state *state = existing_state(nand);

	*usage = (struct nand_usage){ 0 };
	if (!state)
		return;
	pthread_mutex_lock(&state->lock);
	usage->dies = state->dies;
	usage->channels = state->channels;
	usage->late_calls = state->late_calls;
	usage->late_ns_most = state->late_ns_most;
	for (uint32_t i = 0; i < state->dies; i++) {
		usage->die_busy_ns += state->die[i].busy_ns;
		usage->die_busy_ns_most = max_u64(usage->die_busy_ns_most, state->die[i].busy_ns);
	}
	for (uint32_t i = 0; i < state->channels; i++) {
		usage->channel_busy_ns += state->channel[i].busy_ns;
		usage->channel_busy_ns_most =
			max_u64(usage->channel_busy_ns_most, state->channel[i].busy_ns);
	}
	pthread_mutex_unlock(&state->lock);
}

void nand_timing_free(struct nand *nand)
{
	if (nand->timing)
		pthread_mutex_destroy(&nand->timing->lock);
	free(nand->timing);
	nand->timing = NULL;
}
