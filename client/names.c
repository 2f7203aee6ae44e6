/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Names of partitions. A name is the attribute USERNAME of the partition, so any initiator can give
 * one. Nobody but this library makes sure that there is only one of each.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/client_private.h"

/* Partitions whose names are asked for at the same time. */
#define BATCH 64U

bool osd_client_name_is_valid(const char *name)
{
	/* What `muninnctl key` means by these words is no partition. */
	static const char *const reserved[] = { "root", "master", "new" };

	for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++)
		if (strcmp(name, reserved[i]) == 0)
			return false;
	return !strpbrk(name, "/:@") &&
	       osd_version_name_is_valid((const uint8_t *)name, strlen(name));
}

struct osd_client_value osd_client_name_value(const char *name)
{
	return (struct osd_client_value){
		.page = OSD_PARTITION_INFORMATION,
		.number = OSD_INFORMATION_USERNAME,
		.value = name,
		.length = (uint32_t)strlen(name),
	};
}

int osd_client_set_name(struct osd_client *client, uint64_t partition, const char *name,
			struct osd_client_error *error)
{
	const struct osd_client_value set = osd_client_name_value(name);

	return osd_client_set_attributes(
		client, (struct osd_client_address){ .partition = partition }, &set, 1, error);
}

/* ---- finding ---- */

struct finder {
	struct osd_client *client;
	const char *name;
	uint16_t version; /* of the device */
	struct osd_client_value get;
	struct question {
		struct osd_request request;
		struct finder *finder;
		uint64_t partition;
	} questions[BATCH];
	size_t count;
	uint64_t found[2]; /* the first that have the name */
	size_t found_count;
	int result; /* the first error */
	struct osd_client_error *error;
};

static void answered(struct osd_request *request)
{
	const struct question *question = request->context;
	struct finder *finder = question->finder;
	struct osd_list_reader reader;
	struct osd_attribute attribute;
	size_t length = strlen(finder->name);

	/* It may be gone meanwhile, or closed to this initiator: then it has no name here. */
	if (request->error.result == -ENOENT || request->error.result == -EACCES)
		return;
	if (request->error.result < 0) {
		if (finder->result == 0)
			finder->result = outcome_give(&request->error, finder->error);
		return;
	}
	if (osd_request_attributes(request, &reader) < 0 ||
	    osd_list_next(&reader, &attribute) != 1 || attribute.length != length ||
	    attribute.present != length || memcmp(attribute.value, finder->name, length) != 0)
		return;
	if (finder->found_count < 2)
		finder->found[finder->found_count++] = question->partition;
}

static int ask_batch(struct finder *finder)
{
	for (size_t i = 0; i < finder->count && finder->result == 0; i++) {
		struct question *question = &finder->questions[i];
		int result;

		question->request = (struct osd_request){
			.cdb = { .action = OSD_GET_ATTRIBUTES },
			.gets = &finder->get,
			.get_count = 1,
			.done = answered,
			.context = question,
		};
		osd_request_address(&question->request,
				    (struct osd_client_address){ .partition = question->partition,
								 .version = finder->version });
		result = osd_client_submit(finder->client, &question->request);
		if (result < 0)
			finder->result = client_not_submitted(finder->client, result, "names",
							      finder->error);
	}
	osd_client_drain(finder->client);
	finder->count = 0;
	return finder->result;
}

static int take_partition(void *context, uint64_t id)
{
	struct finder *finder = context;

	finder->questions[finder->count].finder = finder;
	finder->questions[finder->count++].partition = id;
	return finder->count == BATCH ? ask_batch(finder) : 0;
}

int osd_client_find_named(struct osd_client *client, const char *name, uint16_t version,
			  uint64_t *partition, struct osd_client_error *error)
{
	const struct osd_client_address root = { .version = version };
	struct osd_client_error ignored;
	struct finder *finder = calloc(1, sizeof(*finder));
	int result;

	error = error ? error : &ignored;
	if (!finder)
		return outcome_set_local(error, -ENOMEM, "names: out of memory");
	*finder = (struct finder){ .client = client,
				   .name = name,
				   .version = version,
				   .get = osd_client_name_value(name),
				   .error = error };
	/* A longer one is another one, and comes cut off. */
	finder->get.value = NULL;
	result = osd_client_list(client, root, 0, take_partition, finder, error);
	if (finder->result < 0)
		result = finder->result;
	else if (result == 0)
		result = ask_batch(finder);
	*partition = finder->found[0];
	if (result == 0 && finder->found_count == 0)
		result = outcome_set(
			error, -ENOENT,
			"no partition has the name '%s'; `muninnctl ls -l` shows names", name);
	else if (result == 0 && finder->found_count > 1)
		result = outcome_set(error, -ENOTUNIQ,
				     "partitions 0x%" PRIx64 " and 0x%" PRIx64
				     " have the name '%s'; say which one by its ID, and give "
				     "the other another name (`muninnctl name`)",
				     finder->found[0], finder->found[1], name);
	free(finder);
	return result;
}
