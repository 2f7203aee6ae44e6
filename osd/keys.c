/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Stores the keys of a logical unit, wrapped, and finds them. */
#include "osd/keys.h"

#include <assert.h>
#include <errno.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "common/bytes.h"
#include "osd/execute.h"

/* ---- the private page ---- */

/* Numbers in it. */
enum {
	NUMBER_MASTER_KEY = 0x1,
	NUMBER_ROOT_KEY = 0x2,
	NUMBER_PARTITION_KEY = 0x3,
	NUMBER_WORKING_KEYS = 0x10, /* + version */
	NUMBER_BOOT_EPOCH = 0x20,
	NUMBER_AHEAD = 0x21,
};

uint32_t osd_private_page(enum engine_type type)
{
	return osd_first_page(type) + OSD_PAGES_TYPE_LAST;
}

bool osd_page_is_private(uint32_t page)
{
	return page == osd_private_page(ENGINE_ROOT) || page == osd_private_page(ENGINE_PARTITION);
}

/* ---- wrapping ---- */

/* What is wrapped (docs/format.md). */
enum {
	PLAIN_KIND = 0,
	PLAIN_VERSION = 1,
	PLAIN_PARTITION = 2,
	PLAIN_IDENTIFIER = 8,
	PLAIN_AUTHENTICATION = 16,
	PLAIN_GENERATION = 36,
	PLAIN_SERIAL = 56,
	PLAIN_MADE_WITH = 64,
	PLAIN_BYTES = 72,
	WRAPPED_BYTES = PLAIN_BYTES + 8,
};

int osd_keys_open(struct osd_security *security, const uint8_t device_key[32],
		  const uint8_t uuid[16], const uint8_t system_id[OSD_SYSTEM_ID_BYTES])
{
	static const char label[] = "muninn key wrapping";
	uint8_t message[sizeof(label) - 1 + 16];
	unsigned length = sizeof(security->wrapping_key);

	memcpy(message, label, sizeof(label) - 1);
	memcpy(message + sizeof(label) - 1, uuid, 16);
	if (!HMAC(EVP_sha256(), device_key, 32, message, sizeof(message), security->wrapping_key,
		  &length))
		return -ENOMEM;
	security->has_device_key = true;
	return osd_initial_master_keys(device_key, system_id,
				       security->initial_master.authentication,
				       security->initial_master.generation);
}

static void name_to_bytes(struct osd_key_name name, uint8_t plain[PLAIN_IDENTIFIER])
{
	plain[PLAIN_KIND] = (uint8_t)name.kind;
	plain[PLAIN_VERSION] = name.version;
	put_be48(plain + PLAIN_PARTITION, name.partition);
}

static int wrap(const struct osd_security *security, const uint8_t plain[PLAIN_BYTES],
		uint8_t wrapped[WRAPPED_BYTES])
{
	EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
	int length;
	bool good;

	if (!context)
		return -ENOMEM;
	EVP_CIPHER_CTX_set_flags(context, EVP_CIPHER_CTX_FLAG_WRAP_ALLOW);
	good = EVP_EncryptInit_ex(context, EVP_aes_256_wrap(), NULL, security->wrapping_key,
				  NULL) == 1 &&
	       EVP_EncryptUpdate(context, wrapped, &length, plain, PLAIN_BYTES) == 1 &&
	       length == WRAPPED_BYTES;
	EVP_CIPHER_CTX_free(context);
	return good ? 0 : -ENOMEM;
}

/* -EBADMSG: the bytes are damaged, or were wrapped by another key. */
static int unwrap(const struct osd_security *security, const uint8_t wrapped[WRAPPED_BYTES],
		  uint8_t plain[PLAIN_BYTES])
{
	EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
	uint8_t padded[WRAPPED_BYTES];
	int length;
	bool good;

	if (!context)
		return -ENOMEM;
	EVP_CIPHER_CTX_set_flags(context, EVP_CIPHER_CTX_FLAG_WRAP_ALLOW);
	good = EVP_DecryptInit_ex(context, EVP_aes_256_wrap(), NULL, security->wrapping_key,
				  NULL) == 1 &&
	       EVP_DecryptUpdate(context, padded, &length, wrapped, WRAPPED_BYTES) == 1 &&
	       length == PLAIN_BYTES;
	EVP_CIPHER_CTX_free(context);
	if (good)
		memcpy(plain, padded, PLAIN_BYTES);
	OPENSSL_cleanse(padded, sizeof(padded));
	return good ? 0 : -EBADMSG;
}

/* ---- stored keys ---- */

struct place {
	struct engine_address address;
	uint32_t page, number;
};

static struct place place_of(struct osd_key_name name)
{
	struct place place = { .page = osd_private_page(ENGINE_ROOT) };

	switch (name.kind) {
	case OSD_KEY_MASTER:
		place.number = NUMBER_MASTER_KEY;
		return place;
	case OSD_KEY_ROOT:
		place.number = NUMBER_ROOT_KEY;
		return place;
	case OSD_KEY_PARTITION:
		place.number = NUMBER_PARTITION_KEY;
		break;
	case OSD_KEY_WORKING:
		place.number = NUMBER_WORKING_KEYS + name.version;
		break;
	}
	place.page = osd_private_page(ENGINE_PARTITION);
	place.address.partition = name.partition;
	place.address.version = name.shown_by;
	return place;
}

