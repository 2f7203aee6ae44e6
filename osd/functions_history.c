/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The functions of EXECUTE on versions and history. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>

#include "common/bytes.h"
#include "osd/functions.h"

/*
 * The limit of one DIFF command, as the engine counts its work; 2,048 pieces take four records
 * each. A call takes some records by itself.
 */
#define DIFF_LOOKS_MAX  (16u * 2048)
#define DIFF_LOOKS_CALL 64u
/* The records that VERSIONS reads for each version. */
#define VERSION_RECORDS 4u

static uint64_t partition_of(const struct osd_request *request)
{
	return request->subject.address.partition;
}

/* If a moment or version is not there, the parameter is wrong. */
static int moment_result(struct osd_request *request, int result, uint16_t tag)
{
	return result == -ENOENT ? osd_fail_parameter(request, tag)
				 : osd_result(request, result, 0);
}

/* History belongs to the present: the address must have no version. */
static int check_present(struct osd_request *request)
{
	return request->subject.address.version == 0 ? 0
						     : osd_fail_field(request, OSD_FIELD_PARTITION);
}

/* ---- versions ---- */

/* The NAME parameter, "" without. */
static int name_parameter(struct osd_request *request, char name[OSD_VERSION_NAME_MAX + 1])
{
	struct osd_item item;

	name[0] = '\0';
	if (osd_parameter(request, OSD_ITEM_NAME, &item) != 0)
		return 0;
	if (!osd_version_name_is_valid(item.value, item.length))
		return osd_fail_parameter(request, OSD_ITEM_NAME);
	memcpy(name, item.value, item.length);
	name[item.length] = '\0';
	return 0;
}

/* The PARTITIONs of a group. */
static int group_parameter(struct osd_request *request, uint64_t partitions[OSD_GROUP_MAX],
			   size_t *count)
{
	struct osd_item_reader reader;
	struct osd_item item;

	*count = 0;
	osd_items_read(&reader, request->command->data_out + request->out_data,
		       request->out_data_length);
	while (osd_item_next(&reader, &item) == 1) {
		if (item.tag != OSD_ITEM_PARTITION)
			continue;
		if (*count == OSD_GROUP_MAX || partition_of(request) != 0 ||
		    osd_item_number(&item, &partitions[*count]) != 0)
			return osd_fail_parameter(request, OSD_ITEM_PARTITION);
		++*count;
	}
	return 0;
}

static void add_group(struct osd_item_writer *writer, const uint64_t *partitions,
		      const uint32_t *versions, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		osd_item_open(writer, OSD_ITEM_ENTRY);
		osd_item_add_number(writer, OSD_ITEM_PARTITION, partitions[i]);
		osd_item_add_number(writer, OSD_ITEM_VERSION, versions[i]);
		osd_item_end(writer);
	}
}

static int snapshot_result(struct osd_request *request, int result, size_t group)
{
	if (result == -EEXIST)
		return osd_fail_parameter(request, OSD_ITEM_NAME);
	if (group && (result == -ENOENT || result == -EINVAL || result == -EROFS))
		return osd_fail_parameter(request, OSD_ITEM_PARTITION);
	return osd_result(request, result, 0);
}

int osd_function_snapshot(struct osd_request *request)
{
	char name[OSD_VERSION_NAME_MAX + 1];
	const char *named = name;
	uint64_t partitions[OSD_GROUP_MAX];
	uint32_t version = 0, versions[OSD_GROUP_MAX];
	struct osd_item_writer writer;
	size_t count;
	int result;

	if (name_parameter(request, name) != 0 || group_parameter(request, partitions, &count) != 0)
		return -EINVAL;
	if (!name[0])
		named = NULL;
	result = count ? engine_snapshot_group(request->txn, partitions, count, named, versions)
		       : engine_snapshot(request->txn, partition_of(request), named, &version);
	if (result != 0)
		return snapshot_result(request, result, count);
	osd_result_begin(request, &writer);
	if (!count)
		osd_item_add_number(&writer, OSD_ITEM_VERSION, version);
	osd_item_add_number(&writer, OSD_ITEM_TIME, engine_txn_time(request->txn));
	add_group(&writer, partitions, versions, count);
	osd_result_end(request, &writer, NULL, 0, -1);
	return 0;
}

