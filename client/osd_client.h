/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * An OSD initiator: T10 OSD commands to a logical unit behind an iSCSI URL, several in flight.
 *
 * One client is one iSCSI session and belongs to one thread. Nothing happens in the background:
 * commands are sent and answered inside osd_client_step, and inside the calls that wait, which are
 * made of it.
 *
 * Results are 0 or a negative errno. Those of commands:
 *   -ENOENT     no such partition, object, version
 *   -EEXIST     the requested ID is taken
 *   -ENOTEMPTY  partition has objects
 *   -EFBIG      the object would be longer than its partition allows
 *   -ENOSPC     device full or quota used up
 *   -EROFS      address of an old version
 *   -EACCES     capability refused
 *   -EINVAL     the target calls a field or value of the command wrong
 *   -EOPNOTSUPP the target does not know the command
 *   -EBUSY      not ready or overloaded; try again later. Or other sessions use what would go back
 *   -EIO        medium or hardware error, status without explanation
 *   -EREMOTEIO  the target gave the command up
 *   -EBADMSG    the answer to a signed command is not signed as it should be (client/security.h)
 *   -EPROTO     the answer makes no sense
 * When the session ends (closed, silent, broke the protocol), all commands get its error:
 * -ECONNRESET, -ETIMEDOUT, -EPROTO, -EPIPE…; from then on the client is only good for
 * osd_client_disconnect.
 */
#ifndef MUNINN_CLIENT_OSD_CLIENT_H
#define MUNINN_CLIENT_OSD_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/session.h"
#include "common/error.h"
#include "wire/vendor.h"
#include "wire/wire.h"

struct osd_client;

/* All zero is right for most callers. */
struct osd_client_options {
	const char *initiator_name; /* NULL: made from the host's name */
	uint32_t queue_depth;       /* commands in flight; 0 = 32, at most 1024 */
	uint32_t timeout_ms;      /* login as a whole, and a target that does nothing; 0 = 30000 */
	enum osd_version version; /* of the commands; 0 = OSD_2 */
	bool no_immediate_data;   /* negotiate ImmediateData=No */
	bool no_initial_r2t;  /* offer InitialR2T=No: first bursts need no R2T if the target agrees
			       */
	bool any_device_type; /* do not insist on an OSD: osd_client_submit_scsi */
	/*
	 * osd_client_isid of a client whose connection broke: the new one takes its place. The
	 * target ends the old session, so what it has not begun of that never begins, and
	 * osd_client_connect returns when the unit has ended all commands that it has begun. 0: a
	 * session beside all others.
	 */
	uint64_t isid;
};

/* What became of a command: the errno, the SCSI side of it, and a sentence. */
struct osd_client_error {
	int result;
	uint8_t status; /* SCSI status; valid when the target answered */
	bool has_sense;
	bool local; /* an error of this machine's files or memory, not of the target */
	struct osd_sense sense;
	struct error_text sentence;
};

/*
 * Logs in at an iscsi:// URL, or opens the node of sg:/dev/sgN (client/sg.h), takes unit
 * attentions, and checks that the LUN is an OSD. -EINVAL: the URL; -EACCES: CHAP or access control;
 * -ENODEV: no such target or LUN; -EMEDIUMTYPE: no OSD; errors of the connection.
 */
int osd_client_connect(const char *url, const struct osd_client_options *options,
		       struct osd_client **client, struct error_text *error);

/* For osd_client_options. 0 at a kernel's node, where the kernel keeps the session. */
uint64_t osd_client_isid(const struct osd_client *client);

/*
 * For tests: a client on a session that was made in another way. Takes the session over. -ENOMEM.
 */
int osd_client_on_session(struct session *session, enum osd_version version,
			  struct osd_client **client);

/*
 * Waits for commands in flight, logs out, closes and frees. Commands that do not end get
 * -ECANCELED. NULL is allowed.
 */
void osd_client_disconnect(struct osd_client *client);

/* 0 while the session lives, otherwise why it ended. */
int osd_client_failed(const struct osd_client *client, struct error_text *error);

/* Targets that the portal of an iscsi:// URL (target and LUN may be left out) announces. */
typedef int osd_client_found(void *context, const char *target_name, const char *portal_address);
int osd_client_discover(const char *url, const struct osd_client_options *options,
			osd_client_found *found, void *context, struct error_text *error);

/* ---- addresses ---- */

/* (0, 0) root, (P, 0) partition, (P, O) user object or collection. */
struct osd_client_address {
	uint64_t partition; /* at most 48 bits */
	uint64_t object;
	uint16_t version; /* 0 = current; v = as of user version v of the partition, read-only;
			     root: of the device */
};

