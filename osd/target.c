/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* A logical unit, and the way of a command through it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/bytes.h"
#include "osd/execute.h"
#include "osd/expression_find.h"
#include "osd/facts.h"
#include "osd/functions.h"

/* Tries of a turn that leave the writing of full buffers to others; each gets further. */
#define REPEATS_MAX 32

/* ---- the logical unit ---- */

static bool is_zero(const uint8_t *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (bytes[i] != 0)
			return false;
	return true;
}

static void uuid_to_text(const uint8_t uuid[16], char text[37])
{
	snprintf(text, 37, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
		 uuid[0], uuid[1], uuid[2], uuid[3], uuid[4], uuid[5], uuid[6], uuid[7], uuid[8],
		 uuid[9], uuid[10], uuid[11], uuid[12], uuid[13], uuid[14], uuid[15]);
}

int osd_device_create(struct engine *engine, const uint8_t uuid[16],
		      const struct osd_options *options, struct osd_device **device)
{
	/*
	 * Head of a designation descriptor: binary, of the logical unit, vendor specific, 16 bytes.
	 */
	static const uint8_t system_id_head[4] = { 0x01, 0x00, 0x00, 0x10 };
	struct osd_device *created = calloc(1, sizeof(*created));
	int result;

	if (!created)
		return -ENOMEM;
	created->engine = engine;
	created->capabilities = engine_capabilities(engine);
	engine_set_facts_maker(engine, osd_facts_make);
	created->portions = (struct osd_portions){ .members = OSD_MEMBERS_PORTION,
						   .candidates = OSD_CANDIDATES_PORTION,
						   .turn = OSD_TURN_PORTIONS,
						   .search_work = EXPRESSION_WORK_MAX,
						   .pages = OSD_PAGES_PORTION,
						   .entries = OSD_ENTRIES_PORTION,
						   .objects = OSD_WHOLE_MEMBERS_MAX,
						   .written = OSD_WRITTEN_MAX,
						   .records = OSD_RECORDS_PORTION };
	osd_trackers_init(&created->trackers);
	osd_listings_init(&created->listings);
	osd_background_init(&created->background);
	osd_damage_init(&created->damage);
	memcpy(created->uuid, uuid, sizeof(created->uuid));
	memcpy(created->system_id, system_id_head, sizeof(system_id_head));
	memcpy(created->system_id + sizeof(system_id_head), uuid, 16);
	uuid_to_text(uuid, created->serial);
	if (options && !is_zero(options->system_id, sizeof(options->system_id)))
		memcpy(created->system_id, options->system_id, sizeof(created->system_id));
	if (options)
		created->layout = options->layout;
	if (options && options->serial[0] != '\0')
		snprintf(created->serial, sizeof(created->serial), "%s", options->serial);
	created->conditions = osd_conditions_create();
	created->subscriptions = osd_subscriptions_create();
	created->merge_job = osd_merge_job_create(engine);
	result = osd_letters_create(&created->letters);
	if (result == 0)
		result = created->conditions && created->subscriptions && created->merge_job
				 ? osd_security_create(created, options)
				 : -ENOMEM;
	if (result != 0) {
		osd_letters_destroy(&created->letters);
		osd_merge_job_destroy(created->merge_job);
		osd_subscriptions_destroy(created->subscriptions);
		osd_conditions_destroy(created->conditions);
		osd_damage_destroy(&created->damage);
		free(created);
		return result;
	}
	*device = created;
	return 0;
}

void osd_device_set_tasks(struct osd_device *device, const struct osd_task_set *tasks)
{
	device->tasks = *tasks;
}

void osd_device_join(struct osd_device *device, struct osd_units *units)
{
	osd_conditions_join(device->conditions, units);
}

void osd_device_destroy(struct osd_device *device)
{
	osd_background_destroy(&device->background);
	osd_merge_job_destroy(device->merge_job);
	osd_subscriptions_destroy(device->subscriptions);
	osd_security_destroy(device);
	osd_conditions_destroy(device->conditions);
	osd_damage_destroy(&device->damage);
	osd_letters_destroy(&device->letters);
	free(device);
}

/* ---- steps of a command, inside its transaction ---- */

