/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The options of one logical unit, as they come through tgtd's `bsopts` parameter. */
#ifndef MUNINN_DAEMON_MODULE_OPTIONS_H
#define MUNINN_DAEMON_MODULE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "osd/osd.h"

#define LUN_THREADS_DEFAULT   2
#define LUN_THREADS_MAX       64 /* as IO_THREADS_MAX */
#define LUN_CACHE_ENTRIES_MAX (1U << 24)
#define LUN_TABLE_CACHE_MAX   (1U << 20) /* MiB */
#define LUN_PATH_BYTES        1024
/* A day. */
#define LUN_HISTORY_INTERVAL_MAX 86400000U

struct lun_options {
	uint32_t threads;               /* I/O threads, 1..LUN_THREADS_MAX */
	uint32_t onode_cache_entries;   /* as in engine_options; 0 = the engine's default */
	uint32_t directory_cache_nodes; /* as in engine_options; 0 = the engine's default */
	uint32_t version_cache_entries; /* as in engine_options; 0 = the engine's default */
	bool durable;                   /* acknowledged = on the host's stable storage */
	bool merge_manual;              /* as in engine_options */
	uint32_t history_interval_ms;   /* as in engine_options; 0 = the engine's default */
	bool recover_without_nvram;     /* as in engine_options */
	uint32_t table_cache_mib; /* of engine_options.table_cache_bytes; 0: tables in memory */
	char key_file[LUN_PATH_BYTES]; /* of the device key; empty: none */
	struct osd_options osd;        /* its device key is not parsed: see wire/keys_file.h */
};

/*
 * Parses `NAME=VALUE;NAME=VALUE...` (NULL or empty: all defaults), tgtd taking commas for itself:
 *   threads=1..64  onode_cache=0..2^24  directory_cache=0..2^24
 *   version_cache=0..2^24
 *   durability=process|host  merge=auto|manual  layout=flat|packed
 *   recover_without_nvram=no|yes  tables=ram|demand:MIB
 *   history_interval=milliseconds, 0 = every command
 *   key_file=absolute path without , and ;
 *   system_id=40 hexadecimal digits  serial=1..36 printable characters without space , ; and =
 * -EINVAL with a sentence that names the option; `options` is then undefined.
 */
int lun_options_parse(const char *text, struct lun_options *options, struct error_text *error);

/* The parsers of single values, which the configuration file uses too. -EINVAL with a sentence. */
int lun_option_number(const char *text, uint32_t least, uint32_t most, uint32_t *value,
		      struct error_text *error);
/* "ram" (0) or "demand:MIB". */
int lun_option_tables(const char *text, uint32_t *mib, struct error_text *error);
/* One of two words; true = the second one. */
int lun_option_choice(const char *text, const char *first, const char *second, bool *value,
		      struct error_text *error);
/* "0" becomes ENGINE_EVERY_COMMAND. */
int lun_option_history_interval(const char *text, uint32_t *ms, struct error_text *error);
int lun_option_serial(const char *text, struct osd_options *osd, struct error_text *error);
/* `path` has LUN_PATH_BYTES. */
int lun_option_key_file(const char *text, char *path, struct error_text *error);
int lun_option_system_id(const char *text, struct osd_options *osd, struct error_text *error);

#endif
