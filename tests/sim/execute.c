/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Lays a command out as an initiator does, sends it, and compares the answer with the model. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "common/bytes.h"
#include "tests/sim/judge.h"
#include "wire/vendor.h"

enum { LIST_BYTES = 4096, RETRIEVED_BYTES = 4096 };

static struct sim_exchange exchange;
static uint8_t response; /* of a task management function */

uint8_t sim_command_response(void)
{
	return response;
}

/* ---- layout ---- */

static void put_data(const struct sim_command *command)
{
	for (uint64_t at = 0; at < command->length; at++)
		exchange.out[at] = (uint8_t)(command->fill + at + at / 251);
	exchange.out_length = exchange.data_length = command->length;
	exchange.cdb.length = command->length;
}

static void add_set(const struct sim_command *command, uint32_t page, uint32_t number,
		    const void *value, uint32_t length)
{
	uint64_t at = osd_offset_encode(command->osd, exchange.out_length, NULL);
	struct osd_list_writer writer;

	osd_list_begin(&writer, command->osd, OSD_LIST_TO_SET, exchange.out + at, LIST_BYTES);
	assert_true(osd_list_add_value(&writer, page, number, value, length));
	exchange.cdb.set_data = (struct osd_segment){ at, (uint32_t)osd_list_end(&writer) };
	exchange.out_length = at + exchange.cdb.set_data.length;
}

static void add_attribute(const struct sim_command *command)
{
	struct model_attribute attribute = sim_judge_attribute(command);
	uint8_t value[LIST_BYTES];

	for (uint32_t at = 0; at < attribute.length; at++)
		value[at] = (uint8_t)(attribute.fill + at);
	add_set(command, attribute.page, attribute.number, value, attribute.length);
}

static void add_length(const struct sim_command *command)
{
	uint8_t value[8];

	put_be64(value, command->offset);
	add_set(command, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_LOGICAL_LENGTH, value,
		sizeof(value));
}

/* The attribute, and the object's length. */
static void add_gets(const struct sim_command *command)
{
	struct osd_list_writer writer;

	osd_list_begin(&writer, command->osd, OSD_LIST_TO_GET, exchange.out, LIST_BYTES);
	assert_true(
		osd_list_add_request(&writer, command->attribute.page, command->attribute.number));
	assert_true(osd_list_add_request(&writer, OSD_USER_OBJECT_INFORMATION,
					 OSD_INFORMATION_LOGICAL_LENGTH));
	exchange.cdb.get_list = (struct osd_segment){ 0, (uint32_t)osd_list_end(&writer) };
	exchange.cdb.retrieved = (struct osd_segment){ 0, RETRIEVED_BYTES };
	exchange.out_length = exchange.cdb.get_list.length;
	exchange.in_length = RETRIEVED_BYTES;
}

static void add_parameters(enum osd_function function, uint16_t tag, uint64_t value, bool force)
{
	struct osd_item_writer writer;

	osd_items_begin(&writer, exchange.out, LIST_BYTES);
	if (tag)
		osd_item_add_number(&writer, tag, value);
	if (force)
		osd_item_add_number(&writer, OSD_ITEM_FORCE, 1);
	exchange.out_length = exchange.data_length = writer.length;
	exchange.cdb.address = osd_execute_address(function, (uint32_t)writer.length);
	exchange.cdb.length = exchange.in_length = LIST_BYTES;
}

static void lay_out_history(const struct sim_command *command)
{
	exchange.cdb.object = 0;
	exchange.cdb.action = OSD_EXECUTE;
	if (command->kind == SIM_ROLLBACK)
		add_parameters(OSD_FUNCTION_ROLLBACK, OSD_ITEM_VERSION, command->version, true);
	else
		add_parameters(OSD_FUNCTION_SNAPSHOT, 0, 0, false);
}

static void lay_out_list(const struct sim_command *command)
{
	exchange.cdb.action = command->kind == SIM_LIST ? OSD_LIST : OSD_LIST_COLLECTION;
	exchange.cdb.object = 0;
	exchange.cdb.length = exchange.in_length = LIST_BYTES;
}

static void lay_out_tasks(const struct sim_command *command)
{
	exchange.cdb.action = OSD_PERFORM_TASK_MANAGEMENT_FUNCTION;
	exchange.cdb.partition = exchange.cdb.object = 0;
	exchange.cdb.task_function = command->function;
	exchange.cdb.task_tag = command->tag;
	exchange.cdb.length = exchange.in_length = OSD_TASK_ANSWER_BYTES;
}