/* Does TIMESTAMP BYPASS of the root or of the partition stop the timestamps? */
static int is_bypassed(struct osd_request *request, struct engine_address address, uint32_t page,
		       bool *bypassed)
{
	uint8_t value = OSD_TIMESTAMPS_UPDATE;
	uint32_t length;
	int result =
		osd_attribute_at(request->txn, address, page, OSD_TIME_BYPASS, &value, 1, &length);

	if (result == 0 && length == 1 && value == OSD_TIMESTAMPS_BYPASS)
		*bypassed = true;
	return result == -ENOENT ? 0 : osd_result(request, result, 0);
}

static int set_up_timestamps(struct osd_request *request)
{
	struct engine_address root = { 0 }, partition = request->subject.address;
	bool bypassed = request->cdb.timestamps_control == OSD_TIMESTAMPS_BYPASS;

	partition.object = 0;
	if (!bypassed && is_bypassed(request, root, OSD_ROOT_TIMESTAMPS, &bypassed) != 0)
		return -EINVAL;
	if (!bypassed && partition.partition != 0 &&
	    is_bypassed(request, partition, OSD_PARTITION_TIMESTAMPS, &bypassed) != 0)
		return -EINVAL;
	request->timestamps_bypassed = bypassed;
	engine_bypass_timestamps(request->txn, bypassed);
	return 0;
}

/* The type of the object that the sets are about. */
static enum engine_type type_to_set(const struct osd_request *request)
{
	switch (request->entry->target) {
	case OSD_TARGET_NEW_PARTITION:
		return ENGINE_PARTITION;
	case OSD_TARGET_NEW_USER_OBJECT:
		return ENGINE_USER_OBJECT;
	case OSD_TARGET_NEW_COLLECTION:
		return ENGINE_COLLECTION;
	default:
		if (request->entry->flags & OSD_MEMBERS)
			return ENGINE_USER_OBJECT;
		return request->subject.stat.type;
	}
}

/* Does the command note an access to its subject's data? Not in the past. */
static bool accesses_data(const struct osd_request *request)
{
	const struct engine_address *address = &request->subject.address;

	return request->entry->flags & OSD_READS_DATA && address->version == 0 && address->ago == 0;
}

/*
 * A transaction that only reads notes accesses for good, so it does that at its end, when nothing
 * can fail any more.
 */
static int do_command(struct osd_request *request)
{
	int result = 0;

	request->phase = OSD_PHASE_COMMAND;
	if (request->entry->execute)
		result = request->entry->execute(request);
	if (result != 0 || request->more || request->mode == ENGINE_READ || !accesses_data(request))
		return result;
	return osd_result(request, engine_object_accessed(request->subject.object, true, false), 0);
}

static int do_sets(struct osd_request *request)
{
	request->phase = OSD_PHASE_SETS;
	return osd_apply_sets(request);
}

static int do_gets(struct osd_request *request)
{
	request->phase = OSD_PHASE_GETS;
	return osd_answer_gets(request);
}

/* Is it SET or GET ATTRIBUTES? */
static bool consists_of_sets(const struct osd_request *request)
{
	return !request->entry->execute && !(request->entry->flags & OSD_FLUSHES) &&
	       osd_has_sets(request);
}

/*
 * Exceeding a quota is the fault of the command's work, unless the command consists of sets, or one
 * of its sets is of LOGICAL LENGTH, which decides the length.
 */
static int check_quotas(struct osd_request *request)
{
	int result = osd_quotas_check(request);
	bool sets = consists_of_sets(request) || osd_sets_length(request);

	/* Damage that this check meets is damage of attributes. */
	if (result != 0 && request->sense.key != SENSE_MEDIUM_ERROR)
		request->phase = sets ? OSD_PHASE_SETS : OSD_PHASE_COMMAND;
	return result;
}

int osd_show_data_access(struct osd_request *request)
{
	struct osd_subject *subject = &request->subject;
	struct engine_clone clone;
	int result;

	if (request->mode != ENGINE_READ || request->timestamps_bypassed ||
	    !accesses_data(request) || subject->address.partition == 0)
		return 0;
	result = osd_clone_get(request, subject->address.partition, &clone);
	if (result == -ENOENT || (result == 0 && clone.writable))
		subject->stat.times_ms[ENGINE_TIME_DATA_ACCESSED] = request->time_ms;
	return result == -ENOENT ? 0 : osd_result(request, result, 0);
}

