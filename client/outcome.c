/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * From status and sense data to an errno and a sentence. docs/protocol.md says which error stands
 * for what.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "client/client_private.h"
#include "common/bytes.h"

enum {
	STATUS_GOOD = 0x00,
	STATUS_CHECK_CONDITION = 0x02,
	STATUS_BUSY = 0x08,
	STATUS_RESERVATION_CONFLICT = 0x18,
	STATUS_TASK_SET_FULL = 0x28,
};

/* CDB bytes that field pointers name. */
enum {
	FIELD_PARTITION = 16,
	FIELD_OBJECT = 24,
	FIELD_OBJECT_VERSION = 28, /* of packed IDs */
	FIELD_OBJECT_PAGE = 30,
	FIELD_CONTINUATION = 48,
	/* Capability, check values, nonce and integrity offsets. */
	FIELD_CREDENTIAL_FIRST = OSD_FIELD_CAPABILITY_FORMAT,
};

/* What an error means, for the errno and for people. */
struct meaning {
	int result;
	const char *text;
};

static bool creates(uint16_t action)
{
	return action == OSD_CREATE || action == OSD_CREATE_AND_WRITE ||
	       action == OSD_COPY_USER_OBJECTS || action == OSD_CREATE_COLLECTION ||
	       action == OSD_CREATE_USER_TRACKING_COLLECTION;
}

static bool clones(uint16_t action)
{
	return action == OSD_CREATE_CLONE || action == OSD_CREATE_SNAPSHOT;
}

/* With partition 0 the target chooses the ID. */
static bool makes_partition(uint16_t action)
{
	return action == OSD_CREATE_PARTITION || clones(action);
}

static struct meaning of_partition_field(const struct osd_cdb *cdb)
{
	if (makes_partition(cdb->action)) {
		if (cdb->partition < OSD_FIRST_ID)
			return (struct meaning){ -EINVAL, "partition IDs begin at 0x10000" };
		return (struct meaning){ -EEXIST, "a partition with this ID exists already; "
						  "without an ID the target chooses one" };
	}
	if (cdb->partition >> 48 && osd_names_root(cdb->partition))
		return (struct meaning){
			-ENOENT, "the device has no such version (`muninnctl versions URL 0` "
				 "lists those it has; a partition's own say nothing of it)"
		};
	if (cdb->partition >> 48)
		return (struct meaning){ -ENOENT,
					 "there is no such partition, or it has no such version" };
	if (cdb->object >> 32 && (uint16_t)(cdb->object >> 16))
		return (struct meaning){
			-ENOENT,
			"there is no such partition. Or its object IDs are packed, and bits 31 to "
			"16 of this one name a version that is not there (`muninnctl versions`), "
			"or, if negative, more modifications than the kept history of the object "
			"has (`muninnctl log`)"
		};
	return (struct meaning){ -ENOENT, "there is no such partition" };
}

static bool is_function(const struct osd_cdb *cdb, enum osd_function function)
{
	return cdb->action == OSD_EXECUTE && cdb->address >> 48 == function;
}

/* There are two kinds of objects, and most commands know only one of them. */
static struct meaning no_object(const struct osd_cdb *cdb)
{
	switch (cdb->action) {
	case OSD_LIST_COLLECTION:
	case OSD_REMOVE_COLLECTION:
	case OSD_QUERY:
	case OSD_REMOVE_MEMBER_OBJECTS:
	case OSD_GET_MEMBER_ATTRIBUTES:
	case OSD_SET_MEMBER_ATTRIBUTES:
		return (struct meaning){ -ENOENT, "there is no such collection" };
	case OSD_REMOVE:
		return (struct meaning){ -ENOENT, "there is no such object; `coll rm` removes "
						  "collections" };
	case OSD_EXECUTE:
		if (is_function(cdb, OSD_FUNCTION_ROLLBACK))
			return (struct meaning){ -ENOENT,
						 "there was no such object, and there is none; a "
						 "collection goes back with its partition only" };
		return (struct meaning){ -ENOENT, "there is no such object, or it is a collection, "
						  "which has no content" };
	default:
		return (struct meaning){ -ENOENT, "there is no such object" };
	}
}

