/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Reads the configuration file into one flat structure. */
#include "daemon/config.h"

#include <assert.h>
#include <errno.h>
#include <grp.h>
#include <ini.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"
#include "daemon/config_keys.h"
#include "wire/keys_file.h"

/*
 * inih cuts longer names of sections without a word, and two devices would become one. So `device
 * NAME` has 42 bytes for NAME.
 */
#define SECTION_BYTES 50 /* with NUL */
/* conf/muninn.sysusers */
#define SERVICE_GROUP "muninn"
/* With the label of a target behind it. */
#define TARGET_NAMES "iqn.2014-06.local.muninn:"
/* Of devices that are created: six records a page. */
#define RECORD_BYTES_DEFAULT 640

/* ---- defaults ---- */

void config_defaults(struct config *config)
{
	memset(config, 0, sizeof(*config));
	strcpy(config->source, "built-in configuration");
	strcpy(config->state_dir, "/var/lib/muninn");
	strcpy(config->run_dir, "/run/muninn");
	strcpy(config->tgtd, "/usr/sbin/tgtd");
	strcpy(config->module, CONFIG_MODULE_INSTALLED);
	strcpy(config->allocator, ALLOCATOR_JEMALLOC);
	config->log_level = LOG_LEVEL_INFO;
	config->stop_timeout = 60;
	config->watchdog = 60;
	strcpy(config->portals[0].address, "127.0.0.1");
	config->portals[0].port = 3260;
	config->portal_count = 1;
	strcpy(config->targets[0].name, TARGET_NAMES "osd");
	config->target_count = 1;
	limits_default(&config->limits);
}

static void lun_defaults(struct lun_config *lun)
{
	memset(lun, 0, sizeof(*lun));
	lun->type = &unit_types[UNIT_TYPE_OSD];
	lun->size_bytes = UINT64_C(8) << 30;
	lun->geometry = nand_geometry_default(LUN_SIZE_MIN);
	lun->geometry.blocks = 0;
	lun_options_default(&lun->options);
	/* What a served unit stores is often small: onodes with their data among it. */
	lun->options.engine.muninn.record_bytes = RECORD_BYTES_DEFAULT;
	lun->options.engine.muninn.index = INDEX_DEFAULT;
	lun->options.engine.muninn.bloom.hot_rows = BLOOM_HOT_ROWS_SPREAD;
}

static struct lun_config *add_lun(struct config *config, unsigned int number, int line)
{
	struct lun_config *lun;

	assert(config->lun_count < CONFIG_LUNS_MAX);
	lun = &config->luns[config->lun_count++];
	lun_defaults(lun);
	lun->number = number;
	lun->line = line;
	snprintf(lun->image, sizeof(lun->image), "lun%u.img", number);
	return lun;
}

void config_add_default_lun(struct config *config)
{
	add_lun(config, 1, 0);
}

static struct lun_config *add_device(struct config *config, const char *name, int line)
{
	struct lun_config *device = &config->devices[config->device_count++];

	lun_defaults(device);
	device->line = line;
	strcpy(device->device, name);
	snprintf(device->image, sizeof(device->image), "%s.img", name);
	return device;
}

struct lun_config *config_find_device(struct config *config, const char *name)
{
	for (unsigned int i = 0; i < config->device_count; i++)
		if (!strcmp(config->devices[i].device, name))
			return &config->devices[i];
	return NULL;
}

static struct target_config *add_target(struct config *config, const char *label, int line)
{
	struct target_config *target = &config->targets[config->target_count++];

	target->line = line;
	strcpy(target->label, label);
	snprintf(target->name, sizeof(target->name), TARGET_NAMES "%s", label);
	return target;
}

struct target_config *config_find_target(const struct config *config, const char *label)
{
	for (unsigned int i = 0; i < config->target_count; i++)
		if (!strcmp(config->targets[i].label, label))
			return (struct target_config *)&config->targets[i];
	return NULL;
}

bool config_has_units(const struct config *config, const struct target_config *target)
{
	for (unsigned int i = 0; i < config->lun_count; i++)
		if (!strcmp(config->luns[i].target, target->label))
			return true;
	return false;
}

/* ---- the file ---- */

/* Far more than sections for all units take. */
#define FILE_BYTES_MAX (1U << 20)

