/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Space of an image's blocks on the host's file system.
 *
 * Before its first program a block gets its space by fallocate(2), which fails where there is none.
 * That is done once in every process, as a copy of the image may have lost it. Pages are then
 * written by calls: fallocate is not enough for stores into a mapping (mmap.c), except on tmpfs.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/log.h"
#include "nand/space.h"

/*
 * Images on a drive that keep the space of erased blocks get it for so many bytes at a time: few
 * calls, since each waits for what is under way. Memory would have to be filled with zeroes.
 */
#define SPACE_AHEAD_BYTES (UINT64_C(64) << 20)

bool nand_space_is_memory(int fd)
{
	struct statfs system;

	return fstatfs(fd, &system) == 0 && system.f_type == TMPFS_MAGIC;
}

int nand_write_all(int fd, const void *from, uint64_t bytes, uint64_t offset)
{
	const uint8_t *next = from;

	while (bytes > 0) {
		ssize_t written = pwrite(fd, next, bytes, (off_t)offset);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return written < 0 ? -errno : -EIO;
		next += written;
		offset += (uint64_t)written;
		bytes -= (uint64_t)written;
	}
	return 0;
}

int nand_write_zeroes(int fd, uint64_t offset, uint64_t bytes)
{
	static const uint8_t zeroes[NAND_STORED_PIECE];
	int result = 0;

	for (uint64_t done = 0; done < bytes && result == 0; done += sizeof(zeroes))
		result = nand_write_all(fd, zeroes, min_u64(bytes - done, sizeof(zeroes)),
					offset + done);
	return result;
}

int nand_read_all(int fd, void *to, uint64_t bytes, uint64_t offset)
{
	uint8_t *next = to;

	while (bytes > 0) {
		ssize_t got = pread(fd, next, bytes, (off_t)offset);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 ? -errno : -EIO;
		next += got;
		offset += (uint64_t)got;
		bytes -= (uint64_t)got;
	}
	return 0;
}

int nand_space_fill_holes(int fd, uint64_t from, uint64_t bytes)
{
	uint64_t at = from, end = from + bytes;

	while (at < end) {
		off_t hole = lseek(fd, (off_t)at, SEEK_HOLE), data;
		int result;

		/* A file system that can't tell has none. */
		if (hole < 0 || (uint64_t)hole >= end)
			return 0;
		data = lseek(fd, hole, SEEK_DATA);
		at = data < 0 ? end : min_u64((uint64_t)data, end);
		result = nand_write_zeroes(fd, (uint64_t)hole, at - (uint64_t)hole);
		if (result < 0)
			return result;
	}
	return 0;
}

/*
 * Images are sparse, so a small file system is no error, but better known now than when it is full.
 */
void nand_space_warn(int fd, const char *path, uint64_t needed)
{
	struct statvfs status;
	uint64_t available;

	if (fstatvfs(fd, &status) < 0)
		return;
	available = (uint64_t)status.f_bavail * status.f_frsize;
	if (available < needed)
		log_line(LOG_LEVEL_WARNING,
			 "%s: when full it takes %llu MiB, its file system has %llu MiB left; when "
			 "that is used up, writes will fail",
			 path, (unsigned long long)(needed >> 20),
			 (unsigned long long)(available >> 20));
}

static int reserve(int fd, uint64_t offset, uint64_t bytes)
{
	int result;

	do
		result = fallocate(fd, 0, (off_t)offset, (off_t)bytes) < 0 ? -errno : 0;
	while (result == -EINTR);
	/* Then writing it will tell. */
	return result == -EOPNOTSUPP ? 0 : result;
}

static int reserve_blocks(const struct nand *nand, uint32_t block, uint32_t count)
{
	return reserve(nand->image_fd, nand_block_offset(&nand->layout, block),
		       (uint64_t)count * nand->layout.block_stride);
}

static bool has_bit(const _Atomic uint64_t *bits, uint32_t block)
{
	return atomic_load_explicit(&bits[block / 64], memory_order_relaxed) &
	       UINT64_C(1) << block % 64;
}

static void set_bits(_Atomic uint64_t *bits, uint32_t block, uint32_t count)
{
	for (uint32_t i = block; i < block + count; i++)
		atomic_fetch_or_explicit(&bits[i / 64], UINT64_C(1) << i % 64,
					 memory_order_relaxed);
}

