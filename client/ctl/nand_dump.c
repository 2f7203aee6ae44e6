/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* nand dump: one page of an image, as it is stored, and what is wrong with it. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/ctl/nand.h"

static const char *verdict_name(const struct nand_page_dump *dump)
{
	switch (dump->verdict) {
	case 0:
		return "intact";
	case -ENODATA:
		return "not programmed";
	default:
		return "damaged";
	}
}

/*
 * Prints 16 bytes a line, hexadecimal and printable. Leaves out a line that equals the one before,
 * as hexdump -C does.
 */
static void print_bytes(const char *name, const uint8_t *bytes, uint32_t count)
{
	bool starred = false;

	printf("%s\n", name);
	for (uint32_t at = 0; at < count; at += 16) {
		uint32_t length = count - at < 16 ? count - at : 16;
		bool same = at > 0 && length == 16 && memcmp(bytes + at, bytes + at - 16, 16) == 0;

		if (same && at + 16 < count) {
			if (!starred)
				puts("*");
			starred = true;
			continue;
		}
		starred = false;
		printf("%08x ", at);
		for (uint32_t i = 0; i < 16; i++)
			if (i < length)
				printf(" %02x", bytes[at + i]);
			else
				printf("   ");
		printf("  |");
		for (uint32_t i = 0; i < length; i++)
			putchar(isprint(bytes[at + i]) ? bytes[at + i] : '.');
		puts("|");
	}
}

static void print_dump(const struct nand_page_dump *dump, const struct nand_geometry *geometry)
{
	printf("page         %" PRIu64 ": page %u of block %u, die %u\n", dump->page, dump->index,
	       dump->block, dump->block % (geometry->channels * geometry->dies_per_channel));
	printf("block        %s, erased %u times\n", nand_look_name(dump->block_look),
	       dump->block_erase_count);
	printf("verdict      %s\n", verdict_name(dump));
	if (dump->verdict != -ENODATA) {
		printf("spare area   checksum %s\n", dump->spare_intact ? "right" : "wrong");
		printf("data         CRC-32C %08x, stored %08x\n", dump->data_crc,
		       dump->stored_data_crc);
		printf("programmed   when the block had been erased %u times\n",
		       dump->stored_erase_count);
	}
	print_bytes("data area", dump->data, geometry->page_bytes);
	print_bytes("spare area", dump->spare, geometry->spare_bytes);
}

static json_t *hex_json(const uint8_t *bytes, uint32_t count)
{
	char *text = malloc(2 * (size_t)count + 1);
	json_t *value;

	if (!text)
		return NULL;
	for (uint32_t i = 0; i < count; i++)
		snprintf(text + 2 * (size_t)i, 3, "%02x", bytes[i]);
	value = json_string(text);
	free(text);
	return value;
}

static json_t *dump_json(const struct nand_page_dump *dump, const struct nand_geometry *geometry)
{
	return json_pack("{s:I,s:i,s:i,s:s,s:I,s:s,s:b,s:I,s:I,s:I,s:o,s:o}", "page",
			 (json_int_t)dump->page, "block", (int)dump->block, "index",
			 (int)dump->index, "block_state", nand_look_name(dump->block_look),
			 "block_erase_count", (json_int_t)dump->block_erase_count, "verdict",
			 verdict_name(dump), "spare_intact", (int)dump->spare_intact, "data_crc32c",
			 (json_int_t)dump->data_crc, "stored_data_crc32c",
			 (json_int_t)dump->stored_data_crc, "stored_erase_count",
			 (json_int_t)dump->stored_erase_count, "data",
			 hex_json(dump->data, geometry->page_bytes), "spare",
			 hex_json(dump->spare, geometry->spare_bytes));
}

/* PAGE comes first, in the place of other verbs' URL. */
int verb_nand_dump(struct ctl *ctl)
{
	struct nand_page_dump dump;
	struct nand *nand;
	uint64_t page;
	int code, result;

	if (ctl_parse_number(ctl->url, UINT64_MAX, &page) < 0)
		return ctl_fail(
			ctl, CTL_USAGE,
			"'%s' is no page number; the form is: muninnctl nand dump PAGE IMAGE",
			ctl->url);
	code = nand_tool_open(ctl, ctl->arguments[0], &nand);
	if (code != CTL_OK)
		return code;
	result = nand_dump_page(nand, page, &dump);
	if (result == -ERANGE) {
		const struct nand_geometry *geometry = nand_geometry(nand);

		code = ctl_fail(ctl, CTL_NOT_FOUND,
				"there is no page %" PRIu64 ": the last one is %" PRIu64, page,
				(uint64_t)geometry->blocks * geometry->pages_per_block - 1);
	} else if (result < 0) {
		code = ctl_fail(ctl, CTL_LOCAL, "page %" PRIu64 " can't be read: %s", page,
				strerror(-result));
	} else {
		if (ctl->options->json)
			code = ctl_print_json(stdout, dump_json(&dump, nand_geometry(nand)));
		else
			print_dump(&dump, nand_geometry(nand));
		nand_page_dump_free(&dump);
	}
	nand_abandon(nand);
	return code == CTL_OK ? ctl_end_output(ctl) : code;
}