/*
 * Reads "PID[/OID][@VERSION]", numbers decimal or 0x; "" and "0" are the root. -EINVAL with a
 * sentence.
 */
int osd_client_parse_address(const char *text, struct osd_client_address *address,
			     struct error_text *error);

/* "0x10000/0x10005@3"; returns `text`. */
#define OSD_CLIENT_ADDRESS_TEXT 64
const char *osd_client_format_address(struct osd_client_address address,
				      char text[OSD_CLIENT_ADDRESS_TEXT]);

/* ---- attributes ---- */

struct osd_client_value {
	uint32_t page;
	uint32_t number;
	const void *value;
	uint32_t length; /* to set: 0 removes; to get: the space for this one's value in bytes */
};

/* ---- commands, asynchronous ---- */

struct osd_request;
typedef void osd_request_done(struct osd_request *request);

/* An extension capability of a signed command, in its continuation segment; client/security.h. */
struct osd_request_extension {
	uint8_t *place; /* capability, then check value */
	uint8_t key[20];
};
#define OSD_REQUEST_EXTENSIONS_MAX 2

/* How a command is signed; client/security.h. */
struct osd_request_security {
	uint8_t method; /* OSD_NOSEC: not at all */
	uint8_t key[20];
	uint8_t nonce[12];
	bool gets_response; /* asks for the response check value before the caller's attributes */
	uint64_t out_integrity, in_integrity; /* ALLDATA: offsets of the integrity information */
	uint32_t out_encoded, in_encoded;     /* as in the CDB */
	uint8_t continuation_value[32];       /* check value of the continuation segment */
};

/*
 * One command. The caller owns it and everything that it points to, and leaves it in place from
 * osd_client_submit until `done` is called. Zero it, then set `cdb.action`, the address and what
 * the command needs.
 */
struct osd_request {
	struct osd_cdb cdb; /* version, lengths of data, segments and capability are filled in by
			       osd_client_submit */
	/*
	 * Command data to send; its length becomes LENGTH. With cdb.continuation_length, a
	 * continuation segment of that length comes first in it and does not count.
	 */
	const void *data;
	size_t data_length;
	void *buffer; /* for command data to receive; its length becomes LENGTH or ALLOCATION LENGTH
		       */
	size_t buffer_length;
	const struct osd_client_value *sets; /* attributes to set with the command */
	size_t set_count;
	const struct osd_client_value *gets; /* attributes to get with it; `value` is not used */
	size_t get_count;
	uint32_t timeout_ms; /* 0 = the client's */
	osd_request_done *done;
	void *context; /* the caller's */

	/* Results, valid in `done`. */
	struct osd_client_error error; /* error.result: 0 or negative errno */
	size_t received; /* bytes of command data that were read; fewer for a READ that meets the
			    object's end */

	/* The client's own. */
	struct session_task task;
	struct osd_client *client;
	uint8_t *scratch; /* lists to send, then space for retrieved attributes; lives until `done`
			     returns */
	size_t lists_length, retrieved_offset, retrieved_length;
	struct osd_request_security security;
	struct osd_request_extension extensions[OSD_REQUEST_EXTENSIONS_MAX];
	size_t extension_count;
	unsigned unit_attentions;
	bool retyped; /* signed a second time, for a collection */
	bool pending;
};

/* Sets the address, the version's bits included. */
void osd_request_address(struct osd_request *request, struct osd_client_address address);

/* Queues the command. -EINVAL, -ENOMEM, or the session's error; then `done` is not called. */
int osd_client_submit(struct osd_client *client, struct osd_request *request);

/*
 * From now on commands are refused with -ECANCELED when `stop` says so, until this is called with
 * NULL. Those that are on their way end as usual. So whatever goes on with many commands ends soon.
 */
void osd_client_stop_when(struct osd_client *client, bool (*stop)(void));

/*
 * The attributes that came back, for osd_list_next, inside `done`. -ENODATA: none asked for or none
 * came; -EPROTO.
 */
int osd_request_attributes(const struct osd_request *request, struct osd_list_reader *reader);

/*
 * Sends and receives, waiting at most `timeout_ms` (-1: until something happens), and calls `done`.
 */
int osd_client_step(struct osd_client *client, int timeout_ms);

/*
 * For callers that wait for several clients at once, by poll() or epoll: the socket, what to wait
 * for there, and sending what was submitted without waiting. When the socket is ready,
 * osd_client_step with a time of 0 does the work. osd_client_push returns 0, or the error that the
 * next osd_client_step reports to the commands.
 */
