/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Which operations fail, and which bits are wrong: drawn from seed, place and erase count. */
#include "nand/faults.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/log.h"
#include "nand/lab.h"
#include "nand/page.h"

#define CODEWORD_BYTES_MAX 4096
#define ECC_BITS_MAX       1000

/* More than half of the bits wrong is no worse than half. */
#define BIT_ERROR_RATE_MAX 0.5

/* The spare area is a codeword of its own, numbered behind any that data can have. */
#define SPARE_CODEWORD UINT32_MAX

_Static_assert(NAND_SPARE_BYTES_MAX <= CODEWORD_BYTES_MAX, "the spare area is one codeword");

struct faults_state {
	pthread_rwlock_t lock; /* writers: nand_set_faults; guards `faults` */
	struct nand_faults faults;
	_Atomic uint64_t programs, erases; /* since nand_set_faults */
	_Atomic uint32_t hours_now;
	_Atomic uint32_t *hours_programmed; /* of each block: when its first page was programmed */

	_Atomic uint64_t program_failures, erase_failures, factory_bad;
	_Atomic uint64_t raw_bit_errors, corrected_bits;
	_Atomic uint64_t corrected_codewords, uncorrectable_codewords;
};

static void add(_Atomic uint64_t *counter, uint64_t more)
{
	atomic_fetch_add_explicit(counter, more, memory_order_relaxed);
}

static bool is_on(const struct nand_faults *faults, enum nand_fault fault)
{
	return faults->on >> fault & 1;
}

/* ---- drawing ---- */

/*
 * The finalizer of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): every bit of the result depends on
 * every bit given.
 */
static uint64_t mix(uint64_t value)
{
	value += 0x9E3779B97F4A7C15U;
	value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9U;
	value = (value ^ value >> 27) * 0x94D049BB133111EBU;
	return value ^ value >> 31;
}

static uint64_t draw(uint64_t seed, enum nand_fault fault, uint64_t place, uint32_t erases,
		     uint32_t part)
{
	uint64_t value = mix(seed ^ mix((uint64_t)fault + 1));

	value = mix(value ^ place);
	return mix(value ^ ((uint64_t)erases << 32 | part));
}

/* Uniform in (0, 1). */
static double unit(uint64_t drawn)
{
	return ((double)(drawn >> 12) + 0.5) * 0x1p-52;
}

/* ---- bit errors and their correction ---- */

static double bit_error_rate(const struct faults_state *state, uint32_t block, uint32_t erases)
{
	const struct nand_faults *faults = &state->faults;
	uint32_t hours =
		atomic_load(&state->hours_now) -
		atomic_load_explicit(&state->hours_programmed[block], memory_order_relaxed);
	double kilocycles = erases / 1000.0;
	double rate = faults->base + faults->per_kilohour * (hours / 1000.0) * (1 + kilocycles);

	if (faults->per_kilocycle > 0)
		rate += faults->per_kilocycle * pow(kilocycles, faults->cycle_exponent);
	return rate < BIT_ERROR_RATE_MAX ? rate : BIT_ERROR_RATE_MAX;
}

/* Corrects the codeword, or leaves `errors` (a mask of the wrong bits) in it. */
static void correct_codeword(struct faults_state *state, uint8_t *bytes, uint32_t length,
			     const uint8_t *errors)
{
	uint32_t wrong = 0;

	for (uint32_t i = 0; i < length; i++) {
		wrong += (uint32_t)__builtin_popcount(errors[i]);
		bytes[i] ^= errors[i];
	}
	add(&state->raw_bit_errors, wrong);
	if (wrong > state->faults.ecc_bits) {
		add(&state->uncorrectable_codewords, 1);
		return;
	}
	for (uint32_t i = 0; i < length; i++)
		bytes[i] ^= errors[i];
	add(&state->corrected_bits, wrong);
	add(&state->corrected_codewords, 1);
}

/*
 * Puts errors into one codeword. Wrong bits are the first arrivals of a Poisson process with
 * exponential gaps, each at a place of its own chance: a bit is spared with probability exp(-mean /
 * bits), which is 1 - rate for mean = -bits * log(1 - rate). A higher rate lets more of the same
 * arrivals in.
 */
