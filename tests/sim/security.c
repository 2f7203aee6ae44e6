/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Closes partitions, and signs what clients send. */
#include "tests/sim/security.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "common/bytes.h"
#include "tests/sim/commands.h"

enum {
	KEY_VERSION = 5,
	MANAGER_NEXUS = 1 << 30,
	GARBAGE = 0xA5,
	FOR_ALL = 0xFFFC,
	PAGE = 0x10000000
};

const struct osd_options sim_security_options = {
	.system_id = { 0xF1, 1, 2, 3 },
	.has_device_key = true,
	.device_key = { 0xC0, 1, 2, 3 },
};

/* A target that has just been opened knows again that nobody has sent a request before. */
#define AFTER_START_MS 601000

static uint32_t index_of(const struct sim_world *world, const struct sim_command *command)
{
	return (uint32_t)(command->partition - world->run.model.partitions);
}

/* ---- who gets in ---- */

enum sim_credential sim_security_draw(struct sim_world *world)
{
	if (!one_in(&world->run, 4))
		return SIM_GENUINE;
	return (enum sim_credential)model_run_below(&world->run, SIM_CREDENTIALS);
}

/* Commands of the root, which is open. */
static bool is_of_root(const struct sim_command *command)
{
	return command->kind == SIM_FLUSH || command->kind == SIM_TASKS ||
	       command->kind == SIM_CREATE_PARTITION;
}

/* What is shown for a partition that has this method: some kinds make no sense for each. */
static enum sim_credential shown(const struct sim_command *command, uint8_t method)
{
	enum sim_credential credential = command->credential;
	bool makes_sense = true;

	if (credential == SIM_WEAK)
		makes_sense = method > OSD_CAPKEY;
	else if (credential == SIM_CAPTURED) /* with others see sim_security_replay */
		makes_sense = method == OSD_CAPKEY;
	else if (credential > SIM_WEAK)
		makes_sense = method != OSD_NOSEC;
	return makes_sense ? credential : SIM_UNSIGNED;
}

bool sim_security_lets_in(const struct sim_world *world, const struct sim_command *command)
{
	const struct sim_guard *guard = &world->security.guards[index_of(world, command)];

	if (is_of_root(command) || !command->partition->now.self || guard->method == OSD_NOSEC)
		return true;
	return shown(command, guard->method) == SIM_GENUINE &&
	       (guard->has_keys || command->kind == SIM_REMOVE_PARTITION);
}

/* Whether it takes the key of a partition that is closed. */
static bool is_by_key(const struct sim_world *world, const struct sim_command *command)
{
	const struct sim_guard *guard = &world->security.guards[index_of(world, command)];

	return !is_of_root(command) && command->partition->now.self && guard->method != OSD_NOSEC &&
	       guard->has_keys;
}

/* ---- signing ---- */

static const uint8_t *secret_of(const struct sim_world *world, const struct sim_command *command)
{
	const struct sim_security *security = &world->security;
	uint32_t index = index_of(world, command);

	if (command->credential == SIM_FOREIGN)
		return security->guards[(index + 1) % MODEL_PARTITIONS].working.authentication;
	if (command->credential == SIM_STALE)
		return security->guards[index].former.authentication;
	if (command->kind == SIM_REMOVE_PARTITION)
		return security->root.authentication;
	return security->guards[index].working.authentication;
}

static enum osd_object_type type_of(const struct sim_command *command)
{
	switch (command->kind) {
	case SIM_LIST:
	case SIM_LIST_COLLECTIONS:
	case SIM_SNAPSHOT:
	case SIM_ROLLBACK:
	case SIM_REMOVE_PARTITION:
		return OSD_TYPE_PARTITION;
	case SIM_CREATE_COLLECTION:
	case SIM_REMOVE_COLLECTION:
		return OSD_TYPE_COLLECTION;
	default:
		return OSD_TYPE_USER_OBJECT;
	}
}

