/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* nand map: the blocks of an image as a picture, on the terminal or as SVG. */
#include <inttypes.h>
#include <stdlib.h>

#include "client/ctl/nand.h"

/*
 * Cells of a line, and lines: on a terminal; in an SVG. On a larger device a cell stands for
 * several blocks.
 */
enum { TERMINAL_COLUMNS = 64, TERMINAL_LINES = 32, SVG_COLUMNS = 128, SVG_LINES = 96 };

/* ---- the terminal ---- */

/*
 * Without colours only the letters tell. A digit says how many tenths of the pages are programmed.
 */
static char letter_of(const struct nand_cell *cell)
{
	switch (cell->look) {
	case NAND_LOOK_ERASED:
		return '.';
	case NAND_LOOK_PARTLY:
		return (char)('0' + cell->fill_permille / 100);
	case NAND_LOOK_FULL:
		return '#';
	case NAND_LOOK_BAD:
		return 'X';
	default:
		return '!';
	}
}

/* Select Graphic Rendition of ECMA-48: black on green, yellow or cyan; white on red or magenta. */
static const char *const letter_colours[NAND_LOOKS] = {
	[NAND_LOOK_ERASED] = "\033[30;42m",  [NAND_LOOK_PARTLY] = "\033[30;43m",
	[NAND_LOOK_FULL] = "\033[30;46m",    [NAND_LOOK_BAD] = "\033[97;41m",
	[NAND_LOOK_DAMAGED] = "\033[97;45m",
};

static void print_cell(enum nand_block_look look, char letter, bool colours)
{
	if (colours)
		printf("%s%c\033[0m", letter_colours[look], letter);
	else
		putchar(letter);
}

static void print_legend(uint32_t blocks_a_cell, bool colours)
{
	static const struct {
		enum nand_block_look look;
		char letter;
		const char *name;
	} entries[] = {
		{ NAND_LOOK_ERASED, '.', "erased" },
		{ NAND_LOOK_PARTLY, '5', "so many tenths programmed" },
		{ NAND_LOOK_FULL, '#', "full" },
		{ NAND_LOOK_BAD, 'X', "bad" },
		{ NAND_LOOK_DAMAGED, '!', "state damaged" },
	};

	printf("\n%u block%s a cell  ", blocks_a_cell, blocks_a_cell == 1 ? "" : "s");
	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
		print_cell(entries[i].look, entries[i].letter, colours);
		printf(" %s  ", entries[i].name);
	}
	putchar('\n');
}

static struct nand_cell cell_at(struct nand *nand, uint32_t first, uint32_t blocks_a_cell)
{
	uint32_t left = nand_geometry(nand)->blocks - first;

	return nand_look_at(nand, first, left < blocks_a_cell ? left : blocks_a_cell);
}

static void print_map(struct nand *nand)
{
	const struct nand_geometry *geometry = nand_geometry(nand);
	uint32_t blocks_a_cell = nand_cell_blocks(geometry, TERMINAL_COLUMNS * TERMINAL_LINES);
	bool colours = nand_tool_colours();
	uint32_t column = 0;

	for (uint64_t first = 0; first < geometry->blocks; first += blocks_a_cell) {
		struct nand_cell cell = cell_at(nand, (uint32_t)first, blocks_a_cell);

		if (column == 0)
			printf("%9" PRIu64 "  ", first);
		print_cell(cell.look, letter_of(&cell), colours);
		if (++column == TERMINAL_COLUMNS) {
			putchar('\n');
			column = 0;
		}
	}
	if (column > 0)
		putchar('\n');
	print_legend(blocks_a_cell, colours);
}

/* ---- SVG ---- */

static const char *const svg_colours[NAND_LOOKS] = {
	[NAND_LOOK_ERASED] = "#e8f3e8",  [NAND_LOOK_PARTLY] = "#e3b341",
	[NAND_LOOK_FULL] = "#3b7dd8",    [NAND_LOOK_BAD] = "#c62828",
	[NAND_LOOK_DAMAGED] = "#7b1fa2",
};

enum { SVG_CELL = 8, SVG_MARGIN = 16, SVG_LEGEND = 32 };

