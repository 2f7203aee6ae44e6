/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The emulated NAND: pages, blocks, spare areas, a battery-backed NVRAM region, exact counters.
 *
 * A device is one image file plus an NVRAM file beside it (IMAGE and IMAGE.nvram). The rules of
 * real flash hold in every build: a page is programmed once between erases, pages of a block in
 * ascending order, erase is by block, bad blocks refuse both. Breaking a rule is a bug of the
 * caller: debug builds abort, release builds return -EPERM and count it.
 *
 * A page keeps a CRC-32C of its data and its spare area, stored in the last NAND_SPARE_RESERVED
 * bytes of the spare area; a read that does not match it fails with -EBADMSG and returns no data.
 *
 * All functions are thread-safe. Two threads must not program or erase the same block at the same
 * time.
 */
#ifndef MUNINN_NAND_NAND_H
#define MUNINN_NAND_NAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

struct nand;

/* Bytes at the end of every spare area that belong to the emulator (CRC-32C and flags). */
#define NAND_SPARE_RESERVED 16

/* Shape of a device; stored in the superblock, fixed at creation, but for nand_grow. */
struct nand_geometry {
	uint32_t page_bytes;  /* data area of a page: power of two, 512..65536, default 4096 */
	uint32_t spare_bytes; /* spare area of a page, reserved part included: 64..4096, default 256
			       */
	uint32_t pages_per_block;  /* 8..1024, default 64 */
	uint32_t blocks;           /* 1..2^28; pages are numbered 0..blocks * pages_per_block - 1 */
	uint32_t channels;         /* 1..64, default 4 */
	uint32_t dies_per_channel; /* 1..64, default 2; block b is on die b % (channels *
				      dies_per_channel) */
	uint32_t grown_from;       /* blocks that the device was created with; 0: it has never
				      grown, as every new one */
};

/* The default geometry with as many whole blocks as `bytes` of page data hold. */
struct nand_geometry nand_geometry_default(uint64_t bytes);

/* Spare bytes of a page that the caller may use. */
static inline uint32_t nand_spare_usable(const struct nand_geometry *geometry)
{
	return geometry->spare_bytes - NAND_SPARE_RESERVED;
}

/* Why a page is touched; every counter is kept by cause. */
enum nand_cause {
	NAND_CAUSE_USER,     /* data the caller's user asked for or gave */
	NAND_CAUSE_INDEX,    /* filters, read-only tables */
	NAND_CAUSE_MERGE,    /* reclaiming space */
	NAND_CAUSE_RECOVERY, /* opening after a stop or a crash */
	NAND_CAUSE_METADATA, /* roots, directories of segments */
	NAND_CAUSE_SCRUB,    /* looking for pages that can't be read any more */
	NAND_CAUSES
};

struct nand_counters {
	struct {
		uint64_t pages_read;
		uint64_t pages_programmed;
		uint64_t blocks_erased;
		uint64_t bytes_read;       /* data where wanted, and the whole spare area */
		uint64_t bytes_programmed; /* data and the whole spare area */
	} by_cause[NAND_CAUSES];
	uint64_t rule_violations;     /* always 0 unless the caller has a bug */
	uint64_t uncorrectable_reads; /* reads answered -EBADMSG */
	uint64_t image_syncs;         /* msync/fdatasync calls on the image */
	uint64_t nvram_sync_requests; /* nand_nvram_sync calls for at least a byte */
	uint64_t nvram_syncs;         /* of the host: one may serve many requests */
	uint64_t nvram_bytes_synced;  /* of the region, asked of the host */
};

/* One page of a vectored request. */
struct nand_page_io {
	uint64_t page; /* page number */
	void *data;    /* page_bytes, NULL: not wanted (read only) */
	void *spare;   /* nand_spare_usable() bytes, NULL: not wanted (read), zeros (program) */
};

enum nand_block_state { NAND_BLOCK_GOOD, NAND_BLOCK_BAD };

struct nand_block_info {
	enum nand_block_state state;
	uint32_t next_page; /* pages programmed since the last erase = first page that may be
			       programmed */
	uint32_t erase_count;
};

/*
 * Creates IMAGE (sparse) and IMAGE.nvram with `nvram_bytes` of zeroed NVRAM. Fails with -EEXIST if
 * either exists, -EINVAL for a bad geometry, -ENOSPC/-errno of the file system; leaves nothing
 * behind on failure. A crash in the middle of creation leaves something that nand_open refuses with
 * a message that says so, never a half-valid device.
 */
