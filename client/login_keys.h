/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What a login agrees on. libiscsi negotiates but does not tell the outcome. So login.c peeks at
 * the target's login responses, and this code understands them.
 */
#ifndef MUNINN_CLIENT_LOGIN_KEYS_H
#define MUNINN_CLIENT_LOGIN_KEYS_H

#include <stddef.h>
#include <stdint.h>

#include "client/session.h"
#include "common/error.h"

/*
 * Login responses carry no more data than this (RFC 7143, 13.12: the default
 * MaxRecvDataSegmentLength).
 */
#define LOGIN_DATA_BYTES_MAX 8192U

/* What libiscsi 1.19 offers in every login. */
#define LOGIN_OFFERED_BURST_BYTES   262144U
#define LOGIN_OFFERED_SEGMENT_BYTES 262144U

struct login_outcome {
	struct session_parameters parameters;
	bool offered_immediate_data, offered_initial_r2t;
	uint8_t status_class; /* of the last response: 0 success, 1 redirection, 2 initiator error,
				 3 target error */
	uint8_t status_detail;
};

/*
 * The values while the target has said nothing (RFC 7143, section 13), and what this side offers.
 */
void login_outcome_begin(struct login_outcome *outcome, bool immediate_data, bool initial_r2t);

/*
 * Reads one login response: basic header and data segment without padding. -EPROTO with a sentence:
 * it is none, or agrees on something that this side did not offer.
 */
int login_outcome_note(struct login_outcome *outcome, const uint8_t bhs[ISCSI_BHS_BYTES],
		       const uint8_t *data, size_t length, struct error_text *error);

#endif