static void clear_bits(_Atomic uint64_t *bits, uint32_t block, uint32_t count)
{
	for (uint32_t i = block; i < block + count; i++)
		atomic_fetch_and_explicit(&bits[i / 64], ~(UINT64_C(1) << i % 64),
					  memory_order_relaxed);
}

/* A full host is told apart from a broken one, and logged once until it has space again. */
int nand_space_failed(struct nand *nand, uint32_t block, int result)
{
	bool is_full = result == -ENOSPC || result == -EDQUOT;

	if (!is_full)
		log_line(LOG_LEVEL_ERROR, "%s: the host could not write to block %u: %s",
			 nand->path, block, strerror(-result));
	else if (!atomic_exchange(&nand->prepare_failed, true))
		log_line(LOG_LEVEL_ERROR,
			 "%s: no space for block %u on the host's file system (%s): commands that "
			 "store are refused until there is",
			 nand->path, block, strerror(-result));
	return is_full ? -ENOSPC : -EIO;
}

/* ---- a reserve ---- */

/*
 * What a full file system would refuse is taken from a ballast: space behind the image's end. It is
 * given up chunk by chunk, each of which serves one block. So commands that free something work on
 * a full host; nand_host_is_full keeps others from using it up.
 */
#define BALLAST_PART      32 /* of the image's blocks, one part in so many ... */
#define BALLAST_BYTES_MAX (UINT64_C(64) << 20)
#define BALLAST_RETRY_MS  1000

/* With a little more than a block needs, for what the file system notes about it. */
static uint64_t chunk_bytes(const struct nand *nand)
{
	return align_up(nand->layout.block_stride, 65536) + 65536;
}

static off_t chunk_offset(const struct nand *nand, uint32_t chunk)
{
	return (off_t)(align_up(nand->layout.image_bytes, 65536) + chunk * chunk_bytes(nand));
}

/* Under the lock. */
static void fill_ballast(struct nand *nand)
{
	uint32_t chunk = nand->ballast;

	while (chunk < nand->ballast_wanted &&
	       fallocate(nand->image_fd, 0, chunk_offset(nand, chunk), (off_t)chunk_bytes(nand)) ==
		       0)
		chunk++;
	nand->ballast = chunk;
}

static void open_ballast(struct nand *nand)
{
	uint64_t all = (uint64_t)nand->geometry.blocks * nand->layout.block_stride;
	uint64_t bytes = min_u64(all / BALLAST_PART, BALLAST_BYTES_MAX);

	nand->ballast_wanted = nand->read_only ? 0 : (uint32_t)(bytes / chunk_bytes(nand));
	if (nand->ballast_wanted == 0)
		return;
	fill_ballast(nand);
	/* Not possible on this file system: then there is none. */
	if (nand->ballast == 0 && errno != ENOSPC && errno != EDQUOT)
		nand->ballast_wanted = 0;
}

