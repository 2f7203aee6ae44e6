/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The options of one logical unit: what muninnd hands to the module through tgtd's `bsopts`
 * parameter. The configuration file reads its values with the same functions.
 */
#ifndef MUNINN_DAEMON_MODULE_OPTIONS_H
#define MUNINN_DAEMON_MODULE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "daemon/module/schedule.h"
#include "daemon/module/scrubber.h"
#include "disk/disk.h"
#include "engine/options.h"
#include "nand/nand.h"
#include "osd/osd.h"

#define LUN_THREADS_DEFAULT   2
#define LUN_THREADS_MAX       64 /* as IO_THREADS_MAX */
#define LUN_CACHE_ENTRIES_MAX (1U << 24)
#define LUN_TABLE_CACHE_MAX   (1U << 20) /* MiB */
#define LUN_PATH_BYTES        1024
/* Sizes in bytes, of images and of volumes. */
#define LUN_SIZE_MIN (UINT64_C(1) << 20)
#define LUN_SIZE_MAX (UINT64_C(1) << 50)
/* A day. */
#define LUN_HISTORY_INTERVAL_MAX 86400000U
#define LUN_INLINE_BYTES_MAX     4096U
/* What lun_options_write needs at most. */
#define LUN_OPTIONS_TEXT_BYTES (672 + LUN_PATH_BYTES + SCHEDULE_TEXT_BYTES)

struct lun_options {
	uint32_t threads;         /* I/O threads, 1..LUN_THREADS_MAX */
	struct nand_options nand; /* the back end */
	/*
	 * Of these only the options of run time, and the engine, which has to be the device's own.
	 * Placement counts when muninnd makes the image.
	 */
	struct engine_options engine;
	struct scrub_options scrub;
	char key_file[LUN_PATH_BYTES];      /* of the device key; empty: none */
	struct osd_options osd;             /* its device key is not parsed: see wire/keys_file.h */
	struct disk_options disk;           /* its serial number is that of `osd` */
	char schedule[SCHEDULE_TEXT_BYTES]; /* as schedule_parse takes it; empty: none */
};

/* The options of a unit whose text names none. */
void lun_options_default(struct lun_options *options);

/*
 * Sets one option from its text:
 *   threads=1..64  backend=mmap|file  engine=one that there is
 *   onode_cache=0..2^24  directory_cache=0..2^24  version_cache=0..2^24
 *   durability=process|host  merge=auto|manual  recover_without_nvram=no|yes
 *   tables=ram|demand:MIB  history_interval=milliseconds, 0 = every command
 *   inline_bytes=0..4096, 0 = no data in onodes
 *   scrub_days=0..3650, 0 = never  scrub_rate=1..1000000
 *   layout=flat|packed  key_file=path without , and ;
 *   partition=0x10000..0xFFFFFFFFFFFF  volume_size=bytes, K, M, G or T  block_size=512|4096
 *   version=1..61439, or a name
 *   snapshot_schedule=words of schedule.h
 *   system_id=40 hexadecimal digits  serial=1..36 printable characters without space , ; and =
 * -EINVAL with a sentence that does not name the option, unless it is not known.
 */
int lun_option_set(struct lun_options *options, const char *name, const char *value,
		   struct error_text *error);

/*
 * Parses `NAME=VALUE;NAME=VALUE...` over the defaults (NULL or empty: nothing). tgtd takes commas
 * for itself. -EINVAL with a sentence that names the option; `options` is then undefined.
 */
int lun_options_parse(const char *text, struct lun_options *options, struct error_text *error);

/* The opposite: writes the options that differ from the defaults. */
void lun_options_write(const struct lun_options *options, char text[LUN_OPTIONS_TEXT_BYTES]);

/* The name of the unit's back end. */
const char *lun_options_backend(const struct lun_options *options);

/* Bytes with an optional suffix K, M, G or T (powers of 1024). -EINVAL with a sentence. */
int lun_option_size(const char *text, uint64_t *bytes, struct error_text *error);

/* The ID of a partition of users. -EINVAL with a sentence. */
int lun_option_partition(const char *text, uint64_t *partition, struct error_text *error);

/* Whether a version's name can be a unit's `version`. */
bool lun_option_is_version_name(const char *text);

/* A whole number within limits. -EINVAL with a sentence. */
int lun_option_number(const char *text, uint32_t least, uint32_t most, uint32_t *value,
		      struct error_text *error);

#endif
