/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* send: a version of a partition, or what differs between two, as a stream. */
#include "client/ctl/send.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/collections.h"
#include "client/ctl/items.h"
#include "client/ctl/versions.h"
#include "client/sparse_file.h"
#include "common/bytes.h"

#define PARAMETERS_BYTES 256

bool send_is_carried(bool of_partition, uint32_t page, uint32_t number)
{
	uint32_t first = of_partition ? OSD_PAGES_PARTITION : OSD_PAGES_USER_OBJECT;
	uint32_t at = page - first;

	if (page < first || at > OSD_PAGES_TYPE_LAST)
		return false;
	/* What a partition is a copy of is its own. */
	if (page == TREE_PARTITION_PAGE && (number == SEND_RECEIVED || number == SEND_UNDER_WAY))
		return false;
	if (!of_partition && page == OSD_USER_OBJECT_INFORMATION)
		return number == OSD_INFORMATION_USERNAME;
	return (at >= OSD_PAGES_APPLICATION && at < OSD_PAGES_VENDOR) ||
	       at >= OSD_PAGES_VENDOR_FREE;
}

const char *send_version_name(uint64_t sequence, char name[OSD_VERSION_NAME_MAX + 1])
{
	snprintf(name, OSD_VERSION_NAME_MAX + 1, "received-%" PRIu64, sequence);
	return name;
}

/* ---- versions ---- */

int send_find_version(struct ctl *ctl, struct osd_client_address partition, const char *text,
		      struct send_version *version)
{
	struct ctl_versions versions = { 0 };
	const struct ctl_version *found;
	uint64_t number = 0;
	int code = ctl_load_versions(ctl, partition, &versions);

	if (ctl_parse_number(text, UINT16_MAX, &number) < 0)
		number = 0;
	found = ctl_find_version(&versions, number, text);
	if (found)
		*version = (struct send_version){ found->number, found->sequence };
	else if (code == CTL_OK)
		code = ctl_fail(ctl, CTL_NOT_FOUND,
				"%s: partition 0x%" PRIx64
				" has no version '%s'; a stream is of kept versions: `muninnctl "
				"snapshot` makes one, `muninnctl versions` lists them",
				ctl->verb, partition.partition, text);
	ctl_free_versions(&versions);
	return code;
}

/* ---- what is sent ---- */

struct sending {
	struct ctl *ctl;
	struct stream stream;
	struct osd_client_address partition; /* at the version */
	struct send_version from, to;        /* from 0: all of it */
	struct progress progress;
	uint64_t object, offset;       /* whose data are on their way, and where */
	bool is_new;                   /* its holes need not be told */
	uint64_t objects;              /* sent */
	int code;                      /* why it ended, with a message */
	struct osd_client_error error; /* or this */
	struct error_text sentence;    /* or that of the stream */
	int result;
};

static int put(struct sending *sending, enum stream_type type, uint64_t offset, const void *data,
	       uint32_t length)
{
	const struct stream_record record = { .type = type,
					      .length = length,
					      .object = sending->object,
					      .offset = offset,
					      .data = data };

	sending->result = stream_write(&sending->stream, &record, &sending->sentence);
	return sending->result;
}

static struct osd_client_address object_of(const struct sending *sending)
{
	struct osd_client_address address = sending->partition;

	address.object = sending->object;
	return address;
}

/* ---- attributes ---- */

struct attributes {
	struct sending *sending;
	bool of_partition;
};

static int take_attribute(void *context, const struct osd_attribute *attribute)
{
	struct attributes *attributes = context;
	uint8_t payload[8 + OSD_ATTRIBUTE_BYTES_MAX];

	if (!send_is_carried(attributes->of_partition, attribute->page, attribute->number))
		return 0;
	put_be32(payload, attribute->page);
	put_be32(payload + 4, attribute->number);
	memcpy(payload + 8, attribute->value, attribute->present);
	return put(attributes->sending, STREAM_ATTRIBUTE, 0, payload, 8 + attribute->present);
}

/* All of an object, or with object 0 of the partition. */
static int send_attributes(struct sending *sending)
{
	struct attributes attributes = { .sending = sending, .of_partition = sending->object == 0 };

	if (put(sending, STREAM_ATTRIBUTES, 0, NULL, 0) < 0)
		return -EIO;
	return osd_client_get_all_attributes(sending->ctl->client, object_of(sending),
					     take_attribute, &attributes, &sending->error);
}

/* ---- data ---- */

static int send_hole(void *context, uint64_t length)
{
	struct sending *sending = context;
	uint8_t bytes[8];
	int result = 0;

	put_be64(bytes, length);
	if (!sending->is_new)
		result = put(sending, STREAM_HOLE, sending->offset, bytes, sizeof(bytes));
	sending->offset += length;
	return result;
}

