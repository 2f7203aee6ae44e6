/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* A flash device from opening to closing, and what an administrator leaves beside its image. */
#include "daemon/module/device.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/clock.h"
#include "daemon/module/attendant.h"
#include "daemon/module/backup.h"
#include "daemon/module/fullness.h"
#include "daemon/module/time_epoch.h"
#include "daemon/module/unlock.h"
#include "engine/history.h"
#include "nand/live.h"
#include "osd/osd.h"

/* Two program while the others wait for the host's storage, which they share. */
enum { SEALING_THREADS = 4 };

#define WORN_BLOCKS_MAX 65536 /* that are looked at, a millisecond or two */
/* Segments that the host gets back with each look: some MiB, in some milliseconds. */
enum { TRIMMED_AT_ONCE = 16 };

struct device {
	char *image;
	struct device *next; /* of those that are open */
	unsigned int users;
	struct osd_units *units;
	struct nand *nand;
	struct nand_settings settings; /* as last taken up, by the attendant once that is there */
	struct engine *engine;
	struct scrubber scrubber; /* the attendant's */
	struct fullness fullness; /* the attendant's */
	pthread_mutex_t schedules_lock;
	struct schedule *schedules; /* the attendant's, and of those that begin and end them */
	struct attendant *attendant;
	pthread_mutex_t backup_lock;
	struct backup *backup; /* the last one; NULL: there was none */
};

static void look_at_schedules(struct device *device)
{
	pthread_mutex_lock(&device->schedules_lock);
	for (struct schedule *schedule = device->schedules; schedule; schedule = schedule->next)
		schedule_look(schedule, device->engine);
	pthread_mutex_unlock(&device->schedules_lock);
}

/*
 * On the attendant's thread: looks for new settings of the emulated flash, ends of locks, new
 * time epochs, and versions that are due. The device keeps account of the time meanwhile, whether
 * or not anybody uses it.
 */
static void look_beside_image(void *context)
{
	struct device *device = context;

	nand_take_settings(device->nand, &device->settings);
	unlock_take(device->engine, device->image);
	time_epoch_take(device->engine, device->image);
	if (engine_capabilities(device->engine) & ENGINE_HAS_RETENTION)
		engine_keep_time(device->engine, ENGINE_KEEP_TIME_MS);
	look_at_schedules(device);
	scrubber_look(&device->scrubber, clock_microseconds());
	engine_trim(device->engine, TRIMMED_AT_ONCE);
	fullness_look(&device->fullness, device->engine, device->image, clock_microseconds());
}

static int open_layers(struct device *device, const struct nand_options *nand,
		       const struct engine_options *engine, const struct scrub_options *scrub,
		       struct error_text *error)
{
	struct engine_options options = *engine;
	struct scrub_options scrubbing = *scrub;
	int result;

	device->units = osd_units_create();
	if (!device->image || !device->units)
		return error_set(error, -ENOMEM, "out of memory");
	result = nand_open_with(device->image, nand, &device->nand, error);
	if (result)
		return result;
	nand_take_settings(device->nand, &device->settings);
	options.sealing_threads = SEALING_THREADS;
	options.merging_thread = true;
	result = engine_open(device->nand, &options, &device->engine, error);
	if (result)
		return result;
	/* A merge that moves it drops history that nobody needs. */
	scrubbing.moves = !engine->merge_manual;
	scrubber_begin(&device->scrubber, &scrubbing, device->engine, device->nand,
		       clock_microseconds());
	fullness_look(&device->fullness, device->engine, device->image, clock_microseconds());
	result = attendant_start(look_beside_image, device, &device->attendant);
	return result ? error_set(error, result, "%s: no thread can be started: %s", device->image,
				  strerror(-result))
		      : 0;
}

/* Those that are open. Main thread only. */
static struct device *open_devices;

static struct device *find_open(const char *image)
{
	struct device *device = open_devices;

	while (device && strcmp(device->image, image) != 0)
		device = device->next;
	return device;
}

static void forget(const struct device *device)
{
	for (struct device **link = &open_devices; *link; link = &(*link)->next)
		if (*link == device) {
			*link = device->next;
			return;
		}
}

int device_open(const char *image, const struct nand_options *nand,
		const struct engine_options *engine, const struct scrub_options *scrub,
		struct device **device, struct error_text *error)
{
	struct device *new = find_open(image);
	int result;

	if (new) {
		new->users++;
		*device = new;
		return 0;
	}
	new = calloc(1, sizeof(*new));
	if (!new)
		return error_set(error, -ENOMEM, "out of memory");
	new->users = 1;
	pthread_mutex_init(&new->schedules_lock, NULL);
	pthread_mutex_init(&new->backup_lock, NULL);
	new->image = strdup(image);
	result = open_layers(new, nand, engine, scrub, error);
	if (result) {
		device_close(new);
		return result;
	}
	new->next = open_devices;
	open_devices = new;
	*device = new;
	return 0;
}

