/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Snapshots and clones of partitions, as the standard has them: partitions of their own, whose
 * contents are those of a source at a moment. A snapshot can only be read. The target copies
 * nothing, whatever the duplication method.
 */
#include <errno.h>

#include "common/bytes.h"
#include "osd/execute.h"

/* SOURCE and SNAPSHOT PARTITION_ID stand in the place of STARTING BYTE ADDRESS. */
#define FIELD_DUPLICATION_METHOD 14
#define SOURCE(request)          ((request)->cdb.address)

/* All methods mean the same here. Those that ask for copies are refused. */
bool osd_clone_method_is_known(uint8_t method)
{
	return method == OSD_DUPLICATION_DEFAULT || method == OSD_DUPLICATION_SPACE_EFFICIENT ||
	       method == OSD_DUPLICATION_FASTEST ||
	       method == OSD_DUPLICATION_HIGHEST_AVAILABILITY || method == OSD_DUPLICATION_ANY;
}

int osd_clone_get(const struct osd_request *request, uint64_t partition, struct engine_clone *clone)
{
	if (!osd_has(request->device, ENGINE_HAS_CLONES))
		return -ENOENT;
	return engine_clone_get(request->txn, partition, clone);
}

int osd_check_clone(struct osd_request *request)
{
	struct engine_address source = osd_address(SOURCE(request), 0);

	if (!osd_clone_method_is_known(request->cdb.duplication_method))
		return osd_fail_field(request, FIELD_DUPLICATION_METHOD);
	return source.partition ? 0 : osd_fail_field(request, osd_address_field(request));
}

static int create(struct osd_request *request, bool writable)
{
	struct engine_address source = osd_address(SOURCE(request), 0);
	struct engine_moment moment = { .kind = ENGINE_NOW };
	struct osd_subject *subject = &request->subject;
	uint64_t chosen;
	int result;

	if (osd_further_find_partition(request, SOURCE(request), osd_address_field(request)) != 0)
		return -EINVAL;
	if (source.version)
		moment = (struct engine_moment){ ENGINE_AT_VERSION, source.version };
	result = engine_clone(request->txn, source.partition, moment, request->cdb.partition,
			      writable, &chosen);
	/*
	 * -ENOENT and -EMLINK are about the source at its moment, -EEXIST about the new partition.
	 */
	if (result != 0)
		return osd_result(request, result,
				  result == -ENOENT || result == -EMLINK
					  ? osd_address_field(request)
					  : OSD_FIELD_PARTITION);
	result = osd_open(request, (struct engine_address){ .partition = chosen }, subject);
	request->before = subject->stat;
	request->created = 1;
	if (result != 0)
		return osd_result(request, result, 0);
	/* A snapshot has its source's protection anyway, as long as it is not detached. */
	return osd_security_inherit_clone(request, source.partition);
}

int osd_create_clone(struct osd_request *request)
{
	return create(request, true);
}

int osd_create_snapshot(struct osd_request *request)
{
	return create(request, false);
}

/* Only a snapshot or clone can be refreshed or detached. */
int osd_detach_clone(struct osd_request *request)
{
	struct engine_address partition = request->subject.address;
	uint8_t method;
	/* A snapshot has the method of its source, from which it is detached here. */
	int result = osd_security_method_of(request, partition.partition, &method);

	if (result == 0)
		result = engine_clone_detach(request->txn, partition.partition);
	if (result != 0)
		return osd_result(request, result, OSD_FIELD_PARTITION);
	return osd_security_set_method(request, partition, method);
}

/* A clone that shows its source's present contents must not be less protected than the source. */
static int strengthen(struct osd_request *request, uint64_t clone, uint64_t source)
{
	struct engine_address address = { .partition = clone };
	uint8_t own, wanted;
	int result = osd_security_method_of(request, clone, &own);

	if (result == 0)
		result = osd_security_method_of(request, source, &wanted);
	if (result != 0)
		return osd_result(request, result, 0);
	return wanted > own ? osd_security_set_method(request, address, wanted) : 0;
}

static bool is_forced(const struct osd_request *request)
{
	return request->cdb.command_options & OSD_FORCE_USERS;
}

int osd_refresh_clone(struct osd_request *request)
{
	uint64_t partition = request->subject.address.partition;
	struct engine_clone clone;
	int result = engine_clone_get(request->txn, partition, &clone);

	if (result == 0 && clone.source != 0 &&
	    osd_further_find_partition(request, clone.source, OSD_FIELD_PARTITION) != 0)
		return -EINVAL;
	if (result == 0 && osd_check_users(request, partition, is_forced(request)) != 0)
		return -EINVAL;
	if (result == 0)
		result = engine_clone_refresh(request->txn, partition);
	if (result != 0)
		return osd_result(request, result, OSD_FIELD_PARTITION);
	return clone.writable ? strengthen(request, partition, clone.source) : 0;
}

/*
 * The partition becomes what it was when the snapshot was taken. What came later is hidden; history
 * still reaches it.
 */
int osd_restore_partition(struct osd_request *request)
{
	struct engine_address address = osd_address(SOURCE(request), 0);
	struct engine_moment moment = { .kind = ENGINE_AT_SEQUENCE };
	struct engine_clone clone;
	int result;

	if (address.partition != 0 &&
	    osd_further_find_partition(request, SOURCE(request), osd_address_field(request)) != 0)
		return -EINVAL;
	result = engine_clone_get(request->txn, address.partition, &clone);
	if (result == 0 && (address.version || clone.writable ||
			    clone.source != request->subject.address.partition))
		result = -ENOENT;
	if (result != 0)
		return osd_result(request, result, osd_address_field(request));
	address.partition = request->subject.address.partition;
	if (osd_check_users(request, address.partition, is_forced(request)) != 0)
		return -EINVAL;
	moment.value = clone.sequence;
	return osd_result(request, engine_rollback(request->txn, address.partition, moment),
			  OSD_FIELD_PARTITION);
}