int osd_client_descriptor(const struct osd_client *client);
short osd_client_events(const struct osd_client *client);
int osd_client_push(struct osd_client *client);

/*
 * Queues a SCSI command as it is, for units of other types (`any_device_type`). `done` finds status
 * and sense in the task; unit attentions are the caller's, too. Errors as of session_submit.
 */
int osd_client_submit_scsi(struct osd_client *client, struct session_task *task);

/* Commands submitted and not done. For tests. */
size_t osd_client_outstanding(const struct osd_client *client);
uint32_t osd_client_queue_depth(const struct osd_client *client);

/*
 * Steps until nothing is outstanding. 0 or the session's error. Each command's `done` gets its
 * result.
 */
int osd_client_drain(struct osd_client *client);

/*
 * Submits and steps until this command is done; others go on meanwhile. Do not call it inside a
 * `done`.
 */
int osd_client_run(struct osd_client *client, struct osd_request *request);

/* ---- commands, synchronous: `error` may be NULL. Do not call them inside a `done`. ---- */

/* Removes all partitions and objects. `capacity` 0: all that there is. */
int osd_client_format(struct osd_client *client, uint64_t capacity, struct osd_client_error *error);

/*
 * `requested` 0: the target chooses; `chosen` may be NULL. `layout` of its object IDs: 0 flat, 1
 * packed, -1 as the unit is configured (other targets know only that).
 */
int osd_client_create_partition(struct osd_client *client, uint64_t requested, int layout,
				uint64_t *chosen, struct osd_client_error *error);
/* The same, and gives it a name (NULL: none) with the same command. */
int osd_client_create_named(struct osd_client *client, uint64_t requested, int layout,
			    const char *name, uint64_t *chosen, struct osd_client_error *error);
int osd_client_remove_partition(struct osd_client *client, uint64_t partition, bool contents,
				struct osd_client_error *error);

/*
 * The object IDs of a partition, as numbers to count with: multiples of `step` from `first` to
 * `last`, for objects of at most `bytes_max` bytes. If the target does not tell: flat. -ENOENT: no
 * such partition.
 */
struct osd_client_ids {
	uint64_t first, step, last;
	uint64_t bytes_max; /* UINT64_MAX: the layout sets no limit */
};
int osd_client_find_ids(struct osd_client *client, struct osd_client_address partition,
			struct osd_client_ids *ids, struct osd_client_error *error);

/*
 * Creates `count` objects; `requested` only with count 1. `first` (may be NULL): the lowest new ID.
 * Each of the others is `step` (may be NULL; 0 with one object) above the one before it.
 */
int osd_client_create(struct osd_client *client, uint64_t partition, uint64_t requested,
		      uint16_t count, uint64_t *first, uint64_t *step,
		      struct osd_client_error *error);
int osd_client_remove(struct osd_client *client, struct osd_client_address address,
		      struct osd_client_error *error);

/* A new object with content, in one command. `requested`, `chosen` as above. */
int osd_client_create_and_write(struct osd_client *client, uint64_t partition, uint64_t requested,
				const void *data, size_t length, uint64_t *chosen,
				struct osd_client_error *error);

int osd_client_write(struct osd_client *client, struct osd_client_address address, uint64_t offset,
		     const void *data, size_t length, struct osd_client_error *error);
/* `offset` (may be NULL): where the data went. */
int osd_client_append(struct osd_client *client, struct osd_client_address address,
		      const void *data, size_t length, uint64_t *offset,
		      struct osd_client_error *error);
/* `got`: bytes read. Fewer than `length` only at the object's end, 0 behind it. */
int osd_client_read(struct osd_client *client, struct osd_client_address address, uint64_t offset,
		    void *data, size_t length, size_t *got, struct osd_client_error *error);
/*
 * Makes a new object in `partition` with data and attributes of another one, which may be in
 * another partition or in an old version. The target copies. `requested`, `chosen` as above. OSD-2
 * only.
 */
int osd_client_copy(struct osd_client *client, struct osd_client_address source, uint64_t partition,
		    uint64_t requested, uint64_t *chosen, struct osd_client_error *error);
/* Zeros over the range. */
int osd_client_clear(struct osd_client *client, struct osd_client_address address, uint64_t offset,
		     uint64_t length, struct osd_client_error *error);
/*
 * Takes the range out; what is behind it moves down. If that is more than the target moves with one
 * command, this call does it in many: when it fails, some of it has moved.
 */
int osd_client_punch(struct osd_client *client, struct osd_client_address address, uint64_t offset,
		     uint64_t length, struct osd_client_error *error);
