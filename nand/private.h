/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The handle and what the files of nand/ share; of the rest of the project only tests may include
 * it.
 */
#ifndef MUNINN_NAND_PRIVATE_H
#define MUNINN_NAND_PRIVATE_H

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nand/backend.h"
#include "nand/format.h"
#include "nand/nand.h"
#include "nand/nvram.h"

/* Whole images are mapped. */
_Static_assert(sizeof(size_t) == 8, "nand/ needs a 64-bit host");
/* A block changes state by one store that the end of the process cannot split. */
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "nand/ needs lock-free 64-bit atomics");

#define NAND_SPARE_BYTES_MAX 4096

/* What happens when the caller breaks a rule of flash. Counted in both cases. */
enum nand_violation_policy {
	NAND_VIOLATION_ABORTS, /* log and abort(): the default with MUNINN_DEBUG */
	NAND_VIOLATION_FAILS,  /* log and -EPERM: the default without */
};

struct nand_mapping {
	uint8_t *at; /* NULL: not mapped */
	size_t bytes;
};

/* One cache line each, so that causes do not disturb one another. */
struct nand_cause_counters {
	alignas(64) _Atomic uint64_t pages_read;
	_Atomic uint64_t pages_programmed;
	_Atomic uint64_t blocks_erased;
	_Atomic uint64_t bytes_read;
	_Atomic uint64_t bytes_programmed;
};

struct timing_state;
struct faults_state;
struct power_state;
struct nand_file;
struct nand_headers;
struct nand_image_copy;

/* Queues for calls that wait, made when needed. */
#define NAND_CALL_QUEUES_MAX 16
struct nand_call_queues {
	pthread_mutex_t lock;
	pthread_cond_t returned;
	uint32_t idle_count, opened;
	struct nand_queue *idle[NAND_CALL_QUEUES_MAX];
};

struct nand {
	struct nand_geometry geometry;
	struct nand_layout layout;
	const struct nand_backend *backend;
	struct nand_call_queues calls;
	struct nand_file *file;       /* the file back end's */
	struct nand_headers *headers; /* the headers back end\'s */
	struct nand_mapping pages;    /* the mmap back end's */
	_Atomic uint64_t *
		prepared; /* of an image's blocks, a bit each: has its space on the host for sure */
	_Atomic uint16_t *on_the_way; /* pages of each block that have set out to be programmed and
					 not arrived; NULL: it is one at a time */
	struct nand_mapping table;    /* block words, stored little-endian */
	struct nand_mapping nvram;    /* NVRAM header, then the region */
	uint64_t nvram_bytes;
	uint8_t uuid[NAND_UUID_BYTES];
	char contents[NAND_CONTENTS_BYTES];
	struct nand_opening opening; /* the image's */
	char *path;                  /* for messages */
	int image_fd;                /* -1: in memory */
	int nvram_fd;
	int copied_fd; /* the image whose private copy this is (salvage.c), locked; -1: it is none
			*/
	bool read_only;
	uint32_t blocks_damaged;      /* see nand_mend_blocks */
	_Atomic uint64_t *given_back; /* the same of those whose space the host has for sure, and
					 whose programs alone may take it again */
	_Atomic uint64_t *fresh;      /* the same of those that this process has taken the space of,
					 and that were not erased since */
	pthread_mutex_t space_lock;   /* over taking space ahead, and giving it back */
	bool keep_space;              /* an erased block's space on the host stays its own */
	uint64_t space_ahead;         /* bytes for which it is taken at once, where it is kept */
	enum nand_violation_policy violation_policy;

	pthread_rwlock_t erasing;           /* shared by who erases a block */
	struct nand_image_copy *image_copy; /* changed with that alone; NULL: none is made */

	pthread_mutex_t sync_lock;     /* one image sync at a time; guards sync_failed */
	_Atomic bool dirty;            /* something was programmed or erased since the last sync */
	_Atomic uint64_t syncs_begun;  /* changed under the lock */
	_Atomic uint32_t sync_callers; /* inside */
	bool sync_failed; /* the host dropped dirty pages: nothing can be called stable any more */
	struct nand_nvram_group nvram_group;
	/*
	 * Chunks of the host's space behind the image's end that are kept for removing, and how
	 * many shall be (space.c).
	 */
	pthread_mutex_t ballast_lock;
	_Atomic uint32_t ballast;
	uint32_t ballast_wanted;
	uint64_t ballast_tried_ms;   /* when it was last tried to fill it up */
	_Atomic bool prepare_failed; /* the host's file system is full; logged once until it has
					space again */

