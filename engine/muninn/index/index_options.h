/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Which index a device has; 0 = default. The numbers are those of the static header. */
#ifndef MUNINN_ENGINE_MUNINN_INDEX_INDEX_OPTIONS_H
#define MUNINN_ENGINE_MUNINN_INDEX_INDEX_OPTIONS_H

enum index_kind {
	INDEX_BLOOM = 1,
	INDEX_RIBBON = 2,
	INDEX_DEFAULT = INDEX_RIBBON,
};

/* bloom, ribbon; and back. -EINVAL: another word. */
const char *index_kind_name(enum index_kind kind);
int index_kind_parse(const char *name, enum index_kind *kind);

#endif
