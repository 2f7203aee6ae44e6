/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Gives the commands of any verb the credentials that --key, --credential and --security ask for
 * (ctl_secure).
 */
#ifndef MUNINN_CLIENT_CTL_SIGNER_H
#define MUNINN_CLIENT_CTL_SIGNER_H

#include "client/ctl/ctl.h"
#include "client/ctl/keyring.h"

/* The keyring of --key, after connecting. Its root is NULL if there is none. */
const struct keyring *signer_keyring(void);

/* What --security says, or alldata. CTL_OK or CTL_USAGE. */
int signer_method(const struct ctl *ctl, uint8_t *method);

/*
 * Whose keys sign for a partition. A snapshot has the keys of its source, which the keyring does
 * not know: then `key_of`, unless that is 0.
 */
uint64_t signer_whose_keys(const struct keyring *keyring, uint64_t partition, uint64_t key_of);

#endif