int nand_create(const char *path, const struct nand_geometry *geometry, uint64_t nvram_bytes,
		struct error_text *error);

/*
 * Whether a device of this shape is possible, without making one, and how long its image would be.
 * -EINVAL with a sentence.
 */
int nand_create_check(const struct nand_geometry *geometry, uint64_t nvram_bytes,
		      uint64_t *image_bytes, struct error_text *error);

/*
 * The path of an image's NVRAM file, to be freed: IMAGE.nvram, or where a symbolic link of that
 * name leads, whether or not a file is there. NULL: no memory. All functions that create or open
 * the file follow the link, so it may be on another file system than the image.
 */
char *nand_nvram_path(const char *path);

/*
 * The same for those who make or remove the file. Root follows only a link of its own: anybody else
 * could have root make a file wherever the link leads. -EPERM: it is another user's. -ENOMEM.
 */
int nand_nvram_path_to_make(const char *path, char **file, struct error_text *error);

/*
 * Creates IMAGE.nvram, zeroed, for an image whose NVRAM file is lost. -EEXIST: there is one.
 * -EBUSY: somebody has the image open. -EINVAL: it is no complete image. The image stays as it is.
 */
int nand_create_nvram(const char *path, struct error_text *error);

/*
 * Makes an image larger: `blocks` blocks, the new ones erased. What is on it stays where it is, and
 * its NVRAM becomes what `pieces` say, with zeros between them. `nand` is open for writing, nobody
 * uses it, and all that is left to do with it is nand_close or nand_abandon.
 *
 * A process or a host that ends meanwhile leaves the image as it was or grown. -EINVAL: it can't be
 * so large, with the limit in `error`; -errno: the host can't do it. Then the image is as it was,
 * unless `error` says that the next opening finds out.
 */
struct nand_nvram_piece {
	const void *from; /* memory, also the NVRAM that there is */
	uint64_t to, bytes;
};
struct nand_growth {
	uint32_t blocks;
	uint64_t nvram_bytes;
	const struct nand_nvram_piece *pieces; /* ascending */
	size_t piece_count;
};
int nand_grow(struct nand *nand, const struct nand_growth *growth, struct error_text *error);

/*
 * The shape that a device has when it has grown to `blocks` blocks. -EINVAL: they are not more, or
 * more than it can get; `error` says how many.
 */
int nand_grow_check(const struct nand_geometry *geometry, uint64_t blocks,
		    struct nand_geometry *grown, struct error_text *error);

/*
 * Opens an image, for one process at a time. -EBUSY: another one has it, and `error` names it if
 * the host does. -ENOENT: no such image. -EINVAL: not an image, foreign byte order, another
 * version, truncated, corrupt, or an NVRAM file that is missing, of another image, of another time
 * or of the wrong size; `error` says which, and nothing is modified. One valid copy of the
 * superblock is enough; opening repairs the other one at the end.
 */
int nand_open(const char *path, struct nand **nand, struct error_text *error);

/*
 * Notes in both files that they belong to a new opening. One of them that is put back without the
 * other is refused then; before, it is not told from what it replaces. The engine calls this when
 * it has found everything right and before it takes the first command. Recovery may have stored and
 * programmed by then. Not being able to is a warning in the log.
 */
void nand_note_opening(struct nand *nand);

/*
 * As nand_open, but no lock is taken and nothing can be changed, for inspection tools: program and
 * erase fail with -EROFS, sync does nothing, the NVRAM is a private copy.
 */
int nand_open_read_only(const char *path, struct nand **nand, struct error_text *error);

/* How the pages of an image are reached. The image is the same for all. */
enum nand_backend_kind {
	NAND_BACKEND_MMAP, /* mapped: the host's page cache is the device's memory; the default */
	NAND_BACKEND_FILE, /* by direct I/O with many transfers under way */
};

/* What the file back end moves pages with. */
enum nand_io_kind {
	NAND_IO_BEST,    /* io_uring; threads, with a warning, where the host forbids it */
	NAND_IO_URING,   /* or refuse to open */
	NAND_IO_THREADS, /* pread(2) and pwrite(2) */
};

/* What an erase does with the block's space on the host's file system. */
enum nand_space_kind {
	NAND_SPACE_DEFAULT,    /* kept: who programs a block again soon gains nothing */
	NAND_SPACE_GIVEN_BACK, /* the image takes what is on it; costs a few hundred microseconds an
				 erase */
	NAND_SPACE_KEPT,       /* programs are faster, an erase alone does not shrink the
				 image */
};

