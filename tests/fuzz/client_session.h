/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Parts of the client target: what a target may answer. */
#ifndef MUNINN_TESTS_FUZZ_CLIENT_SESSION_H
#define MUNINN_TESTS_FUZZ_CLIENT_SESSION_H

#include "tests/fuzz/fuzz.h"

/*
 * PDUs of a target in the full-feature phase, more or less right, for a session with commands in
 * flight.
 */
void fuzz_client_session(struct fuzz_reader *input);

/* Answers to calls of osd_client.h, well-formed as PDUs. */
void fuzz_client_calls(struct fuzz_reader *input);

/* Status and sense data of one command. */
void fuzz_client_outcome(struct fuzz_reader *input);

#endif
