/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* muninnctl VERB URL [ADDRESS] [ARGUMENTS]: options, connection, and which verb it is. */
#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/ctl/ctl.h"
#include "client/ctl/keyring.h"
#include "client/ctl/places.h"
#include "client/ctl/verbs.h"
#include "client/sg.h"
#include "common/version.h"

enum option_code {
	OPTION_ANY = 256,
	OPTION_AT,
	OPTION_BLOCK_SIZE,
	OPTION_CHECKSUM,
	OPTION_CHUNK,
	OPTION_CLEAN,
	OPTION_COLLECTION,
	OPTION_CONTENTS,
	OPTION_COUNT,
	OPTION_CREDENTIAL,
	OPTION_DEVICE,
	OPTION_EXCLUDE,
	OPTION_EXPIRES,
	OPTION_FILE,
	OPTION_FORCE,
	OPTION_REPAIR,
	OPTION_HEX,
	OPTION_INITIAL_R2T_NO,
	OPTION_INITIATOR,
	OPTION_JSON,
	OPTION_KEY,
	OPTION_KEY_OF,
	OPTION_KEY_VERSION,
	OPTION_DRY_RUN,
	OPTION_KEEP_LAST,
	OPTION_KEEP, /* and those that follow, by osd_schedule_kind */
	OPTION_LAYOUT = OPTION_KEEP + OSD_SCHEDULE_KINDS,
	OPTION_LENGTH,
	OPTION_LOG,
	OPTION_LUN,
	OPTION_NAME,
	OPTION_NO_IMMEDIATE_DATA,
	OPTION_NUMBER,
	OPTION_OFFSET,
	OPTION_ONE_FILE_SYSTEM,
	OPTION_OSD1,
	OPTION_PERMISSIONS,
	OPTION_PROGRESS,
	OPTION_QUEUE_DEPTH,
	OPTION_RAW,
	OPTION_READ_ONLY,
	OPTION_REGEX,
	OPTION_REMOVE,
	OPTION_REPLACE,
	OPTION_SECURITY,
	OPTION_SOCKET,
	OPTION_SVG,
	OPTION_TEXT,
	OPTION_TIMEOUT,
	OPTION_UPDATE,
	OPTION_VERSION,
	OPTION_WRITABLE,
	OPTION_YES,
};

