/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * SEARCH and CHECKSUM: what would otherwise have to cross the wire is looked at here. A command looks at a bounded
 * number of bytes and says where the next one goes on.
 */
#define OPENSSL_SUPPRESS_DEPRECATED /* the digest's state goes to the initiator and back between commands */

#include <errno.h>
#include <openssl/sha.h>
#include <regex.h>
#include <stdlib.h>
#include <time.h>

#include "common/bytes.h"
#include "osd/functions.h"

enum {
	WINDOW_BYTES = 64 << 10,       /* match begins that are looked for at once */
	MATCH_BYTES_MAX = 4096,        /* of a regular expression's match */
	SEARCH_BYTES_MAX = 16 << 20,   /* looked at by one command */
	SEARCH_OBJECTS_MAX = 4096,     /* looked at by one command */
	CHECKSUM_BYTES_MAX = 64 << 20, /* digested by one command */
	EXPRESSION_BYTES_MAX = 256,    /* of a regular expression */
	SLICE_BYTES = 512,  /* that the library looks at in one call, see find_expression */
	SLICE_BEGINS = 256, /* match begins in them that are looked for */
	EXPRESSION_REPEATS_MAX = 64, /* a bound {n,m} in it */
};

/* ---- SEARCH: what is looked for ---- */

/* Processor time of the library in one command, and with one compiled expression. */
#define EXPRESSION_NS_MAX UINT64_C(250000000)
#define COMPILED_NS_MAX   UINT64_C(20000000)

struct pattern {
	const uint8_t *bytes; /* NULL: a regular expression */
	uint32_t length;
	regex_t expression;
	char text[EXPRESSION_BYTES_MAX + 1];
	bool compiled;
	uint64_t command_ns, compiled_ns; /* that the library has taken so far */
	bool spent;                       /* the command has used up its time */
};

/*
 * Whether an expression compiles in little time and memory: no back references, and bounds neither large nor one inside the
 * other, since the library writes them out. What it takes to match is bounded by find_expression.
 */
static bool expression_is_tame(const char *text)
{
	unsigned bounds = 0;

	for (const char *at = text; *at; at++) {
		if (*at == '\\') {
			if (at[1] >= '1' && at[1] <= '9')
				return false;
			if (at[1])
				at++;
		} else if (*at == '{') {
			char *end;
			unsigned long most = strtoul(at + 1, &end, 10);

			if (*end == ',')
				most = max_u64(most, strtoul(end + 1, &end, 10));
			if (++bounds > 2 || most > EXPRESSION_REPEATS_MAX)
				return false;
		}
	}
	return true;
}

static int compile_expression(struct osd_request *request, const struct osd_item *item,
			      struct pattern *pattern)
{
	char *text = pattern->text;

	if (item->length == 0 || item->length > EXPRESSION_BYTES_MAX ||
	    memchr(item->value, '\0', item->length))
		return osd_fail_parameter(request, OSD_ITEM_REGEX);
	memcpy(text, item->value, item->length);
	text[item->length] = '\0';
	if (!expression_is_tame(text) ||
	    regcomp(&pattern->expression, text, REG_EXTENDED | REG_NEWLINE) != 0)
		return osd_fail_parameter(request, OSD_ITEM_REGEX);
	pattern->compiled = true;
	return 0;
}

static int pattern_begin(struct osd_request *request, struct pattern *pattern)
{
	struct osd_item bytes, expression;
	bool has_bytes = osd_parameter(request, OSD_ITEM_PATTERN, &bytes) == 0;
	bool has_expression = osd_parameter(request, OSD_ITEM_REGEX, &expression) == 0;

	*pattern = (struct pattern){ 0 };
	if (has_bytes == has_expression)
		return osd_fail_parameter(request, has_bytes ? OSD_ITEM_PATTERN : 0);
	if (has_expression)
		return compile_expression(request, &expression, pattern);
	if (bytes.length == 0 || bytes.length > OSD_PATTERN_BYTES_MAX)
		return osd_fail_parameter(request, OSD_ITEM_PATTERN);
	pattern->bytes = bytes.value;
	pattern->length = bytes.length;
	return 0;
}

static void pattern_end(struct pattern *pattern)
{
	if (pattern->compiled)
		regfree(&pattern->expression);
}