/* A key as it is stored, valid or not. */
static int load(const struct osd_request *request, struct osd_key_name name, struct osd_key *key)
{
	const struct osd_security *security = request->device->security;
	struct place place = place_of(name);
	uint8_t wrapped[WRAPPED_BYTES], plain[PLAIN_BYTES], expected[PLAIN_IDENTIFIER];
	uint32_t length;
	int result;

	if (!security->has_device_key)
		return -ENOENT;
	result = osd_attribute_at(request->txn, place.address, place.page, place.number, wrapped,
				  sizeof(wrapped), &length);
	if (result != 0)
		return result;
	if (length != WRAPPED_BYTES)
		return -EBADMSG;
	result = unwrap(security, wrapped, plain);
	if (result != 0)
		return result;
	name_to_bytes(name, expected);
	if (memcmp(plain, expected, sizeof(expected)) != 0)
		return -EBADMSG;
	memcpy(key->identifier, plain + PLAIN_IDENTIFIER, OSD_KEY_IDENTIFIER_BYTES);
	memcpy(key->authentication, plain + PLAIN_AUTHENTICATION, OSD_KEY_BYTES);
	memcpy(key->generation, plain + PLAIN_GENERATION, OSD_KEY_BYTES);
	memcpy(key->serial, plain + PLAIN_SERIAL, OSD_KEY_SERIAL_BYTES);
	memcpy(key->made_with, plain + PLAIN_MADE_WITH, OSD_KEY_SERIAL_BYTES);
	OPENSSL_cleanse(plain, sizeof(plain));
	return 0;
}

static int load_master(const struct osd_request *request, struct osd_key *key)
{
	const struct osd_security *security = request->device->security;
	int result = load(request, (struct osd_key_name){ .kind = OSD_KEY_MASTER }, key);

	if (result == -ENOENT && security->has_device_key) {
		*key = security->initial_master;
		return 0;
	}
	return result;
}

/* Reads the keys from the master key down to the wanted one. */
static int find(const struct osd_request *request, struct osd_key_name name, struct osd_key *key)
{
	struct osd_key above;
	int result = load_master(request, key);

	for (enum osd_key_kind kind = OSD_KEY_ROOT; result == 0 && kind <= name.kind; kind++) {
		struct osd_key_name next = { .kind = kind };

		if (kind >= OSD_KEY_PARTITION) {
			next.partition = name.partition;
			next.shown_by = name.shown_by;
		}
		if (kind == OSD_KEY_WORKING)
			next.version = name.version;
		above = *key;
		result = load(request, next, key);
		if (result == 0 && memcmp(key->made_with, above.serial, OSD_KEY_SERIAL_BYTES) != 0)
			result = -ENOENT;
	}
	OPENSSL_cleanse(&above, sizeof(above));
	return result;
}

/* ---- keys that were found ---- */

/* What must stay the same for a cached key to be right. -ENOENT: no such partition. */
static int sequences_of(const struct osd_request *request, struct osd_key_name name,
			struct osd_cached_key *wanted)
{
	struct engine_address address = { 0 };
	struct engine_stat stat;
	int result = osd_stat_at(request, address, &stat);

	if (result != 0)
		return result;
	*wanted = (struct osd_cached_key){ .used = true,
					   .name = name,
					   .root_sequence = stat.lasting_sequence };
	if (name.kind < OSD_KEY_PARTITION)
		return 0;
	address.partition = name.partition;
	result = osd_stat_at(request, address, &stat);
	if (result == 0)
		wanted->partition_sequence = stat.lasting_sequence;
	return result;
}

static struct osd_cached_key *cache_place(const struct osd_request *request,
					  struct osd_key_name name)
{
	uint64_t number = name.partition * 31 + name.kind * 16 + name.version;

	return &request->device->security->cache[number % OSD_CACHED_KEYS];
}

static bool take_cached(const struct osd_request *request, const struct osd_cached_key *wanted,
			struct osd_key *key)
{
	struct osd_security *security = request->device->security;
	const struct osd_cached_key *cached = cache_place(request, wanted->name);
	bool same;

	pthread_mutex_lock(&security->lock);
	same = cached->used && cached->name.kind == wanted->name.kind &&
	       cached->name.partition == wanted->name.partition &&
	       cached->name.version == wanted->name.version &&
	       cached->root_sequence == wanted->root_sequence &&
	       cached->partition_sequence == wanted->partition_sequence;
	if (same)
		*key = cached->key;
	pthread_mutex_unlock(&security->lock);
	return same;
}

static void put_cached(const struct osd_request *request, const struct osd_cached_key *found)
{
	struct osd_security *security = request->device->security;

	pthread_mutex_lock(&security->lock);
	*cache_place(request, found->name) = *found;
	pthread_mutex_unlock(&security->lock);
}