static const struct option long_options[] = {
	{ "any", no_argument, NULL, OPTION_ANY },
	{ "at", required_argument, NULL, OPTION_AT },
	{ "block-size", required_argument, NULL, OPTION_BLOCK_SIZE },
	{ "checksum", no_argument, NULL, OPTION_CHECKSUM },
	{ "chunk", required_argument, NULL, OPTION_CHUNK },
	{ "clean", no_argument, NULL, OPTION_CLEAN },
	{ "collection", no_argument, NULL, OPTION_COLLECTION },
	{ "contents", no_argument, NULL, OPTION_CONTENTS },
	{ "count", required_argument, NULL, OPTION_COUNT },
	{ "credential", required_argument, NULL, OPTION_CREDENTIAL },
	{ "device", required_argument, NULL, OPTION_DEVICE },
	{ "dry-run", no_argument, NULL, OPTION_DRY_RUN },
	{ "exclude", required_argument, NULL, OPTION_EXCLUDE },
	{ "expires", required_argument, NULL, OPTION_EXPIRES },
	{ "file", required_argument, NULL, OPTION_FILE },
	{ "force", no_argument, NULL, OPTION_FORCE },
	{ "repair", no_argument, NULL, OPTION_REPAIR },
	{ "help", no_argument, NULL, 'h' },
	{ "hex", no_argument, NULL, OPTION_HEX },
	{ "initiator", required_argument, NULL, OPTION_INITIATOR },
	{ "json", no_argument, NULL, OPTION_JSON },
	{ "keep-daily", required_argument, NULL, OPTION_KEEP + OSD_DAILY },
	{ "keep-hourly", required_argument, NULL, OPTION_KEEP + OSD_HOURLY },
	{ "keep-last", required_argument, NULL, OPTION_KEEP_LAST },
	{ "keep-minutely", required_argument, NULL, OPTION_KEEP + OSD_MINUTELY },
	{ "keep-monthly", required_argument, NULL, OPTION_KEEP + OSD_MONTHLY },
	{ "keep-weekly", required_argument, NULL, OPTION_KEEP + OSD_WEEKLY },
	{ "key", required_argument, NULL, OPTION_KEY },
	{ "key-of", required_argument, NULL, OPTION_KEY_OF },
	{ "key-version", required_argument, NULL, OPTION_KEY_VERSION },
	{ "layout", required_argument, NULL, OPTION_LAYOUT },
	{ "length", required_argument, NULL, OPTION_LENGTH },
	{ "log", required_argument, NULL, OPTION_LOG },
	{ "long", no_argument, NULL, 'l' },
	{ "lun", required_argument, NULL, OPTION_LUN },
	{ "name", required_argument, NULL, OPTION_NAME },
	{ "no-immediate-data", no_argument, NULL, OPTION_NO_IMMEDIATE_DATA },
	{ "no-initial-r2t", no_argument, NULL, OPTION_INITIAL_R2T_NO },
	{ "number", no_argument, NULL, OPTION_NUMBER },
	{ "offset", required_argument, NULL, OPTION_OFFSET },
	{ "one-file-system", no_argument, NULL, OPTION_ONE_FILE_SYSTEM },
	{ "osd1", no_argument, NULL, OPTION_OSD1 },
	{ "permissions", required_argument, NULL, OPTION_PERMISSIONS },
	{ "progress", no_argument, NULL, OPTION_PROGRESS },
	{ "queue-depth", required_argument, NULL, OPTION_QUEUE_DEPTH },
	{ "quiet", no_argument, NULL, 'q' },
	{ "raw", no_argument, NULL, OPTION_RAW },
	{ "read-only", no_argument, NULL, OPTION_READ_ONLY },
	{ "recursive", no_argument, NULL, 'R' },
	{ "regex", no_argument, NULL, OPTION_REGEX },
	{ "remove", no_argument, NULL, OPTION_REMOVE },
	{ "replace", no_argument, NULL, OPTION_REPLACE },
	{ "security", required_argument, NULL, OPTION_SECURITY },
	{ "socket", required_argument, NULL, OPTION_SOCKET },
	{ "text", no_argument, NULL, OPTION_TEXT },
	{ "svg", required_argument, NULL, OPTION_SVG },
	{ "timeout", required_argument, NULL, OPTION_TIMEOUT },
	{ "update", no_argument, NULL, OPTION_UPDATE },
	{ "version", no_argument, NULL, OPTION_VERSION },
	{ "writable", no_argument, NULL, OPTION_WRITABLE },
	{ "yes", no_argument, NULL, OPTION_YES },
	{ NULL, 0, NULL, 0 },
};

static int bad_value(const struct ctl *ctl, const char *option, const char *value,
		     const char *expected)
{
	return ctl_fail(ctl, CTL_USAGE, "--%s '%s': %s", option, value, expected);
}

static int take_limited(const struct ctl *ctl, const char *option, uint64_t low, uint64_t high,
			uint64_t *value)
{
	char expected[96];

	if (ctl_parse_size(optarg, value) == 0 && *value >= low && *value <= high)
		return CTL_OK;
	snprintf(expected, sizeof(expected), "a number from %llu to %llu is wanted",
		 (unsigned long long)low, (unsigned long long)high);
	return bad_value(ctl, option, optarg, expected);
}

/* Options of OSD security with a value. False: it is none of them. */
static bool take_security(const struct ctl *ctl, int code, struct ctl_options *options, int *result)
{
	uint64_t value = 0;

	switch (code) {
	case OPTION_CREDENTIAL:
		options->credential = optarg;
		return true;
	case OPTION_EXPIRES:
		*result = take_limited(ctl, "expires", 1, UINT32_MAX, &options->expires_seconds);
		return true;
	case OPTION_KEY:
		options->key = optarg;
		return true;
	case OPTION_KEY_OF:
		*result = take_limited(ctl, "key-of", OSD_FIRST_ID, (UINT64_C(1) << 48) - 1,
				       &options->key_of);
		return true;
	case OPTION_KEY_VERSION:
		*result = take_limited(ctl, "key-version", 0, OSD_WORKING_KEYS - 1, &value);
		options->has_key_version = true;
		options->key_version = (uint8_t)value;
		return true;
	case OPTION_PERMISSIONS:
		options->permissions = optarg;
		return true;
	case OPTION_SECURITY:
		options->security = optarg;
		return true;
	default:
		return false;
	}
}

