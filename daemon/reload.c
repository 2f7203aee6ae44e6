/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Compares the file with what is served, and changes what can change meanwhile. */
#include "daemon/reload.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "daemon/access.h"
#include "daemon/admin_verbs.h"
#include "daemon/check.h"
#include "daemon/tgt_control.h"
#include "daemon/troubles.h"
#include "daemon/units.h"

#define SESSIONS_MAX 4096 /* as [limits] has it */

struct reloading {
	struct server *server;
	struct config *now;       /* what is served */
	const struct config *new; /* what the file says */
	struct reload_report *report;
};

__attribute__((format(printf, 2, 3))) static void say(json_t *list, const char *format, ...)
{
	char sentence[600];
	va_list arguments;
	json_t *text;

	va_start(arguments, format);
	vsnprintf(sentence, sizeof(sentence), format, arguments);
	va_end(arguments);
	text = json_string(sentence);
	if (!text) {
		/* A name is no UTF-8, or is cut in the middle of a character. */
		tgt_make_plain(sentence);
		text = json_string(sentence);
	}
	json_array_append_new(list, text);
}

/* ---- what needs a restart ---- */

static void compare_text(const struct reloading *r, const char *key, const char *a, const char *b)
{
	if (strcmp(a, b))
		say(r->report->restart, "%s has changed: it counts from the next start on", key);
}

static void compare_service(const struct reloading *r)
{
	const struct config *now = r->now, *new = r->new;
	char portal[CONFIG_PORTAL_BYTES], limits[2][LIMITS_TEXT_BYTES];

	compare_text(r, "state_dir", now->state_dir, new->state_dir);
	compare_text(r, "run_dir", now->run_dir, new->run_dir);
	compare_text(r, "tgtd", now->tgtd, new->tgtd);
	compare_text(r, "module", now->module, new->module);
	compare_text(r, "allocator", now->allocator, new->allocator);
	compare_text(r, "name of [target]", now->target_name, new->target_name);
	config_portal(new, portal);
	compare_text(r, "portal", r->server->portal, portal);
	limits_write(&now->limits, limits[0]);
	limits_write(&new->limits, limits[1]);
	compare_text(r, "[limits]", limits[0], limits[1]);
}

/* ---- units ---- */

static const struct lun_config *find(const struct config *config, unsigned int number)
{
	for (unsigned int i = 0; i < config->lun_count; i++)
		if (config->luns[i].number == number)
			return &config->luns[i];
	return NULL;
}

static void remove_units(const struct reloading *r)
{
	unsigned int i = 0;

	while (i < r->now->lun_count) {
		unsigned int number = r->now->luns[i].number;
		struct error_text error = { "" };
		int result;

		if (find(r->new, number)) {
			i++;
			continue;
		}
		result = admin_check_unused(r->server, number, &error);
		if (!result)
			result = units_remove(r->server, number, &error);
		if (result) {
			say(r->report->left,
			    "%s; it is no more in the file, and stays (`muninnctl lun rm %u "
			    "--force` removes it)",
			    error.text, number);
			i++;
		} else {
			say(r->report->done, "LUN %u is removed", number);
		}
	}
}

static void add_units(const struct reloading *r)
{
	for (unsigned int i = 0; i < r->new->lun_count; i++) {
		const struct lun_config *lun = &r->new->luns[i];
		struct error_text error = { "" };

		if (units_find(r->server, lun->number))
			continue;
		if (units_add(r->server, lun, &error))
			say(r->report->left, "LUN %u is not added: %s", lun->number, error.text);
		else
			say(r->report->done, "LUN %u is added", lun->number);
	}
}

/* What counts of a device that is there, but for the disk's size; the texts are tgtd's. */
static bool is_same_unit(const struct lun_config *a, const struct lun_config *b)
{
	char texts[2][LUN_OPTIONS_TEXT_BYTES];
	struct lun_options options[2] = { a->options, b->options };

	for (int i = 0; i < 2; i++) {
		options[i].disk.bytes = 0;
		lun_options_write(&options[i], texts[i]);
	}
	return a->type == b->type && !strcmp(a->device, b->device) && !strcmp(a->image, b->image) &&
	       !strcmp(a->nvram, b->nvram) && !strcmp(texts[0], texts[1]);
}

/* Somebody has let the volume grow further than the file says. As at a start it stays so. */
static bool is_larger(const struct reloading *r, struct lun_config *now, uint64_t wanted)
{
	struct error_text error = { "" };
	uint64_t bytes;

	if (units_disk_bytes(r->server, now->number, &bytes, &error) || bytes <= wanted)
		return false;
	now->options.disk.bytes = wanted;
	say(r->report->done,
	    "LUN %u has %" PRIu64 " bytes, more than volume_size says: it stays so", now->number,
	    bytes);
	return true;
}

static void change_unit(const struct reloading *r, struct lun_config *now,
			const struct lun_config *new)
{
	uint64_t bytes = new->options.disk.bytes;
	struct error_text error = { "" };

	if (now->added && !new->added)
		say(r->report->done, "LUN %u is in the file now", now->number);
	now->added = new->added;
	now->line = new->line;
	if (!is_same_unit(now, new))
		say(r->report->restart, "LUN %u has changed: it counts from the next start on",
		    now->number);
	if (bytes <= now->options.disk.bytes || is_larger(r, now, bytes))
		return;
	if (units_grow(r->server, now->number, bytes, &error))
		say(r->report->left, "LUN %u does not grow: %s", now->number, error.text);
	else
		say(r->report->done, "LUN %u has its new volume_size", now->number);
}

static void change_units(const struct reloading *r)
{
	for (unsigned int i = 0; i < r->now->lun_count; i++) {
		const struct lun_config *new = find(r->new, r->now->luns[i].number);

		if (new)
			change_unit(r, &r->now->luns[i], new);
	}
}