/* Which of config_keys a section has. */
struct key_set {
	bool has[CONFIG_KEYS_MAX];
};

/* State of one pass through a file, and through sections that others have added. */
struct reading {
	FILE *file;
	const char *source;        /* for messages; NULL: what is added has no lines */
	unsigned int units_before; /* of the file, while added sections are read */
	int line;
	bool line_too_long;
	struct config *config;
	struct key_set keys_seen; /* outside of sections with a number or name */
	struct key_set target_keys_seen[CONFIG_TARGETS_MAX];
	struct key_set lun_keys_seen[CONFIG_LUNS_MAX], device_keys_seen[CONFIG_DEVICES_MAX];
	/* For all units: the values in [nand] and [engine] as they stand there; else NULL. */
	char *for_all[CONFIG_KEYS_MAX];
	char section[SECTION_BYTES]; /* that is being read */
	int section_line;            /* 0 = none yet */
	bool section_has_keys;
	int error_line; /* 0 = none yet */
	struct error_text reason;
};

static_assert(sizeof("device ") - 1 + CONFIG_DEVICE_BYTES == SECTION_BYTES, "names are whole");
static_assert(sizeof("target ") == sizeof("device "), "names of targets too");

/* "device NAME" → the device, which is added if it is new. */
static struct lun_config *section_device(struct reading *reading, const char *name,
					 struct error_text *error)
{
	struct lun_config *device;

	if (!config_is_device_name(name)) {
		error_set(error, -EINVAL,
			  "section [device %s]: a name has 1 to %d letters, digits and . : - _",
			  name, CONFIG_DEVICE_BYTES - 1);
		return NULL;
	}
	device = config_find_device(reading->config, name);
	if (!device && reading->config->device_count == CONFIG_DEVICES_MAX) {
		error_set(error, -EINVAL, "more than %d devices", CONFIG_DEVICES_MAX);
		return NULL;
	}
	return device ? device : add_device(reading->config, name, reading->line);
}

/* "target LABEL" → the target, which is added if it is new. */
static struct target_config *section_target(struct reading *reading, const char *label,
					    struct error_text *error)
{
	struct target_config *target;

	if (!config_is_device_name(label)) {
		error_set(error, -EINVAL,
			  "section [target %s]: a name has 1 to %d letters, digits and . : - _",
			  label, CONFIG_DEVICE_BYTES - 1);
		return NULL;
	}
	target = config_find_target(reading->config, label);
	if (!target && reading->config->target_count == CONFIG_TARGETS_MAX) {
		error_set(error, -EINVAL, "more than %d targets", CONFIG_TARGETS_MAX);
		return NULL;
	}
	return target ? target : add_target(reading->config, label, reading->line);
}

#define DEVICE_SECTION "device "
#define TARGET_SECTION "target "

static bool is_target_section(const char *section)
{
	return !strncmp(section, TARGET_SECTION, strlen(TARGET_SECTION));
}

static bool is_device_section(const char *section)
{
	return !strncmp(section, DEVICE_SECTION, strlen(DEVICE_SECTION));
}

/* "lun N" or "device NAME" → the unit or device, which is added if it is new. */
static struct lun_config *section_lun(struct reading *reading, const char *section,
				      struct error_text *error)
{
	struct config *config = reading->config;
	struct error_text ignored;
	uint32_t number;

	if (is_device_section(section))
		return section_device(reading, section + strlen(DEVICE_SECTION), error);

	if (strncmp(section, "lun ", 4) ||
	    lun_option_number(section + 4, 1, CONFIG_LUN_NUMBER_MAX, &number, &ignored)) {
		error_set(
			error, -EINVAL,
			"section [%s] is unknown; there are [daemon], [target], [target NAME], "
			"[limits], [nand], [engine], [device NAME] and [lun N] with N from 1 to %d",
			section, CONFIG_LUN_NUMBER_MAX);
		return NULL;
	}
	for (unsigned int i = 0; i < config->lun_count; i++)
		if (config->luns[i].number == number) {
			if (i >= reading->units_before)
				return &config->luns[i];
			error_set(error, -EEXIST,
				  "%s has [lun %u]: a reload or the next start serves it",
				  config->source, number);
			return NULL;
		}
	if (config->lun_count == CONFIG_LUNS_MAX) {
		error_set(error, -EINVAL, "more than %d logical units", CONFIG_LUNS_MAX);
		return NULL;
	}
	return add_lun(config, number, reading->line);
}

