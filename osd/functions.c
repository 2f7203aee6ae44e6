/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* EXECUTE: its functions, the checks that they share, and the features that hosts subscribe to. */
#include "osd/functions.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "common/allocator.h"
#include "common/bytes.h"

/* What the trailing items of a result need: CONTINUATION and PROGRESS. */
#define TRAILER_BYTES (2 * OSD_ITEM_HEAD_BYTES + OSD_CONTINUATION_ITEM_BYTES_MAX + 8)

/* Most items in a parameter list. */
#define PARAMETERS_MAX 32

/* ---- parameters ---- */

static const uint8_t *parameters_of(const struct osd_request *request)
{
	return request->command->data_out + request->out_data;
}

int osd_parameter(const struct osd_request *request, uint16_t tag, struct osd_item *item)
{
	return osd_item_find(parameters_of(request), request->out_data_length, tag, item);
}

int osd_fail_parameter(struct osd_request *request, uint16_t tag)
{
	struct osd_item item;
	size_t at = request->out_data;

	osd_fail(request, SENSE_ILLEGAL_REQUEST, SENSE_INVALID_FIELD_IN_PARAMETER_LIST);
	if (osd_parameter(request, tag, &item) == 0)
		at = (size_t)(item.value - request->command->data_out) - OSD_ITEM_HEAD_BYTES;
	request->sense.has_field = true;
	request->sense.field = (uint16_t)at;
	return -EINVAL;
}

int osd_parameter_number(struct osd_request *request, uint16_t tag, uint64_t otherwise,
			 uint64_t *value)
{
	struct osd_item item;

	*value = otherwise;
	if (osd_parameter(request, tag, &item) != 0)
		return 0;
	return osd_item_number(&item, value) == 0 ? 0 : osd_fail_parameter(request, tag);
}

/* Finds the version of that name. */
static int named_version(struct osd_request *request, const struct osd_item *item,
			 uint64_t *version)
{
	char name[OSD_VERSION_NAME_MAX + 1];
	uint32_t number;
	int result;

	if (item->length == 0 || item->length > OSD_VERSION_NAME_MAX)
		return -EINVAL;
	memcpy(name, item->value, item->length);
	name[item->length] = '\0';
	result = engine_version_find(request->txn, request->subject.address.partition, name,
				     &number);
	*version = number;
	return result;
}

/*
 * Has the time passed, and was the number given to a command? A moment to come would stand for the
 * present, so a wrong year or a slip in a number would look like success.
 */
static bool has_been(const struct osd_request *request, const struct engine_moment *moment)
{
	switch (moment->kind) {
	case ENGINE_AT_TIME:
		return moment->value <= engine_txn_time(request->txn);
	case ENGINE_AT_SEQUENCE:
		return moment->value <= engine_txn_sequence_max(request->txn);
	default:
		return true;
	}
}

int osd_parameter_moment(struct osd_request *request, uint16_t container,
			 struct engine_moment *moment, bool *given)
{
	static const struct {
		uint16_t tag;
		enum engine_moment_kind kind;
	} forms[] = {
		{ OSD_ITEM_VERSION, ENGINE_AT_VERSION },
		{ OSD_ITEM_TIME, ENGINE_AT_TIME },
		{ OSD_ITEM_SEQUENCE, ENGINE_AT_SEQUENCE },
	};
	struct osd_item all = { .length = (uint32_t)request->out_data_length,
				.value = parameters_of(request) };
	struct osd_item item;
	unsigned found = 0;

	*given = false;
	*moment = (struct engine_moment){ ENGINE_NOW, 0 };
	if (container && osd_parameter(request, container, &all) != 0)
		return 0;
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		if (osd_item_find(all.value, all.length, forms[i].tag, &item) != 0)
			continue;
		moment->kind = forms[i].kind;
		if (osd_item_number(&item, &moment->value) != 0)
			return osd_fail_parameter(request, container ? container : forms[i].tag);
		if (!has_been(request, moment))
			return osd_fail_parameter(request, container ? container : forms[i].tag);
		found++;
	}
	if (osd_item_find(all.value, all.length, OSD_ITEM_NAME, &item) == 0) {
		int result = named_version(request, &item, &moment->value);

		if (result != 0 && result != -ENOENT && result != -EINVAL)
			return osd_result(request, result, 0);
		if (result != 0)
			return osd_fail_parameter(request, container ? container : OSD_ITEM_NAME);
		moment->kind = ENGINE_AT_VERSION;
		found++;
	}
	*given = found > 0;
	return found <= 1 ? 0 : osd_fail_parameter(request, container);
}

