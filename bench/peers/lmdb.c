/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* LMDB, a B+ tree in a mapped file. Its cache is the host's: it has no options for memory. */
#include <errno.h>
#include <lmdb.h>
#include <stdlib.h>
#include <string.h>

#include "bench/peers/peer.h"

struct lmdb {
	MDB_env *env;
	MDB_dbi dbi;
};

static int failed(struct error_text *error, const char *doing, int code)
{
	return error_set(error, code > 0 ? -code : -EIO, "lmdb cannot %s: %s", doing,
			 mdb_strerror(code));
}

/* Pages are half full after inserts in random order, and large values have pages of their own. */
static size_t map_bytes(const struct peer_options *options)
{
	return (options->data_bytes + options->spare_bytes) * 4 + (UINT64_C(64) << 20);
}

static int open_table(struct lmdb *lmdb)
{
	MDB_txn *txn;
	int code = mdb_txn_begin(lmdb->env, NULL, 0, &txn);

	if (code)
		return code;
	code = mdb_dbi_open(txn, NULL, 0, &lmdb->dbi);
	if (code) {
		mdb_txn_abort(txn);
		return code;
	}
	return mdb_txn_commit(txn);
}

static int lmdb_close(void *peer, struct error_text *error)
{
	struct lmdb *lmdb = peer;

	(void)error;
	if (lmdb->env)
		mdb_env_close(lmdb->env);
	free(lmdb);
	return 0;
}

/*
 * MDB_NOSYNC: commits go to the host's page cache. MDB_NORDAHEAD: without it the host reads what
 * nobody asked for.
 */
static int lmdb_open(const struct peer_options *options, void **peer, struct error_text *error)
{
	struct lmdb *lmdb = calloc(1, sizeof(*lmdb));
	int code;

	if (!lmdb)
		return error_set(error, -ENOMEM, "lmdb: out of memory");
	code = mdb_env_create(&lmdb->env);
	if (!code)
		code = mdb_env_set_mapsize(lmdb->env, map_bytes(options));
	if (!code)
		code = mdb_env_open(lmdb->env, options->folder, MDB_NOSYNC | MDB_NORDAHEAD, 0640);
	if (!code)
		code = open_table(lmdb);
	if (code) {
		lmdb_close(lmdb, error);
		return failed(error, "open", code);
	}
	*peer = lmdb;
	return 0;
}

static int lmdb_put(void *peer, uint64_t key, const void *value, uint32_t bytes,
		    struct error_text *error)
{
	struct lmdb *lmdb = peer;
	char key_bytes[PEER_KEY_BYTES];
	MDB_val name = { sizeof(key_bytes), key_bytes };
	MDB_val data = { bytes, (void *)(uintptr_t)value };
	MDB_txn *txn;
	int code = mdb_txn_begin(lmdb->env, NULL, 0, &txn);

	if (code)
		return failed(error, "begin", code);
	peer_key(key, key_bytes);
	code = mdb_put(txn, lmdb->dbi, &name, &data, 0);
	if (code)
		mdb_txn_abort(txn);
	else
		code = mdb_txn_commit(txn);
	return code ? failed(error, "put", code) : 0;
}

static int lmdb_get(void *peer, uint64_t key, void *value, uint32_t capacity, uint32_t *bytes,
		    struct error_text *error)
{
	struct lmdb *lmdb = peer;
	char key_bytes[PEER_KEY_BYTES];
	MDB_val name = { sizeof(key_bytes), key_bytes }, data;
	MDB_txn *txn;
	int code = mdb_txn_begin(lmdb->env, NULL, MDB_RDONLY, &txn);

	if (code)
		return failed(error, "begin reading", code);
	peer_key(key, key_bytes);
	code = mdb_get(txn, lmdb->dbi, &name, &data);
	if (!code) {
		*bytes = (uint32_t)data.mv_size;
		memcpy(value, data.mv_data, *bytes < capacity ? *bytes : capacity);
	}
	mdb_txn_abort(txn);
	if (code == MDB_NOTFOUND)
		return -ENOENT;
	return code ? failed(error, "get", code) : 0;
}

static int lmdb_settle(void *peer, struct error_text *error)
{
	struct lmdb *lmdb = peer;
	int code = mdb_env_sync(lmdb->env, 1);

	return code ? failed(error, "sync", code) : 0;
}

const struct peer_type peer = {
	.name = "lmdb",
	.open = lmdb_open,
	.put = lmdb_put,
	.get = lmdb_get,
	.settle = lmdb_settle,
	.close = lmdb_close,
};
