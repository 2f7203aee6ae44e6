/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* nand dump: pages of an image, as they are stored, what they say, and what is wrong with them. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/ctl/fields.h"
#include "client/ctl/nand.h"
#include "engine/dump.h"

/* What the verb is about. */
struct dumping {
	struct ctl *ctl;
	struct nand *nand;
	const struct nand_geometry *geometry;
	struct engine_dump *engine;  /* NULL: nothing is decoded ... */
	struct error_text undecoded; /* ... and why not */
	uint64_t first, last;        /* pages; until find_pages perhaps blocks */
	bool in_blocks;
	long holder;
};

static const char *verdict_name(const struct nand_page_dump *dump)
{
	switch (dump->verdict) {
	case 0:
		return "intact";
	case -ENODATA:
		return "not programmed";
	default:
		return dump->is_torn ? "torn" : "damaged";
	}
}

/* ---- bytes ---- */

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

/* ---- a page as an object, which is printed as JSON or as lines ---- */

static void tell_stored(const struct nand_page_dump *dump, const struct fields *to)
{
	field_number(to, "page", dump->page);
	field_number(to, "block", dump->block);
	field_number(to, "index", dump->index);
	field_text(to, "block_state", nand_look_name(dump->block_look));
	field_number(to, "block_erase_count", dump->block_erase_count);
	field_text(to, "verdict", verdict_name(dump));
	if (dump->is_torn)
		field_number(to, "torn_bytes", dump->torn_bytes);
	field_flag(to, "spare_intact", dump->spare_intact);
	field_number(to, "data_crc32c", dump->data_crc);
	field_number(to, "stored_data_crc32c", dump->stored_data_crc);
	field_number(to, "stored_erase_count", dump->stored_erase_count);
}

/* The same for people. */
static void tell_stored_in_words(const struct dumping *dumping, const struct nand_page_dump *dump,
				 const struct fields *to)
{
	const struct nand_geometry *geometry = dumping->geometry;
	char text[96];

	snprintf(text, sizeof(text), "%" PRIu64 ": page %u of block %u, die %u", dump->page,
		 dump->index, dump->block,
		 dump->block % (geometry->channels * geometry->dies_per_channel));
	field_text(to, "page", text);
	snprintf(text, sizeof(text), "%s, erased %u times", nand_look_name(dump->block_look),
		 dump->block_erase_count);
	field_text(to, "block", text);
	snprintf(text, sizeof(text), "%s", verdict_name(dump));
	if (dump->is_torn)
		snprintf(text, sizeof(text), "torn: only %u of its %u bytes were programmed",
			 dump->torn_bytes, geometry->page_bytes + geometry->spare_bytes);
	field_text(to, "verdict", text);
	if (dump->verdict == -ENODATA)
		return;
	field_text(to, "spare area", dump->spare_intact ? "checksum right" : "checksum wrong");
	snprintf(text, sizeof(text), "CRC-32C %08x, stored %08x", dump->data_crc,
		 dump->stored_data_crc);
	field_text(to, "data", text);
	snprintf(text, sizeof(text), "when the block had been erased %u times",
		 dump->stored_erase_count);
	field_text(to, "programmed", text);
}

static void tell_content(const struct dumping *dumping, const struct nand_page_dump *dump,
			 enum dump_depth depth, const struct fields *to)
{
	if (dumping->engine) {
		engine_dump_page(dumping->engine, dump, depth, to);
		return;
	}
	field_text(to, "kind", "not decoded");
	field_text(to, "holds", dumping->undecoded.text);
}

static bool is_single(const struct dumping *dumping)
{
	return dumping->first == dumping->last;
}

static bool is_brief(const struct dumping *dumping)
{
	const struct ctl_options *options = dumping->ctl->options;

	return !is_single(dumping) && !options->json && !options->long_list && !options->raw;
}

static enum dump_depth depth_of(const struct dumping *dumping)
{
	if (is_brief(dumping))
		return DUMP_BRIEF;
	return is_single(dumping) ? DUMP_WHOLE : DUMP_LONG;
}

