/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Messages, exit codes, JSON. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/ctl/ctl.h"
#include "client/manifest.h"

enum ctl_exit ctl_exit_of_connect(int result)
{
	switch (result) {
	case -EINVAL:
		return CTL_USAGE;
	case -EACCES:
		return CTL_DENIED;
	case -ENODEV:
		return CTL_NOT_FOUND;
	case -EMEDIUMTYPE:
		return CTL_TARGET;
	case -ENOMEM:
		return CTL_LOCAL;
	default:
		return CTL_CONNECTION;
	}
}

static enum ctl_exit exit_of_local(int result)
{
	if (result == -ECANCELED && progress_interrupted())
		return CTL_INTERRUPTED;
	return result == -ENOTEMPTY ? CTL_NOT_EMPTY : CTL_LOCAL;
}

enum ctl_exit ctl_exit_of(const struct osd_client_error *error)
{
	if (error->local)
		return exit_of_local(error->result);
	switch (error->result) {
	case -ENOENT:
	case -ENODATA:
		return CTL_NOT_FOUND;
	case -EEXIST:
		return CTL_EXISTS;
	case -ENOSPC:
		return CTL_NO_SPACE;
	case -ENOTEMPTY:
		return CTL_NOT_EMPTY;
	case -EACCES:
	case -EPERM:
	case -EROFS:
		return CTL_DENIED;
	case -EBADMSG:
	case -EINPROGRESS:
		return CTL_BAD_DATA;
	case -ECONNRESET:
	case -ECONNREFUSED:
	case -ECONNABORTED:
	case -ENOTCONN:
	case -EPIPE:
	case -ETIMEDOUT:
	case -EHOSTUNREACH:
	case -ENETUNREACH:
	case -ECANCELED:
		return CTL_CONNECTION;
	case -ENOMEM:
		return CTL_LOCAL;
	default:
		return CTL_TARGET;
	}
}

static const char *const exit_names[] = {
	[CTL_OK] = "ok",
	[CTL_FAILED] = "failed",
	[CTL_USAGE] = "usage",
	[CTL_NOT_FOUND] = "not found",
	[CTL_EXISTS] = "exists",
	[CTL_NO_SPACE] = "no space",
	[CTL_CONNECTION] = "connection",
	[CTL_DENIED] = "denied",
	[CTL_TARGET] = "target",
	[CTL_LOCAL] = "local",
	[CTL_NOT_EMPTY] = "not empty",
	[CTL_BAD_DATA] = "bad data",
	[CTL_INTERRUPTED] = "interrupted",
};

enum ctl_exit ctl_exit_by_name(const char *name)
{
	for (enum ctl_exit code = CTL_OK; code <= CTL_BAD_DATA; code++)
		if (strcmp(exit_names[code], name) == 0)
			return code;
	return CTL_FAILED;
}

int ctl_fail(const struct ctl *ctl, enum ctl_exit code, const char *format, ...)
{
	char *sentence;
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vasprintf(&sentence, format, arguments);
	va_end(arguments);
	if (length < 0)
		return code;
	if (ctl->options->json)
		ctl_print_json(stderr, json_pack("{s:o}", "error",
						 ctl_json_with_text(json_pack("{s:i,s:s}", "code",
									      (int)code, "name",
									      exit_names[code]),
								    "message", sentence)));
	else
		fprintf(stderr, "muninnctl: %s\n", sentence);
	free(sentence);
	return code;
}

int ctl_fail_command(const struct ctl *ctl, const struct osd_client_error *error)
{
	if (ctl_exit_of(error) == CTL_INTERRUPTED)
		return ctl_fail(ctl, CTL_INTERRUPTED,
				"%s: interrupted; what was printed is right, but not all",
				ctl->verb);
	return ctl_fail(ctl, ctl_exit_of(error), "%s", error->sentence.text);
}

int ctl_fail_connect(const struct ctl *ctl, int result, const struct error_text *sentence)
{
	return ctl_fail(ctl, ctl_exit_of_connect(result), "%s", sentence->text);
}

void ctl_warn(const char *sentence)
{
	fprintf(stderr, "muninnctl: %s\n", sentence);
}

