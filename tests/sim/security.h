/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Partitions that are closed, who may get in, and what clients sign with. Each new partition has
 * the method that the root gives it. A manager sets its keys some time later, and others after
 * that. The root itself is open, so whoever has logged in creates partitions.
 */
#ifndef MUNINN_TESTS_SIM_SECURITY_H
#define MUNINN_TESTS_SIM_SECURITY_H

#include "osd/osd.h"
#include "tests/engine/object_model.h"
#include "wire/security.h"

struct sim_world;
struct sim_session;
struct sim_command;

/* What a client shows. All but the first must not get it into a partition that is closed. */
enum sim_credential {
	SIM_GENUINE,
	SIM_UNSIGNED,
	SIM_FOREIGN,   /* by a key of another partition */
	SIM_STALE,     /* by a key that the manager has replaced, or of who had the number before */
	SIM_FORGED,    /* a bit of it was changed */
	SIM_WEAK,      /* for a weaker method than the partition's */
	SIM_ELSEWHERE, /* for another object */
	SIM_EXPIRED,
	SIM_CAPTURED, /* what another session has sent */
	SIM_CREDENTIALS
};

struct sim_keys {
	uint8_t authentication[OSD_KEY_BYTES], generation[OSD_KEY_BYTES];
};

/* A partition as the manager knows it. */
struct sim_guard {
	uint64_t created; /* by which command; 0: it is not there */
	uint8_t method;
	bool has_keys;
	struct sim_keys partition, working, former;
};

struct sim_security {
	struct sim_guard guards[MODEL_PARTITIONS];
	struct sim_keys master, root;
	uint8_t default_method; /* of new partitions */
	uint8_t system_id[OSD_SYSTEM_ID_BYTES];
	uint64_t nonces, seeds; /* made so far */
	bool is_new;            /* the target has just been opened */
	bool begun;             /* it has set the root's key */
};

/* What goes to the target, and what comes back; one command at a time. */
struct sim_exchange {
	struct osd_cdb cdb;
	uint8_t bytes[OSD_CDB_BYTES_MAX];
	size_t bytes_length;
	uint8_t out[32768], in[32768];
	size_t out_length, in_length;
	size_t data_length;       /* of Data-Out, in front of lists */
	size_t sent_out, sent_in; /* lengths with what signing adds */
	uint8_t method;           /* that it is signed for; OSD_NOSEC: it is not */
	uint8_t key[OSD_KEY_BYTES], nonce[OSD_NONCE_BYTES];
};

/* How a target with keys is opened. */
extern const struct osd_options sim_security_options;

/* Before the commands of a turn: what the manager does. */
void sim_security_turn(struct sim_world *world);

/* Draws what a client shows. */
enum sim_credential sim_security_draw(struct sim_world *world);

/* Must the target do what the command asks for, as far as security goes? */
bool sim_security_lets_in(const struct sim_world *world, const struct sim_command *command);

/* Encodes the CDB, and signs it. Data-Out and Data-In have room for what is added. */
void sim_security_encode(struct sim_world *world, const struct sim_session *session,
			 const struct sim_command *command, struct sim_exchange *exchange);

/*
 * Checks what is behind the data of an answer, and leaves it out of `sent`. What was refused must
 * not show anything.
 */
void sim_security_check_answer(struct sim_world *world, const struct sim_command *command,
			       const struct sim_exchange *exchange, struct osd_command *sent);

/* Sometimes sends once more what has just been sent: it must be refused. */
void sim_security_replay(struct sim_world *world, const struct sim_command *command,
			 struct sim_exchange *exchange, const struct osd_command *sent);

/* Partitions may have come and gone. */
void sim_security_follow(struct sim_world *world);

#endif
