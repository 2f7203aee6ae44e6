/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Images of the index and roots are copies of what is in memory, in segments or in NVRAM. So one
 * that lost a page is not moved but written once more.
 */
#include "engine/muninn/renew.h"

#include <errno.h>

#include "common/log.h"
#include "engine/muninn/image.h"
#include "engine/muninn/repair.h"
#include "engine/muninn/roots.h"
#include "engine/muninn/row.h"
#include "engine/muninn/seal.h"

/* Only a part of the image is in memory, and of the rest too much is lost. */
static void tell_lost(const struct muninn_store *store, uint32_t row, uint32_t group)
{
	log_line(LOG_LEVEL_ERROR,
		 "%s: index: the image of group %u of row %u is lost on flash; look-ups in it fail "
		 "until the device is opened again, which makes it from the group's segments",
		 nand_path(store->nand), group, row);
}

static int renew_image(struct muninn_store *store, uint32_t row, uint32_t group)
{
	int result = 0;

	if (row_index_has(store->rows[row].index, group)) {
		seal_end_image(store);
		seal_settle_group(store, row);
		result = image_renew(store, row, group);
	}
	if (result && result != -EBADMSG)
		return result;
	repair_end_image(store, row, group);
	if (result)
		tell_lost(store, row, group);
	return result;
}

static int renew_root(struct muninn_store *store)
{
	int result = roots_write(store);

	if (!result)
		repair_end_root(store);
	return result;
}

int renew_next(struct muninn_store *store)
{
	uint32_t row, group;
	int image = 1, root = 1;

	if (repair_next_image(store, &row, &group))
		image = renew_image(store, row, group);
	if (image == 0 || image == -EBADMSG)
		return image;
	if (repair_next_root(store))
		root = renew_root(store);
	return root == 1 ? image : root;
}
