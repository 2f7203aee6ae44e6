/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Decoding single pages: the kind of store, and what keys mean. */
#include "engine/dump.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/muninn/muninn.h"
#include "engine/objects/keys.h"

struct engine_dump {
	struct muninn_dump *store;
};

static void tell_key(const struct fields *to, const struct record_key *key)
{
	char text[KEY_TEXT];

	field_text(to, "record", key_describe(key, text));
}

int engine_dump_begin(struct nand *nand, struct engine_dump **dump, struct error_text *error)
{
	const char *name = nand_contents(nand);

	*dump = NULL;
	if (!*name)
		return error_set(error, -ENODEV, "the device is not formatted for any engine");
	/* As engine_examine: there is no second kind of store. */
	if (strcmp(name, muninn_store_type.name) != 0)
		return error_set(error, -ENODEV,
				 "the device was formatted for engine \"%s\", which this program "
				 "does not have",
				 name);
	*dump = calloc(1, sizeof(**dump));
	if (!*dump)
		return error_set(error, -ENOMEM, "out of memory");
	int result = muninn_dump_begin(nand, tell_key, &(*dump)->store, error);

	if (result) {
		free(*dump);
		*dump = NULL;
	}
	return result;
}

void engine_dump_end(struct engine_dump *dump)
{
	if (dump)
		muninn_dump_end(dump->store);
	free(dump);
}

const char *engine_dump_trouble(const struct engine_dump *dump)
{
	return muninn_dump_trouble(dump->store);
}

void engine_dump_page(struct engine_dump *dump, const struct nand_page_dump *page,
		      enum dump_depth depth, const struct fields *to)
{
	muninn_dump_page(dump->store, page, depth, to);
}
