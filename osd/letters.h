/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The letters of a logical unit (wire/envelope.h): OSD commands that have been sent and not fetched
 * yet. Each belongs to the session that sent it, under a tag that the session has chosen. Their
 * memory is reserved when the unit is made, and takes none of the machine's until it is used.
 */
#ifndef MUNINN_OSD_LETTERS_H
#define MUNINN_OSD_LETTERS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "osd/osd.h"

/* Of a unit; and of one session, so that it leaves some to others. */
#define OSD_LETTERS_MAX            32
#define OSD_LETTERS_OF_SESSION_MAX 24
/* How long the unit keeps a letter that nobody fetches. */
#define OSD_LETTER_MS 30000

enum osd_letter_state {
	OSD_LETTER_FREE,
	OSD_LETTER_KEPT,   /* it waits to be fetched */
	OSD_LETTER_IN_USE, /* somebody writes or executes it, outside the lock */
};

struct osd_letter {
	enum osd_letter_state state;
	uint64_t nexus, tag;
	uint64_t kept_ms; /* since when */
	size_t length;
	uint8_t *bytes;
};

struct osd_letters {
	pthread_mutex_t mutex;
	uint8_t *memory;
	uint64_t (*clock_ms)(void *context); /* only goes on; tests have their own */
	void *clock_context;
	struct osd_letter letters[OSD_LETTERS_MAX];
};

/* -ENOMEM. */
int osd_letters_create(struct osd_letters *letters);
void osd_letters_destroy(struct osd_letters *letters);

/*
 * A letter to write `length` bytes to: the one with this tag, which is replaced, or a new one. Then
 * osd_letter_keep. -EBUSY: there are as many as there may be; -EALREADY: the one with this tag is
 * being executed.
 */
int osd_letters_take(struct osd_letters *letters, uint64_t nexus, uint64_t tag, size_t length,
		     struct osd_letter **letter);
/* The letter with this tag, to be executed; then osd_letter_keep or osd_letter_end. NULL: none. */
struct osd_letter *osd_letters_find(struct osd_letters *letters, uint64_t nexus, uint64_t tag);
/* It waits to be fetched. An attempt to execute it that has failed does not make it younger. */
void osd_letter_keep(struct osd_letters *letters, struct osd_letter *letter);
void osd_letter_end(struct osd_letters *letters, struct osd_letter *letter);

/* Forgets those of sessions that have ended. */
void osd_letters_forget(struct osd_letters *letters, osd_is_logged_in *is_logged_in, void *context);

/* ---- envelope.c: the commands SEND and FETCH ---- */

bool osd_is_envelope(const struct osd_command *command);
/* In place of osd_execute and osd_execute_at_once. */
void osd_envelope_execute(struct osd_device *device, struct osd_command *command);
bool osd_envelope_execute_at_once(struct osd_device *device, struct osd_command *command,
				  struct nand_stage *stage);
/* Does the letter that FETCH names ask for sessions? (osd_asks_for_sessions) */
bool osd_envelope_asks_for_sessions(struct osd_device *device, uint64_t nexus, const uint8_t *cdb,
				    size_t cdb_length);

/* ---- target.c: an OSD command by itself ---- */

void osd_command_execute(struct osd_device *device, struct osd_command *command);
bool osd_command_execute_at_once(struct osd_device *device, struct osd_command *command,
				 struct nand_stage *stage);

#endif