static struct meaning of_object_field(const struct osd_cdb *cdb)
{
	if (!creates(cdb->action))
		return no_object(cdb);
	if (cdb->object < OSD_FIRST_ID)
		return (struct meaning){ -EINVAL, "object IDs begin at 0x10000" };
	return (struct meaning){ -EEXIST, "an object with this ID exists already" };
}

/* What is wrong with a credential, or with its absence. */
static struct meaning of_credential_field(const struct osd_cdb *cdb, uint16_t field)
{
	const struct osd_security_layout *layout = osd_security_layout(cdb->version);

	switch (field) {
	case OSD_FIELD_CAPABILITY_FORMAT:
		return (struct meaning){
			-EACCES, "this needs a credential; none was given (--key, "
				 "--credential), or the keyring has no key for it (`key set` "
				 "of a key above has ended it)"
		};
	case OSD_FIELD_KEY_VERSION:
		return (struct meaning){ -EACCES,
					 "the target has no such key, or cannot decrypt it" };
	case OSD_FIELD_SECURITY_METHOD:
		return (struct meaning){ -EACCES, "this needs a stronger security method" };
	case OSD_FIELD_EXPIRATION:
		return (struct meaning){ -EACCES, "the credential has expired" };
	case OSD_FIELD_PERMISSIONS:
		return (struct meaning){ -EACCES, "the capability does not permit it" };
	default:
		if (field == layout->check_value)
			return (struct meaning){ -EACCES,
						 "the credential was made with another key" };
		return (struct meaning){ -EACCES, "the capability is for something else" };
	}
}

#define TOO_LONG                                                                               \
	"the object would be longer than it can be; in a partition whose IDs are packed that " \
	"is 65536 pages, and a flat one (`mkpart --layout flat`) takes longer ones"

/* An object gets too long by the address or, with APPEND, by the length. */
static bool names_length(const struct osd_cdb *cdb, uint16_t field)
{
	uint16_t length = cdb->version == OSD_1 ? 36 : 32;

	switch (cdb->action) {
	case OSD_WRITE:
	case OSD_CLEAR:
	case OSD_CREATE_AND_WRITE:
		return field == length + 8;
	case OSD_APPEND:
		return field == length;
	default:
		return false;
	}
}

static struct meaning of_cdb_field(const struct osd_cdb *cdb, const struct osd_sense *sense)
{
	if (sense->has_field && sense->field_in_cdb && names_length(cdb, sense->field))
		return (struct meaning){ -EFBIG, TOO_LONG };
	if (is_function(cdb, OSD_FUNCTION_UNDO) && !sense->has_field)
		return (struct meaning){ -EINVAL, "only user objects can be undone; a collection "
						  "goes back with its partition" };
	if (!sense->has_field || !sense->field_in_cdb)
		return (struct meaning){ -EINVAL, "the target refuses a field of the command" };
	if (cdb->action == OSD_FORMAT_OSD && sense->field == (cdb->version == OSD_1 ? 36 : 32))
		return (struct meaning){ -EINVAL,
					 "the device has not that much capacity; `muninnctl "
					 "info` shows what it has" };
	if (cdb->action == OSD_PUNCH && sense->field == (cdb->version == OSD_1 ? 44 : 40))
		return (struct meaning){ -EINVAL, "the range begins behind the object's end" };
	if (cdb->action == OSD_CREATE_USER_TRACKING_COLLECTION && sense->field == 40)
		return (struct meaning){ -ENOENT,
					 "there is no such collection to take members from" };
	/* The source stands in the place of STARTING BYTE ADDRESS. */
	if (clones(cdb->action) && sense->field == (cdb->version == OSD_1 ? 44 : 40))
		return (struct meaning){ -ENOENT, "there is no such partition to clone, or it has "
						  "no such version" };
	switch (sense->field) {
	case FIELD_PARTITION:
		return of_partition_field(cdb);
	case FIELD_OBJECT:
		return of_object_field(cdb);
	case FIELD_OBJECT_VERSION:
		return (struct meaning){ -EINVAL,
					 "bits 31 to 16 of an ID in a packed partition are a "
					 "version; here they must be 0" };
	case FIELD_OBJECT_PAGE:
		return (struct meaning){ -EINVAL,
					 "bits 15 to 0 of an ID in a packed partition are a page; "
					 "here they must be 0" };
	case FIELD_CONTINUATION:
		/* The name of the source is all in the segment that this client can't check. */
		if (cdb->action == OSD_COPY_USER_OBJECTS)
			return (struct meaning){
				-ENOENT, "there is no such object to copy, or it is longer than "
					 "the partition that it goes to allows (65536 pages if "
					 "its IDs are packed)"
			};
		return (struct meaning){ -EINVAL, "the target refuses a field of the command" };
	default:
		if (sense->field >= FIELD_CREDENTIAL_FIRST)
			return of_credential_field(cdb, sense->field);
		return (struct meaning){ -EINVAL, "the target refuses a field of the command" };
	}
}

