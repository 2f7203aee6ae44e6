/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The queues behind nand_read and nand_program where a back end has many pages under way. Private
 * to nand/.
 */
#ifndef MUNINN_NAND_CALLS_H
#define MUNINN_NAND_CALLS_H

#include "nand/private.h"

/*
 * What the request says of `count` pages, however many, through a queue of the device's own. As
 * nand_read or nand_program.
 */
int nand_call(struct nand *nand, const struct nand_request *wanted, size_t count);

/* Closes those queues; nothing may be under way. */
void nand_calls_close(struct nand *nand);

#endif