static uint64_t processor_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* The library keeps every state of matching that it meets: forgotten before they are too many. */
static bool refresh_expression(struct pattern *pattern)
{
	if (pattern->compiled_ns <= COMPILED_NS_MAX)
		return true;
	regfree(&pattern->expression);
	pattern->compiled_ns = 0;
	pattern->compiled =
		regcomp(&pattern->expression, pattern->text, REG_EXTENDED | REG_NEWLINE) == 0;
	return pattern->compiled;
}

/*
 * As pattern_find. With some expressions the library takes time that is quadratic in the bytes that it is given, and
 * memory for each of them; so it is given few at a time, and the command ends when it has taken too long. Matches
 * longer than a slice are cut. With `spent`, *where = what has not been looked at.
 */
static bool find_expression(struct pattern *pattern, const uint8_t *data, size_t from,
			    size_t length, bool at_start, size_t *where, size_t *matched)
{
	while (from < length) {
		size_t end = min_u64(length, from + SLICE_BYTES);
		regmatch_t match = { .rm_so = 0, .rm_eo = (regoff_t)(end - from) };
		bool line_begins = from == 0 ? at_start : data[from - 1] == '\n';
		bool cut = end < length, line_ends = !cut || data[end] == '\n';
		uint64_t begun = processor_ns(), taken;
		int result;

		*where = from;
		pattern->spent = pattern->command_ns > EXPRESSION_NS_MAX ||
				 !refresh_expression(pattern);
		if (pattern->spent)
			return false;
		result = regexec(&pattern->expression, (const char *)data + from, 1, &match,
				 REG_STARTEND | (line_begins ? 0 : REG_NOTBOL) |
					 (line_ends ? 0 : REG_NOTEOL));
		taken = processor_ns() - begun;
		pattern->command_ns += taken;
		pattern->compiled_ns += taken;
		if (result != 0) {
			from = cut ? from + SLICE_BEGINS : length;
		} else if (cut && match.rm_so >= SLICE_BEGINS) {
			from += (size_t)match.rm_so; /* to see all of it */
		} else if (match.rm_eo == match.rm_so) {
			from += (size_t)match.rm_so + 1; /* an empty match is none */
		} else {
			*where = from + (size_t)match.rm_so;
			*matched = (size_t)(match.rm_eo - match.rm_so);
			return true;
		}
	}
	return false;
}

/* The first match in data[from..length), where `from` > 0 or the object's beginning is at 0. False: none. */
static bool pattern_find(struct pattern *pattern, const uint8_t *data, size_t from, size_t length,
			 bool at_start, size_t *where, size_t *matched)
{
	const uint8_t *found;

	if (!pattern->bytes)
		return find_expression(pattern, data, from, length, at_start, where, matched);
	found = memmem(data + from, length - from, pattern->bytes, pattern->length);
	if (!found)
		return false;
	*where = (size_t)(found - data);
	*matched = pattern->length;
	return true;
}

/* ---- SEARCH: where it is ---- */

struct search {
	struct osd_request *request;
	struct pattern pattern;
	struct osd_item_writer writer;
	uint8_t *window;         /* one byte before, WINDOW_BYTES, MATCH_BYTES_MAX behind, NUL */
	uint64_t object, offset; /* where to go on */
	uint64_t looked_at;      /* bytes, by this command */
	uint32_t objects;
	bool full; /* of results, or enough was looked at */
};

static bool add_match(struct search *search, uint64_t offset, size_t length)
{
	osd_item_open(&search->writer, OSD_ITEM_ENTRY);
	osd_item_add_number(&search->writer, OSD_ITEM_OBJECT,
			    osd_wire_object(search->request, search->object));
	osd_item_add_number(&search->writer, OSD_ITEM_OFFSET, offset);
	osd_item_add_number(&search->writer, OSD_ITEM_LENGTH, length);
	return osd_item_end(&search->writer);
}

/*
 * Matches that begin in [offset, offset + WINDOW_BYTES) of the object; goes on behind it, or behind the last match. Matches do
 * not overlap.
 */