/*
 * A parameter of a function. What the client sent is well-formed, so the thing that it names is
 * wrong.
 */
static struct meaning of_parameter(const struct osd_cdb *cdb)
{
	if (cdb->action != OSD_EXECUTE)
		return (struct meaning){ -EINVAL, "the target refuses an attribute: objects of "
						  "this kind have none there, nobody may set it, "
						  "or the value is wrong" };
	switch (cdb->address >> 48) {
	case OSD_FUNCTION_SNAPSHOT:
		return (struct meaning){ -EEXIST, "a version has this name already" };
	case OSD_FUNCTION_DROP:
		return (struct meaning){ -ENOENT, "there is no such version" };
	case OSD_FUNCTION_VIEW:
	case OSD_FUNCTION_LOG:
	case OSD_FUNCTION_ROLLBACK:
	case OSD_FUNCTION_DIFF:
	case OSD_FUNCTION_SPACE:
		return (struct meaning){ -ENOENT,
					 "there is no such version, or history does not reach back "
					 "that far; `muninnctl retention` shows how far it does" };
	case OSD_FUNCTION_UNDO:
		return (struct meaning){
			-ENOENT, "the kept history has fewer modifications, or there was no "
				 "such object then and there is none now; `muninnctl log` "
				 "lists them"
		};
	case OSD_FUNCTION_SEARCH:
		return (struct meaning){ -EINVAL, "the target does not take this pattern" };
	case OSD_FUNCTION_CHECKSUM:
		return (struct meaning){ -EINVAL, "the range goes beyond the object's end" };
	default:
		return (struct meaning){ -EINVAL, "the target refuses a parameter" };
	}
}

/* 27/06: a lock stopped the command. A rollback meets a lock in another way than others. */
static struct meaning of_lock(const struct osd_cdb *cdb)
{
	if (cdb->action == OSD_EXECUTE && cdb->address >> 48 == OSD_FUNCTION_ROLLBACK)
		return (struct meaning){
			-EPERM, "a partition whose history is locked was not there then and would "
				"vanish, or what comes back would cost locked history; roll the "
				"partitions back one by one, or let the target's administrator end "
				"the lock"
		};
	if (osd_names_root(cdb->partition))
		return (struct meaning){ -EPERM,
					 "the history of the device, or of a partition of it, is "
					 "locked; only the target's administrator can shorten it "
					 "before the lock ends" };
	return (struct meaning){ -EPERM,
				 "the history of the partition is locked; only the target's "
				 "administrator can shorten it before the lock ends" };
}

#define TOO_MANY_ROLLBACKS                                                                       \
	"four million rollbacks are on record, more than the target keeps; drop versions or "    \
	"shorten the retention, then the target drops rollbacks that no moment shows any more; " \
	"a clone of the partition begins without any"

#define TOO_FAST                                                                                 \
	"moments are begun faster than the device's life allows, which is three in two seconds " \
	"for long; wait a second and try again"

#define TOO_FAST_BACK                                                                           \
	"somebody goes back too often: beyond 65536 rollbacks on record, 4096 that lead from "  \
	"one to the next, or on a full device with locked history, three of a partition go in " \
	"a minute. Cut off who does that, wait a minute and try again"

#define NOT_PUT_AGAIN                                                                             \
	"the object has more than 4096 pages, too many to be put again, and hiding what came "    \
	"since is impossible: too many rollbacks are on record (65536, or 4096 of this object "   \
	"with changes between them), or the partition is a clone that was refreshed since then; " \
	"roll the whole partition back, or copy the old state (`muninnctl get PID/OID@MOMENT`, "  \
	"`muninnctl put --replace`)"

