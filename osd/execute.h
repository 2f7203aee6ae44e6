/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The parts of command execution. Private to osd/.
 *
 * A command goes through validate.c (CDB, buffers, addressed object), commands*.c (its own work)
 * and attributes.c (sets and gets over the tables in pages.c). All of it is inside one engine
 * transaction, in the order that target.c gives. Functions return 0, or the negative errno of an
 * osd_fail_ function; the sense data is then in the request.
 */
#ifndef MUNINN_OSD_EXECUTE_H
#define MUNINN_OSD_EXECUTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/bytes.h"
#include "engine/engine.h"
#include "engine/history.h"
#include "osd/background.h"
#include "osd/collections.h"
#include "osd/conditions.h"
#include "osd/damage.h"
#include "osd/keys.h"
#include "osd/layout.h"
#include "osd/letters.h"
#include "osd/listings.h"
#include "osd/moment.h"
#include "osd/objects.h"
#include "osd/osd.h"
#include "osd/portions.h"
#include "osd/security.h"
#include "wire/inquiry.h"
#include "wire/wire.h"

#define OSD_VENDOR   INQUIRY_VENDOR
#define OSD_PRODUCT  "OBJECT STORE    "
#define OSD_MODEL    "Versioning object store on flash"
#define OSD_REVISION INQUIRY_REVISION

/* Longest CDB continuation segment, 4093 scatter/gather pieces. Root information attribute 0xA. */
#define OSD_CONTINUATION_BYTES_MAX 65536u

struct osd_device {
	struct engine *engine;
	uint32_t capabilities; /* of the engine */
	struct osd_portions portions;
	uint8_t uuid[16];
	uint8_t system_id[20];
	char serial[37];
	uint8_t layout; /* enum osd_layout, of new partitions */
	struct osd_conditions *conditions;
	struct osd_security *security;
	struct osd_subscriptions *subscriptions; /* of hosts to features of EXECUTE */
	struct osd_merge_job *merge_job;
	struct osd_trackers trackers;
	struct osd_listings listings;
	struct osd_letters letters; /* commands in envelopes */
	struct osd_background background;
	struct osd_damage_log damage;
	struct osd_task_set tasks; /* choose NULL: unknown */
	/*
	 * Called before each transaction of a command, inside none, so that tests can step through
	 * commands. NULL: nobody looks.
	 */
	void (*step)(void *context);
	void *step_context;
};

/* How far a READ has come that takes several turns. What it has read is in Data-In. */
struct osd_reading {
	bool begun, restarted;
	uint64_t sequence; /* of the modification that the object was read as */
};

/* How far COPY USER OBJECTS has come, which takes several turns where there is much to copy. */
struct osd_copying {
	bool begun;
	uint64_t first;    /* of the copies */
	uint64_t created;  /* the sequence number that made them */
	uint32_t source;   /* the one that is copied, from 0 */
	uint64_t offset;   /* in it */
	uint64_t sequence; /* of the modification that it is read as; 0: none is yet */
	bool restarted;
};

/* How far a command has come; decides the function bits of the sense data. */
enum osd_phase {
	OSD_PHASE_VALIDATION,
	OSD_PHASE_COMMAND,
	OSD_PHASE_SETS,
	OSD_PHASE_GETS,
	OSD_PHASE_DONE
};

struct osd_request {
	struct osd_device *device;
	struct osd_command *command;
	const struct osd_command_entry *entry;
	struct osd_cdb cdb;
	struct engine_txn *txn;
	uint64_t time_ms;      /* of the latest transaction */
	enum engine_mode mode; /* of the transaction */
	enum osd_phase phase;

	/* The addressed object before the command, or what a CREATE made (of several the first). */
	struct osd_subject subject;
	enum osd_layout layout; /* of the addressed partition */
	bool has_page;          /* the page of a packed ID is in the CDB's address */
	uint64_t object;        /* the CDB's object or requested ID, as the engine's; 0: none */
	struct engine_stat
		before;   /* the subject before the command's work; all zero for new objects */
	uint64_t created; /* objects that the command created; their IDs are consecutive */
	uint64_t created_used_bytes; /* by them, when quotas have been checked */
	uint64_t append_address;