/* Notes accesses to what is still there, and not in the past. */
static int note_access(struct osd_request *request)
{
	bool data = accesses_data(request) && request->mode == ENGINE_READ;
	bool attributes = osd_has_gets(request);

	if ((!data && !attributes) || request->entry->flags & OSD_ATTRIBUTES_FIRST ||
	    request->subject.address.version != 0 || request->subject.address.ago != 0)
		return 0;
	return osd_result(request,
			  engine_object_accessed(request->subject.object, data, attributes), 0);
}

typedef int step(struct osd_request *request);

static int do_steps(struct osd_request *request)
{
	static step *const usual[] = {
		do_command, do_sets, check_quotas, do_gets, note_access, NULL
	};
	static step *const gets_first[] = { do_gets, do_sets, check_quotas, note_access, NULL };
	static step *const attributes_first[] = { do_sets, do_gets, do_command, NULL };
	static step *const reading[] = { do_command, do_gets, note_access, NULL };
	static step *const of_members[] = { do_command, NULL };
	step *const *steps = usual;
	int result = 0;

	if (request->entry->flags & OSD_MEMBERS)
		steps = of_members;
	else if (request->mode == ENGINE_READ)
		steps = reading;
	else if (request->entry->flags & OSD_GETS_FIRST)
		steps = gets_first;
	else if (request->entry->flags & OSD_ATTRIBUTES_FIRST)
		steps = attributes_first;
	for (; *steps && result == 0 && !request->more; steps++)
		result = (*steps)(request);
	return result;
}

static int run_in_transaction(struct osd_request *request)
{
	struct engine_address partition = osd_address(request->cdb.partition, 0);
	int result = osd_check_version(request, partition, OSD_FIELD_PARTITION);

	if (result == 0)
		result = osd_security_check_command(request);
	if (result == 0)
		result = osd_validate_target(request);
	if (result == 0)
		result = osd_security_check_subject(request);
	if (result == 0) {
		osd_note_use(request);
		result = osd_check_sets(request, type_to_set(request));
	}
	if (result == 0)
		result = set_up_timestamps(request);
	if (result != 0)
		return result;
	request->before = request->subject.stat;
	return do_steps(request);
}

/* ---- the whole command ---- */

/* Begins the transaction. */
static int begin(struct osd_request *request, enum engine_mode mode)
{
	struct engine *engine = request->device->engine;
	bool formats = request->entry->flags & OSD_REFORMATS && mode != ENGINE_READ;
	int result;

	request->subject.object = NULL; /* it ended with the transaction before */
	if (request->device->step)
		request->device->step(request->device->step_context);
	result = formats ? engine_begin_format(engine, &request->txn)
			 : engine_begin(engine, mode, &request->txn);
	if (result == 0)
		request->time_ms = engine_txn_time(request->txn);
	return osd_result(request, result, 0);
}

/* Can the root answer what the command gets? Leaves nothing behind but a failure. */
static int rehearse_gets(struct osd_request *request)
{
	struct engine_address root = { 0 };
	int result = osd_result(request, osd_open(request, root, &request->subject), 0);

	if (result == 0)
		result = do_gets(request);
	request->command->data_in_length = 0;
	request->attribute_visits = 0;
	request->phase = OSD_PHASE_VALIDATION;
	return result;
}

/*
 * FORMAT OSD: checks in the present whether the command is allowed, and whether its sets and gets
 * are possible. The transaction that formats finds an empty device, except for keys and policy of
 * the root, by which it checks the right again.
 */
static int check_format_now(struct osd_request *request)
{
	int result = begin(request, ENGINE_READ);

	if (result != 0)
		return result;
	result = osd_security_check_command(request);
	if (result == 0)
		result = osd_check_sets(request, ENGINE_ROOT);
	if (result == 0)
		result = rehearse_gets(request);
	engine_abort(request->txn);
	return result != 0 ? -EINVAL : 0;
}