#define TOO_DEEP                                                                                \
	"the source is a clone of a clone, and so on, 16 deep, which is the limit; detaching "  \
	"or removing one of them does not change that. Copy its objects into a new partition (" \
	"`muninnctl mkpart`, then `cp` each, or `export` and `import` a tree), and clone that"

#define TOO_MUCH_AT_ONCE                                                                        \
	"that is more than one command of the target does, since all others wait for it: more " \
	"than 2048 pages of data behind the range to punch, or a command on more than 2048 "    \
	"members of a linear collection as a whole"

/* Commands that are refused so because they are about too much, and nothing else. */
static bool is_divisible(uint16_t action)
{
	return action == OSD_PUNCH || action == OSD_REMOVE_MEMBER_OBJECTS ||
	       action == OSD_GET_MEMBER_ATTRIBUTES || action == OSD_SET_MEMBER_ATTRIBUTES;
}

/* 55/00: something is used up. */
static struct meaning of_resource(const struct osd_cdb *cdb, const struct osd_sense *sense)
{
	if (sense->key == SENSE_DATA_PROTECT)
		return (struct meaning){
			-ENOSPC, "the device has used up the numbers of its moments; you can "
				 "still read it: copy what it holds to a new device"
		};
	if (cdb->action == OSD_EXECUTE && cdb->address >> 48 == OSD_FUNCTION_VIEW)
		return (struct meaning){ -EBUSY,
					 "all numbers for views are in use; a number that nobody "
					 "reads at is free after ten minutes" };
	if (cdb->action == OSD_EXECUTE && cdb->address >> 48 == OSD_FUNCTION_SNAPSHOT)
		return (struct meaning){ -ENOSPC,
					 "kept versions use up all version numbers; drop some "
					 "(`muninnctl versions`, `muninnctl drop`), then their "
					 "numbers are free" };
	if (cdb->action == OSD_EXECUTE && cdb->object != 0 &&
	    (cdb->address >> 48 == OSD_FUNCTION_ROLLBACK ||
	     cdb->address >> 48 == OSD_FUNCTION_UNDO))
		return (struct meaning){ -EFBIG, NOT_PUT_AGAIN };
	if (cdb->action == OSD_EXECUTE && cdb->address >> 48 == OSD_FUNCTION_ROLLBACK)
		return (struct meaning){ -ENOSPC, TOO_MANY_ROLLBACKS };
	if (is_divisible(cdb->action))
		return (struct meaning){ -E2BIG, TOO_MUCH_AT_ONCE };
	if (makes_partition(cdb->action))
		return sense->has_field
			       ? (struct meaning){ -EMLINK, TOO_DEEP }
			       : (struct meaning){
					 -ENOSPC,
					 "the device can't have more partitions, because those "
					 "that its history still shows count too, or there is no "
					 "free ID: remove partitions, drop versions of the device "
					 "or shorten its retention, and try again; or choose the "
					 "ID yourself"
				 };
	return (struct meaning){ -ENOSPC, "the device is full, or a quota is used up" };
}

/*
 * 26/00 with a place in Data-Out. Extension capabilities are at the end of the continuation
 * segment. A place in one is that of the CDB's capability less 80.
 */
static struct meaning of_data_out_field(const struct osd_cdb *cdb, const struct osd_sense *sense)
{
	uint32_t segment = cdb->continuation_length, before;

	if (!sense->has_field || sense->field_in_cdb || sense->field >= segment)
		return of_parameter(cdb);
	before = (segment - sense->field - 1) % OSD_EXTENSION_BYTES + 1;
	return of_credential_field(
		cdb, (uint16_t)(OSD_FIELD_CAPABILITY_FORMAT + OSD_EXTENSION_BYTES - before));
}

/* UNDO, or ROLLBACK of an object. */
static bool puts_object_again(const struct osd_cdb *cdb)
{
	uint64_t function = cdb->address >> 48;

	return cdb->action == OSD_EXECUTE &&
	       (function == OSD_FUNCTION_UNDO ||
		(function == OSD_FUNCTION_ROLLBACK && cdb->object != 0));
}

