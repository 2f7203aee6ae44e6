/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What a security manager keeps of one unit: its keys, in a JSON file that only its owner may read
 * (docs/muninnctl.md has the form). Credentials are in files of their own.
 */
#ifndef MUNINN_CLIENT_CTL_KEYRING_H
#define MUNINN_CLIENT_CTL_KEYRING_H

#include <jansson.h>

#include "client/security.h"
#include "common/error.h"

/* `generation` of a working key is not used. */
struct keyring_key {
	uint8_t authentication[OSD_KEY_BYTES];
	uint8_t generation[OSD_KEY_BYTES];
	uint8_t identifier[OSD_KEY_IDENTIFIER_BYTES];
};

struct keyring_name {
	enum osd_secret kind;
	uint64_t partition; /* of partition and working keys */
	uint8_t version;    /* of working keys */
};

struct keyring {
	json_t *root;
};

/*
 * From now on the JSON library wipes what it frees, because its strings hold keys. Call it before
 * the library is used.
 */
void keyring_guard_memory(void);

/* An empty one for a unit. -ENOMEM. */
int keyring_create(const uint8_t system_id[OSD_SYSTEM_ID_BYTES], struct keyring *keyring);
/* -EINVAL and errors of files, with a sentence; -EPERM: others may read it. */
int keyring_read(const char *path, struct keyring *keyring, struct error_text *error);
/* Writes PATH.new, mode 0600, and makes it stable. keyring_replace then puts it in its place. */
int keyring_prepare(const char *path, const struct keyring *keyring, struct error_text *error);
/* Puts PATH.new in the place of PATH. */
int keyring_replace(const char *path, struct error_text *error);
void keyring_free(struct keyring *keyring);

int keyring_system_id(const struct keyring *keyring, uint8_t system_id[OSD_SYSTEM_ID_BYTES]);
/* -ENOENT: not in it. */
int keyring_get(const struct keyring *keyring, struct keyring_name name, struct keyring_key *key);
/* Adds a new key and drops those that it makes invalid. -ENOMEM. */
int keyring_set(struct keyring *keyring, struct keyring_name name, const struct keyring_key *key);
/* The lowest version that has a working key. -ENOENT: none. */
int keyring_version(const struct keyring *keyring, uint64_t partition, uint8_t *version);

/* ---- credentials ---- */

/* As JSON; NULL: out of memory. */
json_t *credential_to_json(const struct osd_credential *credential);
/* Reads a file. Errors as of keyring_read. */
int credential_read(const char *path, struct osd_credential *credential, struct error_text *error);

/* "capkey", "cmdrsp", "alldata", with `nosec` also that. -EINVAL. */
int method_parse(const char *text, bool nosec, uint8_t *method);
const char *method_name(uint8_t method);

#endif
