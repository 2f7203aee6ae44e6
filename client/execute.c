/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* EXECUTE: functions, their streams, and the moments that they understand. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/client_private.h"
#include "common/bytes.h"

#define RESULT_BYTES (64U << 10)

/* ---- one command ---- */

struct execution {
	enum osd_function function;
	struct osd_client_address address;
	uint8_t parameters[OSD_PARAMETER_BYTES_MAX];
	size_t parameter_bytes; /* the caller's, at the start */
	size_t sent_bytes;      /* and the continuation behind them */
	uint8_t *result;
	size_t result_bytes; /* of items */
};

static int run_once(struct osd_client *client, struct execution *execution,
		    struct osd_client_error *error)
{
	struct osd_request request = {
		.cdb = { .action = OSD_EXECUTE,
			 .address = osd_execute_address(execution->function,
							(uint32_t)execution->sent_bytes) },
		.data = execution->parameters,
		.data_length = execution->sent_bytes,
		.buffer = execution->result,
		.buffer_length = RESULT_BYTES,
	};
	size_t items;

	osd_request_address(&request, execution->address);
	osd_client_run(client, &request);
	if (outcome_give(&request.error, error) < 0)
		return request.error.result;
	execution->result_bytes = 0;
	if (request.received == 0)
		return 0;
	items = request.received < OSD_RESULT_HEAD_BYTES ? SIZE_MAX : get_be32(execution->result);
	if (items > request.received - OSD_RESULT_HEAD_BYTES)
		return outcome_set(error, -EPROTO, "EXECUTE %s: the result is cut off",
				   osd_function_name(execution->function));
	execution->result_bytes = items;
	return 0;
}

static const uint8_t *items_of(const struct execution *execution)
{
	return execution->result + OSD_RESULT_HEAD_BYTES;
}

/* Makes the next command of a stream. False: the result was the last one. */
static int go_on(struct execution *execution, struct osd_client_error *error)
{
	struct osd_item_writer writer;
	struct osd_item item;
	int result = osd_item_find(items_of(execution), execution->result_bytes,
				   OSD_ITEM_CONTINUATION, &item);

	if (result == -ENOENT)
		return 0;
	osd_items_begin(&writer, execution->parameters + execution->parameter_bytes,
			sizeof(execution->parameters) - execution->parameter_bytes);
	if (result < 0 || !osd_item_add(&writer, OSD_ITEM_CONTINUATION, item.value, item.length))
		return outcome_set(error, -EPROTO, "EXECUTE %s: the result makes no sense",
				   osd_function_name(execution->function));
	execution->sent_bytes = execution->parameter_bytes + writer.length;
	return 1;
}

static int run_all(struct osd_client *client, struct execution *execution, osd_client_items *each,
		   void *context, struct osd_client_error *error)
{
	int result;

	execution->sent_bytes = execution->parameter_bytes;
	do {
		result = run_once(client, execution, error);
		if (result == 0 && each) {
			result = each(context, items_of(execution), execution->result_bytes);
			if (result < 0)
				outcome_set_local(error, result, "%s", strerror(-result));
		}
		if (result != 0)
			return result;
		result = go_on(execution, error);
	} while (result == 1);
	return result;
}

/* ---- subscribing ---- */

/*
 * Subscribes at the partition (or version) that the function is for, so that one credential is
 * enough for both.
 */
static int subscribe(struct osd_client *client, struct execution *execution,
		     struct osd_client_address address, struct osd_client_error *error)
{
	struct osd_item_writer writer;
	int result;

	if (client->subscribed)
		return 0;
	execution->function = OSD_FUNCTION_SUBSCRIBE;
	execution->address = (struct osd_client_address){ .partition = address.partition,
							  .version = address.version };
	osd_items_begin(&writer, execution->parameters, sizeof(execution->parameters));
	osd_item_add_number(&writer, OSD_ITEM_FEATURES, OSD_FEATURES_ALL);
	execution->parameter_bytes = writer.length;
	result = run_all(client, execution, NULL, NULL, error);
	client->subscribed = result == 0;
	return result;
}

/* Nobody asked to subscribe, so the sentence names the function that was asked for. */
static void name_function(struct osd_client_error *error, enum osd_function function)
{
	const char *name = osd_function_name(OSD_FUNCTION_SUBSCRIBE);
	const struct error_text said = error->sentence;

	if (strncmp(said.text, name, strlen(name)) == 0)
		error_set(&error->sentence, 0, "%s%s", osd_function_name(function),
			  said.text + strlen(name));
}

