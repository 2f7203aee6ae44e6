/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Reads a manifest that anybody may have written. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/sha.h>

#include "client/manifest.h"
#include "client/manifest_text.h"

#define NAME_BYTES_MAX 255U
#define PATH_BYTES_MAX 65535U
#define DEPTH_MAX      4096U
/* What Linux takes at most. */
#define XATTR_BYTES_MAX 65536U

/* One line being read; `at` never passes `end`. */
struct cursor {
	const char *at, *end;
};

struct parser {
	struct manifest *manifest;
	/*
	 * Indices of the directories from the root to the last one: only these may get children
	 * next.
	 */
	size_t *stack;
	size_t depth;
	bool has_owners; /* from version 2 on */
	size_t line;
	struct error_text *error;
};

static int refuse(const struct parser *parser, const char *why)
{
	return error_set(parser->error, -EBADMSG, "manifest, line %zu: %s", parser->line, why);
}

/* ---- fields ---- */

static bool take_blank(struct cursor *line)
{
	if (line->at == line->end || *line->at != ' ')
		return false;
	line->at++;
	return true;
}

/* At least one digit of `base`, no overflow. */
static bool take_number(struct cursor *line, unsigned base, uint64_t *value)
{
	const char *first = line->at;

	*value = 0;
	for (; line->at < line->end; line->at++) {
		char c = *line->at;
		unsigned digit;

		if (c >= '0' && c <= '9')
			digit = (unsigned)(c - '0');
		else if (c >= 'a' && c <= 'f')
			digit = (unsigned)(c - 'a') + 10;
		else
			break;
		if (digit >= base)
			break;
		if (*value > (UINT64_MAX - digit) / base)
			return false;
		*value = *value * base + digit;
	}
	return line->at > first;
}

static bool take_time(struct cursor *line, struct manifest_entry *entry)
{
	bool negative = line->at < line->end && *line->at == '-';
	uint64_t seconds, nanoseconds;
	const char *fraction;

	if (negative)
		line->at++;
	if (!take_number(line, 10, &seconds) || seconds > INT64_MAX || line->at == line->end ||
	    *line->at++ != '.')
		return false;
	fraction = line->at;
	if (!take_number(line, 10, &nanoseconds) || line->at - fraction != 9)
		return false;
	entry->seconds = negative ? -(int64_t)seconds : (int64_t)seconds;
	entry->nanoseconds = (uint32_t)nanoseconds;
	return true;
}

