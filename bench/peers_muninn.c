/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Muninn's record store beside its peers: on an image with the `file` back end, with two threads
 * that seal behind the writer and with hot keys spread, as a served device has it, and without
 * history: a put replaces.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/options.h"
#include "bench/peers_bench.h"
#include "common/bytes.h"
#include "engine/open.h"
#include "nand/nand.h"

enum {
	SEALING_THREADS = 2,
	PARTITION = 1,
	PATH_BYTES = 512,
	/* As in engine/history/merge.c. */
	MERGE_SEGMENTS = 8,
	MERGE_LIVE_PERMILLE = 700,
	/*
	 * Beside the data: tables, what is over-provisioned, segments that fill. Values of all
	 * lengths leave half of many pages empty.
	 */
	SPARE_PERMILLE = 300,
	SPARE_PERMILLE_MIXED = 1500,
};

#define DEVICE_BYTES_MIN (UINT64_C(256) << 20)

struct muninn {
	struct nand *nand;
	struct record_store *records;
	struct record_merge merged;
	pthread_mutex_t lock; /* of the store, when it is written to, and of all below */
	pthread_cond_t due;   /* for the sealing threads */
	pthread_cond_t spare; /* for the writer: something has been sealed */
	pthread_t threads[SEALING_THREADS];
	uint32_t thread_count, busy;
	bool stop;
	int failure; /* of a sealing thread */
};

static int failed(struct error_text *error, const char *doing, int result)
{
	return error_set(error, result, "muninn cannot %s: %s", doing, strerror(-result));
}

/* ---- sealing behind the writer ---- */

static struct record_sealing sealing(struct muninn *muninn)
{
	struct record_sealing state;

	muninn->records->operations->seal_state(muninn->records, &state);
	return state;
}

/* With the lock. */
static void look_for_work(struct muninn *muninn)
{
	struct record_sealing state = sealing(muninn);

	if (state.waiting > muninn->busy && !state.held_up)
		pthread_cond_signal(&muninn->due);
}

/* With the lock, which it gives back while the drive works. False: there was nothing to seal. */
static bool seal_one(struct muninn *muninn)
{
	const struct record_store_operations *operations = muninn->records->operations;
	int number = operations->seal_take(muninn->records), more = number < 0 ? number : 1;

	muninn->busy++;
	while (more == 1) {
		pthread_mutex_unlock(&muninn->lock);
		operations->seal_run(muninn->records, number);
		pthread_mutex_lock(&muninn->lock);
		more = operations->seal_step(muninn->records, number);
		/* Others may have waited for its image. */
		if (more == 1)
			look_for_work(muninn);
	}
	muninn->busy--;
	if (more < 0 && more != -EAGAIN)
		muninn->failure = more;
	pthread_cond_broadcast(&muninn->spare);
	return more == 0;
}

static void *seal(void *context)
{
	struct muninn *muninn = context;

	pthread_mutex_lock(&muninn->lock);
	while (!muninn->stop) {
		bool work = !muninn->failure && sealing(muninn).waiting > muninn->busy;

		if (!work || !seal_one(muninn))
			pthread_cond_wait(&muninn->due, &muninn->lock);
	}
	pthread_mutex_unlock(&muninn->lock);
	return NULL;
}

/* With the lock. False: nobody seals anything, and nothing waits for it. */
static bool wait_for_sealing(struct muninn *muninn)
{
	if (muninn->failure || (!muninn->busy && !sealing(muninn).waiting))
		return false;
	look_for_work(muninn);
	pthread_cond_wait(&muninn->spare, &muninn->lock);
	return true;
}

/* ---- opening ---- */

static struct engine_options engine_options_of(const struct peer_options *options)
{
	return (struct engine_options){
		.muninn.bloom.hot_rows = BLOOM_HOT_ROWS_SPREAD,
		.muninn.index = (enum index_kind)options->index,
		.muninn.record_bytes =
			(uint32_t)min_u64(options->value_bytes + PAIR_HEADER_BYTES, 4096),
	};
}

static int make_device(const char *path, const struct peer_options *options,
		       struct error_text *error)
{
	const uint64_t data = options->data_bytes + options->spare_bytes;
	const uint64_t spare = options->mixed ? SPARE_PERMILLE_MIXED : SPARE_PERMILLE;
	const struct nand_options file = { .backend = NAND_BACKEND_FILE };
	struct nand_geometry geometry =
		nand_geometry_default(max_u64(data + data / 1000 * spare, DEVICE_BYTES_MIN));
	struct engine_options engine = engine_options_of(options);
	uint64_t nvram_bytes;
	struct nand *nand;
	int result = engine_nvram_bytes(&geometry, &engine, &nvram_bytes, error), closed;

	if (!result)
		result = nand_create(path, &geometry, nvram_bytes, error);
	if (!result)
		result = nand_open_with(path, &file, &nand, error);
	if (result)
		return result;
	result = engine_format(nand, &engine, error);
	closed = nand_close(nand);
	return !result && closed ? failed(error, "store a new device", closed) : result;
}

static int muninn_close(void *peer, struct error_text *error)
{
	struct muninn *muninn = peer;
	int result = 0, closed = 0;

	pthread_mutex_lock(&muninn->lock);
	muninn->stop = true;
	pthread_cond_broadcast(&muninn->due);
	pthread_mutex_unlock(&muninn->lock);
	while (muninn->thread_count)
		pthread_join(muninn->threads[--muninn->thread_count], NULL);
	if (muninn->records)
		result = muninn->records->operations->close(muninn->records, true);
	if (muninn->nand)
		closed = nand_close(muninn->nand);
	pthread_cond_destroy(&muninn->spare);
	pthread_cond_destroy(&muninn->due);
	pthread_mutex_destroy(&muninn->lock);
	free(muninn);
	result = result ? result : closed;
	return result ? failed(error, "close", result) : 0;
}