/* All zero: the defaults. */
struct nand_options {
	enum nand_backend_kind backend;
	enum nand_io_kind io;
	enum nand_space_kind space;
	bool read_only; /* as nand_open_read_only */
	/*
	 * For a process that does not serve the image. It leaves to the next one a power cut that
	 * is left for the image, and to log that states of blocks are damaged.
	 */
	bool only_looks;
};

/*
 * As nand_open, with a choice. `options` may be NULL. -EPERM or -ENOSYS, with the reason, if
 * io_uring was demanded and this host has none.
 */
int nand_open_with(const char *path, const struct nand_options *options, struct nand **nand,
		   struct error_text *error);

/*
 * An anonymous device in memory with the same rules, for tests and benchmarks; gone at nand_close.
 */
int nand_open_memory(const struct nand_geometry *geometry, uint64_t nvram_bytes, struct nand **nand,
		     struct error_text *error);

/*
 * Tells the headers back end how to make the contents of pages again, so that it keeps only the
 * rest. Both functions run on any thread, several at a time, and depend on their arguments alone.
 * `data` is page_bytes long, `spare` nand_spare_usable(). A page that does not come back bit by bit
 * is noticed when it is programmed, and kept whole. So a codec can't do harm, only waste memory.
 */
struct nand_payload_codec {
	void *context;

	/*
	 * Writes 1 to `capacity` bytes to `to` from which `unpack` makes `data`. False: keep it
	 * whole.
	 */
	bool (*pack)(void *context, uint64_t page, const uint8_t *data, const uint8_t *spare,
		     uint8_t *to, size_t capacity, size_t *bytes);

	/* The opposite. False: `from` cannot be what `pack` wrote. */
	bool (*unpack)(void *context, uint64_t page, const uint8_t *from, size_t bytes,
		       const uint8_t *spare, uint8_t *data);
};

/*
 * A device in memory that keeps, for each page, what `codec` needs to make it again. NULL: it keeps
 * pages whole, and of the spare areas what is not zero. Unprogrammed pages take no memory, a block
 * takes 16 bytes.
 */
int nand_open_headers(const struct nand_geometry *geometry, uint64_t nvram_bytes,
		      const struct nand_payload_codec *codec, struct nand **nand,
		      struct error_text *error);

/* What a device of nand_open_headers keeps now; zeroes for others. */
struct nand_headers_usage {
	uint64_t packed_pages, whole_pages;
	uint64_t bytes; /* allocated for them, as the host's allocator counts */
};
void nand_headers_usage(const struct nand *nand, struct nand_headers_usage *usage);

/* Syncs and closes. Returns the first error of the sync; the handle is gone in any case. */
int nand_close(struct nand *nand);

/* Closes without syncing, as `kill -9` would. Files keep what was written through the mapping. */
void nand_abandon(struct nand *nand);

const struct nand_geometry *nand_geometry(const struct nand *nand);

/* Bytes from a page to the next one on the device: its data, its spare area, what is between. */
uint32_t nand_page_stride(const struct nand *nand);

/* The path of the image, or what stands for it in messages about a device in memory. */
const char *nand_path(const struct nand *nand);

/* 16 random bytes chosen at creation. */
const uint8_t *nand_uuid(const struct nand *nand);

/* Bytes of a device's contents, the NUL behind the name included. */
#define NAND_CONTENTS_BYTES 16

/*
 * What is on the device, in one word: whoever formats it leaves a name in the superblock, where it
 * outlives the NVRAM. "" on a new device.
 *
 * nand_set_contents: after a crash the old or the new name holds. -EINVAL: a longer name. -EROFS,
 * -EIO.
 */
const char *nand_contents(const struct nand *nand);
int nand_set_contents(struct nand *nand, const char *name, struct error_text *error);

/*
 * Reads `count` pages. 0, or the error of the first page that failed: -EBADMSG (checksum), -ENODATA
 * (page not programmed since its block was erased), -ERANGE (no such page), -EIO. On error the
 * contents of all buffers are undefined.
 */
int nand_read(struct nand *nand, enum nand_cause cause, const struct nand_page_io *pages,
	      size_t count);

/*
 * As nand_read of pages that the host has in memory or a stage has brought, so that nothing waits
 * for a drive or for the time that the flash takes. -EINPROGRESS: some are not there; the stage
 * notes them. `stage` may be NULL.
 */