static bool is_plain_section(const char *section)
{
	for (size_t i = 0; i < config_key_count; i++)
		if (strcmp(config_keys[i].section, "lun") &&
		    strcmp(config_keys[i].section, "device") &&
		    !config_key_is_of_target(&config_keys[i]) &&
		    !strcmp(config_keys[i].section, section))
			return true;
	return false;
}

static bool belongs(const struct config_key *key, const char *kind)
{
	return !strcmp(key->section, kind) ||
	       (!strcmp(kind, "target") && config_key_is_of_target(key)) ||
	       (!strcmp(kind, "lun") && config_key_is_of_unit(key)) ||
	       (!strcmp(kind, "device") && config_key_is_of_device(key));
}

/* Is it one of those that a section has beside [nand] and [engine]? */
static bool is_listed(const struct config_key *key, const char *kind)
{
	return !strcmp(key->section, kind) ||
	       (!strcmp(kind, "target") && config_key_is_of_target(key)) ||
	       (!strcmp(kind, "lun") && !strcmp(key->section, "device"));
}

/* Names the possible keys, because most wrong keys are misspelt or stand in the wrong section. */
static int refuse_key(const char *section, const char *kind, const char *name,
		      struct error_text *error)
{
	char names[400];
	size_t length = 0;

	for (size_t i = 0; i < config_key_count; i++) {
		if (!strcmp(config_keys[i].name, name))
			return error_set(error, -EINVAL, "[%s] has no key %s; it belongs to [%s]",
					 section, name,
					 !strcmp(config_keys[i].section, "lun") ? "lun N"
					 : config_key_is_of_target(&config_keys[i])
						 ? "target] or [target NAME"
					 : !strcmp(config_keys[i].section, "device")
						 ? "lun N] or [device NAME"
						 : config_keys[i].section);
		if (is_listed(&config_keys[i], kind) && length < sizeof(names))
			length += (size_t)snprintf(names + length, sizeof(names) - length, "%s%s",
						   length ? ", " : "", config_keys[i].name);
	}
	return error_set(error, -EINVAL, "[%s] has no key %s; it has %s%s", section, name, names,
			 strcmp(kind, "lun") && strcmp(kind, "device")
				 ? ""
				 : ", and all of [nand] and [engine]");
}

/*
 * A value for all units. Tries it on a unit that nobody uses, to find out what is wrong with it,
 * and keeps it until all units are known.
 */
static int set_for_all(struct reading *reading, size_t i, const char *value,
		       struct error_text *error)
{
	struct lun_config scratch;
	int result;

	lun_defaults(&scratch);
	result = config_keys[i].parse(&config_keys[i], value, (char *)&scratch, error);
	if (result)
		return result;
	reading->for_all[i] = strdup(value);
	return reading->for_all[i] ? 0 : error_set(error, -ENOMEM, "out of memory");
}

/* `lun`, `target`: the unit or target of the section; NULL: another section. */
static int set_value(struct reading *reading, size_t i, const char *value, struct lun_config *lun,
		     struct target_config *target, struct error_text *error)
{
	const struct config_key *key = &config_keys[i];

	if (config_key_is_of_target(key))
		return key->parse(key, value,
				  (char *)(target ? target : &reading->config->targets[0]), error);

	if (!lun && config_key_is_of_unit(key))
		return set_for_all(reading, i, value, error);
	return key->parse(key, value, lun ? (char *)lun : (char *)reading->config, error);
}

/* What a section is about: a target, a unit or device, or neither. */
struct subject {
	const char *kind; /* as belongs() has it */
	struct key_set *seen;
	struct target_config *target;
	struct lun_config *lun;
};

static int find_subject(struct reading *reading, const char *section, struct subject *subject,
			struct error_text *error)
{
	struct config *config = reading->config;

	*subject = (struct subject){ .kind = section, .seen = &reading->keys_seen };
	if (is_plain_section(section))
		return 0;
	if (is_target_section(section)) {
		subject->target = section_target(reading, section + strlen(TARGET_SECTION), error);
		if (!subject->target)
			return -EINVAL;
		subject->kind = CONFIG_EACH_TARGET;
		subject->seen = &reading->target_keys_seen[subject->target - config->targets];
		return 0;
	}
	subject->lun = section_lun(reading, section, error);
	if (!subject->lun)
		return -EINVAL;
	subject->kind = subject->lun->number ? "lun" : "device";
	subject->seen = subject->lun->number
				? &reading->lun_keys_seen[subject->lun - config->luns]
				: &reading->device_keys_seen[subject->lun - config->devices];
	return 0;
}

