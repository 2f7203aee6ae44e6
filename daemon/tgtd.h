/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * One tgtd process: a child in the foreground, whose messages are relayed and which never outlives
 * us.
 *
 * The working directory of this process and of tgtd is the run directory. So the control socket has
 * a short name, however deep that directory lies (socket addresses hold 107 bytes).
 */
#ifndef MUNINN_DAEMON_TGTD_H
#define MUNINN_DAEMON_TGTD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/error.h"
#include "common/log.h"
#include "daemon/module/limits.h"

/* In the run directory; tgtd appends ".0", the number of the control port. */
#define TGTD_SOCKET      "control"
#define TGTD_SOCKET_FILE TGTD_SOCKET ".0"

struct tgtd {
	pid_t pid; /* 0 = not running */
	int pid_fd;
	int log_fd;      /* its stderr */
	int handed_fd;   /* hands it files (daemon/module/handed.h) */
	uint64_t handed; /* files that were handed over, by numbers */
	int answer_ms;   /* how long it may take to answer a request */
	char line[1024]; /* unfinished line of it */
	size_t line_bytes;
	uint8_t target_of[256]; /* target IDs, by the numbers of units that it was given */
	char last_words[1024];  /* its last line that tells of trouble; "" = none */
};

struct tgtd_options {
	const char *program;
	const char *module;    /* preloaded: it need not be installed, and stands before libc */
	const char *allocator; /* preloaded too; "": the C library's */
	const char *portals;   /* as tgtd has them: portal=ADDRESS:PORT,portal=... */
	const struct limits *limits;
	enum log_level log_level;
	int answer_ms; /* as in struct tgtd */
};

/*
 * Starts tgtd; the current directory is the run directory. The caller has no other threads. -errno
 * with a sentence if it can't be started. If it ends at once, only tgtd_wait shows that.
 */
int tgtd_start(const struct tgtd_options *options, struct tgtd *tgtd, struct error_text *error);

enum tgtd_event {
	TGTD_FD_READY, /* `fd` is readable, or its peer is gone */
	TGTD_ENDED,    /* the process has ended; call tgtd_reap */
	TGTD_TIMEOUT,
};

/*
 * Waits for `fd` (-1: none), and relays tgtd's messages to stderr meanwhile. `timeout_ms` -1: for
 * ever. If both happen, `fd` comes first.
 */
enum tgtd_event tgtd_wait(struct tgtd *tgtd, int fd, int timeout_ms);

/*
 * After TGTD_ENDED: says in `how` how it ended, with its last words. True: it ended with exit code
 * 0.
 */
bool tgtd_reap(struct tgtd *tgtd, struct error_text *how);

/* Ends it with SIGKILL if it still runs, and forgets it. */
void tgtd_kill(struct tgtd *tgtd);

#endif