static struct meaning of_code(const struct osd_cdb *cdb, const struct osd_sense *sense)
{
	switch (sense->code) {
	case SENSE_INVALID_FIELD_IN_CDB:
		return of_cdb_field(cdb, sense);
	case SENSE_SECURITY_AUDIT_VALUE_FROZEN:
	case SENSE_SECURITY_WORKING_KEY_FROZEN:
		return (struct meaning){ -EACCES, "the credential was withdrawn" };
	case SENSE_NONCE_NOT_UNIQUE:
		return (struct meaning){ -EACCES, "the target has seen this request before" };
	case SENSE_NONCE_TIMESTAMP_OUT_OF_RANGE:
		return (struct meaning){ -EACCES,
					 "the clocks of initiator and target differ too much, or "
					 "the target has just been started" };
	case SENSE_INVALID_DATA_OUT_BUFFER_INTEGRITY_CHECK_VALUE:
		return (struct meaning){ -EBADMSG, "the data was changed on the way" };
	case SENSE_INVALID_COMMAND_OPERATION_CODE:
		if (cdb->action == OSD_SET_KEY || cdb->action == OSD_SET_MASTER_KEY)
			return (struct meaning){
				-EOPNOTSUPP, "the unit has no device key, so it takes no "
					     "others; key_file in its configuration names one"
			};
		return (struct meaning){ -EOPNOTSUPP, "the target does not know this command" };
	case SENSE_PARAMETER_LIST_LENGTH_ERROR:
		return of_parameter(cdb);
	case SENSE_PARAMETER_VALUE_INVALID:
		if (is_function(cdb, OSD_FUNCTION_UNDO))
			return (struct meaning){ -E2BIG, "one UNDO takes back at most 65536 "
							 "modifications; go back to a moment that "
							 "`muninnctl log` shows" };
		return (struct meaning){ -ESTALE,
					 "that is before the target's present time epoch, which "
					 "began after its clock had been ahead" };
	case SENSE_INVALID_FIELD_IN_PARAMETER_LIST:
		return of_data_out_field(cdb, sense);
	case SENSE_PARTITION_OR_COLLECTION_CONTAINS_USER_OBJECTS:
		return (struct meaning){ -ENOTEMPTY, "it still contains objects" };
	case SENSE_SYSTEM_RESOURCE_FAILURE:
		return of_resource(cdb, sense);
	case SENSE_INSUFFICIENT_RESOURCES:
		return (struct meaning){ -EBUSY, is_function(cdb, OSD_FUNCTION_ROLLBACK)
							 ? TOO_FAST_BACK
							 : TOO_FAST };
	case SENSE_QUOTA_ERROR:
		if (puts_object_again(cdb))
			return (struct meaning){
				-ENOSPC,
				"there is no space to put again what differs, or a quota is "
				"used up; drop versions, or copy the old state out "
				"(`muninnctl get PID/OID@MOMENT FILE`) and put it with "
				"--replace"
			};
		return (struct meaning){ -ENOSPC, "the device is full, or a quota is used up" };
	case SENSE_WRITE_PROTECTED:
		return (struct meaning){
			-EROFS, "old versions and write-protected units can only be read"
		};
	case SENSE_CONDITIONAL_WRITE_PROTECT:
		return of_lock(cdb);
	case SENSE_MEDIUM_REMOVAL_PREVENTED:
		return (struct meaning){ -EBUSY,
					 "unmount and log out there first; or use --force, but "
					 "hosts that have it mounted then mix old and new state" };
	case SENSE_COMMAND_SEQUENCE_ERROR:
		if (!is_function(cdb, OSD_FUNCTION_DROP))
			return (struct meaning){ -EBUSY,
						 "the client did not subscribe to the feature" };
		return (struct meaning){ -EBUSY,
					 "a clone reads what this version holds, now or at a "
					 "moment that can still be reached" };
	default:
		return (struct meaning){ 0, NULL };
	}
}

