/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Where the configuration of a service comes from: a file, options of the command line, and units
 * that somebody has added at run time. It is made again out of these whenever one of them changes.
 */
#ifndef MUNINN_DAEMON_ORIGIN_H
#define MUNINN_DAEMON_ORIGIN_H

#include <stdbool.h>

#include "common/error.h"
#include "daemon/config.h"

#define ORIGIN_SECTION_MAX 4096 /* bytes of an added unit's section, NUL included */

struct origin_options {
	const char *config; /* the file */
	/* These replace values of the file; NULL: they do not. */
	const char *state_dir, *port, *size;
	bool defaults; /* there is no file */
};

struct origin {
	struct origin_options options;
	int folder;              /* muninnd was started in, which names go by; -1: unknown */
	char path[PATH_MAX];     /* of the file, absolute; "": there is none */
	struct config_file file; /* as it was taken up last */
	/* Sections [lun N]: gone after the next start, unless somebody writes them into the file.
	 */
	struct {
		unsigned int number;
		char *section;
	} added[CONFIG_LUNS_MAX];
	unsigned int added_count;
};

/* Reads the file for the first time, and what it says. -errno with a sentence. */
int origin_open(struct origin *origin, const struct origin_options *options, struct config *config,
		struct error_text *error);

/*
 * The whole configuration, out of `file`. Units that are added are among it, unless `file` has
 * their numbers; and `section` (NULL: none), of one more. -errno with a sentence; `config` is
 * undefined then.
 */
int origin_read(const struct origin *origin, const struct config_file *file, const char *section,
		struct config *config, struct error_text *error);

/* As the file is now, on its own: for origin_read and origin_take. -errno with a sentence. */
int origin_load(const struct origin *origin, struct config_file *file, struct error_text *error);

/* From now on `file` counts, and is the origin's. Units that `config` has of it are added no more.
 */
void origin_take(struct origin *origin, struct config_file *file, const struct config *config);

/* A unit is added, or is no more. */
int origin_add(struct origin *origin, unsigned int number, const char *section);
void origin_remove(struct origin *origin, unsigned int number);
/* Its section; NULL: it is not added. */
const char *origin_section(const struct origin *origin, unsigned int number);

/* The folder of this program's file; "" when it cannot be told. */
void origin_program_folder(char *folder, size_t bytes);

#endif
