/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Keys: key create, init, set. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <openssl/crypto.h>
#include <openssl/rand.h>

#include "client/ctl/ctl.h"
#include "client/ctl/signer.h"
#include "common/bytes.h"
#include "wire/keys_exchange.h"
#include "wire/keys_file.h"

static int fail_local(const struct ctl *ctl, const struct error_text *error)
{
	return ctl_fail(ctl, CTL_LOCAL, "%s", error->text);
}

static int fail_memory(const struct ctl *ctl)
{
	return ctl_fail(ctl, CTL_LOCAL, "out of memory");
}

/* ---- key create, key init ---- */

int verb_key_create(struct ctl *ctl)
{
	struct error_text error;
	int result = osd_key_file_create(ctl->url, &error);

	if (result == -EEXIST)
		return ctl_fail(ctl, CTL_EXISTS, "%s", error.text);
	return result < 0 ? fail_local(ctl, &error) : CTL_OK;
}

static int need_keyring(const struct ctl *ctl)
{
	if (ctl->options->key)
		return CTL_OK;
	return ctl_fail(ctl, CTL_USAGE, "%s needs --key KEYRING", ctl->verb);
}

/* Writes a keyring, which must not exist yet. */
static int save_first(const struct ctl *ctl, const struct keyring *keyring)
{
	struct error_text error;
	FILE *there = fopen(ctl->options->key, "re");

	if (there) {
		fclose(there);
		return ctl_fail(ctl, CTL_EXISTS,
				"%s: there is a keyring already; choose another name",
				ctl->options->key);
	}
	if (keyring_prepare(ctl->options->key, keyring, &error) < 0 ||
	    keyring_replace(ctl->options->key, &error) < 0)
		return fail_local(ctl, &error);
	return CTL_OK;
}

int verb_key_init(struct ctl *ctl)
{
	struct keyring_name name = { .kind = OSD_SECRET_MASTER };
	uint8_t device_key[OSD_DEVICE_KEY_BYTES], system_id[OSD_SYSTEM_ID_BYTES];
	struct keyring_key master = { 0 };
	struct osd_client_error error;
	struct keyring keyring = { NULL };
	struct error_text reason;
	int code = need_keyring(ctl);

	if (code == CTL_OK && osd_key_file_read(ctl->arguments[0], device_key, &reason) < 0)
		code = fail_local(ctl, &reason);
	if (code == CTL_OK)
		code = ctl_connect_unsigned(ctl);
	if (code == CTL_OK && osd_client_system_id(ctl->client, system_id, &error) < 0)
		code = ctl_fail_command(ctl, &error);
	if (code == CTL_OK &&
	    (osd_initial_master_keys(device_key, system_id, master.authentication,
				     master.generation) < 0 ||
	     keyring_create(system_id, &keyring) < 0 || keyring_set(&keyring, name, &master) < 0))
		code = fail_memory(ctl);
	if (code == CTL_OK)
		code = save_first(ctl, &keyring);
	keyring_free(&keyring);
	OPENSSL_cleanse(device_key, sizeof(device_key));
	OPENSSL_cleanse(&master, sizeof(master));
	return code;
}

/* ---- key set ---- */

/* What --name says, or the time; 7 bytes. */
static int choose_identifier(const struct ctl *ctl, uint8_t identifier[OSD_KEY_IDENTIFIER_BYTES])
{
	const char *name = ctl->options->name;

	memset(identifier, 0, OSD_KEY_IDENTIFIER_BYTES);
	if (!name) {
		put_be48(identifier + 1, (uint64_t)time(NULL));
		return CTL_OK;
	}
	if (strlen(name) > OSD_KEY_IDENTIFIER_BYTES)
		return ctl_fail(ctl, CTL_USAGE, "--name '%s': a key's name has at most %d bytes",
				name, OSD_KEY_IDENTIFIER_BYTES);
	memcpy(identifier, name, strlen(name));
	return CTL_OK;
}