int osd_client_execute(struct osd_client *client, enum osd_function function,
		       struct osd_client_address address, const uint8_t *parameters, size_t length,
		       osd_client_items *each, void *context, struct osd_client_error *error)
{
	struct execution *execution = calloc(1, sizeof(*execution));
	int result;

	if (length > OSD_PARAMETER_BYTES_MAX - OSD_CONTINUATION_ITEM_BYTES_MAX) {
		free(execution);
		return outcome_set(error, -EINVAL, "EXECUTE %s: the parameters are too long",
				   osd_function_name(function));
	}
	if (execution)
		execution->result = malloc(RESULT_BYTES);
	if (!execution || !execution->result) {
		free(execution);
		return outcome_set_local(error, -ENOMEM, "no memory for a result");
	}
	result = subscribe(client, execution, address, error);
	if (result < 0 && error)
		name_function(error, function);
	if (result == 0) {
		execution->function = function;
		execution->address = address;
		execution->parameter_bytes = length;
		if (length)
			memcpy(execution->parameters, parameters, length);
		result = run_all(client, execution, each, context, error);
	}
	free(execution->result);
	free(execution);
	return result;
}

/* ---- moments ---- */

int osd_client_add_moment(struct osd_item_writer *writer, const struct osd_client_moment *moment)
{
	switch (moment->kind) {
	case OSD_CLIENT_NOW:
		return 0;
	case OSD_CLIENT_AT_VERSION:
		osd_item_add_number(writer, OSD_ITEM_VERSION, moment->value);
		return 0;
	case OSD_CLIENT_AT_TIME:
		osd_item_add_number(writer, OSD_ITEM_TIME, moment->value);
		return 0;
	case OSD_CLIENT_AT_SEQUENCE:
		osd_item_add_number(writer, OSD_ITEM_SEQUENCE, moment->value);
		return 0;
	case OSD_CLIENT_AT_NAME:
		osd_item_add_text(writer, OSD_ITEM_NAME, moment->name);
		return 0;
	case OSD_CLIENT_AGO:
		break;
	}
	return -EINVAL;
}

/* The sequence number before the n-th newest modification of an object. */
struct ago {
	uint64_t wanted, seen, sequence;
};

/* As osd_client_items; 1 ends the stream. */
static int find_ago(void *context, const uint8_t *items, size_t length)
{
	struct ago *ago = context;
	struct osd_item_reader reader;
	struct osd_item entry;

	osd_items_read(&reader, items, length);
	while (osd_item_next(&reader, &entry) == 1) {
		if (entry.tag != OSD_ITEM_ENTRY || ++ago->seen < ago->wanted)
			continue;
		if (osd_item_find_number(entry.value, entry.length, OSD_ITEM_SEQUENCE,
					 &ago->sequence) < 0)
			return -EPROTO;
		ago->sequence--;
		return 1;
	}
	return 0;
}

int osd_client_count_back(struct osd_client *client, struct osd_client_address address,
			  struct osd_client_moment *moment, struct osd_client_error *error)
{
	struct ago ago = { .wanted = moment->value };
	int result;

	if (moment->kind != OSD_CLIENT_AGO)
		return 0;
	if (!address.object)
		return outcome_set(error, -EINVAL,
				   "~N counts the modifications of one object; the address names "
				   "none");
	result = osd_client_execute(client, OSD_FUNCTION_LOG, address, NULL, 0, find_ago, &ago,
				    error);
	if (result < 0)
		return result;
	if (result == 0)
		return outcome_set(error, -ENOENT,
				   "the history of the object that is kept has only %llu "
				   "modifications",
				   (unsigned long long)ago.seen);
	*moment = (struct osd_client_moment){ OSD_CLIENT_AT_SEQUENCE, ago.sequence, "" };
	return 0;
}

static int take_version(void *context, const uint8_t *items, size_t length)
{
	uint64_t version;
	int result = osd_item_find_number(items, length, OSD_ITEM_VERSION, &version);

	if (result < 0 || version > UINT16_MAX)
		return -EPROTO;
	*(uint16_t *)context = (uint16_t)version;
	return 0;
}

