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
#include "daemon/secrets.h"
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
	char portals[CONFIG_PORTALS_BYTES], limits[2][LIMITS_TEXT_BYTES];

	compare_text(r, "state_dir", now->state_dir, new->state_dir);
	compare_text(r, "run_dir", now->run_dir, new->run_dir);
	compare_text(r, "tgtd", now->tgtd, new->tgtd);
	compare_text(r, "module", now->module, new->module);
	compare_text(r, "allocator", now->allocator, new->allocator);
	if (now->metrics.port != new->metrics.port ||
	    strcmp(now->metrics.address, new->metrics.address) != 0)
		say(r->report->restart, "metrics has changed: it counts from the next start on");
	config_portals(new, "", portals);
	compare_text(r, "portal", r->server->portals, portals);
	limits_write(&now->limits, limits[0]);
	limits_write(&new->limits, limits[1]);
	compare_text(r, "[limits]", limits[0], limits[1]);
}

/* ---- targets ---- */

/*
 * Targets that the file has no more let nobody in from here on. So it does not matter that they
 * lose their accounts before their units. False: one of them may still be open.
 */
static bool close_targets(const struct reloading *r)
{
	bool closed = true;

	for (unsigned int i = 0; i < r->now->target_count; i++) {
		static const struct target_config nobody;
		struct target_config *target = &r->now->targets[i];
		struct error_text error = { "" };

		if (!config_find_target(r->new, target->label) &&
		    access_change_lists(&r->server->tgtd, target, &nobody, &error)) {
			say(r->report->left, "target %s may still let initiators in: %s",
			    target->name, error.text);
			closed = false;
		}
	}
	return closed;
}

static void remove_target(const struct reloading *r, struct target_config *target)
{
	struct error_text error = { "" };
	int result = tgt_connections_close(&r->server->tgtd, target->id, &error);

	if (!result)
		result = tgt_target_delete(&r->server->tgtd, target->id, &error);
	if (result) {
		say(r->report->left, "target %s is not removed: %s", target->name, error.text);
		return;
	}
	say(r->report->done, "target %s is removed", target->name);
	memmove(target, target + 1,
		(size_t)(r->now->targets + --r->now->target_count - target) * sizeof(*target));
}

/* Behind their units, which stay while somebody uses them. */
static void remove_targets(const struct reloading *r)
{
	for (unsigned int i = r->now->target_count; i-- > 0;) {
		struct target_config *target = &r->now->targets[i];

		if (!config_find_target(r->new, target->label) && !config_has_units(r->now, target))
			remove_target(r, target);
	}
}

static void add_target(const struct reloading *r, const struct target_config *new)
{
	struct target_config *target = &r->now->targets[r->now->target_count];
	struct error_text error = { "" };

	if (r->now->target_count == CONFIG_TARGETS_MAX) {
		say(r->report->left, "target %s is not added: there are %d targets already",
		    new->name, CONFIG_TARGETS_MAX);
		return;
	}
	/* Its accounts and lists come behind it, one after the other. */
	memset(target, 0, sizeof(*target));
	strcpy(target->label, new->label);
	strcpy(target->name, new->name);
	if (server_create_target(r->server, target, &error)) {
		say(r->report->left, "target %s is not added: %s", new->name, error.text);
		return;
	}
	r->now->target_count++;
	say(r->report->done, "target %s is added", new->name);
}

static void add_targets(const struct reloading *r)
{
	for (unsigned int i = 0; i < r->new->target_count; i++) {
		const struct target_config *new = &r->new->targets[i];
		const struct target_config *now = config_find_target(r->now, new->label);
		char section[CONFIG_DEVICE_BYTES + 32];

		if (!now) {
			add_target(r, new);
			continue;
		}
		strcpy(section, "name of ");
		config_target_section(new, section + strlen(section), CONFIG_DEVICE_BYTES + 16);
		compare_text(r, section, now->name, new->name);
	}
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
		if (units_add(r->server, r->new, lun, &error))
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
	return a->type == b->type && !strcmp(a->device, b->device) &&
	       !strcmp(a->target, b->target) && !strcmp(a->image, b->image) &&
	       !strcmp(a->nvram, b->nvram) && !strcmp(texts[0], texts[1]);
}

