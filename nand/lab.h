/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Where the paths of read, program and erase meet timing, faults and power cuts. Private to nand/.
 *
 * Everything is off until a nand_set_ or arm function is called. Until then a path pays one load of
 * nand->features. The state behind a feature is allocated when it is first wanted, and stays until
 * the handle is freed.
 */
#ifndef MUNINN_NAND_LAB_H
#define MUNINN_NAND_LAB_H

#include <stdbool.h>
#include <stdint.h>

#include "nand/private.h"
#include "nand/timing.h"

enum nand_feature {
	NAND_FEATURE_TIMING = 1 << 0,
	NAND_FEATURE_FAULTS = 1 << 1,
	NAND_FEATURE_POWER = 1 << 2,
};

static inline bool nand_feature_is_on(const struct nand *nand, enum nand_feature feature)
{
	return atomic_load_explicit(&nand->features, memory_order_acquire) & feature;
}

void nand_feature_switch(struct nand *nand, enum nand_feature feature, bool on);

/* ---- timing ---- */

/*
 * The time of one call with any number of pages, or of one asynchronous request. `begin` is called
 * when it is submitted; `page` for each page or block, in the order of submission (in virtual time:
 * before anything whose order is the host's); `end` waits until all of it is complete.
 *
 * An asynchronous request is complete when `completion_ns` is not later than nand_timed_now, and
 * calls `end` then. In virtual time: take the request with the least completion_ns, then call
 * `end`.
 */
struct nand_timed {
	uint64_t arrival_ns;
	uint64_t completion_ns; /* of the page that is complete last; on the clock of nand_timed_now
				 */
	uint32_t generation;    /* of the timing; 0: off */
};

void nand_timed_begin_slow(struct nand *nand, struct nand_timed *timed);
void nand_timed_page_slow(struct nand *nand, struct nand_timed *timed,
			  enum nand_operation operation, uint32_t block, uint64_t bytes);
void nand_timed_end_slow(struct nand *nand, const struct nand_timed *timed);
uint64_t nand_timed_now(struct nand *nand);

static inline void nand_timed_begin(struct nand *nand, struct nand_timed *timed)
{
	timed->generation = 0;
	if (nand_feature_is_on(nand, NAND_FEATURE_TIMING))
		nand_timed_begin_slow(nand, timed);
}

static inline void nand_timed_page(struct nand *nand, struct nand_timed *timed,
				   enum nand_operation operation, uint32_t block, uint64_t bytes)
{
	if (timed->generation)
		nand_timed_page_slow(nand, timed, operation, block, bytes);
}

static inline void nand_timed_end(struct nand *nand, const struct nand_timed *timed)
{
	if (timed->generation)
		nand_timed_end_slow(nand, timed);
}

/* Whether times are the host's, so that `page` is to be called when the page has been moved. */
bool nand_timed_measures(struct nand *nand);

/* Whether `end` waits for the time that the flash takes, or moves the virtual clock on instead. */
bool nand_timed_waits(struct nand *nand);
bool nand_timed_is_virtual(struct nand *nand);

void nand_timing_free(struct nand *nand);

/* ---- faults (faults.h) ---- */

struct nand_page_way;

/* To what the back end returned; `data` may be NULL. */
void nand_faults_read_slow(struct nand *nand, uint64_t page, const struct nand_page_way *way,
			   void *data, uint8_t *spare);
/* True: the operation fails, and its block is bad from now on. */
bool nand_faults_program_slow(struct nand *nand, uint64_t page, const struct nand_page_way *way);
bool nand_faults_erase_slow(struct nand *nand, uint32_t block,
			    const struct nand_block_word *before);

static inline void nand_faults_read(struct nand *nand, uint64_t page,
				    const struct nand_page_way *way, void *data, uint8_t *spare)
{
	if (nand_feature_is_on(nand, NAND_FEATURE_FAULTS))
		nand_faults_read_slow(nand, page, way, data, spare);
}

static inline bool nand_program_fails(struct nand *nand, uint64_t page,
				      const struct nand_page_way *way)
{
	return nand_feature_is_on(nand, NAND_FEATURE_FAULTS) &&
	       nand_faults_program_slow(nand, page, way);
}

static inline bool nand_erase_fails(struct nand *nand, uint32_t block,
				    const struct nand_block_word *before)
{
	return nand_feature_is_on(nand, NAND_FEATURE_FAULTS) &&
	       nand_faults_erase_slow(nand, block, before);
}

void nand_faults_free(struct nand *nand);

/* ---- power (power.h) ---- */

/*
 * Each is called when its operation is about to happen and nothing else can refuse it. 0: go on.
 * -EIO: the power is off; or it fails now, and what is left of the operation is there.
 */
int nand_power_read_slow(struct nand *nand, uint64_t page);
int nand_power_program_slow(struct nand *nand, const struct nand_page_io *io,
			    const struct nand_page_way *way);
int nand_power_erase_slow(struct nand *nand, uint32_t block, const struct nand_block_word *before);
int nand_power_sync_slow(struct nand *nand, const char *what);

static inline int nand_power_read(struct nand *nand, uint64_t page)
{
	return nand_feature_is_on(nand, NAND_FEATURE_POWER) ? nand_power_read_slow(nand, page) : 0;
}

static inline int nand_power_program(struct nand *nand, const struct nand_page_io *io,
				     const struct nand_page_way *way)
{
	return nand_feature_is_on(nand, NAND_FEATURE_POWER) ? nand_power_program_slow(nand, io, way)
							    : 0;
}

static inline int nand_power_erase(struct nand *nand, uint32_t block,
				   const struct nand_block_word *before)
{
	return nand_feature_is_on(nand, NAND_FEATURE_POWER)
		       ? nand_power_erase_slow(nand, block, before)
		       : 0;
}

static inline int nand_power_sync(struct nand *nand, const char *what)
{
	return nand_feature_is_on(nand, NAND_FEATURE_POWER) ? nand_power_sync_slow(nand, what) : 0;
}

bool nand_power_is_off_slow(struct nand *nand);

static inline bool nand_power_is_off(struct nand *nand)
{
	return nand_feature_is_on(nand, NAND_FEATURE_POWER) && nand_power_is_off_slow(nand);
}

/*
 * A sync of the NVRAM has been done. Only while NAND_FEATURE_POWER is on. 0, or -EIO: the power
 * went off meanwhile, so that nobody may rely on the sync; -errno.
 */
int nand_power_nvram_synced(struct nand *nand, uint64_t offset, uint64_t length);

/*
 * Arms what nand_leave_power_cut left, at the end of opening for writing. 0, or -errno: do not
 * open.
 */
int nand_take_left_power_cut(struct nand *nand, struct error_text *error);

void nand_power_free(struct nand *nand);

/* ---- all of it ---- */

void nand_lab_free(struct nand *nand);

#endif