/* "master", "root", a PID; with --key-version a working key of it. */
static int key_argument(struct ctl *ctl, struct keyring_name *name)
{
	struct osd_client_address address;
	int code;

	*name = (struct keyring_name){ .kind = OSD_SECRET_MASTER };
	if (strcmp(ctl->arguments[0], "master") == 0)
		return CTL_OK;
	name->kind = OSD_SECRET_ROOT;
	if (strcmp(ctl->arguments[0], "root") == 0)
		return CTL_OK;
	if (ctl->arguments[0][0] < '0' || ctl->arguments[0][0] > '9')
		return ctl_fail(ctl, CTL_USAGE,
				"key set: '%s' is none of master, root, and the ID of a partition",
				ctl->arguments[0]);
	code = ctl_partition_address(ctl, 0, &address);
	code = ctl_present(ctl, code, address);
	if (code != CTL_OK)
		return code;
	name->kind = ctl->options->has_key_version ? OSD_SECRET_WORKING : OSD_SECRET_PARTITION;
	name->partition = address.partition;
	name->version = ctl->options->key_version;
	return CTL_OK;
}

/*
 * The new key goes into FILE.new before the target gets it, and into FILE afterwards. So no key is
 * ever set that nobody has.
 */
static int commit(const struct ctl *ctl, struct osd_request *request)
{
	struct error_text error;

	if (osd_client_run(ctl->client, request) < 0)
		return ctl_fail_command(ctl, &request->error);
	return keyring_replace(ctl->options->key, &error) < 0 ? fail_local(ctl, &error) : CTL_OK;
}

/* A copy of the keyring with the new key in it, in FILE.new. */
static int prepare(const struct ctl *ctl, struct keyring_name name, const struct keyring_key *key)
{
	struct keyring next = { json_deep_copy(signer_keyring()->root) };
	struct error_text error;
	int code = CTL_OK;

	if (!next.root || keyring_set(&next, name, key) < 0)
		code = fail_memory(ctl);
	else if (keyring_prepare(ctl->options->key, &next, &error) < 0)
		code = fail_local(ctl, &error);
	keyring_free(&next);
	return code;
}

static const char *const keys_above[] = {
	[OSD_SECRET_ROOT] = "master",
	[OSD_SECRET_PARTITION] = "root",
	[OSD_SECRET_WORKING] = "PID",
};

static int set_key(const struct ctl *ctl, struct keyring_name name)
{
	static const uint8_t codes[] = { [OSD_SECRET_ROOT] = OSD_SET_ROOT_KEY,
					 [OSD_SECRET_PARTITION] = OSD_SET_PARTITION_KEY,
					 [OSD_SECRET_WORKING] = OSD_SET_WORKING_KEY };
	struct keyring_name above_name = { name.kind - 1, name.partition, 0 };
	struct osd_request request = { .cdb = { .action = OSD_SET_KEY,
						.partition = name.partition,
						.command_options = codes[name.kind] } };
	struct osd_key_fields fields = { .key_version = name.version };
	struct keyring_key above, key = { 0 };
	int code = choose_identifier(ctl, key.identifier);

	if (code != CTL_OK)
		return code;
	if (keyring_get(signer_keyring(), above_name, &above) < 0)
		return ctl_fail(ctl, CTL_NOT_FOUND,
				"%s: the keyring does not have the key above, which is set first: "
				"`muninnctl key set URL %s`",
				ctl->options->key, keys_above[name.kind]);
	if (RAND_bytes(fields.seed, sizeof(fields.seed)) != 1 ||
	    osd_derive_keys(above.generation, fields.seed, sizeof(fields.seed), key.authentication,
			    key.generation) < 0)
		code = fail_memory(ctl);
	memcpy(fields.identifier, key.identifier, sizeof(fields.identifier));
	osd_key_fields_encode(OSD_SET_KEY, &fields, request.cdb.key_bytes);
	if (code == CTL_OK)
		code = prepare(ctl, name, &key);
	if (code == CTL_OK)
		code = commit(ctl, &request);
	OPENSSL_cleanse(&above, sizeof(above));
	OPENSSL_cleanse(&key, sizeof(key));
	OPENSSL_cleanse(&fields, sizeof(fields));
	return code;
}