static int view(struct osd_client *client, uint64_t partition,
		const struct osd_item_writer *parameters, uint16_t *version,
		struct osd_client_error *error)
{
	return osd_client_execute(
		client, OSD_FUNCTION_VIEW, (struct osd_client_address){ .partition = partition },
		parameters->data, parameters->length, take_version, version, error);
}

/*
 * A partition that is gone, or that was another one then: looks at it as the device had it at the
 * moment.
 */
static int view_of_then(struct osd_client *client, uint64_t partition,
			const struct osd_item_writer *parameters, uint16_t *version)
{
	struct osd_client_address then = { .partition = partition };
	uint64_t id;
	int result = view(client, 0, parameters, version, NULL);

	then.version = *version;
	if (result == 0)
		result = osd_client_get_number(client, then, OSD_PARTITION_INFORMATION,
					       OSD_INFORMATION_PARTITION_ID, &id, NULL);
	return result;
}

int osd_client_resolve(struct osd_client *client, struct osd_client_address address,
		       const struct osd_client_moment *moment, uint16_t *version,
		       struct osd_client_error *error)
{
	struct osd_client_moment at = *moment;
	uint8_t parameters[128];
	struct osd_item_writer writer;
	int result = 0;

	*version = (uint16_t)at.value;
	if (at.kind == OSD_CLIENT_AT_VERSION)
		return at.value >= 1 && at.value <= UINT16_MAX
			       ? 0
			       : outcome_set(error, -EINVAL,
					     "versions have numbers from 1 to 65535");
	*version = 0;
	if (at.kind == OSD_CLIENT_NOW)
		return 0;
	result = osd_client_count_back(client, address, &at, error);
	if (result < 0)
		return result;
	osd_items_begin(&writer, parameters, sizeof(parameters));
	osd_client_add_moment(&writer, &at);
	result = view(client, address.partition, &writer, version, error);
	if (result == -ENOENT && address.partition != 0 &&
	    view_of_then(client, address.partition, &writer, version) == 0)
		result = outcome_give(&(struct osd_client_error){ 0 }, error);
	return result;
}

int osd_client_undo(struct osd_client *client, struct osd_client_address object,
		    uint64_t modifications, struct osd_client_error *error)
{
	struct osd_client_moment before = { .kind = OSD_CLIENT_AGO, .value = modifications };
	enum osd_function function = OSD_FUNCTION_UNDO;
	uint8_t parameters[32];
	struct osd_item_writer writer;
	int result = 0;

	osd_items_begin(&writer, parameters, sizeof(parameters));
	if (modifications <= OSD_MODIFICATIONS_MAX) {
		osd_item_add_number(&writer, OSD_ITEM_MODIFICATIONS, modifications);
	} else {
		function = OSD_FUNCTION_ROLLBACK;
		result = osd_client_count_back(client, object, &before, error);
		osd_item_add_number(&writer, OSD_ITEM_SEQUENCE, before.value);
	}
	return result < 0 ? result
			  : osd_client_execute(client, function, object, parameters, writer.length,
					       NULL, NULL, error);
}

/* ---- one state ---- */

struct counted {
	osd_client_items *each;
	void *context;
	unsigned results;
};

static int count_result(void *context, const uint8_t *items, size_t length)
{
	struct counted *counted = context;

	counted->results++;
	return counted->each(counted->context, items, length);
}

int osd_client_execute_at_one_state(struct osd_client *client, enum osd_function function,
				    struct osd_client_address address, const uint8_t *parameters,
				    size_t length, osd_client_items *each, void *context,
				    bool *one_state, struct osd_client_error *error)
{
	const struct osd_item_writer no_moment = { 0 };
	struct counted counted = { .each = each, .context = context };
	struct osd_client_address at = address;
	struct osd_client_error refused = { 0 };
	int result;

	*one_state = true;
	if (address.version == 0 &&
	    view(client, address.partition, &no_moment, &at.version, NULL) == 0) {
		result = osd_client_execute(client, function, at, parameters, length, each, context,
					    &refused);
		/*
		 * Without the view the target may do what it refuses there, or explain it better.
		 */
		if (result >= 0 || !refused.has_sense) {
			outcome_give(&refused, error);
			return result;
		}
	}
	result = osd_client_execute(client, function, address, parameters, length, count_result,
				    &counted, error);
	*one_state = address.version != 0 || counted.results <= 1;
	return result;
}