static int set_key(struct reading *reading, const char *section, const char *name,
		   const char *value, struct error_text *error)
{
	struct error_text reason = { "" };
	struct subject subject;
	int result;

	if (!*section)
		return error_set(error, -EINVAL, "%s stands before the first [section]", name);
	if (find_subject(reading, section, &subject, error))
		return -EINVAL;
	for (size_t i = 0; i < config_key_count; i++) {
		if (!belongs(&config_keys[i], subject.kind) || strcmp(config_keys[i].name, name))
			continue;
		if (subject.seen->has[i])
			return error_set(error, -EINVAL, "%s is set twice in [%s]", name, section);
		subject.seen->has[i] = true;
		result = set_value(reading, i, value, subject.lun, subject.target, &reason);
		return result ? error_set(error, result, "%s: %s", name, reason.text) : 0;
	}
	return refuse_key(section, subject.kind, name, error);
}

/* A value for all units goes to the units whose section does not have it, wherever that stands. */
static void spread_default(const struct reading *reading, size_t i, struct lun_config *luns,
			   unsigned int count, const struct key_set *seen)
{
	struct error_text none;

	for (unsigned int lun = 0; lun < count; lun++)
		if (!seen[lun].has[i])
			config_keys[i].parse(&config_keys[i], reading->for_all[i],
					     (char *)&luns[lun], &none);
}

static void spread_defaults(struct reading *reading)
{
	struct config *config = reading->config;

	for (size_t i = 0; i < config_key_count; i++) {
		if (!reading->for_all[i])
			continue;
		spread_default(reading, i, config->luns, config->lun_count, reading->lun_keys_seen);
		spread_default(reading, i, config->devices, config->device_count,
			       reading->device_keys_seen);
		free(reading->for_all[i]);
		reading->for_all[i] = NULL;
	}
}

/* What a unit says of its own device, if it has none. */
static int check_own_device(const struct reading *reading, struct error_text *error)
{
	const struct config *config = reading->config;

	for (unsigned int lun = 0; lun < config->lun_count; lun++)
		for (size_t i = 0; config->luns[lun].device[0] && i < config_key_count; i++)
			if (reading->lun_keys_seen[lun].has[i] &&
			    config_key_is_of_device(&config_keys[i]))
				return error_set(error, -EINVAL,
						 "%s: [lun %u] has device = %s, so %s belongs to "
						 "[device %s]",
						 config->source, config->luns[lun].number,
						 config->luns[lun].device, config_keys[i].name,
						 config->luns[lun].device);
	return 0;
}

/*
 * inih reports only keys, so it would pass over a section without any. That may be a missing unit
 * or a misspelt name. The general sections may be empty.
 */
static void end_section(struct reading *reading)
{
	const char *section = reading->section;

	if (reading->section_line == 0 || reading->section_has_keys || is_plain_section(section))
		return;
	reading->error_line = reading->section_line;
	if (is_target_section(section))
		error_set(&reading->reason, -EINVAL,
			  "[%s] is empty; write name = NAME below it, or remove it", section);
	else if (is_device_section(section))
		error_set(&reading->reason, -EINVAL,
			  "[%s] is empty; write size = BYTES below it, or remove it", section);
	else if (section_lun(reading, section, &reading->reason))
		error_set(&reading->reason, -EINVAL,
			  "[%s] is empty; write type = osd below it, or remove it", section);
}

/* Notes whether the line begins a section, or stands in one. */
static void note_line(struct reading *reading, const char *line)
{
	const char *text = line + strspn(line, " \t\r\n\f\v"), *end = strchr(text, ']');

	if (text[0] != '[' || !end) {
		/* A wrong line has a message of its own. */
		if (text[0] != '\0' && text[0] != ';' && text[0] != '#')
			reading->section_has_keys = true;
		return;
	}
	end_section(reading);
	if (!reading->error_line && end - text - 1 >= SECTION_BYTES) {
		reading->error_line = reading->line;
		error_set(&reading->reason, -EINVAL,
			  "a section's name has %d characters at most, with `device ` before that "
			  "of a device",
			  SECTION_BYTES - 1);
	}
	snprintf(reading->section, sizeof(reading->section), "%.*s", (int)(end - text - 1),
		 text + 1);
	reading->section_line = reading->line;
	reading->section_has_keys = false;
}

