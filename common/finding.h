/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What is wrong with something that is stored. Whoever examines a part of a device adds findings to
 * a list; each is one line: what, and where. Its kind tells what that means for users' data, and
 * what a salvage makes of it.
 */
#ifndef MUNINN_COMMON_FINDING_H
#define MUNINN_COMMON_FINDING_H

#include <stdbool.h>
#include <stdint.h>

enum finding_kind {
	/* The two files. */
	FINDING_SUPERBLOCK,
	FINDING_IMAGE_SHORT,
	FINDING_NVRAM_FILE,
	FINDING_BLOCK_STATE,
	/* The record store. */
	FINDING_NVRAM,
	FINDING_BUFFER,
	FINDING_ROOT,
	FINDING_INDEX,
	FINDING_SEGMENT,
	FINDING_PAGE,
	FINDING_PARITY,
	FINDING_RECORD,
	FINDING_SEQUENCE,
	/* What is stored in records. */
	FINDING_STORE,
	FINDING_PARTITION,
	FINDING_DIRECTORY,
	FINDING_OBJECT,
	FINDING_DATA,
	FINDING_ATTRIBUTE,
	FINDING_ORPHAN,
	FINDING_COLLECTION,
	FINDING_COUNT,
	FINDING_VERSION,
	FINDING_CLONE,
	/* Of a salvage alone: what may be older than it was, and what has no space. */
	FINDING_OLDER,
	FINDING_SPACE,
	FINDING_KINDS
};

struct finding_words {
	const char *name;    /* one word, for scripts */
	const char *meaning; /* for users' data */
	const char *salvage; /* what a salvage makes of it */
	bool is_loss;        /* the copy lacks something, or it may be older */
};

const struct finding_words *finding_words(enum finding_kind kind);

struct finding {
	enum finding_kind kind;
	uint64_t partition, object; /* 0: of none in particular */
	char text[384];
};

/* `take` is called for each; its finding is gone when it returns. */
struct findings {
	void (*take)(void *context, const struct finding *finding);
	void *context;
	uint64_t count;
};

void findings_add(struct findings *findings, enum finding_kind kind, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Of an object; object 0: of the partition. */
void findings_add_of(struct findings *findings, enum finding_kind kind, uint64_t partition,
		     uint64_t object, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

#endif