static int send_data(void *context, const void *data, size_t length)
{
	struct sending *sending = context;
	int result = 0;

	if (progress_interrupted())
		return -ECANCELED;
	if (sparse_is_zero(data, length))
		return send_hole(sending, length);
	for (size_t done = 0; done < length && result == 0; done += STREAM_PAYLOAD_MAX) {
		size_t part = min_u64(length - done, STREAM_PAYLOAD_MAX);

		result = put(sending, STREAM_DATA, sending->offset, (const uint8_t *)data + done,
			     (uint32_t)part);
		sending->offset += part;
	}
	return result;
}

static void show(void *context, uint64_t bytes)
{
	struct sending *sending = context;

	progress_add(&sending->progress, bytes, 0);
}

static int send_range(struct sending *sending, uint64_t offset, uint64_t length)
{
	const struct transfer_options options = { .chunk_bytes = sending->ctl->options->chunk_bytes,
						  .progress = show,
						  .progress_context = sending };

	sending->offset = offset;
	if (length == 0)
		return 0;
	return transfer_download_sparse(sending->ctl->client, object_of(sending), offset, length,
					send_data, send_hole, sending, &options, NULL,
					&sending->error);
}

/* ---- objects ---- */

static int send_object(struct sending *sending, uint64_t object)
{
	uint64_t length = 0;
	int result;

	sending->object = object;
	sending->is_new = true;
	sending->objects++;
	result = osd_client_get_number(sending->ctl->client, object_of(sending),
				       OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_LOGICAL_LENGTH,
				       &length, &sending->error);
	if (result == 0)
		result = put(sending, STREAM_OBJECT, length, NULL, 0);
	if (result == 0)
		result = send_range(sending, 0, length);
	if (result == 0)
		result = put(sending, STREAM_LENGTH, length, NULL, 0);
	return result ? result : send_attributes(sending);
}

static int take_object(void *context, uint64_t id)
{
	struct sending *sending = context;

	return progress_interrupted() ? -ECANCELED : send_object(sending, id);
}

static int send_difference(struct sending *sending, const struct osd_item *entry)
{
	uint64_t offset = entry_number(entry, OSD_ITEM_OFFSET);
	uint64_t length = entry_number(entry, OSD_ITEM_LENGTH);

	sending->object = entry_number(entry, OSD_ITEM_OBJECT);
	sending->is_new = false;
	switch (entry_number(entry, OSD_ITEM_KIND)) {
	case OSD_DIFFERENCE_ADDED:
		return send_object(sending, sending->object);
	case OSD_DIFFERENCE_REMOVED:
		return put(sending, STREAM_REMOVED, 0, NULL, 0);
	case OSD_DIFFERENCE_DATA:
		return send_range(sending, offset, length);
	case OSD_DIFFERENCE_LENGTH:
		return put(sending, STREAM_LENGTH, length, NULL, 0);
	default:
		return send_attributes(sending);
	}
}

static int take_differences(void *context, const uint8_t *data, size_t length)
{
	struct sending *sending = context;
	struct osd_item_reader reader;
	struct osd_item entry;
	int result = 0;

	osd_items_read(&reader, data, length);
	while (result == 0 && osd_item_next(&reader, &entry) == 1)
		if (entry.tag == OSD_ITEM_ENTRY)
			result = progress_interrupted() ? -ECANCELED
							: send_difference(sending, &entry);
	return result;
}

static int send_differences(struct sending *sending, struct osd_client_error *error)
{
	const struct osd_client_address present = { .partition = sending->partition.partition };
	uint8_t parameters[PARAMETERS_BYTES];
	struct osd_item_writer writer;

	osd_items_begin(&writer, parameters, sizeof(parameters));
	osd_item_open(&writer, OSD_ITEM_FROM);
	osd_item_add_number(&writer, OSD_ITEM_VERSION, sending->from.number);
	osd_item_end(&writer);
	osd_item_open(&writer, OSD_ITEM_TO);
	osd_item_add_number(&writer, OSD_ITEM_VERSION, sending->to.number);
	osd_item_end(&writer);
	return osd_client_execute(sending->ctl->client, OSD_FUNCTION_DIFF, present, writer.data,
				  writer.length, take_differences, sending, error);
}

/* ---- the whole ---- */

static int send_header(struct sending *sending)
{
	struct stream_header header = { .partition = sending->partition.partition,
					.from = sending->from.sequence,
					.to = sending->to.sequence };
	int result = osd_client_get_attribute(
		sending->ctl->client, (struct osd_client_address){ 0 }, OSD_ROOT_INFORMATION,
		OSD_ROOT_SYSTEM_ID, header.system, sizeof(header.system), NULL, &sending->error);

	return result ? result : stream_write_header(&sending->stream, &header, &sending->sentence);
}

