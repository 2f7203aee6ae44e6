/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Makes the NVRAM stable for several callers at a time. Who comes while the host is writing joins
 * the group that goes next; one sync serves all of it. Requests far from each other stay apart, so
 * that the host need not write what is stored between them. Private to nand/.
 */
#ifndef MUNINN_NAND_NVRAM_H
#define MUNINN_NAND_NVRAM_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "nand/nand.h"

/* Groups that follow one another. */
struct nand_nvram_lane {
	bool running;       /* one of the callers is syncing for the group `finished` + 1 */
	uint64_t gathering; /* number of the group that callers join; the first is 1 */
	uint64_t finished;
	/* Of the gathering group's requests; those that are too many or near are one. */
	struct nand_nvram_range ranges[NAND_NVRAM_RANGES];
	uint32_t count;
	/*
	 * The host tells each open file once of what it could not write. While lanes share one,
	 * another's sync may have been told: so each lane asks by a file of its own, too. -1: none.
	 */
	int witness;
};

struct nand_nvram_group {
	pthread_mutex_t lock; /* all below */
	pthread_cond_t done;
	/* For requests of a few pages, and for large ones: nobody waits for those beside his own.
	 */
	struct nand_nvram_lane small, large;
	uint32_t waiting; /* callers inside */
	bool failed; /* the host may have dropped what it could not store: nothing is stable any
			more */

	/*
	 * Makes ranges of the region stable: msync, or nothing in memory. 0 or -errno. Tests put
	 * theirs in its place.
	 */
	int (*store)(struct nand *nand, const struct nand_nvram_range *ranges, uint32_t count);
};

void nand_nvram_group_init(struct nand_nvram_group *group);
/* Opens the lanes' own files on the NVRAM. 0 or -errno. */
int nand_nvram_group_open(struct nand_nvram_group *group, int nvram_fd);
void nand_nvram_group_destroy(struct nand_nvram_group *group);

#endif
