/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Adds logical units to a tgtd that serves, and takes them away. */
#include "daemon/units.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "daemon/access.h"
#include "daemon/admin_verbs.h"
#include "daemon/tgt_control.h"

#define CLOSE_MS 300000 /* closing a unit makes it stable, as in stop.c */
#define BUSY_MS  10000  /* how long its commands may go on */
#define RETRY_MS 20

struct lun_config *units_find(const struct server *server, unsigned int number)
{
	struct config *config = server->config;

	for (unsigned int i = 0; i < config->lun_count; i++)
		if (config->luns[i].number == number)
			return &config->luns[i];
	return NULL;
}

bool units_share_device(const struct lun_config *lun, const struct lun_config *other)
{
	return !strcmp(lun->image, other->image);
}

/* A unit that is served and on the same device; NULL: there is none. */
static const struct lun_config *find_neighbour(const struct server *server,
					       const struct lun_config *lun)
{
	const struct config *config = server->config;

	for (unsigned int i = 0; i < config->lun_count; i++)
		if (units_share_device(&config->luns[i], lun))
			return &config->luns[i];
	return NULL;
}

bool units_needs_start(const struct server *server, const struct lun_config *lun)
{
	return lun->type == &unit_types[UNIT_TYPE_OSD] && find_neighbour(server, lun);
}

/* What a running device can't take. */
static int check_neighbours(const struct server *server, const struct lun_config *lun,
			    struct error_text *error)
{
	const struct config *config = server->config;
	struct error_text reason;

	for (unsigned int i = 0; i < config->lun_count; i++)
		if (lun->device[0] && !strcmp(config->luns[i].device, lun->device) &&
		    !units_share_device(&config->luns[i], lun))
			return error_set(error, -EBUSY,
					 "device %s is another one in %s than the one that is "
					 "served: restart the service first",
					 lun->device, config->source);
	if (units_needs_start(server, lun))
		return error_set(error, -EBUSY,
				 "an OSD joins a device that others use at a start only: restart "
				 "the service with LUN %u in %s",
				 lun->number, config->source);
	/* What is served, which the file may say otherwise of. */
	for (unsigned int i = 0; i < config->lun_count; i++)
		if (config_check_beside(lun, &config->luns[i], &reason))
			return error_set(error, -EBUSY, "%s", reason.text);
	return 0;
}

/* Before anything is made for the unit. */
static int check_target(const struct server *server, const struct config *wanted,
			const struct lun_config *lun, struct error_text *error)
{
	if (server_target_of(server, lun) &&
	    access_lacks_account(server->config, wanted, lun->target))
		return error_set(error, -EBUSY,
				 "LUN %u waits for the CHAP account of its target: reload again",
				 lun->number);
	if (server_target_of(server, lun))
		return 0;
	if (!lun->target[0])
		return error_set(error, -ENXIO,
				 "LUN %u: no unit of %s is on [target]: write LUN %u into it and "
				 "reload",
				 lun->number, server->config->source, lun->number);
	return error_set(error, -ENXIO, "LUN %u: target %s is not served yet: a reload serves it",
			 lun->number, lun->target);
}

/* The module says why, in a line that tgtd has logged before it answered. */
static int create(struct server *server, const struct lun_config *lun, struct error_text *error)
{
	int result;

	server->tgtd.last_words[0] = '\0';
	result = server_create_lun(server, lun, error);
	if (result > 0 && server->tgtd.last_words[0])
		error_set(error, 0, "%s", server->tgtd.last_words);
	return result > 0 ? -EINVAL : result;
}

int units_find_version(struct server *server, const struct lun_config *lun, uint64_t partition,
		       const char *version, uint64_t *number, struct error_text *error)
{
	char question[128], *answer;
	int refusal, result;

	snprintf(question, sizeof(question), "version %" PRIu64 " %s", partition, version);
	result = tgt_lun_ask(&server->tgtd, lun->number, question, &answer, &refusal, error);
	if (!result && sscanf(answer, "version %" SCNu64, number) != 1)
		result = error_set(error, -EPROTO, "the module's answer is no version");
	free(answer);
	return admin_result(result, refusal);
}

/* A device that is to be made has no versions, and is not made for that. */
static int check_device_of_version(const struct lun_config *lun, struct error_text *error)
{
	const char *version = lun->options.disk.version;

	if (!version[0] || access(lun->image, F_OK) == 0)
		return 0;
	return error_set(error, -ENOENT,
			 "version = %s: the device %s is not there yet, so it has no versions",
			 version, lun->image);
}

/*
 * A start serves a disk of a version that somebody has dropped, which is not ready. Who adds one
 * has mistyped its name.
 */
