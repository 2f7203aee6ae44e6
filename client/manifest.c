/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The manifest in memory, and writing its text. manifest_parse.c reads it. */
#include "client/manifest.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/sha.h>

#include "client/manifest_text.h"

#define ENTRIES_FIRST 1024U

static void free_xattrs(struct manifest_entry *entry)
{
	for (size_t i = 0; i < entry->xattr_count; i++) {
		free(entry->xattrs[i].name);
		free(entry->xattrs[i].value);
	}
	free(entry->xattrs);
	entry->xattrs = NULL;
	entry->xattr_count = 0;
}

static void free_entry(struct manifest_entry *entry)
{
	free_xattrs(entry);
	free(entry->path);
	free(entry->target);
}

void manifest_free(struct manifest *manifest)
{
	for (size_t i = 0; i < manifest->count; i++)
		free_entry(&manifest->entries[i]);
	free(manifest->entries);
	*manifest = (struct manifest){ 0 };
}

struct manifest_entry *manifest_add(struct manifest *manifest)
{
	if (manifest->count == manifest->capacity) {
		size_t capacity = manifest->capacity ? manifest->capacity * 2 : ENTRIES_FIRST;
		struct manifest_entry *grown =
			reallocarray(manifest->entries, capacity, sizeof(*grown));

		if (!grown)
			return NULL;
		manifest->entries = grown;
		manifest->capacity = capacity;
	}
	manifest->entries[manifest->count] =
		(struct manifest_entry){ .user = MANIFEST_NO_OWNER, .group = MANIFEST_NO_OWNER };
	return &manifest->entries[manifest->count++];
}

int manifest_add_xattr(struct manifest_entry *entry, const char *name, const void *value,
		       size_t length)
{
	struct manifest_xattr *grown =
		reallocarray(entry->xattrs, entry->xattr_count + 1, sizeof(*grown));
	struct manifest_xattr *xattr;

	if (!grown)
		return -ENOMEM;
	entry->xattrs = grown;
	xattr = &grown[entry->xattr_count];
	*xattr = (struct manifest_xattr){ strdup(name), malloc(length + 1), length };
	if (!xattr->name || !xattr->value) {
		free(xattr->name);
		free(xattr->value);
		return -ENOMEM;
	}
	memcpy(xattr->value, value, length);
	entry->xattr_count++;
	return 0;
}

bool manifest_same_owner(const struct manifest_entry *a, const struct manifest_entry *b)
{
	return a->user == b->user && a->group == b->group;
}

bool manifest_same_xattrs(const struct manifest_entry *a, const struct manifest_entry *b)
{
	if (a->xattr_count != b->xattr_count)
		return false;
	for (size_t i = 0; i < a->xattr_count; i++)
		if (strcmp(a->xattrs[i].name, b->xattrs[i].name) != 0 ||
		    a->xattrs[i].length != b->xattrs[i].length ||
		    memcmp(a->xattrs[i].value, b->xattrs[i].value, a->xattrs[i].length) != 0)
			return false;
	return true;
}

int manifest_copy_owner(struct manifest_entry *to, const struct manifest_entry *from)
{
	int result = 0;

	to->user = from->user;
	to->group = from->group;
	free_xattrs(to);
	for (size_t i = 0; i < from->xattr_count && result == 0; i++)
		result = manifest_add_xattr(to, from->xattrs[i].name, from->xattrs[i].value,
					    from->xattrs[i].length);
	return result;
}

/* `linked` is lower than the entry's own index, so it says already where that one has gone. */
size_t manifest_take_out(struct manifest *manifest)
{
	size_t kept = 0, links = 0, *places = calloc(manifest->count + 1, sizeof(*places));

	if (!places)
		return SIZE_MAX;
	for (size_t i = 0; i < manifest->count; i++) {
		struct manifest_entry *entry = &manifest->entries[i];

		if (entry->type == MANIFEST_HARD_LINK && !entry->left_out) {
			entry->left_out = places[entry->linked] == SIZE_MAX;
			links += entry->left_out;
			entry->linked = places[entry->linked];
		}
		places[i] = entry->left_out ? SIZE_MAX : kept;
		if (entry->left_out) {
			free_entry(entry);
		} else {
			manifest->entries[kept++] = *entry;
		}
	}
	manifest->count = kept;
	free(places);
	return links;
}

/* The path as it is seen from `directory`; NULL: it is not below. */
static const char *below(const char *path, const char *directory)
{
	size_t length = strlen(directory);

	if (strncmp(path, directory, length) != 0)
		return NULL;
	return path[length] == '\0' ? "." : path[length] == '/' ? path + length + 1 : NULL;
}

