/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What the initiator reads from a target, and what both programs read from people and files. The
 * first byte of an input says which parser takes the rest.
 */
#include <errno.h>
#include <math.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/login_keys.h"
#include "client/manifest.h"
#include "client/osd_client.h"
#include "common/bytes.h"
#include "daemon/config.h"
#include "nand/faults.h"
#include "nand/power.h"
#include "nand/timing.h"
#include "tests/fuzz/client_session.h"

/* The rest of the input as a string of its own. */
static char *text_of(const struct fuzz_reader *input)
{
	char *text = (char *)fuzz_exact(input->left + 1, 0);

	if (input->left > 0)
		memcpy(text, input->data, input->left);
	return text;
}

/* An error has its sentence, success has none. */
static void check_sentence(int result, const struct error_text *error)
{
	fuzz_check(result <= 0);
	fuzz_check((result < 0) == (error->text[0] != '\0'));
}

/* ---- login ---- */

static void run_login(struct fuzz_reader *input)
{
	uint8_t how = fuzz_take8(input), bhs[ISCSI_BHS_BYTES] = { 0 };
	struct login_outcome outcome;
	const struct session_parameters *agreed = &outcome.parameters;

	login_outcome_begin(&outcome, how & 1, how & 2);
	while (input->left > 0) {
		struct error_text error = { "" };
		uint16_t head = fuzz_take16(input);
		size_t taken;
		const uint8_t *keys = fuzz_take(input, head & 0x3FF, &taken);

		bhs[0] = head & 0x400 ? fuzz_take8(input) : ISCSI_LOGIN_RESPONSE;
		bhs[1] = head & 0x800 ? fuzz_take8(input) : 0x87;
		bhs[36] = head & 0x1000 ? fuzz_take8(input) : 0;
		bhs[37] = head & 0x2000 ? fuzz_take8(input) : 0;
		if (login_outcome_note(&outcome, bhs, keys, taken, &error) < 0) {
			fuzz_check(error.text[0] != '\0');
			return;
		}
		fuzz_check(agreed->target_segment_bytes >= 512 &&
			   agreed->target_segment_bytes <= 0xFFFFFF);
		fuzz_check(agreed->max_burst_bytes >= 512 && agreed->max_burst_bytes <= 0xFFFFFF);
		fuzz_check(agreed->first_burst_bytes <= 0xFFFFFF);
		fuzz_check(!agreed->immediate_data || how & 1);
	}
}

/* ---- manifests ---- */

static void check_manifest(const struct manifest *manifest)
{
	for (size_t i = 0; i < manifest->count; i++) {
		const struct manifest_entry *entry = &manifest->entries[i];

		fuzz_check(entry->path && entry->path[0] != '/' && entry->path[0] != '\0');
		fuzz_check(strcmp(entry->path, "..") != 0 && strncmp(entry->path, "../", 3) != 0);
		fuzz_check(!strstr(entry->path, "/../") && !strstr(entry->path, "//"));
		fuzz_check(entry->type != MANIFEST_HARD_LINK || entry->linked < i);
		fuzz_check(entry->type != MANIFEST_SYMLINK || entry->target);
	}
}

static void parse_manifest(const char *bytes, size_t size)
{
	struct manifest manifest, again;
	struct error_text error = { "" };
	char *text;
	size_t length;
	int result = manifest_parse(bytes, size, &manifest, &error);

	check_sentence(result, &error);
	fuzz_check(result == 0 || manifest.count == 0);
	if (result == 0) {
		check_manifest(&manifest);
		fuzz_check(manifest_format(&manifest, &text, &length) == 0);
		fuzz_check(manifest_parse(text, length, &again, &error) == 0);
		fuzz_check(again.count == manifest.count);
		manifest_free(&again);
		free(text);
	}
	manifest_free(&manifest);
}

static void run_manifest(struct fuzz_reader *input)
{
	parse_manifest((const char *)input->data, input->left);
}

/* The input as lines of a manifest whose first and last lines, with the checksum, are right. */
static void run_manifest_lines(struct fuzz_reader *input)
{
	const char *head = input->left % 2 ? "muninn-tree 2\nd 0755 1.000000000 0:0 .\n"
					   : "muninn-tree 1\nd 0755 1.000000000 .\n";
	uint8_t digest[MANIFEST_SHA256_BYTES];
	char hex[2 * MANIFEST_SHA256_BYTES + 1];
	size_t length = strlen(head) + input->left + 1, entries = 0;
	char *text = (char *)fuzz_exact(length + 128, 0);

	memcpy(text, head, strlen(head));
	if (input->left > 0)
		memcpy(text + strlen(head), input->data, input->left);
	text[length - 1] = '\n';
	for (size_t i = 0; i < length; i++)
		entries += text[i] == '\n';
	SHA256((const unsigned char *)text, length, digest);
	manifest_hex(digest, sizeof(digest), hex);
	length += (size_t)snprintf(text + length, 128, "end %zu %s\n", entries - 1, hex);
	parse_manifest(text, length);
	free(text);
}

/* ---- configuration ---- */

