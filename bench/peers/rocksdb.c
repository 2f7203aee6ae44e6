/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* RocksDB, a log-structured merge tree, with direct I/O. */
#include <errno.h>
#include <rocksdb/c.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/peers/peer.h"

enum {
	BITS_A_KEY = 10,
	BACKGROUND_JOBS = 2,
	BLOCK_BYTES = 4096,
	QUIET_POLLS = 5,
};

#define POLL_NANOSECONDS 20000000

struct rocksdb {
	rocksdb_t *db;
	rocksdb_options_t *options;
	rocksdb_block_based_table_options_t *table;
	rocksdb_cache_t *cache;
	rocksdb_readoptions_t *read;
	rocksdb_writeoptions_t *write;
	rocksdb_flushoptions_t *flush;
};

/* Takes the message over. */
static int failed(struct error_text *error, const char *doing, char *message)
{
	error_set(error, -EIO, "rocksdb cannot %s: %s", doing, message);
	rocksdb_free(message);
	return -EIO;
}

static int rocks_close(void *peer, struct error_text *error)
{
	struct rocksdb *rocksdb = peer;

	(void)error;
	if (rocksdb->db)
		rocksdb_close(rocksdb->db);
	rocksdb_options_destroy(rocksdb->options);
	rocksdb_block_based_options_destroy(rocksdb->table);
	rocksdb_cache_destroy(rocksdb->cache);
	rocksdb_readoptions_destroy(rocksdb->read);
	rocksdb_writeoptions_destroy(rocksdb->write);
	rocksdb_flushoptions_destroy(rocksdb->flush);
	free(rocksdb);
	return 0;
}

/*
 * Filters and indexes stay in memory beside the cache, as RocksDB does by default. In a cache of
 * this size, which it divides into 64 parts, they would push one another out.
 */
static void set_table(struct rocksdb *rocksdb, const struct peer_options *options)
{
	rocksdb_block_based_table_options_t *table = rocksdb_block_based_options_create();

	rocksdb->table = table;
	rocksdb->cache = rocksdb_cache_create_lru(options->cache_bytes);
	rocksdb_block_based_options_set_block_cache(table, rocksdb->cache);
	rocksdb_block_based_options_set_block_size(table, BLOCK_BYTES);
	rocksdb_block_based_options_set_filter_policy(
		table, rocksdb_filterpolicy_create_bloom_full(BITS_A_KEY));
	rocksdb_options_set_block_based_table_factory(rocksdb->options, table);
}

static void set_options(struct rocksdb *rocksdb, const struct peer_options *options)
{
	rocksdb->options = rocksdb_options_create();
	rocksdb->read = rocksdb_readoptions_create();
	rocksdb->write = rocksdb_writeoptions_create();
	rocksdb->flush = rocksdb_flushoptions_create();
	rocksdb_flushoptions_set_wait(rocksdb->flush, 1);
	rocksdb_options_set_create_if_missing(rocksdb->options, options->create);
	rocksdb_options_set_compression(rocksdb->options, rocksdb_no_compression);
	rocksdb_options_set_use_direct_reads(rocksdb->options, 1);
	rocksdb_options_set_use_direct_io_for_flush_and_compaction(rocksdb->options, 1);
	rocksdb_options_set_max_background_jobs(rocksdb->options, BACKGROUND_JOBS);
	/* One is filled while the other one is written. */
	rocksdb_options_set_write_buffer_size(rocksdb->options, options->buffer_bytes / 2);
	rocksdb_options_set_max_write_buffer_number(rocksdb->options, 2);
	set_table(rocksdb, options);
}

static int rocks_open(const struct peer_options *options, void **peer, struct error_text *error)
{
	struct rocksdb *rocksdb = calloc(1, sizeof(*rocksdb));
	char *message = NULL;

	if (!rocksdb)
		return error_set(error, -ENOMEM, "rocksdb: out of memory");
	set_options(rocksdb, options);
	rocksdb->db = rocksdb_open(rocksdb->options, options->folder, &message);
	if (message) {
		rocks_close(rocksdb, error);
		return failed(error, "open", message);
	}
	*peer = rocksdb;
	return 0;
}

static int rocks_put(void *peer, uint64_t key, const void *value, uint32_t bytes,
		     struct error_text *error)
{
	struct rocksdb *rocksdb = peer;
	char key_bytes[PEER_KEY_BYTES], *message = NULL;

	peer_key(key, key_bytes);
	rocksdb_put(rocksdb->db, rocksdb->write, key_bytes, sizeof(key_bytes), value, bytes,
		    &message);
	return message ? failed(error, "put", message) : 0;
}

static int rocks_get(void *peer, uint64_t key, void *value, uint32_t capacity, uint32_t *bytes,
		     struct error_text *error)
{
	struct rocksdb *rocksdb = peer;
	char key_bytes[PEER_KEY_BYTES], *message = NULL;
	rocksdb_pinnableslice_t *found;
	const char *data;
	size_t length;

	peer_key(key, key_bytes);
	found = rocksdb_get_pinned(rocksdb->db, rocksdb->read, key_bytes, sizeof(key_bytes),
				   &message);
	if (message)
		return failed(error, "get", message);
	if (!found)
		return -ENOENT;
	data = rocksdb_pinnableslice_value(found, &length);
	*bytes = (uint32_t)length;
	memcpy(value, data, length < capacity ? length : capacity);
	rocksdb_pinnableslice_destroy(found);
	return 0;
}

static bool is_quiet(const struct rocksdb *rocksdb)
{
	static const char *const busy[] = { "rocksdb.compaction-pending",
					    "rocksdb.num-running-compactions",
					    "rocksdb.mem-table-flush-pending",
					    "rocksdb.num-running-flushes" };

	for (size_t i = 0; i < sizeof(busy) / sizeof(busy[0]); i++) {
		uint64_t value = 1;

		if (rocksdb_property_int(rocksdb->db, busy[i], &value) != 0 || value != 0)
			return false;
	}
	return true;
}

static int rocks_settle(void *peer, struct error_text *error)
{
	const struct timespec pause = { .tv_nsec = POLL_NANOSECONDS };
	struct rocksdb *rocksdb = peer;
	char *message = NULL;

	rocksdb_flush(rocksdb->db, rocksdb->flush, &message);
	if (message)
		return failed(error, "flush", message);
	/* A compaction that ends may be the reason for another one. */
	for (int quiet = 0; quiet < QUIET_POLLS;) {
		quiet = is_quiet(rocksdb) ? quiet + 1 : 0;
		nanosleep(&pause, NULL);
	}
	return 0;
}

/* What it holds of tables beside the cache: their filters and indexes (set_table). */
static bool rocks_index_bytes(void *peer, uint64_t *bytes)
{
	struct rocksdb *rocksdb = peer;

	return rocksdb_property_int(rocksdb->db, "rocksdb.estimate-table-readers-mem", bytes) == 0;
}

const struct peer_type peer = {
	.name = "rocksdb",
	.open = rocks_open,
	.put = rocks_put,
	.get = rocks_get,
	.settle = rocks_settle,
	.index_bytes = rocks_index_bytes,
	.close = rocks_close,
};
