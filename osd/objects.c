/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Opening the objects that a command names. */
#include "osd/objects.h"

#include "osd/execute.h"
#include "osd/facts.h"

int osd_open(const struct osd_request *request, struct engine_address address,
	     struct osd_subject *subject)
{
	int result = engine_open_object(request->txn, address, &subject->object);

	subject->address = address;
	if (result == 0)
		result = engine_object_stat(subject->object, &subject->stat);
	if (result != 0)
		osd_close(subject);
	return result;
}

void osd_close(struct osd_subject *subject)
{
	engine_close_object(subject->object);
	subject->object = NULL;
}

int osd_created(struct osd_request *request, enum engine_type type, uint32_t count)
{
	struct osd_subject *subject = &request->subject;
	int result = engine_open_object(request->txn, subject->address, &subject->object);

	subject->stat = (struct engine_stat){ .type = type };
	request->before = subject->stat;
	request->created = count;
	return osd_result(request, result, OSD_FIELD_OBJECT);
}

int osd_open_created(const struct osd_request *request, uint64_t index, struct osd_subject *subject)
{
	struct engine_address address = request->subject.address;

	address.object += index;
	return osd_open(request, address, subject);
}

int osd_stat_at(const struct osd_request *request, struct engine_address address,
		struct engine_stat *stat)
{
	struct osd_subject subject;
	int result = osd_open(request, address, &subject);

	if (result == 0)
		*stat = subject.stat;
	osd_close(&subject);
	return result;
}

int osd_attribute_at(struct engine_txn *txn, struct engine_address address, uint32_t page,
		     uint32_t number, void *value, uint32_t capacity, uint32_t *length)
{
	struct engine_object *object;
	int result;

	if (osd_facts_find(txn, address, page, number, value, capacity, length, &result))
		return result;
	result = engine_open_object(txn, address, &object);
	if (result == 0)
		result = engine_object_attribute_get(object, page, number, value, capacity, length);
	engine_close_object(object);
	return result;
}

int osd_attribute_next_at(struct engine_txn *txn, struct engine_address address, uint32_t *page,
			  uint32_t *number, void *value, uint32_t capacity, uint32_t *length)
{
	struct engine_object *object;
	int result = engine_open_object(txn, address, &object);

	if (result == 0)
		result =
			engine_object_attribute_next(object, page, number, value, capacity, length);
	engine_close_object(object);
	return result;
}

int osd_attribute_set_at(struct engine_txn *txn, struct engine_address address, uint32_t page,
			 uint32_t number, const void *value, uint32_t length)
{
	struct engine_object *object;
	int result = engine_open_object(txn, address, &object);

	if (result == 0)
		result = engine_object_attribute_set(object, page, number, value, length);
	engine_close_object(object);
	return result;
}

int osd_set_created(const struct osd_request *request, uint64_t index, uint32_t page,
		    uint32_t number, const void *value, uint32_t length)
{
	struct engine_address address = request->subject.address;

	address.object += index;
	return osd_attribute_set_at(request->txn, address, page, number, value, length);
}