int ctl_confirm(const struct ctl *ctl, const char *format, ...)
{
	char answer[16] = "";
	va_list arguments;

	if (ctl->options->yes || !isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
		return CTL_OK;
	fprintf(stderr, "muninnctl: %s: ", ctl->verb);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fprintf(stderr, ". Go on? [y/N] ");
	if (fgets(answer, sizeof(answer), stdin) &&
	    (strcmp(answer, "y\n") == 0 || strcmp(answer, "yes\n") == 0))
		return CTL_OK;
	return ctl_fail(ctl, CTL_FAILED, "%s: nothing was done", ctl->verb);
}

bool ctl_reader_is_gone(void)
{
	struct pollfd output = { .fd = STDOUT_FILENO };

	return poll(&output, 1, 0) == 1 && (output.revents & POLLERR);
}

/* Whoever has gone is told nothing. */
static int fail_output(const struct ctl *ctl, int error)
{
	if (ctl_reader_is_gone())
		return CTL_LOCAL;
	return ctl_fail(ctl, CTL_LOCAL, "the output can't be written: %s", strerror(error));
}

int ctl_print_json(FILE *to, json_t *value)
{
	const struct ctl_options options = { .json = true };
	const struct ctl ctl = { .options = &options };
	int error = 0;

	if (!value)
		error = ENOMEM;
	else if (json_dumpf(value, to, JSON_COMPACT) != 0 || fputc('\n', to) == EOF ||
		 fflush(to) != 0)
		error = errno;
	json_decref(value);
	if (!error)
		return CTL_OK;
	return to == stdout ? fail_output(&ctl, error) : CTL_LOCAL;
}

int ctl_end_output(const struct ctl *ctl)
{
	return fflush(stdout) == 0 && !ferror(stdout) ? CTL_OK : fail_output(ctl, errno);
}

int ctl_print_id(const struct ctl *ctl, const char *name, uint64_t id)
{
	if (ctl->options->json)
		return ctl_print_json(stdout, json_pack("{s:o}", name, ctl_json_id(id)));
	printf("0x%" PRIx64 "\n", id);
	return ctl_end_output(ctl);
}

struct ctl_list ctl_list_of(const struct ctl *ctl)
{
	return (struct ctl_list){ .is_json = ctl->options->json };
}

int ctl_list_add(struct ctl_list *list, json_t *value)
{
	if (!value)
		return -ENOMEM;
	putchar(list->has_begun ? ',' : '[');
	list->has_begun = true;
	json_dumpf(value, stdout, JSON_COMPACT);
	json_decref(value);
	return 0;
}

int ctl_list_end(const struct ctl_list *list, const struct ctl *ctl)
{
	if (list->is_json)
		puts(list->has_begun ? "]" : "[]");
	return ctl_end_output(ctl);
}

json_t *ctl_json_id(uint64_t id)
{
	return json_sprintf("0x%" PRIx64, id);
}

/* Control characters: of ASCII, and U+0080 to U+009F, whose first byte is C2. */
static size_t control_bytes(const char *text)
{
	unsigned char byte = (unsigned char)text[0], next = (unsigned char)text[1];

	if (byte < 0x20 || byte == 0x7f)
		return 1;
	return byte == 0xc2 && next >= 0x80 && next < 0xa0 ? 2 : 0;
}

void ctl_print_text(const char *text)
{
	json_t *valid = json_string(text);
	size_t control;

	for (; *text; text++) {
		control = valid ? control_bytes(text)
				: (control_bytes(text) || (unsigned char)*text >= 0x80);
		for (; control > 1; control--)
			printf("\\x%02x", (unsigned char)*text++);
		if (control)
			printf("\\x%02x", (unsigned char)*text);
		else
			putchar(*text);
	}
	json_decref(valid);
}

json_t *ctl_json_with_text(json_t *object, const char *key, const char *text)
{
	json_t *value = json_string(text);
	char *escaped;

	if (value || manifest_escape(text, &escaped) < 0) {
		json_object_set_new(object, key, value);
		return object;
	}
	json_object_set_new(object, key, json_string(escaped));
	free(escaped);
	if (!json_object_get(object, "escaped"))
		json_object_set_new(object, "escaped", json_array());
	json_array_append_new(json_object_get(object, "escaped"), json_string(key));
	return object;
}