/* NULL: no memory. */
static json_t *page_json(const struct dumping *dumping, const struct nand_page_dump *dump)
{
	const struct ctl_options *options = dumping->ctl->options;
	struct ctl_fields fields = { .object = json_object(), .with_details = options->json };
	const struct fields to = ctl_fields_into(&fields);
	const char *trouble = dumping->engine ? engine_dump_trouble(dumping->engine) : NULL;

	if (options->json || is_brief(dumping))
		tell_stored(dump, &to);
	else
		tell_stored_in_words(dumping, dump, &to);
	tell_content(dumping, dump, depth_of(dumping), &to);
	if (options->json && trouble)
		field_text(&to, "trouble", trouble);
	if (options->json && is_single(dumping))
		field_number(&to, "in_use_by_process", (uint64_t)dumping->holder);
	if (options->json && (options->raw || is_single(dumping)) &&
	    (json_object_set_new(fields.object, "data",
				 hex_json(dump->data, dumping->geometry->page_bytes)) < 0 ||
	     json_object_set_new(fields.object, "spare",
				 hex_json(dump->spare, dumping->geometry->spare_bytes)) < 0))
		fields.failed = true;
	if (!fields.failed)
		return fields.object;
	json_decref(fields.object);
	return NULL;
}

/* ---- several pages, a line each ---- */

