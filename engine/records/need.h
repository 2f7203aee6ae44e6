/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Whether a merge must keep a version of a record: the judgement that struct record_keep asks for.
 * How the versions of a key are looked for is the store's.
 */
#ifndef MUNINN_ENGINE_RECORDS_NEED_H
#define MUNINN_ENGINE_RECORDS_NEED_H

#include "engine/records/records.h"

enum record_need {
	RECORD_NEED_NONE,   /* it may be dropped */
	RECORD_NEED_NEWEST, /* it is kept, and is the newest of its key, hidden or not */
	RECORD_NEED_OLD,    /* it is kept, and something newer of its key has been put */
};

/* A version that is judged, and what the judgement may ask its store. */
struct record_judged {
	const struct record_keep *keep;
	const struct record_hidden *hidden; /* NULL: nothing has been rolled back */
	const struct record_key *key;
	const struct record_info *info;
	/*
	 * What is kept for the moment at which the version was put is not looked for, which may
	 * take the most of all reads, and seldom finds that its command put another one. Nor
	 * whether it is the newest, if it is kept for that moment: RECORD_NEED_OLD.
	 */
	bool roughly;
	uint64_t latest; /* no version is newer than this number; 0: that is not known */

	void *context;
	/*
	 * Whether a search of the key at `bound` finds this very version; `hides`: a search that
	 * something is hidden from. 1, 0, or the error of the search. *sequence: of the
	 * version that is found; 0: it is older than this one, or there is none, or
	 * it is not known. At RECORD_NEWEST without hiding any newer version will do.
	 */
	int (*is_found)(void *context, uint64_t bound, bool hides, uint64_t *sequence);
	/*
	 * Whether there is another version of the key as old as this one or older, of its own
	 * command too, hidden or not. 1, 0, or the error of the search.
	 */
	int (*has_older)(void *context);
	/* NULL, or called before (true) and after `keep` is asked what may `get` most. */
	void (*asks)(void *context, bool begins);
};

/* enum record_need, or the error of a search. */
int record_judge(const struct record_judged *judged);

#endif
