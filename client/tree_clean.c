/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Removes the objects that former and unfinished imports have left in a partition. */
#include <errno.h>
#include <stdlib.h>

#include "client/tree_private.h"

/* Objects asked about or removed at the same time. */
#define BATCH 32U

struct cleaner {
	struct osd_client *client;
	uint64_t partition;
	uint64_t *used; /* IDs of the tree, ascending */
	size_t used_count;
	struct probe {
		struct osd_request request;
		struct cleaner *cleaner;
		struct osd_client_value get;
		bool ours;
	} probes[BATCH];
	size_t probe_count;
	struct tree_report *report;
	int result;
	struct osd_client_error *error;
};

static int compare_ids(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return left < right ? -1 : left > right;
}

static void probed(struct osd_request *request)
{
	struct probe *probe = request->context;
	struct osd_list_reader reader;
	struct osd_attribute attribute;

	/* Somebody else may remove objects meanwhile. */
	if (request->error.result == -ENOENT)
		return;
	if (request->error.result < 0) {
		probe->cleaner->result = outcome_give(&request->error, probe->cleaner->error);
		return;
	}
	if (osd_request_attributes(request, &reader) == 0 &&
	    osd_list_next(&reader, &attribute) == 1)
		probe->ours = attribute.present == TREE_IMPORT_BYTES;
}

static void removed(struct osd_request *request)
{
	struct probe *probe = request->context;

	if (request->error.result == 0)
		probe->cleaner->report->removed++;
	else if (request->error.result != -ENOENT)
		probe->cleaner->result = outcome_give(&request->error, probe->cleaner->error);
}

static int submit(struct cleaner *cleaner, struct osd_request *request)
{
	int result = osd_client_submit(cleaner->client, request);

	return result < 0 ? client_not_submitted(cleaner->client, result, "import", cleaner->error)
			  : 0;
}

static int ask(struct cleaner *cleaner, struct probe *probe)
{
	uint64_t id = probe->request.cdb.object;

	probe->cleaner = cleaner;
	probe->ours = false;
	probe->get = (struct osd_client_value){
		.page = TREE_OBJECT_PAGE,
		.number = TREE_OBJECT_IMPORT,
		.length = TREE_IMPORT_BYTES,
	};
	probe->request = (struct osd_request){
		.cdb = { .action = OSD_GET_ATTRIBUTES,
			 .partition = cleaner->partition,
			 .object = id },
		.gets = &probe->get,
		.get_count = 1,
		.done = probed,
		.context = probe,
	};
	return submit(cleaner, &probe->request);
}

static int discard(struct cleaner *cleaner, struct probe *probe)
{
	uint64_t id = probe->request.cdb.object;

	probe->request = (struct osd_request){
		.cdb = { .action = OSD_REMOVE, .partition = cleaner->partition, .object = id },
		.done = removed,
		.context = probe,
	};
	return submit(cleaner, &probe->request);
}

static int finish_batch(struct cleaner *cleaner)
{
	int result = 0;

	for (size_t i = 0; i < cleaner->probe_count && result == 0; i++)
		result = ask(cleaner, &cleaner->probes[i]);
	osd_client_drain(cleaner->client);
	for (size_t i = 0; i < cleaner->probe_count && result == 0 && cleaner->result == 0; i++)
		if (cleaner->probes[i].ours)
			result = discard(cleaner, &cleaner->probes[i]);
	osd_client_drain(cleaner->client);
	cleaner->probe_count = 0;
	return result < 0 ? result : cleaner->result;
}

static int consider(void *context, uint64_t id)
{
	struct cleaner *cleaner = context;

	if (cleaner->used_count &&
	    bsearch(&id, cleaner->used, cleaner->used_count, sizeof(id), compare_ids))
		return 0;
	cleaner->probes[cleaner->probe_count++].request.cdb.object = id;
	return cleaner->probe_count == BATCH ? finish_batch(cleaner) : 0;
}

/* The objects of a tree, whose manifest is `object` (0: not stored yet). */
static int note_used(struct cleaner *cleaner, const struct manifest *manifest, uint64_t object)
{
	cleaner->used = malloc((manifest->count + 1) * sizeof(*cleaner->used));
	if (!cleaner->used)
		return outcome_set_local(cleaner->error, -ENOMEM, "import: out of memory");
	for (size_t i = 0; i < manifest->count; i++)
		if (manifest->entries[i].type == MANIFEST_FILE && !manifest->entries[i].left_out)
			cleaner->used[cleaner->used_count++] = manifest->entries[i].object;
	cleaner->used[cleaner->used_count++] = object;
	qsort(cleaner->used, cleaner->used_count, sizeof(*cleaner->used), compare_ids);
	return 0;
}

/* Those of the partition's present tree, if it has one. */
static int note_present(struct cleaner *cleaner)
{
	struct osd_client_address partition = { .partition = cleaner->partition };
	struct tree_pointer pointer;
	struct manifest manifest = { 0 };
	int result = tree_read_pointer(cleaner->client, partition, &pointer, cleaner->error);

	if (result == -ENODATA)
		return 0;
	if (result == 0)
		result = tree_read_manifest(cleaner->client, partition, &pointer, &manifest,
					    cleaner->error);
	if (result < 0)
		return result;
	result = note_used(cleaner, &manifest, pointer.object);
	manifest_free(&manifest);
	return result;
}

static struct cleaner *begin(struct osd_client *client, uint64_t partition,
			     struct tree_report *report, struct osd_client_error *error)
{
	struct cleaner *cleaner = calloc(1, sizeof(*cleaner));

	if (!cleaner) {
		outcome_set_local(error, -ENOMEM, "import: out of memory");
		return NULL;
	}
	cleaner->client = client;
	cleaner->partition = partition;
	cleaner->report = report;
	cleaner->error = error;
	return cleaner;
}

static int end(struct cleaner *cleaner, int result)
{
	if (result == 0)
		result = finish_batch(cleaner);
	free(cleaner->used);
	free(cleaner);
	return result;
}

int tree_clean(struct osd_client *client, uint64_t partition, struct tree_report *report,
	       struct osd_client_error *error)
{
	const struct osd_client_address address = { .partition = partition };
	struct cleaner *cleaner = begin(client, partition, report, error);
	int result = cleaner ? note_present(cleaner) : -ENOMEM;

	if (result == 0)
		result = osd_client_list(client, address, OSD_FIRST_ID, consider, cleaner, error);
	return cleaner ? end(cleaner, result) : result;
}

int tree_clean_leftovers(struct osd_client *client, uint64_t partition,
			 const struct manifest *manifest, const struct manifest *leftovers,
			 struct tree_report *report, struct osd_client_error *error)
{
	struct cleaner *cleaner = begin(client, partition, report, error);
	int result = cleaner ? note_used(cleaner, manifest, 0) : -ENOMEM;

	for (size_t i = 0; i < leftovers->count && result == 0; i++)
		result = consider(cleaner, leftovers->entries[i].object);
	return cleaner ? end(cleaner, result) : result;
}