struct nand_stage;
int nand_read_at_hand(struct nand *nand, struct nand_stage *stage, enum nand_cause cause,
		      const struct nand_page_io *pages, size_t count);

/*
 * Programs `count` pages in the order given. 0, or -EPERM (rule broken), -ERANGE, -EIO, -ENOSPC
 * (the host's file system is full; the flash is not to blame); pages before the failing one are
 * programmed.
 */
int nand_program(struct nand *nand, enum nand_cause cause, const struct nand_page_io *pages,
		 size_t count);

/*
 * As nand_program, of pages that lie in memory as on the device: nand_page_stride() apart, each
 * with its spare area right behind its data, reserved bytes included, which the program may change.
 * Where the back end can move whole blocks from there, and the first page of one is at a multiple
 * of NAND_MOVE_ALIGNMENT, they are not copied.
 */
#define NAND_MOVE_ALIGNMENT 4096
int nand_program_whole(struct nand *nand, enum nand_cause cause, const struct nand_page_io *pages,
		       size_t count);

/*
 * Whether the host's file system has no space left but what is kept in reserve for the image. Who
 * does not free space should write no more then.
 */
bool nand_host_is_full(struct nand *nand);

/*
 * Erases a block. 0, -EPERM (bad block), -ERANGE, -EIO. Not ordered with anything on the host's
 * storage: make what replaces the contents stable before.
 */
int nand_erase(struct nand *nand, enum nand_cause cause, uint32_t block);

/*
 * The host's file system gets the space of erased blocks back, also where erased blocks keep it:
 * for blocks that nobody is about to program. Then only the program of such a block takes its space
 * again, unless programs are expected: blocks beside each other get it at once where it is kept.
 * nand_may_give_back: the host may lack the space of an erased block; it is so of all blocks that
 * were not given back since opening. Nothing happens to memory, which has nothing to give.
 */
void nand_give_back(struct nand *nand, uint32_t first, uint32_t count);
bool nand_may_give_back(const struct nand *nand, uint32_t block);
void nand_expect_programs(struct nand *nand, uint32_t first, uint32_t count);

/*
 * Many pages under way at once. A queue holds up to `depth` requests; it is used by one thread at a
 * time, each thread makes its own. Rules, checksums and counters are those of nand_read and
 * nand_program.
 */
struct nand_queue;

/* The default of nand_queue_options.request_pages. */
#define NAND_REQUEST_PAGES 256

struct nand_queue_options {
	uint32_t depth;         /* requests held at most, 1..4096 */
	uint32_t request_pages; /* pages of a request at most, 1..1024; 0: NAND_REQUEST_PAGES */
	/*
	 * Where pages move while the caller goes on: an eventfd(2) that becomes readable when
	 * there may be something to reap. 0: none.
	 */
	int event_fd;
	/* nand_submit leaves it to nand_queue_flush that requests set out, several at once. */
	bool holds;
};

enum nand_request_kind { NAND_REQUEST_READ, NAND_REQUEST_PROGRAM };

/*
 * Belongs to the caller, with all that it points to. It must not change from nand_submit until
 * nand_reap returns it.
 */
struct nand_request {
	enum nand_request_kind kind;
	enum nand_cause cause;
	const struct nand_page_io *pages;
	size_t count; /* 1..request_pages */
	bool whole;   /* a program, as nand_program_whole */
	void *owner;  /* for the caller */
	/*
	 * Set on completion: 0 or what nand_read or nand_program would have returned, and how many
	 * pages before the first failing one were read or programmed.
	 */
	int result;
	size_t done;
	struct nand_request *following; /* the queue's */
};

/* 0, -EINVAL with the limits in `error`, -ENOMEM or -errno. The device must outlive the queue. */
int nand_queue_open(struct nand *nand, const struct nand_queue_options *options,
		    struct nand_queue **queue, struct error_text *error);

/* Waits for what is under way, forgets what was not reaped. NULL: nothing to do. */
void nand_queue_close(struct nand_queue *queue);

/*
 * Takes requests in order, as many as the queue still holds, and returns their number; 0: full,
 * reap first. What is wrong with a request becomes its result.
 *
 * Reads complete in any order. Programs of a queue complete in the order of submission. So pages of
 * a block that were submitted one behind the other are in order for the rule of flash; a page
 * counts as programmed when its request has completed, not before. If a program fails, later pages
 * of its block that were under way fail with -EIO. A block must not be erased, or programmed by
 * others, while programs of it are under way.
 */