/* ---- results ---- */

static uint8_t *result_of(const struct osd_request *request)
{
	return request->command->data_in + OSD_RESULT_HEAD_BYTES;
}

static bool is_streamed(const struct osd_request *request);

void osd_result_begin(struct osd_request *request, struct osd_item_writer *writer)
{
	size_t kept = OSD_RESULT_HEAD_BYTES + (is_streamed(request) ? TRAILER_BYTES : 0),
	       space = request->in_data_length;

	osd_items_begin(writer, result_of(request), space > kept ? space - kept : 0);
}

void osd_result_end(struct osd_request *request, struct osd_item_writer *writer,
		    const void *continuation, uint32_t length, int permille)
{
	uint8_t *head = request->command->data_in;

	if (request->in_data_length < OSD_RESULT_HEAD_BYTES)
		return;
	writer->capacity = request->in_data_length - OSD_RESULT_HEAD_BYTES;
	writer->full = false;
	/* A result that has a continuation is not at its end, and one that has none is. */
	if (permille >= 0 && continuation)
		permille = permille < 1000 ? permille : 999;
	else if (permille >= 0)
		permille = 1000;
	if (permille >= 0)
		osd_item_add_number(writer, OSD_ITEM_PROGRESS, (uint64_t)permille);
	if (continuation)
		osd_item_add(writer, OSD_ITEM_CONTINUATION, continuation, length);
	/* A function that is no stream says at least how much space it wants. */
	put_be32(head, (uint32_t)(writer->length + (is_streamed(request) ? 0 : writer->missing)));
	put_be32(head + 4, 0);
	request->command->data_in_length = OSD_RESULT_HEAD_BYTES + writer->length;
}

/* ---- subscriptions ---- */

struct osd_subscriptions {
	pthread_mutex_t lock;
	uint64_t asked; /* counts SUBSCRIBEs */
	struct {
		uint64_t nexus, features, asked; /* asked 0: free */
	} hosts[OSD_SUBSCRIBERS_MAX];
};

struct osd_subscriptions *osd_subscriptions_create(void)
{
	struct osd_subscriptions *subscriptions = calloc(1, sizeof(*subscriptions));

	if (subscriptions)
		pthread_mutex_init(&subscriptions->lock, NULL);
	return subscriptions;
}

void osd_subscriptions_destroy(struct osd_subscriptions *subscriptions)
{
	if (!subscriptions)
		return;
	pthread_mutex_destroy(&subscriptions->lock);
	free(subscriptions);
}

static uint64_t subscribed_features(struct osd_subscriptions *subscriptions, uint64_t nexus)
{
	uint64_t features = 0;

	pthread_mutex_lock(&subscriptions->lock);
	for (size_t i = 0; i < OSD_SUBSCRIBERS_MAX; i++)
		if (subscriptions->hosts[i].asked && subscriptions->hosts[i].nexus == nexus)
			features = subscriptions->hosts[i].features;
	pthread_mutex_unlock(&subscriptions->lock);
	return features;
}

static void set_features(struct osd_subscriptions *subscriptions, uint64_t nexus, uint64_t features)
{
	size_t place = 0;

	pthread_mutex_lock(&subscriptions->lock);
	for (size_t i = 0; i < OSD_SUBSCRIBERS_MAX; i++) {
		if (subscriptions->hosts[i].asked && subscriptions->hosts[i].nexus == nexus) {
			place = i;
			break;
		}
		if (subscriptions->hosts[i].asked < subscriptions->hosts[place].asked)
			place = i;
	}
	subscriptions->hosts[place].nexus = nexus;
	subscriptions->hosts[place].features = features;
	subscriptions->hosts[place].asked = ++subscriptions->asked;
	pthread_mutex_unlock(&subscriptions->lock);
}

/* ---- FEATURES, SUBSCRIBE, STATISTICS ---- */

static uint64_t offered_features(const struct osd_device *device);

