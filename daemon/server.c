/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Starts a configured tgtd by tables of steps. */
#include "daemon/server.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "daemon/access.h"
#include "daemon/allocator.h"
#include "daemon/check.h"
#include "daemon/folder.h"
#include "daemon/image.h"
#include "daemon/known.h"
#include "daemon/tgt_control.h"

#define LOCK_FILE      "muninnd.lock"
#define TGTD_LOCK_FILE "tgtd.lock"
#define READY_MS       30000
#define PREDECESSOR_MS 30000  /* how long the tgtd of an earlier muninnd may take to end */
#define OPEN_MS        300000 /* opening a unit, or making its device stable before */
#define RETRY_MS       20

/* ---- steps of the start ---- */

static int make_folders(struct server *server, struct error_text *error)
{
	unsigned int made;
	int result = folder_make(server->config->state_dir, &made, error);

	if (!result)
		result = folder_make(server->config->run_dir, &made, error);
	if (!result && chdir(server->config->run_dir))
		result = error_set(error, -errno, "%s: %s", server->config->run_dir,
				   strerror(errno));
	return result;
}

/* Opens and locks a file of the run directory. -EWOULDBLOCK: somebody else has it locked. */
static int lock_file(const char *name, int flags, int *fd)
{
	*fd = open(name, O_RDWR | O_CREAT | flags, 0600);
	if (*fd < 0)
		return -errno;
	return flock(*fd, LOCK_EX | LOCK_NB) ? -errno : 0;
}

/*
 * Notes in the lock file who holds it. The file keeps its block on the host's file system, which
 * may be full; if it never had one, the message to the next muninnd lacks a number, and that is
 * all.
 */
static int note_holder(int fd)
{
	char text[32];
	int length = snprintf(text, sizeof(text), "%d\n", (int)getpid());

	if (pwrite(fd, text, (size_t)length, 0) != length)
		return errno == ENOSPC ? 0 : -errno;
	return ftruncate(fd, length) ? -errno : 0;
}

/*
 * Two locks. One is muninnd's. tgtd inherits the other one and holds it to its last moment: after a
 * kill of muninnd its tgtd ends at once, but a successor may look before that. The successor waits
 * for this lock.
 */
static int lock_run_dir(struct server *server, struct error_text *error)
{
	const char *run_dir = server->config->run_dir;
	int result = lock_file(LOCK_FILE, O_CLOEXEC, &server->lock_fd);
	char holder[32] = "";

	if (result == -EWOULDBLOCK) {
		if (pread(server->lock_fd, holder, sizeof(holder) - 1, 0) > 0)
			holder[strcspn(holder, "\n")] = '\0';
		return error_set(error, -EBUSY,
				 "another muninnd (process %s) runs with the run directory %s: "
				 "stop it, or give "
				 "this one another (run_dir in [daemon], --state-dir)",
				 holder, run_dir);
	}
	if (!result)
		result = note_holder(server->lock_fd);
	if (!result)
		result = lock_file(TGTD_LOCK_FILE, 0, &server->tgtd_lock_fd);
	for (int waited_ms = 0; result == -EWOULDBLOCK && waited_ms < PREDECESSOR_MS;
	     waited_ms += RETRY_MS) {
		poll(NULL, 0, RETRY_MS);
		result = flock(server->tgtd_lock_fd, LOCK_EX | LOCK_NB) ? -errno : 0;
	}
	if (result == -EWOULDBLOCK)
		return error_set(
			error, -EBUSY,
			"a tgtd of an earlier muninnd still runs with the run directory %s",
			run_dir);
	return result ? error_set(error, result, "locks in %s: %s", run_dir, strerror(-result)) : 0;
}

static int open_http(struct server *server, struct error_text *error)
{
	return http_open(server, &server->http, error);
}

static int open_admin(struct server *server, struct error_text *error)
{
	return admin_open(server, &server->admin, error);
}

int server_prepare_image(const struct server *server, const struct lun_config *lun,
			 struct error_text *error)
{
	const char *state_dir = server->config->state_dir;
	struct error_text reason = { "" };
	bool created;
	int result = image_prepare(lun, &created, &reason);

	if (result)
		return error_set(error, result, "LUN %u: %s", lun->number, reason.text);
	if (created && known_has(state_dir, lun->image))
		log_line(LOG_LEVEL_WARNING,
			 "LUN %u: %s was there before and is missing: it is a new, empty device of "
			 "%lu MiB now. Is a mount missing, or the file moved? To have the old one, "
			 "stop the service, move the new one and its .nvram away, put the old "
			 "files there, and start again",
			 lun->number, lun->image, (unsigned long)(lun->size_bytes >> 20));
	else if (created)
		log_line(LOG_LEVEL_INFO, "LUN %u: new device %s of %lu MiB", lun->number,
			 lun->image, (unsigned long)(lun->size_bytes >> 20));
	known_add(state_dir, lun->image);
	server_alive();
	return 0;
}

