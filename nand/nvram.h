/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Makes the NVRAM stable for several callers at a time. Who comes while the host is writing joins
 * the group that goes next; one sync of the range around all its requests serves it. Private to
 * nand/.
 */
#ifndef MUNINN_NAND_NVRAM_H
#define MUNINN_NAND_NVRAM_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct nand;

struct nand_nvram_group {
	pthread_mutex_t lock; /* all below */
	pthread_cond_t done;
	bool running;       /* one of the callers is syncing for the group `finished` + 1 */
	uint32_t waiting;   /* callers inside */
	uint64_t gathering; /* number of the group that callers join; the first is 1 */
	uint64_t finished;
	uint64_t from, to; /* of the gathering group's requests, in bytes of the region; from == to:
			      none yet */
	bool failed; /* the host may have dropped what it could not store: nothing is stable any
			more */

	/* Makes bytes of the region stable: msync. 0 or -errno. Tests put theirs in its place. */
	int (*store)(struct nand *nand, uint64_t from, uint64_t to);
};

void nand_nvram_group_init(struct nand_nvram_group *group);
void nand_nvram_group_destroy(struct nand_nvram_group *group);

#endif