/* "USER:GROUP" */
static bool take_owner(struct cursor *line, struct manifest_entry *entry)
{
	uint64_t user, group;

	if (!take_number(line, 10, &user) || user > UINT32_MAX || line->at == line->end ||
	    *line->at++ != ':' || !take_number(line, 10, &group) || group > UINT32_MAX)
		return false;
	entry->user = (uint32_t)user;
	entry->group = (uint32_t)group;
	return true;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

static bool take_sha256(struct cursor *line, uint8_t *bytes)
{
	if (line->end - line->at < (ptrdiff_t)(2 * MANIFEST_SHA256_BYTES))
		return false;
	for (size_t i = 0; i < MANIFEST_SHA256_BYTES; i++) {
		int high = hex_digit(line->at[2 * i]), low = hex_digit(line->at[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		bytes[i] = (uint8_t)(high << 4 | low);
	}
	line->at += 2 * MANIFEST_SHA256_BYTES;
	return true;
}

/* "0x" and the bytes in hexadecimal, XATTR_BYTES_MAX at most, to the end of the line. */
static bool take_bytes(struct cursor *line, uint8_t *bytes, size_t *length)
{
	if (line->end - line->at < 2 || line->at[0] != '0' || line->at[1] != 'x')
		return false;
	line->at += 2;
	for (*length = 0; line->end - line->at >= 2 && *length < XATTR_BYTES_MAX; ++*length) {
		int high = hex_digit(line->at[0]), low = hex_digit(line->at[1]);

		if (high < 0 || low < 0)
			return false;
		bytes[*length] = (uint8_t)(high << 4 | low);
		line->at += 2;
	}
	return true;
}

/*
 * Up to a blank or the end of the line. NULL: malformed, empty, too long, or a NUL in it (then
 * errno is not set).
 */
static char *take_escaped(struct cursor *line)
{
	size_t length = 0;
	char *text = malloc((size_t)(line->end - line->at) + 1);

	if (!text)
		return NULL;
	while (line->at < line->end && *line->at != ' ') {
		int c = (unsigned char)*line->at++;

		if (c == '%') {
			int high = line->end - line->at >= 2 ? hex_digit(line->at[0]) : -1;
			int low = high >= 0 ? hex_digit(line->at[1]) : -1;

			c = low < 0 ? 0 : high << 4 | low;
			line->at += low < 0 ? 0 : 2;
		} else if (!manifest_plain((unsigned char)c)) {
			c = 0;
		}
		if (c == 0 || length == PATH_BYTES_MAX) {
			free(text);
			return NULL;
		}
		text[length++] = (char)c;
	}
	text[length] = '\0';
	if (length == 0) {
		free(text);
		return NULL;
	}
	return text;
}

/* ---- what a line may say ---- */

bool manifest_path_is_clean(const char *path)
{
	for (const char *part = path;;) {
		size_t length = strcspn(part, "/");

		if (length == 0 || length > NAME_BYTES_MAX || (length == 1 && part[0] == '.') ||
		    (length == 2 && part[0] == '.' && part[1] == '.'))
			return false;
		if (!part[length])
			return true;
		part += length + 1;
	}
}

/*
 * The parent must be one of the directories on the way to the last one. So nothing ever goes below
 * a symbolic link, a file, or a directory of somebody else.
 */
static bool parent_is_open(struct parser *parser, const char *path)
{
	const char *slash = strrchr(path, '/');
	size_t length = slash ? (size_t)(slash - path) : 1;
	const char *parent = slash ? path : ".";

	while (parser->depth > 0) {
		const char *open = parser->manifest->entries[parser->stack[parser->depth - 1]].path;

		if (strlen(open) == length && memcmp(open, parent, length) == 0)
			return true;
		parser->depth--;
	}
	return false;
}

static int check_place(struct parser *parser, size_t index)
{
	const struct manifest_entry *entry = &parser->manifest->entries[index];

	if (index == 0) {
		if (entry->type != MANIFEST_DIRECTORY || strcmp(entry->path, ".") != 0)
			return refuse(parser, "the first entry must be the directory '.'");
	} else {
		if (!manifest_path_is_clean(entry->path))
			return refuse(parser,
				      "a path that is absolute, goes up, or has a bad part");
		if (!parent_is_open(parser, entry->path))
			return refuse(parser, "a path whose directory has not come before it");
	}
	if (entry->type == MANIFEST_DIRECTORY) {
		if (parser->depth == DEPTH_MAX)
			return refuse(parser, "directories nested too deeply");
		parser->stack[parser->depth++] = index;
	}
	return 0;
}

/* The fields between type and path. */
static bool take_fields(const struct parser *parser, struct cursor *line,
			struct manifest_entry *entry, size_t index)
{
	const struct manifest *manifest = parser->manifest;
	uint64_t number;

	if (entry->type == MANIFEST_DIRECTORY || entry->type == MANIFEST_FILE) {
		if (!take_blank(line) || !take_number(line, 8, &number) || number > 07777)
			return false;
		entry->mode = (uint32_t)number;
	}
	if (entry->type != MANIFEST_HARD_LINK && (!take_blank(line) || !take_time(line, entry)))
		return false;
	if (entry->type != MANIFEST_HARD_LINK && parser->has_owners &&
	    (!take_blank(line) || !take_owner(line, entry)))
		return false;
	if (entry->type == MANIFEST_FILE) {
		if (!take_blank(line) || line->end - line->at < 2 || line->at[0] != '0' ||
		    line->at[1] != 'x')
			return false;
		line->at += 2;
		if (!take_number(line, 16, &entry->object) || !take_blank(line) ||
		    !take_number(line, 10, &entry->length) || entry->length > INT64_MAX ||
		    !take_blank(line) || !take_sha256(line, entry->sha256))
			return false;
	}
	if (entry->type == MANIFEST_HARD_LINK) {
		if (!take_blank(line) || !take_number(line, 10, &number) || number >= index ||
		    manifest->entries[number].type != MANIFEST_FILE)
			return false;
		entry->linked = number;
	}
	return true;
}

/* "x NAME 0xVALUE", of the directory or file that came last; names ascend. */
static int parse_xattr(struct parser *parser, struct cursor line)
{
	struct manifest *manifest = parser->manifest;
	struct manifest_entry *entry = manifest->count > 0 ? &manifest->entries[manifest->count - 1]
							   : NULL;
	uint8_t value[XATTR_BYTES_MAX];
	size_t length = 0;
	char *name = NULL;
	int result = -EBADMSG;

	line.at++;
	if (take_blank(&line))
		name = take_escaped(&line);
	if (name && strlen(name) <= NAME_BYTES_MAX && entry &&
	    (entry->type == MANIFEST_DIRECTORY || entry->type == MANIFEST_FILE) &&
	    (entry->xattr_count == 0 ||
	     strcmp(entry->xattrs[entry->xattr_count - 1].name, name) < 0) &&
	    take_blank(&line) && take_bytes(&line, value, &length) && line.at == line.end)
		result = manifest_add_xattr(entry, name, value, length);
	free(name);
	if (result == -EBADMSG)
		return refuse(parser, "a malformed extended attribute, or one of nothing");
	return result < 0 ? error_set(parser->error, result, "manifest: out of memory") : 0;
}

static int parse_entry(struct parser *parser, struct cursor line)
{
	size_t index = parser->manifest->count;
	struct manifest_entry *entry = manifest_add(parser->manifest);
	char type;

	if (!entry)
		return error_set(parser->error, -ENOMEM, "manifest: out of memory");
	type = line.at < line.end ? *line.at++ : '\0';
	if (type == '\0' || !strchr("dflh", type))
		return refuse(parser, "an entry that is no directory, file or link");
	entry->type = (enum manifest_type)type;
	if (!take_fields(parser, &line, entry, index))
		return refuse(parser, "a malformed field");
	if (take_blank(&line))
		entry->path = take_escaped(&line);
	if (entry->path && entry->type == MANIFEST_SYMLINK && take_blank(&line))
		entry->target = take_escaped(&line);
	if (!entry->path || (entry->type == MANIFEST_SYMLINK && !entry->target) ||
	    line.at != line.end)
		return refuse(parser, "a malformed path or something behind it");
	return check_place(parser, index);
}

/* ---- the whole ---- */

/* Cuts off the last line, and compares its checksum and count with the text before it. */
static int check_end(struct parser *parser, const char *text, size_t *length, uint64_t *count)
{
	uint8_t stated[MANIFEST_SHA256_BYTES], digest[MANIFEST_SHA256_BYTES];
	struct cursor line;
	const char *newline;

	parser->line = 0;
	if (*length == 0 || text[*length - 1] != '\n')
		return error_set(parser->error, -EBADMSG, "manifest: it is cut off");
	newline = memrchr(text, '\n', *length - 1);
	line.at = newline ? newline + 1 : text;
	line.end = text + *length - 1;
	*length = (size_t)(line.at - text);
	if (line.end - line.at < (ptrdiff_t)strlen(MANIFEST_LAST_WORD) ||
	    memcmp(line.at, MANIFEST_LAST_WORD, strlen(MANIFEST_LAST_WORD)) != 0)
		return error_set(parser->error, -EBADMSG, "manifest: it has no last line");
	line.at += strlen(MANIFEST_LAST_WORD);
	if (!take_blank(&line) || !take_number(&line, 10, count) || !take_blank(&line) ||
	    !take_sha256(&line, stated) || line.at != line.end)
		return error_set(parser->error, -EBADMSG, "manifest: its last line is malformed");
	SHA256((const unsigned char *)text, *length, digest);
	if (memcmp(stated, digest, sizeof(digest)) != 0)
		return error_set(parser->error, -EBADMSG, "manifest: its checksum is wrong");
	return 0;
}

static int parse_lines(struct parser *parser, const char *text, size_t length)
{
	const size_t first = strlen(MANIFEST_FIRST_LINE); /* of each version */
	const char *at, *end = text + length;

	parser->has_owners = length >= first && memcmp(text, MANIFEST_FIRST_LINE, first) == 0;
	if (!parser->has_owners &&
	    (length < first || memcmp(text, MANIFEST_FIRST_LINE_1, first) != 0))
		return error_set(parser->error, -EBADMSG,
				 "manifest: it does not begin with 'muninn-tree 2'; of a later "
				 "version, or no manifest");
	parser->line = 1;
	for (at = text + first; at < end;) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		int result;

		parser->line++;
		/* check_end has found a newline at the very end. */
		result = parser->has_owners && at[0] == 'x' && at < newline
				 ? parse_xattr(parser, (struct cursor){ at, newline })
				 : parse_entry(parser, (struct cursor){ at, newline });
		if (result < 0)
			return result;
		at = newline + 1;
	}
	return 0;
}

int manifest_parse(const char *text, size_t length, struct manifest *manifest,
		   struct error_text *error)
{
	struct parser parser = { .manifest = manifest, .error = error };
	uint64_t count = 0;
	int result;

	*manifest = (struct manifest){ 0 };
	parser.stack = malloc(DEPTH_MAX * sizeof(*parser.stack));
	if (!parser.stack)
		return error_set(error, -ENOMEM, "manifest: out of memory");
	result = check_end(&parser, text, &length, &count);
	if (result == 0)
		result = parse_lines(&parser, text, length);
	if (result == 0 && (manifest->count != count || count == 0))
		result = error_set(error, -EBADMSG,
				   "manifest: it has %zu entries and claims %" PRIu64,
				   manifest->count, count);
	free(parser.stack);
	if (result < 0)
		manifest_free(manifest);
	return result;
}