/* Options of verbs that ask the service on this host, with a value. False: it is none of them. */
static bool take_service(const struct ctl *ctl, int code, struct ctl_options *options, int *result)
{
	switch (code) {
	case OPTION_BLOCK_SIZE:
		*result = take_limited(ctl, "block-size", 512, 4096, &options->block_bytes);
		return true;
	case OPTION_DEVICE:
		options->device = optarg;
		return true;
	case OPTION_LUN:
		*result = take_limited(ctl, "lun", 1, 255, &options->lun);
		return true;
	case OPTION_SOCKET:
		options->socket = optarg;
		return true;
	default:
		return false;
	}
}

/* What `drop` keeps. False: it is none of these options. */
static bool take_keep(const struct ctl *ctl, int code, struct ctl_options *options, int *result)
{
	char name[32] = "keep-last";
	int kind = code - OPTION_KEEP;

	if (code != OPTION_KEEP_LAST && (kind < 0 || kind >= OSD_SCHEDULE_KINDS))
		return false;
	if (code != OPTION_KEEP_LAST)
		snprintf(name, sizeof(name), "keep-%s", osd_schedule_words[kind]);
	*result =
		take_limited(ctl, name, 1, UINT16_MAX,
			     code == OPTION_KEEP_LAST ? &options->keep_last : &options->keep[kind]);
	return true;
}

/* Options with a value. */
static int take_value(const struct ctl *ctl, int code, struct ctl_options *options)
{
	uint64_t value = 0;
	int result = CTL_OK;

	if (take_security(ctl, code, options, &result) ||
	    take_service(ctl, code, options, &result) || take_keep(ctl, code, options, &result))
		return result;
	switch (code) {
	case OPTION_CHUNK:
		result = take_limited(ctl, "chunk", TRANSFER_CHUNK_BYTES_MIN,
				      TRANSFER_CHUNK_BYTES_MAX, &value);
		options->chunk_bytes = value;
		return result;
	case OPTION_COUNT:
		result = take_limited(ctl, "count", 1, UINT16_MAX, &value);
		options->count = (uint32_t)value;
		return result;
	case OPTION_LENGTH:
		options->has_length = true;
		return take_limited(ctl, "length", 0, INT64_MAX, &options->length);
	case OPTION_OFFSET:
		options->has_offset = true;
		return take_limited(ctl, "offset", 0, INT64_MAX, &options->offset);
	case OPTION_QUEUE_DEPTH:
		result = take_limited(ctl, "queue-depth", 1, SESSION_QUEUE_DEPTH_MAX, &value);
		options->client.queue_depth = (uint32_t)value;
		return result;
	case OPTION_TIMEOUT:
		result = take_limited(ctl, "timeout", 1, 1000000, &value);
		options->client.timeout_ms = (uint32_t)value * 1000;
		return result;
	case OPTION_EXCLUDE:
		options->excludes[options->exclude_count++] = optarg;
		return CTL_OK;
	case OPTION_AT:
		options->at = optarg;
		return CTL_OK;
	case OPTION_FILE:
		options->from_file = optarg;
		return CTL_OK;
	case OPTION_LAYOUT:
		options->layout = optarg;
		return CTL_OK;
	case OPTION_NAME:
		options->name = optarg;
		return CTL_OK;
	case OPTION_SVG:
		options->svg = optarg;
		return CTL_OK;
	case OPTION_INITIATOR:
		options->client.initiator_name = optarg;
		return CTL_OK;
	default:
		options->log = optarg;
		return CTL_OK;
	}
}

