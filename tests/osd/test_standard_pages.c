/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Every attribute of the standard's pages: how long it is, whether clients may set it, and that it
 * is refused when read-only, of the wrong length or of a value that can't be.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/bytes.h"
#include "osd/security.h"
#include "tests/osd/unit.h"

#define ANY     UINT32_MAX       /* any length */
#define PAIRS   (UINT32_MAX - 1) /* pages and numbers, 8 bytes each */
#define COLLECT (O + 50)         /* a collection */

enum access { READ_ONLY, SETTABLE };

struct row {
	uint32_t page, number;
	uint32_t length; /* when it is defined */
	enum access access;
	bool defined;    /* on a fresh object */
	const char *bad; /* a value of the right length that can't be; NULL: there is none */
};

/*
 * Every attribute of every standard page of the four types of objects, with some numbers that a
 * page does not have beside those that it has.
 */
static const struct row rows[] = {
	/* root information */
	{ OSD_ROOT_INFORMATION, 0x0, 40, READ_ONLY, true, NULL },
	{ OSD_ROOT_INFORMATION, 0x1, 8, READ_ONLY, false, NULL },
	{ OSD_ROOT_INFORMATION, 0x2, 8, READ_ONLY, false, NULL },
	{ OSD_ROOT_INFORMATION, 0x3, 20, READ_ONLY, true, NULL },
	{ OSD_ROOT_INFORMATION, 0x4, 8, READ_ONLY, true, NULL },
	{ OSD_ROOT_INFORMATION, 0x5, 16, READ_ONLY, true, NULL },
	{ OSD_ROOT_INFORMATION, 0x6, 32, READ_ONLY, true, NULL },
	{ OSD_ROOT_INFORMATION, 0x7, 4, READ_ONLY, true, NULL },
	{ OSD_ROOT_INFORMATION, 0x8, ANY, READ_ONLY, true, NULL },
	{ OSD_ROOT_INFORMATION, 0x9, ANY, SETTABLE, false, NULL },
	{ OSD_ROOT_INFORMATION, 0xA, 4, READ_ONLY, true, NULL },
	{ OSD_ROOT_INFORMATION, 0x80, 8, READ_ONLY, true, NULL },
	{ OSD_ROOT_INFORMATION, 0x81, 8, READ_ONLY, true, NULL },
	{ OSD_ROOT_INFORMATION, 0xC0, 8, READ_ONLY, true, NULL },
	{ OSD_ROOT_INFORMATION, 0xC1, 8, READ_ONLY, false, NULL },
	{ OSD_ROOT_INFORMATION, 0x100, 6, READ_ONLY, true, NULL },
	{ OSD_ROOT_INFORMATION, 0x110, 1, SETTABLE, true, "\0" },
	{ OSD_ROOT_INFORMATION, 0x110, 1, SETTABLE, true, "\3" },
	{ OSD_ROOT_INFORMATION, 0x111, 32, READ_ONLY, true, NULL },
	{ OSD_ROOT_INFORMATION, 0x120, 8, READ_ONLY, true, NULL },
	{ OSD_ROOT_INFORMATION, 0x121, 8, READ_ONLY, true, NULL },
	{ OSD_ROOT_INFORMATION, 0x122, 8, READ_ONLY, true, NULL },
	{ OSD_ROOT_INFORMATION, 0x123, 1, READ_ONLY, true, NULL },
	{ OSD_ROOT_INFORMATION, 0x1C1, 4, READ_ONLY, true, NULL },
	{ OSD_ROOT_INFORMATION, 0x1C2, 4, READ_ONLY, true, NULL },
	{ OSD_ROOT_INFORMATION, 0x1CC, 4, READ_ONLY, true, NULL },
	{ OSD_ROOT_INFORMATION, 0x200, 4, READ_ONLY, true, NULL },
	{ OSD_ROOT_INFORMATION, 0x201, 4, READ_ONLY, false, NULL },
	{ OSD_ROOT_INFORMATION, 0x241, 4, READ_ONLY, false, NULL },
	{ OSD_ROOT_INFORMATION, 0x281, 4, READ_ONLY, true, NULL },
	{ OSD_ROOT_INFORMATION, 0x2FD, 4, READ_ONLY, true, NULL },
	{ OSD_ROOT_INFORMATION, 0x2FE, 4, READ_ONLY, true, NULL },
	{ OSD_ROOT_INFORMATION, 0x2FF, 4, READ_ONLY, true, NULL },
	{ OSD_ROOT_INFORMATION, 0x300, 4, READ_ONLY, true, NULL },
	{ OSD_ROOT_INFORMATION, 0x301, 4, READ_ONLY, false, NULL },
	{ OSD_ROOT_INFORMATION, 0x30F, 4, READ_ONLY, false, NULL },
	{ OSD_ROOT_INFORMATION, 0x310, 4, READ_ONLY, true, NULL },
	{ OSD_ROOT_INFORMATION, 0x311, 1, READ_ONLY, true, NULL },
	{ OSD_ROOT_INFORMATION, 0x7000001, 4, READ_ONLY, true, NULL },
	{ OSD_ROOT_INFORMATION, 0x7000002, 4, READ_ONLY, true, NULL },
	{ OSD_ROOT_INFORMATION, 0x7000003, 4, READ_ONLY, false, NULL },
	{ OSD_ROOT_INFORMATION, 0x7000100, 4, READ_ONLY, true, NULL },
	{ OSD_ROOT_INFORMATION, 0x7000101, 4, READ_ONLY, true, NULL },
	{ OSD_ROOT_INFORMATION, 0x700FFEE, 4, READ_ONLY, true, NULL },
	{ OSD_ROOT_INFORMATION, 0x700FFFF, 4, READ_ONLY, false, NULL },

	/* root quotas, timestamps */
	{ OSD_ROOT_QUOTAS, 0x0, 40, READ_ONLY, true, NULL },
	{ OSD_ROOT_QUOTAS, 0x1, 8, SETTABLE, false, NULL },
	{ OSD_ROOT_QUOTAS, 0x10001, 8, SETTABLE, false, NULL },
	{ OSD_ROOT_QUOTAS, 0x10002, 8, SETTABLE, false, NULL },
	{ OSD_ROOT_QUOTAS, 0x10081, 4, SETTABLE, false, NULL },
	{ OSD_ROOT_QUOTAS, 0x20002, 8, SETTABLE, false, NULL },
	{ OSD_ROOT_TIMESTAMPS, 0x0, 40, READ_ONLY, true, NULL },
	{ OSD_ROOT_TIMESTAMPS, 0x1, 6, READ_ONLY, false, NULL },
	{ OSD_ROOT_TIMESTAMPS, 0x2, 6, SETTABLE, true, NULL },
	{ OSD_ROOT_TIMESTAMPS, 0x3, 6, SETTABLE, true, NULL },
	{ OSD_ROOT_TIMESTAMPS, 0x4, 6, READ_ONLY, false, NULL },
	{ OSD_ROOT_TIMESTAMPS, 0x5, 6, READ_ONLY, false, NULL },
	{ OSD_ROOT_TIMESTAMPS, 0xFFFFFFFE, 1, SETTABLE, false, "\1" },

	/* root policy/security, of a unit without keys */
	{ OSD_ROOT_SECURITY, 0x0, 40, READ_ONLY, true, NULL },
	{ OSD_ROOT_SECURITY, 0x1, 1, SETTABLE, true, "\4" },
	{ OSD_ROOT_SECURITY, 0x2, 6, READ_ONLY, true, NULL },
	{ OSD_ROOT_SECURITY, 0x3, 6, READ_ONLY, true, NULL },
	{ OSD_ROOT_SECURITY, 0x4, 2, READ_ONLY, false, NULL },
	{ OSD_ROOT_SECURITY, 0x5, 2, READ_ONLY, false, NULL },
	{ OSD_ROOT_SECURITY, 0x6, 1, SETTABLE, true, "\4" },
	{ OSD_ROOT_SECURITY, 0x7, 2, READ_ONLY, true, NULL },
	{ OSD_ROOT_SECURITY, 0x8, 2, READ_ONLY, false, NULL },
	{ OSD_ROOT_SECURITY, 0x9, 6, READ_ONLY, true, NULL },
	{ OSD_ROOT_SECURITY, 0xA, 2, READ_ONLY, false, NULL },
	{ OSD_ROOT_SECURITY, 0x7FFD, 7, READ_ONLY, false, NULL },
	{ OSD_ROOT_SECURITY, 0x7FFE, 7, READ_ONLY, false, NULL },
	{ OSD_ROOT_SECURITY, 0x7FFF, 7, READ_ONLY, false, NULL },
	{ OSD_ROOT_SECURITY, 0x80000000, 1, READ_ONLY, true, NULL },
	{ OSD_ROOT_SECURITY, 0x80000001, 1, READ_ONLY, false, NULL },
	{ OSD_ROOT_SECURITY, 0x8000000F, 1, READ_ONLY, false, NULL },
	{ OSD_ROOT_SECURITY, 0x80000010, 1, READ_ONLY, true, NULL },
	{ OSD_ROOT_SECURITY, 0x80000011, 1, READ_ONLY, true, NULL },
	{ OSD_ROOT_SECURITY, 0x80000012, 1, READ_ONLY, false, NULL },
	{ OSD_ROOT_SECURITY, 0x8000001F, 1, READ_ONLY, false, NULL },
	{ OSD_ROOT_SECURITY, 0x40000001, 4, READ_ONLY, false, NULL },

	/* root error recovery, and what we tell more */
	{ OSD_ROOT_ERROR_RECOVERY, 0x0, 40, READ_ONLY, true, NULL },
	{ OSD_ROOT_ERROR_RECOVERY, 0x1, 1, READ_ONLY, true, NULL },
	{ OSD_ROOT_ERROR_RECOVERY, 0x2, 1, READ_ONLY, true, NULL },
	{ OSD_ROOT_ERROR_RECOVERY, 0x3, 6, READ_ONLY, false, NULL },
	{ OSD_ROOT_ERROR_RECOVERY, 0x4, 6, READ_ONLY, false, NULL },
	{ OSD_ROOT_ERROR_RECOVERY, 0x5, 6, READ_ONLY, false, NULL },
	{ OSD_ROOT_ERROR_RECOVERY, 0x6, 8, READ_ONLY, true, NULL },
	{ OSD_MUNINN_ROOT, 0x1, 8, READ_ONLY, true, NULL },
	{ OSD_MUNINN_ROOT, 0x2, 8, READ_ONLY, false, NULL },
	{ OSD_MUNINN_ROOT, 0x3, 8, READ_ONLY, false, NULL },

	/* partition information */
	{ OSD_PARTITION_INFORMATION, 0x0, 40, READ_ONLY, true, NULL },
	{ OSD_PARTITION_INFORMATION, 0x1, 8, READ_ONLY, true, NULL },
	{ OSD_PARTITION_INFORMATION, 0x2, 8, READ_ONLY, false, NULL },
	{ OSD_PARTITION_INFORMATION, 0x9, ANY, SETTABLE, false, NULL },
	{ OSD_PARTITION_INFORMATION, 0xA, 1, READ_ONLY, false, NULL },
	{ OSD_PARTITION_INFORMATION, 0x81, 8, READ_ONLY, true, NULL },
	{ OSD_PARTITION_INFORMATION, 0x82, 8, READ_ONLY, false, NULL },
	{ OSD_PARTITION_INFORMATION, 0x84, 8, READ_ONLY, true, NULL },
	{ OSD_PARTITION_INFORMATION, 0xC1, 8, READ_ONLY, true, NULL },
	{ OSD_PARTITION_INFORMATION, 0xD1, 8, READ_ONLY, true, NULL },
	{ OSD_PARTITION_INFORMATION, 0xD2, 8, READ_ONLY, false, NULL },
	{ OSD_PARTITION_INFORMATION, 0x200, 4, SETTABLE, true, "\0\0\0\x41" },
	{ OSD_PARTITION_INFORMATION, 0x201, 4, SETTABLE, true, "\0\0\0\x81" },
	{ OSD_PARTITION_INFORMATION, 0x300, 4, SETTABLE, true, "\0\0\0\1" },
	{ OSD_PARTITION_INFORMATION, 0x301, 4, SETTABLE, true, "\1\0\0\0" },

	/* partition quotas, timestamps */
	{ OSD_PARTITION_QUOTAS, 0x0, 40, READ_ONLY, true, NULL },
	{ OSD_PARTITION_QUOTAS, 0x1, 8, SETTABLE, false, NULL },
	{ OSD_PARTITION_QUOTAS, 0x10001, 8, SETTABLE, false, NULL },
	{ OSD_PARTITION_QUOTAS, 0x10002, 8, SETTABLE, false, NULL },
	{ OSD_PARTITION_QUOTAS, 0x10081, 4, SETTABLE, false, NULL },
	{ OSD_PARTITION_QUOTAS, 0x20002, 8, READ_ONLY, false, NULL },
	{ OSD_PARTITION_TIMESTAMPS, 0x0, 40, READ_ONLY, true, NULL },
	{ OSD_PARTITION_TIMESTAMPS, 0x1, 6, READ_ONLY, true, NULL },
	{ OSD_PARTITION_TIMESTAMPS, 0x2, 6, SETTABLE, true, NULL },
	{ OSD_PARTITION_TIMESTAMPS, 0x3, 6, SETTABLE, true, NULL },
	{ OSD_PARTITION_TIMESTAMPS, 0x4, 6, SETTABLE, true, NULL },
	{ OSD_PARTITION_TIMESTAMPS, 0x5, 6, SETTABLE, true, NULL },
	{ OSD_PARTITION_TIMESTAMPS, 0xFFFFFFFE, 1, SETTABLE, false, "\1" },

	/* partition attributes access */
	{ OSD_PARTITION_ATTRIBUTES_ACCESS, 0x0, 40, READ_ONLY, true, NULL },
	{ OSD_PARTITION_ATTRIBUTES_ACCESS, 0x1, PAIRS, SETTABLE, false, NULL },
	{ OSD_PARTITION_ATTRIBUTES_ACCESS, 0x2, PAIRS, SETTABLE, false, NULL },
	{ OSD_PARTITION_ATTRIBUTES_ACCESS, 0x10, PAIRS, SETTABLE, false, NULL },
	{ OSD_PARTITION_ATTRIBUTES_ACCESS, 0x11, PAIRS, READ_ONLY, false, NULL },

	/* partition policy/security, without keys */
	{ OSD_PARTITION_SECURITY, 0x0, 40, READ_ONLY, true, NULL },
	{ OSD_PARTITION_SECURITY, 0x1, 1, SETTABLE, true, "\4" },
	{ OSD_PARTITION_SECURITY, 0x2, 6, SETTABLE, true, "\0\0\0\0\0\0" },
	{ OSD_PARTITION_SECURITY, 0x3, 6, SETTABLE, true, "\0\0\0\xFF\0\0" },
	{ OSD_PARTITION_SECURITY, 0x4, 2, READ_ONLY, true, NULL },
	{ OSD_PARTITION_SECURITY, 0x5, 2, SETTABLE, false, NULL },
	{ OSD_PARTITION_SECURITY, 0x6, 1, READ_ONLY, false, NULL },
	{ OSD_PARTITION_SECURITY, 0x7, 2, READ_ONLY, false, NULL },
	{ OSD_PARTITION_SECURITY, 0x7FFE, 7, READ_ONLY, false, NULL },
	{ OSD_PARTITION_SECURITY, 0x7FFF, 7, READ_ONLY, false, NULL },
	{ OSD_PARTITION_SECURITY, 0x8000, 7, READ_ONLY, false, NULL },
	{ OSD_PARTITION_SECURITY, 0x8005, 7, READ_ONLY, false, NULL },
	{ OSD_PARTITION_SECURITY, 0x800F, 7, READ_ONLY, false, NULL },
	{ OSD_PARTITION_SECURITY, 0x8010, 7, READ_ONLY, false, NULL },
	{ OSD_PARTITION_SECURITY, 0x40000001, 4, SETTABLE, false, NULL },
	{ OSD_PARTITION_SECURITY, 0x40000002, 4, SETTABLE, false, NULL },

	/* partition error recovery, frozen audit values, our own page */
	{ OSD_PARTITION_ERROR_RECOVERY, 0x0, 40, READ_ONLY, true, NULL },
	{ OSD_PARTITION_ERROR_RECOVERY, 0x1, 1, READ_ONLY, true, NULL },
	{ OSD_PARTITION_ERROR_RECOVERY, 0x2, 1, READ_ONLY, true, NULL },
	{ OSD_PARTITION_ERROR_RECOVERY, 0x3, 6, READ_ONLY, false, NULL },
	{ OSD_PARTITION_ERROR_RECOVERY, 0x4, 6, READ_ONLY, false, NULL },
	{ OSD_PARTITION_ERROR_RECOVERY, 0x5, 6, READ_ONLY, false, NULL },
	{ OSD_PARTITION_ERROR_RECOVERY, 0x6, 8, READ_ONLY, true, NULL },
	{ OSD_PARTITION_FROZEN_AUDITS, 0x1, 20, SETTABLE, false, NULL },
	{ OSD_PARTITION_FROZEN_AUDITS, 0x10, 20, SETTABLE, false, NULL },
	{ OSD_PARTITION_FROZEN_AUDITS, 0x11, 20, READ_ONLY, false, NULL },
	{ OSD_MUNINN_PARTITION, 0x1, 1, READ_ONLY, true, NULL }, /* chosen at creation */
	{ OSD_MUNINN_PARTITION, 0x2, 8, READ_ONLY, false, NULL },
	{ OSD_MUNINN_PARTITION, 0x3, 6, READ_ONLY, false, NULL },
	{ OSD_MUNINN_PARTITION, 0x4, 1, READ_ONLY, false, NULL },
	{ OSD_MUNINN_PARTITION, 0x5, 4, READ_ONLY, false, NULL },

	/* collection information, timestamps */
	{ OSD_COLLECTION_INFORMATION, 0x0, 40, READ_ONLY, true, NULL },
	{ OSD_COLLECTION_INFORMATION, 0x1, 8, READ_ONLY, true, NULL },
	{ OSD_COLLECTION_INFORMATION, 0x2, 8, READ_ONLY, true, NULL },
	{ OSD_COLLECTION_INFORMATION, 0x9, ANY, SETTABLE, false, NULL },
	{ OSD_COLLECTION_INFORMATION, 0xA, 1, READ_ONLY, true, NULL },
	{ OSD_COLLECTION_INFORMATION, 0x81, 8, READ_ONLY, true, NULL },
	{ OSD_COLLECTION_INFORMATION, 0x82, 8, READ_ONLY, false, NULL },
	{ OSD_COLLECTION_INFORMATION, 0xC1, 8, READ_ONLY, false, NULL },
	{ OSD_COLLECTION_TIMESTAMPS, 0x0, 40, READ_ONLY, true, NULL },
	{ OSD_COLLECTION_TIMESTAMPS, 0x1, 6, READ_ONLY, true, NULL },
	{ OSD_COLLECTION_TIMESTAMPS, 0x2, 6, SETTABLE, true, NULL },
	{ OSD_COLLECTION_TIMESTAMPS, 0x3, 6, SETTABLE, true, NULL },
	{ OSD_COLLECTION_TIMESTAMPS, 0x4, 6, SETTABLE, true, NULL },
	{ OSD_COLLECTION_TIMESTAMPS, 0x5, 6, SETTABLE, true, NULL },
	{ OSD_COLLECTION_TIMESTAMPS, 0xFFFFFFFE, 1, READ_ONLY, false, NULL },

	/* command tracking, of a linear collection */
	{ OSD_COLLECTION_TRACKING, 0x0, 40, READ_ONLY, true, NULL },
	{ OSD_COLLECTION_TRACKING, 0x1, 1, READ_ONLY, false, NULL },
	{ OSD_COLLECTION_TRACKING, 0x2, 2, READ_ONLY, false, NULL },
	{ OSD_COLLECTION_TRACKING, 0x3, 2, READ_ONLY, false, NULL },
	{ OSD_COLLECTION_TRACKING, 0x4, ANY, READ_ONLY, false, NULL },
	{ OSD_COLLECTION_TRACKING, 0x10, 8, READ_ONLY, false, NULL },
	{ OSD_COLLECTION_TRACKING, 0x11, 8, READ_ONLY, false, NULL },
	{ OSD_COLLECTION_TRACKING, 0x12, 8, READ_ONLY, false, NULL },
	{ OSD_COLLECTION_TRACKING, 0x13, 8, READ_ONLY, false, NULL },

	/* collection policy/security, error recovery */
	{ OSD_COLLECTION_SECURITY, 0x0, 40, READ_ONLY, true, NULL },
	{ OSD_COLLECTION_SECURITY, 0x40000001, 4, SETTABLE, false, NULL },
	{ OSD_COLLECTION_SECURITY, 0x40000002, 4, READ_ONLY, false, NULL },
	{ OSD_COLLECTION_SECURITY, 0x1, 1, READ_ONLY, false, NULL },
	{ OSD_COLLECTION_ERROR_RECOVERY, 0x0, 40, READ_ONLY, true, NULL },
	{ OSD_COLLECTION_ERROR_RECOVERY, 0x1, 1, READ_ONLY, true, NULL },
	{ OSD_COLLECTION_ERROR_RECOVERY, 0x2, 1, READ_ONLY, false, NULL },
	{ OSD_COLLECTION_ERROR_RECOVERY, 0x3, 6, READ_ONLY, false, NULL },
	{ OSD_COLLECTION_ERROR_RECOVERY, 0x4, 6, READ_ONLY, false, NULL },
	{ OSD_COLLECTION_ERROR_RECOVERY, 0x5, 6, READ_ONLY, false, NULL },
	{ OSD_COLLECTION_ERROR_RECOVERY, 0x6, 8, READ_ONLY, false, NULL },

	/* user object information */
	{ OSD_USER_OBJECT_INFORMATION, 0x0, 40, READ_ONLY, true, NULL },
	{ OSD_USER_OBJECT_INFORMATION, 0x1, 8, READ_ONLY, true, NULL },
	{ OSD_USER_OBJECT_INFORMATION, 0x2, 8, READ_ONLY, true, NULL },
	{ OSD_USER_OBJECT_INFORMATION, 0x9, ANY, SETTABLE, false, NULL },
	{ OSD_USER_OBJECT_INFORMATION, 0xA, 1, READ_ONLY, false, NULL },
	{ OSD_USER_OBJECT_INFORMATION, 0x81, 8, READ_ONLY, true, NULL },
	{ OSD_USER_OBJECT_INFORMATION, 0x82, 8, SETTABLE, true,
	  "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF" },
	{ OSD_USER_OBJECT_INFORMATION, 0x84, 8, READ_ONLY, false, NULL },
	{ OSD_USER_OBJECT_INFORMATION, 0xC1, 8, READ_ONLY, false, NULL },
	{ OSD_USER_OBJECT_INFORMATION, 0xD1, 8, READ_ONLY, true, NULL },
	{ OSD_USER_OBJECT_INFORMATION, 0xD2, 8, READ_ONLY, false, NULL },

	/* user object quotas, timestamps */
	{ OSD_USER_OBJECT_QUOTAS, 0x0, 40, READ_ONLY, true, NULL },
	{ OSD_USER_OBJECT_QUOTAS, 0x1, 8, SETTABLE, false, NULL },
	{ OSD_USER_OBJECT_QUOTAS, 0x10001, 8, READ_ONLY, false, NULL },
	{ OSD_USER_OBJECT_QUOTAS, 0x10002, 8, READ_ONLY, false, NULL },
	{ OSD_USER_OBJECT_QUOTAS, 0x10081, 4, READ_ONLY, false, NULL },
	{ OSD_USER_OBJECT_QUOTAS, 0x20002, 8, READ_ONLY, false, NULL },
	{ OSD_USER_OBJECT_TIMESTAMPS, 0x0, 40, READ_ONLY, true, NULL },
	{ OSD_USER_OBJECT_TIMESTAMPS, 0x1, 6, READ_ONLY, true, NULL },
	{ OSD_USER_OBJECT_TIMESTAMPS, 0x2, 6, SETTABLE, true, NULL },
	{ OSD_USER_OBJECT_TIMESTAMPS, 0x3, 6, SETTABLE, true, NULL },
	{ OSD_USER_OBJECT_TIMESTAMPS, 0x4, 6, SETTABLE, true, NULL },
	{ OSD_USER_OBJECT_TIMESTAMPS, 0x5, 6, SETTABLE, true, NULL },
	{ OSD_USER_OBJECT_TIMESTAMPS, 0xFFFFFFFE, 1, READ_ONLY, false, NULL },

	/* collections of a user object */
	{ OSD_USER_OBJECT_COLLECTIONS, 0x0, 40, READ_ONLY, true, NULL },
	{ OSD_USER_OBJECT_COLLECTIONS, 0x1, 8, SETTABLE, false, "\0\0\0\0\0\1\x99\x99" },
	{ OSD_USER_OBJECT_COLLECTIONS, 0xFFFFFF01, 8, READ_ONLY, false, NULL },

	/* user object policy/security, error recovery, atomics */
	{ OSD_USER_OBJECT_SECURITY, 0x0, 40, READ_ONLY, true, NULL },
	{ OSD_USER_OBJECT_SECURITY, 0x40000001, 4, SETTABLE, false, NULL },
	{ OSD_USER_OBJECT_SECURITY, 0x40000002, 4, READ_ONLY, false, NULL },
	{ OSD_USER_OBJECT_SECURITY, 0x1, 1, READ_ONLY, false, NULL },
	{ OSD_USER_OBJECT_ERROR_RECOVERY, 0x0, 40, READ_ONLY, true, NULL },
	{ OSD_USER_OBJECT_ERROR_RECOVERY, 0x1, 1, READ_ONLY, true, NULL },
	{ OSD_USER_OBJECT_ERROR_RECOVERY, 0x2, 1, READ_ONLY, false, NULL },
	{ OSD_USER_OBJECT_ERROR_RECOVERY, 0x3, 6, READ_ONLY, false, NULL },
	{ OSD_USER_OBJECT_ERROR_RECOVERY, 0x4, 6, READ_ONLY, false, NULL },
	{ OSD_USER_OBJECT_ERROR_RECOVERY, 0x5, 6, READ_ONLY, false, NULL },
	{ OSD_USER_OBJECT_ERROR_RECOVERY, 0x6, 8, READ_ONLY, false, NULL },
	{ OSD_USER_OBJECT_ATOMICS, 0x0, 40, READ_ONLY, true, NULL },
	{ OSD_USER_OBJECT_ATOMICS, 0x1, 8, SETTABLE, false, NULL },
	{ OSD_USER_OBJECT_ATOMICS, 0x2, 8, SETTABLE, false, NULL },

	/* current command */
	{ OSD_PAGE_CURRENT_COMMAND, 0x0, 40, READ_ONLY, true, NULL },
	{ OSD_PAGE_CURRENT_COMMAND, 0x1, 32, READ_ONLY, true, NULL },
	{ OSD_PAGE_CURRENT_COMMAND, 0x2, 1, READ_ONLY, true, NULL },
	{ OSD_PAGE_CURRENT_COMMAND, 0x3, 8, READ_ONLY, true, NULL },
	{ OSD_PAGE_CURRENT_COMMAND, 0x4, 8, READ_ONLY, true, NULL },
	{ OSD_PAGE_CURRENT_COMMAND, 0x5, 8, READ_ONLY, true, NULL },
	{ OSD_PAGE_CURRENT_COMMAND, 0x6, 8, READ_ONLY, true, NULL },
	{ OSD_PAGE_CURRENT_COMMAND, 0x7, 8, READ_ONLY, false, NULL },

	/* directories */
	{ OSD_PAGES_ROOT, 0x0, 40, READ_ONLY, true, NULL },
	{ OSD_PAGES_ROOT, OSD_ROOT_INFORMATION, 40, READ_ONLY, true, NULL },
	{ OSD_PAGES_ROOT, OSD_ROOT_QUOTAS, 40, READ_ONLY, true, NULL },
	{ OSD_PAGES_ROOT, OSD_ROOT_TIMESTAMPS, 40, READ_ONLY, true, NULL },
	{ OSD_PAGES_ROOT, OSD_ROOT_SECURITY, 40, READ_ONLY, true, NULL },
	{ OSD_PAGES_ROOT, OSD_ROOT_ERROR_RECOVERY, 40, READ_ONLY, true, NULL },
	{ OSD_PAGES_ROOT, OSD_PAGES_ROOT + 0x7F, 40, READ_ONLY, false, NULL },
	{ OSD_PAGES_PARTITION, 0x0, 40, READ_ONLY, true, NULL },
	{ OSD_PAGES_PARTITION, OSD_PARTITION_INFORMATION, 40, READ_ONLY, true, NULL },
	{ OSD_PAGES_PARTITION, OSD_PARTITION_QUOTAS, 40, READ_ONLY, true, NULL },
	{ OSD_PAGES_PARTITION, OSD_PARTITION_TIMESTAMPS, 40, READ_ONLY, true, NULL },
	{ OSD_PAGES_PARTITION, OSD_PARTITION_ATTRIBUTES_ACCESS, 40, READ_ONLY, true, NULL },
	{ OSD_PAGES_PARTITION, OSD_PARTITION_SECURITY, 40, READ_ONLY, true, NULL },
	{ OSD_PAGES_PARTITION, OSD_PARTITION_ERROR_RECOVERY, 40, READ_ONLY, true, NULL },
	{ OSD_PAGES_PARTITION, OSD_PAGES_PARTITION + 0x7F, 40, READ_ONLY, false, NULL },
	{ OSD_PAGES_COLLECTION, 0x0, 40, READ_ONLY, true, NULL },
	{ OSD_PAGES_COLLECTION, OSD_COLLECTION_INFORMATION, 40, READ_ONLY, true, NULL },
	{ OSD_PAGES_COLLECTION, OSD_COLLECTION_TIMESTAMPS, 40, READ_ONLY, true, NULL },
	{ OSD_PAGES_COLLECTION, OSD_COLLECTION_TRACKING, 40, READ_ONLY, true, NULL },
	{ OSD_PAGES_COLLECTION, OSD_COLLECTION_SECURITY, 40, READ_ONLY, true, NULL },
	{ OSD_PAGES_COLLECTION, OSD_COLLECTION_ERROR_RECOVERY, 40, READ_ONLY, true, NULL },
	{ OSD_PAGES_COLLECTION, OSD_PAGES_COLLECTION + 0x7F, 40, READ_ONLY, false, NULL },
	{ OSD_PAGES_USER_OBJECT, 0x0, 40, READ_ONLY, true, NULL },
	{ OSD_PAGES_USER_OBJECT, OSD_USER_OBJECT_INFORMATION, 40, READ_ONLY, true, NULL },
	{ OSD_PAGES_USER_OBJECT, OSD_USER_OBJECT_QUOTAS, 40, READ_ONLY, true, NULL },
	{ OSD_PAGES_USER_OBJECT, OSD_USER_OBJECT_TIMESTAMPS, 40, READ_ONLY, true, NULL },
	{ OSD_PAGES_USER_OBJECT, OSD_USER_OBJECT_COLLECTIONS, 40, READ_ONLY, true, NULL },
	{ OSD_PAGES_USER_OBJECT, OSD_USER_OBJECT_SECURITY, 40, READ_ONLY, true, NULL },
	{ OSD_PAGES_USER_OBJECT, OSD_USER_OBJECT_ERROR_RECOVERY, 40, READ_ONLY, true, NULL },
	{ OSD_PAGES_USER_OBJECT, OSD_USER_OBJECT_ATOMICS, 40, READ_ONLY, true, NULL },
	{ OSD_PAGES_USER_OBJECT, OSD_PAGES_USER_OBJECT + 0x7F, 40, READ_ONLY, false, NULL },
	{ OSD_PAGES_COLLECTION, OSD_PAGES_COLLECTION + OSD_PAGE_QUOTAS, 40, READ_ONLY, false,
	  NULL },
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

/* The object that has a page. */
static void find(uint32_t page, uint64_t *partition, uint64_t *object)
{
	*partition = page < OSD_PAGES_ROOT || page >= OSD_PAGES_RESERVED ? P : 0;
	*object = page < OSD_PAGES_PARTITION || page >= OSD_PAGES_RESERVED ? O : 0;
	if (page >= OSD_PAGES_COLLECTION && page < OSD_PAGES_ROOT)
		*object = COLLECT;
}

static int set_up(void **state)
{
	struct call call;

	unit_set_up_with_object(state);
	call = call_of(OSD_CREATE_COLLECTION, P, COLLECT);
	call_run(*state, &call);
	expect_good((struct unit *)*state);
	return 0;
}

/* Status of a SET ATTRIBUTES; on an error it must name the attribute. */
static bool can_set(struct unit *unit, const struct row *row, const void *value, uint32_t length)
{
	struct call call;
	uint64_t partition, object;
	struct osd_sense sense;

	find(row->page, &partition, &object);
	call = call_of(OSD_SET_ATTRIBUTES, partition, object);
	call_set(&call, row->page, row->number, value, length);
	call_run(unit, &call);
	if (unit->command.status == SCSI_STATUS_GOOD)
		return true;
	expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_INVALID_FIELD_IN_PARAMETER_LIST);
	sense = unit_sense(unit);
	assert_int_equal(sense.attributes, 1);
	assert_int_equal(sense.attribute[0].page, row->page);
	assert_int_equal(sense.attribute[0].number, row->number);
	return false;
}