/* Whether a unit is what it was: other keys may differ, which then wait for a start. */
static bool is_same_volume(const struct lun_config *a, const struct lun_config *b)
{
	const struct disk_options *one = &a->options.disk, *two = &b->options.disk;

	return a->type == b->type && !strcmp(a->device, b->device) && !strcmp(a->image, b->image) &&
	       one->partition == two->partition && !strcmp(one->version, two->version);
}

/* A volume that has more than the file says now stays so, as at a start. */
static void change_size(const struct reloading *r, struct lun_config *now, uint64_t wanted)
{
	struct error_text error = { "" };
	uint64_t bytes;

	if (units_disk_bytes(r->server, now->number, &bytes, &error)) {
		say(r->report->left, "LUN %u keeps its size, which is not known now: %s",
		    now->number, error.text);
	} else if (bytes > wanted) {
		now->options.disk.bytes = wanted;
		say(r->report->done,
		    "LUN %u has %" PRIu64 " bytes, more than volume_size says: it stays so",
		    now->number, bytes);
	} else if (units_grow(r->server, now->number, wanted, &error)) {
		say(r->report->left, "LUN %u does not grow: %s", now->number, error.text);
	} else {
		say(r->report->done, "LUN %u has its new volume_size", now->number);
	}
}

/* Once for each device. */
static void compare_device_size(const struct reloading *r, const struct lun_config *now,
				const struct lun_config *new)
{
	if (new->size_is_set &&new->size_bytes > now->size_bytes &&
	    config_is_first_of_device(r->now, now))
		say(r->report->restart,
		    "LUN %u: its device gets its larger size when the service is restarted, or "
		    "by `muninnctl device grow`",
		    now->number);
}

