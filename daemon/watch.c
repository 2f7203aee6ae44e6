/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Serves: asks tgtd and each unit now and then whether they are alive, and starts tgtd again when
 * it hangs or has ended. What was acknowledged outlives tgtd, and initiators log in again.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "common/bytes.h"
#include "common/clock.h"
#include "common/log.h"
#include "daemon/server.h"
#include "daemon/tgt_control.h"

#define PROBES_IN_LIMIT 4     /* so often a unit is asked before it counts as hanging */
#define WAIT_FIRST_MS   1000  /* before the first restart; twice that before the second, ... */
#define WAIT_MOST_MS    30000 /* ... and never more than this */
#define RESTARTS_MAX    10
#define STEADY_MS       60000 /* a tgtd that has been up for so long begins anew with that */

/* When each unit was last known to be alive, of clock.h, by its number. 0: it is new. */
struct signs {
	int64_t at_ms[CONFIG_LUN_NUMBER_MAX + 1];
};

static int64_t min_i64(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t limit_ms(const struct server *server)
{
	return (int64_t)server->config->watchdog * 1000;
}

static int probe_unit(struct server *server, unsigned int i, struct signs *signs,
		      struct error_text *error)
{
	unsigned int number = server->config->luns[i].number;
	int64_t *at_ms = &signs->at_ms[number];
	int result = tgt_lun_probe(&server->tgtd, number, error);

	if (result < 0)
		return result;
	/* A refusal is a sign of life, too: an administrator has taken the unit away. */
	if (result != TGT_BUSY || !*at_ms)
		*at_ms = clock_ms();
	if (clock_ms() - *at_ms < limit_ms(server))
		return 0;
	return error_set(error, -ETIMEDOUT,
			 "LUN %u hangs: its commands have done nothing for %u s (watchdog)", number,
			 server->config->watchdog);
}

static int probe_units(struct server *server, struct signs *signs, struct error_text *error)
{
	int result = 0;

	for (unsigned int i = 0; !result && i < server->config->lun_count; i++)
		result = probe_unit(server, i, signs, error);
	if (result == -ESRCH)
		tgtd_reap(&server->tgtd, error);
	return result;
}

/*
 * What has come besides time: a signal, or administrators. SERVER_STOP_WANTED: somebody wants a
 * stop.
 */
static int attend(struct server *server)
{
	struct pollfd signals = { .fd = server->signal_fd, .events = POLLIN };

	if (poll(&signals, 1, 0) > 0)
		return SERVER_STOP_WANTED;
	admin_serve(server->admin);
	return 0;
}

/* Until somebody wants a stop, or something is wrong with tgtd. */
static int watch(struct server *server, struct error_text *error)
{
	struct signs signs = { 0 };
	int64_t probe_ms = 0;
	int result = 0;

	while (!result) {
		int64_t left_ms = probe_ms - clock_ms();

		if (left_ms <= 0) {
			result = probe_units(server, &signs, error);
			if (!result)
				server_alive();
			probe_ms = clock_ms() + limit_ms(server) / PROBES_IN_LIMIT;
			continue;
		}
		left_ms = min_i64(left_ms, admin_wait_ms(server->admin));
		switch (tgtd_wait(&server->tgtd, admin_fd(server->admin), (int)left_ms)) {
		case TGTD_ENDED:
			tgtd_reap(&server->tgtd, error);
			return -ECHILD;
		case TGTD_FD_READY:
		case TGTD_TIMEOUT:
			result = attend(server);
			break;
		}
	}
	return result;
}

/* Whether somebody wants a stop meanwhile. */
static bool wait_before_restart(struct server *server)
{
	int wait_ms = (int)min_u64((uint64_t)WAIT_FIRST_MS << server->restarts, WAIT_MOST_MS);
	int64_t deadline_ms = clock_ms() + wait_ms, left_ms;

	log_line(LOG_LEVEL_WARNING, "tgtd is started again in %d s", wait_ms / 1000);
	while ((left_ms = deadline_ms - clock_ms()) > 0) {
		struct pollfd events = { .fd = admin_fd(server->admin), .events = POLLIN };

		left_ms = min_i64(left_ms, admin_wait_ms(server->admin));
		poll(&events, 1, (int)left_ms);
		if (attend(server))
			return true;
	}
	return false;
}

/* Kills what is left of tgtd, and starts it until it is ready. */
static int restart(struct server *server, struct error_text *error)
{
	int result = -EIO;

	if (clock_ms() - server->up_since_ms >= STEADY_MS)
		server->restarts = 0;
	while (result < 0) {
		log_line(LOG_LEVEL_ERROR, "%s", error->text);
		sd_notifyf(0, "STATUS=tgtd is started again: %s", error->text);
		tgtd_kill(&server->tgtd);
		server->targets_exist = false;
		if (server->restarts == RESTARTS_MAX)
			return error_set(error, -ECHILD, "tgtd does not stay up: %d restarts",
					 RESTARTS_MAX);
		if (wait_before_restart(server))
			return SERVER_STOP_WANTED;
		server->restarts++;
		server->restarts_total++;
		result = server_start_tgtd(server, error);
	}
	if (!result) {
		log_line(LOG_LEVEL_WARNING, "tgtd runs again: initiators can log in");
		server_tell_status(server);
	}
	return result;
}

int server_run(struct server *server, struct error_text *error)
{
	int result = 0;

	while (!result) {
		server->up_since_ms = clock_ms();
		result = watch(server, error);
		if (result < 0)
			result = restart(server, error);
	}
	return result;
}
