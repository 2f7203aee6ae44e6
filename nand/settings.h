/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Settings as text, "word,key=value,key=value": how timing, faults and power cuts are written on
 * command lines and in configuration files. Private to nand/.
 */
#ifndef MUNINN_NAND_SETTINGS_H
#define MUNINN_NAND_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

#define SETTING_BYTES 64

/* One item of the list. */
struct setting {
	const char *what; /* "NAND timing": for messages */
	char key[SETTING_BYTES];
	char value[SETTING_BYTES]; /* empty: there is no '=' */
};

/*
 * Takes the next item off `*text`. 1: `setting` is filled; 0: there is no more; -EINVAL: it is
 * empty or too long. `setting->what` must be set.
 */
int setting_next(const char **text, struct setting *setting, struct error_text *error);

/* The value as a number in the unit that the name says. -EINVAL, with `error`. */
int setting_uint(const struct setting *setting, uint64_t most, uint64_t *value,
		 struct error_text *error);
int setting_real(const struct setting *setting, double most, double *value,
		 struct error_text *error);
/* A number followed by ns, us, ms or s. */
int setting_ns(const struct setting *setting, uint32_t most, uint32_t *ns,
	       struct error_text *error);
/* The index of the value in `words`, of which the last is NULL. */
int setting_word(const struct setting *setting, const char *const *words, unsigned *index,
		 struct error_text *error);
int setting_unknown(const struct setting *setting, struct error_text *error);

#endif