static int check_version(struct server *server, const struct lun_config *lun,
			 struct error_text *error)
{
	const char *version = lun->options.disk.version;
	uint64_t partition = config_partition(lun), number;
	int result;

	if (!version[0])
		return 0;
	result = units_find_version(server, lun, partition, version, &number, error);
	if (result == -ENOENT)
		error_set(error, result,
			  "partition 0x%" PRIx64 " has no version '%s': `muninnctl versions URL "
			  "0x%" PRIx64 "` shows those that it has",
			  partition, version, partition);
	return result;
}

int units_add(struct server *server, const struct config *wanted, const struct lun_config *lun,
	      struct error_text *error)
{
	struct config *config = server->config;
	struct error_text ignored;
	int result;

	if (units_find(server, lun->number))
		return error_set(error, -EEXIST, "there is a LUN %u already", lun->number);
	if (config->lun_count == CONFIG_LUNS_MAX)
		return error_set(error, -ENOSPC, "there are %d units already, which is the most",
				 CONFIG_LUNS_MAX);
	result = check_target(server, wanted, lun, error);
	if (!result)
		result = check_neighbours(server, lun, error);
	if (!result)
		result = check_device_of_version(lun, error);
	if (!result && !find_neighbour(server, lun))
		result = server_prepare_image(server, lun, error);
	if (!result)
		result = create(server, lun, error);
	if (!result) {
		config->luns[config->lun_count++] = *lun;
		result = check_version(server, lun, error);
		if (result)
			units_remove(server, lun->number, &ignored);
	}
	server_tell_status(server);
	return result;
}

static int delete_lun(struct server *server, unsigned int number, struct error_text *error)
{
	int64_t deadline_ms = clock_ms() + BUSY_MS;
	int answer_ms = server->tgtd.answer_ms, result;

	server->tgtd.answer_ms = CLOSE_MS;
	while ((result = tgt_lun_delete(&server->tgtd, number, error)) == TGT_BUSY &&
	       clock_ms() < deadline_ms)
		if (tgtd_wait(&server->tgtd, -1, RETRY_MS) == TGTD_ENDED)
			break;
	server->tgtd.answer_ms = answer_ms;
	if (result == TGT_BUSY)
		error_set(error, -EBUSY,
			  "LUN %u: its commands have gone on for %d s: try again, or end its "
			  "sessions first (muninnctl session kick)",
			  number, BUSY_MS / 1000);
	return admin_result(result, 0);
}

int units_remove(struct server *server, unsigned int number, struct error_text *error)
{
	struct config *config = server->config;
	struct lun_config *lun = units_find(server, number);
	int result;

	if (!lun)
		return error_set(error, -ENOENT, "there is no LUN %u", number);
	result = delete_lun(server, number, error);
	server_alive();
	if (result)
		return result;
	memmove(lun, lun + 1, (size_t)(config->luns + --config->lun_count - lun) * sizeof(*lun));
	server_tell_status(server);
	return 0;
}

/* ---- a device that grows ---- */

/* What becomes of a unit on it. */
enum fate { FATE_NONE, FATE_AWAY, FATE_LOST };

struct growing {
	struct server *server;
	const char *image;
	enum fate fates[CONFIG_LUNS_MAX]; /* as config->luns, which keeps its order meanwhile */
};

static bool is_on(const struct growing *growing, const struct lun_config *lun)
{
	return !strcmp(lun->image, growing->image);
}

/* OSDs last, as they can't come back to a device that disks use. */
static int take_units_away(struct growing *growing, struct error_text *error)
{
	const struct config *config = growing->server->config;
	int result = 0;

	for (int type = UNIT_TYPES; type-- > 0;)
		for (unsigned int i = 0; !result && i < config->lun_count; i++) {
			const struct lun_config *lun = &config->luns[i];

			if (lun->type != &unit_types[type] || !is_on(growing, lun))
				continue;
			result = delete_lun(growing->server, lun->number, error);
			growing->fates[i] = result ? FATE_NONE : FATE_AWAY;
			server_alive();
		}
	return result;
}

/* Also for a tgtd that is started again. */
static void set_device_size(const struct growing *growing, uint64_t bytes, bool is_set)
{
	struct config *config = growing->server->config;

	for (unsigned int i = 0; i < config->lun_count; i++) {
		if (!is_on(growing, &config->luns[i]))
			continue;
		config->luns[i].size_bytes = bytes;
		config->luns[i].size_is_set = is_set;
	}
}

static int let_grow(const struct growing *growing, const struct lun_config *unit, uint64_t bytes,
		    struct error_text *error)
{
	const uint64_t had_bytes = unit->size_bytes;
	const bool was_set = unit->size_is_set;
	int result;

