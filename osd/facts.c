/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Which attributes of root and partitions are facts, and where they are in the engine's block. */
#include "osd/facts.h"

#include <assert.h>
#include <errno.h>

#include "common/bytes.h"
#include "osd/execute.h"
#include "osd/keys.h"

/* Each fact is a byte of length, 0 = not set, and up to 8 bytes of value. */
#define FACT_BYTES 9
#define FACTS_MAX  (ENGINE_FACTS_BYTES / FACT_BYTES)
/* The value is longer than a fact. The target lets nobody set such a value. */
#define LONG UINT8_MAX

struct place {
	uint32_t page, number;
};

static const struct place of_root[] = {
	{ OSD_ROOT_TIMESTAMPS, OSD_TIME_BYPASS },
	{ OSD_ROOT_SECURITY, OSD_SECURITY_DEFAULT_METHOD },
	{ OSD_ROOT_SECURITY, OSD_SECURITY_PARTITION_DEFAULT_METHOD },
	{ OSD_ROOT_QUOTAS, OSD_QUOTA_MAXIMUM_LENGTH },
	{ OSD_ROOT_QUOTAS, OSD_QUOTA_CAPACITY },
	{ OSD_ROOT_QUOTAS, OSD_QUOTA_OBJECT_COUNT },
	{ OSD_ROOT_QUOTAS, OSD_QUOTA_COLLECTIONS_PER_OBJECT },
	{ OSD_ROOT_QUOTAS, OSD_QUOTA_PARTITION_COUNT },
	{ OSD_PAGES_ROOT + OSD_PAGES_TYPE_LAST, OSD_PRIVATE_FORMATTED_CAPACITY },
};

static const struct place of_partition[] = {
	{ OSD_PARTITION_TIMESTAMPS, OSD_TIME_BYPASS },
	{ OSD_PARTITION_SECURITY, OSD_SECURITY_DEFAULT_METHOD },
	{ OSD_PARTITION_SECURITY, OSD_SECURITY_OLDEST_NONCE },
	{ OSD_PARTITION_SECURITY, OSD_SECURITY_NEWEST_NONCE },
	{ OSD_PARTITION_SECURITY, OSD_SECURITY_POLICY_ACCESS_TAG },
	{ OSD_PARTITION_SECURITY, OSD_SECURITY_USER_OBJECT_POLICY_ACCESS_TAG },
	{ OSD_PARTITION_QUOTAS, OSD_QUOTA_MAXIMUM_LENGTH },
	{ OSD_PARTITION_QUOTAS, OSD_QUOTA_CAPACITY },
	{ OSD_PARTITION_QUOTAS, OSD_QUOTA_OBJECT_COUNT },
	{ OSD_PARTITION_QUOTAS, OSD_QUOTA_COLLECTIONS_PER_OBJECT },
	{ OSD_MUNINN_PARTITION, OSD_MUNINN_LAYOUT },
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
static_assert(COUNT(of_root) <= FACTS_MAX && COUNT(of_partition) <= FACTS_MAX,
	      "the facts fit in the engine's block");

/* The attributes that are facts of the root or of a partition. */
static const struct place *places_of(uint64_t partition, size_t *count)
{
	*count = partition ? COUNT(of_partition) : COUNT(of_root);
	return partition ? of_partition : of_root;
}

int osd_facts_make(struct engine_object *object, struct engine_facts *facts)
{
	size_t count;
	const struct place *places = places_of(engine_object_address(object).partition, &count);
	int result = 0;

	for (size_t i = 0; result == 0 && i < count; i++) {
		uint8_t *fact = facts->bytes + i * FACT_BYTES;
		uint32_t length = 0;

		result = engine_object_attribute_get(object, places[i].page, places[i].number,
						     fact + 1, FACT_BYTES - 1, &length);
		if (result == 0)
			fact[0] = length < FACT_BYTES ? (uint8_t)length : LONG;
		if (result == -ENOENT)
			result = 0;
	}
	return result;
}

/* Only the present has facts. */
static bool has_facts(struct engine_address address)
{
	return address.object == 0 && address.version == 0 && address.ago == 0;
}

bool osd_facts_find(struct engine_txn *txn, struct engine_address address, uint32_t page,
		    uint32_t number, void *value, uint32_t capacity, uint32_t *length, int *result)
{
	size_t count, i = 0;
	const struct place *places = places_of(address.partition, &count);
	struct engine_facts facts;
	const uint8_t *fact;

	while (i < count && (places[i].page != page || places[i].number != number))
		i++;
	if (i == count || !has_facts(address) ||
	    engine_facts_of(txn, address.partition, &facts) != 0)
		return false;
	fact = facts.bytes + i * FACT_BYTES;
	if (fact[0] == LONG)
		return false;
	*result = fact[0] == 0 ? -ENOENT : 0;
	if (fact[0] != 0) {
		memcpy(value, fact + 1, min_u64(fact[0], capacity));
		*length = fact[0];
	}
	return true;
}
