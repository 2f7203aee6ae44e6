/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The state of a search with an expression. Private to expression_match.c and expression_zeros.c.
 */
#ifndef MUNINN_OSD_EXPRESSION_MATCH_H
#define MUNINN_OSD_EXPRESSION_MATCH_H

#include "osd/expression_find.h"

struct thread {
	uint32_t step;
	uint64_t begin; /* offset in the text */
};

/* The bytes around the place where the threads are. */
struct place {
	uint64_t offset;
	int before, behind; /* bytes; -1: the text begins or ends */
};

/* Threads and match as they were somewhere inside a run of zeros. */
struct landmark {
	bool set;
	uint64_t offset;
	uint64_t reach; /* how many bytes behind it the search looks for its state again */
	struct thread threads[EXPRESSION_STEPS_MAX + 1];
	uint32_t count;
	bool found;
	uint64_t begin, end;
};

struct expression_matcher {
	const struct expression *expression;
	struct thread here[EXPRESSION_STEPS_MAX + 1]; /* before the next byte, not followed yet */
	struct thread next[EXPRESSION_STEPS_MAX + 1];
	uint32_t here_count, next_count;
	uint32_t waiting[EXPRESSION_STEPS_MAX + 1]; /* steps that the thread still has to follow */
	uint64_t seen[EXPRESSION_STEPS_MAX];        /* the turn in which a thread was last there */
	uint64_t turn;
	/* The best match so far. */
	bool found;
	uint64_t begin, end;
	/* The text: the part that was read last. */
	expression_read *read;
	void *context;
	const uint8_t *bytes; /* NULL: zeros */
	size_t length;
	uint64_t bytes_at;
	struct landmark landmark;
};

/*
 * Inside zeros: when the threads are where they were a period ago, every further period is the
 * same. Leaves out as many periods as end inside the zeros and do not make a match too long. True:
 * the place is another one, and its `behind` is not valid.
 */
bool expression_zeros_cross(struct expression_matcher *matcher, struct place *place);

/*
 * What began at `from` was given up at `end`, and the search would go on at `next`. In zeros
 * everything is given up in the same way, so goes on as many such strides further as end inside the
 * zeros.
 */
uint64_t expression_zeros_resume(const struct expression_matcher *matcher, uint64_t from,
				 uint64_t end, uint64_t next);

/* Forgets the landmark: the threads are others, or other bytes come. */
void expression_zeros_forget(struct expression_matcher *matcher);

#endif
