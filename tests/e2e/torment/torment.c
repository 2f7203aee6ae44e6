/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * A preloaded library for tests: below the process it plays a host whose drive fails, whose clock
 * jumps and which has been started again. What it does stands in a file that tests map too, named
 * by MUNINN_TORMENT: numbers of 64 bits, least significant byte first (torture_host.py has the
 * same list). Calls on other files than images and NVRAM are left alone.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define PER_MILLION 1000000
#define SECTOR      512
#define BOOT_ID     "/proc/sys/kernel/random/boot_id"

struct torment {
	_Atomic uint64_t for_initiators[4]; /* not looked at here */
	_Atomic uint64_t clock_offset_ns;   /* added to the time of day; may be negative */
	_Atomic uint64_t dice;              /* state of the random numbers */
	/* How many of a million calls: */
	_Atomic uint64_t read_errors, write_errors, sync_errors, full_errors, short_transfers;
	/* How many there were: */
	_Atomic uint64_t failed_reads, failed_writes, failed_syncs, failed_full, shortened;
};

static struct torment *torment;
static char boot_id[512]; /* a file in place of the host's */
static int broken, full;  /* descriptors: any transfer fails; has no space */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void attach(void)
{
	const char *path = getenv("MUNINN_TORMENT");
	int file;
	void *at;

	/* Reading it at address 0 fails with EIO. */
	broken = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	full = open("/dev/full", O_RDWR | O_CLOEXEC);
	if (!path)
		return;
	file = open(path, O_RDWR | O_CLOEXEC);
	if (file < 0)
		return;
	at = mmap(NULL, sizeof(*torment), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	close(file);
	if (at == MAP_FAILED)
		return;
	snprintf(boot_id, sizeof(boot_id), "%s.boot", path);
	torment = at;
}

static bool is_there(void)
{
	pthread_once(&once, attach);
	return torment != NULL;
}

/* The function behind this library's. */
static void *next(const char *name)
{
	void *found = dlsym(RTLD_NEXT, name);

	if (!found) {
		fprintf(stderr, "torment: there is no %s\n", name);
		abort();
	}
	return found;
}

/* Of a million. xorshift64*, each state taken by one thread. */
static bool dice_say(_Atomic uint64_t *rate)
{
	uint64_t before, after;

	if (!is_there() || *rate == 0)
		return false;
	do {
		before = torment->dice;
		after = before ? before : 1;
		after ^= after >> 12;
		after ^= after << 25;
		after ^= after >> 27;
	} while (!atomic_compare_exchange_weak(&torment->dice, &before, after));
	return (after * UINT64_C(2685821657736338717) >> 32) % PER_MILLION < *rate;
}

static bool ends_with(const char *text, size_t length, const char *end)
{
	size_t bytes = strlen(end);

	return length >= bytes && !memcmp(text + length - bytes, end, bytes);
}

static bool is_image(int fd)
{
	char link[64], path[4096];
	ssize_t length;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, path, sizeof(path));
	return length > 0 && (ends_with(path, (size_t)length, ".img") ||
			      ends_with(path, (size_t)length, ".nvram"));
}

/* True: the call fails, with errno set. */
static bool fails(int fd, _Atomic uint64_t *rate, _Atomic uint64_t *count, int error)
{
	if (!dice_say(rate) || !is_image(fd))
		return false;
	(*count)++;
	errno = error;
	return true;
}

static bool reading_fails(int fd)
{
	return is_there() && fails(fd, &torment->read_errors, &torment->failed_reads, EIO);
}

static bool writing_fails(int fd)
{
	return is_there() && (fails(fd, &torment->write_errors, &torment->failed_writes, EIO) ||
			      fails(fd, &torment->full_errors, &torment->failed_full, ENOSPC));
}

static bool syncing_fails(int fd)
{
	return is_there() && fails(fd, &torment->sync_errors, &torment->failed_syncs, EIO);
}

static size_t shortened(int fd, size_t bytes)
{
	if (bytes < 2 * SECTOR || !dice_say(&torment->short_transfers) || !is_image(fd))
		return bytes;
	torment->shortened++;
	return bytes / 2 / SECTOR * SECTOR;
}

/* ---- transfers ---- */