static void strike_codeword(struct faults_state *state, uint8_t *bytes, uint32_t length,
			    double rate, uint64_t drawn)
{
	uint8_t errors[CODEWORD_BYTES_MAX];
	uint32_t bits = length * 8;
	double left = -log1p(-rate) * bits + log(unit(drawn));

	if (left < 0)
		return;
	memset(errors, 0, length);
	while (left >= 0) {
		uint32_t bit = (uint32_t)(((drawn = mix(drawn)) >> 32) * bits >> 32);

		errors[bit / 8] |= (uint8_t)(1U << bit % 8);
		left += log(unit(drawn = mix(drawn)));
	}
	correct_codeword(state, bytes, length, errors);
}

/* One codeword with more wrong bits than the ECC corrects, in a row from a drawn place on. */
static void ruin_codeword(struct faults_state *state, uint8_t *bytes, uint32_t length,
			  uint64_t drawn)
{
	uint8_t errors[CODEWORD_BYTES_MAX] = { 0 };
	uint32_t bits = length * 8;
	uint32_t count = (uint32_t)min_u64(state->faults.ecc_bits + 1ULL, bits);

	for (uint32_t i = 0; i < count; i++) {
		uint32_t bit = (uint32_t)((drawn + i) % bits);

		errors[bit / 8] |= (uint8_t)(1U << bit % 8);
	}
	correct_codeword(state, bytes, length, errors);
}

static void strike_page(struct faults_state *state, const struct nand *nand, uint64_t page,
			const struct nand_page_way *way, uint8_t *data, uint8_t *spare)
{
	const struct nand_faults *faults = &state->faults;
	const struct nand_geometry *geometry = &nand->geometry;
	double rate = bit_error_rate(state, way->block, way->word.erase_count);
	uint32_t bytes = (uint32_t)min_u64(faults->ecc_codeword_bytes, geometry->page_bytes);

	if (rate <= 0)
		return;
	for (uint32_t at = 0; data && at < geometry->page_bytes; at += bytes)
		strike_codeword(state, data + at, bytes, rate,
				draw(faults->seed, NAND_FAULT_BIT_ERRORS, page,
				     way->word.erase_count, at / bytes));
	strike_codeword(state, spare, geometry->spare_bytes, rate,
			draw(faults->seed, NAND_FAULT_BIT_ERRORS, page, way->word.erase_count,
			     SPARE_CODEWORD));
}

void nand_faults_read_slow(struct nand *nand, uint64_t page, const struct nand_page_way *way,
			   void *data, uint8_t *spare)
{
	struct faults_state *state = nand->faults;
	const struct nand_faults *faults = &state->faults;

	pthread_rwlock_rdlock(&state->lock);
	if (is_on(faults, NAND_FAULT_BIT_ERRORS))
		strike_page(state, nand, page, way, data, spare);
	if (is_on(faults, NAND_FAULT_UNREADABLE)) {
		uint64_t drawn =
			draw(faults->seed, NAND_FAULT_UNREADABLE, page, way->word.erase_count, 0);

		if (unit(drawn) < faults->unreadable)
			ruin_codeword(state, spare, nand->geometry.spare_bytes, mix(drawn));
	}
	pthread_rwlock_unlock(&state->lock);
}

/* ---- failures of programs and erases ---- */

/* Whether the fault names this block, if it has never been used. */
static bool is_factory_bad(const struct nand_faults *faults, uint32_t block,
			   const struct nand_block_word *word)
{
	return word->next_page == 0 && word->erase_count == 0 &&
	       unit(draw(faults->seed, NAND_FAULT_FACTORY_BAD, block, 0, 0)) < faults->factory_bad;
}

/*
 * Who has formatted a device has looked which blocks are bad, and may have plans for any other. So
 * a bad one shows only when it is first used, as with a test at the factory that overlooked it.
 */
static bool shows_factory_bad(const struct nand *nand, const struct nand_faults *faults,
			      uint32_t block, const struct nand_block_word *word)
{
	return is_on(faults, NAND_FAULT_FACTORY_BAD) && nand->contents[0] &&
	       is_factory_bad(faults, block, word);
}

