/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * A configured tgtd from start to stop: run directory, images, target, logical units, access, and
 * the end of all of them.
 */
#ifndef MUNINN_DAEMON_SERVER_H
#define MUNINN_DAEMON_SERVER_H

#include "common/error.h"
#include "daemon/admin.h"
#include "daemon/config.h"
#include "daemon/http.h"
#include "daemon/origin.h"
#include "daemon/tgtd.h"

struct server {
	struct config *config; /* as it is served; changes while it is (reload.h) */
	struct origin *origin; /* what it was made of */
	int signal_fd;         /* readable: somebody wants us to stop */
	int reload_fd;         /* readable: somebody wants the file taken up anew; -1: nobody can */
	int lock_fd;           /* of the run directory */
	int tgtd_lock_fd;      /* of the run directory, which tgtd inherits */
	bool targets_exist;
	bool accounts_unsure; /* a change of them was left in the middle */
	bool units_open;      /* by tgtd, which has not closed them in good order */
	struct tgtd tgtd;
	struct admin *admin;
	struct http *http;                  /* NULL: there is none */
	int64_t started_ms;                 /* of clock.h */
	int64_t up_since_ms;                /* of clock.h: when tgtd was ready last */
	unsigned int restarts;              /* of tgtd, without a steady time between them */
	unsigned int restarts_total;        /* since the start */
	char portals[CONFIG_PORTALS_BYTES]; /* ADDRESS:PORT of all, as tgtd listens at them */
};

enum { SERVER_STOP_WANTED = 1 };

/*
 * Starts everything; when it returns 0, initiators can log in. SERVER_STOP_WANTED: `signal_fd`
 * became readable meanwhile. -errno with a sentence. After either of these nothing is left running
 * or lying around. `config` and `origin` stay the caller's.
 */
int server_start(struct server *server, struct config *config, struct origin *origin, int signal_fd,
		 int reload_fd, struct error_text *error);

/*
 * The part of the start that follows when tgtd has ended. What it leaves after a failure is
 * server_stop's.
 */
int server_start_tgtd(struct server *server, struct error_text *error);

/*
 * Serves until somebody wants a stop (SERVER_STOP_WANTED). A tgtd that hangs or has ended is
 * started again (watch.c). -errno with a sentence: it does not stay up.
 */
int server_run(struct server *server, struct error_text *error);

/*
 * Ends all sessions, makes the units stable, waits for commands, closes the units, and ends tgtd
 * (stop.c). -errno with a sentence if that went wrong. tgtd is gone in any case, and what was
 * acknowledged is stable unless the host could not store it, which is logged.
 */
int server_stop(struct server *server, struct error_text *error);

/* iscsi://[USER%SECRET@]ADDRESS:PORT/TARGET/LUN, where SECRET stands for itself; by the first
 * portal. */
void server_url(const struct server *server, unsigned int lun, char *url, size_t bytes);

/*
 * Makes the image of a unit, unless that is there, and checks it. For the first unit of a device.
 * Warns if it makes one anew that was served before.
 */
int server_prepare_image(const struct server *server, const struct lun_config *lun,
			 struct error_text *error);

/* The target of a unit that is served; NULL: it is not there. */
struct target_config *server_target_of(const struct server *server, const struct lun_config *lun);

/*
 * Makes a target with a free number, which `target` gets, and lets nobody in yet. As the requests
 * of tgt_control.h.
 */
int server_create_target(struct server *server, struct target_config *target,
			 struct error_text *error);

/* Hands a unit to tgtd. As the requests of tgt_control.h. */
int server_create_lun(struct server *server, const struct lun_config *lun,
		      struct error_text *error);

/*
 * Tells systemd that something has got on: if it hears nothing for long (WatchdogSec=), this
 * process hangs.
 */
void server_alive(void);

/* Whether there is a tgtd with a target, which requests can be about. */
bool server_tgtd_runs(const struct server *server);

/* Tells systemd what it serves, for `systemctl status`. */
void server_tell_status(const struct server *server);

#endif
