/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Follows the PDUs that tgtd reads from its connections: `read` and `close` of a preloaded module
 * stand before libc's. tgtd reads sockets with `read` alone, on its main thread, and never beyond
 * the end of a part of a PDU: 48 bytes of header, additional header segments, data. It acts on a
 * PDU when its last part has been read. Digests are not followed: muninnd's target offers none.
 *
 * Other descriptors are followed too, which means nothing and does no harm. A module that is not
 * preloaded follows nothing.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/bytes.h"
#include "daemon/module/requests.h"

#define FOLLOWED_MAX           65536
#define HEADER_BYTES           48
#define OPCODE_MASK            0x3f
#define OPCODE_TASK_MANAGEMENT 0x02

struct stream {
	uint8_t begin[8]; /* of the header: opcode, ..., lengths of the segments */
	uint8_t header;   /* bytes of the header that have come; 0 after it */
	uint32_t rest;    /* bytes of the PDU that follow the header and have not come */
};

static struct stream streams[FOLLOWED_MAX];
static pthread_t main_thread;

/* When the module is loaded, which tgtd's main thread does. */
__attribute__((constructor)) static void note_main_thread(void)
{
	main_thread = pthread_self();
}

/* Whether a PDU has come to its end. */
static bool follow(struct stream *stream, const uint8_t *from, size_t bytes)
{
	if (stream->rest) {
		stream->rest -= (uint32_t)min_u64(bytes, stream->rest);
		return !stream->rest;
	}
	for (size_t i = 0; i < bytes && stream->header + i < sizeof(stream->begin); i++)
		stream->begin[stream->header + i] = from[i];
	stream->header += (uint8_t)min_u64(bytes, HEADER_BYTES - stream->header);
	if (stream->header < HEADER_BYTES)
		return false;
	stream->header = 0;
	stream->rest = (uint32_t)(4 * stream->begin[4] +
				  align_up(get_be32(stream->begin + 4) & 0xffffff, 4));
	return !stream->rest;
}

static void came(int fd, const void *from, size_t bytes)
{
	struct stream *stream = &streams[fd];

	if (follow(stream, from, bytes) &&
	    (stream->begin[0] & OPCODE_MASK) == OPCODE_TASK_MANAGEMENT)
		requests_arrive();
}

/* In libc's places, by the symbols' names. */
ssize_t stream_read(int fd, void *to, size_t bytes) __asm__("read");
int stream_close(int fd) __asm__("close");

ssize_t stream_read(int fd, void *to, size_t bytes)
{
	ssize_t got = syscall(SYS_read, fd, to, bytes);

	if (got > 0 && fd < FOLLOWED_MAX && pthread_equal(pthread_self(), main_thread))
		came(fd, to, (size_t)got);
	return got;
}

int stream_close(int fd)
{
	/* The number may be the next connection's. */
	if (fd >= 0 && fd < FOLLOWED_MAX)
		memset(&streams[fd], 0, sizeof(streams[fd]));
	return (int)syscall(SYS_close, fd);
}
