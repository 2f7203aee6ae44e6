/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Gives the commands of a verb the credentials that its options ask for. */
#include "client/ctl/signer.h"

#include <errno.h>

#include <openssl/crypto.h>

#include "common/bytes.h"

#define PARTITION_BITS 48

/* What --key or --credential gave. One process makes one connection. */
struct signer {
	struct keyring keyring; /* root NULL: there is a credential instead */
	struct osd_credential credential;
	uint8_t system_id[OSD_SYSTEM_ID_BYTES];
	uint8_t method;
	bool has_version;
	uint8_t version;
	uint64_t key_of; /* partition whose keys replace missing ones; 0: none */
};

static struct signer signer;

static uint8_t method_for(const struct osd_cdb *cdb)
{
	if (cdb->action == OSD_SET_MASTER_KEY)
		return OSD_ALLDATA;
	return cdb->action == OSD_SET_KEY ? (uint8_t)max_u64(signer.method, OSD_CMDRSP)
					  : signer.method;
}

/* The credential of the file, for the object that it is for. */
static int give_credential(const struct osd_cdb *cdb, struct osd_credential *credential)
{
	struct osd_capability capability;

	osd_capability_decode(signer.credential.version, signer.credential.capability, &capability);
	if (capability.partition != cdb->partition || capability.object != cdb->object)
		return -ENOENT;
	*credential = signer.credential;
	return 0;
}

uint64_t signer_whose_keys(const struct keyring *keyring, uint64_t partition, uint64_t key_of)
{
	uint8_t ignored;

	return key_of != 0 && keyring_version(keyring, partition, &ignored) < 0 ? key_of
										: partition;
}

static int give(void *context, const struct osd_cdb *cdb, struct osd_credential *credential)
{
	struct keyring_name name = {
		.kind = osd_secret_of_command(cdb),
		.partition = cdb->partition & ((UINT64_C(1) << PARTITION_BITS) - 1),
		.version = signer.version,
	};
	struct keyring_key key;
	int result;

	(void)context;
	if (!signer.keyring.root)
		return give_credential(cdb, credential);
	if (name.kind == OSD_SECRET_WORKING)
		name.partition = signer_whose_keys(&signer.keyring, name.partition, signer.key_of);
	if (name.kind == OSD_SECRET_WORKING && !signer.has_version)
		keyring_version(&signer.keyring, name.partition, &name.version);
	result = keyring_get(&signer.keyring, name, &key);
	if (result == 0)
		result = osd_credential_for_command(cdb, method_for(cdb), name.version,
						    key.authentication, signer.system_id,
						    credential);
	OPENSSL_cleanse(&key, sizeof(key));
	return result;
}

int signer_method(const struct ctl *ctl, uint8_t *method)
{
	*method = OSD_ALLDATA;
	if (!ctl->options->security || method_parse(ctl->options->security, false, method) == 0)
		return CTL_OK;
	return ctl_fail(ctl, CTL_USAGE, "--security '%s': capkey, cmdrsp or alldata is wanted",
			ctl->options->security);
}

static int read_signer(const struct ctl *ctl)
{
	const struct ctl_options *options = ctl->options;
	struct error_text error;

	if (options->key && options->credential)
		return ctl_fail(ctl, CTL_USAGE, "--key and --credential: one of the two");
	signer.has_version = options->has_key_version;
	signer.version = options->key_version;
	signer.key_of = options->key_of;
	if (options->credential)
		return credential_read(options->credential, &signer.credential, &error) < 0
			       ? ctl_fail(ctl, CTL_LOCAL, "%s", error.text)
			       : CTL_OK;
	if (keyring_read(options->key, &signer.keyring, &error) < 0)
		return ctl_fail(ctl, CTL_LOCAL, "%s", error.text);
	keyring_system_id(&signer.keyring, signer.system_id);
	return CTL_OK;
}

const struct keyring *signer_keyring(void)
{
	return &signer.keyring;
}

int ctl_secure(struct ctl *ctl)
{
	struct osd_client_error error;
	int code = signer_method(ctl, &signer.method);

	if (code != CTL_OK || (!ctl->options->key && !ctl->options->credential))
		return code;
	code = read_signer(ctl);
	if (code == CTL_OK && osd_client_secure(ctl->client, give, NULL, &error) < 0)
		code = ctl_fail_command(ctl, &error);
	return code;
}

void ctl_forget_keys(void)
{
	keyring_free(&signer.keyring);
	OPENSSL_cleanse(&signer, sizeof(signer));
}
