/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The functions of EXECUTE on the target. Private to osd/.
 *
 * Each is an entry like that of a command (struct osd_command_entry), chosen by the function code
 * in the CDB; functions.c has the table, checks parameters and frames results.
 */
#ifndef MUNINN_OSD_FUNCTIONS_H
#define MUNINN_OSD_FUNCTIONS_H

#include "osd/execute.h"
#include "wire/vendor.h"

/* Data-In that a function with a streamed result needs. */
#define OSD_RESULT_BYTES_MIN 1024

/*
 * Hosts whose subscriptions are remembered. For a new one, the target forgets the one that asked
 * longest ago.
 */
#define OSD_SUBSCRIBERS_MAX 256

struct osd_subscriptions;
struct osd_subscriptions *osd_subscriptions_create(void);
void osd_subscriptions_destroy(struct osd_subscriptions *subscriptions);

/* The merge that an initiator started; it runs in a thread of its own. */
struct osd_merge_job;
struct osd_merge_job *osd_merge_job_create(struct engine *engine);
/* Before the first command: the merge has no thread, and goes on in osd_merge_job_step. */
void osd_merge_job_by_hand(struct osd_merge_job *job);
/* By hand: one step of the merge. False: none is running. */
bool osd_merge_job_step(struct osd_merge_job *job);
/* Cancels it and waits for its end. */
void osd_merge_job_destroy(struct osd_merge_job *job);

/* functions.c: the entry of the function that the CDB names. NULL: there is none. */
const struct osd_command_entry *osd_function_find(const struct osd_cdb *cdb);

static inline uint16_t osd_function_code(const struct osd_cdb *cdb)
{
	return (uint16_t)(cdb->address >> 48);
}

static inline uint32_t osd_parameter_bytes(const struct osd_cdb *cdb)
{
	return (uint32_t)cdb->address;
}

/* ---- parameters: checked as a whole before the function begins ---- */

/* 0, or -ENOENT. */
int osd_parameter(const struct osd_request *request, uint16_t tag, struct osd_item *item);
/* A number; `otherwise` if it is missing. -EINVAL with sense: it is no number. */
int osd_parameter_number(struct osd_request *request, uint16_t tag, uint64_t otherwise,
			 uint64_t *value);
/*
 * The moment inside item `container`, or with 0 at the top. *given: there is one. -EINVAL with
 * sense.
 */
int osd_parameter_moment(struct osd_request *request, uint16_t container,
			 struct engine_moment *moment, bool *given);
/*
 * 26/00 INVALID FIELD IN PARAMETER LIST, field pointer to the item with this tag, or to the list.
 * Returns -EINVAL.
 */
int osd_fail_parameter(struct osd_request *request, uint16_t tag);

/* ---- results ---- */

/*
 * Begins the items of the result, behind its head. A stream keeps space back for what
 * osd_result_end adds. Items that do not fit are left out; if the function is no stream, the head's
 * number counts them nevertheless.
 */
void osd_result_begin(struct osd_request *request, struct osd_item_writer *writer);
/*
 * Ends the result. `continuation` NULL: it is complete. `permille` < 0: the function tells no
 * progress.
 */
void osd_result_end(struct osd_request *request, struct osd_item_writer *writer,
		    const void *continuation, uint32_t length, int permille);

/* How much of `total` is done: 0..999, and 1000 when everything is. */
static inline int osd_permille(uint64_t done, uint64_t total)
{
	if (done >= total)
		return 1000;
	/* The product would need more than 64 bits. */
	return total <= UINT64_MAX / 1000 ? (int)(done * 1000 / total)
					  : (int)(done / (total / 1000 + 1));
}

/* ---- the functions ---- */

int osd_function_merge(struct osd_request *request);
int osd_function_space(struct osd_request *request);
int osd_function_snapshot(struct osd_request *request);
int osd_function_versions(struct osd_request *request);
int osd_function_drop(struct osd_request *request);
int osd_function_view(struct osd_request *request);
int osd_function_rollback(struct osd_request *request);
int osd_function_undo(struct osd_request *request);
int osd_function_log(struct osd_request *request);
int osd_function_diff(struct osd_request *request);
int osd_function_retention(struct osd_request *request);
int osd_function_set_retention(struct osd_request *request);
int osd_function_search(struct osd_request *request);
int osd_function_checksum(struct osd_request *request);

#endif