static uint32_t get(struct unit *unit, const struct row *row, uint8_t value[64])
{
	uint64_t partition, object;

	find(row->page, &partition, &object);
	return unit_get(unit, partition, object, row->page, row->number, value, 64);
}

static void test_each_attribute_is_there_with_its_length_or_undefined(void **state)
{
	struct unit *unit = *state;
	uint8_t value[64];

	for (size_t i = 0; i < ROWS; i++) {
		uint32_t length = get(unit, &rows[i], value);

		if (!rows[i].defined)
			assert_int_equal(length, 0);
		else if (rows[i].length >= PAIRS)
			assert_int_not_equal(length, 0);
		else
			assert_int_equal(length, rows[i].length);
	}
}

static void test_read_only_attributes_can_t_be_set(void **state)
{
	struct unit *unit = *state;
	uint8_t value[64] = { 0 };

	for (size_t i = 0; i < ROWS; i++)
		if (rows[i].access == READ_ONLY)
			assert_false(can_set(unit, &rows[i], value,
					     rows[i].length >= PAIRS ? 8 : rows[i].length));
}

/* A value that the attribute can have, of the length returned. */
static uint32_t sample_of(const struct row *row, uint8_t sample[64])
{
	uint32_t length = row->length == ANY ? 17 : row->length == PAIRS ? 16 : row->length;
	bool method = (row->page == OSD_ROOT_SECURITY || row->page == OSD_PARTITION_SECURITY) &&
		      row->length == 1;

	memset(sample, 0, 64);
	if (row->page == OSD_ROOT_INFORMATION && row->number == OSD_ROOT_DEFAULT_ISOLATION)
		sample[0] = OSD_ISOLATION_RANGE;
	else if (row->page == OSD_PARTITION_INFORMATION && row->number <= 0x201 &&
		 row->number >= 0x200)
		sample[3] = OSD_DUPLICATION_ANY;
	else if (row->page == OSD_USER_OBJECT_COLLECTIONS)
		put_be64(sample, COLLECT);
	else if (row->number != OSD_TIME_BYPASS && !method &&
		 !(row->page == OSD_PARTITION_INFORMATION && row->number >= 0x300))
		sample[length - 1] = 100;
	return length;
}

