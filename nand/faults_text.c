/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Names and default rates of faults, and faults as text. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nand/faults.h"
#include "nand/settings.h"

struct nand_faults nand_faults_default(void)
{
	return (struct nand_faults){
		.seed = 1,
		.endurance = 3000,
		.endurance_spread = 0.2,
		.cycle_exponent = 1,
		.ecc_codeword_bytes = 1024,
		.ecc_bits = 40,
	};
}

/* "40/1024" */
static int parse_ecc(const struct setting *setting, struct nand_faults *faults,
		     struct error_text *error)
{
	char *end = NULL;
	unsigned long bits = strtoul(setting->value, &end, 10), bytes = 0;

	if (end != setting->value && *end == '/')
		bytes = strtoul(end + 1, &end, 10);
	if (bytes == 0 || *end || bits > UINT32_MAX || bytes > UINT32_MAX)
		return error_set(error, -EINVAL,
				 "bad NAND faults: ecc is '%s', must be BITS/BYTES, as 40/1024",
				 setting->value);
	faults->ecc_bits = (uint32_t)bits;
	faults->ecc_codeword_bytes = (uint32_t)bytes;
	return 0;
}

static int parse_fault(const struct setting *setting, struct nand_faults *faults,
		       struct error_text *error)
{
	enum { NONE = NAND_FAULTS };
	uint64_t endurance = faults->endurance;
	const struct {
		const char *key;
		unsigned switches_on;
		double *real; /* or */
		uint64_t *uint;
		double most;
	} fields[] = {
		{ "seed", NONE, NULL, &faults->seed, 0x1p64 },
		{ "factory-bad", NAND_FAULT_FACTORY_BAD, &faults->factory_bad, NULL, 1 },
		{ "program", NAND_FAULT_PROGRAM, &faults->program_failure, NULL, 1 },
		{ "program-at", NAND_FAULT_PROGRAM, NULL, &faults->program_fails_at, 0x1p64 },
		{ "erase", NAND_FAULT_ERASE, &faults->erase_failure, NULL, 1 },
		{ "erase-at", NAND_FAULT_ERASE, NULL, &faults->erase_fails_at, 0x1p64 },
		{ "endurance", NAND_FAULT_ENDURANCE, NULL, &endurance, UINT32_MAX },
		{ "spread", NONE, &faults->endurance_spread, NULL, 1 },
		{ "rber", NAND_FAULT_BIT_ERRORS, &faults->base, NULL, 0.5 },
		{ "wear", NAND_FAULT_BIT_ERRORS, &faults->per_kilocycle, NULL, 1e9 },
		{ "exponent", NONE, &faults->cycle_exponent, NULL, 10 },
		{ "retention", NAND_FAULT_BIT_ERRORS, &faults->per_kilohour, NULL, 1e9 },
		{ "unreadable", NAND_FAULT_UNREADABLE, &faults->unreadable, NULL, 1 },
	};

	if (strcmp(setting->key, "ecc") == 0)
		return parse_ecc(setting, faults, error);
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		int result;

		if (strcmp(fields[i].key, setting->key) != 0)
			continue;
		if (fields[i].real)
			result = setting_real(setting, fields[i].most, fields[i].real, error);
		else
			result = setting_uint(setting,
					      fields[i].most < 0x1p64 ? (uint64_t)fields[i].most
								      : UINT64_MAX,
					      fields[i].uint, error);
		faults->endurance = (uint32_t)endurance;
		if (result == 0 && fields[i].switches_on != NONE)
			faults->on |= 1U << fields[i].switches_on;
		return result;
	}
	return setting_unknown(setting, error);
}

int nand_faults_parse(const char *text, struct nand_faults *faults, struct error_text *error)
{
	struct setting setting = { .what = "NAND faults" };
	struct nand_faults parsed = nand_faults_default();
	int result = 0;

	if (strcmp(text, "off") != 0)
		while ((result = setting_next(&text, &setting, error)) > 0) {
			result = parse_fault(&setting, &parsed, error);
			if (result < 0)
				return result;
		}
	if (result == 0)
		*faults = parsed;
	return result;
}
