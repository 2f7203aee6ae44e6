/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * How long flash takes. A model of dies and channels decides when each operation begins and ends;
 * the device then waits (real time), or advances a clock of its own (virtual time), which depends
 * on the operations alone.
 *
 *   read     the die is busy for page_read_ns, then die and channel for the transfer
 *   program  die and channel are busy for the transfer, then the die for page_program_ns
 *   erase    the die is busy for block_erase_ns
 *
 * Block b is on die b mod (channels * dies_per_channel), that die on channel die mod channels. A
 * die does one thing at a time, in the order of submission; a channel carries one transfer at a
 * time, each as early as there is a gap for it. The pages of one vectored call are submitted
 * together: the call ends when the last page does. A transfer is of what the counters count: data
 * where wanted, and the whole spare area.
 *
 * In virtual time, concurrency is vectors and asynchronous requests, not threads: calls of several
 * threads follow one another, in an order that is the host's.
 */
#ifndef MUNINN_NAND_TIMING_H
#define MUNINN_NAND_TIMING_H

#include <stdint.h>

#include "common/error.h"
#include "nand/histogram.h"

struct nand;

enum nand_timing_mode {
	NAND_TIMING_OFF,      /* as fast as the host can, no histograms, no cost */
	NAND_TIMING_MEASURED, /* the same, with the host's own time in the histograms */
	NAND_TIMING_REAL,     /* waits until the modelled time has passed */
	NAND_TIMING_VIRTUAL,  /* accounts without waiting */
};

enum nand_operation { NAND_READ, NAND_PROGRAM, NAND_ERASE, NAND_OPERATIONS };

/* Each of the times at most NAND_TIMING_NS_MAX. */
#define NAND_TIMING_NS_MAX 1000000000U

struct nand_timing {
	enum nand_timing_mode mode;
	uint32_t page_read_ns; /* array to the die's register */
	uint32_t page_program_ns;
	uint32_t block_erase_ns;
	uint32_t transfer_ps_per_byte; /* picoseconds: 2500 is 400 MB/s; at most 1000000 */
	uint32_t channels;             /* 0: as in the geometry; else at most 64 */
	uint32_t dies_per_channel;     /* 0: as in the geometry; else at most 64 */
};

/*
 * Presets, mode NAND_TIMING_REAL but for "none": none, muninn, slc, mlc, tlc (docs/nand.md has
 * their numbers and where they are from). -EINVAL: no such preset.
 */
int nand_timing_preset(const char *name, struct nand_timing *timing);

/*
 * PRESET[,FIELD=VALUE]...: fields mode (off, measured, real, virtual), read, program, erase (a
 * number with ns, us or ms), transfer (ps per byte), channels, dies. "tlc,mode=virtual,read=60us".
 * -EINVAL with what is wrong in `error`.
 */
int nand_timing_parse(const char *text, struct nand_timing *timing, struct error_text *error);

/*
 * From now on; at any time, also while others use the device. Empties histograms and usage; the
 * clock begins at 0. -EINVAL: a field is out of its limits; -ENOMEM. `error` says which.
 */
int nand_set_timing(struct nand *nand, const struct nand_timing *timing, struct error_text *error);
void nand_get_timing(struct nand *nand, struct nand_timing *timing);

/*
 * Nanoseconds since nand_set_timing: of the virtual clock, which is where the last synchronous call
 * ended, or of the host's. 0 when timing is off.
 */
uint64_t nand_now_ns(struct nand *nand);

/*
 * Virtual time passes without the device: the host computes or thinks. Nothing in the other modes.
 */
void nand_advance_ns(struct nand *nand, uint64_t ns);

/*
 * Time from submission to completion, per page or block, waiting for die and channel included.
 * Empty when off.
 */
void nand_latency(struct nand *nand, enum nand_operation operation,
		  struct histogram_snapshot *snapshot);

/* Work of all dies and all channels since nand_set_timing, in ns; waiting is not work. */
struct nand_usage {
	uint32_t dies, channels;
	uint64_t die_busy_ns, die_busy_ns_most; /* sum; the busiest one */
	uint64_t channel_busy_ns, channel_busy_ns_most;
	uint64_t
		late_calls; /* real time: calls that the host finished after the flash would have */
	uint64_t late_ns_most; /* and by how much at worst */
};
void nand_read_usage(struct nand *nand, struct nand_usage *usage);

#endif