static void test_settable_attributes_take_values_of_their_length_only(void **state)
{
	struct unit *unit = *state;
	uint8_t sample[64], value[64];

	for (size_t i = 0; i < ROWS; i++) {
		const struct row *row = &rows[i];
		uint32_t length = sample_of(row, sample);

		if (row->access != SETTABLE)
			continue;
		assert_true(can_set(unit, row, sample, length));
		assert_int_equal(get(unit, row, value), length);
		/* Later commands of this test go on with times. */
		if (row->page != OSD_ROOT_TIMESTAMPS)
			assert_memory_equal(value, sample, length);
		if (row->length == ANY)
			continue;
		assert_false(can_set(unit, row, sample, length - 1 ? length - 1 : 2));
		assert_false(can_set(unit, row, sample, length + 1));
	}
}

static void test_an_access_list_has_at_most_10_items(void **state)
{
	static const struct row row = {
		OSD_PARTITION_ATTRIBUTES_ACCESS, 1, PAIRS, SETTABLE, false, NULL
	};
	static const uint8_t items[88];
	struct unit *unit = *state;

	assert_true(can_set(unit, &row, items, 80));
	assert_false(can_set(unit, &row, items, 88));
	assert_true(can_set(unit, &row, items, 8));
	assert_true(can_set(unit, &row, items, 0));
}

