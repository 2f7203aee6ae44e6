/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Sections of a growing group. */
#include "engine/muninn/index/ribbon/section.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

/* Takes what is kept out of a whole image. */
static int keep(struct section *section, const struct group *whole)
{
	section->failed = malloc((whole->failed + UINT64_C(1)) * sizeof(*section->failed));
	section->image = section->failed ? group_keep(whole, &section->group) : NULL;
	if (!section->image) {
		free(section->failed);
		section->failed = NULL;
		return -ENOMEM;
	}
	for (uint32_t n = 0; n < whole->failed; n++)
		section->failed[n] = group_failed_entry(whole, n);
	return 0;
}

int section_make(struct section *section, const struct growing *growing, uint32_t number)
{
	uint32_t first = number * RIBBON_SECTION_MEMBERS;
	struct group whole;
	uint8_t *image;
	uint64_t length;
	bool attached;
	int result;

	*section = (struct section){ 0 };
	result = growing_make_image(growing, first, first + RIBBON_SECTION_MEMBERS, false,
				    RIBBON_SECTION_FINGERPRINT_BITS, &image, &length);
	if (result)
		return result;
	attached = group_attach(&whole, image, length);
	assert(attached);
	result = keep(section, &whole);
	free(image);
	return result;
}

void section_forget_failed(struct section *section)
{
	free(section->failed);
	section->failed = NULL;
}

void section_destroy(struct section *section)
{
	free(section->failed);
	free(section->image);
	*section = (struct section){ 0 };
}
