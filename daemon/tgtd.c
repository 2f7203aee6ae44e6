/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Starts one tgtd as a child, relays its messages, and ends it. */
#include "daemon/tgtd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "daemon/module/handed.h"
#include "daemon/troubles.h"

#define MODULE_LINK    "bs_muninn.so"
#define ALLOCATOR_LINK "allocator.so"

/* ---- messages ---- */

/*
 * Lines that tell nothing to whoever runs muninnd: tgtd's choice of timers, missing RDMA,
 * privileges that it would like (in containers), our own requests, what it drops when we end a
 * session.
 */
static bool is_noise(const char *line)
{
	static const char *const noise[] = {
		"iser_ib_init(",       "work_timer_start(", "bs_init(",
		"can't adjust ",       "device_mgmt(",      "conn_close_admin(",
		"Forcing release of ", "_event_modify(",
	};

	for (size_t i = 0; i < sizeof(noise) / sizeof(noise[0]); i++)
		if (strstr(line, noise[i]))
			return true;
	return false;
}

/* Takes the module's level out of its line. tgtd's own lines have none. */
static enum log_level take_level(char *line)
{
	static const char marked[] = "tgtd: muninn: <";
	size_t at = sizeof(marked) - 1;
	enum log_level level = LOG_LEVEL_INFO;

	if (strncmp(line, marked, at) == 0 && line[at] >= '0' && line[at] <= '3' &&
	    line[at + 1] == '>') {
		level = (enum log_level)(line[at] - '0');
		memmove(line + at - 1, line + at + 2, strlen(line + at + 2) + 1);
	}
	return level;
}

static void say(struct tgtd *tgtd, char *line)
{
	enum log_level level = take_level(line);

	if (!line[0] || is_noise(line))
		return;
	fprintf(stderr, "%s%s\n", log_priority(level), line);
	trouble_note(level, line);
	snprintf(tgtd->last_words, sizeof(tgtd->last_words), "%s", line);
}

/* tgtd forgets the newline of some lines, and the next one follows at once. */
static void relay_line(struct tgtd *tgtd)
{
	char *begin = tgtd->line, *next;

	tgtd->line[tgtd->line_bytes] = '\0';
	tgtd->line_bytes = 0;
	while (begin[0] && (next = strstr(begin + 1, "tgtd: ")) != NULL) {
		next[0] = '\0';
		say(tgtd, begin);
		next[0] = 't';
		begin = next;
	}
	say(tgtd, begin);
}

/* Relays what is there. False at the end of the stream. */
static bool relay(struct tgtd *tgtd)
{
	char block[4096];
	ssize_t got = read(tgtd->log_fd, block, sizeof(block));

	if (got < 0)
		return errno == EAGAIN || errno == EINTR;
	for (ssize_t i = 0; i < got; i++) {
		if (block[i] == '\n')
			relay_line(tgtd);
		else if (tgtd->line_bytes < sizeof(tgtd->line) - 1)
			tgtd->line[tgtd->line_bytes++] = block[i];
	}
	return got > 0;
}

static void relay_rest(struct tgtd *tgtd)
{
	while (relay(tgtd)) {
		struct pollfd more = { .fd = tgtd->log_fd, .events = POLLIN };

		if (poll(&more, 1, 0) <= 0)
			break;
	}
	if (tgtd->line_bytes)
		relay_line(tgtd);
}

/* ---- start ---- */

/*
 * The names in LD_PRELOAD must have no blank and no colon, whatever the libraries' folders are
 * called. `library` "": there is none.
 */
static int link_library(const char *library, const char *name, struct error_text *error)
{
	if (unlink(name) && errno != ENOENT)
		return error_set(error, -errno, "%s in the run directory: %s", name,
				 strerror(errno));
	if (library[0] && symlink(library, name))
		return error_set(error, -errno, "%s in the run directory: %s", name,
				 strerror(errno));
	return 0;
}

static void set_environment(const struct tgtd_options *options)
{
	static const char *const levels[] = { "error", "warning", "info", "debug" };
	const char *before = getenv("LD_PRELOAD");
	char preload[4096], limits[LIMITS_TEXT_BYTES];

	limits_write(options->limits, limits);
	setenv(LIMITS_VARIABLE, limits, 1);
	setenv("TGT_IPC_SOCKET", TGTD_SOCKET, 1);
	setenv("MUNINN_LOG_LEVEL", levels[options->log_level], 1);
	/* tgtd would announce itself to systemd before it has a target. */
	unsetenv("NOTIFY_SOCKET");
	snprintf(preload, sizeof(preload), "%s%s./" MODULE_LINK "%s", before ? before : "",
		 before ? ":" : "", options->allocator[0] ? ":./" ALLOCATOR_LINK : "");
	setenv("LD_PRELOAD", preload, 1);
}

/* In the child. Returns only by failing. */
static void become_tgtd(const struct tgtd_options *options, pid_t parent, int log_fd, int handed_fd)
{
	char number[16];
	sigset_t none;

	/*
	 * Dies with muninnd, even if somebody kills that. If it died before this call, only looking
	 * tells.
	 */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	/*
	 * Out of the terminal's foreground group: Ctrl-C is for muninnd, which stops tgtd in good
	 * order.
	 */
	setpgid(0, 0);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	dup2(log_fd, STDERR_FILENO);
	set_environment(options);
	snprintf(number, sizeof(number), "%d", handed_fd);
	setenv(HANDED_VARIABLE, number, 1);
	fcntl(handed_fd, F_SETFD, 0);
	execl(options->program, "tgtd", "-f", "-C", "0", "--iscsi", options->portals, (char *)NULL);
	fprintf(stderr, "%s: %s\n", options->program, strerror(errno));
	_exit(127);
}

