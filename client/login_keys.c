/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Learns from the target's login responses what the login agreed on. */
#include "client/login_keys.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"

/* Defaults and limits of RFC 7143, section 13. */
#define DEFAULT_FIRST_BURST_BYTES 65536U
#define DEFAULT_SEGMENT_BYTES     8192U
#define LENGTH_MIN                512U
#define LENGTH_MAX                0xFFFFFFU

void login_outcome_begin(struct login_outcome *outcome, bool immediate_data, bool initial_r2t)
{
	*outcome = (struct login_outcome){
		.parameters = {
			.immediate_data = immediate_data,
			.initial_r2t = true,
			.first_burst_bytes = DEFAULT_FIRST_BURST_BYTES,
			.max_burst_bytes = LOGIN_OFFERED_BURST_BYTES,
			.target_segment_bytes = DEFAULT_SEGMENT_BYTES,
			.initiator_segment_bytes = LOGIN_OFFERED_SEGMENT_BYTES,
		},
		.offered_immediate_data = immediate_data,
		.offered_initial_r2t = initial_r2t,
	};
}

static int parse_boolean(const char *text, bool *value)
{
	if (strcmp(text, "Yes") != 0 && strcmp(text, "No") != 0)
		return -EPROTO;
	*value = text[0] == 'Y';
	return 0;
}

/* Decimal or 0x, LENGTH_MIN..LENGTH_MAX. */
static int parse_length(const char *text, uint32_t *value)
{
	char *end;
	unsigned long number;

	if (text[0] < '0' || text[0] > '9')
		return -EPROTO;
	errno = 0;
	number = strtoul(text, &end, text[1] == 'x' || text[1] == 'X' ? 16 : 10);
	if (errno || *end || number < LENGTH_MIN || number > LENGTH_MAX)
		return -EPROTO;
	*value = (uint32_t)number;
	return 0;
}

/* Checks keys whose only possible outcome follows from what this side offers. */
static int check_fixed(const char *key, const char *value)
{
	static const struct {
		const char *key, *value;
	} fixed[] = {
		{ "HeaderDigest", "None" },    { "DataDigest", "None" },
		{ "DataPDUInOrder", "Yes" },   { "DataSequenceInOrder", "Yes" },
		{ "ErrorRecoveryLevel", "0" }, { "MaxOutstandingR2T", "1" },
		{ "IFMarker", "No" },          { "OFMarker", "No" },
	};

	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
		if (strcmp(key, fixed[i].key) == 0 && strcmp(value, fixed[i].value) != 0 &&
		    strcmp(value, "Irrelevant") != 0 && strcmp(value, "NotUnderstood") != 0)
			return -EPROTO;
	return 0;
}

static int note_key(struct login_outcome *outcome, const char *key, const char *value)
{
	struct session_parameters *agreed = &outcome->parameters;
	bool yes = false;
	uint32_t length = 0;
	int result = 0;

	if (strcmp(key, "ImmediateData") == 0) {
		result = parse_boolean(value, &yes);
		agreed->immediate_data = outcome->offered_immediate_data && yes;
	} else if (strcmp(key, "InitialR2T") == 0) {
		result = parse_boolean(value, &yes);
		agreed->initial_r2t = outcome->offered_initial_r2t || yes;
	} else if (strcmp(key, "FirstBurstLength") == 0) {
		result = strcmp(value, "Irrelevant") == 0 ? 0 : parse_length(value, &length);
		if (result == 0 && strcmp(value, "Irrelevant") != 0)
			agreed->first_burst_bytes = min_u64(length, LOGIN_OFFERED_BURST_BYTES);
	} else if (strcmp(key, "MaxBurstLength") == 0) {
		result = parse_length(value, &length);
		if (result == 0)
			agreed->max_burst_bytes = min_u64(length, LOGIN_OFFERED_BURST_BYTES);
	} else if (strcmp(key, "MaxRecvDataSegmentLength") == 0) {
		result = parse_length(value, &agreed->target_segment_bytes);
	} else {
		result = check_fixed(key, value);
	}
	return result;
}

static int note_keys(struct login_outcome *outcome, const uint8_t *data, size_t length,
		     struct error_text *error)
{
	char text[LOGIN_DATA_BYTES_MAX + 1];
	size_t at = 0;

	memcpy(text, data, length);
	text[length] = '\0';
	while (at < length) {
		char *pair = text + at;
		size_t pair_length = strlen(pair);
		char *equals = strchr(pair, '=');

		if (pair_length > 0) {
			if (!equals)
				return error_set(error, -EPROTO,
						 "login: the target sent text without '='");
			*equals = '\0';
			if (note_key(outcome, pair, equals + 1) < 0)
				return error_set(error, -EPROTO,
						 "login: the target answered %.64s=%.64s, which "
						 "was not offered or is out of range",
						 pair, equals + 1);
		}
		at += pair_length + 1;
	}
	return 0;
}

int login_outcome_note(struct login_outcome *outcome, const uint8_t bhs[ISCSI_BHS_BYTES],
		       const uint8_t *data, size_t length, struct error_text *error)
{
	struct session_parameters *agreed = &outcome->parameters;
	int result;

	if ((bhs[0] & 0x3f) != ISCSI_LOGIN_RESPONSE)
		return error_set(
			error, -EPROTO,
			"login: the target answered with opcode 0x%02x; is this an iSCSI port?",
			bhs[0]);
	if (length > LOGIN_DATA_BYTES_MAX)
		return error_set(error, -EPROTO,
				 "login: the target's answer is longer than a login allows");
	outcome->status_class = bhs[36];
	outcome->status_detail = bhs[37];
	if (outcome->status_class != 0)
		return 0;
	agreed->exp_stat_sn = get_be32(bhs + 24) + 1;
	agreed->cmd_sn = get_be32(bhs + 28);
	agreed->max_cmd_sn = get_be32(bhs + 32);
	result = note_keys(outcome, data, length, error);
	if (agreed->first_burst_bytes > agreed->max_burst_bytes)
		agreed->first_burst_bytes = agreed->max_burst_bytes;
	return result;
}
