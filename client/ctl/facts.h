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
 * Gets the attributes of one page and prints those that are defined, with one GET ATTRIBUTES. With
 * `object` (a JSON object) they are put into it under --json instead of being printed; otherwise it
 * may be NULL. An exit code.
 */
int facts_print(const struct ctl *ctl, struct osd_client_address address, uint32_t page,
		const struct fact *facts, size_t count, json_t *object);

/* One value as JSON. NULL: of the wrong form, or out of memory. */
json_t *facts_json(enum fact_kind kind, const struct osd_attribute *attribute);

#endif