static int take_option(const struct ctl *ctl, int code, struct ctl_options *options)
{
	switch (code) {
	case 'h':
		options->help = true;
		return CTL_OK;
	case OPTION_VERSION:
		options->version = true;
		return CTL_OK;
	case 'l':
		options->long_list = true;
		return CTL_OK;
	case 'R':
		options->recursive = true;
		return CTL_OK;
	case 'q':
		options->quiet = true;
		return CTL_OK;
	case OPTION_ANY:
		options->any = true;
		return CTL_OK;
	case OPTION_CHECKSUM:
		options->checksum = true;
		return CTL_OK;
	case OPTION_CLEAN:
		options->clean = true;
		return CTL_OK;
	case OPTION_CONTENTS:
		options->contents = true;
		return CTL_OK;
	case OPTION_FORCE:
		options->force = true;
		return CTL_OK;
	case OPTION_REPAIR:
		options->repair = true;
		return CTL_OK;
	case OPTION_HEX:
		options->hexadecimal = true;
		return CTL_OK;
	case OPTION_INITIAL_R2T_NO:
		options->client.no_initial_r2t = true;
		return CTL_OK;
	case OPTION_JSON:
		options->json = true;
		return CTL_OK;
	case OPTION_NO_IMMEDIATE_DATA:
		options->client.no_immediate_data = true;
		return CTL_OK;
	case OPTION_NUMBER:
		options->number = true;
		return CTL_OK;
	case OPTION_OSD1:
		options->client.version = OSD_1;
		return CTL_OK;
	case OPTION_PROGRESS:
		options->progress = true;
		return CTL_OK;
	case OPTION_RAW:
		options->raw = true;
		return CTL_OK;
	case OPTION_COLLECTION:
		options->collection = true;
		return CTL_OK;
	case OPTION_READ_ONLY:
		options->read_only = true;
		return CTL_OK;
	case OPTION_REGEX:
		options->regex = true;
		return CTL_OK;
	case OPTION_REMOVE:
		options->remove = true;
		return CTL_OK;
	case OPTION_REPLACE:
		options->replace = true;
		return CTL_OK;
	case OPTION_TEXT:
		options->text = true;
		return CTL_OK;
	case OPTION_UPDATE:
		options->update = true;
		return CTL_OK;
	case OPTION_ONE_FILE_SYSTEM:
		options->one_file_system = true;
		return CTL_OK;
	case OPTION_DRY_RUN:
		options->dry_run = true;
		return CTL_OK;
	case OPTION_YES:
		options->yes = true;
		return CTL_OK;
	case OPTION_WRITABLE:
		options->writable = true;
		return CTL_OK;
	default:
		return take_value(ctl, code, options);
	}
}

static void note_option(struct ctl_options *options, int code)
{
	static_assert(sizeof(long_options) / sizeof(long_options[0]) <= 64, "a bit for each");
	for (const struct option *option = long_options; option->name; option++)
		if (option->val == code)
			options->given |= UINT64_C(1) << (option - long_options);
}

/* Whoever gives an option means something: --dry-run where there is none must not remove. */
static int check_options(const struct ctl *ctl, const struct ctl_verb *verb)
{
	for (const struct option *option = long_options; option->name; option++) {
		char letter = option->val < OPTION_ANY ? (char)option->val : '\0';

		if (ctl->options->given >> (option - long_options) & 1 &&
		    !ctl_verb_has_option(verb, option->name, letter))
			return ctl_fail(ctl, CTL_USAGE,
					"%s: --%s is no option of this verb; `muninnctl help %s` "
					"shows those that it has",
					verb->name, option->name, verb->name);
	}
	return CTL_OK;
}

static int parse_options(const struct ctl *ctl, int count, char **arguments,
			 struct ctl_options *options)
{
	int code, result = CTL_OK;

	/* Finds --json first, wherever it stands, so that messages about options are JSON too. */
	for (int i = 1; i < count && strcmp(arguments[i], "--") != 0; i++)
		options->json = options->json || strcmp(arguments[i], "--json") == 0;
	opterr = 0;
	while (result == CTL_OK &&
	       (code = getopt_long(count, arguments, ":hlqR", long_options, NULL)) != -1) {
		const char *word = arguments[optind - 1];

		if (code == '?' && word[0] == '-' && word[1] >= '0' && word[1] <= '9')
			return ctl_fail(ctl, CTL_USAGE,
					"%s: no number is negative here; a time ago needs a unit, "
					"as in -10min",
					word);
		if (code == '?' || code == ':')
			return ctl_fail(ctl, CTL_USAGE, "%s: %s; see muninnctl --help", word,
					code == ':' ? "this option needs a value"
						    : "there is no such option");
		note_option(options, code);
		result = take_option(ctl, code, options);
	}
	return result;
}