/* A version of the device has no size of a partition, so asks the partition as of then. */
static int size_version(struct osd_request *request, struct engine_version *version)
{
	struct engine_address address = { .partition = partition_of(request),
					  .version = version->version };
	struct engine_stat stat;
	int result;

	if (address.partition == 0 || version->version < ENGINE_DEVICE_VERSION_FIRST)
		return 0;
	result = osd_stat_at(request, address, &stat);
	if (result == 0) {
		version->used_bytes = stat.used_bytes;
		version->objects = stat.members;
	}
	return result;
}

static bool add_version(struct osd_item_writer *writer, const struct engine_version *version)
{
	osd_item_open(writer, OSD_ITEM_ENTRY);
	osd_item_add_number(writer, OSD_ITEM_VERSION, version->version);
	osd_item_add_number(writer, OSD_ITEM_SEQUENCE, version->sequence);
	osd_item_add_number(writer, OSD_ITEM_TIME, version->time_ms);
	osd_item_add_number(writer, OSD_ITEM_USED, version->used_bytes);
	osd_item_add_number(writer, OSD_ITEM_OBJECTS, version->objects);
	osd_item_add_number(writer, OSD_ITEM_WRITTEN, version->written_bytes);
	if (version->name[0])
		osd_item_add_text(writer, OSD_ITEM_NAME, version->name);
	return osd_item_end(writer);
}

/*
 * Where a list goes on, and how many entries came before. At the beginning: `otherwise`, and none.
 */
#define PLACE_BYTES 16

static int load_place(struct osd_request *request, uint64_t otherwise, uint64_t *place,
		      uint64_t *told)
{
	struct osd_item item;

	*place = otherwise;
	*told = 0;
	if (osd_parameter(request, OSD_ITEM_CONTINUATION, &item) != 0)
		return 0;
	if (item.length != PLACE_BYTES)
		return osd_fail_parameter(request, OSD_ITEM_CONTINUATION);
	*place = get_be64(item.value);
	*told = get_be64(item.value + 8);
	return 0;
}

static void save_place(uint64_t place, uint64_t told, uint8_t to[PLACE_BYTES])
{
	put_be64(to, place);
	put_be64(to + 8, told);
}

int osd_function_versions(struct osd_request *request)
{
	struct osd_item_writer writer;
	struct engine_version version;
	struct engine_history history;
	uint8_t continuation[PLACE_BYTES];
	uint64_t from, told;
	uint32_t looked_at = 0;
	int result = check_present(request);

	if (result != 0 || load_place(request, 0, &from, &told) != 0)
		return -EINVAL;
	result = engine_history(request->txn, partition_of(request), &history);
	if (result != 0)
		return osd_result(request, result, 0);
	osd_result_begin(request, &writer);
	while ((result = engine_version_next(request->txn, partition_of(request), from,
					     &version)) == 0) {
		from = version.position;
		result = size_version(request, &version);
		if (result != 0)
			return osd_result(request, result, 0);
		if (looked_at++ == request->device->portions.entries / VERSION_RECORDS ||
		    !add_version(&writer, &version))
			break;
		from++;
		told++;
	}
	if (result != 0 && result != -ENOENT)
		return osd_result(request, result, 0);
	save_place(from, told, continuation);
	osd_result_end(request, &writer, result == 0 ? continuation : NULL, sizeof(continuation),
		       osd_permille(told, history.versions));
	return 0;
}