static void lay_out_range(const struct sim_command *command)
{
	exchange.cdb.address = command->offset;
	exchange.cdb.length = command->length;
	if (command->kind == SIM_READ)
		exchange.in_length = command->length;
}

static void lay_out(const struct sim_command *command)
{
	static const uint16_t actions[SIM_KINDS] = {
		[SIM_READ] = OSD_READ,
		[SIM_WRITE] = OSD_WRITE,
		[SIM_APPEND] = OSD_APPEND,
		[SIM_CLEAR] = OSD_CLEAR,
		[SIM_PUNCH] = OSD_PUNCH,
		[SIM_TRUNCATE] = OSD_SET_ATTRIBUTES,
		[SIM_CREATE] = OSD_CREATE,
		[SIM_CREATE_AND_WRITE] = OSD_CREATE_AND_WRITE,
		[SIM_CREATE_COLLECTION] = OSD_CREATE_COLLECTION,
		[SIM_REMOVE] = OSD_REMOVE,
		[SIM_REMOVE_COLLECTION] = OSD_REMOVE_COLLECTION,
		[SIM_SET] = OSD_SET_ATTRIBUTES,
		[SIM_GET] = OSD_GET_ATTRIBUTES,
		[SIM_CREATE_PARTITION] = OSD_CREATE_PARTITION,
		[SIM_REMOVE_PARTITION] = OSD_REMOVE_PARTITION,
		[SIM_FLUSH] = OSD_FLUSH_OSD,
	};
	enum sim_kind kind = command->kind;

	exchange.out_length = exchange.data_length = exchange.in_length = 0;
	exchange.cdb = (struct osd_cdb){
		.version = command->osd,
		.action = actions[kind],
		.format = OSD_ATTRIBUTES_LIST,
		.partition = command->partition->id |
			     (kind == SIM_READ ? (uint64_t)command->version << 48 : 0),
		.object = command->id,
		.fua = command->fua && sim_judge_changes(kind),
	};
	if (kind == SIM_READ || kind == SIM_CLEAR || kind == SIM_PUNCH)
		lay_out_range(command);
	if (kind == SIM_WRITE || kind == SIM_APPEND || kind == SIM_CREATE_AND_WRITE)
		put_data(command);
	if (kind == SIM_WRITE || kind == SIM_CREATE_AND_WRITE)
		exchange.cdb.address = command->offset;
	if (kind == SIM_CREATE)
		exchange.cdb.objects = (uint16_t)command->count;
	if (kind == SIM_CREATE_PARTITION || kind == SIM_REMOVE_PARTITION || kind == SIM_FLUSH)
		exchange.cdb.object = 0;
	if (kind == SIM_REMOVE_PARTITION && command->contents)
		exchange.cdb.command_options = OSD_REMOVE_CONTENTS;
	if (kind == SIM_FLUSH)
		exchange.cdb.partition = 0;
	if (command->has_attribute || kind == SIM_SET)
		add_attribute(command);
	if (kind == SIM_TRUNCATE)
		add_length(command);
	if (kind == SIM_GET)
		add_gets(command);
	if (kind == SIM_LIST || kind == SIM_LIST_COLLECTIONS)
		lay_out_list(command);
	if (kind == SIM_SNAPSHOT || kind == SIM_ROLLBACK)
		lay_out_history(command);
	if (kind == SIM_TASKS)
		lay_out_tasks(command);
}

/* ---- sending ---- */

static enum sim_answer answer_of(const struct osd_command *sent)
{
	struct osd_sense sense;

	if (sent->status == SCSI_STATUS_GOOD)
		return SIM_GOOD;
	if (sent->status == SCSI_STATUS_TASK_ABORTED)
		return SIM_ABORTED;
	if (sent->status != SCSI_STATUS_CHECK_CONDITION)
		return SIM_OTHER;
	assert_int_equal(osd_sense_decode(sent->sense, sent->sense_length, &sense), 0);
	switch (sense.key) {
	case SENSE_RECOVERED_ERROR:
		return SIM_PAST_END;
	case SENSE_ILLEGAL_REQUEST:
		return SIM_REFUSED;
	case SENSE_DATA_PROTECT:
		return sense.code == SENSE_QUOTA_ERROR ? SIM_NO_ROOM : SIM_PROTECTED;
	case SENSE_MEDIUM_ERROR:
		return SIM_DAMAGED;
	case SENSE_UNIT_ATTENTION:
		return SIM_TOLD;
	case SENSE_ABORTED_COMMAND:
		return SIM_TOO_FAST;
	default:
		return SIM_OTHER;
	}
}