/* ---- who may log in ---- */

static bool is_same_access(const struct config *a, const struct config *b)
{
	return a->allow_addresses == b->allow_addresses && a->allow_names == b->allow_names &&
	       !memcmp(a->allow_address, b->allow_address, sizeof(a->allow_address)) &&
	       !memcmp(a->allow_name, b->allow_name, sizeof(a->allow_name));
}

/* Who may not log in any more is shown out. */
static void end_sessions(const struct reloading *r)
{
	struct tgt_session *sessions = calloc(SESSIONS_MAX, sizeof(*sessions));
	struct tgtd *tgtd = &r->server->tgtd;
	struct error_text error = { "" };
	size_t count = 0;
	int result = sessions ? tgt_sessions(tgtd, sessions, SESSIONS_MAX, &count, &error)
			      : error_set(&error, -ENOMEM, "out of memory");

	for (size_t i = 0; !result && i < count && i < SESSIONS_MAX; i++) {
		if (access_allows(r->new, sessions[i].initiator, sessions[i].address))
			continue;
		result = tgt_session_close(tgtd, &sessions[i], &error);
		if (!result)
			say(r->report->done, "the session of %s at %s is ended",
			    sessions[i].initiator, sessions[i].address);
	}
	free(sessions);
	if (result)
		say(r->report->left, "sessions that are not allowed any more may go on: %s",
		    error.text);
}

static void change_access(const struct reloading *r)
{
	struct error_text error = { "" };

	if (is_same_access(r->now, r->new))
		return;
	if (access_change(&r->server->tgtd, r->now, r->new, &error)) {
		say(r->report->left, "who may log in: %s", error.text);
		return;
	}
	r->now->allow_addresses = r->new->allow_addresses;
	r->now->allow_names = r->new->allow_names;
	memcpy(r->now->allow_address, r->new->allow_address, sizeof(r->now->allow_address));
	memcpy(r->now->allow_name, r->new->allow_name, sizeof(r->now->allow_name));
	say(r->report->done, "who may log in has changed");
	end_sessions(r);
}

static void change_account(const struct reloading *r)
{
	struct error_text error = { "" };

	if (!strcmp(r->now->chap_user, r->new->chap_user) &&
	    !strcmp(r->now->chap_secret, r->new->chap_secret))
		return;
	if (access_change_account(&r->server->tgtd, r->now, r->new, &error)) {
		say(r->report->left, "the CHAP account: %s", error.text);
		return;
	}
	strcpy(r->now->chap_user, r->new->chap_user);
	strcpy(r->now->chap_secret, r->new->chap_secret);
	say(r->report->done,
	    "the CHAP account has changed; sessions that are logged in go on until they end "
	    "(muninnctl session kick)");
}

/* ---- this process, and messages ---- */

/* The module's, too; a tgtd that is started again is told at its start. */
static void change_log_level(const struct reloading *r)
{
	struct config *now = r->now;
	struct error_text error = { "" };
	int result = 0;

	if (now->log_level == r->new->log_level)
		return;
	now->log_level = r->new->log_level;
	log_configure(trouble_sink, now->log_level);
	if (now->lun_count)
		result = tgt_lun_log(&r->server->tgtd, now->luns[0].number, now->log_level, &error);
	if (result)
		say(r->report->left, "log_level of tgtd: %s", error.text);
	else
		say(r->report->done, "log_level has changed");
}

static void change_process(const struct reloading *r)
{
	struct config *now = r->now;
	const struct config *new = r->new;

	if (now->stop_timeout != new->stop_timeout)
		say(r->report->done, "stop_timeout has changed");
	if (now->watchdog != new->watchdog)
		say(r->report->done, "watchdog has changed");
	if (strcmp(now->admin_group, new->admin_group))
		say(r->report->done, "admin_group has changed");
	now->stop_timeout = new->stop_timeout;
	now->watchdog = new->watchdog;
	r->server->tgtd.answer_ms = (int)new->watchdog * 1000;
	strcpy(now->admin_group, new->admin_group);
	admin_open_to_group(now);
}

/* ---- all of it ---- */

static int read_anew(struct server *server, struct config_file *file, struct config *config,
		     struct error_text *error)
{
	int result = origin_load(server->origin, file, error);

	if (result)
		return result;
	result = origin_read(server->origin, file, NULL, config, error);
	config_warn_of_readers(file, config);
	if (!result)
		result = check_plans(config, error);
	if (!result)
		result = check_host(config, error);
	if (result)
		config_file_free(file);
	return result;
}

static void log_all(const json_t *list, enum log_level level)
{
	for (size_t i = 0; i < json_array_size(list); i++)
		log_line(level, "reload: %s", json_string_value(json_array_get(list, i)));
}

int reload(struct server *server, struct reload_report *report, struct error_text *error)
{
	static struct config new;
	struct config_file file;
	const struct reloading r = { server, server->config, &new, report };
	int result;

	result = read_anew(server, &file, &new, error);
	if (result) {
		log_line(LOG_LEVEL_ERROR, "reload: nothing has changed: %s", error->text);
		return result == -EINVAL ? result : -EIO;
	}
	compare_service(&r);
	/* First who is kept out. */
	change_account(&r);
	change_access(&r);
	remove_units(&r);
	change_units(&r);
	add_units(&r);
	change_process(&r);
	change_log_level(&r);
	memcpy(server->config->devices, new.devices, sizeof(new.devices));
	server->config->device_count = new.device_count;
	origin_take(server->origin, &file, &new);
	log_all(report->done, LOG_LEVEL_INFO);
	log_all(report->left, LOG_LEVEL_WARNING);
	log_all(report->restart, LOG_LEVEL_WARNING);
	return 0;
}