size_t nand_submit(struct nand_queue *queue, struct nand_request *const *requests, size_t count);

/* Of a queue that holds requests: what was submitted sets out. */
void nand_queue_flush(struct nand_queue *queue);

/*
 * Waits until `least` requests are complete or nothing is under way any more. Returns up to `most`
 * of them in `completed`.
 */
size_t nand_reap(struct nand_queue *queue, struct nand_request **completed, size_t most,
		 size_t least);

/*
 * Stages: for those who do something else while their pages are read. Who finds pages missing by
 * nand_read_at_hand has them read, and asks again when they have come, for these and for what he
 * finds that he needs then. A stage holds NAND_STAGE_PAGES of them until it is given back. What it
 * holds counts only as long as the page is still the one that was read.
 *
 * One thread at a time may use the stages of a set.
 */
#define NAND_STAGE_PAGES 24

struct nand_stages;

struct nand_stage {
	struct nand_stages *stages;
	uint32_t number; /* 0.. in its set */
	void *owner;     /* for the caller */
};

/*
 * A set of `count` stages. *event_fd becomes readable when nand_stages_next may have one. 0;
 * -EOPNOTSUPP: this device has no pages that a stage would bring; -ENOMEM or -errno. `event_fd`
 * NULL: for those who only wait in nand_stages_next. Then devices in memory have stages, too; they
 * bring pages if these take virtual time.
 */
int nand_stages_open(struct nand *nand, uint32_t count, struct nand_stages **stages, int *event_fd,
		     struct error_text *error);
/* Waits for what is under way. NULL: nothing to do. */
void nand_stages_close(struct nand_stages *stages);

/* An empty stage; NULL: all are taken. */
struct nand_stage *nand_stage_take(struct nand_stages *stages);
/* Gives it back; nothing may be under way. */
void nand_stage_give(struct nand_stage *stage);

/*
 * Has the pages read that were noted since the last time, from the next nand_stages_flush or
 * waiting nand_stages_next on. False: there are none, or there were more than it can hold, or the
 * last ones could not be read: then they are not worth waiting for.
 */
bool nand_stage_send(struct nand_stage *stage);
void nand_stages_flush(struct nand_stages *stages);
/* A stage whose pages have come, right or wrong. NULL: none. `wait`: until there is one, if any. */
struct nand_stage *nand_stages_next(struct nand_stages *stages, bool wait);

/*
 * State of a block; -ERANGE, -EBADMSG (the record of its state is damaged; only an erase makes it
 * usable again).
 */
int nand_block_info(struct nand *nand, uint32_t block, struct nand_block_info *info);

/*
 * Makes `count` blocks from `first` stable on the host's storage (data, spare and block state).
 * 0, -ERANGE or -EIO; after an -EIO nothing can be called stable until the image is opened again.
 */
int nand_sync(struct nand *nand, uint32_t first, uint32_t count);

/*
 * The NVRAM region: as many bytes as the device was created with, ordinary memory, mapped from
 * IMAGE.nvram. Stores survive the end of this process at any instruction, in the order in which
 * they were made. They survive a power loss of the host once a nand_nvram_sync that covers them has
 * returned. Until then the host may have stored any of the region's pages of memory, or none.
 * `bytes` may be NULL.
 *
 * nand_nvram_sync: 0, -ERANGE, or -EIO, after which nothing is stable until the image is opened
 * again. Callers at the same time share syncs of the host. A device in memory has nothing to sync,
 * and answers 0. nand_nvram_sync_ranges: the same of 1 to NAND_NVRAM_RANGES ranges, in one wait.
 */
#define NAND_NVRAM_FILE_AT 4096 /* where the region begins in IMAGE.nvram */
#define NAND_NVRAM_RANGES  16

/* In bytes of the region. */
struct nand_nvram_range {
	uint64_t from, to;
};

void *nand_nvram(struct nand *nand, uint64_t *bytes);
int nand_nvram_sync(struct nand *nand, uint64_t offset, uint64_t length);
int nand_nvram_sync_ranges(struct nand *nand, const struct nand_nvram_range *ranges,
			   uint32_t count);

/* A consistent-enough copy: each counter is exact, taken without stopping I/O. */
void nand_read_counters(struct nand *nand, struct nand_counters *counters);

#endif