int tgtd_start(const struct tgtd_options *options, struct tgtd *tgtd, struct error_text *error)
{
	pid_t parent = getpid();
	int log_pipe[2], handed[2], result;

	memset(tgtd, 0, sizeof(*tgtd));
	tgtd->pid_fd = -1;
	tgtd->log_fd = -1;
	tgtd->handed_fd = -1;
	tgtd->answer_ms = options->answer_ms;
	if (access(options->program, X_OK))
		return error_set(error, -errno, "%s: %s; install the package tgt", options->program,
				 strerror(errno));
	result = link_library(options->module, MODULE_LINK, error);
	if (!result)
		result = link_library(options->allocator, ALLOCATOR_LINK, error);
	if (result)
		return result;
	if (pipe2(log_pipe, O_CLOEXEC))
		return error_set(error, -errno, "no pipe for tgtd: %s", strerror(errno));
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, handed)) {
		result = -errno;
		close(log_pipe[0]);
		close(log_pipe[1]);
		return error_set(error, result, "no sockets for tgtd: %s", strerror(-result));
	}
	fflush(NULL);
	tgtd->pid = fork();
	if (tgtd->pid == 0)
		become_tgtd(options, parent, log_pipe[1], handed[1]);
	result = -errno;
	close(log_pipe[1]);
	close(handed[1]);
	if (tgtd->pid < 0) {
		close(log_pipe[0]);
		close(handed[0]);
		tgtd->pid = 0;
		return error_set(error, result, "no process for tgtd: %s", strerror(-result));
	}
	tgtd->log_fd = log_pipe[0];
	tgtd->handed_fd = handed[0];
	fcntl(tgtd->log_fd, F_SETFL, O_NONBLOCK);
	tgtd->pid_fd = (int)syscall(SYS_pidfd_open, tgtd->pid, 0);
	if (tgtd->pid_fd < 0) {
		result = error_set(error, -errno, "cannot watch tgtd: %s", strerror(errno));
		tgtd_kill(tgtd);
		return result;
	}
	return 0;
}

/* ---- life ---- */

enum tgtd_event tgtd_wait(struct tgtd *tgtd, int fd, int timeout_ms)
{
	int64_t deadline_ms = clock_ms() + timeout_ms;
	struct pollfd watched[3] = {
		{ .fd = fd, .events = POLLIN },
		{ .fd = tgtd->pid_fd, .events = POLLIN },
		{ .fd = tgtd->log_fd, .events = POLLIN },
	};

	while (true) {
		int64_t left_ms = timeout_ms < 0 ? -1 : deadline_ms - clock_ms();
		int ready;

		/* However much it has to say: the time runs. */
		if (timeout_ms > 0 && left_ms <= 0)
			return TGTD_TIMEOUT;
		ready = poll(watched, 3, (int)left_ms);
		if (ready == 0)
			return TGTD_TIMEOUT;
		if (ready < 0)
			continue;
		if (watched[2].revents && !relay(tgtd))
			watched[2].fd = -1;
		if (watched[0].revents)
			return TGTD_FD_READY;
		if (watched[1].revents) {
			relay_rest(tgtd);
			return TGTD_ENDED;
		}
	}
}

static void forget(struct tgtd *tgtd)
{
	if (tgtd->pid_fd >= 0)
		close(tgtd->pid_fd);
	if (tgtd->log_fd >= 0)
		close(tgtd->log_fd);
	if (tgtd->handed_fd >= 0)
		close(tgtd->handed_fd);
	tgtd->pid_fd = -1;
	tgtd->log_fd = -1;
	tgtd->handed_fd = -1;
	tgtd->pid = 0;
	unlink(MODULE_LINK);
	unlink(ALLOCATOR_LINK);
	unlink(TGTD_SOCKET_FILE);
	unlink(TGTD_SOCKET_FILE ".lock");
}

bool tgtd_reap(struct tgtd *tgtd, struct error_text *how)
{
	int status = 0;
	bool clean;

	waitpid(tgtd->pid, &status, 0);
	clean = WIFEXITED(status) && WEXITSTATUS(status) == 0;
	if (WIFSIGNALED(status))
		error_set(how, 0, "tgtd (process %d) died of signal %d (%s)%s%s", (int)tgtd->pid,
			  WTERMSIG(status), strsignal(WTERMSIG(status)),
			  tgtd->last_words[0] ? "; its last message: " : "", tgtd->last_words);
	else
		error_set(how, 0, "tgtd (process %d) ended with exit code %d%s%s", (int)tgtd->pid,
			  WEXITSTATUS(status), tgtd->last_words[0] ? "; its last message: " : "",
			  tgtd->last_words);
	forget(tgtd);
	return clean;
}

void tgtd_kill(struct tgtd *tgtd)
{
	if (tgtd->pid <= 0)
		return;
	kill(tgtd->pid, SIGKILL);
	waitpid(tgtd->pid, NULL, 0);
	forget(tgtd);
}