static char *read_line(char *line, int bytes, void *stream)
{
	struct reading *reading = stream;
	size_t length;

	/* The first error counts; what follows may be its consequence. */
	if (reading->error_line || reading->line_too_long)
		return NULL;
	if (!fgets(line, bytes, reading->file)) {
		end_section(reading);
		return NULL;
	}
	reading->line++;
	length = strlen(line);
	if (length > 0 && line[length - 1] != '\n' && !feof(reading->file)) {
		reading->line_too_long = true;
		return NULL;
	}
	note_line(reading, line);
	return reading->error_line ? NULL : line;
}

/* Called for every NAME = VALUE; 0 = error, as inih wants it. */
static int on_key(void *user, const char *section, const char *name, const char *value)
{
	struct reading *reading = user;

	if (reading->error_line)
		return 0;
	if (set_key(reading, section, name, value, &reading->reason)) {
		reading->error_line = reading->line;
		return 0;
	}
	return 1;
}

/* A sentence about a line. */
static int blame(const struct reading *reading, int line, const char *reason,
		 struct error_text *error)
{
	if (!reading->source)
		return error_set(error, -EINVAL, "%s", reason);
	return error_set(error, -EINVAL, "%s:%d: %s", reading->source, line, reason);
}

static int read_file(struct reading *reading, struct error_text *error)
{
	struct error_text reason = { "" };
	int result;

	/*
	 * A line that begins with blanks is a key like any other, and ; inside a value is part of
	 * it.
	 */
	ini_allow_multiline = false;
	ini_allow_inline_comments = false;
	ini_max_line = CONFIG_LINE_BYTES;
	result = ini_parse_stream(read_line, reading, on_key, reading);
	if (reading->line_too_long) {
		error_set(&reason, 0, "the line is longer than %d bytes", CONFIG_LINE_BYTES - 2);
		return blame(reading, reading->line, reason.text, error);
	}
	/* A line that is neither may be a section without its ], and what follows wrong by that. */
	if (reading->error_line && (result <= 0 || result >= reading->error_line))
		return blame(reading, reading->error_line, reading->reason.text, error);
	if (result > 0)
		return blame(reading, result,
			     "neither [section] nor KEY = VALUE; comments begin with # or ;",
			     error);
	if (result < 0 || ferror(reading->file))
		return error_set(error, -ENOMEM, "%s: out of memory", reading->config->source);
	return 0;
}

/* What reads lines would take a NUL byte for the end of one, and lose what follows. */
static int check_bytes(const struct reading *reading, const char *text, size_t bytes,
		       struct error_text *error)
{
	const char *nul = memchr(text, '\0', bytes);
	int line = 1;

	if (!nul)
		return 0;
	for (const char *at = text; at < nul; at++)
		line += *at == '\n';
	return blame(reading, line,
		     "there is a NUL byte in the line: remove it, or save the file as UTF-8 text",
		     error);
}

/* Reads a text as the file, or behind it. */
static int read_text(struct reading *reading, const char *source, const char *text, size_t bytes,
		     struct error_text *error)
{
	int result;

	reading->source = source;
	reading->line = 0;
	reading->section_line = 0;
	result = check_bytes(reading, text, bytes, error);
	if (result)
		return result;
	/* An empty stream is no stream to every libc. */
	reading->file = bytes ? fmemopen((void *)(uintptr_t)text, bytes, "r")
			      : fopen("/dev/null", "re");
	if (!reading->file)
		return error_set(error, -errno, "%s: %s", reading->config->source, strerror(errno));
	result = read_file(reading, error);
	fclose(reading->file);
	return result;
}

static int read_added(struct reading *reading, const char *added, struct error_text *error)
{
	struct config *config = reading->config;
	int result;

	reading->units_before = config->lun_count;
	result = read_text(reading, NULL, added, strlen(added), error);
	for (unsigned int i = reading->units_before; i < config->lun_count; i++) {
		config->luns[i].added = true;
		config->luns[i].line = 0;
	}
	return result;
}

