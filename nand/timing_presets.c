/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Named timings.
 *
 * slc, mlc, tlc: times of the array from Hewlett-Packard's white paper "Solid State Drive
 * Technology: Differences between SLC, MLC and TLC NAND", table 1 (read 25, 50, 75 us; program
 * 200-300, 600-900, 900-1350 us, of which the middle is taken; erase 1.5-2, 3, 4.5 ms, of which the
 * least). Transfer at the full rate of the ONFI generation that such parts have: 1.0 (50 MB/s, 20
 * ns a byte), 2.1 (200 MB/s), 3.0 (400 MB/s).
 *
 * muninn: 15 us for each page access, one after the other, as the published measurements of the
 * Muninn store assume (Kang et al., SYSTOR 2014). They charge page accesses only, so an erase is
 * free here.
 */
#include <errno.h>
#include <string.h>

#include "nand/settings.h"
#include "nand/timing.h"

static const struct {
	const char *name;
	struct nand_timing timing;
} presets[] = {
	{ "none", { .mode = NAND_TIMING_OFF } },
	{ "muninn",
	  { .mode = NAND_TIMING_REAL,
	    .page_read_ns = 15000,
	    .page_program_ns = 15000,
	    .channels = 1,
	    .dies_per_channel = 1 } },
	{ "slc",
	  { .mode = NAND_TIMING_REAL,
	    .page_read_ns = 25000,
	    .page_program_ns = 250000,
	    .block_erase_ns = 1500000,
	    .transfer_ps_per_byte = 20000 } },
	{ "mlc",
	  { .mode = NAND_TIMING_REAL,
	    .page_read_ns = 50000,
	    .page_program_ns = 750000,
	    .block_erase_ns = 3000000,
	    .transfer_ps_per_byte = 5000 } },
	{ "tlc",
	  { .mode = NAND_TIMING_REAL,
	    .page_read_ns = 75000,
	    .page_program_ns = 1125000,
	    .block_erase_ns = 4500000,
	    .transfer_ps_per_byte = 2500 } },
};

int nand_timing_preset(const char *name, struct nand_timing *timing)
{
	for (size_t i = 0; i < sizeof(presets) / sizeof(presets[0]); i++) {
		if (strcmp(presets[i].name, name) == 0) {
			*timing = presets[i].timing;
			return 0;
		}
	}
	return -EINVAL;
}

static int parse_mode(const struct setting *setting, struct nand_timing *timing,
		      struct error_text *error)
{
	static const char *const modes[] = { "off", "measured", "real", "virtual", NULL };
	unsigned index = 0;
	int result = setting_word(setting, modes, &index, error);

	timing->mode = (enum nand_timing_mode)index;
	return result;
}

static int parse_field(const struct setting *setting, struct nand_timing *timing,
		       struct error_text *error)
{
	const struct {
		const char *key;
		uint32_t *field;
		uint32_t most; /* 0: a time */
	} fields[] = {
		{ "read", &timing->page_read_ns, 0 },
		{ "program", &timing->page_program_ns, 0 },
		{ "erase", &timing->block_erase_ns, 0 },
		{ "transfer", &timing->transfer_ps_per_byte, 1000000 },
		{ "channels", &timing->channels, 64 },
		{ "dies", &timing->dies_per_channel, 64 },
	};

	if (strcmp(setting->key, "mode") == 0)
		return parse_mode(setting, timing, error);
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		uint64_t value = 0;
		int result;

		if (strcmp(fields[i].key, setting->key) != 0)
			continue;
		if (fields[i].most == 0)
			return setting_ns(setting, NAND_TIMING_NS_MAX, fields[i].field, error);
		result = setting_uint(setting, fields[i].most, &value, error);
		if (result == 0)
			*fields[i].field = (uint32_t)value;
		return result;
	}
	return setting_unknown(setting, error);
}

int nand_timing_parse(const char *text, struct nand_timing *timing, struct error_text *error)
{
	struct setting setting = { .what = "NAND timing" };
	struct nand_timing parsed;
	int result = setting_next(&text, &setting, error);

	if (result < 0)
		return result;
	if (result == 0 || setting.value[0] || nand_timing_preset(setting.key, &parsed) < 0)
		return error_set(error, -EINVAL,
				 "bad NAND timing: it must begin with none, muninn, slc, mlc or "
				 "tlc, not with '%s'",
				 result ? setting.key : "");
	while ((result = setting_next(&text, &setting, error)) > 0) {
		result = parse_field(&setting, &parsed, error);
		if (result < 0)
			return result;
	}
	if (result == 0)
		*timing = parsed;
	return result;
}