	/* Parts of the buffers. */
	size_t out_data; /* Data-Out: where the command data starts */
	uint64_t out_data_length;
	uint64_t in_data_length; /* Data-In: space for command data, 0 without */
	uint64_t in_data; /* bytes in front of the data, in which attributes may be: of the atomics,
			     whose CDB has its place */
	struct osd_descriptor pieces;     /* scatter/gather list; content NULL: none */
	struct osd_descriptor query;      /* query list, likewise */
	struct osd_descriptor other;      /* user object descriptor, likewise */
	struct osd_descriptor extensions; /* extension capabilities, likewise */
	/* Of commands on the members of a collection. */
	struct osd_tracking tracking;
	struct osd_member_answer answer;
	struct osd_search_progress search; /* QUERY */
	/* Of commands that take several turns. */
	struct osd_moment moment;
	struct osd_reading reading;
	struct osd_copying copying;
	struct engine_undo undo;
	uint32_t turns; /* that an undo has had */

	bool attempt; /* it must not wait: see osd_execute_at_once */
	struct nand_stage *stage;
	bool timestamps_bypassed;
	bool more;           /* the command wants another transaction behind this one */
	bool leaves_nothing; /* then: of this one nothing stays if a later one fails */
	struct engine_space space_wanted; /* before one more try; bytes 0: none */
	bool space_made;                  /* making it was tried */
	bool partly_done; /* an earlier transaction has changed something, which stays */
	/*
	 * All descriptors, each of a type that the command may have. Use osd_continuation_next on a
	 * copy.
	 */
	struct osd_continuation descriptors;

	struct osd_security_state security;
	struct engine_statistics statistics; /* of commands that get attributes of the root */
	uint32_t attribute_visits;
	bool failed;
	struct osd_sense
		sense; /* of the failure, or (failed false, key not 0) of a recovered error */
};

/* What a command addresses, and so where the target looks up its IDs. */
enum osd_target {
	OSD_TARGET_ROOT,
	OSD_TARGET_PARTITION,
	OSD_TARGET_ROOT_OR_PARTITION, /* partition 0 = root; the object ID is not looked at */
	OSD_TARGET_USER_OBJECT,
	OSD_TARGET_COLLECTION,
	OSD_TARGET_ANY,
	OSD_TARGET_NEW_PARTITION,
	OSD_TARGET_NEW_USER_OBJECT,
	OSD_TARGET_NEW_COLLECTION,
	OSD_TARGET_PARTITION_OR_COLLECTION, /* object 0 = partition */
};

enum osd_command_flag {
	OSD_DATA_OUT = 1 << 0, /* LENGTH bytes of command data in Data-Out */
	OSD_DATA_IN = 1 << 1,  /* LENGTH bytes of command data in Data-In */
	OSD_ALLOCATION =
		1 << 2, /* LENGTH is the space in Data-In, bounded by what the initiator expects */
	OSD_SCATTERS = 1 << 3,         /* may have a scatter/gather list */
	OSD_HAS_RANGE = 1 << 4,        /* LENGTH bytes at STARTING BYTE ADDRESS */
	OSD_GETS_FIRST = 1 << 5,       /* gets before sets */
	OSD_ATTRIBUTES_FIRST = 1 << 6, /* sets and gets before the command's own work */
	OSD_REFORMATS = 1 << 8,        /* its transaction begins with an empty device */
	OSD_FLUSHES = 1 << 9,          /* everything is stable when it ends */
	OSD_READS_DATA = 1 << 10,      /* updates the data accessed time */
	OSD_KEY_PARAMETERS = 1 << 7,   /* SET MASTER KEY: lengths of parameter data in the CDB */
	OSD_LISTS = 1 << 11,           /* LIST_ATTR may give the get list to the command */
	OSD_PARAMETERS = 1 << 12,      /* EXECUTE: its parameters at the start of Data-Out */
	OSD_QUERIES = 1 << 13,         /* has a query list */
	OSD_EXTENDS = 1 << 14,         /* may have extension capabilities */
	OSD_MEMBERS = 1 << 15,         /* sets and gets are about the members of the collection */
	OSD_COPIES = 1 << 16,          /* has copy user object source descriptors */
	OSD_NAMES_OBJECT = 1 << 17,    /* has a user object descriptor */
	OSD_HAS_ADDRESS = 1 << 22, /* STARTING BYTE ADDRESS, behind which LENGTH may be anything */
	OSD_SWAPS = 1 << 18, /* numbers of 8 bytes in Data-Out, and one in Data-In at the address */
	OSD_RESTORES = 1 << 20,      /* takes things back to an earlier state */
	OSD_OWN_LISTS = 1 << 19,     /* the command does its sets and gets itself; list format */
	OSD_SHORT = 1 << 23,         /* short enough for an attempt, if its lengths are */
	OSD_UNINTERRUPTED = 1 << 21, /* runs in spite of unit attentions, which stay */
};

