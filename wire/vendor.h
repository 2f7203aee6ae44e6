/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The vendor command EXECUTE: its numbers, and the encoding of its parameters and results
 * (docs/protocol.md, "EXECUTE"). Target (osd/) and initiator (client/) use it. Pure functions;
 * decoders take any bytes.
 *
 * Parameters go in Data-Out and results come in Data-In. Both are lists of items: tag, flags,
 * length, value, padded to 8 bytes. An item may contain items.
 *
 * A call does a bounded amount of work. If there is more, the result has a CONTINUATION item, which
 * the next call of the same function gives back unchanged. So the target keeps nothing between
 * calls, and not calling again cancels a long function.
 */
#ifndef MUNINN_WIRE_VENDOR_H
#define MUNINN_WIRE_VENDOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The service action, of both versions. */
#define OSD_EXECUTE 0x8F80

/*
 * STARTING BYTE ADDRESS of the CDB holds the function (bytes 0, 1 of it), zeros (2, 3) and the
 * bytes of parameters at the start of Data-Out (4..7). LENGTH is the allocation length for the
 * result.
 */
enum osd_function {
	OSD_FUNCTION_FEATURES = 0x0001,
	OSD_FUNCTION_SUBSCRIBE = 0x0002,
	OSD_FUNCTION_STATISTICS = 0x0003,
	OSD_FUNCTION_SNAPSHOT = 0x0010,
	OSD_FUNCTION_VERSIONS = 0x0011,
	OSD_FUNCTION_DROP = 0x0012,
	OSD_FUNCTION_VIEW = 0x0013,
	OSD_FUNCTION_ROLLBACK = 0x0020,
	OSD_FUNCTION_UNDO = 0x0021,
	OSD_FUNCTION_LOG = 0x0022,
	OSD_FUNCTION_DIFF = 0x0023,
	OSD_FUNCTION_RETENTION = 0x0030,
	OSD_FUNCTION_SET_RETENTION = 0x0031,
	OSD_FUNCTION_MERGE = 0x0032,
	OSD_FUNCTION_SPACE = 0x0033,
	OSD_FUNCTION_SEARCH = 0x0040,
	OSD_FUNCTION_CHECKSUM = 0x0041,
};

/* Features that a target offers and a host subscribes to: bits of OSD_ITEM_FEATURES. */
enum osd_feature {
	OSD_FEATURE_VERSIONS = 1 << 0,  /* SNAPSHOT, VERSIONS, DROP, VIEW */
	OSD_FEATURE_ROLLBACK = 1 << 1,  /* ROLLBACK, UNDO, LOG, DIFF */
	OSD_FEATURE_RETENTION = 1 << 2, /* RETENTION, SET RETENTION, MERGE, SPACE */
	OSD_FEATURE_SEARCH = 1 << 3,    /* SEARCH */
	OSD_FEATURE_CHECKSUM = 1 << 4,  /* CHECKSUM */
	OSD_FEATURE_STATISTICS = 1 << 5,
	OSD_FEATURES_ALL = 0x3F,
};