static struct meaning of_key(uint8_t key)
{
	switch (key) {
	case SENSE_NO_SENSE:
	case SENSE_RECOVERED_ERROR:
		return (struct meaning){ 0, "recovered" };
	case SENSE_NOT_READY:
		return (struct meaning){ -EBUSY, "the unit is not ready; try again later" };
	case SENSE_MEDIUM_ERROR:
		return (struct meaning){ -EIO, "stored data cannot be read" };
	case SENSE_HARDWARE_ERROR:
		return (struct meaning){ -EIO, "the target failed; its log says why" };
	case SENSE_ILLEGAL_REQUEST:
		return (struct meaning){ -EINVAL, "the target refuses the command" };
	case SENSE_UNIT_ATTENTION:
		return (struct meaning){ -EBUSY, "the unit was reset or has changed; try again" };
	case SENSE_DATA_PROTECT:
		return (struct meaning){ -EACCES, "the data is protected" };
	default:
		return (struct meaning){ -EIO, "the command failed" };
	}
}

static struct meaning of_sense(const struct osd_cdb *cdb, const struct osd_sense *sense)
{
	struct meaning meaning;

	if (sense->key == SENSE_NO_SENSE || sense->key == SENSE_RECOVERED_ERROR)
		return of_key(sense->key);
	meaning = of_code(cdb, sense);
	return meaning.text ? meaning : of_key(sense->key);
}

static struct meaning of_status(uint8_t status)
{
	switch (status) {
	case STATUS_BUSY:
	case STATUS_TASK_SET_FULL:
		return (struct meaning){ -EBUSY, "the target is overloaded; try again later" };
	case STATUS_RESERVATION_CONFLICT:
		return (struct meaning){ -EACCES, "another initiator has reserved the unit" };
	default:
		return (struct meaning){ -EIO, "the target gives no explanation" };
	}
}

/* The name of the command; of EXECUTE, that of the function. */
static const char *command_name(const struct osd_cdb *cdb)
{
	return cdb->action == OSD_EXECUTE ? osd_function_name((uint16_t)(cdb->address >> 48))
					  : osd_action_name(cdb->action);
}

/* "WRITE, address 0x10000/0x10005", or for the root "FORMAT OSD, the device". */
static void describe(const struct osd_cdb *cdb, char *text, size_t capacity)
{
	char address[OSD_CLIENT_ADDRESS_TEXT];
	struct osd_client_address where = {
		.partition = cdb->partition & UINT64_C(0xFFFFFFFFFFFF),
		.object = cdb->object,
		.version = (uint16_t)(cdb->partition >> 48),
	};

	if (cdb->partition)
		snprintf(text, capacity, "%s, address %s", command_name(cdb),
			 osd_client_format_address(where, address));
	else
		snprintf(text, capacity, "%s%s", command_name(cdb),
			 makes_partition(cdb->action) ? "" : ", the device");
}

/* "2 other sessions use it (iqn.a iqn.b): "; nothing, if nobody prevents the command. */
static void name_users(const struct osd_sense *sense, char *text, size_t capacity)
{
	text[0] = '\0';
	if (sense->users > 0)
		snprintf(text, capacity, "%u other session%s %s it%s%s%s: ", sense->users,
			 sense->users == 1 ? "" : "s", sense->users == 1 ? "uses" : "use",
			 sense->user_names[0] ? " (" : "", sense->user_names,
			 sense->user_names[0] ? ")" : "");
}

static void say(struct osd_client_error *error, const struct osd_cdb *cdb, struct meaning meaning)
{
	char command[128], field[80] = "", users[OSD_SENSE_USERS_BYTES + 40];
	const struct osd_sense *sense = &error->sense;

	error->result = meaning.result;
	describe(cdb, command, sizeof(command));
	name_users(sense, users, sizeof(users));
	if (!error->has_sense) {
		error_set(&error->sentence, 0, "%s: %s [SCSI status 0x%02x]", command, meaning.text,
			  error->status);
		return;
	}
	if (sense->attributes > 0)
		snprintf(field, sizeof(field), ", attribute 0x%" PRIx32 "/0x%" PRIx32,
			 sense->attribute[0].page, sense->attribute[0].number);
	else if (sense->has_field)
		snprintf(field, sizeof(field), ", %s byte %u",
			 sense->field_in_cdb ? "CDB" : "parameter", sense->field);
	else if (sense->key == SENSE_MEDIUM_ERROR && cdb->action == OSD_READ &&
		 sense->has_information && sense->has_command_information)
		snprintf(field, sizeof(field), ", %" PRIu64 " bytes from %" PRIu64 " on",
			 sense->command_information, sense->information);
	error_set(&error->sentence, 0, "%s: %s%s [%s, %s %02x/%02x%s]", command, users,
		  meaning.text, osd_sense_key_name(sense->key), osd_sense_code_name(sense->code),
		  sense->code >> 8, sense->code & 0xFF, field);
}