static int check_format(struct osd_request *request)
{
	int result;

	do
		result = check_format_now(request);
	while (result != 0 && osd_security_note_nonce(request));
	return result;
}

/* The engine gives no statistics inside a transaction, so takes them just before. */
static void read_statistics(struct osd_request *request)
{
	bool root = osd_names_root(request->cdb.partition) ||
		    request->entry->target == OSD_TARGET_ROOT;

	if (root && (osd_has_gets(request) || request->entry->action == OSD_EXECUTE))
		engine_read_statistics(request->device->engine, &request->statistics);
}

/* Must the command survive a failure of the host? No failure may bring back a replaced key. */
static bool is_to_be_stable(const struct osd_request *request)
{
	uint16_t action = request->cdb.action;

	return request->cdb.fua || action == OSD_SET_KEY || action == OSD_SET_MASTER_KEY;
}

/* Has an earlier transaction done some of the command's work? */
static bool is_begun(const struct osd_request *request)
{
	return request->tracking.partition != 0 || request->search.begun || request->copying.begun;
}

/*
 * Makes the space that the command failed for, once, because others may use it before. False: the
 * failure stays.
 */
static bool make_space(struct osd_request *request)
{
	if (request->space_wanted.bytes == 0 || request->space_made)
		return false;
	request->space_made = true;
	if (engine_make_space(request->device->engine, &request->space_wanted) != 0)
		return false;
	request->failed = false;
	request->sense = (struct osd_sense){ 0 };
	return true;
}

static bool run_once(struct osd_request *request)
{
	enum engine_mode mode = request->mode;
	int result;

	do {
		request->more = request->leaves_nothing = false;
		request->attribute_visits = 0;
		request->phase = is_begun(request) ? OSD_PHASE_COMMAND : OSD_PHASE_VALIDATION;
		if (begin(request, request->mode) != 0)
			return false;
		result = run_in_transaction(request);
		if (result != 0)
			engine_abort(request->txn);
	} while (result != 0 && !request->attempt &&
		 (osd_security_note_nonce(request) || make_space(request)));
	if (result != 0)
		return false;
	request->phase = OSD_PHASE_DONE;
	osd_tracking_cancel_others(request);
	result = engine_commit(request->txn, is_to_be_stable(request));
	if (result == 0 && request->entry->flags & OSD_FLUSHES)
		result = engine_flush(request->device->engine);
	if (result != 0) {
		/* What a READ may have had to say does not count beside a failure. */
		request->phase = consists_of_sets(request) ? OSD_PHASE_SETS : OSD_PHASE_COMMAND;
		osd_result(request, result, 0);
	}
	if (result == 0 && request->more && mode != ENGINE_READ && !request->leaves_nothing)
		request->partly_done = true;
	return result == 0;
}

/* ---- a turn that begins anew ---- */

/* What a command knows of its work, before one of its turns. */
struct turn {
	uint64_t created, created_used_bytes, append_address;
	struct osd_tracking tracking;
	struct osd_member_answer answer;
	struct osd_search_progress search;
	struct osd_reading reading;
	struct osd_copying copying;
	size_t data_in_length;
};

/*
 * Can its next turn be done again, as if it had not begun? Not behind a turn that has filled part
 * of Data-In, nor one that has a moment to let go of, nor one of history, which never has to wait.
 */
static bool can_repeat(const struct osd_request *request)
{
	return !request->attempt &&
	       (request->mode == ENGINE_WRITE || request->mode == ENGINE_FREE) &&
	       !(request->entry->flags & (OSD_REFORMATS | OSD_RESTORES)) &&
	       request->entry->action != OSD_EXECUTE && !request->reading.begun &&
	       !request->search.begun && request->moment.view == 0;
}

static struct turn turn_before(const struct osd_request *request)
{
	return (struct turn){ .created = request->created,
			      .created_used_bytes = request->created_used_bytes,
			      .append_address = request->append_address,
			      .tracking = request->tracking,
			      .answer = request->answer,
			      .search = request->search,
			      .reading = request->reading,
			      .copying = request->copying,
			      .data_in_length = request->command->data_in_length };
}

/*
 * As before the turn: what it has taken outside of its transaction it gives back. What its security
 * check has found stays.
 */