bool nand_faults_program_slow(struct nand *nand, uint64_t page, const struct nand_page_way *way)
{
	struct faults_state *state = nand->faults;
	const struct nand_faults *faults = &state->faults;
	struct nand_block_word word = way->word;
	uint64_t number = atomic_fetch_add(&state->programs, 1) + 1;
	bool fails, factory_bad;

	if (way->index == 0)
		atomic_store_explicit(&state->hours_programmed[way->block],
				      atomic_load(&state->hours_now), memory_order_relaxed);
	pthread_rwlock_rdlock(&state->lock);
	fails = is_on(faults, NAND_FAULT_PROGRAM) &&
		(number == faults->program_fails_at ||
		 unit(draw(faults->seed, NAND_FAULT_PROGRAM, page, word.erase_count, 0)) <
			 faults->program_failure);
	factory_bad = shows_factory_bad(nand, faults, way->block, &word);
	pthread_rwlock_unlock(&state->lock);
	if (!fails && !factory_bad)
		return false;
	add(fails ? &state->program_failures : &state->factory_bad, 1);
	word.bad = true;
	nand_word_store(nand, way->block, &word);
	log_line(LOG_LEVEL_WARNING,
		 "%s: injected fault: page %" PRIu64
		 " could not be programmed, block %u is bad now",
		 nand->path, page, way->block);
	return true;
}

/* How many erases this block stands. */
static double endurance_of(const struct nand_faults *faults, uint32_t block)
{
	double place = 2 * unit(draw(faults->seed, NAND_FAULT_ENDURANCE, block, 0, 0)) - 1;

	return faults->endurance * (1 + place * faults->endurance_spread);
}

bool nand_faults_erase_slow(struct nand *nand, uint32_t block, const struct nand_block_word *before)
{
	struct faults_state *state = nand->faults;
	const struct nand_faults *faults = &state->faults;
	struct nand_block_word word = *before;
	uint64_t number = atomic_fetch_add(&state->erases, 1) + 1;
	bool fails, worn_out, factory_bad;

	pthread_rwlock_rdlock(&state->lock);
	fails = is_on(faults, NAND_FAULT_ERASE) &&
		(number == faults->erase_fails_at ||
		 unit(draw(faults->seed, NAND_FAULT_ERASE, block, word.erase_count, 0)) <
			 faults->erase_failure);
	worn_out = is_on(faults, NAND_FAULT_ENDURANCE) &&
		   word.erase_count + 1.0 > endurance_of(faults, block);
	factory_bad = shows_factory_bad(nand, faults, block, &word);
	pthread_rwlock_unlock(&state->lock);
	if (!fails && !worn_out && !factory_bad)
		return false;
	add(fails || worn_out ? &state->erase_failures : &state->factory_bad, 1);
	word.bad = true;
	word.next_page = 0;
	nand_word_store(nand, block, &word);
	log_line(
		LOG_LEVEL_WARNING,
		"%s: injected fault: block %u could not be erased%s after %u erases and is bad now",
		nand->path, block, worn_out ? ", worn out" : "", word.erase_count);
	return true;
}

/* ---- setting ---- */

static void mark_factory_bad(struct nand *nand, struct faults_state *state,
			     const struct nand_faults *faults)
{
	for (uint32_t block = 0; block < nand->geometry.blocks; block++) {
		struct nand_block_word word;

		if (!nand_word_load(nand, block, &word) || word.bad ||
		    !is_factory_bad(faults, block, &word) || nand_pages_on_the_way(nand, block))
			continue;
		nand_mark_bad(nand, block);
		add(&state->factory_bad, 1);
	}
}

/* Under nand->lab_lock. */
static struct faults_state *faults_state(struct nand *nand)
{
	struct faults_state *state = nand->faults;

	if (state)
		return state;
	state = calloc(1, sizeof(*state));
	if (!state)
		return NULL;
	state->hours_programmed = calloc(nand->geometry.blocks, sizeof(*state->hours_programmed));
	if (!state->hours_programmed) {
		free(state);
		return NULL;
	}
	pthread_rwlock_init(&state->lock, NULL);
	nand->faults = state;
	return state;
}