struct osd_command_entry {
	uint16_t action;
	enum engine_mode mode; /* of the command without sets */
	enum osd_target target;
	unsigned flags;
	int (*check)(struct osd_request *request); /* checks the parameters before anything is done;
						      may be NULL */
	int (*execute)(struct osd_request *request); /* may be NULL */
	/*
	 * enum osd_permission: the bits that the capability needs for the command, beside those for
	 * its attributes. 0: where a capability is asked for, none allows the command.
	 */
	uint16_t permissions;
	uint32_t needs; /* enum engine_capability: without these of the engine there is no such
			   command */
};

/* Does the device's engine have all of these enum engine_capability? */
static inline bool osd_has(const struct osd_device *device, uint32_t capabilities)
{
	return (device->capabilities & capabilities) == capabilities;
}

/* Has the transaction worked on so much that it should not begin with another object? */
static inline bool osd_has_worked_enough(const struct osd_request *request)
{
	return engine_txn_worked(request->txn) >= request->device->portions.records;
}

/* commands.c. NULL: this target does not know the action. */
const struct osd_command_entry *osd_command_find(uint16_t action);

/* ---- target.c ---- */

/*
 * A command's own gets show the access that the command itself is about to note: puts it into the
 * subject's stat.
 */
int osd_show_data_access(struct osd_request *request);
/* One transaction of a command. False: it has failed. request->more: it wants another one. */
bool osd_run_once(struct osd_request *request);

/* ---- sense.c ---- */

/* 24/00 INVALID FIELD IN CDB, field pointer to `field`. */
int osd_fail_field(struct osd_request *request, uint16_t field);
/* Any other code without field. */
int osd_fail(struct osd_request *request, uint8_t key, uint16_t code);
/* Fails because of an attribute of a set or get: 26/00 with the attribute, in CDB format 24/00. */
int osd_fail_attribute(struct osd_request *request, uint32_t page, uint32_t number);
/*
 * An engine's result: 0 stays 0. Errors become sense data by the one table; -ENOMEM becomes status
 * BUSY without any. `field`: the CDB field at fault, 0: none.
 */
int osd_result(struct osd_request *request, int result, uint16_t field);
/* Sense key << 16 | sense code that a negative errno of the engine becomes. */
uint32_t osd_sense_of(int result);
/* Ends the command: status and sense. */
void osd_finish(struct osd_request *request);

/* CDB positions that differ between the versions. */
static inline uint16_t osd_length_field(const struct osd_request *request)
{
	return request->cdb.version == OSD_1 ? 36 : 32;
}
static inline uint16_t osd_address_field(const struct osd_request *request)
{
	return request->cdb.version == OSD_1 ? 44 : 40;
}
enum {
	OSD_FIELD_OPTIONS = 10,
	OSD_FIELD_COMMAND_OPTIONS = 11,
	OSD_FIELD_PARTITION = 16,
	OSD_FIELD_OBJECT = 24,
	OSD_FIELD_OBJECT_VERSION = 28, /* of packed IDs */
	OSD_FIELD_OBJECT_PAGE = 30,
	OSD_FIELD_PARAMETER_LIST_LENGTH = 32, /* SET MASTER KEY */
	OSD_FIELD_CONTINUATION = 48
};

/* ---- validate.c ---- */

/* Does the CDB fit the buffers? Finds the parts of Data-Out and Data-In. Looks at no object. */
int osd_validate_buffers(struct osd_request *request);
/* Does the target take this isolation method? */
bool osd_isolation_is_known(uint8_t isolation);
/*
 * A store without versions has no address with one, so that it is not even asked: the error is of
 * `field`, as if the object were not there.
 */
int osd_check_version(struct osd_request *request, struct engine_address address, uint16_t field);
/* Finds the addressed object and fills in `subject`. Inside the transaction. */
int osd_validate_target(struct osd_request *request);
/*
 * Finds a user object that a descriptor names by wire IDs. If something is wrong with it, the error
 * is of the continuation segment. `permissions`: enum osd_permission, what the command does with
 * it.
 */