static struct osd_capability capability_for(const struct osd_cdb *cdb, enum osd_object_type type,
					    uint8_t method, uint64_t expires_ms)
{
	return (struct osd_capability){
		.format = cdb->version == OSD_1 ? OSD_CAPABILITY_OSD1 : OSD_CAPABILITY_OSD2,
		.key_version = KEY_VERSION,
		.algorithm = OSD_INTEGRITY_HMAC_SHA1,
		.method = method,
		.expires_ms = expires_ms,
		.object_type = (uint8_t)type,
		.permissions = FOR_ALL,
		.descriptor_type = osd_descriptor_type(cdb->version, type),
		.partition = cdb->partition,
		.object = cdb->object,
	};
}

static void encode(struct sim_exchange *exchange)
{
	assert_int_equal(osd_cdb_encode(&exchange->cdb, exchange->bytes, &exchange->bytes_length),
			 0);
}

/* ALLDATA: information behind Data-Out, and a place for the target's behind Data-In. */
static void add_integrity(struct sim_exchange *exchange, const uint8_t *key, const uint8_t *nonce)
{
	const struct osd_cdb *cdb = &exchange->cdb;
	const struct osd_security_layout *layout = osd_security_layout(cdb->version);
	const struct osd_integrity_lengths lengths = { exchange->data_length, cdb->set_data.length,
						       cdb->get_list.length };
	const struct iovec pieces[] = { { exchange->out, lengths.data },
					{ exchange->out + cdb->set_data.offset, lengths.sets },
					{ exchange->out + cdb->get_list.offset, lengths.gets } };
	uint32_t at;

	if (exchange->sent_in) {
		exchange->sent_in = osd_offset_encode(cdb->version, exchange->sent_in, &at) +
				    osd_data_in_integrity_bytes(cdb->version);
		put_be32(exchange->bytes + layout->data_in_offset, at);
	}
	if (!exchange->sent_out)
		return;
	exchange->sent_out = osd_offset_encode(cdb->version, exchange->sent_out, &at);
	put_be32(exchange->bytes + layout->data_out_offset, at);
	assert_int_equal(osd_data_out_integrity(cdb->version, key, nonce, &lengths, pieces, 3,
						exchange->out + exchange->sent_out),
			 0);
	exchange->sent_out += osd_data_out_integrity_bytes(cdb->version);
}

static void check_value_of(struct sim_world *world, uint64_t nexus, struct sim_exchange *exchange,
			   uint8_t method)
{
	static const uint8_t inquiry[6] = { 0x12, 1, 0xB1, 0, 64, 0 };
	enum osd_version version = exchange->cdb.version;
	uint8_t page[64], *value = exchange->bytes + osd_security_layout(version)->check_value;

	if (method != OSD_CAPKEY) {
		assert_int_equal(
			osd_request_check_value(version, exchange->key, exchange->bytes, value), 0);
		return;
	}
	assert_int_equal(osd_inquiry(world->device, nexus, inquiry, page, sizeof(page)),
			 4 + OSD_SECURITY_TOKEN_BYTES);
	assert_int_equal(osd_token_check_value(exchange->key, page + 4, value), 0);
}

static void sign(struct sim_world *world, uint64_t nexus, struct sim_exchange *exchange,
		 const struct osd_capability *capability, const uint8_t *secret)
{
	const struct osd_security_layout *layout = osd_security_layout(exchange->cdb.version);

	osd_capability_encode(exchange->cdb.version, capability, exchange->cdb.capability);
	assert_int_equal(osd_capability_key(exchange->cdb.version, secret, exchange->cdb.capability,
					    sim_security_options.system_id, exchange->key),
			 0);
	encode(exchange);
	put_be48(exchange->nonce, world->run.now_ms);
	put_be48(exchange->nonce + 6, ++world->security.nonces);
	memcpy(exchange->bytes + layout->nonce, exchange->nonce, OSD_NONCE_BYTES);
	put_be32(exchange->bytes + layout->data_in_offset, OSD_OFFSET_UNUSED);
	put_be32(exchange->bytes + layout->data_out_offset, OSD_OFFSET_UNUSED);
	if (capability->method == OSD_ALLDATA)
		add_integrity(exchange, exchange->key, exchange->nonce);
	check_value_of(world, nexus, exchange, capability->method);
	exchange->method = capability->method;
}

