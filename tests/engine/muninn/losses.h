/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Loses pages of what says where records are, and scrubs. */
#ifndef MUNINN_TESTS_ENGINE_MUNINN_LOSSES_H
#define MUNINN_TESTS_ENGINE_MUNINN_LOSSES_H

#include "engine/muninn/store.h"
#include "tests/engine/muninn/muninn_model.h"

/* What is behind the interface of the model's store. */
static inline struct muninn_store *inside(const struct model *model)
{
	return (struct muninn_store *)(void *)model->store;
}

/*
 * Loses one page of each group of parity of each image of the index, counted with its parity.
 * Returns how many images there are.
 */
uint32_t lose_of_every_image(struct model *model);

/* Loses one page of the last root on flash, and one of the list of changes that goes with it. */
void lose_of_last_root(struct model *model);

/* What the store says of itself. */
struct record_statistics figures(const struct model *model);

/* Clears the NVRAM of a device that is closed, and opens it without. */
void open_without_nvram(struct model *model);

/* Reads all that is in use. */
struct record_scrub scrub_all(struct model *model);

#endif