int device_close(struct device *device)
{
	int result = 0, closed = 0;

	if (!device)
		return 0;
	if (--device->users)
		return engine_flush_beside(device->engine);
	forget(device);
	backup_end(device->backup);
	attendant_stop(device->attendant);
	if (device->engine)
		result = engine_close(device->engine);
	if (device->nand)
		closed = nand_close(device->nand);
	osd_units_destroy(device->units);
	pthread_mutex_destroy(&device->schedules_lock);
	pthread_mutex_destroy(&device->backup_lock);
	free(device->image);
	free(device);
	return result ? result : closed;
}

void device_begin_schedule(struct device *device, struct schedule *schedule,
			   const struct schedule_rules *rules, uint64_t about)
{
	schedule_begin(schedule, rules, about, device->image);
	pthread_mutex_lock(&device->schedules_lock);
	schedule->next = device->schedules;
	device->schedules = schedule;
	pthread_mutex_unlock(&device->schedules_lock);
}

void device_end_schedule(struct device *device, struct schedule *schedule)
{
	pthread_mutex_lock(&device->schedules_lock);
	for (struct schedule **link = &device->schedules; *link; link = &(*link)->next)
		if (*link == schedule) {
			*link = schedule->next;
			break;
		}
	pthread_mutex_unlock(&device->schedules_lock);
}

struct engine *device_engine(const struct device *device)
{
	return device->engine;
}

struct osd_units *device_units(const struct device *device)
{
	return device->units;
}

int device_open_stages(const struct device *device, uint32_t count, struct nand_stages **stages,
		       int *event_fd, struct error_text *error)
{
	int result = nand_stages_open(device->nand, count, stages, event_fd, error);

	return result == -EOPNOTSUPP ? 0 : result;
}

const uint8_t *device_uuid(const struct device *device)
{
	return nand_uuid(device->nand);
}

void device_read_counters(const struct device *device, struct nand_counters *counters)
{
	nand_read_counters(device->nand, counters);
}

int device_back_up(struct device *device, const int *fds, struct error_text *error)
{
	int result;

	pthread_mutex_lock(&device->backup_lock);
	if (device->backup && !backup_is_over(device->backup)) {
		result = error_set(error, -EBUSY,
				   "a backup of this device is under way: wait for its end");
	} else {
		backup_end(device->backup);
		device->backup = NULL;
		result = backup_begin(device, device->nand, device->engine, fds, &device->backup,
				      error);
	}
	pthread_mutex_unlock(&device->backup_lock);
	return result;
}

void device_read_fullness(const struct device *device, struct device_fullness *fullness)
{
	const struct fullness *seen = &device->fullness;

	fullness->used_bytes = __atomic_load_n(&seen->used_bytes, __ATOMIC_RELAXED);
	fullness->capacity_bytes = __atomic_load_n(&seen->capacity_bytes, __ATOMIC_RELAXED);
	fullness->crossings = __atomic_load_n(&seen->crossings, __ATOMIC_RELAXED);
}

void device_read_wear(const struct device *device, struct device_wear *wear)
{
	const struct nand_geometry *geometry = nand_geometry(device->nand);
	uint32_t stride = geometry->blocks / WORN_BLOCKS_MAX + 1;
	uint64_t erases = 0, seen = 0;

	*wear = (struct device_wear){ .page_bytes = geometry->page_bytes };
	wear->device_bytes =
		(uint64_t)geometry->page_bytes * geometry->pages_per_block * geometry->blocks;
	for (uint64_t block = 0; block < geometry->blocks; block += stride) {
		struct nand_block_info info;

		if (nand_block_info(device->nand, (uint32_t)block, &info))
			continue;
		wear->erase_count_most =
			(uint32_t)max_u64(wear->erase_count_most, info.erase_count);
		erases += info.erase_count;
		seen++;
	}
	wear->erase_count_mean = seen ? erases / seen : 0;
}

uint64_t device_pages_moved(const struct device *device)
{
	struct nand_counters counters;
	uint64_t moved = 0;

	nand_read_counters(device->nand, &counters);
	/* What the device does by itself tells nothing of its threads. */
	for (int cause = 0; cause < NAND_CAUSE_SCRUB; cause++)
		moved += counters.by_cause[cause].pages_read +
			 counters.by_cause[cause].pages_programmed +
			 counters.by_cause[cause].blocks_erased;
	return moved;
}