static struct osd_request master_request(unsigned step, uint8_t group, const uint8_t *list,
					 size_t length, const uint8_t *identifier, uint8_t *buffer,
					 size_t buffer_length)
{
	struct osd_request request = { .cdb = { .action = OSD_SET_MASTER_KEY,
						.command_options = (uint8_t)step },
				       .data = list,
				       .data_length = length,
				       .buffer = buffer,
				       .buffer_length = buffer_length };
	struct osd_key_fields fields = { .dh_group = group,
					 .parameter_length = (uint32_t)length,
					 .allocation_length = (uint32_t)buffer_length };

	memcpy(fields.identifier, identifier, sizeof(fields.identifier));
	osd_key_fields_encode(OSD_SET_MASTER_KEY, &fields, request.cdb.key_bytes);
	return request;
}

/* What both sides exchange to make a new master key. All of it is secret. */
struct exchange {
	struct keyring_key old, key;
	struct osd_dh_pair pair;
	uint8_t shared[OSD_DH_BYTES_MAX];
};

static int change_master(const struct ctl *ctl, struct exchange *exchange)
{
	struct keyring_name name = { .kind = OSD_SECRET_MASTER };
	uint8_t list[OSD_CHANGE_MASTER_BYTES_MAX], answer[OSD_SEED_BYTES_MAX];
	struct osd_dh_pair *pair = &exchange->pair;
	struct keyring_key *key = &exchange->key;
	struct osd_request request;
	const uint8_t *device;
	size_t length;
	int code = choose_identifier(ctl, key->identifier);

	if (code != CTL_OK)
		return code;
	if (keyring_get(signer_keyring(), name, &exchange->old) < 0)
		return ctl_fail(ctl, CTL_NOT_FOUND, "%s: the keyring has no master key",
				ctl->options->key);
	if (osd_dh_begin(OSD_DH_GROUP_2048, pair) < 0)
		return fail_memory(ctl);
	length = osd_seed_encode(pair->group, pair->own, list);
	request = master_request(OSD_SEED_EXCHANGE, pair->group, list, length, key->identifier,
				 answer, sizeof(answer));
	if (osd_client_run(ctl->client, &request) < 0)
		return ctl_fail_command(ctl, &request.error);
	if (osd_seed_decode(answer, request.received, pair->group, &device) < 0 ||
	    osd_dh_share(pair, device, exchange->shared) < 0 ||
	    osd_derive_keys(exchange->old.generation, exchange->shared, osd_dh_bytes(pair->group),
			    key->authentication, key->generation) < 0)
		return ctl_fail(ctl, CTL_TARGET,
				"SET MASTER KEY: the target's number makes no key");
	length = osd_change_master_encode(pair->group, pair->own, device, list);
	request = master_request(OSD_CHANGE_MASTER_KEY, pair->group, list, length, key->identifier,
				 NULL, 0);
	code = prepare(ctl, name, key);
	return code == CTL_OK ? commit(ctl, &request) : code;
}

static int set_master(const struct ctl *ctl)
{
	struct exchange exchange = { 0 };
	int code = change_master(ctl, &exchange);

	OPENSSL_cleanse(&exchange, sizeof(exchange));
	return code;
}

int verb_key_set(struct ctl *ctl)
{
	struct keyring_name name;
	int code = need_keyring(ctl);

	if (code == CTL_OK)
		code = key_argument(ctl, &name);
	if (code == CTL_OK)
		code = ctl_connect(ctl);
	if (code != CTL_OK)
		return code;
	return name.kind == OSD_SECRET_MASTER ? set_master(ctl) : set_key(ctl, name);
}
