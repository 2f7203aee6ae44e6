/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What memory keeps of the records, and what makes it stale. Everything of that kind registers
 * itself once, with the events that it has to forget what it knows at. Whoever causes an event says
 * so, and needs not know who remembers what. Transactions are another matter: see cache.h.
 */
#ifndef MUNINN_ENGINE_OBJECTS_STALE_H
#define MUNINN_ENGINE_OBJECTS_STALE_H

#include <stdint.h>

enum stale {
	STALE_RECORDS = 1 << 0,    /* other records count: a format, a rollback of the device */
	STALE_UNDONE = 1 << 1,     /* a writing transaction was undone */
	STALE_PARTITIONS = 1 << 2, /* a partition was created or removed */
	STALE_STATES = 1 << 3,     /* versions or states of partitions as of them have changed */
	STALE_INDICES = 1 << 4,    /* which indices of partitions are in use */
	STALE_NOTES = 1 << 5,      /* what is in no record: a format took what it was about */
};

#define REMEMBERED_MAX 8

struct remembered {
	void *what;
	void (*forget)(void *what);
	unsigned after; /* enum stale, one or more */
};

struct memories {
	struct remembered list[REMEMBERED_MAX];
	uint32_t count;
};

/* Registers something. */
void stale_register(struct memories *memories, void *what, void (*forget)(void *what),
		    unsigned after);

/* Everything forgets that is registered for one of these events. */
void stale_say(const struct memories *memories, unsigned events);

#endif