/* Tags. Numbers are big-endian, of 1, 2, 4 or 8 bytes; texts are UTF-8 without NUL. */
enum osd_item_tag {
	OSD_ITEM_CONTINUATION = 0x0001, /* opaque, at most OSD_CONTINUATION_ITEM_BYTES_MAX */
	OSD_ITEM_PROGRESS = 0x0002,     /* permille of a long function, as far as known */
	OSD_ITEM_FEATURES = 0x0003,     /* bits of enum osd_feature */
	OSD_ITEM_FUNCTION = 0x0004,     /* a function that the target has */
	OSD_ITEM_NAME = 0x0005,
	OSD_ITEM_VERSION = 0x0006,  /* number of a user version or view */
	OSD_ITEM_TIME = 0x0007,     /* ms since 1970 UTC */
	OSD_ITEM_SEQUENCE = 0x0008, /* modification sequence number */
	OSD_ITEM_LENGTH = 0x0009,   /* bytes */
	OSD_ITEM_OFFSET = 0x000A,
	OSD_ITEM_OBJECT = 0x000B,
	OSD_ITEM_PARTITION = 0x000C,
	OSD_ITEM_COUNT = 0x000D,
	OSD_ITEM_USED = 0x000E,    /* bytes used */
	OSD_ITEM_OBJECTS = 0x000F, /* number of objects */
	OSD_ITEM_WRITTEN = 0x0010, /* bytes written since the version before */
	OSD_ITEM_KIND = 0x0011,    /* by function */
	OSD_ITEM_DIGEST = 0x0012,  /* SHA-256, 32 bytes */
	OSD_ITEM_PATTERN = 0x0013, /* bytes to find */
	OSD_ITEM_REGEX = 0x0014,   /* POSIX extended regular expression to find */
	OSD_ITEM_MODIFICATIONS = 0x0015,
	OSD_ITEM_LOCK_UNTIL = 0x0016,        /* ms since 1970 UTC */
	OSD_ITEM_KEEP_ALL = 0x0017,          /* ms */
	OSD_ITEM_KEEP_INTERVAL = 0x0018,     /* ms */
	OSD_ITEM_KEEP_INTERVAL_FOR = 0x0019, /* ms */
	OSD_ITEM_ACTION = 0x001A,            /* of MERGE: enum osd_merge_action */
	OSD_ITEM_STATE = 0x001B,             /* of MERGE: enum osd_merge_state */
	OSD_ITEM_FREED = 0x001C,             /* segments; of SPACE bytes */
	OSD_ITEM_MOVED = 0x001D,             /* records */
	OSD_ITEM_DROPPED = 0x001E,           /* records */
	OSD_ITEM_HORIZON = 0x001F, /* ms since 1970: every moment from then on can be reached */
	OSD_ITEM_VALUE = 0x0020,   /* of a statistic */
	OSD_ITEM_ROLLBACKS = 0x0021,
	OSD_ITEM_FROM = 0x0022, /* contains a moment */
	OSD_ITEM_TO = 0x0023,   /* contains a moment */
	OSD_ITEM_SENSE =
		0x0024, /* why it failed: sense key << 16 | additional sense code and qualifier */
	OSD_ITEM_FORCE = 0x0025, /* not 0: although other sessions use it */
	/* Of MERGE that repairs: pages. */
	OSD_ITEM_READ = 0x0026,
	OSD_ITEM_REPAIRED = 0x0027, /* that were lost and made again */
	OSD_ITEM_LOST = 0x0028,     /* for good */
	/* Of SPACE: bytes of records, except PAGES. */
	OSD_ITEM_LIVE = 0x0029,        /* that the present shows */
	OSD_ITEM_KEPT = 0x002A,        /* that only the past shows, and that stay */
	OSD_ITEM_HISTORY = 0x002B,     /* that go when writes need the space */
	OSD_ITEM_RECLAIMABLE = 0x002C, /* that nothing shows */
	OSD_ITEM_CAPACITY = 0x002D,
	OSD_ITEM_DEVICE = 0x002E, /* all of the flash */
	OSD_ITEM_PAGES = 0x002F,  /* that hold records */
	/* Contain items. */
	OSD_ITEM_ENTRY = 0x0100,
};

enum osd_merge_action {
	OSD_MERGE_PROGRESS = 0,
	OSD_MERGE_START = 1,
	OSD_MERGE_CANCEL = 2,
	OSD_MERGE_REPAIR = 3, /* read all that is stored, and move what is beside lost pages */
};

enum osd_merge_state { OSD_MERGE_IDLE = 0, OSD_MERGE_RUNNING = 1, OSD_MERGE_FAILED = 2 };

/* OSD_ITEM_KIND of DIFF entries. */
enum osd_difference {
	OSD_DIFFERENCE_ADDED = 1,
	OSD_DIFFERENCE_REMOVED = 2,
	OSD_DIFFERENCE_DATA = 3,
	OSD_DIFFERENCE_LENGTH = 4,
	OSD_DIFFERENCE_ATTRIBUTES = 5,
};

/* OSD_ITEM_KIND of RETENTION and SET RETENTION. */
enum osd_retention { OSD_RETAIN_SNAPSHOTS = 0, OSD_RETAIN_ALL = 1, OSD_RETAIN_NONE = 2 };

/* OSD_ITEM_KIND of SPACE entries. */
enum osd_space_kind {
	OSD_SPACE_PARTITION = 0,
	OSD_SPACE_DEVICE = 1,  /* what the device notes about itself */
	OSD_SPACE_REMOVED = 2, /* partitions that are gone */
	OSD_SPACE_OTHERS = 3,  /* partitions that were not asked for */
};

/* OSD_ITEM_KIND of LOG entries: bits. */
enum { OSD_LOGGED_CREATED = 1, OSD_LOGGED_REMOVED = 2 };

