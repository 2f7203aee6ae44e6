/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* key mint: a credential for others. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <openssl/crypto.h>

#include "client/ctl/ctl.h"
#include "client/ctl/signer.h"

#define PARTITION_BITS 48
/* Lifetime of a minted credential in seconds, unless told. */
#define EXPIRES_SECONDS 3600

static const struct {
	const char *name;
	uint16_t bit;
} permission_names[] = {
	{ "read", OSD_PERMISSION_READ },       { "write", OSD_PERMISSION_WRITE },
	{ "get", OSD_PERMISSION_GET_ATTR },    { "set", OSD_PERMISSION_SET_ATTR },
	{ "create", OSD_PERMISSION_CREATE },   { "remove", OSD_PERMISSION_REMOVE },
	{ "manage", OSD_PERMISSION_OBJ_MGMT }, { "append", OSD_PERMISSION_APPEND },
	{ "device", OSD_PERMISSION_DEV_MGMT }, { "global", OSD_PERMISSION_GLOBAL },
	{ "policy", OSD_PERMISSION_POL_SEC },  { "members", OSD_PERMISSION_M_OBJECT },
	{ "query", OSD_PERMISSION_QUERY },     { "contents", OSD_PERMISSION_GBL_REM },
	{ "all", OSD_PERMISSIONS_ALL },
};

static int parse_permissions(const struct ctl *ctl, const char *text, uint16_t *permissions)
{
	*permissions = 0;
	while (*text) {
		size_t length = strcspn(text, ","), i = 0;
		const size_t count = sizeof(permission_names) / sizeof(permission_names[0]);

		while (i < count && (strlen(permission_names[i].name) != length ||
				     memcmp(permission_names[i].name, text, length) != 0))
			i++;
		if (i == count)
			return ctl_fail(
				ctl, CTL_USAGE,
				"--permissions: '%.*s' is no permission; muninnctl key mint "
				"--help lists them",
				(int)length, text);
		*permissions |= permission_names[i].bit;
		text += length + (text[length] == ',');
	}
	return CTL_OK;
}

/* Finds what makes a credential for the address, and what the credential has to say. */
static int describe(const struct ctl *ctl, const struct keyring *keyring,
		    struct osd_client_address address, struct keyring_name *name,
		    struct osd_capability *capability)
{
	bool of_root = address.partition == 0;
	int code = parse_permissions(
		ctl, ctl->options->permissions ? ctl->options->permissions : "read,get",
		&capability->permissions);

	if (code != CTL_OK)
		return code;
	*name = (struct keyring_name){ of_root ? OSD_SECRET_ROOT : OSD_SECRET_WORKING,
				       signer_whose_keys(keyring, address.partition,
							 ctl->options->key_of),
				       ctl->options->key_version };
	if (!of_root && !ctl->options->has_key_version &&
	    keyring_version(keyring, name->partition, &name->version) < 0)
		return ctl_fail(ctl, CTL_NOT_FOUND,
				"%s: there is no working key of the partition; `muninnctl key set "
				"URL 0x%" PRIx64 " --key-version 0 --key %s` makes one",
				ctl->url, address.partition, ctl->url);
	capability->key_version = name->version;
	capability->partition = address.partition | (uint64_t)address.version << PARTITION_BITS;
	capability->object = address.object;
	capability->object_type = OSD_TYPE_PARTITION;
	if (address.object)
		capability->object_type = ctl->options->collection ? OSD_TYPE_COLLECTION
								   : OSD_TYPE_USER_OBJECT;
	else if (of_root)
		capability->object_type = OSD_TYPE_ROOT;
	capability->expires_ms = ((uint64_t)time(NULL) + (ctl->options->expires_seconds
								  ? ctl->options->expires_seconds
								  : EXPIRES_SECONDS)) *
				 1000;
	return CTL_OK;
}

static int mint(const struct ctl *ctl, const struct keyring *keyring,
		struct osd_client_address address)
{
	enum osd_version version = ctl->options->client.version ? ctl->options->client.version
								: OSD_2;
	struct osd_capability capability = { 0 };
	uint8_t system_id[OSD_SYSTEM_ID_BYTES];
	struct osd_credential credential;
	struct keyring_name name;
	struct keyring_key key;
	int code = describe(ctl, keyring, address, &name, &capability);

	if (code == CTL_OK)
		code = signer_method(ctl, &capability.method);
	if (code != CTL_OK)
		return code;
	if (keyring_get(keyring, name, &key) < 0)
		return ctl_fail(ctl, CTL_NOT_FOUND, "%s: the key for that is not in it", ctl->url);
	keyring_system_id(keyring, system_id);
	/* The output is secret, and must not stay in a buffer. */
	setvbuf(stdout, NULL, _IONBF, 0);
	if (osd_credential_mint(version, &capability, key.authentication, system_id, &credential) <
	    0)
		code = ctl_fail(ctl, CTL_LOCAL, "out of memory");
	else
		code = ctl_print_json(stdout, credential_to_json(&credential));
	OPENSSL_cleanse(&key, sizeof(key));
	OPENSSL_cleanse(&credential, sizeof(credential));
	return code;
}

int verb_key_mint(struct ctl *ctl)
{
	struct osd_client_address address;
	struct keyring keyring;
	struct error_text error;
	int code = ctl_address(ctl, 0, &address);

	if (code != CTL_OK)
		return code;
	if (keyring_read(ctl->url, &keyring, &error) < 0)
		return ctl_fail(ctl, CTL_LOCAL, "%s", error.text);
	code = mint(ctl, &keyring, address);
	keyring_free(&keyring);
	return code;
}
