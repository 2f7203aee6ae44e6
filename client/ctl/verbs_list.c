/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* ls and stat. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/ctl/ctl.h"
#include "client/ctl/facts.h"
#include "client/ctl/list_tree.h"
#include "client/tree.h"
#include "common/bytes.h"

/* Objects whose attributes are asked for at the same time. */
#define BATCH          64U
#define USERNAME_BYTES 256U

/* ---- ls ---- */

struct row {
	struct osd_request request;
	uint64_t id;
	bool gone; /* removed since it was listed */
	uint64_t length, modified_ms;
	uint64_t file_ms; /* of an object that import has made: the file's; 0: none */
	char username[USERNAME_BYTES + 1];
};

struct listing {
	struct ctl *ctl;
	struct osd_client_address parent;
	struct ctl_list list;
	struct osd_client_value gets[4];
	size_t get_count;
	struct row *rows; /* with --long */
	size_t rows_used;
	struct osd_client_error error; /* the first of a row */
};

static struct osd_client_address address_of(const struct listing *listing, uint64_t id)
{
	struct osd_client_address address = listing->parent;

	if (address.partition)
		address.object = id;
	else
		address.partition = id;
	return address;
}

static void print_row(struct listing *listing, const struct row *row)
{
	char address[OSD_CLIENT_ADDRESS_TEXT], time[CTL_TIME_TEXT], of_file[CTL_TIME_TEXT];
	json_t *object;

	ctl_format_address(listing->ctl, address_of(listing, row->id), address);
	ctl_format_time(row->modified_ms, time);
	ctl_format_time(row->file_ms, of_file);
	if (listing->list.is_json) {
		object = json_pack("{s:s,s:o,s:I,s:s}", "address", address, "id",
				   ctl_json_id(row->id), "length", (json_int_t)row->length,
				   "modified", time);
		ctl_json_with_text(object, "username", row->username);
		if (object && row->file_ms)
			json_object_set_new(object, "file_modified", json_string(of_file));
		ctl_list_add(&listing->list, object);
	} else {
		printf("%-28s %15" PRIu64 "  %s  ", address, row->length,
		       row->file_ms ? of_file : time);
		ctl_print_text(row->username);
		putchar('\n');
	}
}

/* What import has noted of the file (client/tree.h). Before 1970 there is no time to show. */
static uint64_t time_of_file(const struct osd_attribute *attribute)
{
	int64_t seconds;

	if (attribute->present != TREE_STATUS_BYTES)
		return 0;
	seconds = (int64_t)get_be64(attribute->value + 4);
	return seconds <= 0 || seconds > INT64_MAX / 1000
		       ? 0
		       : (uint64_t)seconds * 1000 + get_be32(attribute->value + 12) / 1000000;
}

static void row_done(struct osd_request *request)
{
	struct listing *listing = request->context;
	struct row *row = (struct row *)request;
	struct osd_list_reader reader;
	struct osd_attribute attribute;

	row->gone = request->error.result == -ENOENT;
	if (request->error.result < 0 && !row->gone && listing->error.result == 0)
		listing->error = request->error;
	if (request->error.result < 0 || osd_request_attributes(request, &reader) < 0)
		return;
	while (osd_list_next(&reader, &attribute) == 1) {
		if (attribute.page == TREE_OBJECT_PAGE)
			row->file_ms = time_of_file(&attribute);
		else if (attribute.number == OSD_INFORMATION_USERNAME)
			snprintf(row->username, sizeof(row->username), "%.*s",
				 (int)attribute.present, (const char *)attribute.value);
		else if (attribute.present == 8)
			row->length = get_be64(attribute.value);
		else if (attribute.present == 6)
			row->modified_ms = get_be48(attribute.value);
	}
}

/*
 * Username; length of an object or used bytes of a partition; last change of data; the time of the
 * file that an object was.
 */
static void choose_attributes(struct listing *listing)
{
	bool objects = listing->parent.partition != 0;
	uint32_t pages = objects ? OSD_PAGES_USER_OBJECT : OSD_PAGES_PARTITION;

	listing->gets[0] = (struct osd_client_value){ pages + OSD_PAGE_INFORMATION,
						      OSD_INFORMATION_USERNAME, NULL,
						      USERNAME_BYTES };
	listing->gets[1] = (struct osd_client_value){ pages + OSD_PAGE_INFORMATION,
						      objects ? OSD_INFORMATION_LOGICAL_LENGTH
							      : OSD_INFORMATION_USED_CAPACITY,
						      NULL, 8 };
	listing->gets[2] = (struct osd_client_value){ pages + OSD_PAGE_TIMESTAMPS,
						      OSD_TIME_DATA_MODIFIED, NULL, 6 };
	listing->gets[3] = (struct osd_client_value){ TREE_OBJECT_PAGE, TREE_OBJECT_STATUS, NULL,
						      TREE_STATUS_BYTES };
	listing->get_count = objects ? 4 : 3;
}