/*
 * How much of a READ is data. If it crosses the object's end, the information descriptor says so.
 * If it begins behind the end, the target may also refuse it with the address as the field at
 * fault: that is a read of nothing.
 */
static bool read_past_end(struct osd_request *request)
{
	const struct osd_client_error *error = &request->error;
	const struct osd_sense *sense = &error->sense;
	uint16_t address_field = request->cdb.version == OSD_1 ? 44 : 40;

	if (request->cdb.action != OSD_READ || !error->has_sense)
		return false;
	if (sense->code == SENSE_READ_PAST_END_OF_USER_OBJECT) {
		if (sense->has_information)
			request->received = min_u64(request->received, sense->information);
		return true;
	}
	if (sense->key == SENSE_ILLEGAL_REQUEST && sense->code == SENSE_INVALID_FIELD_IN_CDB &&
	    sense->has_field && sense->field_in_cdb && sense->field == address_field) {
		request->received = 0;
		return true;
	}
	return false;
}

static void no_answer(struct osd_request *request, const struct session *session)
{
	struct osd_client_error *error = &request->error;
	char command[128];

	error->result = request->task.result;
	describe(&request->cdb, command, sizeof(command));
	if (session && session_error(session, &error->sentence) == error->result)
		return;
	if (error->result == -EREMOTEIO)
		error_set(&error->sentence, 0,
			  "%s: the target gave the command up (iSCSI: target failure)", command);
	else if (error->result == -EPROTO)
		error_set(&error->sentence, 0,
			  "%s: the target called it done but sent less data than it says", command);
	else
		error_set(&error->sentence, 0, "%s: %s", command, strerror(-error->result));
}

void outcome_decode(struct osd_request *request, const struct session *session)
{
	struct osd_client_error *error = &request->error;
	const struct session_task *task = &request->task;
	struct meaning meaning;

	*error = (struct osd_client_error){ .status = task->status };
	request->received = min_u64(task->in_received, request->buffer_length);
	if (task->result < 0) {
		no_answer(request, session);
		return;
	}
	if (task->status == STATUS_GOOD)
		return;
	if (task->status == STATUS_CHECK_CONDITION)
		error->has_sense =
			osd_sense_decode(task->sense, task->sense_length, &error->sense) == 0;
	if (read_past_end(request))
		return;
	meaning = error->has_sense ? of_sense(&request->cdb, &error->sense)
				   : of_status(task->status);
	if (meaning.result < 0)
		say(error, &request->cdb, meaning);
}

int outcome_give(const struct osd_client_error *outcome, struct osd_client_error *error)
{
	if (error)
		*error = *outcome;
	return outcome->result;
}

bool outcome_concerns_object(const struct osd_client_error *error)
{
	const struct osd_sense *sense = &error->sense;

	if (error->result == 0 || !error->has_sense)
		return false;
	if (sense->key == SENSE_MEDIUM_ERROR || sense->key == SENSE_HARDWARE_ERROR)
		return true;
	return sense->code == SENSE_INVALID_FIELD_IN_CDB && sense->has_field &&
	       sense->field_in_cdb && sense->field == FIELD_OBJECT;
}

static int set(struct osd_client_error *error, bool local, int result, const char *format,
	       va_list arguments)
{
	if (!error)
		return result;
	*error = (struct osd_client_error){ .result = result, .local = local };
	return error_set_list(&error->sentence, result, format, arguments);
}

int outcome_set(struct osd_client_error *error, int result, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	set(error, false, result, format, arguments);
	va_end(arguments);
	return result;
}

int outcome_set_local(struct osd_client_error *error, int result, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	set(error, true, result, format, arguments);
	va_end(arguments);
	return result;
}