/* Rows that make up a page: in what order and what the wildcard of the page gives. */
static void test_a_page_s_wildcard_gives_exactly_its_defined_attributes(void **state)
{
	struct unit *unit = *state;

	for (size_t i = 0; i < ROWS; i++) {
		struct call call;
		uint64_t partition, object;
		size_t defined = 0;

		/* Each page once; directories of user objects have the number 0 for themselves. */
		if (rows[i].number != OSD_ATTRIBUTE_IDENTIFICATION)
			continue;
		find(rows[i].page, &partition, &object);
		call = call_of(OSD_GET_ATTRIBUTES, partition, object);
		call_get(&call, rows[i].page, OSD_ATTRIBUTE_ALL);
		call.retrieved_capacity = 8192;
		call_run(unit, &call);
		expect_good(unit);
		for (size_t j = 0; j < ROWS; j++) {
			bool again = j > 0 && rows[j].page == rows[j - 1].page &&
				     rows[j].number == rows[j - 1].number;

			defined += rows[j].page == rows[i].page && rows[j].defined && !again;
		}
		/* The directory of a type also names itself and pages of ours. */
		if (rows[i].page % OSD_PAGES_PARTITION == OSD_PAGE_DIRECTORY)
			assert_in_range(unit_retrieved_count(unit, &call), defined, defined + 2);
		else
			assert_int_equal(unit_retrieved_count(unit, &call), defined);
	}
}

