/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* key create, init, set, method, show, mint; and the options --key and --credential of all verbs. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <openssl/crypto.h>
#include <openssl/rand.h>

#include "client/ctl/ctl.h"
#include "client/ctl/keyring.h"
#include "client/manifest.h"
#include "common/bytes.h"
#include "osd/keys_exchange.h"
#include "osd/keys_file.h"

#define PARTITION_BITS 48
/* Lifetime of a minted credential in seconds, unless told. */
#define EXPIRES_SECONDS 3600

static int fail_local(const struct ctl *ctl, const struct error_text *error)
{
	return ctl_fail(ctl, CTL_LOCAL, "%s", error->text);
}

static int fail_memory(const struct ctl *ctl)
{
	return ctl_fail(ctl, CTL_LOCAL, "out of memory");
}

/* ---- credentials for the commands of any verb ---- */

/* What --key or --credential have brought; one process makes one connection. */
struct signer {
	struct keyring keyring; /* root NULL: there is a credential instead */
	struct osd_credential credential;
	uint8_t system_id[OSD_SYSTEM_ID_BYTES];
	uint8_t method;
	bool has_version;
	uint8_t version;
	uint64_t key_of; /* partition whose keys stand in for missing ones; 0: none */
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

/* A snapshot has the keys of what it is one of, which the keyring does not know. */
static uint64_t whose_keys(const struct keyring *keyring, uint64_t partition, uint64_t key_of)
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
		name.partition = whose_keys(&signer.keyring, name.partition, signer.key_of);
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

static int read_signer(const struct ctl *ctl)
{
	const struct ctl_options *options = ctl->options;
	struct error_text error;

	if (options->key && options->credential)
		return ctl_fail(ctl, CTL_USAGE, "--key and --credential: one of the two");
	signer.method = OSD_ALLDATA;
	if (options->security && method_parse(options->security, false, &signer.method) < 0)
		return ctl_fail(ctl, CTL_USAGE,
				"--security '%s': capkey, cmdrsp or alldata is wanted",
				options->security);
	signer.has_version = options->has_key_version;
	signer.version = options->key_version;
	signer.key_of = options->key_of;
	if (options->credential)
		return credential_read(options->credential, &signer.credential, &error) < 0
			       ? fail_local(ctl, &error)
			       : CTL_OK;
	if (keyring_read(options->key, &signer.keyring, &error) < 0)
		return fail_local(ctl, &error);
	keyring_system_id(&signer.keyring, signer.system_id);
	return CTL_OK;
}

int ctl_secure(struct ctl *ctl)
{
	struct osd_client_error error;
	int code;

	if (!ctl->options->key && !ctl->options->credential)
		return CTL_OK;
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

/* Writes a keyring that must not be there yet. */
static int save_first(const struct ctl *ctl, const struct keyring *keyring)
{
	struct error_text error;
	FILE *there = fopen(ctl->options->key, "re");

	if (there) {
		fclose(there);
		return ctl_fail(ctl, CTL_EXISTS, "%s: there is a keyring already",
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
 * The new key goes into FILE.new before the target gets it and into FILE behind that, so that no key can be set that
 * nobody has.
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
	struct keyring next = { json_deep_copy(signer.keyring.root) };
	struct error_text error;
	int code = CTL_OK;

	if (!next.root || keyring_set(&next, name, key) < 0)
		code = fail_memory(ctl);
	else if (keyring_prepare(ctl->options->key, &next, &error) < 0)
		code = fail_local(ctl, &error);
	keyring_free(&next);
	return code;
}

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
	if (keyring_get(&signer.keyring, above_name, &above) < 0)
		return ctl_fail(ctl, CTL_NOT_FOUND,
				"%s: the keyring does not have the key above, which is set first",
				ctl->options->key);
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
					 size_t length, const uint8_t *identifier, uint8_t *room,
					 size_t room_length)
{
	struct osd_request request = { .cdb = { .action = OSD_SET_MASTER_KEY,
						.command_options = (uint8_t)step },
				       .data = list,
				       .data_length = length,
				       .room = room,
				       .room_length = room_length };
	struct osd_key_fields fields = { .dh_group = group,
					 .parameter_length = (uint32_t)length,
					 .allocation_length = (uint32_t)room_length };

	memcpy(fields.identifier, identifier, sizeof(fields.identifier));
	osd_key_fields_encode(OSD_SET_MASTER_KEY, &fields, request.cdb.key_bytes);
	return request;
}

/* What a new master key is made of. All of it is secret. */
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
	if (keyring_get(&signer.keyring, name, &exchange->old) < 0)
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

/* ---- key method ---- */

int verb_key_method(struct ctl *ctl)
{
	bool of_new = strcmp(ctl->arguments[0], "new") == 0;
	struct osd_client_address address = { 0 };
	struct osd_client_error error;
	uint8_t method;
	struct osd_client_value set = { .value = &method, .length = 1 };
	int code = of_new ? CTL_OK : ctl_address(ctl, 0, &address);

	if (code == CTL_OK && address.object)
		code = ctl_fail(ctl, CTL_USAGE,
				"%s: partitions and the root (0) have a method, objects have not",
				ctl->verb);
	if (code == CTL_OK && method_parse(ctl->arguments[1], true, &method) < 0)
		code = ctl_fail(ctl, CTL_USAGE,
				"'%s' is no security method; they are nosec, capkey, cmdrsp and "
				"alldata",
				ctl->arguments[1]);
	if (code == CTL_OK)
		code = ctl_connect(ctl);
	if (code != CTL_OK)
		return code;
	set.page = address.partition ? OSD_PARTITION_SECURITY : OSD_ROOT_SECURITY;
	set.number = of_new ? OSD_SECURITY_PARTITION_DEFAULT_METHOD : OSD_SECURITY_DEFAULT_METHOD;
	if (osd_client_set_attributes(ctl->client, address, &set, 1, &error) < 0)
		return ctl_fail_command(ctl, &error);
	return CTL_OK;
}

/* ---- key show ---- */

struct shown {
	json_t *facts;
	bool json;
};

/* "2026-01-31…" is not what identifiers are: text where they are, otherwise hexadecimal. */
static void identifier_text(const uint8_t *value, uint32_t length, char text[32])
{
	uint32_t used = length;

	while (used > 0 && value[used - 1] == 0)
		used--;
	for (uint32_t i = 0; i < used; i++) {
		if (value[i] <= 0x20 || value[i] > 0x7e) {
			manifest_hex(value, length, text);
			return;
		}
	}
	memcpy(text, value, used);
	text[used] = '\0';
	if (used == 0)
		strcpy(text, "initial");
}

static int show_one(void *context, const struct osd_attribute *attribute)
{
	struct shown *shown = context;
	char name[32] = "", value[32] = "";

	if (attribute->length == 0 || attribute->length > 8 ||
	    attribute->present < attribute->length)
		return 0;
	switch (attribute->number) {
	case OSD_SECURITY_DEFAULT_METHOD:
		strcpy(name, "method");
		break;
	case OSD_SECURITY_PARTITION_DEFAULT_METHOD:
		strcpy(name, "method_new");
		break;
	case OSD_SECURITY_FROZEN_KEYS:
		strcpy(name, "frozen_keys");
		snprintf(value, sizeof(value), "0x%04x", get_be16(attribute->value));
		break;
	case OSD_SECURITY_BOOT_EPOCH:
		strcpy(name, "boot_epoch");
		snprintf(value, sizeof(value), "%u", get_be16(attribute->value));
		break;
	case OSD_SECURITY_MASTER_KEY_IDENTIFIER:
		strcpy(name, "master");
		break;
	case OSD_SECURITY_ROOT_KEY_IDENTIFIER:
		strcpy(name, "root");
		break;
	case OSD_SECURITY_PARTITION_KEY_IDENTIFIER:
		strcpy(name, "partition");
		break;
	default:
		if (attribute->number - OSD_SECURITY_WORKING_KEY_IDENTIFIERS >= OSD_WORKING_KEYS)
			return 0;
		snprintf(name, sizeof(name), "working_%u",
			 attribute->number - OSD_SECURITY_WORKING_KEY_IDENTIFIERS);
		break;
	}
	if (attribute->length == 1)
		snprintf(value, sizeof(value), "%s", method_name(attribute->value[0]));
	else if (attribute->length == OSD_KEY_IDENTIFIER_BYTES)
		identifier_text(attribute->value, attribute->length, value);
	if (shown->json)
		return json_object_set_new(shown->facts, name, json_string(value)) < 0 ? -ENOMEM
										       : 0;
	printf("%-12s %s\n", name, value);
	return 0;
}

int verb_key_show(struct ctl *ctl)
{
	struct osd_client_address address;
	struct osd_client_error error;
	struct shown shown = { .json = ctl->options->json };
	struct osd_client_value get = { .number = OSD_ATTRIBUTE_ALL, .length = 4096 };
	int code = ctl_address(ctl, 0, &address);

	address.object = 0;
	if (code == CTL_OK)
		code = ctl_connect(ctl);
	if (code != CTL_OK)
		return code;
	get.page = address.partition ? OSD_PARTITION_SECURITY : OSD_ROOT_SECURITY;
	shown.facts = json_object();
	if (osd_client_get_attributes(ctl->client, address, &get, 1, show_one, &shown, &error) <
	    0) {
		json_decref(shown.facts);
		return ctl_fail_command(ctl, &error);
	}
	if (shown.json)
		return ctl_print_json(stdout, shown.facts);
	json_decref(shown.facts);
	return ctl_end_output(ctl);
}

/* ---- key mint ---- */

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
			return ctl_fail(ctl, CTL_USAGE,
					"--permissions: '%.*s' is none; muninnctl key mint --help "
					"lists them",
					(int)length, text);
		*permissions |= permission_names[i].bit;
		text += length + (text[length] == ',');
	}
	return CTL_OK;
}

/* What a credential for the address is made with, and says of it. */
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
				       whose_keys(keyring, address.partition, ctl->options->key_of),
				       ctl->options->key_version };
	if (!of_root && !ctl->options->has_key_version &&
	    keyring_version(keyring, name->partition, &name->version) < 0)
		return ctl_fail(ctl, CTL_NOT_FOUND, "%s: there is no working key of the partition",
				ctl->url);
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
	struct osd_capability capability = { .method = OSD_ALLDATA };
	uint8_t system_id[OSD_SYSTEM_ID_BYTES];
	struct osd_credential credential;
	struct keyring_name name;
	struct keyring_key key;
	int code = describe(ctl, keyring, address, &name, &capability);

	if (code != CTL_OK)
		return code;
	if (ctl->options->security &&
	    method_parse(ctl->options->security, false, &capability.method) < 0)
		return ctl_fail(ctl, CTL_USAGE,
				"--security '%s': capkey, cmdrsp or alldata is wanted",
				ctl->options->security);
	if (keyring_get(keyring, name, &key) < 0)
		return ctl_fail(ctl, CTL_NOT_FOUND, "%s: the key for that is not in it", ctl->url);
	keyring_system_id(keyring, system_id);
	/* What is printed is secret, and must not stay in a buffer. */
	setvbuf(stdout, NULL, _IONBF, 0);
	if (osd_credential_mint(version, &capability, key.authentication, system_id, &credential) <
	    0)
		code = fail_memory(ctl);
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
		return fail_local(ctl, &error);
	code = mint(ctl, &keyring, address);
	keyring_free(&keyring);
	return code;
}