static int send_all(struct sending *sending)
{
	struct osd_client_error error = { 0 };
	int result = send_header(sending);

	sending->object = 0;
	if (result == 0)
		result = send_attributes(sending);
	if (result == 0)
		result = sending->from.number
				 ? send_differences(sending, &error)
				 : osd_client_list(sending->ctl->client, sending->partition,
						   OSD_FIRST_ID, take_object, sending, &error);
	if (result == 0)
		result = stream_write_end(&sending->stream, &sending->sentence);
	/* The error of what was asked in between says more than that the list ended there. */
	if (result < 0 && sending->error.result == 0)
		sending->error = error;
	return result;
}

static int refuse_collections(void *context, uint64_t id)
{
	(void)context;
	(void)id;
	return -EEXIST;
}

/* What a stream can't carry is refused before it begins. */
static int check_partition(struct sending *sending)
{
	struct ctl *ctl = sending->ctl;
	struct osd_client_error error;
	struct osd_client_ids ids;
	int result = osd_client_find_ids(ctl->client, sending->partition, &ids, &error);

	if (result == 0 && ids.bytes_max != UINT64_MAX)
		return ctl_fail(ctl, CTL_USAGE,
				"send: partition 0x%" PRIx64
				" has packed object IDs, which streams do not carry",
				sending->partition.partition);
	if (result == 0)
		result = osd_client_list_collection(ctl->client, sending->partition, OSD_FIRST_ID,
						    refuse_collections, NULL, &error);
	if (result == -EEXIST)
		return ctl_fail(ctl, CTL_USAGE,
				"send: partition 0x%" PRIx64
				" has collections, which streams do not carry",
				sending->partition.partition);
	return result < 0 ? ctl_fail_command(ctl, &error) : CTL_OK;
}

static int take_arguments(struct sending *sending)
{
	struct ctl *ctl = sending->ctl;
	struct osd_client_address partition;
	int code = ctl_partition_address(ctl, 0, &partition);

	if (code == CTL_OK && partition.version)
		return ctl_fail(ctl, CTL_USAGE,
				"send: versions are arguments of their own: send URL PID VERSION "
				"[FROM]");
	if (code == CTL_OK)
		code = ctl_connect(ctl);
	if (code == CTL_OK)
		code = send_find_version(ctl, partition, ctl->arguments[1], &sending->to);
	if (code == CTL_OK && ctl->argument_count > 2)
		code = send_find_version(ctl, partition, ctl->arguments[2], &sending->from);
	if (code == CTL_OK && sending->from.sequence > sending->to.sequence)
		return ctl_fail(ctl, CTL_USAGE, "send: version '%s' is newer than '%s'",
				ctl->arguments[2], ctl->arguments[1]);
	sending->partition = partition;
	sending->partition.version = (uint16_t)sending->to.number;
	return code == CTL_OK ? check_partition(sending) : code;
}

static int report(struct sending *sending, int result)
{
	struct ctl *ctl = sending->ctl;

	if (progress_interrupted() || result == -ECANCELED)
		return ctl_fail(ctl, CTL_INTERRUPTED, "send: interrupted: the stream is torn");
	if (result == -EPIPE && ctl_reader_is_gone())
		return CTL_LOCAL;
	if (sending->sentence.text[0])
		return ctl_fail(ctl, CTL_LOCAL, "send: %s", sending->sentence.text);
	if (result == -EOVERFLOW)
		return ctl_fail(ctl, CTL_FAILED,
				"send: object 0x%" PRIx64 " has more attributes than can be read",
				sending->object);
	return result < 0 ? ctl_fail_command(ctl, &sending->error) : CTL_OK;
}

int verb_send(struct ctl *ctl)
{
	struct sending *sending = calloc(1, sizeof(*sending));
	int code, result;

	if (!sending || stream_open(&sending->stream, STDOUT_FILENO, "standard output") < 0) {
		free(sending);
		return ctl_fail(ctl, CTL_LOCAL, "send: no memory");
	}
	sending->ctl = ctl;
	code = isatty(STDOUT_FILENO) ? ctl_fail(ctl, CTL_USAGE,
						"send writes a stream to standard output: send "
						"it to a file, a pipe, or `ssh ... receive`")
				     : take_arguments(sending);
	if (code == CTL_OK) {
		ctl_catch_signals(ctl);
		progress_begin(&sending->progress, ctl, "send", 0, 0);
		result = send_all(sending);
		progress_end(&sending->progress);
		code = report(sending, result);
	}
	stream_close(&sending->stream);
	free(sending);
	return code;
}