static int start(struct muninn *muninn, const char *path, const struct peer_options *options,
		 struct error_text *error)
{
	const struct nand_options file = { .backend = NAND_BACKEND_FILE };
	struct engine_options engine = engine_options_of(options);
	int result = options->create ? make_device(path, options, error) : 0;

	if (!result)
		result = nand_open_with(path, &file, &muninn->nand, error);
	if (!result)
		result = engine_open_records(muninn->nand, &engine, &muninn->records, error);
	for (uint32_t n = 0; !result && n < SEALING_THREADS; n++) {
		result = -pthread_create(&muninn->threads[n], NULL, seal, muninn);
		muninn->thread_count += !result;
		if (result)
			failed(error, "start a thread", result);
	}
	return result;
}

static int muninn_open(const struct peer_options *options, void **peer, struct error_text *error)
{
	struct muninn *muninn = calloc(1, sizeof(*muninn));
	struct error_text ignored;
	char path[PATH_BYTES];
	int result;

	if (!muninn)
		return error_set(error, -ENOMEM, "muninn: out of memory");
	pthread_mutex_init(&muninn->lock, NULL);
	pthread_cond_init(&muninn->due, NULL);
	pthread_cond_init(&muninn->spare, NULL);
	if (snprintf(path, sizeof(path), "%s/image", options->folder) >= (int)sizeof(path))
		result = error_set(error, -ENAMETOOLONG, "%s: too long a name", options->folder);
	else
		result = start(muninn, path, options, error);
	if (result)
		muninn_close(muninn, &ignored);
	else
		*peer = muninn;
	return result;
}

/* ---- work ---- */

static struct record_key key_of(uint64_t key)
{
	return (struct record_key){ .partition = PARTITION, .identifier = key };
}

static int make_space(struct muninn *muninn)
{
	const struct record_store_operations *operations = muninn->records->operations;
	const struct record_keep keep = { 0 }; /* the present is all */
	uint32_t shortage = operations->shortage(muninn->records, RECORD_ROOM_WRITE);
	int result;

	if (!shortage)
		return 0;
	muninn->merged.segments_wanted = (uint32_t)max_u64(shortage, MERGE_SEGMENTS);
	muninn->merged.live_permille_max = MERGE_LIVE_PERMILLE;
	result = operations->merge(muninn->records, &keep, &muninn->merged);
	return result == -EAGAIN ? 0 : result;
}

static int put_locked(struct muninn *muninn, uint64_t key, const void *value, uint32_t bytes)
{
	const struct record_store_operations *operations = muninn->records->operations;
	struct record_key name = key_of(key);
	int result;

	/* Or the writer would seal itself. */
	while (sealing(muninn).pressed && wait_for_sealing(muninn))
		;
	result = muninn->failure ? muninn->failure : make_space(muninn);
	if (result)
		return result;
	operations->begin(muninn->records, 0);
	result = operations->put(muninn->records, &name, RECORD_EPOCH_ENDLESS, RECORD_ABSORB, value,
				 bytes, RECORD_ROOM_WRITE);
	if (result)
		operations->abort(muninn->records);
	else
		operations->commit(muninn->records);
	look_for_work(muninn);
	return result;
}

static int muninn_put(void *peer, uint64_t key, const void *value, uint32_t bytes,
		      struct error_text *error)
{
	struct muninn *muninn = peer;
	int result;

	pthread_mutex_lock(&muninn->lock);
	result = put_locked(muninn, key, value, bytes);
	pthread_mutex_unlock(&muninn->lock);
	return result ? failed(error, "put", result) : 0;
}

/* Without the lock: nobody puts, and what was put is settled. */
static int muninn_get(void *peer, uint64_t key, void *value, uint32_t capacity, uint32_t *bytes,
		      struct error_text *error)
{
	struct muninn *muninn = peer;
	struct record_key name = key_of(key);
	struct record_info info;
	int result = muninn->records->operations->get(muninn->records, &name, RECORD_NEWEST, value,
						      capacity, &info);

	if (result && result != -ENOENT)
		return failed(error, "get", result);
	*bytes = info.length;
	return result;
}

/* What waits in NVRAM to be sealed is sealed; what fills stays there. */
static int muninn_settle(void *peer, struct error_text *error)
{
	struct muninn *muninn = peer;
	struct record_store *records = muninn->records;
	int result;

	pthread_mutex_lock(&muninn->lock);
	while (wait_for_sealing(muninn))
		;
	result = muninn->failure;
	if (!result)
		result = records->operations->flush(records,
						    records->operations->flush_begin(records));
	pthread_mutex_unlock(&muninn->lock);
	return result ? failed(error, "flush", result) : 0;
}

static struct record_statistics statistics_of(const struct muninn *muninn)
{
	struct record_statistics statistics = { 0 };

	muninn->records->operations->statistics(muninn->records, &statistics);
	return statistics;
}

static uint64_t muninn_page_reads(void *peer)
{
	return statistics_of(peer).user_page_reads;
}

/* The sets of active segments are among it. */
static bool muninn_index_bytes(void *peer, uint64_t *bytes)
{
	*bytes = statistics_of(peer).index_bytes;
	return true;
}

const struct peer_type peer_muninn = {
	.name = "muninn",
	.open = muninn_open,
	.put = muninn_put,
	.get = muninn_get,
	.settle = muninn_settle,
	.page_reads = muninn_page_reads,
	.index_bytes = muninn_index_bytes,
	.close = muninn_close,
};