/* A bit of the capability, or of the check value. */
static void forge(struct sim_world *world, struct sim_exchange *exchange)
{
	const struct osd_security_layout *layout = osd_security_layout(exchange->cdb.version);
	uint64_t bytes = layout->capability_bytes + OSD_CHECK_VALUE_BYTES;
	uint64_t at = model_run_below(&world->run, bytes), of = OSD_FIELD_CAPABILITY_FORMAT + at;

	if (at >= layout->capability_bytes)
		of = layout->check_value + at - layout->capability_bytes;
	exchange->bytes[of] ^= (uint8_t)(1 << model_run_below(&world->run, 8));
}

void sim_security_encode(struct sim_world *world, const struct sim_session *session,
			 const struct sim_command *command, struct sim_exchange *exchange)
{
	const struct sim_guard *guard = &world->security.guards[index_of(world, command)];
	enum sim_credential credential = shown(command, guard->method);
	uint8_t method = guard->method ? guard->method : OSD_CMDRSP;
	struct osd_capability capability;

	exchange->sent_out = exchange->out_length;
	exchange->sent_in = exchange->in_length;
	exchange->method = OSD_NOSEC;
	memset(exchange->cdb.capability, 0, sizeof(exchange->cdb.capability));
	memset(exchange->in, GARBAGE, sizeof(exchange->in));
	if (!world->profile->secured || is_of_root(command) || credential == SIM_UNSIGNED) {
		encode(exchange);
		return;
	}
	capability = capability_for(&exchange->cdb, type_of(command),
				    method - (credential == SIM_WEAK),
				    credential == SIM_EXPIRED ? 1 : 0);
	if (credential == SIM_ELSEWHERE && exchange->cdb.object)
		capability.object ^= 1;
	else if (credential == SIM_ELSEWHERE)
		capability.partition ^= 1;
	sign(world, session->nexus + (credential == SIM_CAPTURED), exchange, &capability,
	     secret_of(world, command));
	if (credential == SIM_FORGED)
		forge(world, exchange);
}

/* ---- answers ---- */

static bool is_off(const struct sim_world *world)
{
	return world->run.power && model_power_is_off(world->run.power);
}

/* Of lengths that it says itself. */
static void check_integrity(const struct sim_exchange *exchange, struct osd_command *sent)
{
	const struct osd_cdb *cdb = &exchange->cdb;
	size_t bytes = osd_data_in_integrity_bytes(cdb->version);
	uint8_t *information = sent->data_in + sent->data_in_length - bytes, wanted[64];
	const struct osd_integrity_lengths lengths = { .data = get_be64(information),
						       .gets = get_be64(information + 8) };
	const struct iovec pieces[] = { { sent->data_in, lengths.data },
					{ sent->data_in + cdb->retrieved.offset, lengths.gets } };

	assert_true(lengths.data + lengths.gets <= exchange->in_length);
	assert_int_equal(osd_data_in_integrity(cdb->version, exchange->key, exchange->nonce,
					       &lengths, pieces, 2, wanted),
			 0);
	assert_memory_equal(information, wanted, bytes);
	sent->data_in_length = lengths.gets ? cdb->retrieved.offset + lengths.gets : lengths.data;
}

void sim_security_check_answer(struct sim_world *world, const struct sim_command *command,
			       const struct sim_exchange *exchange, struct osd_command *sent)
{
	if (!world->profile->secured || is_off(world))
		return;
	if (!sim_security_lets_in(world, command)) {
		world->report->counts.kept_out++;
		assert_int_not_equal(sent->status, SCSI_STATUS_GOOD);
		assert_int_equal(sent->data_in_length, 0);
		for (size_t at = 0; at < exchange->sent_in; at++)
			assert_int_equal(exchange->in[at], GARBAGE);
		return;
	}
	world->report->counts.let_in += is_by_key(world, command) &&
					sent->status == SCSI_STATUS_GOOD;
	if (exchange->method == OSD_ALLDATA && sent->data_in_length &&
	    shown(command, OSD_ALLDATA) == SIM_GENUINE)
		check_integrity(exchange, sent);
}

