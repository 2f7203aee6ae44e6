/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Wear and errors. Each kind of fault has a name, a rate and a switch; any set of them can be on
 * together, and be changed at any time for one device. Everything is drawn from `seed`, the place
 * on the flash and the erase count of the block, never from the order of operations or the clock:
 * two runs that do the same to the flash meet the same faults, however their threads interleave,
 * and a page that is read twice has the same bit errors twice.
 *
 * Bit errors. The raw bit error rate of a page is
 *
 *   rate = base + per_kilocycle * (erases / 1000)^cycle_exponent + per_kilohour * (hours / 1000) *
 * (1 + erases / 1000)
 *
 * with the erases of its block and the hours since the block was first programmed (the caller lets
 * them pass, see nand_age). Each bit of the page is wrong with that probability, independently.
 * When the rate grows, the wrong bits stay wrong and more join them. The shape (a floor, growth
 * with wear as a power of the cycles, retention loss in proportion to time and steeper on worn
 * blocks) follows the measurements of Mielke et al. (IRPS 2008) and Grupp et al. (FAST 2012); the
 * rates are the experimenter's.
 *
 * ECC. The data area is divided into codewords of ecc_codeword_bytes, the spare area is one
 * codeword. Up to ecc_bits wrong bits of a codeword are corrected and counted; a codeword with more
 * stays wrong, in the very bytes that were read, and the page's CRC-32C has to find it: -EBADMSG.
 *
 * A block of which a program or an erase fails is bad from then on, for good, whether the faults
 * are switched off or not.
 */
#ifndef MUNINN_NAND_FAULTS_H
#define MUNINN_NAND_FAULTS_H

#include <stdint.h>

#include "common/error.h"

struct nand;

enum nand_fault {
	/*
	 * Blocks that were never used are bad: on a device that nobody has formatted at once, on
	 * others when they are first programmed or erased, which fails.
	 */
	NAND_FAULT_FACTORY_BAD,
	NAND_FAULT_PROGRAM,   /* a program fails: -EIO, the page is not programmed, its block is bad
			       */
	NAND_FAULT_ERASE,     /* an erase fails: -EIO, the pages of the block are gone, it is bad */
	NAND_FAULT_ENDURANCE, /* erases fail that way once the block has had as many as it stands */
	NAND_FAULT_BIT_ERRORS,
	NAND_FAULT_UNREADABLE, /* pages that no ECC can correct, until their block is erased */
	NAND_FAULTS
};

struct nand_faults {
	uint64_t seed;
	uint32_t on;               /* 1 << enum nand_fault, or-ed */
	double factory_bad;        /* share of the blocks, 0 to 1 */
	double program_failure;    /* probability of each program */
	double erase_failure;      /* probability of each erase */
	uint64_t program_fails_at; /* besides: the n-th program from now on fails, once; 0: none */
	uint64_t erase_fails_at;
	uint32_t endurance;      /* erases that a block stands, on average */
	double endurance_spread; /* 0 to 1: blocks stand from (1 - spread) to (1 + spread) times
				    that */
	double base, per_kilocycle, cycle_exponent, per_kilohour; /* bit error rate, see above */
	double unreadable;           /* share of the programmed pages */
	uint32_t ecc_codeword_bytes; /* 64 to 4096, divides the page; default 1024 */
	uint32_t ecc_bits;           /* 0 to 1000; default 40 */
};

/*
 * Nothing on, seed 1, rates 0, endurance 3000 +- 20 %, exponent 1, 40 bits in 1024 bytes (as BCH
 * codes of MLC have).
 */
struct nand_faults nand_faults_default(void);

/*
 * Comma-separated: seed=N, ecc=BITS/BYTES, and these, each of which switches its fault on:
 * factory-bad=SHARE, program=P, program-at=N, erase=P, erase-at=N, endurance=ERASES (spread=SHARE),
 * rber=BASE, wear=PER_KILOCYCLE (exponent=E), retention=PER_KILOHOUR, unreadable=SHARE; or "off".
 * The rest are the defaults.
 */
int nand_faults_parse(const char *text, struct nand_faults *faults, struct error_text *error);

/*
 * From now on. NULL: all off. -EINVAL (a field is out of its limits), -EROFS, -ENOMEM, with
 * `error`.
 */
int nand_set_faults(struct nand *nand, const struct nand_faults *faults, struct error_text *error);
void nand_get_faults(struct nand *nand, struct nand_faults *faults);

/*
 * Lets `hours` pass for everything that is programmed. Counts from when faults were first set on
 * this handle: what was on the flash before is as if programmed then. 0, or -EINVAL: faults were
 * never set.
 */
int nand_age(struct nand *nand, uint32_t hours);

/* What faults did since the device was opened. */
struct nand_fault_counters {
	uint64_t program_failures;
	uint64_t erase_failures; /* worn out ones included */
	uint64_t factory_bad;    /* blocks turned bad by NAND_FAULT_FACTORY_BAD */
	uint64_t raw_bit_errors; /* in what was read */
	uint64_t corrected_bits; /* of these */
	uint64_t corrected_codewords;
	uint64_t uncorrectable_codewords;
};
void nand_read_fault_counters(struct nand *nand, struct nand_fault_counters *counters);

#endif
