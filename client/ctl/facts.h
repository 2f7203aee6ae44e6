/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Attributes of an object that are shown under a name. */
#ifndef MUNINN_CLIENT_CTL_FACTS_H
#define MUNINN_CLIENT_CTL_FACTS_H

#include "client/ctl/ctl.h"

enum fact_kind { FACT_TEXT, FACT_HEX, FACT_SIZE, FACT_NUMBER, FACT_TIME };

struct fact {
	uint32_t number; /* in the page */
	const char *name;
	enum fact_kind kind;
};

/*
 * Gets the attributes of one page with one GET ATTRIBUTES and prints the defined ones. With --json
 * puts them into `object` (a JSON object, otherwise NULL is enough). Returns an exit code.
 */
int facts_print(const struct ctl *ctl, struct osd_client_address address, uint32_t page,
		const struct fact *facts, size_t count, json_t *object);

#endif