/* The first link that is left becomes the file, and the others its links. */
static void become_file(struct manifest *manifest, size_t index)
{
	struct manifest_entry *entry = &manifest->entries[index];
	struct manifest_entry file = manifest->entries[entry->linked];
	size_t outside = entry->linked;

	file.path = entry->path;
	file.left_out = false;
	*entry = file;
	/* The one outside has no use for them any more. */
	manifest->entries[outside].xattrs = NULL;
	manifest->entries[outside].xattr_count = 0;
	for (size_t i = index + 1; i < manifest->count; i++)
		if (manifest->entries[i].type == MANIFEST_HARD_LINK &&
		    manifest->entries[i].linked == outside)
			manifest->entries[i].linked = index;
}

int manifest_leave_out(struct manifest *manifest)
{
	for (size_t i = 0; i < manifest->count; i++) {
		const struct manifest_entry *entry = &manifest->entries[i];

		if (entry->type == MANIFEST_HARD_LINK && !entry->left_out &&
		    manifest->entries[entry->linked].left_out)
			become_file(manifest, i);
	}
	return manifest_take_out(manifest) == SIZE_MAX ? -ENOMEM : 0;
}

int manifest_take_below(struct manifest *manifest, const char *directory)
{
	int result = -ENOENT;

	for (size_t i = 0; i < manifest->count; i++) {
		struct manifest_entry *entry = &manifest->entries[i];
		const char *path = below(entry->path, directory);

		entry->left_out = path == NULL;
		if (!path)
			continue;
		if (strcmp(path, ".") == 0)
			result = entry->type == MANIFEST_DIRECTORY ? 0 : -ENOTDIR;
		memmove(entry->path, path, strlen(path) + 1);
	}
	return result < 0 ? result : manifest_leave_out(manifest);
}

/* ---- text ---- */

bool manifest_plain(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c != '\0' && strchr("._-+=,:@/~", c));
}

static void write_escaped(FILE *to, const char *from)
{
	size_t plain;

	for (; *from; from += plain) {
		for (plain = 0; manifest_plain((unsigned char)from[plain]);)
			plain++;
		fwrite(from, 1, plain, to);
		if (from[plain])
			fprintf(to, "%%%02X", (unsigned char)from[plain++]);
	}
}

int manifest_escape(const char *from, char **to)
{
	size_t length;
	FILE *stream = open_memstream(to, &length);

	if (!stream)
		return -ENOMEM;
	write_escaped(stream, from);
	return fclose(stream) == 0 ? 0 : -ENOMEM;
}

void manifest_hex(const uint8_t *bytes, size_t length, char *text)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < length; i++) {
		text[2 * i] = digits[bytes[i] >> 4];
		text[2 * i + 1] = digits[bytes[i] & 15];
	}
	text[2 * length] = '\0';
}

static void write_xattr(FILE *to, const struct manifest_xattr *xattr)
{
	fputs("x ", to);
	write_escaped(to, xattr->name);
	fputs(" 0x", to);
	for (size_t i = 0; i < xattr->length; i++)
		fprintf(to, "%02x", xattr->value[i]);
	fputc('\n', to);
}

static void write_entry(FILE *to, const struct manifest_entry *entry)
{
	char sha256[2 * MANIFEST_SHA256_BYTES + 1];

	fputc((char)entry->type, to);
	if (entry->type == MANIFEST_DIRECTORY || entry->type == MANIFEST_FILE)
		fprintf(to, " %04" PRIo32, entry->mode);
	if (entry->type != MANIFEST_HARD_LINK)
		fprintf(to, " %" PRId64 ".%09" PRIu32 " %" PRIu32 ":%" PRIu32, entry->seconds,
			entry->nanoseconds, entry->user, entry->group);
	if (entry->type == MANIFEST_FILE) {
		manifest_hex(entry->sha256, MANIFEST_SHA256_BYTES, sha256);
		fprintf(to, " 0x%" PRIx64 " %" PRIu64 " %s", entry->object, entry->length, sha256);
	}
	if (entry->type == MANIFEST_HARD_LINK)
		fprintf(to, " %zu", entry->linked);
	fputc(' ', to);
	write_escaped(to, entry->path);
	if (entry->type == MANIFEST_SYMLINK) {
		fputc(' ', to);
		write_escaped(to, entry->target);
	}
	fputc('\n', to);
	for (size_t i = 0; i < entry->xattr_count; i++)
		write_xattr(to, &entry->xattrs[i]);
}

int manifest_format(const struct manifest *manifest, char **text, size_t *length)
{
	uint8_t digest[MANIFEST_SHA256_BYTES];
	char hex[2 * MANIFEST_SHA256_BYTES + 1];
	FILE *to = open_memstream(text, length);

	if (!to)
		return -ENOMEM;
	fputs(MANIFEST_FIRST_LINE, to);
	for (size_t i = 0; i < manifest->count; i++)
		write_entry(to, &manifest->entries[i]);
	if (fflush(to) == 0) {
		SHA256((const unsigned char *)*text, *length, digest);
		manifest_hex(digest, sizeof(digest), hex);
		fprintf(to, MANIFEST_LAST_WORD " %zu %s\n", manifest->count, hex);
	}
	if (ferror(to) | (fclose(to) != 0)) {
		free(*text);
		return -ENOMEM;
	}
	return 0;
}
