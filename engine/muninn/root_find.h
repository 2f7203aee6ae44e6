/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The newest root of a device. */
#ifndef MUNINN_ENGINE_MUNINN_ROOT_FIND_H
#define MUNINN_ENGINE_MUNINN_ROOT_FIND_H

#include "engine/muninn/geometry.h"
#include "nand/nand.h"

/* The newest root on flash, and what belongs to it. */
struct found_root {
	struct muninn_geometry geometry; /* of the device, by the root's static header */
	struct root_header header;
	uint8_t *bytes; /* all of it */
	struct root_header kills_header;
	uint8_t *kills;       /* the list that goes with it; NULL: none */
	uint64_t lost;        /* serial of the root that the newest list goes with, which can't be
				 read; 0: none */
	uint64_t serial_most; /* highest of any page of the ring */
	uint32_t segment;     /* of the ring, that the newest page is in */
	uint64_t pages_read;
	uint32_t pages_missing;  /* of both, and of their parity ... */
	uint32_t pages_restored; /* ... those that parity has given back */
};

/* -ENOENT: none. -ENOMEM. The result is ended by root_found_free, also after an error. */
int root_find(struct nand *nand, struct found_root *found);
void root_found_free(struct found_root *found);

#endif