	struct nand_cause_counters by_cause[NAND_CAUSES];
	_Atomic uint64_t rule_violations;
	_Atomic uint64_t uncorrectable_reads;
	_Atomic uint64_t image_syncs;
	_Atomic uint64_t nvram_sync_requests;
	_Atomic uint64_t nvram_syncs;
	_Atomic uint64_t nvram_bytes_synced;

	/*
	 * The laboratory (lab.h): which of its features are on, and their states, NULL until first
	 * wanted.
	 */
	_Atomic unsigned features;
	pthread_mutex_t lab_lock; /* guards the making of the states, and: */
	bool nvram_is_private;    /* a power cut took its file from under it */
	struct timing_state *timing;
	struct faults_state *faults;
	struct power_state *power;
};

void nand_set_violation_policy(struct nand *nand, enum nand_violation_policy policy);

/*
 * Marks a block bad for good: programs and erases of it break a rule from now on, reads do not.
 * 0, -ERANGE or -EROFS.
 */
int nand_mark_bad(struct nand *nand, uint32_t block);

/*
 * Maps `bytes` of `fd` from `offset` shared, read-only, or as a private writable copy; fresh zeroed
 * memory if `fd` is -1. 0 or -errno with `what` in `error`.
 */
enum nand_mapping_kind { NAND_MAP_SHARED, NAND_MAP_READ_ONLY, NAND_MAP_PRIVATE };
int nand_map(struct nand_mapping *mapping, enum nand_mapping_kind kind, int fd, uint64_t offset,
	     uint64_t bytes, const char *what, struct error_text *error);
void nand_unmap(struct nand_mapping *mapping);

/* ---- the parts of opening that salvage.c shares (open.c) ---- */

/* A handle that nand_free can take back. NULL: no memory. */
struct nand *nand_new_handle(const char *path);

/* Opens a regular file and tells its size. -ENOENT: no such file, without `error`. */
int nand_open_regular(const char *path, bool read_only, int *fd, uint64_t *bytes,
		      struct error_text *error);

/* Reads the NAND_HEADER_BYTES at `offset`; what the file does not have of them is zeroes. */
int nand_read_header(int fd, uint64_t offset, uint8_t *to, const char *path,
		     struct error_text *error);

/* Geometry, layout and the rest of what a superblock says. */
void nand_take_superblock(struct nand *nand, const struct nand_superblock *superblock);

/* Stores the initial word of `count` blocks, erased and good, at `to`. */
void nand_table_initialise(uint8_t *to, uint32_t count);

/*
 * Takes the image's lock: flock(2), which vanishes with the process however it ends. 0, or
 * -EBUSY/-errno with the holder's process number, if the host tells it, in `error`.
 */
int nand_lock_image(int fd, const char *path, struct error_text *error);

/* The same beside others who only read. */
int nand_lock_image_shared(int fd, const char *path, struct error_text *error);

/*
 * The process that holds a flock on the file, from /proc/locks; 0 if there is none, or the host
 * does not tell.
 */
long nand_lock_holder(int fd);

/* nand_read and nand_program page by page; `done`: pages before the first failing one. */
struct nand_timed;
int nand_read_each(struct nand *nand, struct nand_timed *timed, enum nand_cause cause,
		   const struct nand_page_io *pages, size_t count, size_t *done);
int nand_program_each(struct nand *nand, struct nand_timed *timed, enum nand_cause cause,
		      const struct nand_page_io *pages, size_t count, size_t *done);

/*
 * Counts what a read moved, whatever came of it, or what a program made valid; the latter is to be
 * synced.
 */
void nand_count_read(struct nand *nand, enum nand_cause cause, uint64_t pages, uint64_t bytes,
		     int result);
void nand_count_programmed(struct nand *nand, enum nand_cause cause, uint64_t pages);

/* Frees a handle in any state of opening. Does not sync. */
void nand_free(struct nand *nand);

#endif