	set_device_size(growing, bytes, true);
	result = server_prepare_image(growing->server, unit, error);
	if (result)
		set_device_size(growing, had_bytes, was_set);
	return result;
}

/* In the order of a start. The last failure that there was. */
static int serve_again(struct growing *growing, struct error_text *error)
{
	const struct config *config = growing->server->config;
	int result = 0;

	for (int type = 0; type < UNIT_TYPES; type++)
		for (unsigned int i = 0; i < config->lun_count; i++) {
			int made;

			if (growing->fates[i] != FATE_AWAY ||
			    config->luns[i].type != &unit_types[type])
				continue;
			made = create(growing->server, &config->luns[i], error);
			growing->fates[i] = made ? FATE_LOST : FATE_NONE;
			result = made ? made : result;
		}
	return result;
}

/* Whether an OSD is lost whose device others use: only a start serves it again. */
static bool needs_start(const struct growing *growing)
{
	const struct config *config = growing->server->config;
	bool is_osd_lost = false, is_used = false;

	for (unsigned int i = 0; i < config->lun_count; i++) {
		const bool is_lost = growing->fates[i] == FATE_LOST;

		is_osd_lost |= is_lost && config->luns[i].type == &unit_types[UNIT_TYPE_OSD];
		is_used |= !is_lost && is_on(growing, &config->luns[i]);
	}
	return is_osd_lost && is_used;
}

/*
 * Units that tgtd has refused are served no more, so that a reload adds them. A tgtd that has ended
 * or hangs is started again with them.
 */
static int report_lost(struct growing *growing, int result, const struct error_text *reason,
		       struct error_text *error)
{
	struct config *config = growing->server->config;
	const bool is_refused = result == -EINVAL;
	const char *cure = !is_refused ? "and served when tgtd has been started again"
			   : needs_start(growing)
				   ? "and a restart of the service serves it when that is mended"
				   : "and `muninnctl reload` serves it when that is mended";
	const struct error_text before = *error;
	char names[80] = "";
	unsigned int kept = 0;

	for (unsigned int i = 0; i < config->lun_count; i++) {
		const bool is_lost = growing->fates[i] == FATE_LOST;
		size_t length = strlen(names);

		if (is_lost)
			snprintf(names + length, sizeof(names) - length, "%s%u",
				 length ? ", " : "LUN ", config->luns[i].number);
		if (!is_lost || !is_refused)
			memmove(&config->luns[kept++], &config->luns[i], sizeof(config->luns[i]));
	}
	config->lun_count = kept;
	server_tell_status(growing->server);
	return error_set(error, -EIO,
			 "%.150s%s%s not served again: %.150s; the device is whole, %s",
			 before.text, before.text[0] ? "; " : "the device has grown; ", names,
			 reason->text, cure);
}

int units_grow_device(struct server *server, const struct lun_config *unit, uint64_t bytes,
		      struct error_text *error)
{
	struct growing growing = { .server = server, .image = unit->image };
	struct error_text reason = { "" };
	int result, served;

	error->text[0] = '\0';
	result = take_units_away(&growing, error);
	if (!result)
		result = let_grow(&growing, unit, bytes, error);
	served = serve_again(&growing, &reason);
	return served ? report_lost(&growing, served, &reason, error) : result;
}

/* ---- disks ---- */

int units_grow(struct server *server, unsigned int number, uint64_t bytes, struct error_text *error)
{
	struct lun_config *lun = units_find(server, number);
	char question[64], *answer;
	int refusal, result;

	if (!lun)
		return error_set(error, -ENOENT, "there is no LUN %u", number);
	if (bytes < LUN_SIZE_MIN || bytes > LUN_SIZE_MAX)
		return error_set(error, -EINVAL, "a disk has 1 MiB to 1024 TiB");
	snprintf(question, sizeof(question), "grow %" PRIu64, bytes);
	result = tgt_lun_ask(&server->tgtd, number, question, &answer, &refusal, error);
	free(answer);
	/* For a tgtd that is started again. */
	if (!result)
		lun->options.disk.bytes = bytes;
	return admin_result(result, refusal);
}

int units_disk_bytes(struct server *server, unsigned int number, uint64_t *bytes,
		     struct error_text *error)
{
	const char *line;
	char *facts;
	int refusal, result = tgt_lun_ask(&server->tgtd, number, "facts", &facts, &refusal, error);

	if (result)
		return admin_result(result, refusal);
	line = strstr(facts, "\nbytes ");
	if (!line || sscanf(line, "\nbytes %" SCNu64, bytes) != 1)
		result = error_set(error, -EINVAL, "LUN %u is no disk", number);
	free(facts);
	return result;
}
