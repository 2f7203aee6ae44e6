/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What the loop and the commands of a load share. Private to them. */
#ifndef MUNINN_BENCH_LOAD_PRIVATE_H
#define MUNINN_BENCH_LOAD_PRIVATE_H

#include "bench/load.h"
#include "bench/random.h"
#include "client/osd_client.h"

struct load_session;

/* A command in flight, or free. */
struct load_slot {
	struct load_session *session;
	struct load_slot *next_free;
	uint8_t *buffer;
	uint64_t place;
	uint64_t begun_ns;
	bool writes, reads;
	/* One of them, by the kind of unit. */
	struct osd_request request;
	struct session_task task;
};

struct load_session {
	struct load_loop *loop;
	struct load_stream *stream;
	uint32_t number; /* of the stream's */
	struct osd_client *client;
	struct random_state random;
	uint64_t next_place; /* when not random */
	struct load_slot *slots, *free;
	uint8_t *memory;
	uint32_t watched; /* events that epoll looks for */
	uint32_t in_flight;
};

/* Connects, takes unit attentions, makes the slots. */
int load_session_open(struct load_session *session, uint64_t seed, struct error_text *error);
void load_session_close(struct load_session *session);

/* Submits the stream's next command in a free slot. */
int load_submit(struct load_session *session, uint64_t begun_ns, struct error_text *error);

/* A FLUSH, until its end. */
int load_flush(struct load_session *session, struct error_text *error);

/* load.c: a command has ended. `result` negative: `what` says why. */
void load_done(struct load_slot *slot, int result, const char *what);

#endif
