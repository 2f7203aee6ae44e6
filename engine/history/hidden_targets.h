/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Where hidden intervals lead: the intervals of a list once more, in the order of what they go back
 * to. So whether any goes back into a stretch takes one search for each scope.
 */
#ifndef MUNINN_ENGINE_HISTORY_HIDDEN_TARGETS_H
#define MUNINN_ENGINE_HISTORY_HIDDEN_TARGETS_H

#include "engine/history/hidden_chunks.h"

struct hidden_target {
	uint64_t identifier, to, at; /* as of the interval */
	uint16_t partition;
	bool is_gone;
};

struct hidden_targets {
	struct hidden_target *list; /* by partition, identifier, `to` and `at` */
	uint32_t count, capacity;
};

/* Makes space for one more. -ENOMEM. */
int hidden_targets_grow(struct hidden_targets *targets);

/* There is space for it. */
void hidden_targets_add(struct hidden_targets *targets, const struct hidden_interval *interval);

/* Of all intervals of a list, whatever there was before. -ENOMEM. */
int hidden_targets_load(struct hidden_targets *targets, const struct hidden_interval *list,
			uint32_t count);
void hidden_targets_free(struct hidden_targets *targets);

/* Marks one, which is there; takes out those that are marked. */
void hidden_targets_mark(struct hidden_targets *targets, const struct hidden_interval *interval);
void hidden_targets_take_out(struct hidden_targets *targets);

/*
 * Whether any interval of a partition index, with an identifier from `first` to `last`, goes back
 * to a number from `from` to `to`. Adds the searches that it took to *work.
 */
bool hidden_targets_lead(const struct hidden_targets *targets, uint16_t partition, uint64_t first,
			 uint64_t last, uint64_t from, uint64_t to, uint32_t *work);

#endif
