/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The keys of a logical unit: master, root, and for each partition a partition key and 16 working
 * keys. Private to osd/.
 *
 * Each key is an attribute of the root or of its partition, in a page that no command shows. It is
 * encrypted (AES-256 key wrap, RFC 3394) under a key made from the unit's device key and UUID. The
 * wrapped bytes say which key it is, so nobody can put one key in the place of another.
 * docs/format.md has the layout.
 *
 * A key is valid as long as the key above it that it was made with is. So setting a key invalidates
 * those below.
 */
#ifndef MUNINN_OSD_KEYS_H
#define MUNINN_OSD_KEYS_H

#include <pthread.h>

#include "engine/engine.h"
#include "osd/security_ahead.h"
#include "osd/security_nonces.h"
#include "wire/keys_exchange.h"
#include "wire/security.h"

struct osd_device;
struct osd_request;
struct engine_txn;

#define OSD_KEY_SERIAL_BYTES 8

enum osd_key_kind {
	OSD_KEY_MASTER = 1,
	OSD_KEY_ROOT = 2,
	OSD_KEY_PARTITION = 3,
	OSD_KEY_WORKING = 4,
};

struct osd_key_name {
	enum osd_key_kind kind;
	uint64_t partition; /* of partition and working keys, at most 48 bits */
	uint8_t version;    /* of working keys, 0..15 */
	/* An earlier partition of that ID, which this version of the device or view shows; or 0. */
	uint32_t shown_by;
};

struct osd_key {
	uint8_t identifier[OSD_KEY_IDENTIFIER_BYTES];
	uint8_t authentication[OSD_KEY_BYTES];
	uint8_t generation[OSD_KEY_BYTES];       /* not of working keys */
	uint8_t serial[OSD_KEY_SERIAL_BYTES];    /* random; zero: the initial master key */
	uint8_t made_with[OSD_KEY_SERIAL_BYTES]; /* serial of the key above */
};

/*
 * A key that was found, kept for the next commands. It is right as long as the lasting attributes
 * of root and partition are what they were then. Their sequence numbers tell that, because these
 * only rise.
 */
#define OSD_CACHED_KEYS 64
struct osd_cached_key {
	bool used;
	struct osd_key_name name;
	uint64_t root_sequence, partition_sequence;
	struct osd_key key;
};

/* The unit's side of SET MASTER KEY between its two steps. */
struct osd_master_exchange {
	bool under_way;
	uint64_t started_ms;
	struct osd_dh_pair pair;
	uint8_t application[OSD_DH_BYTES_MAX]; /* what the initiator sent */
};

/* A logical unit's security; osd_device.security. */
struct osd_security {
	bool has_device_key;
	uint8_t wrapping_key[32];
	struct osd_key initial_master;
	uint16_t boot_epoch;             /* 0 = none, without device key */
	uint64_t started_ms;             /* by the engine's clock */
	uint8_t token_secret[32];        /* security tokens are made with it */
	pthread_mutex_t memo_lock;       /* of what is noted, see osd/security_start.h */
	uint64_t nonces_bound_ms;        /* for all requests */
	uint64_t nonces_least_ms;        /* it does not come down below this one any more */
	struct osd_ahead ahead;          /* for those that were dated ahead */
	struct osd_ahead ahead_at_start; /* never changes after the start, so needs no lock */
	pthread_mutex_t lock;            /* of what follows */
	struct osd_nonces *nonces;       /* NULL until the first is taken */
	uint32_t nonces_max;
	struct osd_cached_key cache[OSD_CACHED_KEYS];
	struct osd_master_exchange exchange;
};

/* -ENOMEM. */
int osd_keys_open(struct osd_security *security, const uint8_t device_key[32],
		  const uint8_t uuid[16], const uint8_t system_id[OSD_SYSTEM_ID_BYTES]);

/*
 * The key of a name. -ENOENT: never set, or no longer valid. -EBADMSG: damaged, or not wrapped by
 * this unit's device key. -ENOMEM and the engine's errors.
 */
int osd_key_find(const struct osd_request *request, struct osd_key_name name, struct osd_key *key);

/* Stores a new key, made with `above`; gives it a serial. Inside a writing transaction. */
int osd_key_store(struct osd_request *request, struct osd_key_name name, struct osd_key *key,
		  const struct osd_key *above);

/* Number in the root's private page that is no key: the capacity of FORMAT OSD, 8 bytes. */
#define OSD_PRIVATE_FORMATTED_CAPACITY 0x30u

/* The private page of the root or of partitions, which holds keys. No command shows or sets it. */
uint32_t osd_private_page(enum engine_type type);
bool osd_page_is_private(uint32_t page);

/*
 * Takes the keys of a partition that is about to be removed. Should a rollback of the device bring
 * it back, it is protected as before, and closed until it has new keys. Inside a writing
 * transaction.
 */
int osd_security_close(struct osd_request *request, uint64_t partition);

/* Reads the boot epoch as the attribute has it; 0: never set. Inside a transaction. */
int osd_boot_epoch_read(struct engine_txn *txn, uint16_t *epoch);
int osd_boot_epoch_write(struct engine_txn *txn, uint16_t epoch);
/* Bounds of requests that were dated ahead, likewise; none if never set. */
int osd_ahead_read(struct engine_txn *txn, struct osd_ahead *ahead);
int osd_ahead_write(struct engine_txn *txn, const struct osd_ahead *ahead);

/* ---- keys_commands.c ---- */

int osd_check_set_key(struct osd_request *request);
int osd_set_key(struct osd_request *request);
int osd_check_set_master_key(struct osd_request *request);
int osd_set_master_key(struct osd_request *request);

#endif