static int search_window(struct search *search, struct engine_address address)
{
	uint64_t start = search->offset, before = start > 0, got;
	size_t from = before, where = before, matched;
	int result = engine_read(search->request->txn, address, start - before, search->window,
				 before + WINDOW_BYTES + MATCH_BYTES_MAX, &got);

	if (result != 0)
		return osd_result(search->request, result, 0);
	search->window[got] = '\0';
	search->looked_at += min_u64(got, WINDOW_BYTES);
	search->offset = start + WINDOW_BYTES;
	while (from < got && pattern_find(&search->pattern, search->window, from, got, !before,
					  &where, &matched)) {
		uint64_t found = start - before + where;

		if (where >= before + WINDOW_BYTES)
			break; /* the next window's */
		if (!add_match(search, found, matched)) {
			search->offset = found;
			search->full = true;
			return 0;
		}
		from = where + matched;
		search->offset = max_u64(start + WINDOW_BYTES, found + matched);
	}
	if (search->pattern.spent && where < before + WINDOW_BYTES) {
		search->looked_at -= min_u64(got, WINDOW_BYTES) - (where - before);
		search->offset = start - before + where;
		search->full = true;
	}
	return 0;
}

/* One object from search->offset on. */
static int search_object(struct search *search, const struct engine_stat *stat)
{
	struct engine_address address = search->request->subject.address;

	address.object = search->object;
	search->objects++;
	while (search->offset < stat->length && !search->full) {
		if (search_window(search, address) != 0)
			return -EINVAL;
		search->full |= search->looked_at >= SEARCH_BYTES_MAX;
	}
	if (search->offset < stat->length)
		return 0; /* to be gone on with */
	search->object++;
	search->offset = 0;
	search->full |= search->objects >= SEARCH_OBJECTS_MAX;
	return 0;
}

/* The user objects of a partition from search->object on. *done: all of them were looked at. */
static int search_partition(struct search *search, bool *done)
{
	struct osd_request *request = search->request;
	struct engine_address address = request->subject.address;
	struct engine_stat stat;
	uint64_t next = 1;
	size_t count;

	while (!search->full) {
		uint64_t id;
		int result = engine_list(request->txn, request->subject.address,
					 ENGINE_LIST_USER_OBJECTS, search->object, &id, 1, &count,
					 &next);

		if (result != 0)
			return osd_result(request, result, OSD_FIELD_PARTITION);
		if (count == 0) {
			*done = true;
			return 0;
		}
		if (id != search->object)
			search->offset = 0;
		search->object = address.object = id;
		result = engine_stat(request->txn, address, &stat);
		if (result != 0)
			return osd_result(request, result, 0);
		if (search_object(search, &stat) != 0)
			return -EINVAL;
	}
	return 0;
}

static int search_all(struct search *search, bool *done)
{
	const struct osd_subject *subject = &search->request->subject;
	uint64_t object = subject->address.object;
	int result;

	*done = false;
	if (subject->stat.type == ENGINE_PARTITION)
		return search_partition(search, done);
	if (subject->stat.type != ENGINE_USER_OBJECT || search->object != object)
		return osd_fail_field(search->request, OSD_FIELD_OBJECT);
	result = search_object(search, &subject->stat);
	*done = search->object != object;
	return result;
}

/* Where the command before ended. */
static int search_continue(struct search *search)
{
	struct osd_item item;

	search->object = search->request->subject.address.object;
	if (osd_parameter(search->request, OSD_ITEM_CONTINUATION, &item) != 0)
		return 0;
	if (item.length != 16)
		return osd_fail_parameter(search->request, OSD_ITEM_CONTINUATION);
	search->object = get_be64(item.value);
	search->offset = get_be64(item.value + 8);
	return search->offset <= INT64_MAX
		       ? 0
		       : osd_fail_parameter(search->request, OSD_ITEM_CONTINUATION);
}

