/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* nand grow: makes a device on this host larger that nobody has open. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/ctl/nand.h"
#include "engine/options.h"

static uint64_t bytes_of(const struct nand_geometry *geometry)
{
	return (uint64_t)geometry->page_bytes * geometry->pages_per_block * geometry->blocks;
}

static int say(const struct ctl *ctl, uint64_t before, uint64_t now)
{
	char texts[2][CTL_SIZE_TEXT];

	if (ctl->options->json)
		return ctl_print_json(
			stdout,
			ctl_json_with_text(json_pack("{s:I,s:I}", "bytes_before",
						     (json_int_t)before, "bytes", (json_int_t)now),
					   "image", ctl->url));
	printf("%s has grown from %s to %s\n", ctl->url, ctl_format_size(before, texts[0]),
	       ctl_format_size(now, texts[1]));
	return CTL_OK;
}

int verb_nand_grow(struct ctl *ctl)
{
	struct error_text error;
	struct nand *nand;
	uint64_t wanted, before, block_bytes;
	int code = ctl_size(ctl, 0, "size", &wanted), result;

	if (code != CTL_OK)
		return code;
	result = nand_open(ctl->url, &nand, &error);
	if (result < 0)
		return ctl_fail(ctl, nand_tool_exit(result), "%s", error.text);
	before = bytes_of(nand_geometry(nand));
	block_bytes = before / nand_geometry(nand)->blocks;
	result = engine_grow(nand, wanted, &error);
	/* Nothing of it is to be stored: the file of the NVRAM is another one now. */
	nand_abandon(nand);
	if (result < 0)
		return ctl_fail(ctl, nand_tool_exit(result), "%s", error.text);
	return say(ctl, before, wanted / block_bytes * block_bytes);
}