/* VERSION, or NAME. */
static int version_parameter(struct osd_request *request, uint32_t *version)
{
	struct engine_moment moment;
	bool given;

	if (osd_parameter_moment(request, 0, &moment, &given) != 0)
		return -EINVAL;
	if (!given || moment.kind != ENGINE_AT_VERSION || moment.value == 0 ||
	    moment.value > ENGINE_VIEW_LAST)
		return osd_fail_parameter(request, OSD_ITEM_VERSION);
	*version = (uint32_t)moment.value;
	return 0;
}

int osd_function_drop(struct osd_request *request)
{
	uint32_t version = 0;

	if (version_parameter(request, &version) != 0)
		return -EINVAL;
	return moment_result(request,
			     engine_version_drop(request->txn, partition_of(request), version),
			     OSD_ITEM_VERSION);
}

/* The number to read a moment at: a version has one of its own, other moments get a view. */
static int number_moment(struct osd_request *request, struct engine_moment moment,
			 uint32_t *version)
{
	uint64_t sequence;

	if (moment.kind != ENGINE_AT_VERSION)
		return engine_view_open(request->txn, partition_of(request), moment, version);
	*version = (uint32_t)moment.value; /* 16 bits if there is such a version */
	return engine_moment_resolve(request->txn, partition_of(request), moment, &sequence);
}

int osd_function_view(struct osd_request *request)
{
	struct osd_item_writer writer;
	struct engine_moment moment;
	uint32_t version;
	bool given;
	int result = check_present(request);

	if (result != 0 || osd_parameter_moment(request, 0, &moment, &given) != 0)
		return -EINVAL;
	result = number_moment(request, moment, &version);
	if (result != 0)
		return moment_result(request, result, 0);
	osd_result_begin(request, &writer);
	osd_item_add_number(&writer, OSD_ITEM_VERSION, version);
	osd_result_end(request, &writer, NULL, 0, -1);
	return 0;
}

/* ---- going back ---- */

/*
 * Some objects go back by being put again. If there is too little space for that, the target makes
 * some and tries the command once more.
 */
static int object_result(struct osd_request *request, int result, uint16_t field)
{
	if (result == -ENOSPC)
		engine_space_wanted(request->txn, &request->space_wanted);
	return osd_result(request, result, field);
}

int osd_function_rollback(struct osd_request *request)
{
	struct engine_moment moment;
	struct osd_item_writer writer;
	uint64_t sequence, force;
	bool given;
	int result;

	if (osd_parameter_moment(request, 0, &moment, &given) != 0 ||
	    osd_parameter_number(request, OSD_ITEM_FORCE, 0, &force) != 0)
		return -EINVAL;
	if (!given)
		return osd_fail_parameter(request, 0);
	if (request->object != 0 && partition_of(request) == 0)
		return osd_fail_field(request, OSD_FIELD_OBJECT);
	/* An object also has moments between those of its partition, which LOG shows. */
	if (request->object != 0)
		result = engine_object_moment_resolve(request->txn, partition_of(request), moment,
						      &sequence);
	else
		result = engine_moment_resolve(request->txn, partition_of(request), moment,
					       &sequence);
	if (result != 0)
		return moment_result(request, result, 0);
	/* An object is changed, as by a WRITE. */
	if (request->object == 0 &&
	    osd_check_users(request, partition_of(request), force != 0) != 0)
		return -EINVAL;
	if (request->object != 0)
		result = engine_rollback_object(request->txn, partition_of(request),
						request->object, moment);
	else
		result = engine_rollback(request->txn, partition_of(request), moment);
	if (result != 0)
		return object_result(request, result,
				     request->object ? OSD_FIELD_OBJECT : OSD_FIELD_PARTITION);
	osd_result_begin(request, &writer);
	osd_item_add_number(&writer, OSD_ITEM_SEQUENCE, sequence);
	osd_result_end(request, &writer, NULL, 0, -1);
	return 0;
}

static_assert(OSD_MODIFICATIONS_MAX == ENGINE_AGO_MAX, "the limit on the wire is the engine's");
static_assert(OSD_DEVICE_VERSION_FIRST == ENGINE_DEVICE_VERSION_FIRST,
	      "the numbers are the engine's");

