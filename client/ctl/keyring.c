/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Reads and writes the files of keys and credentials that a security manager keeps. */
#include "client/ctl/keyring.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/crypto.h>

#include "client/manifest.h"

/* ---- bytes as text ---- */

enum { BYTES_MAX = OSD2_CAPABILITY_BYTES };

static json_t *to_json(const uint8_t *bytes, size_t length)
{
	char text[2 * BYTES_MAX + 1];
	json_t *value;

	manifest_hex(bytes, length, text);
	value = json_string(text);
	OPENSSL_cleanse(text, sizeof(text));
	return value;
}

/* False: it is not so many hexadecimal digits. */
static bool from_json(const json_t *value, uint8_t *bytes, size_t length)
{
	const char *text = json_string_value(value);

	if (!text || strlen(text) != 2 * length)
		return false;
	for (size_t i = 0; i < length; i++) {
		const char digits[3] = { text[2 * i], text[2 * i + 1], '\0' };
		char *end;

		bytes[i] = (uint8_t)strtoul(digits, &end, 16);
		if (*end || digits[0] == '+' || digits[0] == '-' || digits[0] == ' ')
			return false;
	}
	return true;
}

/* ---- memory ---- */

static void wipe_and_free(void *memory)
{
	OPENSSL_cleanse(memory, malloc_usable_size(memory));
	free(memory);
}

void keyring_guard_memory(void)
{
	json_set_alloc_funcs(malloc, wipe_and_free);
}

/* ---- files ---- */

/* Reads a JSON object from a file that only its owner can read. */
static int read_private(const char *path, const char *what, json_t **object,
			struct error_text *error)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), result = 0;
	json_error_t reason = { 0 };
	struct stat stat;

	if (fd < 0)
		return error_set(error, -errno, "%s %s: %s", what, path, strerror(errno));
	if (fstat(fd, &stat) != 0)
		result = error_set(error, -errno, "%s %s: %s", what, path, strerror(errno));
	else if (stat.st_mode & (S_IRWXG | S_IRWXO))
		result = error_set(error, -EPERM,
				   "%s %s: others than its owner can read it; chmod 600 %s", what,
				   path, path);
	*object = result == 0 ? json_loadfd(fd, 0, &reason) : NULL;
	close(fd);
	if (result == 0 && !json_is_object(*object)) {
		json_decref(*object);
		result = error_set(error, -EINVAL,
				   "%s is no %s, or it is damaged: line %d is malformed", path,
				   what, *object ? 1 : reason.line);
	}
	return result;
}

int keyring_read(const char *path, struct keyring *keyring, struct error_text *error)
{
	uint8_t system_id[OSD_SYSTEM_ID_BYTES];
	int result = read_private(path, "keyring", &keyring->root, error);

	if (result < 0)
		return result;
	if (keyring_system_id(keyring, system_id) == 0)
		return 0;
	keyring_free(keyring);
	return error_set(error, -EINVAL,
			 "%s is no keyring: it names no unit; `muninnctl key init` makes one",
			 path);
}

static int name_new(const char *path, char name[PATH_MAX], struct error_text *error)
{
	if (snprintf(name, PATH_MAX, "%s.new", path) >= PATH_MAX)
		return error_set(error, -ENAMETOOLONG, "%s: the name is too long", path);
	return 0;
}

int keyring_prepare(const char *path, const struct keyring *keyring, struct error_text *error)
{
	char name[PATH_MAX];
	int fd, result = name_new(path, name, error);

	if (result < 0)
		return result;
	fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return error_set(error, -errno, "%s: %s", name, strerror(errno));
	if (json_dumpfd(keyring->root, fd, JSON_INDENT(1) | JSON_SORT_KEYS) != 0 ||
	    write(fd, "\n", 1) != 1 || fsync(fd) != 0)
		result = error_set(error, -EIO, "%s: %s", name, strerror(errno));
	close(fd);
	return result;
}

int keyring_replace(const char *path, struct error_text *error)
{
	char name[PATH_MAX];
	int result = name_new(path, name, error);

	if (result == 0 && rename(name, path) != 0)
		result = error_set(error, -errno, "%s: %s", path, strerror(errno));
	return result;
}

/* ---- keyrings ---- */

int keyring_create(const uint8_t system_id[OSD_SYSTEM_ID_BYTES], struct keyring *keyring)
{
	keyring->root = json_pack("{s:o}", "system_id", to_json(system_id, OSD_SYSTEM_ID_BYTES));
	return keyring->root ? 0 : -ENOMEM;
}

void keyring_free(struct keyring *keyring)
{
	json_decref(keyring->root);
	keyring->root = NULL;
}

int keyring_system_id(const struct keyring *keyring, uint8_t system_id[OSD_SYSTEM_ID_BYTES])
{
	return from_json(json_object_get(keyring->root, "system_id"), system_id,
			 OSD_SYSTEM_ID_BYTES)
		       ? 0
		       : -EINVAL;
}

static const char *partition_name(uint64_t partition, char text[24])
{
	snprintf(text, 24, "0x%" PRIx64, partition);
	return text;
}

static json_t *partition_of(const struct keyring *keyring, uint64_t partition)
{
	char text[24];

	return json_object_get(json_object_get(keyring->root, "partitions"),
			       partition_name(partition, text));
}