int ctl_connect_unsigned(struct ctl *ctl)
{
	struct osd_client_options options = ctl->options->client;
	struct error_text error;
	int result;

	options.isid = ctl->isid;
	result = ctl->client ? 0 : osd_client_connect(ctl->url, &options, &ctl->client, &error);

	return result < 0 ? ctl_fail_connect(ctl, result, &error) : CTL_OK;
}

int ctl_connect(struct ctl *ctl)
{
	int code = CTL_OK;

	if (!ctl->client) {
		code = ctl_connect_unsigned(ctl);
		if (code == CTL_OK)
			code = ctl_secure(ctl);
	}
	return code;
}

void ctl_catch_signals(struct ctl *ctl)
{
	progress_catch_signals();
	osd_client_stop_when(ctl->client, progress_interrupted);
}

bool ctl_recover(struct ctl *ctl)
{
	osd_client_stop_when(ctl->client, NULL);
	if (osd_client_failed(ctl->client, NULL) == 0)
		return true;
	/* What it had begun must not come behind what is done now. */
	ctl->isid = osd_client_isid(ctl->client);
	osd_client_disconnect(ctl->client);
	ctl->client = NULL;
	ctl_forget_keys();
	return ctl_connect(ctl) == CTL_OK;
}

/* Is the word behind this one the value of an option? The option may be abbreviated. */
static bool takes_value(const char *word)
{
	size_t length = strlen(word);

	if (length < 3 || strncmp(word, "--", 2) != 0)
		return false;
	for (const struct option *option = long_options; option->name; option++)
		if (option->has_arg == required_argument &&
		    strncmp(option->name, word + 2, length - 2) == 0)
			return true;
	return false;
}

/*
 * "-10min" is a moment, not an option: no option begins with a digit. getopt does not know that, so
 * it gets the moment in its other form, "@-10min". Values of options stay as they are.
 */
static bool shield_moments(int count, char **arguments)
{
	for (int i = 1; i < count && strcmp(arguments[i], "--") != 0; i++) {
		char *shielded;

		size_t digits = arguments[i][0] == '-' ? strspn(arguments[i] + 1, "0123456789") : 0;

		if (digits == 0 || arguments[i][1 + digits] == '\0' ||
		    takes_value(arguments[i - 1]))
			continue;
		/* Lives as long as the process, like the arguments. */
		if (asprintf(&shielded, "@%s", arguments[i]) < 0)
			return false;
		arguments[i] = shielded;
	}
	return true;
}

/* The first words of verbs that have two, and what may follow. */
static int fail_verb(const struct ctl *ctl, int count, char **words)
{
	char seconds[256];

	if (!ctl_second_words(words[0], seconds, sizeof(seconds)))
		return ctl_fail(ctl, CTL_USAGE, "'%s' is no verb; muninnctl --help lists them",
				words[0]);
	if (count < 2)
		return ctl_fail(ctl, CTL_USAGE, "behind '%s' one of these is missing: %s", words[0],
				seconds);
	return ctl_fail(ctl, CTL_USAGE, "'%s %s' is no verb; behind '%s' stands one of: %s",
			words[0], words[1], words[0], seconds);
}

/*
 * --at needs an ADDRESS that the verb reads. Without one the verb would do something else than the
 * user meant.
 */
static bool has_address(const struct ctl_verb *verb)
{
	return strstr(verb->synopsis, "ADDRESS") || strstr(verb->synopsis, "PID") ||
	       strstr(verb->synopsis, "COLLECTION");
}

/* Does it ask the service on this host, and needs no URL? Its synopsis says so. */
static bool asks_service(const struct ctl_verb *verb)
{
	return strstr(verb->synopsis, "[--socket FILE]") != NULL;
}

static bool is_url(const char *word)
{
	return strstr(word, "://") || strncmp(word, SG_SCHEME, strlen(SG_SCHEME)) == 0;
}

/*
 * The first word behind the verb, or $MUNINN_URL if that is no URL and the verb wants one. `used`:
 * words before the arguments. CTL_USAGE: there is neither.
 */