static int subscribe(struct osd_request *request)
{
	struct osd_item_writer writer;
	uint64_t features;

	if (osd_parameter_number(request, OSD_ITEM_FEATURES, 0, &features) != 0)
		return -EINVAL;
	if (features & ~offered_features(request->device))
		return osd_fail_parameter(request, OSD_ITEM_FEATURES);
	set_features(request->device->subscriptions, request->command->nexus, features);
	osd_result_begin(request, &writer);
	osd_item_add_number(&writer, OSD_ITEM_FEATURES, features);
	osd_result_end(request, &writer, NULL, 0, -1);
	return 0;
}

static void add_statistic(struct osd_item_writer *writer, const char *name, uint64_t value)
{
	osd_item_open(writer, OSD_ITEM_ENTRY);
	osd_item_add_text(writer, OSD_ITEM_NAME, name);
	osd_item_add_number(writer, OSD_ITEM_VALUE, value);
	osd_item_end(writer);
}

/* Of the whole process, which may have other units; none with another allocator than jemalloc. */
static void add_allocator(struct osd_item_writer *writer)
{
	struct allocator_figures figures;

	if (!allocator_read(&figures))
		return;
	add_statistic(writer, "allocator_allocated_bytes", figures.allocated_bytes);
	add_statistic(writer, "allocator_active_bytes", figures.active_bytes);
	add_statistic(writer, "allocator_resident_bytes", figures.resident_bytes);
}

static int statistics(struct osd_request *request)
{
	const struct engine_statistics *facts = &request->statistics;
	const struct {
		const char *name;
		uint64_t value;
	} table[] = {
		{ "capacity_bytes", facts->capacity_bytes },
		{ "used_bytes", facts->used_bytes },
		{ "segments", facts->segments },
		{ "segments_free", facts->segments_free },
		{ "segments_sealed", facts->segments_sealed },
		{ "segments_metadata", facts->segments_metadata },
		{ "index", facts->index },
		{ "rows", facts->rows },
		{ "tables", facts->tables },
		{ "records_put", facts->records_put },
		{ "records_got", facts->records_got },
		{ "records_absent", facts->records_absent },
		{ "record_bytes_put", facts->record_bytes_put },
		{ "user_page_reads", facts->user_page_reads },
		{ "false_positive_reads", facts->false_positive_reads },
		{ "pages_repaired", facts->pages_repaired },
		{ "pages_lost", facts->pages_lost },
		{ "index_bytes", facts->index_bytes },
		{ "buffer_bytes", facts->buffer_bytes },
		{ "cache_bytes", facts->cache_bytes },
		{ "sealed_records", facts->sealed_records },
		{ "sealed_record_bytes", facts->sealed_record_bytes },
		{ "committed_sequence", facts->committed_sequence },
		{ "open_microseconds", facts->open_microseconds },
		{ "turns", facts->turns },
		{ "turns_held_us", facts->turns_held_us },
		{ "turns_waited", facts->turns_waited },
		{ "turns_waited_us", facts->turns_waited_us },
		{ "turn_waited_most_us", facts->turn_waited_most_us },
	};
	struct osd_item_writer writer;

	osd_result_begin(request, &writer);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		add_statistic(&writer, table[i].name, table[i].value);
	add_allocator(&writer);
	osd_result_end(request, &writer, NULL, 0, -1);
	return 0;
}

static int features(struct osd_request *request);

/* ---- the table ---- */

static int check(struct osd_request *request);

/* Their results need space for one entry and for the place to go on. */
#define STREAMED (1u << 31)
/*
 * They are about a whole partition or the root, or (OF_ROOT) the root alone. An address that names
 * more is refused.
 */
#define WHOLE   (1u << 30)
#define OF_ROOT (1u << 29)