/* Gives a chunk up for a block, which the host has no space for. False: there is none left. */
static bool drop_ballast(struct nand *nand, uint32_t block)
{
	bool dropped;

	pthread_mutex_lock(&nand->ballast_lock);
	dropped = nand->ballast > 0;
	if (dropped) {
		nand_space_failed(nand, block, -ENOSPC);
		nand->ballast--;
		(void)fallocate(nand->image_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				chunk_offset(nand, nand->ballast), (off_t)chunk_bytes(nand));
	}
	pthread_mutex_unlock(&nand->ballast_lock);
	return dropped;
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

bool nand_host_is_full(struct nand *nand)
{
	if (nand->ballast == nand->ballast_wanted)
		return false;
	pthread_mutex_lock(&nand->ballast_lock);
	if (now_ms() - nand->ballast_tried_ms >= BALLAST_RETRY_MS) {
		fill_ballast(nand);
		nand->ballast_tried_ms = now_ms();
	}
	pthread_mutex_unlock(&nand->ballast_lock);
	return nand->ballast < nand->ballast_wanted;
}

/* ---- taking and giving ---- */

/* What fallocate could not get as a whole it does not give back. */
static bool has_plenty(const struct nand *nand, uint64_t bytes)
{
	struct statvfs status;

	return fstatvfs(nand->image_fd, &status) == 0 &&
	       (uint64_t)status.f_bavail * status.f_frsize >= 2 * bytes;
}

/*
 * Where space is kept, many blocks at once, so that they lie together. What was given back is not
 * taken again for the sake of its neighbours.
 */
static void reserve_ahead(struct nand *nand, uint32_t block)
{
	uint64_t ahead = nand->space_ahead / nand->layout.block_stride;
	uint32_t most = (uint32_t)min_u64(ahead, nand->geometry.blocks - block), count = 1;

	most = nand_blocks_together(&nand->layout, block, most);
	if (most <= 1)
		return;
	/* So what is found to be there is not given back before it is noted. */
	pthread_mutex_lock(&nand->space_lock);
	while (count < most && !has_bit(nand->given_back, block + count))
		count++;
	if (count > 1 && has_plenty(nand, (uint64_t)count * nand->layout.block_stride) &&
	    reserve_blocks(nand, block, count) == 0)
		set_bits(nand->prepared, block, count);
	pthread_mutex_unlock(&nand->space_lock);
}

int nand_space_take(struct nand *nand, uint32_t block)
{
	int result;

	if (!nand->prepared || has_bit(nand->prepared, block))
		return 0;
	clear_bits(nand->given_back, block, 1);
	reserve_ahead(nand, block);
	do
		result = has_bit(nand->prepared, block) ? 0 : reserve_blocks(nand, block, 1);
	while (result == -ENOSPC && drop_ballast(nand, block));
	if (result < 0)
		return nand_space_failed(nand, block, result);
	set_bits(nand->fresh, block, 1);
	set_bits(nand->prepared, block, 1);
	if (nand->ballast == nand->ballast_wanted)
		atomic_store_explicit(&nand->prepare_failed, false, memory_order_relaxed);
	return 0;
}

bool nand_space_is_fresh(const struct nand *nand, uint32_t block)
{
	return nand->fresh && has_bit(nand->fresh, block);
}

void nand_space_give(struct nand *nand, uint32_t block)
{
	if (nand->fresh)
		clear_bits(nand->fresh, block, 1);
	if (!nand->keep_space)
		nand_give_back(nand, block, 1);
}

void nand_give_back(struct nand *nand, uint32_t first, uint32_t count)
{
	if (!nand->prepared || nand->read_only)
		return;
	pthread_mutex_lock(&nand->space_lock);
	clear_bits(nand->prepared, first, count);
	set_bits(nand->given_back, first, count);
	while (count > 0) {
		uint32_t together = nand_blocks_together(&nand->layout, first, count);

		(void)fallocate(nand->image_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				(off_t)nand_block_offset(&nand->layout, first),
				(off_t)together * (off_t)nand->layout.block_stride);
		first += together;
		count -= together;
	}
	pthread_mutex_unlock(&nand->space_lock);
}

bool nand_may_give_back(const struct nand *nand, uint32_t block)
{
	return nand->prepared && !nand->read_only && !has_bit(nand->given_back, block);
}

void nand_expect_programs(struct nand *nand, uint32_t first, uint32_t count)
{
	if (nand->prepared)
		clear_bits(nand->given_back, first, count);
}

int nand_space_open(struct nand *nand, struct error_text *error)
{
	uint64_t words = divide_up(nand->geometry.blocks, 64);

	nand->prepared = calloc(words, sizeof(*nand->prepared));
	nand->given_back = calloc(words, sizeof(*nand->given_back));
	nand->fresh = calloc(words, sizeof(*nand->fresh));
	if (!nand->prepared || !nand->given_back || !nand->fresh)
		return error_set(error, -ENOMEM, "cannot open %s: %s", nand->path,
				 strerror(ENOMEM));
	if (nand->keep_space && !nand_space_is_memory(nand->image_fd))
		nand->space_ahead = SPACE_AHEAD_BYTES;
	open_ballast(nand);
	return 0;
}

void nand_space_close(struct nand *nand)
{
	free((void *)nand->prepared);
	free((void *)nand->given_back);
	free((void *)nand->fresh);
	nand->prepared = nand->given_back = nand->fresh = NULL;
}

int nand_space_cut(struct nand *nand)
{
	pthread_mutex_lock(&nand->ballast_lock);
	nand->ballast = nand->ballast_wanted = 0;
	pthread_mutex_unlock(&nand->ballast_lock);
	return ftruncate(nand->image_fd, (off_t)nand->layout.image_bytes) < 0 ? -errno : 0;
}

int nand_image_sync(struct nand *nand)
{
	if (nand->image_fd < 0 || fdatasync(nand->image_fd) == 0)
		return 0;
	log_line(LOG_LEVEL_ERROR, "%s: the host could not store the image: %s", nand->path,
		 strerror(errno));
	return -EIO;
}