void sim_security_replay(struct sim_world *world, const struct sim_command *command,
			 struct sim_exchange *exchange, const struct osd_command *sent)
{
	struct osd_command again = *sent;
	struct osd_sense sense = { 0 };

	if (!world->profile->secured || is_off(world) || exchange->method < OSD_CMDRSP ||
	    sent->status != SCSI_STATUS_GOOD || command->kind == SIM_REMOVE_PARTITION ||
	    !world->security.guards[index_of(world, command)].method || !one_in(&world->run, 8))
		return;
	if (world->run.power)
		model_power_spare(&world->run);
	again.data_in = exchange->sent_in ? exchange->in : NULL;
	osd_execute(world->device, &again);
	assert_int_equal(again.status, SCSI_STATUS_CHECK_CONDITION);
	assert_int_equal(osd_sense_decode(again.sense, again.sense_length, &sense), 0);
	assert_int_equal(again.data_in_length, 0);
	if (sense.key == SENSE_UNIT_ATTENTION)
		return;
	assert_int_equal(sense.code, SENSE_NONCE_NOT_UNIQUE);
	world->report->counts.kept_out++;
}

void sim_security_follow(struct sim_world *world)
{
	for (uint32_t n = 0; n < MODEL_PARTITIONS; n++) {
		const struct model_object *self = world->run.model.partitions[n].now.self;
		struct sim_guard *guard = &world->security.guards[n];
		uint64_t created = self ? self->created_sequence : 0;

		if (guard->created == created)
			continue;
		*guard = (struct sim_guard){
			.created = created,
			.method = self ? world->security.default_method : OSD_NOSEC,
			.former = guard->has_keys ? guard->working : guard->former,
		};
	}
}

/* ---- the manager ---- */

static struct sim_exchange exchange;

/* False: there is no room. */
static bool manage(struct sim_world *world, const struct osd_capability *capability,
		   const uint8_t *secret)
{
	struct osd_command sent = { .status = SCSI_STATUS_BUSY };
	struct osd_sense sense = { .key = SENSE_UNIT_ATTENTION };

	for (int tries = 0; tries < 8 && sense.key == SENSE_UNIT_ATTENTION; tries++) {
		exchange.sent_out = exchange.out_length;
		if (capability)
			sign(world, MANAGER_NEXUS, &exchange, capability, secret);
		else
			encode(&exchange);
		sent = (struct osd_command){ .cdb = exchange.bytes,
					     .cdb_length = exchange.bytes_length,
					     .data_out = exchange.out,
					     .data_out_length = exchange.sent_out,
					     .nexus = MANAGER_NEXUS };
		osd_execute(world->device, &sent);
		/* Others are told what has changed. */
		for (int n = 0; n < SIM_SESSIONS; n++)
			world->sessions[n].to_be_told = true;
		if (sent.status == SCSI_STATUS_GOOD)
			return true;
		assert_int_equal(osd_sense_decode(sent.sense, sent.sense_length, &sense), 0);
	}
	if (sense.key != SENSE_DATA_PROTECT || sense.code != SENSE_QUOTA_ERROR)
		fail_msg("the manager's command %04x on partition 0x%llx: sense key %u, code %04x, "
			 "field %d",
			 exchange.cdb.action, (unsigned long long)exchange.cdb.partition, sense.key,
			 sense.code, sense.has_field ? (int)sense.field : -1);
	return false;
}

static bool set_key(struct sim_world *world, unsigned to_set, uint64_t partition,
		    const struct sim_keys *above, struct sim_keys *keys)
{
	struct osd_key_fields fields = { .key_version = to_set == OSD_SET_WORKING_KEY ? KEY_VERSION
										      : 0 };
	struct osd_capability capability;
	struct sim_keys fresh;

	put_le64(fields.seed, ++world->security.seeds);
	exchange.out_length = 0;
	exchange.cdb = (struct osd_cdb){ .version = OSD_2,
					 .action = OSD_SET_KEY,
					 .format = OSD_ATTRIBUTES_LIST,
					 .partition = partition,
					 .command_options = (uint8_t)to_set };
	osd_key_fields_encode(OSD_SET_KEY, &fields, exchange.cdb.key_bytes);
	capability = capability_for(&exchange.cdb, partition ? OSD_TYPE_PARTITION : OSD_TYPE_ROOT,
				    OSD_ALLDATA, 0);
	if (!manage(world, &capability, above->authentication))
		return false;
	assert_int_equal(osd_derive_keys(above->generation, fields.seed, sizeof(fields.seed),
					 fresh.authentication, fresh.generation),
			 0);
	*keys = fresh;
	return true;
}

