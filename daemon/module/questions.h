/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Questions that muninnd asks of a unit for an administrator, and their answers: lines of a name
 * and a value, with blanks between words.
 *
 *   use                             session NUMBER, of each that has sent the unit a command;
 *                                   what its sessions have done, and the device since its opening
 *   facts                           what the unit is, and how full its device
 *   volumes FROM                    volume PID BYTES BLOCK_BYTES USED SOURCE READ_ONLY, of each
 *                                   from partition FROM on, QUESTION_VOLUMES_MAX at most
 *   grow BYTES                      lets the unit's own volume grow
 *   create PID|0 BYTES BLOCK_BYTES  makes a volume: made PID BYTES BLOCK_BYTES
 *   remove PID                      removes one
 *   resize PID BYTES                lets one grow that no unit is on
 *   clone PID now|version|time|sequence VALUE WRITABLE   clones one: made PID 0 0
 *   version PID VERSION             which one it is, by its number or name: version NUMBER
 *   map                             what takes the device's space, as a look at some pages tells;
 *                                   stretch SEGMENTS FREE SEALED LOOKED_BYTES LIVE_BYTES, of each;
 *                                   device_versions N;
 *                                   version PID|0 NUMBER TIME_MS WRITTEN USED NAME, the newest
 *   backup NUMBER                   begins a backup of the device into the files that muninnd has
 *                                   handed over with this number (handed.h, backup.h)
 */
#ifndef MUNINN_DAEMON_MODULE_QUESTIONS_H
#define MUNINN_DAEMON_MODULE_QUESTIONS_H

#include <stdbool.h>
#include <stdio.h>

#include "common/error.h"

#define QUESTION_VOLUMES_MAX 200 /* in one answer, which has an end */

struct engine;
struct unit;

/* Is it `use`, which only tgtd's main thread can answer, and at once? */
bool question_is_of_main(const char *question);
/* The answer to that; to be freed. NULL: no memory. */
char *question_use(struct unit *unit);

/* Writes the answer to `map` (question_map.c). -errno. */
int question_map(struct engine *engine, FILE *to);

/*
 * Answers any other one, on a thread: it may have to wait for the engine. *answer is to be freed.
 * -errno with a sentence.
 */
int question_answer(struct unit *unit, const char *question, char **answer,
		    struct error_text *error);

#endif