int osd_find_named_object(struct osd_request *request, uint64_t partition, uint64_t object,
			  uint16_t permissions, struct osd_subject *subject);
/*
 * The mode of the transaction: shared, or what a writing command with its sets may use of a full
 * device.
 */
enum engine_mode osd_transaction_mode(const struct osd_request *request);
/*
 * The engine's address of a partition on the wire: bits 63..48 select a version; `object` is the
 * engine's ID.
 */
struct engine_address osd_address(uint64_t partition, uint64_t object);
/* An object's ID on the wire: flat or packed, as in the addressed partition. */
uint64_t osd_wire_object(const struct osd_request *request, uint64_t object);
uint64_t osd_wire_partition(struct engine_address address);

/* ---- at_once.c ---- */

/* Is it worth an attempt? If so, its whole work is one transaction that is short. */
bool osd_is_short(const struct osd_request *request);

/* ---- attributes.c ---- */

/* Sets and gets of any command, in the three formats. Checks the sets before anything is done. */
int osd_check_sets(struct osd_request *request, enum engine_type type);
int osd_apply_sets(struct osd_request *request);
int osd_answer_gets(struct osd_request *request);
/*
 * Extends Data-In by zeros up to the space for retrieved attributes, where `length` bytes (or none)
 * already are. This space may be in front of the data.
 */
void osd_add_to_data_in(struct osd_request *request, size_t length);
bool osd_has_sets(const struct osd_request *request);
bool osd_has_gets(const struct osd_request *request);
/* Does one of the sets set LOGICAL LENGTH? */
bool osd_sets_length(const struct osd_request *request);
/*
 * Can the get list, if there is one, be about objects of `type`? For commands that may find no
 * object to ask.
 */
int osd_check_gets(struct osd_request *request, enum engine_type type);
/* Adds to the answer what the get list asks for of `subject`. */
int osd_answer_list(struct osd_request *request, const struct osd_subject *subject,
		    struct osd_list_writer *writer);

/*
 * Calls `use` with each attribute to set; `value` is inside Data-Out or the CDB. Ends at the first
 * non-zero result.
 */
int osd_each_set(const struct osd_request *request,
		 int (*use)(void *context, const struct osd_attribute *attribute), void *context);

/* ---- pages.c: the tables of the standard's attributes, and plain storage ---- */

/* Largest value. */
#define OSD_VALUE_BYTES_MAX 65536

/* Can this attribute of an object of `type` be set to this value? 0 or -EINVAL. */
int osd_page_check_set(const struct osd_request *request, enum engine_type type,
		       const struct osd_attribute *attribute);
int osd_page_set(struct osd_request *request, const struct osd_subject *subject,
		 const struct osd_attribute *attribute);
/* Value of one attribute; *length 0: not defined. -EINVAL: the page is of another object type. */
int osd_page_get(struct osd_request *request, const struct osd_subject *subject, uint32_t page,
		 uint32_t number, uint8_t value[OSD_VALUE_BYTES_MAX], uint32_t *length);
/*
 * The first defined attribute at or behind (*page, *number), in ascending order. -ENOENT: no more.
 * Leaves out the directory page and the current command page.
 */
int osd_page_next(struct osd_request *request, const struct osd_subject *subject, uint32_t *page,
		  uint32_t *number, uint8_t value[OSD_VALUE_BYTES_MAX], uint32_t *length);
/* The object type that has these pages. False: pages of any object, and reserved ones. */
bool osd_page_type(uint32_t page, enum engine_type *type);
uint32_t osd_first_page(enum engine_type type);
/* The 40 bytes that identify a standard page; 0 if it is not one of ours. */
uint32_t osd_page_identify(uint32_t page, uint8_t *value);
enum osd_object_type osd_wire_type(enum engine_type type);

/* page_format.c: a page's fixed structure. -EINVAL: the page has none. */
/*
 * The longest one: the collections page of an object in as many collections as possible (engine.h).
 */
#define OSD_PAGE_STRUCTURE_BYTES_MAX (8 + 8 * ENGINE_MEMBERSHIPS_MAX)
int osd_page_structure(struct osd_request *request, const struct osd_subject *subject,
		       uint32_t page, uint8_t data[OSD_PAGE_STRUCTURE_BYTES_MAX], size_t *length);