static void test_values_that_can_t_be_are_refused(void **state)
{
	struct unit *unit = *state;

	for (size_t i = 0; i < ROWS; i++)
		if (rows[i].bad)
			assert_false(can_set(unit, &rows[i], rows[i].bad, rows[i].length));
}

static void test_stored_attributes_become_undefined_by_length_0(void **state)
{
	static const struct row stored[] = {
		{ OSD_ROOT_INFORMATION, 0x9, ANY, SETTABLE, false, NULL },
		{ OSD_PARTITION_QUOTAS, 0x10001, 8, SETTABLE, false, NULL },
		{ OSD_PARTITION_SECURITY, 0x40000001, 4, SETTABLE, false, NULL },
		{ OSD_PARTITION_ATTRIBUTES_ACCESS, 0x1, 8, SETTABLE, false, NULL },
		{ OSD_USER_OBJECT_INFORMATION, 0x9, ANY, SETTABLE, false, NULL },
		{ OSD_ROOT_TIMESTAMPS, 0xFFFFFFFE, 1, SETTABLE, false, NULL },
	};
	static const uint8_t zeros[8];
	struct unit *unit = *state;
	uint8_t value[64];

	for (size_t i = 0; i < sizeof(stored) / sizeof(stored[0]); i++) {
		assert_true(can_set(unit, &stored[i], zeros,
				    stored[i].length == ANY ? 8 : stored[i].length));
		assert_true(can_set(unit, &stored[i], NULL, 0));
		assert_int_equal(get(unit, &stored[i], value), 0);
	}
}

