/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What the parts of engine_salvage share. */
#ifndef MUNINN_ENGINE_SALVAGE_PRIVATE_H
#define MUNINN_ENGINE_SALVAGE_PRIVATE_H

#include "engine/objects/objects.h"
#include "engine/salvage.h"

struct member {
	struct engine_address address;
	enum engine_type type;
};

struct salvaging {
	struct engine *from, *to;
	struct engine_txn *read, *write; /* the open transactions; `write` NULL: none */
	struct engine_salvage *salvage;
	struct findings *findings;
	/* What the check has found, then in the order in which it is copied. */
	struct member *members;
	size_t count, capacity;
	bool no_memory;
	int broken;      /* why a transaction could not be committed; then all is over */
	uint8_t *buffer; /* SALVAGE_BYTES */
	uint64_t put;    /* bytes in the open transaction */
};

/* What is read at once; an attribute fits, too. */
#define SALVAGE_BYTES (UINT32_C(1) << 18)
/* A transaction takes so much, then it is committed and the next one begins. */
#define SALVAGE_COMMIT_BYTES (UINT32_C(8) << 20)

/* Begins the next writing transaction if there is none, or if the open one has grown. */
int salvage_begin(struct salvaging *salvaging);
int salvage_commit(struct salvaging *salvaging);

/* Names what could not be copied. Returns `result` if it concerns everything, else 0. */
int salvage_failed(struct salvaging *salvaging, struct engine_address address, const char *what,
		   int result);

/* Copies attributes; of user objects also memberships. (salvage_objects.c) */
int salvage_attributes(struct salvaging *salvaging, struct engine_address address);
int salvage_object(struct salvaging *salvaging, struct engine_address address);
int salvage_collection(struct salvaging *salvaging, struct engine_address address);
/* The members that do not know of it: behind all objects. */
int salvage_members(struct salvaging *salvaging, struct engine_address address);

#endif
