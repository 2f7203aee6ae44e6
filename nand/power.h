/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Makes the power of the device fail at a chosen operation. Operations are: a page programmed, a
 * block erased, an image sync or an NVRAM sync that a caller asked for, a nand_power_point, and if
 * wanted a page read. Operations that break a rule, or are out of range, do not count.
 *
 * The cut says how the operation in flight ends. From then on every function that would touch the
 * device fails with -EIO, nand_close's sync too. What is stored to the NVRAM's memory goes nowhere.
 * The NVRAM of an image is cut at one instant for all threads that store to it. In a device that is
 * in memory, nobody else may be storing to it when the cut comes.
 * The power is back after nand_power_on, or when the image is opened again.
 *
 * Asynchronous programs may be on their way to the host before the one in flight. Their pages may
 * still be programmed, or be left torn.
 */
#ifndef MUNINN_NAND_POWER_H
#define MUNINN_NAND_POWER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

struct nand;

/* What becomes of a page whose program is in flight. */
enum nand_cut_page {
	NAND_CUT_PAGE_ABSENT,  /* not programmed */
	NAND_CUT_PAGE_TORN,    /* counts as programmed: `torn_bytes` of data and spare area arrived,
				  the rest is 0xFF */
	NAND_CUT_PAGE_GARBAGE, /* counts as programmed: anything */
	NAND_CUT_PAGES
};

/* What becomes of a block whose erase is in flight. */
enum nand_cut_erase {
	NAND_CUT_ERASE_ABSENT, /* as before */
	NAND_CUT_ERASE_HALF,   /* counts as programmed as before, but only some of its pages still
				  hold what they did */
	NAND_CUT_ERASE_DONE,   /* erased, only the answer is lost */
	NAND_CUT_ERASES
};

/* What the NVRAM holds afterwards. What it held when the cut was armed counts as flushed. */
enum nand_cut_nvram {
	NAND_CUT_NVRAM_KEPT,    /* all: the battery held */
	NAND_CUT_NVRAM_LOST,    /* zeroes */
	NAND_CUT_NVRAM_FLUSHED, /* what nand_nvram_sync covered, and nothing newer */
	NAND_CUT_NVRAM_MIXED,   /* each 4 KiB either as in memory or as flushed, as a host's page
				   cache may leave it */
	NAND_CUT_NVRAMS
};

struct nand_power_cut {
	uint64_t after; /* operations from now on that succeed; the next one is in flight */
	bool count_reads;
	enum nand_cut_page page;
	uint32_t torn_bytes; /* 0 to page_bytes + spare_bytes, where nothing of the page is missing
			      */
	enum nand_cut_erase erase;
	enum nand_cut_nvram nvram;
	uint64_t seed; /* of garbage, of which pages an erase hit, of what is mixed */
};

/*
 * Arms a cut, in the place of one armed before. -EINVAL (a field is out of its limits), -EROFS,
 * -EIO (the power is off), -ENOMEM, with `error`.
 */
int nand_arm_power_cut(struct nand *nand, const struct nand_power_cut *cut,
		       struct error_text *error);

/* Takes the armed cut back. Nothing if there is none, or if the power is off already. */
void nand_disarm_power_cut(struct nand *nand);

/*
 * An operation that does nothing: a test's way to let the power fail between stores to NVRAM. 0, or
 * -EIO: the power is off. Always 0 while no cut is armed.
 */
int nand_power_point(struct nand *nand);

struct nand_power_status {
	bool armed, off;
	uint64_t operations; /* that succeeded since the cut was armed */
	char in_flight[64];  /* "program of page 17": what the power failed in; empty while it is on
			      */
};
void nand_power_status(struct nand *nand, struct nand_power_status *status);

/*
 * Gives a device that is off its power back, as closing and opening it again would, with the same
 * handle: for devices in memory. Nobody else may be using it. 0, or -ENOMEM/-errno: it stays off. 0
 * also if it is on.
 */
int nand_power_on(struct nand *nand);

/*
 * Comma-separated: after=N, reads (count them, too), page=absent|torn|garbage, torn=BYTES,
 * erase=absent|half|done, nvram=kept|lost|flushed|mixed, seed=N. `after` must be there. The rest is
 * absent, 2048, half, kept, 1.
 */
int nand_power_cut_parse(const char *text, struct nand_power_cut *cut, struct error_text *error);

/*
 * A cut as nand_power_cut_parse takes it, for messages: at most NAND_POWER_CUT_TEXT bytes. Returns
 * `text`.
 */
#define NAND_POWER_CUT_TEXT 160
const char *nand_power_cut_format(const struct nand_power_cut *cut, char text[NAND_POWER_CUT_TEXT]);

/*
 * Leaves a cut for the next process that opens the image for writing, in the text file IMAGE.cut,
 * which that process removes before it begins. The file appears whole or not at all; `text` as
 * above, NULL: takes it back. 0, -EINVAL, -ENOENT (no image, or nothing to take back), -errno, with
 * `error`.
 */
int nand_leave_power_cut(const char *path, const char *text, struct error_text *error);

#endif