static void forget_turn(struct osd_request *request, const struct turn *before)
{
	request->failed = false;
	request->sense = (struct osd_sense){ 0 };
	osd_moment_end(request);
	if (before->tracking.partition == 0)
		osd_tracking_end(request);
	request->created = before->created;
	request->created_used_bytes = before->created_used_bytes;
	request->append_address = before->append_address;
	request->tracking = before->tracking;
	request->answer = before->answer;
	request->search = before->search;
	request->reading = before->reading;
	request->copying = before->copying;
	request->command->data_in_length = before->data_in_length;
}

/*
 * Many large records may find each row's buffer full of small ones. To write all of these in its
 * turn would hold others up for too long, so that is left to the engine's threads: the turn begins
 * anew whenever they have written some. At last it does what is left itself.
 */
bool osd_run_once(struct osd_request *request)
{
	struct engine *engine = request->device->engine;
	struct turn before = turn_before(request);
	bool done;

	for (uint32_t n = 0; n < REPEATS_MAX && can_repeat(request); n++) {
		if (!engine_seals_put_off(engine))
			break;
		done = run_once(request);
		if (!engine_seals_awaited(engine, n))
			return done;
		forget_turn(request, &before);
	}
	return run_once(request);
}

/* Between two turns. What earlier ones have done to a tracking collection stays. */
static bool is_aborted(struct osd_request *request)
{
	struct osd_command *command = request->command;

	if (!command->is_aborted || !command->is_aborted(command->abort_context))
		return false;
	request->failed = true;
	command->status = SCSI_STATUS_TASK_ABORTED;
	return true;
}

static void run(struct osd_request *request)
{
	if (request->entry->flags & OSD_REFORMATS && check_format(request) != 0)
		return;
	read_statistics(request);
	request->mode = osd_transaction_mode(request);
	osd_security_sum_ahead(request);
	while (osd_run_once(request) && request->more && !osd_background_take(request) &&
	       !is_aborted(request))
		;
	osd_moment_end(request);
	osd_copy_end(request);
}

/* ---- unit attentions ---- */

/* A unit attention comes before everything else, and the command is not executed. */
static bool is_interrupted(struct osd_request *request)
{
	enum osd_attention attention;

	if (request->entry->flags & OSD_UNINTERRUPTED ||
	    !osd_attention_take(request->device->conditions, request->command->nexus, &attention))
		return false;
	osd_fail(request, SENSE_UNIT_ATTENTION, osd_attention_code(attention));
	return true;
}

/*
 * Raises the attention that other initiators should get for what the command did. What concerns one
 * partition is no news for those that do not use it: initiators of OSDs take an attention for an
 * error.
 */
static void raise_attention(const struct osd_request *request)
{
	const struct osd_cdb *cdb = &request->cdb;
	uint64_t partition = 0;
	/*
	 * The second step of SET MASTER KEY sets a key. The rollback of one object is a change of
	 * it like others.
	 */
	bool sets_key = cdb->action == OSD_SET_KEY ||
			(cdb->action == OSD_SET_MASTER_KEY &&
			 (cdb->command_options & 3) == OSD_CHANGE_MASTER_KEY);
	enum osd_attention attention;

	if (request->entry->flags & OSD_REFORMATS)
		attention = OSD_ATTENTION_FORMATTED;
	else if (request->entry->flags & OSD_RESTORES ||
		 (request->entry->execute == osd_function_rollback && request->object == 0)) {
		attention = OSD_ATTENTION_RESTORED;
		partition = request->subject.address.partition;
	} else if (sets_key)
		attention = OSD_ATTENTION_KEYS_CHANGED;
	else
		return;
	osd_attention_raise(request->device->conditions, request->command->nexus, partition,
			    attention);
}

bool osd_unit_attention(struct osd_device *device, uint64_t nexus,
			uint8_t sense[OSD_SENSE_BYTES_MAX], size_t *length)
{
	struct osd_sense told = { .key = SENSE_UNIT_ATTENTION };
	enum osd_attention attention;

	if (!osd_attention_take(device->conditions, nexus, &attention))
		return false;
	told.code = osd_attention_code(attention);
	*length = osd_sense_encode(&told, sense, OSD_SENSE_BYTES_MAX);
	return true;
}