int osd_function_search(struct osd_request *request)
{
	struct search search = { .request = request };
	uint8_t continuation[16];
	bool done = false;
	int result = search_continue(&search);

	if (result != 0 || pattern_begin(request, &search.pattern) != 0)
		return -EINVAL;
	search.window = malloc(1 + WINDOW_BYTES + MATCH_BYTES_MAX + 1);
	osd_result_begin(request, &search.writer);
	result = search.window ? search_all(&search, &done) : osd_result(request, -ENOMEM, 0);
	pattern_end(&search.pattern);
	free(search.window);
	if (result != 0)
		return result;
	osd_item_add_number(&search.writer, OSD_ITEM_COUNT, search.looked_at);
	put_be64(continuation, search.object);
	put_be64(continuation + 8, search.offset);
	osd_result_end(request, &search.writer, done ? NULL : continuation, sizeof(continuation),
		       -1);
	return 0;
}

/* ---- CHECKSUM ---- */

/* Between commands: bytes digested 8, the digest's eight words 4 each. Commands end at whole blocks. */
#define DIGEST_STATE_BYTES 40

static void save_digest(const SHA256_CTX *digest, uint64_t digested, uint8_t *state)
{
	put_be64(state, digested);
	for (size_t i = 0; i < 8; i++)
		put_be32(state + 8 + 4 * i, digest->h[i]);
}

static int load_digest(struct osd_request *request, uint64_t length, SHA256_CTX *digest,
		       uint64_t *digested)
{
	struct osd_item item;

	SHA256_Init(digest);
	*digested = 0;
	if (osd_parameter(request, OSD_ITEM_CONTINUATION, &item) != 0)
		return 0;
	if (item.length != DIGEST_STATE_BYTES)
		return osd_fail_parameter(request, OSD_ITEM_CONTINUATION);
	*digested = get_be64(item.value);
	if (*digested > length || *digested % SHA256_CBLOCK != 0)
		return osd_fail_parameter(request, OSD_ITEM_CONTINUATION);
	for (size_t i = 0; i < 8; i++)
		digest->h[i] = get_be32(item.value + 8 + 4 * i);
	digest->Nl = (SHA_LONG)(*digested << 3);
	digest->Nh = (SHA_LONG)(*digested >> 29);
	return 0;
}

/* Digests up to CHECKSUM_BYTES_MAX more of the range. */
static int digest_some(struct osd_request *request, uint64_t offset, uint64_t length,
		       SHA256_CTX *digest, uint64_t *digested)
{
	uint64_t end = min_u64(length, *digested + CHECKSUM_BYTES_MAX), got;
	uint8_t *buffer = malloc(WINDOW_BYTES);
	int result = buffer ? 0 : -ENOMEM;

	while (result == 0 && *digested < end) {
		uint64_t part = min_u64(end - *digested, WINDOW_BYTES);

		result = engine_read(request->txn, request->subject.address, offset + *digested,
				     buffer, part, &got);
		if (result == 0 && got != part)
			result = -EIO; /* the range lies inside the object */
		if (result == 0)
			SHA256_Update(digest, buffer, part);
		*digested += part;
	}
	free(buffer);
	return osd_result(request, result, 0);
}

int osd_function_checksum(struct osd_request *request)
{
	uint64_t length = request->subject.stat.length, offset, wanted, digested;
	uint8_t state[DIGEST_STATE_BYTES], value[SHA256_DIGEST_LENGTH];
	struct osd_item_writer writer;
	SHA256_CTX digest;

	if (osd_parameter_number(request, OSD_ITEM_OFFSET, 0, &offset) != 0)
		return -EINVAL;
	if (offset > length)
		return osd_fail_parameter(request, OSD_ITEM_OFFSET);
	if (osd_parameter_number(request, OSD_ITEM_LENGTH, length - offset, &wanted) != 0)
		return -EINVAL;
	if (wanted > length - offset)
		return osd_fail_parameter(request, OSD_ITEM_LENGTH);
	if (load_digest(request, wanted, &digest, &digested) != 0 ||
	    digest_some(request, offset, wanted, &digest, &digested) != 0)
		return -EINVAL;
	osd_result_begin(request, &writer);
	osd_item_add_number(&writer, OSD_ITEM_LENGTH, digested);
	if (digested < wanted) {
		save_digest(&digest, digested, state);
	} else {
		SHA256_Final(value, &digest);
		osd_item_add(&writer, OSD_ITEM_DIGEST, value, sizeof(value));
	}
	osd_result_end(request, &writer, digested < wanted ? state : NULL, sizeof(state),
		       osd_permille(digested, wanted));
	return 0;
}
