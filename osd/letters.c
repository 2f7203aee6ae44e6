/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Keeps the letters of a unit between SEND and FETCH. */
#include "osd/letters.h"

#include <assert.h>
#include <errno.h>
#include <sys/mman.h>

#include "common/bytes.h"
#include "common/clock.h"
#include "wire/envelope.h"

/* A multiple of pages, so that letters that were never used take no memory. */
#define LETTER_BYTES align_up(ENVELOPE_HEAD_BYTES + ENVELOPE_DATA_OUT_MAX, 4096)

static uint64_t system_clock_ms(void *context)
{
	(void)context;
	return (uint64_t)clock_ms();
}

int osd_letters_create(struct osd_letters *letters)
{
	void *memory = mmap(NULL, OSD_LETTERS_MAX * LETTER_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	*letters = (struct osd_letters){ .mutex = PTHREAD_MUTEX_INITIALIZER,
					 .clock_ms = system_clock_ms };
	if (memory == MAP_FAILED)
		return -ENOMEM;
	letters->memory = memory;
	for (size_t i = 0; i < OSD_LETTERS_MAX; i++)
		letters->letters[i].bytes = letters->memory + i * LETTER_BYTES;
	return 0;
}

void osd_letters_destroy(struct osd_letters *letters)
{
	if (letters->memory)
		munmap(letters->memory, OSD_LETTERS_MAX * LETTER_BYTES);
	letters->memory = NULL;
}

/* Under lock: letters that nobody has fetched in time are no more. */
static void drop_old(struct osd_letters *letters)
{
	uint64_t now = letters->clock_ms(letters->clock_context);

	for (size_t i = 0; i < OSD_LETTERS_MAX; i++) {
		struct osd_letter *letter = &letters->letters[i];

		if (letter->state == OSD_LETTER_KEPT && now - letter->kept_ms >= OSD_LETTER_MS)
			letter->state = OSD_LETTER_FREE;
	}
}

/* Under lock. */
static struct osd_letter *find(struct osd_letters *letters, uint64_t nexus, uint64_t tag)
{
	for (size_t i = 0; i < OSD_LETTERS_MAX; i++) {
		struct osd_letter *letter = &letters->letters[i];

		if (letter->state != OSD_LETTER_FREE && letter->nexus == nexus &&
		    letter->tag == tag)
			return letter;
	}
	return NULL;
}

/* Under lock: the first one that is free, so that the others' memory stays unused. */
static struct osd_letter *find_free(struct osd_letters *letters, uint64_t nexus)
{
	struct osd_letter *free_one = NULL;
	unsigned of_session = 0;

	for (size_t i = OSD_LETTERS_MAX; i-- > 0;) {
		struct osd_letter *letter = &letters->letters[i];

		if (letter->state == OSD_LETTER_FREE)
			free_one = letter;
		else
			of_session += letter->nexus == nexus;
	}
	return of_session < OSD_LETTERS_OF_SESSION_MAX ? free_one : NULL;
}

int osd_letters_take(struct osd_letters *letters, uint64_t nexus, uint64_t tag, size_t length,
		     struct osd_letter **letter)
{
	struct osd_letter *taken;
	int result = 0;

	assert(length <= LETTER_BYTES);
	pthread_mutex_lock(&letters->mutex);
	drop_old(letters);
	taken = find(letters, nexus, tag);
	if (taken && taken->state == OSD_LETTER_IN_USE)
		result = -EALREADY;
	else if (!taken)
		taken = find_free(letters, nexus);
	if (!taken)
		result = -EBUSY;
	if (result == 0) {
		*taken = (struct osd_letter){
			.state = OSD_LETTER_IN_USE,
			.nexus = nexus,
			.tag = tag,
			.kept_ms = letters->clock_ms(letters->clock_context),
			.length = length,
			.bytes = taken->bytes,
		};
		*letter = taken;
	}
	pthread_mutex_unlock(&letters->mutex);
	return result;
}

struct osd_letter *osd_letters_find(struct osd_letters *letters, uint64_t nexus, uint64_t tag)
{
	struct osd_letter *letter;

	pthread_mutex_lock(&letters->mutex);
	drop_old(letters);
	letter = find(letters, nexus, tag);
	if (letter && letter->state == OSD_LETTER_IN_USE)
		letter = NULL;
	if (letter)
		letter->state = OSD_LETTER_IN_USE;
	pthread_mutex_unlock(&letters->mutex);
	return letter;
}

static void set_state(struct osd_letters *letters, struct osd_letter *letter,
		      enum osd_letter_state state)
{
	pthread_mutex_lock(&letters->mutex);
	assert(letter->state == OSD_LETTER_IN_USE);
	letter->state = state;
	pthread_mutex_unlock(&letters->mutex);
}

void osd_letter_keep(struct osd_letters *letters, struct osd_letter *letter)
{
	set_state(letters, letter, OSD_LETTER_KEPT);
}

void osd_letter_end(struct osd_letters *letters, struct osd_letter *letter)
{
	set_state(letters, letter, OSD_LETTER_FREE);
}

void osd_letters_forget(struct osd_letters *letters, osd_is_logged_in *is_logged_in, void *context)
{
	pthread_mutex_lock(&letters->mutex);
	for (size_t i = 0; i < OSD_LETTERS_MAX; i++) {
		struct osd_letter *letter = &letters->letters[i];

		if (letter->state == OSD_LETTER_KEPT && !is_logged_in(context, letter->nexus))
			letter->state = OSD_LETTER_FREE;
	}
	pthread_mutex_unlock(&letters->mutex);
}