/* False: it could not be tried at once. */
static bool send(struct sim_world *world, struct osd_command *sent, bool at_once)
{
	if (osd_execute_at_once(world->device, sent, NULL))
		return true;
	if (!at_once)
		osd_execute(world->device, sent);
	return !at_once;
}

static struct osd_command command_for(struct sim_world *world, const struct sim_command *command,
				      struct sim_session *session)
{
	sim_security_encode(world, session, command, &exchange);
	return (struct osd_command){
		.cdb = exchange.bytes,
		.cdb_length = exchange.bytes_length,
		.data_out = exchange.sent_out ? exchange.out : NULL,
		.data_out_length = exchange.sent_out,
		.data_in = exchange.sent_in ? exchange.in : NULL,
		.data_in_capacity = exchange.sent_in,
		.nexus = session->nexus,
	};
}

/* A session asks for what EXECUTE has. */
static void subscribe(struct sim_world *world, struct sim_session *session)
{
	/* A command of the root, as TASKS is. */
	const struct sim_command subscribing = { .kind = SIM_TASKS,
						 .partition = world->run.model.partitions };
	struct osd_command sent;

	for (int tries = 0; tries < 3 && !session->subscribed; tries++) {
		exchange.out_length = exchange.in_length = 0;
		exchange.cdb = (struct osd_cdb){ .version = OSD_2,
						 .action = OSD_EXECUTE,
						 .format = OSD_ATTRIBUTES_LIST };
		add_parameters(OSD_FUNCTION_SUBSCRIBE, OSD_ITEM_FEATURES, OSD_FEATURES_ALL, false);
		sent = command_for(world, &subscribing, session);
		send(world, &sent, false);
		session->subscribed = sent.status == SCSI_STATUS_GOOD;
	}
	model_power_notice(&world->run);
	assert_true(session->subscribed || world->unreadable);
	session->to_be_told = session->to_be_told && !session->subscribed;
}

/* ---- judging ---- */

static bool is_allowed(const struct sim_world *world, const struct sim_command *command,
		       enum sim_answer wanted, enum sim_answer got)
{
	if (got == wanted || (got == SIM_DAMAGED && world->unreadable))
		return true;
	if (got == SIM_NO_ROOM)
		return sim_judge_changes(command->kind);
	/* Going back to a version, and noting one, has limits that the model does not count. */
	if (command->kind == SIM_ROLLBACK || command->kind == SIM_SNAPSHOT)
		return got == SIM_TOO_FAST || (got == SIM_REFUSED && command->kind == SIM_ROLLBACK);
	return false;
}

static enum sim_answer wanted_of(struct sim_world *world, const struct sim_command *command)
{
	if (world->profile->secured && !sim_security_lets_in(world, command))
		return SIM_REFUSED;
	return sim_judge_expects(world, command);
}

static void count_answer(struct sim_world *world, enum sim_answer got)
{
	struct sim_counts *counts = &world->report->counts;

	world->run.failures += got == SIM_NO_ROOM;
	world->run.refusals += got == SIM_PROTECTED;
	counts->medium_errors += got == SIM_DAMAGED;
	counts->host_refusals += got == SIM_NO_ROOM && world->host_full;
}

static void check_status(struct sim_world *world, const struct sim_command *command,
			 enum sim_answer wanted, enum sim_answer got)
{
	char text[200];

	count_answer(world, got);
	if (is_allowed(world, command, wanted, got))
		return;
	sim_command_print(command, text, sizeof(text));
	fail_msg("%s: answered %d, where the model says %d (enum sim_answer)", text, got, wanted);
}

/* Everybody else is told when a partition went back, or tasks were cleared. */
static void expect_attentions(struct sim_world *world, const struct sim_command *command)
{
	if (command->kind == SIM_ROLLBACK ||
	    (command->kind == SIM_TASKS && command->function == OSD_CLEAR_TASK_SET))
		for (int n = 0; n < SIM_SESSIONS; n++)
			world->sessions[n].to_be_told = true;
}

