/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The keys of the configuration file: where each belongs, and how its value is read. Private to
 * config.c.
 */
#ifndef MUNINN_DAEMON_CONFIG_KEYS_H
#define MUNINN_DAEMON_CONFIG_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

#define CONFIG_LINE_BYTES 4096 /* line end and NUL included */
#define CONFIG_KEYS_MAX   96

struct config_key;

/*
 * Reads a value into `base` + the key's offset. `base` is the struct config; for keys of units the
 * unit's struct lun_config, for those of targets the target's struct target_config. -EINVAL with a
 * sentence that does not name the key.
 */
typedef int config_key_parser(const struct config_key *key, const char *value, char *base,
			      struct error_text *error);

/*
 * Keys of [nand] and [engine] are keys of units. In their own section they hold for all units; in
 * [lun N] or [device NAME], which are stronger, for one.
 */
struct config_key {
	/*
	 * "lun": what stands in [lun N] only; "device": in [device NAME], or in [lun N] without it;
	 * CONFIG_EACH_TARGET
	 */
	const char *section;
	const char *name;
	config_key_parser *parse;
	size_t offset;
	uint32_t least, most; /* numbers: limits; texts: most = bytes with NUL */
};

/* The section of keys that [target] and each [target NAME] can have. */
#define CONFIG_EACH_TARGET "target NAME"

/* Is a key about a target? */
bool config_key_is_of_target(const struct config_key *key);

/* Is a key about a unit? */
bool config_key_is_of_unit(const struct config_key *key);

/* Is it about what units that share a device have in common? */
bool config_key_is_of_device(const struct config_key *key);

/* Whether a text can be the name of a device. */
bool config_is_device_name(const char *name);

/* The device of a name; NULL: there is none. */
struct config;
struct lun_config;
struct lun_config *config_find_device(struct config *config, const char *name);

/* All keys, CONFIG_KEYS_MAX at most; those of a section stand together. */
extern const struct config_key config_keys[];
extern const size_t config_key_count;

#endif
