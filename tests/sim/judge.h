/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What the model says to a client's command. */
#ifndef MUNINN_TESTS_SIM_JUDGE_H
#define MUNINN_TESTS_SIM_JUDGE_H

#include "tests/sim/commands.h"

/* The partition as it is addressed. NULL: that version has been dropped. */
const struct model_state *sim_state_of(const struct sim_command *command);

/* Does the model have room for what it would make? Otherwise it is not to be sent. */
bool sim_judge_fits(struct sim_world *world, const struct sim_command *command);

/* Does it change anything, if it succeeds? */
bool sim_judge_changes(enum sim_kind kind);

/* Is its range empty, and there is nothing else to do? */
bool sim_judge_does_nothing(const struct sim_command *command);

/* The attribute that it sets, which the model has room for. */
struct model_attribute sim_judge_attribute(const struct sim_command *command);

/* How it ends, if nothing is damaged and there is room. */
enum sim_answer sim_judge_expects(struct sim_world *world, const struct sim_command *command);

/*
 * The model does the same, inside object_model_begin. `data`: what it wrote; `number`: of the
 * version that it made.
 */
void sim_judge_follow(struct sim_world *world, const struct sim_command *command,
		      const uint8_t *data, uint32_t number);

/* What has come back is what the model has. */
void sim_judge_data(struct sim_world *world, const struct sim_command *command, const uint8_t *in,
		    size_t length);

#endif
