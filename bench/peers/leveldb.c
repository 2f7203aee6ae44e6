/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * LevelDB, a log-structured merge tree. It has no direct I/O: it reads through the host's page
 * cache, by mapped files. We tell the host that it reads them at random, which LevelDB leaves out:
 * else the host reads ahead, up to megabytes for each page.
 */
#include <errno.h>
#include <inttypes.h>
#include <leveldb/c.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "bench/peers/peer.h"

enum {
	BITS_A_KEY = 10,
	FILES_MAX = 1000,
	/* With the default of 2 MiB a large store has thousands of files. */
	FILE_BYTES = 16 << 20,
	QUIET_POLLS = 10,
};

#define POLL_NANOSECONDS 20000000

struct leveldb {
	leveldb_t *db;
	const char *folder;
	leveldb_options_t *options;
	leveldb_cache_t *cache;
	leveldb_filterpolicy_t *filter;
	leveldb_readoptions_t *read;
	leveldb_writeoptions_t *write, *write_stable;
	atomic_uint_fast64_t gets;
};

/* Takes the message over. */
static int failed(struct error_text *error, const char *doing, char *message)
{
	error_set(error, -EIO, "leveldb cannot %s: %s", doing, message);
	leveldb_free(message);
	return -EIO;
}

static int level_close(void *peer, struct error_text *error)
{
	struct leveldb *leveldb = peer;

	(void)error;
	if (leveldb->db)
		leveldb_close(leveldb->db);
	leveldb_options_destroy(leveldb->options);
	leveldb_cache_destroy(leveldb->cache);
	leveldb_filterpolicy_destroy(leveldb->filter);
	leveldb_readoptions_destroy(leveldb->read);
	leveldb_writeoptions_destroy(leveldb->write);
	leveldb_writeoptions_destroy(leveldb->write_stable);
	free(leveldb);
	return 0;
}

static int begin(struct leveldb *leveldb, struct error_text *error)
{
	char *message = NULL;

	leveldb->db = leveldb_open(leveldb->options, leveldb->folder, &message);
	return message ? failed(error, "open", message) : 0;
}

static int level_open(const struct peer_options *options, void **peer, struct error_text *error)
{
	struct leveldb *leveldb = calloc(1, sizeof(*leveldb));
	struct error_text ignored;
	int result;

	if (!leveldb)
		return error_set(error, -ENOMEM, "leveldb: out of memory");
	leveldb->folder = options->folder;
	leveldb->options = leveldb_options_create();
	leveldb->cache = leveldb_cache_create_lru(options->cache_bytes);
	leveldb->filter = leveldb_filterpolicy_create_bloom(BITS_A_KEY);
	leveldb->read = leveldb_readoptions_create();
	leveldb->write = leveldb_writeoptions_create();
	leveldb->write_stable = leveldb_writeoptions_create();
	leveldb_writeoptions_set_sync(leveldb->write_stable, 1);
	leveldb_readoptions_set_verify_checksums(leveldb->read, 1);
	leveldb_options_set_create_if_missing(leveldb->options, options->create);
	leveldb_options_set_compression(leveldb->options, leveldb_no_compression);
	leveldb_options_set_cache(leveldb->options, leveldb->cache);
	leveldb_options_set_filter_policy(leveldb->options, leveldb->filter);
	leveldb_options_set_write_buffer_size(leveldb->options, options->buffer_bytes / 2);
	leveldb_options_set_max_open_files(leveldb->options, FILES_MAX);
	leveldb_options_set_max_file_size(leveldb->options, FILE_BYTES);
	result = begin(leveldb, error);
	if (result)
		level_close(leveldb, &ignored);
	else
		*peer = leveldb;
	return result;
}

static int level_put(void *peer, uint64_t key, const void *value, uint32_t bytes,
		     struct error_text *error)
{
	struct leveldb *leveldb = peer;
	char key_bytes[PEER_KEY_BYTES], *message = NULL;

	peer_key(key, key_bytes);
	leveldb_put(leveldb->db, leveldb->write, key_bytes, sizeof(key_bytes), value, bytes,
		    &message);
	return message ? failed(error, "put", message) : 0;
}

/* Of the tables that are mapped now. */
static void expect_random_reads(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	uintptr_t begin, end;
	char line[512];

	while (maps && fgets(line, sizeof(line), maps))
		if (strstr(line, ".ldb") &&
		    sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &begin, &end) == 2)
			madvise((void *)begin, end - begin, MADV_RANDOM);
	if (maps)
		fclose(maps);
}

static bool is_power_of_two(uint64_t number)
{
	return (number & (number - 1)) == 0;
}

static int level_get(void *peer, uint64_t key, void *value, uint32_t capacity, uint32_t *bytes,
		     struct error_text *error)
{
	struct leveldb *leveldb = peer;
	char key_bytes[PEER_KEY_BYTES], *message = NULL, *found;
	size_t length;

	/* It maps a table when it needs it, so most of them with the first look-ups. */
	if (is_power_of_two(++leveldb->gets))
		expect_random_reads();
	peer_key(key, key_bytes);
	found = leveldb_get(leveldb->db, leveldb->read, key_bytes, sizeof(key_bytes), &length,
			    &message);
	if (message)
		return failed(error, "get", message);
	if (!found)
		return -ENOENT;
	*bytes = (uint32_t)length;
	memcpy(value, found, length < capacity ? length : capacity);
	leveldb_free(found);
	return 0;
}

/* Whether the table of levels and compactions is as it was; takes `now` over. */
static bool is_quiet(char **before, char *now)
{
	bool same = *before && now && strcmp(*before, now) == 0;

	leveldb_free(*before);
	*before = now;
	return same;
}

/*
 * LevelDB does not say whether compactions are left to do. It begins the next one when one ends,
 * so it has none when its counters rest for a while.
 */
static void wait_for_quiet(struct leveldb *leveldb)
{
	const struct timespec pause = { .tv_nsec = POLL_NANOSECONDS };
	char *before = NULL;

	for (int quiet = 0; quiet < QUIET_POLLS;) {
		quiet = is_quiet(&before, leveldb_property_value(leveldb->db, "leveldb.stats"))
				? quiet + 1
				: 0;
		nanosleep(&pause, NULL);
	}
	leveldb_free(before);
}

/* It has no call that writes its buffer to a table; opening does that with what is in the log. */
static int level_settle(void *peer, struct error_text *error)
{
	static const char marker[] = "\xff marker";
	struct leveldb *leveldb = peer;
	char *message = NULL;
	int result;

	/* The log is one file: what is stable up to here is so with all that was before. */
	leveldb_put(leveldb->db, leveldb->write_stable, marker, sizeof(marker) - 1, "", 0,
		    &message);
	if (message)
		return failed(error, "sync", message);
	wait_for_quiet(leveldb);
	leveldb_close(leveldb->db);
	leveldb->db = NULL;
	result = begin(leveldb, error);
	if (!result)
		wait_for_quiet(leveldb);
	return result;
}

const struct peer_type peer = {
	.name = "leveldb",
	.open = level_open,
	.put = level_put,
	.get = level_get,
	.settle = level_settle,
	.close = level_close,
};
