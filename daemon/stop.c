/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The end of a server. Whatever becomes of tgtd, what was acknowledged is stable afterwards: first
 * it is made stable beside the commands that are under way, then these end, then the units are
 * closed. Units that tgtd did not close are opened and closed here.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "daemon/image.h"
#include "daemon/server.h"
#include "daemon/tgt_control.h"

#define RETRY_MS 20
#define TELL_MS  500    /* a stop that takes longer says what it waits for */
#define CLOSE_MS 300000 /* closing a unit makes it stable, which the host may need a while for */

/* Waits before something is asked again. -ESRCH: tgtd has ended. -ETIMEDOUT: it is too late. */
static int wait_to_retry(struct server *server, int64_t deadline_ms)
{
	if (clock_ms() >= deadline_ms)
		return -ETIMEDOUT;
	return tgtd_wait(&server->tgtd, -1, RETRY_MS) == TGTD_ENDED ? -ESRCH : 0;
}

/* A unit that can't is no reason not to go on: closing it tries again. */
static int flush_unit(struct server *server, const struct lun_config *lun, int64_t deadline_ms)
{
	struct error_text error = { "" };
	int result = tgt_lun_flush(&server->tgtd, lun->number, &error);

	while (result == TGT_BUSY) {
		result = wait_to_retry(server, deadline_ms);
		if (!result)
			result = tgt_lun_flush(&server->tgtd, lun->number, &error);
	}
	if (!result || result == -ESRCH)
		return result;
	log_line(LOG_LEVEL_WARNING,
		 "LUN %u: what was acknowledged could not be made stable yet: %s", lun->number,
		 error.text);
	return 0;
}

static int flush_units(struct server *server, int64_t deadline_ms)
{
	const struct config *config = server->config;
	int result = 0;

	for (unsigned int i = 0; !result && i < config->lun_count; i++)
		result = flush_unit(server, &config->luns[i], deadline_ms);
	server_alive();
	return result;
}

/* Says once which units have commands under way. */
static void tell_what_runs(struct server *server)
{
	const struct config *config = server->config;
	struct error_text error;

	for (unsigned int i = 0; i < config->lun_count; i++)
		if (tgt_lun_is_idle(&server->tgtd, config->luns[i].number, &error) == TGT_BUSY)
			log_line(LOG_LEVEL_WARNING,
				 "LUN %u: waiting for commands under way, at most %u s "
				 "(stop_timeout); what was acknowledged is stable",
				 config->luns[i].number, config->stop_timeout);
}

/* Ends all connections of initiators. */
static int close_connections(struct server *server, struct error_text *error)
{
	const struct config *config = server->config;
	int result = 0;

	for (unsigned int i = 0; !result && i < config->target_count; i++)
		if (config->targets[i].id)
			result = tgt_connections_close(&server->tgtd, config->targets[i].id, error);
	return result;
}

/* Those that are still there. */
static int delete_targets(struct server *server, struct error_text *error)
{
	struct config *config = server->config;
	int result = 0;

	for (unsigned int i = 0; !result && i < config->target_count; i++) {
		if (config->targets[i].id)
			result = tgt_target_delete(&server->tgtd, config->targets[i].id, error);
		if (!result)
			config->targets[i].id = 0;
	}
	return result;
}

/* Commands that are under way end first; their initiators are gone. */
static int end_targets(struct server *server, int64_t deadline_ms, struct error_text *error)
{
	int64_t tell_at = clock_ms() + TELL_MS;
	int answer_ms = server->tgtd.answer_ms;
	int result = 0;

	do {
		/* A login that was under way when the portal was closed may have come through. */
		result = close_connections(server, error);
		server->tgtd.answer_ms = CLOSE_MS;
		if (!result)
			result = delete_targets(server, error);
		server->tgtd.answer_ms = answer_ms;
		if (result != TGT_BUSY)
			return result;
		if (clock_ms() >= tell_at) {
			tell_what_runs(server);
			tell_at = INT64_MAX;
		}
		result = wait_to_retry(server, deadline_ms);
		server_alive();
	} while (!result);
	if (result == -ETIMEDOUT)
		error_set(error, result,
			  "commands did not end within %u s (stop_timeout) and were taken back",
			  server->config->stop_timeout);
	return result;
}

static int close_portals(struct server *server, struct error_text *error)
{
	const struct config *config = server->config;
	int result = 0;

	for (unsigned int i = 0; !result && i < config->portal_count; i++) {
		char portal[CONFIG_PORTAL_BYTES];

		config_portal(&config->portals[i], portal);
		result = tgt_portal_close(&server->tgtd, portal, error);
	}
	return result;
}

static int close_targets(struct server *server, struct error_text *error)
{
	int64_t deadline_ms = clock_ms() + (int64_t)server->config->stop_timeout * 1000;
	int result = close_portals(server, error);

	/* Nothing more is acknowledged from here on. */
	if (!result)
		result = close_connections(server, error);
	if (!result)
		result = flush_units(server, deadline_ms);
	if (!result)
		result = end_targets(server, deadline_ms, error);
	if (!result)
		server->units_open = false;
	return result;
}

static int stop_tgtd(struct server *server, struct error_text *error)
{
	int result = server->targets_exist ? close_targets(server, error) : 0;

	if (!result)
		result = tgt_shutdown(&server->tgtd, error);
	if (!result) {
		enum tgtd_event event = tgtd_wait(&server->tgtd, -1, server->tgtd.answer_ms);

		if (event == TGTD_TIMEOUT)
			return error_set(error, -ETIMEDOUT, "tgtd did not end within %d s",
					 server->tgtd.answer_ms / 1000);
		return tgtd_reap(&server->tgtd, error) ? 0 : -ECHILD;
	}
	if (result == -ESRCH)
		tgtd_reap(&server->tgtd, error);
	return result > 0 ? -EBUSY : result;
}

/* What tgtd did not close. */
static void settle_units(struct server *server)
{
	const struct config *config = server->config;

	for (unsigned int i = 0; i < config->lun_count; i++) {
		const struct lun_config *lun = &config->luns[i];
		struct error_text error = { "" };

		if (!config_is_first_of_device(config, lun))
			continue;
		server_alive();
		if (image_make_stable(lun, &error))
			log_line(LOG_LEVEL_ERROR,
				 "LUN %u: what was acknowledged can't be made stable: %s; a power "
				 "loss of the host may take what came since the last FLUSH",
				 lun->number, error.text);
		else
			log_line(LOG_LEVEL_WARNING,
				 "LUN %u: tgtd ended without closing it; what was acknowledged is "
				 "stable now",
				 lun->number);
	}
	server->units_open = false;
}

int server_stop(struct server *server, struct error_text *error)
{
	int result;

	admin_close(server->admin);
	server->admin = NULL;
	http_close(server->http);
	server->http = NULL;
	result = server->tgtd.pid > 0 ? stop_tgtd(server, error) : 0;

	tgtd_kill(&server->tgtd);
	if (server->units_open)
		settle_units(server);
	if (server->tgtd_lock_fd >= 0)
		close(server->tgtd_lock_fd);
	if (server->lock_fd >= 0)
		close(server->lock_fd);
	server->tgtd_lock_fd = -1;
	server->lock_fd = -1;
	return result;
}