static int finish_rows(struct listing *listing)
{
	for (size_t i = 0; i < listing->rows_used && listing->error.result == 0; i++) {
		struct row *row = &listing->rows[i];
		int result;

		*row = (struct row){ .id = row->id };
		row->request = (struct osd_request){
			.cdb = { .action = OSD_GET_ATTRIBUTES },
			.gets = listing->gets,
			.get_count = listing->get_count,
			.done = row_done,
			.context = listing,
		};
		osd_request_address(&row->request, address_of(listing, row->id));
		result = osd_client_submit(listing->ctl->client, &row->request);
		if (result < 0) {
			listing->error.result = result;
			osd_client_failed(listing->ctl->client, &listing->error.sentence);
		}
	}
	osd_client_drain(listing->ctl->client);
	for (size_t i = 0; i < listing->rows_used && listing->error.result == 0; i++)
		if (!listing->rows[i].gone)
			print_row(listing, &listing->rows[i]);
	listing->rows_used = 0;
	return listing->error.result;
}

static int take_id(void *context, uint64_t id)
{
	struct listing *listing = context;
	char address[OSD_CLIENT_ADDRESS_TEXT];

	if (listing->rows) {
		listing->rows[listing->rows_used++].id = id;
		return listing->rows_used == BATCH ? finish_rows(listing) : 0;
	}
	ctl_format_address(listing->ctl, address_of(listing, id), address);
	if (listing->list.is_json)
		return ctl_list_add(&listing->list, json_pack("{s:s,s:o}", "address", address, "id",
							      ctl_json_id(id)));
	puts(address);
	return 0;
}

static int list(struct listing *listing)
{
	struct ctl *ctl = listing->ctl;
	struct osd_client_error error = { 0 };
	int result = osd_client_list(ctl->client, listing->parent, 0, take_id, listing, &error);

	if (result == 0 && listing->rows)
		result = finish_rows(listing);
	if (listing->error.result < 0)
		return ctl_fail_command(ctl, &listing->error);
	if (result < 0)
		return ctl_fail_command(ctl, &error);
	return ctl_list_end(&listing->list, ctl);
}

int verb_ls(struct ctl *ctl)
{
	struct listing listing = { .ctl = ctl };
	struct ctl_place place;
	int code = ctl_place(ctl, 0, &place);

	if (code != CTL_OK)
		return code;
	if (place.path)
		return list_tree(ctl, &place);
	listing.parent = place.address;
	if (ctl->options->recursive)
		return ctl_fail(ctl, CTL_USAGE,
				"ls: --recursive is for trees, with a path or a colon behind the "
				"partition, as in docs:");
	if (listing.parent.object)
		return ctl_fail(ctl, CTL_USAGE,
				"ls: objects contain nothing (`coll ls` lists the members of a "
				"collection); give a partition, or nothing for the "
				"partitions");
	code = ctl_connect(ctl);
	if (code != CTL_OK)
		return code;
	choose_attributes(&listing);
	listing.list = ctl_list_of(ctl);
	listing.rows = ctl->options->long_list ? calloc(BATCH, sizeof(*listing.rows)) : NULL;
	if (ctl->options->long_list && !listing.rows)
		code = ctl_fail(ctl, CTL_LOCAL, "ls: out of memory");
	else
		code = list(&listing);
	free(listing.rows);
	return code;
}

/* ---- stat ---- */

/* For partitions that were made as clones, on our own targets. */
static void show_clone_depth(const struct ctl *ctl, struct osd_client_address address,
			     json_t *object)
{
	struct osd_client_error error;
	uint64_t depth;

	if (!address.partition || address.object ||
	    osd_client_get_number(ctl->client, address, OSD_MUNINN_PARTITION,
				  OSD_MUNINN_CLONE_DEPTH, &depth, &error) < 0)
		return;
	if (object)
		json_object_set_new(object, "clone_depth", json_integer((json_int_t)depth));
	else
		printf("%-20s %" PRIu64 "\n", "clone_depth", depth);
}