/*
 * Attributes of the current command page; *length 0: not defined. `value` has space for 40 bytes.
 */
int osd_current_command_get(struct osd_request *request, uint32_t number, uint8_t *value,
			    uint32_t *length);

/* ---- quotas.c ---- */

/* What was created takes the defaults of its container. */
int osd_quotas_inherit_object(struct osd_request *request);
int osd_quotas_inherit_partition(struct osd_request *request);
/*
 * After the command's work: did something grow beyond its quota, or the unit beyond its capacity?
 */
int osd_quotas_check(struct osd_request *request);
/*
 * FORMAT OSD: stores how much the unit's partitions may hold together. It stands with the keys, so
 * that it lasts until the next format, whatever rolls back.
 */
int osd_set_capacity(struct osd_request *request);
/* TOTAL and USED CAPACITY: what was formatted, or what the device has. */
int osd_capacities(const struct osd_request *request, uint64_t *total, uint64_t *used);

/* attributes.c, for OSD_OWN_LISTS: sets one attribute whose list has been checked. */
int osd_apply_set(struct osd_request *request, const struct osd_subject *subject,
		  const struct osd_attribute *attribute);
/* Begins the answer of retrieved attributes, and adds it to Data-In. */
void osd_begin_answer(struct osd_request *request, struct osd_list_writer *writer);
void osd_end_answer(struct osd_request *request, struct osd_list_writer *writer);
/* pages.c: copies the attributes of `from` that are plain storage to `to`. */
int osd_page_copy_stored(struct osd_request *request, const struct osd_subject *from,
			 struct engine_object *to);

/* ---- users.c: which sessions use a partition ---- */

/* The command's session uses the partition that it addresses, unless it names an old version. */
void osd_note_use(const struct osd_request *request);
/*
 * Fails with 53/02 and the names of their initiators if other sessions use the partition (0: any
 * partition) that the command takes to another state, unless `force`.
 */
int osd_check_users(struct osd_request *request, uint64_t partition, bool force);

/* ---- commands ---- */

int osd_read(struct osd_request *request);
int osd_write(struct osd_request *request);
int osd_append(struct osd_request *request);
int osd_clear(struct osd_request *request);
int osd_punch(struct osd_request *request);
int osd_list(struct osd_request *request);
int osd_check_list(struct osd_request *request);
/* engine_clone_get, or -ENOENT (not a clone) where the engine has no clones. */
int osd_clone_get(const struct osd_request *request, uint64_t partition,
		  struct engine_clone *clone);
/* DUPLICATION METHOD of CREATE SNAPSHOT and CREATE CLONE. */
bool osd_clone_method_is_known(uint8_t method);
int osd_check_clone(struct osd_request *request);
int osd_create_clone(struct osd_request *request);
int osd_create_snapshot(struct osd_request *request);
int osd_detach_clone(struct osd_request *request);
int osd_refresh_clone(struct osd_request *request);
int osd_restore_partition(struct osd_request *request);
/* INITIAL OBJECT_ID, in bytes 40(8) of OSD-2, as the first engine's ID that is not below it. */
uint64_t osd_first_id(const struct osd_request *request);
int osd_check_map(struct osd_request *request);
int osd_read_map(struct osd_request *request);
int osd_read_maps_and_compare(struct osd_request *request);
int osd_check_copy(struct osd_request *request);
int osd_copy_user_objects(struct osd_request *request);
/* Behind the last transaction, inside none: if the copy failed between two, takes its objects away.
 */
void osd_copy_end(struct osd_request *request);
int osd_check_structure_check(struct osd_request *request);
int osd_object_structure_check(struct osd_request *request);
int osd_check_swap(struct osd_request *request);
int osd_compare_and_swap(struct osd_request *request);
int osd_fetch_and_add(struct osd_request *request);
int osd_check_own_lists(struct osd_request *request);
int osd_conditional_set(struct osd_request *request);
int osd_check_embedded(struct osd_request *request);
int osd_perform_scsi_command(struct osd_request *request);
int osd_check_task_management(struct osd_request *request);
int osd_perform_task_management(struct osd_request *request);
/* CREATE of `count` objects; they become the request's subject. */
int osd_create_objects(struct osd_request *request, uint32_t count);

#endif