static void change_unit(const struct reloading *r, struct lun_config *now,
			const struct lun_config *new)
{
	uint64_t bytes = new->options.disk.bytes;

	if (now->added && !new->added)
		say(r->report->done, "LUN %u is in the file now", now->number);
	now->added = new->added;
	now->line = new->line;
	if (!is_same_unit(now, new))
		say(r->report->restart, "LUN %u has changed: it counts from the next start on",
		    now->number);
	/* Sizes are of what the next start serves. */
	if (!is_same_volume(now, new))
		return;
	compare_device_size(r, now, new);
	if (bytes && bytes != now->options.disk.bytes)
		change_size(r, now, bytes);
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

/* Who may not log in any more is shown out. */
static void end_sessions(const struct reloading *r, const struct target_config *target)
{
	struct tgt_session *sessions = calloc(SESSIONS_MAX, sizeof(*sessions));
	struct tgtd *tgtd = &r->server->tgtd;
	struct error_text error = { "" };
	size_t count = 0;
	int result =
		sessions ? tgt_sessions(tgtd, target->id, sessions, SESSIONS_MAX, &count, &error)
			 : error_set(&error, -ENOMEM, "out of memory");

	for (size_t i = 0; !result && i < count && i < SESSIONS_MAX; i++) {
		if (access_allows(target, sessions[i].initiator, sessions[i].address))
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

static void change_list(const struct reloading *r, struct target_config *now,
			const struct target_config *new)
{
	bool is_new = !now->allow_addresses && !now->allow_names;
	bool waits = is_new ? r->server->accounts_unsure
			    : access_lacks_account(r->now, r->new, now->label);
	struct error_text error = { "" };
	char section[CONFIG_DEVICE_BYTES + 16];

	config_target_section(now, section, sizeof(section));
	if (waits) {
		say(r->report->left, "%s lets nobody else in before its accounts are there",
		    section);
		return;
	}
	if (access_change_lists(&r->server->tgtd, now, new, &error)) {
		say(r->report->left, "who may log in%s%s: %s", now->label[0] ? " to " : "",
		    now->label, error.text);
		return;
	}
	if (!is_new)
		say(r->report->done, "who may log in%s%s has changed", now->label[0] ? " to " : "",
		    now->label);
	end_sessions(r, now);
}

static void change_access(const struct reloading *r)
{
	for (unsigned int i = 0; i < r->now->target_count; i++) {
		struct target_config *now = &r->now->targets[i];
		const struct target_config *new = config_find_target(r->new, now->label);

		if (new && !access_is_same_lists(now, new))
			change_list(r, now, new);
	}
}

static void take_accounts(const struct reloading *r)
{
	r->now->discovery = r->new->discovery;
	for (unsigned int i = 0; i < r->now->target_count; i++) {
		struct target_config *now = &r->now->targets[i];
		const struct target_config *new = config_find_target(r->new, now->label);

		/* One that the file has no more has lost them; it may come back. */
		now->chap = new ? new->chap : (struct chap_account){ .user = "" };
		now->mutual = new ? new->mutual : (struct chap_account){ .user = "" };
	}
}

/* `closed`: no target is open that loses its accounts by this. */
static void change_accounts(const struct reloading *r, bool closed)
{
	struct error_text error = { "" };

	if (access_is_same_accounts(r->now, r->new) && !r->server->accounts_unsure)
		return;
	r->server->accounts_unsure = true;
	if (!closed) {
		say(r->report->left,
		    "CHAP accounts stay as they are until it lets nobody in: reload again");
		return;
	}
	if (access_change_accounts(&r->server->tgtd, r->now, r->new, &error)) {
		say(r->report->left,
		    "CHAP accounts: %s; until a reload has changed them nobody may get in where "
		    "one "
		    "is required",
		    error.text);
		return;
	}
	r->server->accounts_unsure = false;
	take_accounts(r);
	say(r->report->done,
	    "CHAP accounts have changed; sessions that are logged in go on until they end "
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

/* ---- what the host has for it ---- */

/* Is it for the reload to make or open the unit's device? No unit that stays is on it. */
static bool opens_device(const struct reloading *r, const struct lun_config *lun)
{
	bool is_added = false;

	for (unsigned int i = 0; i < r->now->lun_count; i++)
		if (units_share_device(&r->now->luns[i], lun) &&
		    find(r->new, r->now->luns[i].number))
			return false;
	for (unsigned int i = 0; i < r->new->lun_count; i++)
		is_added |= units_share_device(&r->new->luns[i], lun) &&
			    !units_find(r->server, r->new->luns[i].number);
	return is_added;
}

/* Whether a device is served as the unit wants it, as far as only its image can tell. */
static bool is_served_so(const struct reloading *r, const struct lun_config *lun)
{
	const char *store = lun->options.engine.store;

	for (unsigned int i = 0; i < r->now->lun_count; i++) {
		const struct lun_config *now = &r->now->luns[i];
		const char *served = now->options.engine.store;

		if (units_share_device(now, lun))
			return !(lun->size_is_set && lun->size_bytes > now->size_bytes) &&
			       (!store || (served && !strcmp(store, served)));
	}
	return false;
}

static void tell(void *context, const char *sentence)
{
	const struct reload_report *report = context;

	say(report->restart, "the next start would fail: %s", sentence);
}

/*
 * What the reload does not touch refuses nothing: somebody may have to be shut out at once, however
 * it is with the images.
 */
static int check_units(const struct reloading *r, struct error_text *error)
{
	struct check_tolerance tolerance = { .tell = tell, .context = r->report };
	struct image_engine engines[CONFIG_LUNS_MAX];
	int result;

	for (unsigned int i = 0; i < r->new->lun_count; i++) {
		const struct lun_config *lun = &r->new->luns[i];

		tolerance.care[i] = opens_device(r, lun)   ? CHECK_REFUSES
				    : is_served_so(r, lun) ? CHECK_NAMES
							   : CHECK_TELLS;
	}
	result = check_host(r->new, &tolerance, error);
	if (!result)
		result = check_images(r->new, &tolerance, engines, error);
	/* That is no fault of the file. */
	return result == -EINVAL ? -EIO : result;
}

/* ---- all of it ---- */

static int read_anew(const struct reloading *r, struct config_file *file, struct config *config,
		     struct error_text *error)
{
	struct server *server = r->server;
	int result = origin_load(server->origin, file, error);

	if (result)
		return result;
	result = origin_read(server->origin, file, NULL, config, error);
	config_warn_of_readers(file, config);
	if (!result)
		result = check_plans(config, error);
	if (!result)
		result = secrets_load(config, error);
	if (!result)
		result = check_units(r, error);
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
	bool closed;
	int result;

	result = read_anew(&r, &file, &new, error);
	if (result) {
		log_line(LOG_LEVEL_ERROR, "reload: nothing has changed: %s", error->text);
		return result == -EINVAL ? result : -EIO;
	}
	compare_service(&r);
	/* First who is kept out. */
	closed = close_targets(&r);
	add_targets(&r);
	change_accounts(&r, closed);
	change_access(&r);
	remove_units(&r);
	remove_targets(&r);
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