static int stat_pages(struct ctl *ctl, struct osd_client_address address, uint32_t pages,
		      const struct fact *information, size_t count)
{
	static const struct fact times[] = {
		{ OSD_TIME_CREATED, "created", FACT_TIME },
		{ OSD_TIME_DATA_MODIFIED, "data_modified", FACT_TIME },
		{ OSD_TIME_DATA_ACCESSED, "data_accessed", FACT_TIME },
		{ OSD_TIME_ATTRIBUTES_MODIFIED, "attributes_modified", FACT_TIME },
		{ OSD_TIME_ATTRIBUTES_ACCESSED, "attributes_accessed", FACT_TIME },
	};
	char text[OSD_CLIENT_ADDRESS_TEXT];
	json_t *object = NULL;
	int code;

	ctl_format_address(ctl, address, text);
	if (ctl->options->json)
		object = json_pack("{s:s}", "address", text);
	else
		printf("%-20s %s\n", "address", text);
	code = facts_print(ctl, address, pages + OSD_PAGE_INFORMATION, information, count, object);
	if (code == CTL_OK)
		show_clone_depth(ctl, address, object);
	/* The root was never created, and nobody notes when somebody looks at it. */
	if (code == CTL_OK && address.partition)
		code = facts_print(ctl, address, pages + OSD_PAGE_TIMESTAMPS, times,
				   sizeof(times) / sizeof(times[0]), object);
	if (code == CTL_OK && object)
		return ctl_print_json(stdout, object);
	json_decref(object);
	return code;
}

/*
 * Is the object there, and which pages does it have? If the target does not tell, those of a user
 * object.
 */
static int find(struct ctl *ctl, struct osd_client_address address, bool *is_collection)
{
	struct osd_client_error error;
	uint64_t type = 0;
	int result = osd_client_get_number(ctl->client, address, OSD_PAGE_CURRENT_COMMAND,
					   OSD_CURRENT_OBJECT_TYPE, &type, &error);

	*is_collection = result == 0 && type == OSD_TYPE_COLLECTION;
	return result == 0 || result == -ENODATA ? CTL_OK : ctl_fail_command(ctl, &error);
}

int verb_stat(struct ctl *ctl)
{
	static const struct fact object_facts[] = {
		{ OSD_INFORMATION_LOGICAL_LENGTH, "length", FACT_SIZE },
		{ OSD_INFORMATION_USED_CAPACITY, "used", FACT_SIZE },
		{ OSD_INFORMATION_USERNAME, "username", FACT_TEXT },
	};
	/* What `stat` shows of the past. `info` shows what never changes. */
	static const struct fact root_facts[] = {
		{ OSD_ROOT_OSD_NAME, "name", FACT_TEXT },
		{ OSD_ROOT_PARTITIONS, "partitions", FACT_NUMBER },
	};
	static const struct fact partition_facts[] = {
		{ OSD_INFORMATION_MEMBERS, "members", FACT_NUMBER },
		{ OSD_INFORMATION_USED_CAPACITY, "used", FACT_SIZE },
		{ OSD_INFORMATION_USERNAME, "username", FACT_TEXT },
	};
	/* The type: 0 linear, 1 tracking. */
	static const struct fact collection_facts[] = {
		{ OSD_INFORMATION_COLLECTION_TYPE, "collection_type", FACT_NUMBER },
		{ OSD_INFORMATION_USERNAME, "username", FACT_TEXT },
	};
	struct osd_client_address address;
	bool is_collection = false;
	int code = ctl_address(ctl, 0, &address);

	if (code == CTL_OK)
		code = ctl_connect(ctl);
	/* Prints nothing if the object is not there. */
	if (code == CTL_OK)
		code = find(ctl, address, &is_collection);
	if (code != CTL_OK)
		return code;
	if (!address.partition && address.version)
		return stat_pages(ctl, address, OSD_PAGES_ROOT, root_facts,
				  sizeof(root_facts) / sizeof(root_facts[0]));
	if (!address.partition)
		return verb_info(ctl);
	if (!address.object)
		return stat_pages(ctl, address, OSD_PAGES_PARTITION, partition_facts,
				  sizeof(partition_facts) / sizeof(partition_facts[0]));
	if (is_collection)
		return stat_pages(ctl, address, OSD_PAGES_COLLECTION, collection_facts,
				  sizeof(collection_facts) / sizeof(collection_facts[0]));
	return stat_pages(ctl, address, OSD_PAGES_USER_OBJECT, object_facts,
			  sizeof(object_facts) / sizeof(object_facts[0]));
}