static const struct function {
	uint16_t code;
	uint16_t feature; /* that a host must have subscribed to; 0: none */
	unsigned flags;
	struct osd_command_entry entry;
} functions[] = {
#define FUNCTION(code, feature, flags, mode, target, execute, permissions, needs)          \
	{                                                                                  \
		OSD_FUNCTION_##code, feature, flags,                                       \
		{                                                                          \
			OSD_EXECUTE, mode, target, OSD_PARAMETERS | OSD_ALLOCATION, check, \
				execute, permissions, needs                                \
		}                                                                          \
	}
	FUNCTION(FEATURES, 0, 0, ENGINE_READ, OSD_TARGET_ROOT_OR_PARTITION, features,
		 OSD_PERMISSION_GET_ATTR, 0),
	FUNCTION(SUBSCRIBE, 0, 0, ENGINE_READ, OSD_TARGET_ROOT_OR_PARTITION, subscribe,
		 OSD_PERMISSION_GET_ATTR, 0),
	FUNCTION(STATISTICS, OSD_FEATURE_STATISTICS, WHOLE | OF_ROOT, ENGINE_READ, OSD_TARGET_ROOT,
		 statistics, OSD_PERMISSION_GET_ATTR, 0),
	FUNCTION(SNAPSHOT, OSD_FEATURE_VERSIONS, WHOLE, ENGINE_HISTORY,
		 OSD_TARGET_ROOT_OR_PARTITION, osd_function_snapshot, OSD_PERMISSION_OBJ_MGMT,
		 ENGINE_HAS_VERSIONS),
	FUNCTION(VERSIONS, OSD_FEATURE_VERSIONS, STREAMED, ENGINE_READ,
		 OSD_TARGET_ROOT_OR_PARTITION, osd_function_versions, OSD_PERMISSION_GET_ATTR,
		 ENGINE_HAS_VERSIONS),
	FUNCTION(DROP, OSD_FEATURE_VERSIONS, WHOLE, ENGINE_RESCUE, OSD_TARGET_ROOT_OR_PARTITION,
		 osd_function_drop, OSD_PERMISSION_OBJ_MGMT | OSD_PERMISSION_REMOVE,
		 ENGINE_HAS_VERSIONS),
	FUNCTION(VIEW, OSD_FEATURE_VERSIONS, WHOLE, ENGINE_READ, OSD_TARGET_ROOT_OR_PARTITION,
		 osd_function_view, OSD_PERMISSION_READ, ENGINE_HAS_VERSIONS),
	FUNCTION(ROLLBACK, OSD_FEATURE_ROLLBACK, 0, ENGINE_HISTORY, OSD_TARGET_ROOT_OR_PARTITION,
		 osd_function_rollback,
		 OSD_PERMISSION_OBJ_MGMT | OSD_PERMISSION_WRITE | OSD_PERMISSION_REMOVE,
		 ENGINE_HAS_ROLLBACK | ENGINE_HAS_VERSIONS),
	FUNCTION(UNDO, OSD_FEATURE_ROLLBACK, 0, ENGINE_WRITE, OSD_TARGET_PARTITION,
		 osd_function_undo, OSD_PERMISSION_WRITE, ENGINE_HAS_ROLLBACK),
	FUNCTION(LOG, OSD_FEATURE_ROLLBACK, STREAMED, ENGINE_READ, OSD_TARGET_PARTITION,
		 osd_function_log, OSD_PERMISSION_GET_ATTR,
		 ENGINE_HAS_ROLLBACK | ENGINE_HAS_VERSIONS),
	FUNCTION(DIFF, OSD_FEATURE_ROLLBACK, STREAMED | WHOLE, ENGINE_READ, OSD_TARGET_PARTITION,
		 osd_function_diff, OSD_PERMISSION_READ,
		 ENGINE_HAS_DIFFERENCES | ENGINE_HAS_VERSIONS),
	FUNCTION(RETENTION, OSD_FEATURE_RETENTION, 0, ENGINE_READ, OSD_TARGET_ROOT_OR_PARTITION,
		 osd_function_retention, OSD_PERMISSION_GET_ATTR,
		 ENGINE_HAS_RETENTION | ENGINE_HAS_VERSIONS),
	FUNCTION(SET_RETENTION, OSD_FEATURE_RETENTION, WHOLE, ENGINE_RESCUE,
		 OSD_TARGET_ROOT_OR_PARTITION, osd_function_set_retention, OSD_PERMISSION_POL_SEC,
		 ENGINE_HAS_RETENTION | ENGINE_HAS_VERSIONS),
	FUNCTION(MERGE, OSD_FEATURE_RETENTION, WHOLE | OF_ROOT, ENGINE_READ, OSD_TARGET_ROOT,
		 osd_function_merge, OSD_PERMISSION_DEV_MGMT, ENGINE_HAS_MERGE),
	FUNCTION(SPACE, OSD_FEATURE_RETENTION, STREAMED | WHOLE, ENGINE_READ,
		 OSD_TARGET_ROOT_OR_PARTITION, osd_function_space, OSD_PERMISSION_GET_ATTR,
		 ENGINE_HAS_MERGE | ENGINE_HAS_RETENTION | ENGINE_HAS_VERSIONS),
	FUNCTION(SEARCH, OSD_FEATURE_SEARCH, STREAMED, ENGINE_READ, OSD_TARGET_ANY,
		 osd_function_search, OSD_PERMISSION_READ, 0),
	FUNCTION(CHECKSUM, OSD_FEATURE_CHECKSUM, STREAMED, ENGINE_READ, OSD_TARGET_USER_OBJECT,
		 osd_function_checksum, OSD_PERMISSION_READ, 0),
#undef FUNCTION
};