/* Cuts or extends by setting the logical length. */
int osd_client_truncate(struct osd_client *client, struct osd_client_address address,
			uint64_t length, struct osd_client_error *error);
/* Makes everything at or below the address stable: FLUSH, FLUSH PARTITION or FLUSH OSD. */
int osd_client_flush(struct osd_client *client, struct osd_client_address address,
		     struct osd_client_error *error);

/*
 * IDs >= `first` in ascending order, of the user objects of a partition, or of all partitions for
 * the root. Sends as many LIST commands as needed. A result of `each` other than 0 ends it and is
 * returned.
 */
typedef int osd_client_listed(void *context, uint64_t id);
int osd_client_list(struct osd_client *client, struct osd_client_address address, uint64_t first,
		    osd_client_listed *each, void *context, struct osd_client_error *error);

/*
 * Lists user objects of a partition with attributes, in the order of `gets`: one command for about
 * a thousand objects. `each` as above. -EOPNOTSUPP: the target lists IDs alone, as OSD-1 does.
 */
typedef int osd_client_listed_attributes(void *context, uint64_t id,
					 struct osd_list_reader *attributes);
int osd_client_list_attributes(struct osd_client *client, struct osd_client_address address,
			       uint64_t first, const struct osd_client_value *gets, size_t count,
			       osd_client_listed_attributes *each, void *context,
			       struct osd_client_error *error);

int osd_client_set_attributes(struct osd_client *client, struct osd_client_address address,
			      const struct osd_client_value *sets, size_t count,
			      struct osd_client_error *error);

/*
 * Gets `count` attributes and calls `each` for each that came back, in the order asked for.
 * Undefined ones have length 0. A number (and page) of 0xFFFFFFFF asks for all: then `length` is
 * the space for all of them.
 */
typedef int osd_client_attribute(void *context, const struct osd_attribute *attribute);
int osd_client_get_attributes(struct osd_client *client, struct osd_client_address address,
			      const struct osd_client_value *gets, size_t count,
			      osd_client_attribute *each, void *context,
			      struct osd_client_error *error);

/*
 * Gets all attributes that are defined, of any page. -EOVERFLOW: there are more than one command
 * brings; over iSCSI no object of Muninn's has as many, /dev/sg takes about 1 MiB. Then `each` may
 * have been called for some.
 */
int osd_client_get_all_attributes(struct osd_client *client, struct osd_client_address address,
				  osd_client_attribute *each, void *context,
				  struct osd_client_error *error);

/*
 * Gets one attribute into a buffer. `length` (may be NULL): its full length. -ENODATA: undefined.
 * -ENOBUFS: cut off.
 */
int osd_client_get_attribute(struct osd_client *client, struct osd_client_address address,
			     uint32_t page, uint32_t number, void *value, uint32_t capacity,
			     uint32_t *length, struct osd_client_error *error);

/* Gets a big-endian number of 1..8 bytes. -ENODATA: undefined. */
int osd_client_get_number(struct osd_client *client, struct osd_client_address address,
			  uint32_t page, uint32_t number, uint64_t *value,
			  struct osd_client_error *error);

/*
 * ---- names of partitions: the attribute USERNAME ----
 *
 * In an address a name must mean nothing else: it is one that a version may have, without / : and
 * @, and not "root", "master" or "new".
 */
bool osd_client_name_is_valid(const char *name);
/* To set with a command; points to `name`. "" takes the name away. */
struct osd_client_value osd_client_name_value(const char *name);
int osd_client_set_name(struct osd_client *client, uint64_t partition, const char *name,
			struct osd_client_error *error);
/*
 * Finds a partition by its name, of those at a version of the device (0: now), by asking all that
 * this initiator may ask. -ENOENT: none has it; -ENOTUNIQ: several have.
 */
int osd_client_find_named(struct osd_client *client, const char *name, uint16_t version,
			  uint64_t *partition, struct osd_client_error *error);

/* ---- moments ---- */

enum osd_client_moment_kind {
	OSD_CLIENT_NOW,
	OSD_CLIENT_AT_VERSION,
	OSD_CLIENT_AT_TIME, /* ms since 1970 */
	OSD_CLIENT_AT_SEQUENCE,
	OSD_CLIENT_AT_NAME, /* of a version */
	OSD_CLIENT_AGO,     /* of an object: before its newest `value` modifications */
};

struct osd_client_moment {
	enum osd_client_moment_kind kind;
	uint64_t value;
	char name[OSD_VERSION_NAME_MAX + 1];
};

