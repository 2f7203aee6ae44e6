/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * watch: a picture of where space is. Of a partition by version; of the device by partition, and by
 * version of the device. A terminal shows what fits, again and again; a pipe gets all of it, once.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "client/ctl/ctl.h"
#include "client/ctl/items.h"

#include "client/ctl/watch.h"
#include "common/bytes.h"

enum {
	INTERVAL_MS = 2000,
	BATCH = 64, /* partitions that are asked at the same time */
};

struct watch {
	struct ctl *ctl;
	struct watch_picture picture;
};

static volatile sig_atomic_t stopped;

static void stop(int number)
{
	(void)number;
	stopped = 1;
}

/* ---- looking ---- */

/* Adds a line. If there is no space, the first line goes, and counts as left out. */
static struct watch_line *add_line(struct watch_list *list)
{
	if (list->count == WATCH_LINES_MAX) {
		list->left_out++;
		list->left_out_used += list->lines[0].used;
		memmove(list->lines, list->lines + 1,
			(WATCH_LINES_MAX - 1) * sizeof(list->lines[0]));
		list->count--;
	}
	list->lines[list->count] = (struct watch_line){ .time_ms = 0 };
	return &list->lines[list->count++];
}

static int take_versions(void *context, const uint8_t *data, size_t length)
{
	struct osd_item_reader reader;
	struct osd_item entry;

	osd_items_read(&reader, data, length);
	while (osd_item_next(&reader, &entry) == 1) {
		struct watch_line *line;

		if (entry.tag != OSD_ITEM_ENTRY)
			continue;
		line = add_line(context);
		snprintf(line->label, sizeof(line->label), "%" PRIu64,
			 entry_number(&entry, OSD_ITEM_VERSION));
		line->time_ms = entry_number(&entry, OSD_ITEM_TIME);
		line->used = entry_number(&entry, OSD_ITEM_USED);
		line->written = entry_number(&entry, OSD_ITEM_WRITTEN);
		entry_text(&entry, OSD_ITEM_NAME, line->name, sizeof(line->name));
	}
	return 0;
}

/*
 * The versions of a partition, with the device's among them, or those of the device. The target
 * lists the oldest first.
 */
static int look_at_versions(struct watch *watch, struct osd_client_address address,
			    struct osd_client_error *error)
{
	struct osd_client *client = watch->ctl->client;
	struct watch_list *versions = &watch->picture.versions;
	struct items found = { .length = 0 };

	if (osd_client_execute(client, OSD_FUNCTION_VERSIONS, address, NULL, 0, take_versions,
			       versions, error) < 0 ||
	    osd_client_execute(client, OSD_FUNCTION_RETENTION, address, NULL, 0, items_take, &found,
			       error) < 0)
		return error->result;
	watch->picture.horizon_ms = items_number(&found, OSD_ITEM_HORIZON);
	return 0;
}

/* The present of a partition, behind its versions. */
static int look_at_partition(struct watch *watch, struct osd_client_address partition,
			     struct osd_client_error *error)
{
	struct watch_line *line;
	uint64_t used = 0;

	if (look_at_versions(watch, partition, error) < 0 ||
	    osd_client_get_number(watch->ctl->client, partition, OSD_PARTITION_INFORMATION,
				  OSD_INFORMATION_USED_CAPACITY, &used, error) < 0)
		return error->result;
	line = add_line(&watch->picture.versions);
	snprintf(line->label, sizeof(line->label), "now");
	line->time_ms = ctl_now_ms();
	line->used = used;
	return 0;
}

/* Partitions that were asked how much they use. */
struct asked {
	struct watch *watch;
	struct question {
		struct osd_request request;
		uint64_t id, used;
		bool gone; /* removed meanwhile */
	} questions[BATCH];
	size_t count;
	struct osd_client_error *error; /* the first */
};

static void take_used(struct osd_request *request)
{
	struct asked *asked = request->context;
	struct question *question = (struct question *)request;
	struct osd_list_reader reader;
	struct osd_attribute attribute;

	question->gone = request->error.result == -ENOENT;
	if (request->error.result < 0 && !question->gone && asked->error->result == 0)
		*asked->error = request->error;
	if (request->error.result < 0 || osd_request_attributes(request, &reader) < 0)
		return;
	while (osd_list_next(&reader, &attribute) == 1)
		if (attribute.present == 8)
			question->used = get_be64(attribute.value);
}

static int ask(struct asked *asked)
{
	static const struct osd_client_value used = { OSD_PARTITION_INFORMATION,
						      OSD_INFORMATION_USED_CAPACITY, NULL, 8 };
	struct osd_client *client = asked->watch->ctl->client;

	for (size_t i = 0; i < asked->count && asked->error->result == 0; i++) {
		struct osd_request *request = &asked->questions[i].request;

		*request = (struct osd_request){ .cdb = { .action = OSD_GET_ATTRIBUTES },
						 .gets = &used,
						 .get_count = 1,
						 .done = take_used,
						 .context = asked };
		osd_request_address(request, (struct osd_client_address){
						     .partition = asked->questions[i].id });
		asked->error->result = osd_client_submit(client, request);
		if (asked->error->result < 0)
			osd_client_failed(client, &asked->error->sentence);
	}
	osd_client_drain(client);
	for (size_t i = 0; i < asked->count && asked->error->result == 0; i++) {
		struct watch_line *line;

		if (asked->questions[i].gone)
			continue;
		line = add_line(&asked->watch->picture.partitions);
		line->number = asked->questions[i].id;
		line->used = asked->questions[i].used;
		snprintf(line->label, sizeof(line->label), "0x%" PRIx64, line->number);
	}
	asked->count = 0;
	return asked->error->result;
}

