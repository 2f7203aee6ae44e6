/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Which pages of the flash images and roots are in, to lose some of them. */
#include "tests/engine/muninn/losses.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/muninn/directory.h"
#include "engine/muninn/root_find.h"
#include "tests/engine/lost_page.h"

uint32_t lose_of_every_image(struct model *model)
{
	const struct muninn_store *store = inside(model);
	const struct parity_shape *shape = &store->geometry.parity;
	uint32_t n = 0, images = 0;
	const uint8_t *entry;

	for (; (entry = directory_next(store, &n)) != NULL; images++) {
		uint32_t own =
			run_pages_own(&store->geometry, get_le32(entry + DIRECTORY_BYTES_AT));

		for (uint32_t first = 0; first < own; first += shape->group_pages) {
			uint32_t count = (uint32_t)min_u64(own - first, shape->group_pages);
			uint32_t page = model_below(model, count + shape->losses);

			page = page < count ? first + page
					    : own + first / shape->group_pages * shape->losses +
						      (page - count);
			lose_page(model->nand, directory_image_page(&store->geometry, entry, page));
		}
	}
	return images;
}

/* One page of the ring with this serial. */
static void lose_of_serial(struct model *model, const struct muninn_geometry *geometry,
			   uint64_t serial)
{
	uint8_t spare_bytes[4096];
	uint64_t found = NO_PAGE;
	uint32_t seen = 0;

	for (uint64_t page = 0; page < segment_page(geometry, geometry->root_segments); page++) {
		const struct nand_page_io io = { .page = page, .spare = spare_bytes };
		struct page_spare spare;

		if (nand_read(model->nand, NAND_CAUSE_USER, &io, 1) == 0 &&
		    page_spare_decode(spare_bytes, geometry->page_bytes, &spare) &&
		    spare.kind == PAGE_KIND_ROOT && spare.serial == serial &&
		    model_below(model, ++seen) == 0)
			found = page;
	}
	assert_int_not_equal(found, NO_PAGE);
	lose_page(model->nand, found);
}

void lose_of_last_root(struct model *model)
{
	struct found_root found;

	assert_int_equal(root_find(model->nand, &found), 0);
	lose_of_serial(model, &found.geometry, found.header.serial);
	if (found.list)
		lose_of_serial(model, &found.geometry, found.list_header.serial);
	root_found_free(&found);
}

struct record_scrub scrub_all(struct model *model)
{
	struct record_scrub scrub = { .pages = 100 };

	do
		model->store->operations->scrub(model->store, &scrub);
	while (scrub.position);
	return scrub;
}

struct record_statistics figures(const struct model *model)
{
	struct record_statistics statistics = { 0 };

	model->store->operations->statistics(model->store, &statistics);
	return statistics;
}

void open_without_nvram(struct model *model)
{
	struct error_text error = { "" };
	uint64_t bytes;
	uint8_t *nvram = nand_nvram(model->nand, &bytes);

	memset(nvram, 0, bytes);
	model->options.records.recover_without_nvram = true;
	if (engine_open_records(model->nand, &model->options, &model->store, &error))
		fail_msg("%s", error.text);
}