#define TRANSFER(name, buffer, check)                                \
	ssize_t name(int fd, buffer at, size_t bytes, off_t offset); \
	ssize_t name(int fd, buffer at, size_t bytes, off_t offset)  \
	{                                                            \
		static ssize_t (*real)(int, buffer, size_t, off_t);  \
                                                                     \
		if (!real)                                           \
			*(void **)&real = next(#name);               \
		if (is_there()) {                                    \
			if (check(fd))                               \
				return -1;                           \
			bytes = shortened(fd, bytes);                \
		}                                                    \
		return real(fd, at, bytes, offset);                  \
	}

TRANSFER(pread, void *, reading_fails)
TRANSFER(pread64, void *, reading_fails)
TRANSFER(pwrite, const void *, writing_fails)
TRANSFER(pwrite64, const void *, writing_fails)

/* A short one ends with its first part. */
static ssize_t write_parts(const char *name, int fd, const struct iovec *parts, int count,
			   off_t offset)
{
	static ssize_t (*real)(int, const struct iovec *, int, off_t);

	if (!real)
		*(void **)&real = next(name);
	if (is_there() && writing_fails(fd))
		return -1;
	if (count > 1 && is_there() && dice_say(&torment->short_transfers) && is_image(fd)) {
		torment->shortened++;
		count = 1;
	}
	return real(fd, parts, count, offset);
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset)
{
	return write_parts("pwritev", fd, parts, count, offset);
}

ssize_t pwritev64(int fd, const struct iovec *parts, int count, off_t offset)
{
	return write_parts("pwritev64", fd, parts, count, offset);
}

/* What waits to be handed to the kernel goes to a descriptor that fails, or becomes shorter. */
static void torment_entry(struct io_uring_sqe *entry)
{
	bool writes = entry->opcode == IORING_OP_WRITE || entry->opcode == IORING_OP_WRITE_FIXED;
	bool reads = entry->opcode == IORING_OP_READ || entry->opcode == IORING_OP_READ_FIXED;
	bool has_no_space = writes && dice_say(&torment->full_errors);

	if (!writes && !reads)
		return;
	if (has_no_space || dice_say(writes ? &torment->write_errors : &torment->read_errors)) {
		entry->fd = has_no_space ? full : broken;
		entry->flags &= (uint8_t)~IOSQE_FIXED_FILE;
		entry->opcode = writes ? IORING_OP_WRITE : IORING_OP_READ;
		entry->buf_index = 0;
		entry->off = 0;
		(*(has_no_space ? &torment->failed_full
		   : writes     ? &torment->failed_writes
				: &torment->failed_reads))++;
	} else if (entry->len >= 2 * SECTOR && dice_say(&torment->short_transfers)) {
		entry->len = entry->len / 2 / SECTOR * SECTOR;
		torment->shortened++;
	}
}

static void torment_ring(struct io_uring *ring)
{
	struct io_uring_sq *queue = &ring->sq;

	for (unsigned i = queue->sqe_head; i != queue->sqe_tail; i++)
		torment_entry(&queue->sqes[i & *queue->kring_mask]);
}

int io_uring_submit(struct io_uring *ring)
{
	static int (*real)(struct io_uring *);

	if (!real)
		*(void **)&real = next("io_uring_submit");
	if (is_there())
		torment_ring(ring);
	return real(ring);
}

int io_uring_submit_and_wait(struct io_uring *ring, unsigned wait)
{
	static int (*real)(struct io_uring *, unsigned);

	if (!real)
		*(void **)&real = next("io_uring_submit_and_wait");
	if (is_there())
		torment_ring(ring);
	return real(ring, wait);
}

/* ---- syncs ---- */

int fdatasync(int fd)
{
	static int (*real)(int);

	if (!real)
		*(void **)&real = next("fdatasync");
	return syncing_fails(fd) ? -1 : real(fd);
}

/* Which file is mapped is not looked up: only images and NVRAM are synced so. */
int msync(void *at, size_t bytes, int flags)
{
	static int (*real)(void *, size_t, int);

	if (!real)
		*(void **)&real = next("msync");
	if (is_there() && dice_say(&torment->sync_errors)) {
		torment->failed_syncs++;
		errno = EIO;
		return -1;
	}
	return real(at, bytes, flags);
}

/* ---- the clock, and the host's identity ---- */

int clock_gettime(clockid_t clock, struct timespec *time)
{
	static int (*real)(clockid_t, struct timespec *);
	int64_t offset;
	int result;

	if (!real)
		*(void **)&real = next("clock_gettime");
	result = real(clock, time);
	if (result || clock != CLOCK_REALTIME || !is_there())
		return result;
	offset = (int64_t)torment->clock_offset_ns;
	time->tv_sec += offset / 1000000000;
	time->tv_nsec += offset % 1000000000;
	if (time->tv_nsec >= 1000000000) {
		time->tv_nsec -= 1000000000;
		time->tv_sec++;
	} else if (time->tv_nsec < 0) {
		time->tv_nsec += 1000000000;
		time->tv_sec--;
	}
	return 0;
}

FILE *fopen(const char *path, const char *mode)
{
	static FILE *(*real)(const char *, const char *);

	if (!real)
		*(void **)&real = next("fopen");
	return real(!strcmp(path, BOOT_ID) && is_there() ? boot_id : path, mode);
}
