/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What to do after the host itself has failed. The page cache is gone: each page of the NVRAM is as
 * of its last sync or somewhat newer, and no two pages need fit together. What the last flush
 * promised is there all the same, because what it rests on was synced before it changed. So the
 * store falls back to the committed number of that flush. It cuts everything newer off the buffers,
 * and aborts it in sealed segments, as one range.
 *
 * The boot ID shows that the host has failed: it differs from the one at the last opening, and the
 * store was not closed since. It is in two pages, so that damage to one is not taken for a failure.
 */
#include "engine/muninn/outage.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>

#include "common/log.h"
#include "engine/muninn/aborted.h"
#include "engine/muninn/flush.h"
#include "engine/muninn/nvram.h"
#include "engine/muninn/sums.h"

#define BOOT_ID_PATH "/proc/sys/kernel/random/boot_id"

enum {
	/*
	 * More serials than can have been used since the last sync, so that no slot of that time
	 * counts for a new buffer.
	 */
	SERIALS_LEFT_OUT = SERIAL_STEP << 24,
};

/* The kernel's boot ID, a UUID in text; zeroes when there is none. */
static void read_boot_id(uint8_t id[NVRAM_BOOT_BYTES])
{
	char text[64] = "";
	FILE *file = fopen(BOOT_ID_PATH, "re");
	uint32_t digits = 0;

	memset(id, 0, NVRAM_BOOT_BYTES);
	if (!file || !fgets(text, sizeof(text), file))
		text[0] = 0;
	if (file)
		fclose(file);
	for (const char *at = text; *at && digits < 2 * NVRAM_BOOT_BYTES; at++) {
		if (!isxdigit((unsigned char)*at))
			continue;
		int value = isdigit((unsigned char)*at) ? *at - '0' : (*at | 0x20) - 'a' + 10;

		id[digits / 2] = (uint8_t)(id[digits / 2] << 4 | value);
		digits++;
	}
	if (digits < 2 * NVRAM_BOOT_BYTES)
		log_line(LOG_LEVEL_WARNING,
			 BOOT_ID_PATH " can't be read; a power failure of this host would not be "
				      "noticed");
}

static uint8_t *sums(const struct muninn_store *store)
{
	return store->nvram + store->geometry.sums_at;
}

static bool is_clean(const struct muninn_store *store)
{
	return get_le64(sums(store) + SUMS_CLEAN_AT) == NVRAM_CLEAN ||
	       state_read(store, NVRAM_CLEAN_AT) == NVRAM_CLEAN;
}

void outage_look(struct muninn_store *store, const struct record_options *records)
{
	if (records->boot_id)
		memcpy(store->boot_id, records->boot_id, NVRAM_BOOT_BYTES);
	else
		read_boot_id(store->boot_id);
	store->host_failed =
		!is_clean(store) &&
		memcmp(store->nvram + NVRAM_BOOT_AT, store->boot_id, NVRAM_BOOT_BYTES) != 0 &&
		memcmp(sums(store) + SUMS_BOOT_AT, store->boot_id, NVRAM_BOOT_BYTES) != 0;
}

void outage_note_boot(struct muninn_store *store)
{
	memcpy(sums(store) + SUMS_BOOT_AT, store->boot_id, NVRAM_BOOT_BYTES);
	memcpy(store->nvram + NVRAM_BOOT_AT, store->boot_id, NVRAM_BOOT_BYTES);
}

/* The two pages that have the boot ID, and that the store was closed. */
static int sync_boot(struct muninn_store *store)
{
	int result = nand_nvram_sync(store->nand, 0, NVRAM_PAGE);

	return result ? result : nand_nvram_sync(store->nand, store->geometry.sums_at, NVRAM_PAGE);
}

/*
 * Behind a crash of the store. What is sealed, complete or taken out need not have reached the
 * host's storage. It must before the buffers, groups and segments that it makes free are used
 * again: a failure of the host would bring back what it says of them, but not what they held.
 */
static int sync_all(struct muninn_store *store, struct error_text *error)
{
	int result = nand_nvram_sync(store->nand, 0, store->geometry.nvram_bytes);

	return result ? error_set(error, result, "NVRAM can't be made stable (error %d)", -result)
		      : 0;
}

int outage_begin(struct muninn_store *store, struct error_text *error)
{
	int result;

	/*
	 * After a failure of the host all of it comes from storage. The boot ID waits for what
	 * depends on it (outage_finish).
	 */
	if (store->host_failed)
		return 0;
	outage_note_boot(store);
	if (!is_clean(store))
		return sync_all(store, error);
	/* The new boot ID first: without it the next opening would find a failure. */
	result = sync_boot(store);
	sums_set_clean(store, 0);
	if (!result)
		result = sync_boot(store);
	if (result)
		log_line(LOG_LEVEL_ERROR,
			 "%s: NVRAM can't be made stable (error %d); should this host fail, the "
			 "unit may not open again",
			 nand_path(store->nand), -result);
	return 0;
}

void outage_note_clean(struct muninn_store *store)
{
	const struct muninn_geometry *geometry = &store->geometry;
	int result = nand_nvram_sync(store->nand, 0, NVRAM_PAGE);

	if (!result)
		result = nand_nvram_sync(store->nand, geometry->sums_at,
					 geometry->buffers_at - geometry->sums_at);
	if (result)
		return;
	sums_set_clean(store, NVRAM_CLEAN);
	sync_boot(store);
}

/* The highest sequence number and serial in sealed segments. */
static void find_highest(const struct muninn_store *store, uint64_t *sequence, uint64_t *serial)
{
	for (uint32_t number = 0; number < store->geometry.rows; number++) {
		struct index_walk walk = { .all = true };
		struct sealed_segment segment;

		while (row_index_next(store->rows[number].index, &walk, &segment)) {
			*serial = max_u64(*serial, segment.serial);
			*sequence = max_u64(*sequence, segment.last_sequence);
		}
	}
}

void outage_fall_back(struct muninn_store *store)
{
	uint64_t flushed = state_read(store, STATE_FLUSHED_AT);
	uint64_t serial = state_read(store, STATE_NEXT_SERIAL_AT);
	uint64_t sequence = state_read(store, STATE_COMMITTED_AT);

	sequence = max_u64(sequence, state_read(store, STATE_SEALED_AT));
	find_highest(store, &sequence, &serial);
	for (uint32_t n = 0; n < store->free_buffer_count; n++)
		serial = max_u64(serial, buffer_stored_serial(&store->free_buffers[n]));
	state_write(store, STATE_NEXT_SERIAL_AT, serial + SERIALS_LEFT_OUT);
	store->committed = flushed;
	store->fallen_from = sequence;
	aborted_take_back(store, flushed);
}

int outage_finish(struct muninn_store *store, struct error_text *error)
{
	int result = 0;

	if (store->fallen_from > store->committed) {
		uint64_t flushed = store->committed;

		if (!aborted_has_room(store, RECORD_ROOM_UPKEEP))
			return aborted_refuse(error);
		aborted_skip_to(store, store->fallen_from | (RECORD_SLOT - 1));
		log_line(LOG_LEVEL_WARNING,
			 "%s: this host has been started again without a clean stop: back to the "
			 "last flush; %llu commands or fewer after it are gone",
			 nand_path(store->nand),
			 (unsigned long long)(store->fallen_from - flushed));
	}
	sums_set(store);
	result = flush_all(store);
	if (!result) {
		outage_note_boot(store);
		result = sync_boot(store);
	}
	return result ? error_set(error, result, "NVRAM can't be made stable (error %d)", -result)
		      : 0;
}