static void run_config(struct fuzz_reader *input)
{
	static struct config config;
	static int file = -1;
	struct error_text error = { "" };
	char path[64];
	int result;

	if (file < 0)
		file = memfd_create("muninn.conf", MFD_CLOEXEC);
	fuzz_check(file >= 0 && ftruncate(file, 0) == 0);
	fuzz_check(pwrite(file, input->data, input->left, 0) == (ssize_t)input->left);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	result = config_read(path, &config, &error);
	check_sentence(result, &error);
	if (result != 0)
		return;
	fuzz_check(config.lun_count >= 1 && config.lun_count <= CONFIG_LUNS_MAX);
	fuzz_check(config.targets[0].allow_names <= CONFIG_LIST_MAX &&
		   config.targets[0].allow_addresses <= CONFIG_LIST_MAX);
	check_sentence(config_complete(&config, &error), &error);
}

/* ---- short texts ---- */

static void run_address(struct fuzz_reader *input)
{
	char *text = text_of(input), formatted[OSD_CLIENT_ADDRESS_TEXT];
	struct osd_client_address address, again;
	struct error_text error = { "" };
	int result = osd_client_parse_address(text, &address, &error);

	check_sentence(result, &error);
	if (result == 0) {
		osd_client_format_address(address, formatted);
		fuzz_check(osd_client_parse_address(formatted, &again, &error) == 0);
		fuzz_check(again.partition == address.partition && again.object == address.object &&
			   again.version == address.version);
	}
	free(text);
}

static void run_power(struct fuzz_reader *input)
{
	char *text = text_of(input), formatted[NAND_POWER_CUT_TEXT];
	struct nand_power_cut cut, again;
	struct error_text error = { "" };
	int result = nand_power_cut_parse(text, &cut, &error);

	check_sentence(result, &error);
	if (result == 0) {
		nand_power_cut_format(&cut, formatted);
		fuzz_check(nand_power_cut_parse(formatted, &again, &error) == 0);
		fuzz_check(again.after == cut.after && again.page == cut.page &&
			   again.torn_bytes == cut.torn_bytes && again.erase == cut.erase &&
			   again.nvram == cut.nvram && again.seed == cut.seed &&
			   again.count_reads == cut.count_reads);
	}
	free(text);
}

static void run_timing(struct fuzz_reader *input)
{
	char *text = text_of(input);
	struct nand_timing timing;
	struct error_text error = { "" };
	int result = nand_timing_parse(text, &timing, &error);

	check_sentence(result, &error);
	if (result == 0)
		fuzz_check(timing.page_read_ns <= NAND_TIMING_NS_MAX &&
			   timing.page_program_ns <= NAND_TIMING_NS_MAX &&
			   timing.block_erase_ns <= NAND_TIMING_NS_MAX && timing.channels <= 64);
	free(text);
}

static void run_faults(struct fuzz_reader *input)
{
	char *text = text_of(input);
	struct nand_faults faults;
	struct error_text error = { "" };
	int result = nand_faults_parse(text, &faults, &error);

	check_sentence(result, &error);
	if (result == 0)
		fuzz_check(!isnan(faults.factory_bad) && faults.factory_bad >= 0 &&
			   faults.factory_bad <= 1 && !isnan(faults.base) && faults.base >= 0 &&
			   faults.ecc_bits <= 1000 && faults.on < 1U << NAND_FAULTS);
	free(text);
}

static void run_lun_options(struct fuzz_reader *input)
{
	char *text = text_of(input);
	struct lun_options options;
	struct error_text error = { "" };
	int result = lun_options_parse(text, &options, &error);

	check_sentence(result, &error);
	if (result == 0) {
		char written[LUN_OPTIONS_TEXT_BYTES];
		struct lun_options again;

		fuzz_check(options.threads >= 1 && options.threads <= LUN_THREADS_MAX &&
			   strlen(options.osd.serial) < sizeof(options.osd.serial));
		lun_options_write(&options, written);
		fuzz_check(lun_options_parse(written, &again, &error) == 0 &&
			   again.threads == options.threads &&
			   again.nand.backend == options.nand.backend &&
			   !strcmp(again.key_file, options.key_file));
	}
	free(text);
}

static void run_size(struct fuzz_reader *input)
{
	char *text = text_of(input);
	struct error_text error = { "" };
	uint64_t bytes;
	uint16_t port;

	check_sentence(lun_option_size(text, &bytes, &error), &error);
	error.text[0] = '\0';
	check_sentence(config_parse_port(text, &port, &error), &error);
	free(text);
}

/* ---- the target ---- */

static void run_client(const uint8_t *data, size_t size)
{
	static void (*const parsers[])(struct fuzz_reader *) = {
		fuzz_client_session, fuzz_client_calls, fuzz_client_outcome, run_login,
		run_manifest,        run_config,        run_address,         run_power,
		run_timing,          run_faults,        run_lun_options,     run_size,
		run_manifest_lines,
	};
	struct fuzz_reader input = { data, size };

	parsers[fuzz_take8(&input) % (sizeof(parsers) / sizeof(parsers[0]))](&input);
}

const struct fuzz_target fuzz_client = { .name = "client", .run = run_client };