int osd_key_find(const struct osd_request *request, struct osd_key_name name, struct osd_key *key)
{
	struct osd_cached_key cached;
	/*
	 * Caches no key that a transaction has changed so far: it may still be undone, and the
	 * change has no number of its own. A transaction that formats begins with attributes that
	 * it has put itself. Keys of partitions that are gone are wanted too seldom.
	 */
	bool settled = request->phase == OSD_PHASE_VALIDATION && name.shown_by == 0 &&
		       !(request->entry->flags & OSD_REFORMATS);
	int result;

	if (!settled)
		return find(request, name, key);
	result = sequences_of(request, name, &cached);
	if (result != 0)
		return result;
	if (take_cached(request, &cached, key)) {
		OPENSSL_cleanse(&cached, sizeof(cached));
		return 0;
	}
	result = find(request, name, key);
	if (result == 0) {
		cached.key = *key;
		put_cached(request, &cached);
	}
	OPENSSL_cleanse(&cached, sizeof(cached));
	return result;
}

int osd_key_store(struct osd_request *request, struct osd_key_name name, struct osd_key *key,
		  const struct osd_key *above)
{
	struct place place = place_of(name);
	uint8_t wrapped[WRAPPED_BYTES], plain[PLAIN_BYTES] = { 0 };
	int result;

	if (RAND_bytes(key->serial, sizeof(key->serial)) != 1)
		return -ENOMEM;
	memcpy(key->made_with, above->serial, OSD_KEY_SERIAL_BYTES);
	name_to_bytes(name, plain);
	memcpy(plain + PLAIN_IDENTIFIER, key->identifier, OSD_KEY_IDENTIFIER_BYTES);
	memcpy(plain + PLAIN_AUTHENTICATION, key->authentication, OSD_KEY_BYTES);
	memcpy(plain + PLAIN_GENERATION, key->generation, OSD_KEY_BYTES);
	memcpy(plain + PLAIN_SERIAL, key->serial, OSD_KEY_SERIAL_BYTES);
	memcpy(plain + PLAIN_MADE_WITH, key->made_with, OSD_KEY_SERIAL_BYTES);
	result = wrap(request->device->security, plain, wrapped);
	OPENSSL_cleanse(plain, sizeof(plain));
	if (result != 0)
		return result;
	return osd_attribute_set_at(request->txn, place.address, place.page, place.number, wrapped,
				    sizeof(wrapped));
}

/* ---- partitions that go ---- */

int osd_security_close(struct osd_request *request, uint64_t partition)
{
	struct engine_address address = { .partition = partition };
	uint32_t page = osd_private_page(ENGINE_PARTITION);
	int result = 0;

	for (uint32_t number = NUMBER_PARTITION_KEY;
	     result == 0 && number < NUMBER_WORKING_KEYS + OSD_WORKING_KEYS; number++) {
		uint32_t length;

		result = osd_attribute_at(request->txn, address, page, number, NULL, 0, &length);
		if (result == 0)
			result = osd_attribute_set_at(request->txn, address, page, number, NULL, 0);
		else if (result == -ENOENT)
			result = 0;
	}
	return osd_result(request, result, 0);
}

/* ---- what starts leave to the next one ---- */

/* A value of the root's private page; *length 0: it was never set. */
static int read_private(struct engine_txn *txn, uint32_t number, void *value, uint32_t capacity,
			uint32_t *length)
{
	struct engine_address root = { 0 };
	int result = osd_attribute_at(txn, root, osd_private_page(ENGINE_ROOT), number, value,
				      capacity, length);

	if (result == -ENOENT)
		*length = 0;
	return result == -ENOENT ? 0 : result;
}

static int write_private(struct engine_txn *txn, uint32_t number, const void *value,
			 uint32_t length)
{
	struct engine_address root = { 0 };

	/* No initiator sees the attribute, so none may see in the times that it was set. */
	engine_bypass_timestamps(txn, true);
	return osd_attribute_set_at(txn, root, osd_private_page(ENGINE_ROOT), number, value,
				    length);
}

int osd_boot_epoch_read(struct engine_txn *txn, uint16_t *epoch)
{
	uint8_t value[2] = { 0 };
	uint32_t length;
	int result = read_private(txn, NUMBER_BOOT_EPOCH, value, sizeof(value), &length);

	*epoch = get_be16(value);
	return result;
}

int osd_boot_epoch_write(struct engine_txn *txn, uint16_t epoch)
{
	uint8_t value[2];

	put_be16(value, epoch);
	return write_private(txn, NUMBER_BOOT_EPOCH, value, sizeof(value));
}

int osd_ahead_read(struct engine_txn *txn, struct osd_ahead *ahead)
{
	uint8_t value[OSD_AHEAD_BYTES_MAX];
	uint32_t length;
	int result = read_private(txn, NUMBER_AHEAD, value, sizeof(value), &length);

	return result != 0 ? result : osd_ahead_decode(value, length, ahead);
}

int osd_ahead_write(struct engine_txn *txn, const struct osd_ahead *ahead)
{
	uint8_t value[OSD_AHEAD_BYTES_MAX];

	return write_private(txn, NUMBER_AHEAD, value, (uint32_t)osd_ahead_encode(ahead, value));
}