static void test_application_and_vendor_pages_take_anything(void **state)
{
	static const struct {
		uint32_t relative;
		bool free;
	} pages[] = {
		{ 0x7F, false },      { 0x80, false },       { 0x8000, false },
		{ 0xF000, false },    { 0xFFFF, false },     { 0x10000, true },
		{ 0x1FFFFFFF, true }, { 0x20000000, false }, { 0x2000FFFF, false },
		{ 0x20010000, true }, { 0x2FFFFFFE, true },
	};
	static const uint32_t types[] = { OSD_PAGES_USER_OBJECT, OSD_PAGES_PARTITION,
					  OSD_PAGES_COLLECTION, OSD_PAGES_ROOT };
	struct unit *unit = *state;
	uint8_t value[64];

	for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
		for (size_t j = 0; j < 4; j++) {
			struct row row = { .page = types[j] + pages[i].relative, .number = 0x1234 };

			assert_int_equal(can_set(unit, &row, "content", 7), pages[i].free);
			assert_int_equal(get(unit, &row, value), pages[i].free ? 7 : 0);
		}
	}
}

#define ROW_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, unit_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ROW_TEST(test_each_attribute_is_there_with_its_length_or_undefined),
		ROW_TEST(test_read_only_attributes_can_t_be_set),
		ROW_TEST(test_settable_attributes_take_values_of_their_length_only),
		ROW_TEST(test_values_that_can_t_be_are_refused),
		ROW_TEST(test_stored_attributes_become_undefined_by_length_0),
		ROW_TEST(test_application_and_vendor_pages_take_anything),
		ROW_TEST(test_an_access_list_has_at_most_10_items),
		ROW_TEST(test_a_page_s_wildcard_gives_exactly_its_defined_attributes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