#define OSD_ITEM_HEAD_BYTES             8
#define OSD_CONTINUATION_ITEM_BYTES_MAX 256
#define OSD_PARAMETER_BYTES_MAX         8192
#define OSD_PATTERN_BYTES_MAX           1024
#define OSD_VERSION_NAME_MAX            63
#define OSD_DEVICE_VERSION_FIRST        32768 /* below: versions of one partition */
#define OSD_GROUP_MAX                   32    /* partitions of one SNAPSHOT */
#define OSD_MODIFICATIONS_MAX           65536 /* of UNDO */
#define OSD_SPACE_BYTES_MIN             8192  /* Data-In that SPACE needs */
#define OSD_SPACE_DROPS_MAX             24    /* versions that SPACE imagines to be dropped */

/*
 * What one command may be about, since all others wait for it: more is refused. Bytes that a WRITE
 * may have wherever it begins (and the sets of all objects of a CREATE, or of all members, put),
 * objects that a CREATE makes, members that a command changes or asks as a whole, sources of a
 * COPY.
 */
#define OSD_WRITE_BYTES_MAX    (8u << 20)
#define OSD_CREATE_OBJECTS_MAX 2048u
#define OSD_WHOLE_MEMBERS_MAX  2048u
#define OSD_COPY_SOURCES_MAX   512u
#define OSD_SOURCE_MEMBERS_MAX 131072u /* of a source of CREATE USER TRACKING COLLECTION */

/* Head of a result: bytes behind it 4, reserved 4. The items follow. */
#define OSD_RESULT_HEAD_BYTES 8

static inline uint64_t osd_execute_address(enum osd_function function, uint32_t parameter_bytes)
{
	return (uint64_t)function << 48 | parameter_bytes;
}

/* Writes items into a buffer. Leaves out an item that does not fit, and sets `full`. */
struct osd_item_writer {
	uint8_t *data;
	size_t capacity;
	size_t length;
	size_t missing; /* bytes of what was left out */
	size_t open;    /* where the open containing item begins; SIZE_MAX: none */
	bool full;
};

void osd_items_begin(struct osd_item_writer *writer, uint8_t *data, size_t capacity);
bool osd_item_add(struct osd_item_writer *writer, uint16_t tag, const void *value, uint32_t length);
bool osd_item_add_number(struct osd_item_writer *writer, uint16_t tag,
			 uint64_t value); /* 8 bytes */
bool osd_item_add_text(struct osd_item_writer *writer, uint16_t tag, const char *text);

/*
 * May a version have this name? Behind the @ of an address it must mean nothing else: 1 to
 * OSD_VERSION_NAME_MAX bytes of UTF-8 without control characters, the first an ASCII letter, and
 * not "now". Nor may it be one that the target gives to versions that it makes by time.
 */
bool osd_version_name_is_valid(const uint8_t *name, size_t length);

/* How often versions are made by time, and the words for it. */
enum osd_schedule_kind {
	OSD_MINUTELY,
	OSD_HOURLY,
	OSD_DAILY,
	OSD_WEEKLY,
	OSD_MONTHLY,
	OSD_SCHEDULE_KINDS,
};
extern const char *const osd_schedule_words[OSD_SCHEDULE_KINDS];

/* When the minute, hour, day, week (from Monday) or month began that a time is in, by UTC. */
uint64_t osd_schedule_period(enum osd_schedule_kind kind, uint64_t ms);

/* Is it such a name: as hourly-2026-11-27T03:00Z? The target drops these by time. */
bool osd_version_name_is_scheduled(const uint8_t *name, size_t length);

/*
 * Items that are added between the two are contained in one item. Not nested. If one of them does
 * not fit, _end removes the containing item and returns false; then the writer takes no more.
 */
bool osd_item_open(struct osd_item_writer *writer, uint16_t tag);
bool osd_item_end(struct osd_item_writer *writer);

struct osd_item {
	uint16_t tag;
	uint32_t length;
	const uint8_t *value; /* in the list */
};
struct osd_item_reader {
	const uint8_t *data;
	size_t length, position;
};

void osd_items_read(struct osd_item_reader *reader, const uint8_t *data, size_t length);
/* 1; 0 at the end; -EINVAL: the next item is malformed (reader->position is where it begins). */
int osd_item_next(struct osd_item_reader *reader, struct osd_item *item);
/* -EINVAL: not 1, 2, 4 or 8 bytes. */
int osd_item_number(const struct osd_item *item, uint64_t *value);
/* The first item of a tag; 0, or -ENOENT, -EINVAL. */
int osd_item_find(const uint8_t *data, size_t length, uint16_t tag, struct osd_item *item);
int osd_item_find_number(const uint8_t *data, size_t length, uint16_t tag, uint64_t *value);

/* "SNAPSHOT"; "unknown function". */
const char *osd_function_name(uint16_t function);

#endif