static const char *text_in(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

static void print_line(const json_t *page)
{
	const json_t *row = json_object_get(page, "row"),
		     *used = json_object_get(page, "used_bytes");
	char row_text[24] = "", used_text[24] = "";

	if (row)
		snprintf(row_text, sizeof(row_text), "%" JSON_INTEGER_FORMAT,
			 json_integer_value(row));
	if (used)
		snprintf(used_text, sizeof(used_text), "%" JSON_INTEGER_FORMAT,
			 json_integer_value(used));
	printf("%12" JSON_INTEGER_FORMAT "  %-14s  %-12s  %5s  %5s  %s\n",
	       json_integer_value(json_object_get(page, "page")), text_in(page, "verdict"),
	       text_in(page, "kind"), row_text, used_text, text_in(page, "holds"));
}

/* Pages from `first` on that are not programmed, up to the one before `page`. */
static void print_erased(uint64_t first, uint64_t page)
{
	if (first == page)
		return;
	printf("%12" PRIu64 "  not programmed", first);
	if (page - first > 1)
		printf(", up to page %" PRIu64, page - 1);
	putchar('\n');
}

/* ---- pages ---- */

static int read_page(const struct dumping *dumping, uint64_t page, struct nand_page_dump *dump)
{
	int result = nand_dump_page(dumping->nand, page, dump);

	return result ? ctl_fail(dumping->ctl, CTL_LOCAL, "page %" PRIu64 " can't be read: %s",
				 page, strerror(-result))
		      : CTL_OK;
}

static int fail_memory(const struct dumping *dumping)
{
	return ctl_fail(dumping->ctl, CTL_LOCAL, "no memory");
}

static int show_brief(const struct dumping *dumping)
{
	uint64_t erased = dumping->first, page;
	int code = CTL_OK;

	printf("%12s  %-14s  %-12s  %5s  %5s  %s\n", "page", "verdict", "kind", "row", "used",
	       "holds");
	for (page = dumping->first; code == CTL_OK && page <= dumping->last; page++) {
		struct nand_page_dump dump;
		json_t *object;

		code = read_page(dumping, page, &dump);
		if (code != CTL_OK)
			break;
		if (dump.verdict != -ENODATA) {
			print_erased(erased, page);
			erased = page + 1;
			object = page_json(dumping, &dump);
			if (object)
				print_line(object);
			else
				code = fail_memory(dumping);
			json_decref(object);
		}
		nand_page_dump_free(&dump);
	}
	print_erased(erased, page);
	return code;
}

static void show_lines(const struct dumping *dumping, const struct nand_page_dump *dump,
		       const json_t *object)
{
	if (dump->page > dumping->first)
		putchar('\n');
	ctl_fields_print(object);
	if (!dumping->ctl->options->raw)
		return;
	print_bytes("data area", dump->data, dumping->geometry->page_bytes);
	print_bytes("spare area", dump->spare, dumping->geometry->spare_bytes);
}

static int show_page(const struct dumping *dumping, struct ctl_list *list, uint64_t page)
{
	struct nand_page_dump dump;
	int code = read_page(dumping, page, &dump);
	json_t *object;

	if (code != CTL_OK)
		return code;
	object = page_json(dumping, &dump);
	if (!object) {
		code = fail_memory(dumping);
	} else if (!list->is_json) {
		show_lines(dumping, &dump, object);
		json_decref(object);
	} else if (is_single(dumping)) {
		code = ctl_print_json(stdout, object);
	} else {
		ctl_list_add(list, object);
	}
	nand_page_dump_free(&dump);
	return code;
}

static int show(const struct dumping *dumping)
{
	struct ctl_list list = ctl_list_of(dumping->ctl);
	int code = CTL_OK;

	if (is_brief(dumping))
		code = show_brief(dumping);
	else
		for (uint64_t page = dumping->first; code == CTL_OK && page <= dumping->last;
		     page++)
			code = show_page(dumping, &list, page);
	if (code != CTL_OK)
		return code;
	return list.is_json && !is_single(dumping) ? ctl_list_end(&list, dumping->ctl)
						   : ctl_end_output(dumping->ctl);
}

/* ---- which pages ---- */

static const char block_word[] = "block:";

/* N or N-M, of pages or behind the word of blocks. */
static bool parse_pages(struct dumping *dumping, const char *text)
{
	char first[32] = "";
	size_t length;

	dumping->in_blocks = strncmp(text, block_word, strlen(block_word)) == 0;
	if (dumping->in_blocks)
		text += strlen(block_word);
	length = strcspn(text, "-");
	if (length >= sizeof(first))
		return false;
	memcpy(first, text, length);
	if (ctl_parse_number(first, UINT64_MAX, &dumping->first) < 0)
		return false;
	dumping->last = dumping->first;
	return !text[length] ||
	       (ctl_parse_number(text + length + 1, UINT64_MAX, &dumping->last) == 0 &&
		dumping->first <= dumping->last);
}

static int find_pages(struct dumping *dumping)
{
	const struct nand_geometry *geometry = dumping->geometry;
	uint64_t units = geometry->blocks;

	if (!dumping->in_blocks)
		units *= geometry->pages_per_block;
	if (dumping->last >= units)
		return ctl_fail(dumping->ctl, CTL_NOT_FOUND,
				"there is no %s %" PRIu64 ": the last one is %" PRIu64,
				dumping->in_blocks ? "block" : "page", dumping->last, units - 1);
	if (dumping->in_blocks) {
		dumping->first *= geometry->pages_per_block;
		dumping->last = (dumping->last + 1) * geometry->pages_per_block - 1;
	}
	return CTL_OK;
}

/* How its engine reads it. If nobody can, pages are shown all the same. */
static int begin_decoding(struct dumping *dumping)
{
	int result = engine_dump_begin(dumping->nand, &dumping->engine, &dumping->undecoded);
	const char *trouble = dumping->engine ? engine_dump_trouble(dumping->engine) : NULL;

	if (result && result != -ENODEV && result != -EPROTO)
		return ctl_fail(dumping->ctl, CTL_LOCAL, "%s", dumping->undecoded.text);
	if (trouble && !dumping->ctl->options->json)
		ctl_warn(trouble);
	return CTL_OK;
}

/* PAGE comes first, in the place of other verbs' URL. */
int verb_nand_dump(struct ctl *ctl)
{
	struct dumping dumping = { .ctl = ctl };
	int code;

	if (!parse_pages(&dumping, ctl->url))
		return ctl_fail(ctl, CTL_USAGE,
				"'%s' is no page number, and neither N-M nor block:N; the form is: "
				"muninnctl nand dump PAGE IMAGE",
				ctl->url);
	code = nand_tool_open(ctl, ctl->arguments[0], &dumping.nand);
	if (code != CTL_OK)
		return code;
	dumping.geometry = nand_geometry(dumping.nand);
	dumping.holder = nand_image_holder(ctl->arguments[0]);
	code = find_pages(&dumping);
	if (code == CTL_OK)
		code = begin_decoding(&dumping);
	if (code == CTL_OK)
		code = show(&dumping);
	engine_dump_end(dumping.engine);
	nand_abandon(dumping.nand);
	return code;
}