/* ---- a command from its bytes on ---- */

/* Decodes the CDB and checks what needs no engine. False: the request has its sense data. */
static bool prepare(struct osd_request *request)
{
	struct osd_command *command = request->command;
	uint16_t bad_field;
	int result = osd_cdb_decode(command->cdb, command->cdb_length, &request->cdb, &bad_field);

	if (result == -EINVAL) {
		osd_fail_field(request, bad_field);
		return false;
	}
	request->entry = result == 0 ? osd_command_find(request->cdb.action) : NULL;
	if (!request->entry && result == 0 && request->cdb.action == OSD_EXECUTE) {
		request->entry = osd_function_find(&request->cdb);
		if (!request->entry || !osd_has(request->device, request->entry->needs)) {
			osd_fail_field(request, osd_address_field(request));
			return false;
		}
	}
	if (!request->entry || !osd_has(request->device, request->entry->needs)) {
		osd_fail(request, SENSE_ILLEGAL_REQUEST, SENSE_INVALID_COMMAND_OPERATION_CODE);
		return false;
	}
	if (osd_validate_buffers(request) != 0)
		return false;
	return !request->entry->check || request->entry->check(request) == 0;
}

/* The command has failed, or has been executed: tells the initiator, and others. */
static void answer(struct osd_request *request)
{
	struct osd_command *command = request->command;

	if (!request->failed) {
		raise_attention(request);
		osd_security_sign_data(request);
	}
	osd_finish(request);
	if (command->status != SCSI_STATUS_BUSY && command->status != SCSI_STATUS_TASK_ABORTED) {
		osd_damage_settle(request);
		osd_security_sign_sense(request);
	}
	osd_tracking_end(request);
}

/*
 * Executes it in an attempt. False: it did not succeed. Failures are not told: the command is
 * executed again, and if it fails then, it has really failed.
 */
static bool attempt(struct osd_request *request)
{
	if (!prepare(request) || !osd_is_short(request))
		return false;
	if (is_interrupted(request)) {
		answer(request);
		return true;
	}
	engine_attempt_begin(request->stage);
	run(request);
	engine_attempt_end();
	if (!request->failed)
		answer(request);
	return !request->failed;
}

/* Executes it whatever it takes. */
static bool execute(struct osd_request *request)
{
	if (prepare(request) && !is_interrupted(request))
		run(request);
	answer(request);
	return true;
}

static bool with_buffers(struct osd_request *request, bool (*work)(struct osd_request *request))
{
	/* An address for an empty buffer. */
	static const uint8_t no_data_out[1];
	uint8_t no_data_in[1];
	struct osd_command *command = request->command;
	const uint8_t *data_out = command->data_out;
	uint8_t *data_in = command->data_in;
	bool done;

	if (command->data_out_length == 0)
		command->data_out = no_data_out;
	if (command->data_in_capacity == 0)
		command->data_in = no_data_in;
	command->status = SCSI_STATUS_GOOD;
	command->sense_length = 0;
	command->data_in_length = 0;
	command->data_out_used = 0;
	done = work(request);
	osd_security_forget(request);
	command->data_out = data_out;
	command->data_in = data_in;
	return done;
}

void osd_command_execute(struct osd_device *device, struct osd_command *command)
{
	struct osd_request request = { .device = device, .command = command };

	with_buffers(&request, execute);
}

bool osd_command_execute_at_once(struct osd_device *device, struct osd_command *command,
				 struct nand_stage *stage)
{
	struct osd_request request = {
		.device = device, .command = command, .attempt = true, .stage = stage
	};

	return with_buffers(&request, attempt);
}

void osd_execute(struct osd_device *device, struct osd_command *command)
{
	if (osd_is_envelope(command))
		osd_envelope_execute(device, command);
	else
		osd_command_execute(device, command);
}

bool osd_execute_at_once(struct osd_device *device, struct osd_command *command,
			 struct nand_stage *stage)
{
	if (osd_is_envelope(command))
		return osd_envelope_execute_at_once(device, command, stage);
	return osd_command_execute_at_once(device, command, stage);
}