static int prepare_images(struct server *server, struct error_text *error)
{
	int result = 0;

	for (unsigned int i = 0; !result && i < server->config->lun_count; i++)
		if (config_is_first_of_device(server->config, &server->config->luns[i]))
			result = server_prepare_image(server, &server->config->luns[i], error);
	return result;
}

/* If all portals are taken, tgtd would quietly listen on all addresses, port 3260. */
static int check_portals_are_free(struct server *server, struct error_text *error)
{
	return check_portals(server->config, error);
}

static int start_tgtd(struct server *server, struct error_text *error)
{
	const struct config *config = server->config;
	char allocator[PATH_MAX], portals[CONFIG_PORTALS_BYTES];
	const struct tgtd_options options = {
		.program = config->tgtd,
		.module = config->module,
		.allocator = allocator,
		.portals = portals,
		.limits = &config->limits,
		.log_level = config->log_level,
		.answer_ms = (int)config->watchdog * 1000,
	};
	int result = check_programs(config, error);

	config_portals(config, "portal=", portals);
	if (!result)
		result = allocator_find(config->allocator, allocator, error);
	return result ? result : tgtd_start(&options, &server->tgtd, error);
}

static int wait_for_tgtd(struct server *server, struct error_text *error)
{
	return tgt_wait_ready(&server->tgtd, READY_MS, error);
}

static int check_portals_are_ours(struct server *server, struct error_text *error)
{
	const struct config *config = server->config;
	int result = 0;

	for (unsigned int i = 0; !result && i < config->portal_count; i++) {
		char portal[CONFIG_PORTAL_BYTES];
		bool listens = false;

		config_portal(&config->portals[i], portal);
		result = tgt_portal_listens(&server->tgtd, portal, &listens, error);
		if (!result && !listens)
			result = error_set(error, -EADDRINUSE,
					   "tgtd could not listen on %s: somebody took the port "
					   "this moment",
					   portal);
	}
	return result;
}

/*
 * With tgtd's own values every 8 KiB are a PDU. These let 256 KiB come with the command itself,
 * without a request for them. Initiators can negotiate smaller values.
 */
static int offer_large_transfers(struct server *server, unsigned int target,
				 struct error_text *error)
{
	static const char *const offers[] = {
		"MaxRecvDataSegmentLength=262144",
		"FirstBurstLength=262144",
		"MaxBurstLength=1048576",
	};
	int result = 0;

	for (size_t i = 0; !result && i < sizeof(offers) / sizeof(offers[0]); i++)
		result = tgt_target_offer(&server->tgtd, target, offers[i], error);
	return result;
}

static unsigned int free_target_id(const struct config *config)
{
	unsigned int id = 1;

	for (unsigned int i = 0; i < config->target_count; i++)
		if (config->targets[i].id == id) {
			id++;
			i = UINT_MAX; /* begin again */
		}
	return id;
}

int server_create_target(struct server *server, struct target_config *target,
			 struct error_text *error)
{
	unsigned int id = free_target_id(server->config);
	int result = tgt_target_create(&server->tgtd, id, target->name, error);

	if (result)
		return result;
	result = offer_large_transfers(server, id, error);
	if (result) {
		struct error_text ignored;

		/* Otherwise its number would be taken, without anybody knowing. */
		tgt_target_delete(&server->tgtd, id, &ignored);
		return result;
	}
	target->id = id;
	return 0;
}

static int create_targets(struct server *server, struct error_text *error)
{
	struct config *config = server->config;
	int result = 0;

	for (unsigned int i = 0; i < config->target_count; i++)
		config->targets[i].id = 0;
	server->accounts_unsure = false;
	for (unsigned int i = 0; !result && i < config->target_count; i++) {
		result = server_create_target(server, &config->targets[i], error);
		server->targets_exist |= config->targets[i].id != 0;
	}
	return result;
}

struct target_config *server_target_of(const struct server *server, const struct lun_config *lun)
{
	struct target_config *target = config_find_target(server->config, lun->target);

	return target && target->id ? target : NULL;
}

int server_create_lun(struct server *server, const struct lun_config *lun, struct error_text *error)
{
	const struct target_config *target = server_target_of(server, lun);
	char options[LUN_OPTIONS_TEXT_BYTES];
	int answer_ms = server->tgtd.answer_ms, result;

	if (!target)
		return error_set(error, -ENXIO, "LUN %u: its target is not served", lun->number);
	lun_options_write(&lun->options, options);
	server->tgtd.answer_ms = OPEN_MS;
	result = tgt_lun_create(&server->tgtd, target->id, lun->number, lun->type, lun->image,
				options, error);
	server->tgtd.answer_ms = answer_ms;
	server_alive();
	return result;
}

/* By type: an OSD tells the engine of its attributes before disks on its device use that. */
static int create_luns(struct server *server, struct error_text *error)
{
	const struct config *config = server->config;
	int result = 0;

	server->units_open = true;
	for (int type = 0; type < UNIT_TYPES; type++)
		for (unsigned int i = 0; !result && i < config->lun_count; i++)
			if (config->luns[i].type == &unit_types[type])
				result = server_create_lun(server, &config->luns[i], error);
	return result;
}

