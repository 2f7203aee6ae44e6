/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Both servers in a folder of their own, their units and what is on them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/drive.h"
#include "bench/folder.h"
#include "bench/iscsi_bench.h"
#include "common/bytes.h"

enum {
	OBJECT_BYTES = 16 << 20,
	/* What the unit that others leave alone has. */
	IDLE_BYTES = 16 << 20,
	FILL_BLOCK_BYTES = 1 << 20,
	FILL_DEPTH = 4,
};

static int make_folder(struct iscsi_place *place, struct error_text *error)
{
	const char *parent = place->on_drive ? place->options->drive : place->options->memory;

	return bench_folder_make(parent, place->folder, sizeof(place->folder), error);
}

static int start_ours(struct iscsi_place *place, struct error_text *error)
{
	const struct bench_server_options server = {
		.folder = place->folder,
		.muninnd = place->options->muninnd,
		.backend = place->backend,
		.settings = place->options->settings,
		.size = place->size,
		.units = 2,
		.volume_size = place->disks ? place->muninn.span_bytes : 0,
	};
	int result = bench_server_start(&place->ours, &server, error);

	bench_server_url(&place->ours, 1, place->urls[0]);
	bench_server_url(&place->ours, 2, place->urls[1]);
	return result;
}

static int make_objects(struct iscsi_place *place, struct error_text *error)
{
	int result;

	if (place->disks)
		return 0;
	result = load_make_objects(&place->muninn, error);
	return result == 0 ? load_make_objects(&place->idle, error) : result;
}

static void set_units(struct iscsi_place *place, uint64_t span)
{
	struct load_unit *units[] = { &place->muninn, &place->idle, &place->null, &place->rdwr };

	for (unsigned i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		*units[i] = (struct load_unit){
			.url = place->urls[i],
			.osd = i < 2 && !place->disks,
			.span_bytes = i == 1 ? min_u64(span, IDLE_BYTES) : span,
			.object_bytes = min_u64(span, OBJECT_BYTES),
		};
}

int iscsi_place_open(struct iscsi_place *place, const struct iscsi_options *options,
		     const struct iscsi_wish *wish, uint64_t span, struct error_text *error)
{
	int result;

	*place = (struct iscsi_place){
		.options = options,
		.on_drive = wish->on_drive,
		.disks = wish->disks,
		.backend = wish->backend ? wish->backend : options->backend,
		.size = wish->on_drive ? options->drive_size : options->memory_size,
	};
	set_units(place, span);
	result = make_folder(place, error);
	if (result == 0)
		result = start_ours(place, error);
	if (result == 0)
		result = bench_server_start_stock(&place->stock, place->folder, span, error);
	if (result == 0) {
		bench_server_url(&place->stock, STOCK_NULL, place->urls[2]);
		bench_server_url(&place->stock, STOCK_RDWR, place->urls[3]);
		result = make_objects(place, error);
	}
	if (result < 0)
		iscsi_place_close(place);
	return result;
}

void iscsi_place_close(struct iscsi_place *place)
{
	bench_server_stop(&place->ours);
	bench_server_stop(&place->stock);
	bench_folder_remove(place->folder);
	place->folder[0] = '\0';
}

int iscsi_place_fill(struct iscsi_place *place, const struct load_unit *unit,
		     struct error_text *error)
{
	struct load_stream stream = {
		.unit = *unit,
		.operation = LOAD_WRITE,
		.block_bytes = (uint32_t)min_u64(FILL_BLOCK_BYTES, unit->object_bytes),
		.depth = FILL_DEPTH,
		.sessions = 1,
		.bytes = unit->span_bytes,
	};
	struct load load = {
		.streams = &stream, .stream_count = 1, .flush = true, .seed = place->options->seed
	};
	int result = load_run(&load, error);

	load_free(&load);
	return result;
}

/* ---- starting again ---- */

static const char *const image_names[] = { "lun1.img", "lun1.img.nvram", "lun2.img",
					   "lun2.img.nvram" };

static int of_each_image(struct iscsi_place *place, int (*act)(const char *path),
			 struct error_text *error)
{
	char path[SERVER_PATH_BYTES + 32];
	int result = 0;

	for (size_t i = 0; i < sizeof(image_names) / sizeof(image_names[0]) && result == 0; i++) {
		snprintf(path, sizeof(path), "%s/%s", place->folder, image_names[i]);
		result = act(path);
	}
	return result < 0 ? error_set(error, result, "%s: %s", path, strerror(-result)) : 0;
}

static int remove_image(const char *path)
{
	return unlink(path) < 0 ? -errno : 0;
}

int iscsi_place_chill(struct iscsi_place *place, struct error_text *error)
{
	int result;

	bench_server_stop(&place->ours);
	result = of_each_image(place, bench_drive_forget, error);
	return result == 0 ? start_ours(place, error) : result;
}

int iscsi_place_renew(struct iscsi_place *place, struct error_text *error)
{
	int result;

	bench_server_stop(&place->ours);
	result = of_each_image(place, remove_image, error);
	if (result == 0)
		result = start_ours(place, error);
	return result == 0 ? make_objects(place, error) : result;
}