/* The number of the version that SNAPSHOT has made. */
static uint32_t version_in(const struct osd_command *sent)
{
	struct osd_item item;
	uint64_t number = 0;

	assert_true(sent->data_in_length > OSD_RESULT_HEAD_BYTES);
	assert_int_equal(osd_item_find(exchange.in + OSD_RESULT_HEAD_BYTES,
				       sent->data_in_length - OSD_RESULT_HEAD_BYTES,
				       OSD_ITEM_VERSION, &item),
			 0);
	assert_int_equal(osd_item_number(&item, &number), 0);
	return (uint32_t)number;
}

static void follow(struct sim_world *world, const struct sim_command *command,
		   const struct osd_command *sent, bool in_flight)
{
	struct model_run *run = &world->run;
	uint32_t number = 0;

	if (sim_judge_does_nothing(command))
		return;
	assert_true(world->committed || in_flight);
	if (command->kind == SIM_SNAPSHOT && !in_flight)
		number = version_in(sent);
	run->model.sequence = world->committed;
	sim_judge_follow(world, command, exchange.out, number);
}

/* The command that may change something has been answered, or the power has failed. */
static void settle(struct sim_world *world, const struct sim_command *command,
		   enum sim_answer wanted, const struct osd_command *sent)
{
	struct model_run *run = &world->run;
	bool off = run->power && model_power_is_off(run->power);
	enum sim_answer got = off ? wanted : answer_of(sent);

	if (off) {
		if (wanted == SIM_GOOD)
			follow(world, command, sent, true);
		object_model_commit(&run->model);
		model_power_committed(run, 0, false);
		model_power_notice(run);
	}
	check_status(world, command, wanted, got);
	if (got == SIM_GOOD)
		follow(world, command, sent, false);
	if (got == SIM_GOOD)
		sim_security_follow(world);
	object_model_commit(&run->model);
	if (run->power)
		model_power_committed(run, got == SIM_GOOD ? 0 : -1, exchange.cdb.fua);
	run->commits += got == SIM_GOOD;
}

/* Sends it until it is not in the place of a unit attention. */
static bool send_and_be_told(struct sim_world *world, struct sim_session *session,
			     const struct sim_command *command, bool at_once,
			     struct osd_command *sent)
{
	for (int tries = 0; tries < 4; tries++) {
		*sent = command_for(world, command, session);
		if (!send(world, sent, at_once))
			return false;
		if (answer_of(sent) != SIM_TOLD)
			return true;
		assert_true(session->to_be_told);
		world->report->counts.attentions++;
	}
	fail_msg("more unit attentions than there are reasons for");
	return false;
}

static void read_only(struct sim_world *world, const struct sim_command *command,
		      const struct osd_command *sent)
{
	enum sim_answer wanted = wanted_of(world, command), got;

	model_power_notice(&world->run);
	got = answer_of(sent);
	check_status(world, command, wanted, got);
	if (got == SIM_GOOD || got == SIM_PAST_END)
		sim_judge_data(world, command, exchange.in, sent->data_in_length);
	if (command->kind == SIM_FLUSH && got == SIM_GOOD)
		model_power_flushed(&world->run);
	if (command->kind == SIM_TASKS && got == SIM_GOOD)
		response = exchange.in[4];
}

bool sim_command_execute(struct sim_world *world, struct sim_session *session,
			 const struct sim_command *command, bool at_once)
{
	struct model_run *run = &world->run;
	enum sim_answer wanted = wanted_of(world, command);
	bool changes = sim_judge_changes(command->kind);
	struct osd_command sent;

	model_run_see(run);
	if (command->kind == SIM_SNAPSHOT || command->kind == SIM_ROLLBACK) {
		if (!session->subscribed)
			subscribe(world, session);
		/* Where pages can't be read that may have failed. */
		if (!session->subscribed)
			wanted = SIM_REFUSED;
	}
	run->doing = changes ? MODEL_WRITING : MODEL_READING;
	if (command->kind == SIM_FLUSH)
		run->doing = MODEL_FLUSHING;
	if (changes) {
		object_model_begin(&run->model, 0, run->now_ms);
		model_power_committing(run);
	}
	lay_out(command);
	world->committed = 0;
	if (!send_and_be_told(world, session, command, at_once, &sent)) {
		if (changes)
			object_model_abort(&run->model);
		if (changes && model_power_is_watched(run))
			model_power_committed(run, -1, false);
		return false;
	}
	sim_security_check_answer(world, command, &exchange, &sent);
	expect_attentions(world, command);
	run->operations++;
	world->report->counts.commands++;
	if (changes)
		settle(world, command, wanted, &sent);
	else
		read_only(world, command, &sent);
	sim_security_replay(world, command, &exchange, &sent);
	return true;
}