int osd_function_undo(struct osd_request *request)
{
	uint64_t modifications;
	int result;

	if (request->object == 0)
		return osd_fail_field(request, OSD_FIELD_OBJECT);
	if (osd_parameter_number(request, OSD_ITEM_MODIFICATIONS, 1, &modifications) != 0)
		return -EINVAL;
	if (modifications == 0)
		return osd_fail_parameter(request, OSD_ITEM_MODIFICATIONS);
	/* There may be so many, but one command does not count them. */
	if (modifications > OSD_MODIFICATIONS_MAX) {
		osd_fail_parameter(request, OSD_ITEM_MODIFICATIONS);
		request->sense.code = SENSE_PARAMETER_VALUE_INVALID;
		return -EINVAL;
	}
	result = engine_undo_on(request->txn, partition_of(request), request->object,
				(uint32_t)modifications, &request->undo);
	/* Each time that somebody else modifies the object, the count begins again. */
	if (result == -EAGAIN) {
		request->more = request->leaves_nothing = request->turns++ < OSD_TURNS_MAX;
		return request->more ? 0 : osd_result(request, -EBUSY, 0);
	}
	return result == -ENOENT ? osd_fail_parameter(request, OSD_ITEM_MODIFICATIONS)
				 : object_result(request, result, 0);
}

/* ---- looking back ---- */

/* The newest modification to show: the last one, or that of a moment. */
static int newest_to_log(struct osd_request *request, uint64_t *sequence)
{
	struct engine_moment moment;
	bool given;

	*sequence = UINT64_MAX >> 16;
	if (osd_parameter_moment(request, 0, &moment, &given) != 0)
		return -EINVAL;
	if (!given)
		return 0;
	return moment_result(
		request,
		engine_object_moment_resolve(request->txn, partition_of(request), moment, sequence),
		0);
}

int osd_function_log(struct osd_request *request)
{
	struct engine_modification modification;
	struct osd_item_writer writer;
	uint8_t continuation[PLACE_BYTES];
	uint64_t below, newest;
	uint32_t looked_at = 0;
	int result = check_present(request);

	if (result != 0 || newest_to_log(request, &below) != 0 ||
	    load_place(request, below, &below, &newest) != 0)
		return -EINVAL;
	if (request->object == 0)
		return osd_fail_field(request, OSD_FIELD_OBJECT);
	if (below >= UINT64_C(1) << 48)
		return osd_fail_parameter(request, OSD_ITEM_CONTINUATION);
	osd_result_begin(request, &writer);
	while ((result = engine_log_next(request->txn, partition_of(request), request->object,
					 below, &modification)) == 0) {
		uint64_t kind = (modification.created ? OSD_LOGGED_CREATED : 0) |
				(modification.removed ? OSD_LOGGED_REMOVED : 0);

		if (looked_at++ == request->device->portions.entries)
			break;
		osd_item_open(&writer, OSD_ITEM_ENTRY);
		osd_item_add_number(&writer, OSD_ITEM_SEQUENCE, modification.sequence);
		osd_item_add_number(&writer, OSD_ITEM_TIME, modification.time_ms);
		osd_item_add_number(&writer, OSD_ITEM_LENGTH, modification.length);
		osd_item_add_number(&writer, OSD_ITEM_KIND, kind);
		if (!osd_item_end(&writer))
			break;
		below = modification.sequence - 1;
		newest = max_u64(newest, modification.sequence);
	}
	if (result != 0 && result != -ENOENT)
		return osd_result(request, result, OSD_FIELD_OBJECT);
	/* Nothing at all is known of such an object. */
	if (result == -ENOENT && writer.length == 0 &&
	    osd_parameter(request, OSD_ITEM_CONTINUATION, &(struct osd_item){ 0 }) != 0)
		return osd_fail_field(request, OSD_FIELD_OBJECT);
	/*
	 * The number of modifications is not known before. Progress is measured in sequence numbers
	 * instead.
	 */
	save_place(below, newest, continuation);
	osd_result_end(request, &writer, result == 0 ? continuation : NULL, sizeof(continuation),
		       osd_permille(newest - min_u64(below, newest), newest));
	return 0;
}

