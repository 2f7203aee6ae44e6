/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Makes groups of the ribbon index for tests. */
#include "tests/engine/muninn/made_group.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "engine/muninn/hash.h"
#include "tests/engine/muninn/ribbon_random.h"

struct group_member made_member(uint32_t n)
{
	return (struct group_member){
		.segment = 0x01020304 + n,
		.records = 0x0a0b0 + n,
		.run_pages = n * 7 % 4096,
		.serial = UINT64_C(0x1112131415161718) + n,
		.first_sequence = UINT64_C(0x212223242526) + n,
		.last_sequence = UINT64_C(0x313233343536) + n,
		.record_bytes = 0x00fedcb0 + n,
		.has_runs = n % 4 == 1,
		.by_candidates = n % 2,
		.is_ordered = n % 3 == 0,
	};
}

void made_build(struct made *made)
{
	struct group_builder *builder = group_builder_create(made->plan.entry_count);
	uint32_t *tags, pages = 0;

	assert_non_null(builder);
	for (uint32_t n = 0; n < made->plan.member_count; n++) {
		made->members[n] = made_member(n);
		made->members[n].has_runs &= made->with_runs;
		pages += group_member_runs(&made->members[n]);
	}
	tags = calloc(pages + UINT64_C(1), sizeof(*tags));
	assert_non_null(tags);
	for (uint32_t n = 0; n < pages; n++)
		tags[n] = FIRST_RUN_TAG + n;
	made->plan.members = made->members;
	made->plan.run_tags = tags;
	made->plan.entries = made->entries;
	assert_int_equal(group_build(builder, &made->plan, &made->image, &made->length), 0);
	assert_true(group_attach(&made->group, made->image, made->length));
	assert_true(group_is_intact(&made->group, made->length));
	assert_in_range(made->length - made->group.tag_bytes, made->group.kept,
			group_image_bytes_max(made->plan.member_count,
					      made->plan.entry_count + pages,
					      made->group.band.shape.columns));
	group_builder_destroy(builder);
	free(tags);
}

void made_end(struct made *made)
{
	free(made->entries);
	free(made->image);
}

void made_at_random(struct made *made, uint32_t members, uint32_t count, uint32_t tags,
		    uint32_t locations, uint64_t seed)
{
	*made = (struct made){
		.plan = { .row = 5,
			  .number = 9,
			  .fingerprint_bits = 8,
			  .locations = locations,
			  .member_count = members,
			  .entry_count = count },
		.entries = calloc(count + 1, sizeof(struct tag_entry)),
	};
	for (uint32_t n = 0; n < count; n++)
		made->entries[n] = (struct tag_entry){
			.tag = (uint32_t)hash_mix(below(&seed, tags) + 1),
			.segment = below(&seed, members),
			.location = below(&seed, locations),
		};
	made_build(made);
}