static int check_faults(const struct nand *nand, const struct nand_faults *faults,
			struct error_text *error)
{
	const struct {
		const char *name;
		double value, most;
	} limits[] = {
		{ "share of factory bad blocks", faults->factory_bad, 1 },
		{ "probability of a program failure", faults->program_failure, 1 },
		{ "probability of an erase failure", faults->erase_failure, 1 },
		{ "spread of the endurance", faults->endurance_spread, 1 },
		{ "bit error rate", faults->base, BIT_ERROR_RATE_MAX },
		{ "bit error rate per 1000 erases", faults->per_kilocycle, 1e9 },
		{ "exponent of the erases", faults->cycle_exponent, 10 },
		{ "bit error rate per 1000 hours", faults->per_kilohour, 1e9 },
		{ "share of unreadable pages", faults->unreadable, 1 },
		{ "number of bits that the ECC corrects", faults->ecc_bits, ECC_BITS_MAX },
	};
	uint32_t codeword = faults->ecc_codeword_bytes;

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		if (!(limits[i].value >= 0 && limits[i].value <= limits[i].most))
			return error_set(error, -EINVAL,
					 "bad NAND faults: the %s is %g, must be 0 to %g",
					 limits[i].name, limits[i].value, limits[i].most);
	if (codeword < 64 || codeword > CODEWORD_BYTES_MAX || !is_power_of_two(codeword))
		return error_set(error, -EINVAL,
				 "bad NAND faults: ECC codewords of %u bytes, must be a power of "
				 "two from 64 to %d",
				 codeword, CODEWORD_BYTES_MAX);
	if (faults->on >> NAND_FAULTS)
		return error_set(error, -EINVAL, "bad NAND faults: there is no fault number %d",
				 31 - __builtin_clz(faults->on));
	if (nand->read_only && faults->on)
		return error_set(error, -EROFS, "%s is open for reading only: no faults there",
				 nand->path);
	return 0;
}

int nand_set_faults(struct nand *nand, const struct nand_faults *faults, struct error_text *error)
{
	struct nand_faults wanted = faults ? *faults : nand_faults_default();
	struct faults_state *state;
	int result = check_faults(nand, &wanted, error);

	if (result < 0)
		return result;
	pthread_mutex_lock(&nand->lab_lock);
	state = faults_state(nand);
	if (state) {
		pthread_rwlock_wrlock(&state->lock);
		state->faults = wanted;
		atomic_store(&state->programs, 0);
		atomic_store(&state->erases, 0);
		pthread_rwlock_unlock(&state->lock);
		nand_feature_switch(nand, NAND_FEATURE_FAULTS, true);
		if (is_on(&wanted, NAND_FAULT_FACTORY_BAD) && !nand->contents[0])
			mark_factory_bad(nand, state, &wanted);
	} else {
		result = error_set(error, -ENOMEM, "no memory for the faults of %s", nand->path);
	}
	pthread_mutex_unlock(&nand->lab_lock);
	return result;
}

/* NULL: faults were never set. */
static struct faults_state *existing_state(struct nand *nand)
{
	struct faults_state *state;

	pthread_mutex_lock(&nand->lab_lock);
	state = nand->faults;
	pthread_mutex_unlock(&nand->lab_lock);
	return state;
}

void nand_get_faults(struct nand *nand, struct nand_faults *faults)
{
	struct faults_state *state = existing_state(nand);

	*faults = nand_faults_default();
	if (!state)
		return;
	pthread_rwlock_rdlock(&state->lock);
	*faults = state->faults;
	pthread_rwlock_unlock(&state->lock);
}

int nand_age(struct nand *nand, uint32_t hours)
{
	struct faults_state *state = existing_state(nand);

	if (!state)
		return -EINVAL;
	atomic_fetch_add(&state->hours_now, hours);
	return 0;
}

void nand_read_fault_counters(struct nand *nand, struct nand_fault_counters *counters)
{
	struct faults_state *state = existing_state(nand);

	*counters = (struct nand_fault_counters){ 0 };
	if (!state)
		return;
	counters->program_failures = atomic_load(&state->program_failures);
	counters->erase_failures = atomic_load(&state->erase_failures);
	counters->factory_bad = atomic_load(&state->factory_bad);
	counters->raw_bit_errors = atomic_load(&state->raw_bit_errors);
	counters->corrected_bits = atomic_load(&state->corrected_bits);
	counters->corrected_codewords = atomic_load(&state->corrected_codewords);
	counters->uncorrectable_codewords = atomic_load(&state->uncorrectable_codewords);
}

void nand_faults_free(struct nand *nand)
{
	if (!nand->faults)
		return;
	pthread_rwlock_destroy(&nand->faults->lock);
	free(nand->faults->hours_programmed);
	free(nand->faults);
	nand->faults = NULL;
}