#define DIFF_CURSOR_BYTES 28

static int diff_cursor(struct osd_request *request, struct engine_diff_cursor *cursor)
{
	struct osd_item item;

	*cursor = (struct engine_diff_cursor){ 0 };
	if (osd_parameter(request, OSD_ITEM_CONTINUATION, &item) != 0)
		return 0;
	if (item.length != DIFF_CURSOR_BYTES)
		return osd_fail_parameter(request, OSD_ITEM_CONTINUATION);
	cursor->object = get_be64(item.value);
	cursor->offset = get_be64(item.value + 8);
	cursor->passed = get_be64(item.value + 16);
	cursor->state = get_be32(item.value + 24);
	return 0;
}

static uint64_t wire_difference(enum engine_difference_kind kind)
{
	static const uint8_t kinds[] = {
		[ENGINE_OBJECT_ADDED] = OSD_DIFFERENCE_ADDED,
		[ENGINE_OBJECT_REMOVED] = OSD_DIFFERENCE_REMOVED,
		[ENGINE_DATA_DIFFERS] = OSD_DIFFERENCE_DATA,
		[ENGINE_LENGTH_DIFFERS] = OSD_DIFFERENCE_LENGTH,
		[ENGINE_ATTRIBUTES_DIFFER] = OSD_DIFFERENCE_ATTRIBUTES,
	};

	return kinds[kind];
}

static bool add_difference(const struct osd_request *request, struct osd_item_writer *writer,
			   const struct engine_difference *difference)
{
	osd_item_open(writer, OSD_ITEM_ENTRY);
	osd_item_add_number(writer, OSD_ITEM_KIND, wire_difference(difference->kind));
	osd_item_add_number(writer, OSD_ITEM_OBJECT, osd_wire_object(request, difference->object));
	osd_item_add_number(writer, OSD_ITEM_OFFSET, difference->offset);
	osd_item_add_number(writer, OSD_ITEM_LENGTH, difference->length);
	return osd_item_end(writer);
}

/*
 * Both moments must be there before the first difference is looked for, because -ENOENT has two
 * meanings later.
 */
static int check_moments(struct osd_request *request, struct engine_moment from,
			 struct engine_moment to)
{
	uint64_t sequence;
	int result = engine_moment_resolve(request->txn, partition_of(request), from, &sequence);

	if (result != 0)
		return moment_result(request, result, OSD_ITEM_FROM);
	result = engine_moment_resolve(request->txn, partition_of(request), to, &sequence);
	return moment_result(request, result, OSD_ITEM_TO);
}

int osd_function_diff(struct osd_request *request)
{
	struct engine_diff_cursor cursor, before;
	struct engine_difference difference;
	struct engine_moment from, to;
	struct osd_item_writer writer;
	uint8_t continuation[DIFF_CURSOR_BYTES];
	uint64_t done = 0, total = 1;
	uint32_t calls = 0;
	bool given, more;
	int result = check_present(request);

	if (result != 0 || diff_cursor(request, &cursor) != 0 ||
	    osd_parameter_moment(request, OSD_ITEM_FROM, &from, &given) != 0 ||
	    osd_parameter_moment(request, OSD_ITEM_TO, &to, &given) != 0 ||
	    check_moments(request, from, to) != 0)
		return -EINVAL;
	osd_result_begin(request, &writer);
	do {
		before = cursor;
		result = engine_diff_next(request->txn, partition_of(request), from, to, &cursor,
					  &difference);
		if (result == 0 && !add_difference(request, &writer, &difference)) {
			cursor = before;
			break;
		}
	} while ((result == 0 || result == -EAGAIN) &&
		 cursor.looks + ++calls * DIFF_LOOKS_CALL < DIFF_LOOKS_MAX);
	if (result != 0 && result != -EAGAIN && result != -ENOENT)
		return osd_result(request, result, 0);
	more = result != -ENOENT;
	result = more ? engine_diff_progress(request->txn, partition_of(request), from, to, &cursor,
					     &done, &total)
		      : 0;
	if (result != 0)
		return osd_result(request, result, 0);
	put_be64(continuation, cursor.object);
	put_be64(continuation + 8, cursor.offset);
	put_be64(continuation + 16, cursor.passed);
	put_be32(continuation + 24, cursor.state);
	osd_result_end(request, &writer, more ? continuation : NULL, sizeof(continuation),
		       osd_permille(done, total));
	return 0;
}