/*
 * What stands behind the @ of an address: "3", "0x3" a version; "2026-11-21T14:32:05" (local time;
 * with Z or +hh:mm that of there), "2026-11-21", "yesterday 14:32", "today"; "14:32", the last one
 * before `now_ms`; "-10min" (s, min, h, d, w, 1day, 2hours...) before it; "~2" before the last two
 * modifications; "#4711" a sequence number; "now"; anything else that begins
 * with a letter is a version's name. -EINVAL with a sentence, also of days that no calendar has,
 * and of local times that clocks left out or showed twice.
 */
int osd_client_parse_moment(const char *text, uint64_t now_ms, struct osd_client_moment *moment,
			    struct error_text *error);

/* Whether a text begins like "today" or "yesterday", which no name of a version may be. */
bool osd_client_is_day(const char *text);

/* ---- clones and snapshots: partitions that begin with the contents of another one ---- */

/*
 * `source`: a partition, also at a version. `requested`, `chosen` as in
 * osd_client_create_partition. Not `writable`: a snapshot of the standard.
 */
int osd_client_clone(struct osd_client *client, struct osd_client_address source,
		     uint64_t requested, bool writable, uint64_t *chosen,
		     struct osd_client_error *error);
/* The same with a name of its own. "": none; NULL: that of the source, which the target copies. */
int osd_client_clone_named(struct osd_client *client, struct osd_client_address source,
			   uint64_t requested, bool writable, const char *name, uint64_t *chosen,
			   struct osd_client_error *error);
/* Takes a clone to the present of its source. `force`: although other sessions use the clone. */
int osd_client_refresh_clone(struct osd_client *client, uint64_t clone, bool force,
			     struct osd_client_error *error);
/* Ends the tie to the source. */
int osd_client_detach_clone(struct osd_client *client, uint64_t clone,
			    struct osd_client_error *error);

/*
 * ---- EXECUTE: the target's functions beyond the standard. The client subscribes to their features
 * by itself. ----
 */

/*
 * A result's items, of each command that a stream takes. A result other than 0 ends it and is
 * returned.
 */
typedef int osd_client_items(void *context, const uint8_t *items, size_t length);

/*
 * Runs a function to its end. `parameters`: items of osd_items_begin…; may be NULL with length 0.
 * `each` may be NULL.
 */
int osd_client_execute(struct osd_client *client, enum osd_function function,
		       struct osd_client_address address, const uint8_t *parameters, size_t length,
		       osd_client_items *each, void *context, struct osd_client_error *error);

/*
 * The same, of a function that only reads, all of whose commands shall see the present as it is at
 * the first one: at a view that the target makes for it. Where it gives none, or can't be read
 * there (no history is kept, or no credential permits it), it is run without, `each` from the
 * beginning; then *one_state is false if it took several commands, between which things may have
 * changed.
 */
int osd_client_execute_at_one_state(struct osd_client *client, enum osd_function function,
				    struct osd_client_address address, const uint8_t *parameters,
				    size_t length, osd_client_items *each, void *context,
				    bool *one_state, struct osd_client_error *error);

/* Adds a moment to parameters. -EINVAL: AGO is none of the target's. */
int osd_client_add_moment(struct osd_item_writer *writer, const struct osd_client_moment *moment);

/*
 * A moment that counts the modifications of an object, AGO, becomes the sequence number that stands
 * for it now, and later, too; others stay. -ENOENT: the kept history has fewer.
 */
int osd_client_count_back(struct osd_client *client, struct osd_client_address object,
			  struct osd_client_moment *moment, struct osd_client_error *error);

/*
 * The version number to read at for a moment of a partition (of the root: of the device; with AGO,
 * of an object): that of a version, or of a view that the target makes. 0 for NOW. A partition that
 * was removed since, or was another one then, is found by the moments of the device. -ENOENT.
 */
int osd_client_resolve(struct osd_client *client, struct osd_client_address address,
		       const struct osd_client_moment *moment, uint16_t *version,
		       struct osd_client_error *error);

/*
 * Takes the newest `modifications` ones of an object back. More than OSD_MODIFICATIONS_MAX are
 * counted by LOG, and the object is rolled back to before them; what others change while it counts
 * is taken back, too. -ENOENT: the kept history has fewer.
 */
int osd_client_undo(struct osd_client *client, struct osd_client_address object,
		    uint64_t modifications, struct osd_client_error *error);

/* Standard INQUIRY data. */
int osd_client_inquiry(struct osd_client *client, struct osd_inquiry_data *inquiry,
		       struct osd_client_error *error);

#endif
