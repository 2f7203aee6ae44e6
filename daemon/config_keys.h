/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The keys of the configuration file: where each belongs, and how its value is read. Private to
 * config.c.
 */
#ifndef MUNINN_DAEMON_CONFIG_KEYS_H
#define MUNINN_DAEMON_CONFIG_KEYS_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

#define CONFIG_LINE_BYTES 4096 /* line end and NUL included */
#define CONFIG_KEYS_MAX   64

struct config_key;

/*
 * Reads a value into `base` + the key's offset. `base` is the struct config, of keys in [lun N] the
 * unit's struct lun_config. -EINVAL with a sentence that does not name the key.
 */
typedef int config_key_parser(const struct config_key *key, const char *value, char *base,
			      struct error_text *error);

struct config_key {
	const char *section; /* "lun" for [lun N] */
	const char *name;
	config_key_parser *parse;
	size_t offset;
	uint32_t least, most; /* numbers: limits; texts: most = bytes with NUL */
};

/* All of them, CONFIG_KEYS_MAX at most; those of a section together. */
extern const struct config_key config_keys[];
extern const size_t config_key_count;

#endif