static int take_partition(void *context, uint64_t id)
{
	struct asked *asked = context;

	asked->questions[asked->count++] = (struct question){ .id = id };
	return asked->count == BATCH ? ask(asked) : 0;
}

static int look_at_device(struct watch *watch, struct osd_client_error *error)
{
	const struct osd_client_address root = { 0 };
	struct osd_client_error listed = { 0 };
	struct asked *asked = calloc(1, sizeof(*asked));
	int result;

	*error = (struct osd_client_error){ 0 };
	if (!asked) {
		*error = (struct osd_client_error){ .result = -ENOMEM, .local = true };
		return error_set(&error->sentence, -ENOMEM, "watch: no memory");
	}
	asked->watch = watch;
	asked->error = error;
	result = osd_client_list(watch->ctl->client, root, OSD_FIRST_ID, take_partition, asked,
				 &listed);
	/* The error of a question says more than that the list ended there. */
	if (result < 0 && error->result == 0)
		*error = listed;
	if (error->result == 0)
		ask(asked);
	free(asked);
	return error->result < 0 ? error->result : look_at_versions(watch, root, error);
}

static int look(struct watch *watch, struct osd_client_address address)
{
	struct osd_client_address root = { 0 };
	struct watch_picture *picture = &watch->picture;
	struct osd_client *client = watch->ctl->client;
	struct osd_client_error error;

	picture->partitions.count = picture->partitions.left_out = 0;
	picture->partitions.left_out_used = picture->horizon_ms = 0;
	picture->versions.count = picture->versions.left_out = 0;
	if (osd_client_get_number(client, root, OSD_ROOT_INFORMATION, OSD_ROOT_USED_CAPACITY,
				  &picture->used, &error) < 0 ||
	    osd_client_get_number(client, root, OSD_ROOT_INFORMATION, OSD_ROOT_TOTAL_CAPACITY,
				  &picture->capacity, &error) < 0 ||
	    (address.partition ? look_at_partition(watch, address, &error)
			       : look_at_device(watch, &error)) < 0)
		return ctl_fail_command(watch->ctl, &error);
	return CTL_OK;
}

/* ---- as JSON ---- */

static json_t *version_json(const struct watch_line *line)
{
	char time[CTL_TIME_TEXT];

	return ctl_json_with_text(json_pack("{s:s,s:s,s:I,s:I}", "version", line->label, "time",
					    ctl_format_time(line->time_ms, time), "used",
					    (json_int_t)line->used, "written",
					    (json_int_t)line->written),
				  "name", line->name);
}

/* What is used of the device as a whole then, the target does not tell. */
static json_t *device_version_json(const struct watch_line *line)
{
	json_t *object = version_json(line);

	if (object)
		json_object_set_new(object, "used", json_null());
	return object;
}

static json_t *partition_json(const struct watch_line *line)
{
	return json_pack("{s:o,s:I}", "partition", ctl_json_id(line->number), "used",
			 (json_int_t)line->used);
}

static json_t *list_json(const struct watch_list *list,
			 json_t *(*to_json)(const struct watch_line *line))
{
	json_t *array = json_array();

	for (size_t i = 0; i < list->count; i++)
		json_array_append_new(array, to_json(&list->lines[i]));
	return array;
}

static int print_json(const struct watch_picture *picture)
{
	json_t *object =
		json_pack("{s:I,s:I,s:o}", "device_used", (json_int_t)picture->used,
			  "device_capacity", (json_int_t)picture->capacity, "versions",
			  list_json(&picture->versions,
				    picture->is_device ? device_version_json : version_json));

	if (object && picture->is_device)
		json_object_set_new(object, "partitions",
				    list_json(&picture->partitions, partition_json));
	return ctl_print_json(stdout, object);
}

/* ---- again and again ---- */

static void measure_terminal(struct watch_picture *picture)
{
	struct winsize size;

	picture->coloured = isatty(STDOUT_FILENO);
	picture->rows = picture->columns = 0;
	if (picture->coloured && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) {
		picture->rows = size.ws_row;
		picture->columns = size.ws_col;
	}
}

/* Looks and draws: once into a pipe or as JSON, on a terminal until ^C. */
static int run(struct watch *watch, struct osd_client_address address)
{
	int code;

	do {
		code = look(watch, address);
		if (code != CTL_OK)
			return code;
		if (watch->ctl->options->json)
			return print_json(&watch->picture);
		measure_terminal(&watch->picture);
		if (watch->picture.coloured)
			fputs("\033[H\033[2J", stdout);
		watch_draw(stdout, &watch->picture);
		code = ctl_end_output(watch->ctl);
	} while (code == CTL_OK && watch->picture.coloured && !stopped &&
		 poll(NULL, 0, INTERVAL_MS) == 0 && !stopped);
	return code;
}

int verb_watch(struct ctl *ctl)
{
	const struct sigaction action = { .sa_handler = stop, .sa_flags = SA_RESETHAND };
	struct watch watch = { .ctl = ctl };
	struct watch_list *partitions = &watch.picture.partitions;
	struct watch_list *versions = &watch.picture.versions;
	struct osd_client_address address;
	int code = ctl_scope_address(ctl, 0, &address);

	if (code == CTL_OK)
		code = ctl_connect(ctl);
	if (code != CTL_OK)
		return code;
	watch.picture.is_device = address.partition == 0;
	partitions->lines = calloc(WATCH_LINES_MAX, sizeof(partitions->lines[0]));
	versions->lines = calloc(WATCH_LINES_MAX, sizeof(versions->lines[0]));
	sigaction(SIGINT, &action, NULL);
	code = partitions->lines && versions->lines ? run(&watch, address)
						    : ctl_fail(ctl, CTL_LOCAL, "watch: no memory");
	free(partitions->lines);
	free(versions->lines);
	return code;
}