static int require_accounts(struct server *server, struct error_text *error)
{
	return access_make_accounts(&server->tgtd, server->config, error);
}

/* tgtd lets nobody in before this, so it comes last. */
static int allow_initiators(struct server *server, struct error_text *error)
{
	const struct config *config = server->config;
	int result = 0;

	for (unsigned int i = 0; !result && i < config->target_count; i++) {
		struct target_config nobody = { .id = config->targets[i].id };

		result = access_change_lists(&server->tgtd, &nobody, &config->targets[i], error);
	}
	return result;
}

struct step {
	const char *name;
	int (*run)(struct server *server, struct error_text *error);
};

static const struct step own_steps[] = {
	{ "make folders", make_folders },
	{ "lock the run directory", lock_run_dir },
	{ "serve the metrics", open_http },
	{ "open the administration socket", open_admin },
};

/* Also when it is started again. */
static const struct step tgtd_steps[] = {
	{ "check that the portals are free", check_portals_are_free },
	{ "prepare images", prepare_images },
	{ "start tgtd", start_tgtd },
	{ "wait for tgtd", wait_for_tgtd },
	{ "check that the portals are ours", check_portals_are_ours },
	{ "create the targets", create_targets },
	{ "create the logical units", create_luns },
	{ "require the CHAP accounts", require_accounts },
	{ "allow initiators", allow_initiators },
};

/* ---- life ---- */

static bool stop_wanted(const struct server *server)
{
	struct pollfd signals = { .fd = server->signal_fd, .events = POLLIN };

	return poll(&signals, 1, 0) > 0;
}

/* Adds what tgtd said last to a sentence about it. */
static void add_last_words(const struct server *server, struct error_text *error)
{
	size_t used = strlen(error->text);

	if (server->tgtd.last_words[0])
		snprintf(error->text + used, sizeof(error->text) - used, " (%.300s)",
			 server->tgtd.last_words);
}

static int run_steps(struct server *server, const struct step *steps, size_t count,
		     struct error_text *error)
{
	int result = 0;

	for (size_t i = 0; !result && i < count; i++) {
		log_line(LOG_LEVEL_DEBUG, "%s", steps[i].name);
		result = steps[i].run(server, error);
		server_alive();
		if (result == -ESRCH)
			tgtd_reap(&server->tgtd, error);
		else if (result > 0)
			add_last_words(server, error);
		if (!result && stop_wanted(server))
			result = SERVER_STOP_WANTED;
		else if (result > 0)
			result = -EINVAL;
	}
	return result;
}

int server_start_tgtd(struct server *server, struct error_text *error)
{
	return run_steps(server, tgtd_steps, sizeof(tgtd_steps) / sizeof(tgtd_steps[0]), error);
}

void server_alive(void)
{
	if (sd_watchdog_enabled(0, NULL) > 0)
		sd_notify(0, "WATCHDOG=1");
}

bool server_tgtd_runs(const struct server *server)
{
	return server->tgtd.pid > 0 && server->targets_exist;
}

void server_tell_status(const struct server *server)
{
	sd_notifyf(0, "STATUS=serving %u logical units at %s", server->config->lun_count,
		   server->portals);
}

int server_start(struct server *server, struct config *config, struct origin *origin, int signal_fd,
		 int reload_fd, struct error_text *error)
{
	int result;

	memset(server, 0, sizeof(*server));
	server->config = config;
	server->origin = origin;
	server->signal_fd = signal_fd;
	server->reload_fd = reload_fd;
	server->started_ms = clock_ms();
	server->lock_fd = -1;
	server->tgtd_lock_fd = -1;
	server->tgtd.pid_fd = -1;
	server->tgtd.log_fd = -1;
	server->tgtd.handed_fd = -1;
	config_portals(config, "", server->portals);
	result = run_steps(server, own_steps, sizeof(own_steps) / sizeof(own_steps[0]), error);
	if (!result)
		result = server_start_tgtd(server, error);
	if (result) {
		struct error_text ignored;

		server_stop(server, result > 0 ? error : &ignored);
	}
	return result;
}

void server_url(const struct server *server, unsigned int lun, char *url, size_t bytes)
{
	struct config *config = server->config;
	struct portal first = config->portals[0];
	const struct target_config *target = &config->targets[0];
	char portal[CONFIG_PORTAL_BYTES];

	for (unsigned int i = 0; i < config->lun_count; i++)
		if (config->luns[i].number == lun)
			target = config_find_target(config, config->luns[i].target);
	if (!strcmp(first.address, "0.0.0.0"))
		strcpy(first.address, "127.0.0.1");
	else if (!strcmp(first.address, "::"))
		strcpy(first.address, "::1");
	config_portal(&first, portal);
	snprintf(url, bytes, "iscsi://%s%s%s/%s/%u", target->chap.user,
		 target->chap.user[0] ? "%SECRET@" : "", portal, target->name, lun);
}