/* The key of a secret that is in the file itself; NULL: there is none. */
static const char *secret_key(const struct config *config)
{
	for (unsigned int i = 0; i < config->target_count; i++) {
		if (config->targets[i].chap.secret[0])
			return "chap_secret";
		if (config->targets[i].mutual.secret[0])
			return "mutual_secret";
	}
	return config->discovery.secret[0] ? "discovery_secret" : NULL;
}

/*
 * Who may read the file knows the secret. The group of the service may: its members are its user
 * alone. Where that group is, the advice leaves the file to the service also if root checks it; a
 * user with a file and a service of its own can't give a file to that group, and needs not.
 */
void config_warn_of_readers(const struct config_file *file, const struct config *config)
{
	const char *source = config->source, *key = secret_key(config);
	const struct stat *status = &file->status;
	const struct group *own;
	uid_t user = geteuid();

	if (!key || !file->status.st_mode)
		return;
	own = getgrnam(SERVICE_GROUP);
	if (!(status->st_mode & S_IROTH) &&
	    !(status->st_mode & S_IRGRP && !(own && own->gr_gid == status->st_gid)))
		return;
	if (own && (user == 0 || user != status->st_uid))
		log_line(LOG_LEVEL_WARNING,
			 "%s holds %s and others than its owner can read it: "
			 "chgrp " SERVICE_GROUP " %s; chmod 640 %s",
			 source, key, source, source);
	else
		log_line(LOG_LEVEL_WARNING,
			 "%s holds %s and others than its owner can read it: chmod 600 %s", source,
			 key, source);
}

/* ---- the file, and what it says ---- */

static int read_whole(FILE *stream, struct config_file *file, struct error_text *error)
{
	file->text = malloc(FILE_BYTES_MAX + 1);
	if (!file->text)
		return error_set(error, -ENOMEM, "%s: out of memory", file->source);
	file->bytes = fread(file->text, 1, FILE_BYTES_MAX + 1, stream);
	if (ferror(stream))
		return error_set(error, -EIO, "%s: %s", file->source, strerror(errno));
	if (file->bytes > FILE_BYTES_MAX)
		return error_set(error, -EFBIG, "%s: the file has more than %u bytes", file->source,
				 FILE_BYTES_MAX);
	if (fstat(fileno(stream), &file->status))
		return error_set(error, -errno, "%s: %s", file->source, strerror(errno));
	return 0;
}

int config_file_load(const char *path, struct config_file *file, struct error_text *error)
{
	FILE *stream;
	int result;

	memset(file, 0, sizeof(*file));
	if (strlen(path) >= sizeof(file->source))
		return error_set(error, -ENAMETOOLONG, "%s: the name is too long", path);
	strcpy(file->source, path);
	stream = fopen(path, "re");
	if (!stream)
		return error_set(error, -errno, "%s: %s%s", path, strerror(errno),
				 errno == ENOENT ? "; --config names another file, --defaults "
						   "does without"
						 : "");
	result = read_whole(stream, file, error);
	fclose(stream);
	if (result)
		config_file_free(file);
	return result;
}

/* It may hold a secret. */
void config_file_free(struct config_file *file)
{
	if (file->text)
		explicit_bzero(file->text, file->bytes);
	free(file->text);
	file->text = NULL;
}

int config_parse(const struct config_file *file, const char *added, struct config *config,
		 struct error_text *error)
{
	struct reading reading = { .config = config };
	int result;

	config_defaults(config);
	strcpy(config->source, file->source);
	result = read_text(&reading, file->source, file->text, file->bytes, error);
	if (!result && config->lun_count == 0)
		result = error_set(
			error, -EINVAL,
			"%s: there is no logical unit; add a section [lun 1] with type = osd",
			file->source);
	if (!result && added && added[0])
		result = read_added(&reading, added, error);
	spread_defaults(&reading);
	return result ? result : check_own_device(&reading, error);
}

int config_read(const char *path, struct config *config, struct error_text *error)
{
	struct config_file file;
	int result = config_file_load(path, &file, error);

	if (result)
		return result;
	result = config_parse(&file, NULL, config, error);
	config_warn_of_readers(&file, config);
	config_file_free(&file);
	return result;
}
