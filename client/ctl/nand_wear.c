/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* nand wear: how often the blocks of an image were erased. */
#include "nand/wear.h"

#include <inttypes.h>

#include "client/ctl/nand.h"

enum { BAR_COLUMNS = 50 };

static uint64_t fullest_bucket(const struct nand_wear *wear)
{
	uint64_t most = 1;

	for (int i = 0; i < NAND_WEAR_BUCKETS; i++)
		most = wear->buckets[i] > most ? wear->buckets[i] : most;
	return most;
}

/* The buckets up to the highest count. */
static int used_buckets(const struct nand_wear *wear)
{
	return (int)((wear->most - wear->least) / wear->bucket_width) + 1;
}

static uint32_t bucket_first(const struct nand_wear *wear, int bucket)
{
	return wear->least + (uint32_t)bucket * wear->bucket_width;
}

static void print_wear(const struct nand_wear *wear)
{
	uint64_t most = fullest_bucket(wear);
	bool colours = nand_tool_colours();

	printf("erases   %" PRIu64 " of %" PRIu64
	       " blocks: %u to %u, mean %.2f, standard deviation "
	       "%.2f; %" PRIu64 " blocks bad\n\n  erased            blocks\n",
	       wear->erases, wear->blocks, wear->least, wear->most, wear->mean, wear->deviation,
	       wear->bad);
	for (int i = 0; i < used_buckets(wear); i++) {
		uint32_t first = bucket_first(wear, i);
		int bar = (int)((wear->buckets[i] * BAR_COLUMNS + most - 1) / most);

		if (wear->bucket_width == 1)
			printf("%10u          ", first);
		else
			printf("%10u-%-8u ", first, first + wear->bucket_width - 1);
		printf("%10" PRIu64 "  %s", wear->buckets[i], colours ? "\033[36m" : "");
		for (int column = 0; column < bar; column++)
			putchar('=');
		printf("%s\n", colours ? "\033[0m" : "");
	}
}

static void write_svg(FILE *svg, const struct nand_wear *wear)
{
	enum {
		WIDTH = 640,
		HEIGHT = 320,
		MARGIN = 40,
		BAR = (WIDTH - 2 * MARGIN) / NAND_WEAR_BUCKETS
	};
	uint64_t most = fullest_bucket(wear);

	fprintf(svg,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
		"viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"11\">\n"
		"<title>Erase counts of the blocks of a NAND image</title>\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n"
		"<text x=\"%d\" y=\"20\">%" PRIu64 " blocks, %u to %u erases, mean %.2f</text>\n",
		WIDTH, HEIGHT, WIDTH, HEIGHT, MARGIN, wear->blocks, wear->least, wear->most,
		wear->mean);
	for (int i = 0; i < used_buckets(wear); i++) {
		double height = (double)wear->buckets[i] / (double)most * (HEIGHT - 2 * MARGIN);

		fprintf(svg,
			"<rect x=\"%d\" y=\"%.1f\" width=\"%d\" height=\"%.1f\" fill=\"#3b7dd8\">"
			"<title>%u to %u erases: %" PRIu64 " blocks</title></rect>\n"
			"<text x=\"%d\" y=\"%d\" text-anchor=\"middle\" "
			"font-size=\"9\">%u</text>\n",
			MARGIN + i * BAR, HEIGHT - MARGIN - height, BAR - 2, height,
			bucket_first(wear, i), bucket_first(wear, i) + wear->bucket_width - 1,
			wear->buckets[i], MARGIN + i * BAR + BAR / 2, HEIGHT - MARGIN + 14,
			bucket_first(wear, i));
	}
	fprintf(svg, "</svg>\n");
}

static json_t *wear_json(const struct nand_wear *wear)
{
	json_t *buckets = json_array();

	for (int i = 0; i < used_buckets(wear); i++)
		json_array_append_new(buckets, json_pack("{s:I,s:I}", "erases_from",
							 (json_int_t)bucket_first(wear, i),
							 "blocks", (json_int_t)wear->buckets[i]));
	return json_pack("{s:I,s:I,s:I,s:I,s:I,s:f,s:f,s:I,s:o}", "blocks",
			 (json_int_t)wear->blocks, "bad", (json_int_t)wear->bad, "erases",
			 (json_int_t)wear->erases, "least", (json_int_t)wear->least, "most",
			 (json_int_t)wear->most, "mean", wear->mean, "deviation", wear->deviation,
			 "bucket_width", (json_int_t)wear->bucket_width, "buckets", buckets);
}

int verb_nand_wear(struct ctl *ctl)
{
	struct nand_wear wear;
	struct nand *nand;
	int code = nand_tool_open(ctl, ctl->url, &nand);

	if (code != CTL_OK)
		return code;
	nand_read_wear(nand, &wear);
	nand_abandon(nand);
	if (ctl->options->svg) {
		FILE *svg = nand_tool_svg(ctl);

		code = CTL_LOCAL;
		if (svg) {
			write_svg(svg, &wear);
			code = nand_tool_svg_end(ctl, svg);
		}
	}
	if (code == CTL_OK && ctl->options->json)
		code = ctl_print_json(stdout, wear_json(&wear));
	else if (code == CTL_OK && !ctl->options->svg)
		print_wear(&wear);
	return code == CTL_OK ? ctl_end_output(ctl) : code;
}