static const struct function *find(uint16_t code)
{
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		if (functions[i].code == code)
			return &functions[i];
	return NULL;
}

/* That of a request, whose code was known when it was decoded. */
static const struct function *function_of(const struct osd_request *request)
{
	const struct function *function = find(osd_function_code(&request->cdb));

	assert(function);
	return function;
}

static bool is_streamed(const struct osd_request *request)
{
	return function_of(request)->flags & STREAMED;
}

const struct osd_command_entry *osd_function_find(const struct osd_cdb *cdb)
{
	const struct function *function = find(osd_function_code(cdb));

	return function ? &function->entry : NULL;
}

/* The features that hosts can subscribe to: those of the functions that the engine can serve. */
static uint64_t offered_features(const struct osd_device *device)
{
	uint64_t offered = 0;

	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		if (osd_has(device, functions[i].entry.needs))
			offered |= functions[i].feature;
	return offered;
}

static int features(struct osd_request *request)
{
	struct osd_item_writer writer;

	osd_result_begin(request, &writer);
	osd_item_add_number(&writer, OSD_ITEM_FEATURES, offered_features(request->device));
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		if (!osd_has(request->device, functions[i].entry.needs))
			continue;
		osd_item_open(&writer, OSD_ITEM_ENTRY);
		osd_item_add_number(&writer, OSD_ITEM_FUNCTION, functions[i].code);
		osd_item_add_text(&writer, OSD_ITEM_NAME, osd_function_name(functions[i].code));
		osd_item_add_number(&writer, OSD_ITEM_FEATURES, functions[i].feature);
		osd_item_end(&writer);
	}
	osd_result_end(request, &writer, NULL, 0, -1);
	return 0;
}

/* ---- checks that all functions share, before anything is done ---- */

/* The items of the list, and inside FROM and TO. */
static int check_items(const uint8_t *data, size_t length)
{
	struct osd_item_reader outer, inner;
	struct osd_item item, contained;
	unsigned count = 0;
	int result;

	osd_items_read(&outer, data, length);
	while ((result = osd_item_next(&outer, &item)) == 1) {
		if (++count > PARAMETERS_MAX)
			return -EINVAL;
		if (item.tag != OSD_ITEM_FROM && item.tag != OSD_ITEM_TO)
			continue;
		osd_items_read(&inner, item.value, item.length);
		while ((result = osd_item_next(&inner, &contained)) == 1)
			if (++count > PARAMETERS_MAX)
				return -EINVAL;
		if (result < 0)
			return result;
	}
	return result;
}

static int check(struct osd_request *request)
{
	const struct function *function = function_of(request);
	struct osd_subscriptions *subscriptions = request->device->subscriptions;

	if (request->cdb.address >> 32 & 0xFFFF)
		return osd_fail_field(request, osd_address_field(request) + 2);
	if (function->feature &&
	    !(subscribed_features(subscriptions, request->command->nexus) & function->feature))
		return osd_fail(request, SENSE_ILLEGAL_REQUEST, SENSE_COMMAND_SEQUENCE_ERROR);
	if (function->flags & OF_ROOT && request->cdb.partition != 0)
		return osd_fail_field(request, OSD_FIELD_PARTITION);
	if (function->flags & WHOLE && request->cdb.object != 0)
		return osd_fail_field(request, OSD_FIELD_OBJECT);
	if (check_items(parameters_of(request), request->out_data_length) != 0)
		return osd_fail_parameter(request, 0);
	if (function->flags & STREAMED && request->in_data_length < OSD_RESULT_BYTES_MIN)
		return osd_fail_field(request, osd_length_field(request));
	return 0;
}