/* ---- retention ---- */

static int answer_retention(struct osd_request *request)
{
	struct engine_retention retention;
	struct engine_history history;
	struct osd_item_writer writer;
	int result = engine_retention_get(request->txn, partition_of(request), &retention);

	if (result == 0)
		result = engine_history(request->txn, partition_of(request), &history);
	if (result != 0)
		return osd_result(request, result, 0);
	osd_result_begin(request, &writer);
	osd_item_add_number(&writer, OSD_ITEM_KIND, (uint64_t)retention.kind);
	osd_item_add_number(&writer, OSD_ITEM_KEEP_ALL, retention.keep_all_ms);
	osd_item_add_number(&writer, OSD_ITEM_KEEP_INTERVAL, retention.keep_interval_ms);
	osd_item_add_number(&writer, OSD_ITEM_KEEP_INTERVAL_FOR, retention.keep_interval_for_ms);
	osd_item_add_number(&writer, OSD_ITEM_LOCK_UNTIL, retention.locked_until_ms);
	osd_item_add_number(&writer, OSD_ITEM_HORIZON, history.horizon_time_ms);
	osd_item_add_number(&writer, OSD_ITEM_COUNT, history.versions);
	osd_item_add_number(&writer, OSD_ITEM_ROLLBACKS, history.rollbacks);
	osd_result_end(request, &writer, NULL, 0, -1);
	return 0;
}

int osd_function_retention(struct osd_request *request)
{
	return check_present(request) == 0 ? answer_retention(request) : -EINVAL;
}

/* Items that are not given stay. */
int osd_function_set_retention(struct osd_request *request)
{
	struct engine_retention retention;
	uint64_t kind;
	int result = engine_retention_get(request->txn, partition_of(request), &retention);

	if (result != 0)
		return osd_result(request, result, 0);
	if (osd_parameter_number(request, OSD_ITEM_KIND, (uint64_t)retention.kind, &kind) != 0 ||
	    osd_parameter_number(request, OSD_ITEM_KEEP_ALL, retention.keep_all_ms,
				 &retention.keep_all_ms) != 0 ||
	    osd_parameter_number(request, OSD_ITEM_KEEP_INTERVAL, retention.keep_interval_ms,
				 &retention.keep_interval_ms) != 0 ||
	    osd_parameter_number(request, OSD_ITEM_KEEP_INTERVAL_FOR,
				 retention.keep_interval_for_ms,
				 &retention.keep_interval_for_ms) != 0 ||
	    osd_parameter_number(request, OSD_ITEM_LOCK_UNTIL, retention.locked_until_ms,
				 &retention.locked_until_ms) != 0)
		return -EINVAL;
	if (kind > OSD_RETAIN_NONE)
		return osd_fail_parameter(request, OSD_ITEM_KIND);
	retention.kind = (enum engine_retention_kind)kind;
	result = engine_retention_set(request->txn, partition_of(request), &retention, false);
	if (result == -EINVAL)
		return osd_fail_parameter(request, 0);
	if (result != 0)
		return osd_result(request, result, 0);
	return answer_retention(request);
}
