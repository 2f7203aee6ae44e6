/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Checks that this tgtd is the one that the module was built for. */
#include "daemon/module/identity.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "tgt_identity.h"

#define BUILD_ID_BYTES_MAX 32

struct build_id {
	char text[2 * BUILD_ID_BYTES_MAX + 1]; /* hexadecimal; empty when there is none */
};

/* Notes are a 12-byte header, a name and a value, each padded to 4 bytes. */
static void find_build_id(const uint8_t *notes, size_t length, struct build_id *id)
{
	while (length >= sizeof(ElfW(Nhdr))) {
		ElfW(Nhdr) header;
		size_t name_bytes, value_bytes;
		const uint8_t *name = notes + sizeof(header), *value;

		memcpy(&header, notes, sizeof(header));
		name_bytes = align_up(header.n_namesz, 4);
		value_bytes = align_up(header.n_descsz, 4);
		if (name_bytes + value_bytes > length - sizeof(header))
			return;
		value = name + name_bytes;
		if (header.n_type == NT_GNU_BUILD_ID && header.n_namesz == 4 &&
		    !memcmp(name, "GNU", 4) && header.n_descsz <= BUILD_ID_BYTES_MAX) {
			for (size_t i = 0; i < header.n_descsz; i++)
				snprintf(id->text + 2 * i, 3, "%02x", value[i]);
			return;
		}
		notes = value + value_bytes;
		length -= sizeof(header) + name_bytes + value_bytes;
	}
}

static int visit(struct dl_phdr_info *object, size_t size, void *id)
{
	(void)size;
	for (size_t i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &object->dlpi_phdr[i];

		if (segment->p_type == PT_NOTE)
			find_build_id((const uint8_t *)(object->dlpi_addr + segment->p_vaddr),
				      segment->p_memsz, id);
	}
	return 1; /* the first object is the program itself; the libraries do not matter */
}

int tgtd_identity_check(struct error_text *error)
{
	const char *expected = getenv("MUNINN_TGTD_BUILD_ID");
	struct build_id running = { "" };

	if (!expected)
		expected = TGT_BUILD_ID;
	dl_iterate_phdr(visit, &running);
	if (!strcmp(running.text, expected))
		return 0;
	return error_set(
		error, -ENOEXEC,
		"this module was built for the tgtd of tgt %s with build ID %s, but runs in one "
		"with build ID %s; build Muninn again with this tgt installed",
		TGT_VERSION_TEXT, expected, running.text[0] ? running.text : "(none)");
}