static void write_svg_legend(FILE *svg, uint32_t y)
{
	for (int look = 0; look < NAND_LOOKS; look++) {
		uint32_t x = SVG_MARGIN + (uint32_t)look * 150;

		fprintf(svg,
			"<rect x=\"%u\" y=\"%u\" width=\"12\" height=\"12\" fill=\"%s\" "
			"stroke=\"#888\" stroke-width=\"0.5\"/>"
			"<text x=\"%u\" y=\"%u\">%s</text>\n",
			x, y, svg_colours[look], x + 18, y + 10, nand_look_name(look));
	}
}

static void write_svg(FILE *svg, struct nand *nand)
{
	const struct nand_geometry *geometry = nand_geometry(nand);
	uint32_t blocks_a_cell = nand_cell_blocks(geometry, SVG_COLUMNS * SVG_LINES);
	uint32_t cells = (geometry->blocks - 1) / blocks_a_cell + 1;
	uint32_t lines = (cells - 1) / SVG_COLUMNS + 1;
	uint32_t width = SVG_COLUMNS * SVG_CELL + 2 * SVG_MARGIN;
	uint32_t height = lines * SVG_CELL + 2 * SVG_MARGIN + SVG_LEGEND;

	fprintf(svg,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" "
		"viewBox=\"0 0 %u %u\" font-family=\"sans-serif\" font-size=\"11\">\n"
		"<title>Blocks of a NAND image, %u in each cell</title>\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
		width, height, width, height, blocks_a_cell);
	for (uint32_t i = 0; i < cells; i++) {
		struct nand_cell cell = cell_at(nand, i * blocks_a_cell, blocks_a_cell);
		double opacity = cell.look == NAND_LOOK_PARTLY
					 ? 0.25 + 0.75 * cell.fill_permille / 1000.0
					 : 1;

		fprintf(svg,
			"<rect x=\"%u\" y=\"%u\" width=\"%d\" height=\"%d\" fill=\"%s\" "
			"fill-opacity=\"%.2f\"><title>block %u",
			SVG_MARGIN + i % SVG_COLUMNS * SVG_CELL,
			SVG_MARGIN + i / SVG_COLUMNS * SVG_CELL, SVG_CELL - 1, SVG_CELL - 1,
			svg_colours[cell.look], opacity, cell.first);
		if (cell.count > 1)
			fprintf(svg, " to %u", cell.first + cell.count - 1);
		fprintf(svg, ": %s, %u.%u %% programmed, erased up to %u times</title></rect>\n",
			nand_look_name(cell.look), cell.fill_permille / 10, cell.fill_permille % 10,
			cell.erase_count_most);
	}
	write_svg_legend(svg, height - SVG_LEGEND);
	fprintf(svg, "</svg>\n");
}

/* ---- JSON ---- */

/* Runs of blocks that look the same, so that large devices stay short. */
static json_t *map_json(struct nand *nand)
{
	const struct nand_geometry *geometry = nand_geometry(nand);
	json_t *runs = json_array();
	uint32_t first = 0;

	while (first < geometry->blocks) {
		struct nand_cell run = nand_look_at(nand, first, 1);
		uint32_t next = first + 1;

		while (next < geometry->blocks) {
			struct nand_cell cell = nand_look_at(nand, next, 1);

			if (cell.look != run.look || cell.fill_permille != run.fill_permille)
				break;
			next++;
		}
		json_array_append_new(runs, json_pack("{s:i,s:i,s:s,s:i}", "first", (int)first,
						      "count", (int)(next - first), "state",
						      nand_look_name(run.look), "fill_permille",
						      (int)run.fill_permille));
		first = next;
	}
	return json_pack("{s:i,s:o}", "blocks", (int)geometry->blocks, "runs", runs);
}

int verb_nand_map(struct ctl *ctl)
{
	struct nand *nand;
	int code = nand_tool_open(ctl, ctl->url, &nand);

	if (code != CTL_OK)
		return code;
	if (ctl->options->svg) {
		FILE *svg = nand_tool_svg(ctl);

		code = CTL_LOCAL;
		if (svg) {
			write_svg(svg, nand);
			code = nand_tool_svg_end(ctl, svg);
		}
	}
	if (code == CTL_OK && ctl->options->json)
		code = ctl_print_json(stdout, map_json(nand));
	else if (code == CTL_OK && !ctl->options->svg)
		print_map(nand);
	nand_abandon(nand);
	return code == CTL_OK ? ctl_end_output(ctl) : code;
}