static int find_url(struct ctl *ctl, const struct ctl_verb *verb, int count, char **words,
		    int *used)
{
	bool wants_url = strncmp(verb->synopsis, "URL", 3) == 0;
	const char *usual = wants_url ? getenv("MUNINN_URL") : NULL;
	bool is_there = count > *used && (!usual || is_url(words[*used]));

	if (asks_service(verb))
		return CTL_OK;
	if (!is_there && !usual)
		return ctl_fail(
			ctl, CTL_USAGE, "%s: the %.*s is missing%s; the form is: muninnctl %s %s",
			verb->name, (int)strcspn(verb->synopsis, " "), verb->synopsis,
			wants_url ? ", and MUNINN_URL is not set" : "", verb->name, verb->synopsis);
	ctl->url = is_there ? words[(*used)++] : usual;
	return CTL_OK;
}

/* `muninnctl help VERB`, the first word of several, or `help` alone. */
static int help_about(struct ctl *ctl, int count, char **words)
{
	int used;
	const struct ctl_verb *verb = count > 0 ? ctl_find_verb(count, words, &used) : NULL;

	if (count > 0 && !verb && (count > 1 || !ctl_print_group_help(words[0])))
		return fail_verb(ctl, count, words);
	if (verb)
		ctl_print_verb_help(verb);
	else if (count == 0)
		ctl_print_help();
	return ctl_end_output(ctl);
}

static int run_verb(struct ctl *ctl, int count, char **words)
{
	int used;
	const struct ctl_verb *verb = ctl_find_verb(count, words, &used);
	int code;

	if (!verb && strcmp(words[0], "help") == 0)
		return help_about(ctl, count - 1, words + 1);
	if (!verb && ctl->options->help)
		return help_about(ctl, count, words);
	if (!verb)
		return fail_verb(ctl, count, words);
	ctl->verb = verb->name;
	if (ctl->options->help) {
		ctl_print_verb_help(verb);
		return ctl_end_output(ctl);
	}
	code = check_options(ctl, verb);
	if (code == CTL_OK)
		code = find_url(ctl, verb, count, words, &used);
	if (code != CTL_OK)
		return code;
	if (ctl->options->at && !has_address(verb))
		return ctl_fail(ctl, CTL_USAGE,
				"%s: --at is for verbs that read an ADDRESS; this one takes none",
				verb->name);
	ctl->arguments = words + used;
	ctl->argument_count = count - used;
	if (ctl->argument_count < verb->arguments_min || ctl->argument_count > verb->arguments_max)
		return ctl_fail(ctl, CTL_USAGE,
				"%s: too %s arguments; the form is: muninnctl %s %s", verb->name,
				ctl->argument_count < verb->arguments_min ? "few" : "many",
				verb->name, verb->synopsis);
	code = verb->run(ctl);
	osd_client_disconnect(ctl->client);
	ctl_forget_keys();
	ctl_forget_tree(ctl);
	return code;
}

static int run(struct ctl *ctl, int count, char **arguments, struct ctl_options *options)
{
	int result = parse_options(ctl, count, arguments, options);

	if (result != CTL_OK)
		return result;
	if (options->version) {
		puts("muninnctl " MUNINN_VERSION);
		return ctl_end_output(ctl);
	}
	if (optind < count)
		return run_verb(ctl, count - optind, arguments + optind);
	if (options->help) {
		ctl_print_help();
		return ctl_end_output(ctl);
	}
	return ctl_fail(ctl, CTL_USAGE,
			"a verb is missing; the form is muninnctl VERB URL [ADDRESS] [ARGUMENTS], "
			"and --help explains");
}

int main(int count, char **arguments)
{
	struct ctl_options options = { .chunk_bytes = TRANSFER_CHUNK_BYTES_DEFAULT, .count = 1 };
	struct ctl ctl = { .options = &options, .verb = "muninnctl" };
	int result;

	/* If a reader goes away, writing fails. If a target goes away, that needs a message. */
	signal(SIGPIPE, SIG_IGN);
	keyring_guard_memory();
	if (!shield_moments(count, arguments))
		return ctl_fail(&ctl, CTL_LOCAL, "no memory");
	/* There are no more of them than words. */
	options.excludes = calloc((size_t)count, sizeof(*options.excludes));
	if (!options.excludes)
		return ctl_fail(&ctl, CTL_LOCAL, "no memory");
	result = run(&ctl, count, arguments, &options);
	free(options.excludes);
	return result;
}