static json_t *find(const struct keyring *keyring, struct keyring_name name)
{
	char version[8];

	switch (name.kind) {
	case OSD_SECRET_MASTER:
		return json_object_get(keyring->root, "master");
	case OSD_SECRET_ROOT:
		return json_object_get(keyring->root, "root");
	case OSD_SECRET_PARTITION:
		return json_object_get(partition_of(keyring, name.partition), "key");
	case OSD_SECRET_WORKING:
		break;
	}
	snprintf(version, sizeof(version), "%u", name.version);
	return json_object_get(json_object_get(partition_of(keyring, name.partition), "working"),
			       version);
}

int keyring_get(const struct keyring *keyring, struct keyring_name name, struct keyring_key *key)
{
	const json_t *found = find(keyring, name);

	memset(key, 0, sizeof(*key));
	if (!found)
		return -ENOENT;
	if (!from_json(json_object_get(found, "authentication"), key->authentication,
		       OSD_KEY_BYTES) ||
	    (name.kind != OSD_SECRET_WORKING &&
	     !from_json(json_object_get(found, "generation"), key->generation, OSD_KEY_BYTES)))
		return -EINVAL;
	from_json(json_object_get(found, "identifier"), key->identifier, OSD_KEY_IDENTIFIER_BYTES);
	return 0;
}

int keyring_version(const struct keyring *keyring, uint64_t partition, uint8_t *version)
{
	for (uint8_t i = 0; i < OSD_WORKING_KEYS; i++) {
		if (find(keyring, (struct keyring_name){ OSD_SECRET_WORKING, partition, i })) {
			*version = i;
			return 0;
		}
	}
	return -ENOENT;
}

/* The object `name` in `parent`, which it makes if it is missing. NULL: out of memory. */
static json_t *child(json_t *parent, const char *name)
{
	json_t *found = json_object_get(parent, name);

	if (found)
		return found;
	return json_object_set_new(parent, name, json_object()) == 0 ? json_object_get(parent, name)
								     : NULL;
}

int keyring_set(struct keyring *keyring, struct keyring_name name, const struct keyring_key *key)
{
	json_t *value = json_pack("{s:o,s:o}", "authentication",
				  to_json(key->authentication, OSD_KEY_BYTES), "identifier",
				  to_json(key->identifier, OSD_KEY_IDENTIFIER_BYTES));
	char text[24], version[8];
	json_t *partition = NULL;
	int result;

	if (name.kind >= OSD_SECRET_PARTITION)
		partition = child(child(keyring->root, "partitions"),
				  partition_name(name.partition, text));
	if (name.kind != OSD_SECRET_WORKING)
		json_object_set_new(value, "generation", to_json(key->generation, OSD_KEY_BYTES));
	/* Setting a key invalidates those below it. */
	if (name.kind <= OSD_SECRET_ROOT)
		json_object_del(keyring->root, "partitions");
	if (name.kind == OSD_SECRET_MASTER)
		json_object_del(keyring->root, "root");
	if (name.kind == OSD_SECRET_PARTITION)
		json_object_del(partition, "working");
	snprintf(version, sizeof(version), "%u", name.version);
	switch (name.kind) {
	case OSD_SECRET_MASTER:
		result = json_object_set_new(keyring->root, "master", value);
		break;
	case OSD_SECRET_ROOT:
		result = json_object_set_new(keyring->root, "root", value);
		break;
	case OSD_SECRET_PARTITION:
		result = json_object_set_new(partition, "key", value);
		break;
	default:
		result = json_object_set_new(child(partition, "working"), version, value);
		break;
	}
	return result == 0 ? 0 : -ENOMEM;
}

/* ---- credentials ---- */

static const char *const methods[] = { "nosec", "capkey", "cmdrsp", "alldata" };

int method_parse(const char *text, bool nosec, uint8_t *method)
{
	for (unsigned i = nosec ? OSD_NOSEC : OSD_CAPKEY; i <= OSD_ALLDATA; i++) {
		if (strcmp(text, methods[i]) == 0) {
			*method = (uint8_t)i;
			return 0;
		}
	}
	return -EINVAL;
}

const char *method_name(uint8_t method)
{
	return method <= OSD_ALLDATA ? methods[method] : "unknown";
}

static size_t capability_bytes(enum osd_version version)
{
	return osd_security_layout(version)->capability_bytes;
}

json_t *credential_to_json(const struct osd_credential *credential)
{
	return json_pack("{s:i,s:s,s:o,s:o}", "osd", (int)credential->version, "method",
			 method_name(credential->method), "capability",
			 to_json(credential->capability, capability_bytes(credential->version)),
			 "key", to_json(credential->key, OSD_KEY_BYTES));
}

int credential_read(const char *path, struct osd_credential *credential, struct error_text *error)
{
	json_t *object;
	const char *method;
	bool good;
	int result = read_private(path, "credential", &object, error);

	if (result < 0)
		return result;
	*credential = (struct osd_credential){
		.version = json_integer_value(json_object_get(object, "osd")) == 1 ? OSD_1 : OSD_2
	};
	method = json_string_value(json_object_get(object, "method"));
	good = method && method_parse(method, false, &credential->method) == 0 &&
	       from_json(json_object_get(object, "capability"), credential->capability,
			 capability_bytes(credential->version)) &&
	       from_json(json_object_get(object, "key"), credential->key, OSD_KEY_BYTES);
	json_decref(object);
	if (!good)
		OPENSSL_cleanse(credential, sizeof(*credential));
	if (!good)
		return error_set(error, -EINVAL,
				 "%s is no credential; `muninnctl key mint` makes one", path);
	return 0;
}
