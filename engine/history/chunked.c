/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Loads and puts tables of the root whose entries have a fixed size. */
#include "engine/history/chunked.h"

#include <assert.h>
#include <string.h>

#include "common/bytes.h"

static struct record_key chunk_key(const struct chunked *table, uint32_t number)
{
	return key_of_table(table->identifier, number / table->entries);
}

int chunked_load(struct record_store *store, const struct chunked *table, uint32_t count,
		 int (*take)(void *context, uint32_t number, const uint8_t *entry), void *context)
{
	uint8_t record[CHUNKED_BYTES_MAX];
	int result = 0;

	assert(table->entries * table->entry_bytes <= CHUNKED_BYTES_MAX);
	for (uint32_t number = 0; !result && number < count; number++) {
		uint32_t at = number % table->entries, left = count - number;
		struct record_info info;

		if (at == 0)
			result = record_get(store, chunk_key(table, number), RECORD_NEWEST, record,
					    sizeof(record), &info);
		if (result == -ENOENT ||
		    (!result && at == 0 &&
		     info.length < min_u64(left, table->entries) * table->entry_bytes))
			result = -EBADMSG;
		if (!result)
			result = take(context, number, record + (size_t)at * table->entry_bytes);
	}
	return result;
}

int chunked_put(const struct record_writer *writer, const struct chunked *table, uint32_t number,
		bool replaces, const uint8_t *entry)
{
	uint32_t at = number % table->entries * table->entry_bytes;
	uint32_t end = at + table->entry_bytes;
	uint8_t record[CHUNKED_BYTES_MAX];
	struct record_info info = { 0 };
	int result = 0;

	assert(table->entries * table->entry_bytes <= CHUNKED_BYTES_MAX);
	if (at || replaces)
		result = record_get(writer->store, chunk_key(table, number), RECORD_NEWEST, record,
				    sizeof(record), &info);
	if (result == -ENOENT || (!result && (replaces ? info.length < end : info.length != at)))
		result = -EBADMSG;
	if (result)
		return result;
	memcpy(record + at, entry, table->entry_bytes);
	return record_put(writer, chunk_key(table, number), RECORD_ABSORB, record,
			  replaces ? info.length : end);
}