static void set_default_method(struct sim_world *world, uint8_t method)
{
	struct osd_list_writer writer;

	exchange.cdb = (struct osd_cdb){ .version = OSD_2,
					 .action = OSD_SET_ATTRIBUTES,
					 .format = OSD_ATTRIBUTES_LIST };
	osd_list_begin(&writer, OSD_2, OSD_LIST_TO_SET, exchange.out, sizeof(exchange.out));
	assert_true(osd_list_add_value(&writer, OSD_ROOT_SECURITY,
				       OSD_SECURITY_PARTITION_DEFAULT_METHOD, &method, 1));
	exchange.out_length = osd_list_end(&writer);
	exchange.cdb.set_data = (struct osd_segment){ 0, (uint32_t)exchange.out_length };
	if (manage(world, NULL, NULL))
		world->security.default_method = method;
}

/* The same for a partition, which is modified by that. */
static bool set_key_of(struct sim_world *world, unsigned to_set, struct model_partition *partition,
		       const struct sim_keys *above, struct sim_keys *keys)
{
	const struct model_attribute none = { .page = PAGE };
	struct object_model *model = &world->run.model;
	bool done;

	object_model_begin(model, 0, world->run.now_ms);
	done = set_key(world, to_set, partition->id, above, keys);
	if (done) {
		model->sequence = world->committed;
		object_model_set_attribute(model, object_model_change(model, &partition->now, 0),
					   none);
	}
	object_model_commit(model);
	return done;
}

/* The first keys of a partition, or another working key. */
static void set_keys_of(struct sim_world *world, uint32_t index)
{
	struct sim_guard *guard = &world->security.guards[index];
	struct model_partition *partition = &world->run.model.partitions[index];
	struct sim_keys working;

	if (!partition->now.self)
		return;
	if (!guard->has_keys && !set_key_of(world, OSD_SET_PARTITION_KEY, partition,
					    &world->security.root, &guard->partition))
		return;
	if (!set_key_of(world, OSD_SET_WORKING_KEY, partition, &guard->partition, &working))
		return;
	if (guard->has_keys)
		guard->former = guard->working;
	guard->working = working;
	guard->has_keys = true;
}

static void begin(struct sim_world *world)
{
	struct sim_security *security = &world->security;

	assert_int_equal(osd_initial_master_keys(
				 sim_security_options.device_key, sim_security_options.system_id,
				 security->master.authentication, security->master.generation),
			 0);
	security->begun = set_key(world, OSD_SET_ROOT_KEY, 0, &security->master, &security->root);
	/* Partitions live long: so that the first ones are closed. */
	if (security->begun)
		set_default_method(world, (uint8_t)(1 + model_run_below(&world->run, OSD_ALLDATA)));
}

void sim_security_turn(struct sim_world *world)
{
	struct model_run *run = &world->run;

	if (!world->profile->secured)
		return;
	if (world->security.is_new)
		model_run_pass(run, AFTER_START_MS);
	world->security.is_new = false;
	sim_security_follow(world);
	if (world->security.begun && !one_in(run, 3))
		return;
	/* What the power leaves of that nobody here judges. */
	if (run->power)
		model_power_spare(run);
	if (!world->security.begun)
		begin(world);
	if (world->security.begun && one_in(run, 2))
		set_default_method(world, (uint8_t)model_run_below(run, OSD_ALLDATA + 1));
	if (world->security.begun)
		set_keys_of(world, (uint32_t)model_run_below(run, MODEL_PARTITIONS));
}
