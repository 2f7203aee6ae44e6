/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The calls of engine.h on opened objects, for tests that name an object by its address in each
 * call: it is opened, called and closed.
 */
#ifndef MUNINN_TESTS_ENGINE_BY_ADDRESS_H
#define MUNINN_TESTS_ENGINE_BY_ADDRESS_H

#include "engine/engine.h"

/* Opens the object at `address`, makes the call on it, and closes it. */
#define on_object(call)                                                 \
	({                                                              \
		struct engine_object *object;                           \
		int result = engine_open_object(txn, address, &object); \
                                                                        \
		if (!result)                                            \
			result = (call);                                \
		engine_close_object(object);                            \
		result;                                                 \
	})

static inline int engine_write(struct engine_txn *txn, struct engine_address address,
			       uint64_t offset, const void *data, uint64_t length)
{
	return on_object(engine_object_write(object, offset, data, length));
}

static inline int engine_append(struct engine_txn *txn, struct engine_address address,
				const void *data, uint64_t length, uint64_t *offset)
{
	return on_object(engine_object_append(object, data, length, offset));
}

static inline int engine_truncate(struct engine_txn *txn, struct engine_address address,
				  uint64_t length)
{
	return on_object(engine_object_truncate(object, length));
}

static inline int engine_clear(struct engine_txn *txn, struct engine_address address,
			       uint64_t offset, uint64_t length)
{
	return on_object(engine_object_clear(object, offset, length));
}

static inline int engine_punch(struct engine_txn *txn, struct engine_address address,
			       uint64_t offset, uint64_t length)
{
	return on_object(engine_object_punch(object, offset, length));
}

static inline int engine_read(struct engine_txn *txn, struct engine_address address,
			      uint64_t offset, void *data, uint64_t length, uint64_t *got)
{
	*got = 0;
	return on_object(engine_object_read(object, offset, data, length, got));
}

static inline int engine_map(struct engine_txn *txn, struct engine_address address, uint64_t offset,
			     bool verify, uint32_t *budget, struct engine_extent *extent)
{
	return on_object(engine_object_map(object, offset, verify, budget, extent));
}

static inline int engine_attribute_set(struct engine_txn *txn, struct engine_address address,
				       uint32_t page, uint32_t number, const void *value,
				       uint32_t length)
{
	return on_object(engine_object_attribute_set(object, page, number, value, length));
}

static inline int engine_attribute_get(struct engine_txn *txn, struct engine_address address,
				       uint32_t page, uint32_t number, void *value,
				       uint32_t capacity, uint32_t *length)
{
	return on_object(
		engine_object_attribute_get(object, page, number, value, capacity, length));
}

static inline int engine_attribute_next(struct engine_txn *txn, struct engine_address address,
					uint32_t *page, uint32_t *number, void *value,
					uint32_t capacity, uint32_t *length)
{
	return on_object(
		engine_object_attribute_next(object, page, number, value, capacity, length));
}

static inline int engine_membership_set(struct engine_txn *txn, struct engine_address address,
					uint32_t number, uint64_t collection)
{
	return on_object(engine_object_membership_set(object, number, collection));
}

static inline int engine_membership_count(struct engine_txn *txn, struct engine_address address,
					  uint32_t *count)
{
	return on_object(engine_object_membership_count(object, count));
}

static inline int engine_member_insert(struct engine_txn *txn, struct engine_address address,
				       uint64_t member)
{
	return on_object(engine_object_member_insert(object, member));
}

static inline int engine_member_remove(struct engine_txn *txn, struct engine_address address,
				       uint64_t member)
{
	return on_object(engine_object_member_remove(object, member));
}

static inline int engine_members_clear(struct engine_txn *txn, struct engine_address address)
{
	return on_object(engine_object_members_clear(object));
}

static inline int engine_stat(struct engine_txn *txn, struct engine_address address,
			      struct engine_stat *stat)
{
	return on_object(engine_object_stat(object, stat));
}

static inline int engine_set_time(struct engine_txn *txn, struct engine_address address,
				  enum engine_time which, uint64_t ms)
{
	return on_object(engine_object_set_time(object, which, ms));
}

static inline int engine_accessed(struct engine_txn *txn, struct engine_address address, bool data,
				  bool attributes)
{
	return on_object(engine_object_accessed(object, data, attributes));
}

static inline int engine_remove(struct engine_txn *txn, struct engine_address address)
{
	return on_object(engine_object_remove(object));
}

/* What lists these: partitions the root, objects their partition, members their collection. */
static inline struct engine_address lister_of(struct engine_address address, enum engine_list what)
{
	if (what != ENGINE_LIST_MEMBERS)
		address.object = 0;
	if (what == ENGINE_LIST_PARTITIONS)
		address.partition = 0;
	return address;
}

static inline int engine_list(struct engine_txn *txn, struct engine_address address,
			      enum engine_list what, uint64_t first, uint64_t *ids, size_t capacity,
			      size_t *count, uint64_t *next)
{
	address = lister_of(address, what);
	*count = 0;
	*next = 0;
	return on_object(engine_object_list(object, what, first, ids, capacity, count, next));
}

static inline int engine_list_count(struct engine_txn *txn, struct engine_address address,
				    enum engine_list what, uint64_t first, uint64_t *count)
{
	address = lister_of(address, what);
	*count = 0;
	return on_object(engine_object_list_count(object, what, first, count));
}

static inline int engine_list_sequence(struct engine_txn *txn, struct engine_address address,
				       enum engine_list what, uint64_t *sequence)
{
	address = lister_of(address, what);
	return on_object(engine_object_list_sequence(object, what, sequence));
}

static inline int engine_compare(struct engine_txn *txn, struct engine_address first,
				 struct engine_address second, uint64_t offset, uint32_t *budget,
				 struct engine_extent *extent)
{
	struct engine_object *one, *other = NULL;
	int result = engine_open_object(txn, first, &one);

	if (!result)
		result = engine_open_object(txn, second, &other);
	if (!result)
		result = engine_object_compare(one, other, offset, budget, extent);
	engine_close_object(one);
	engine_close_object(other);
	return result;
}

static inline int engine_copy_data(struct engine_txn *txn, struct engine_address from,
				   struct engine_address to)
{
	struct engine_object *source, *copy = NULL;
	uint64_t offset = 0;
	uint32_t budget = UINT32_MAX;
	int result = engine_open_object(txn, from, &source);

	if (!result)
		result = engine_open_object(txn, to, &copy);
	if (!result)
		result = engine_object_copy_data(source, copy, &offset, &budget);
	engine_close_object(source);
	engine_close_object(copy);
	return result;
}

#undef on_object

#endif
