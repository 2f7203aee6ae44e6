/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What engine/engine.h promises, in plain arrays: partitions, objects, data, attributes, times,
 * versions. A few small objects only. Objects are shared between states (versions, the state to go
 * back to) and copied when they change.
 */
#ifndef MUNINN_TESTS_ENGINE_OBJECT_MODEL_H
#define MUNINN_TESTS_ENGINE_OBJECT_MODEL_H

#include "engine/engine.h"
#include "engine/history.h"
#include "tests/engine/by_address.h"
#include "tests/engine/model/model_clock.h"

enum {
	MODEL_PARTITIONS = 3,
	MODEL_OBJECTS = 40, /* of a partition */
	MODEL_PIECES = 24,  /* of an object */
	MODEL_ATTRIBUTES = 12,
	MODEL_VERSIONS = 10, /* of a partition, that are looked at */
	MODEL_MOMENTS = 8,   /* of the device, versions of it among them */
	MODEL_GRAVES = 256,  /* IDs whose removed objects are remembered */
	MODEL_OLDER = 6,     /* modifications of an object that are remembered, at least */
	MODEL_LEFT = 32,     /* partitions that are gone and may come back */
	MODEL_NOTES = 8,     /* accesses that are remembered until they are stored for certain */
};

struct model_attribute {
	uint32_t page, number, length;
	uint8_t fill; /* byte i is fill + i */
};

struct model_object {
	uint32_t users; /* states that share it */
	enum engine_type type;
	uint64_t id;
	uint64_t length, modified_sequence;
	uint64_t times_ms[ENGINE_TIMES];
	uint64_t stable_ms[ENGINE_TIMES]; /* what a crash may fall back to */
	bool stable_unknown; /* but of accessed times it is not known: something went back */
	/* Accesses that have been noted since, each of which a crash may have left stored. */
	struct model_note {
		enum engine_time which;
		uint64_t ms;
	} notes[MODEL_NOTES];
	uint32_t note_count; /* when there are more, any time is taken */
	uint32_t attribute_count;
	struct model_attribute attributes[MODEL_ATTRIBUTES]; /* in order */
	bool live[MODEL_PIECES];
	uint8_t *data; /* MODEL_PIECES pages; NULL: all zeros */
	/*
	 * Its state before its last modification, which may be that it did not exist; NULL: not
	 * remembered.
	 */
	struct model_object *older;
	bool removed; /* stands for an object that does not exist */
	uint64_t created_sequence;
};

/* Removed objects, by ID from ENGINE_FIRST_ID. States share it, and copy it when one changes. */
struct model_graves {
	uint32_t users;
	struct model_object *of[MODEL_GRAVES];
};

/* A partition at one moment. */
struct model_state {
	uint32_t version;
	uint32_t count;
	bool unlogged; /* as engine_partition_unlog makes it */
	struct model_object
		*self; /* attributes and times of the partition; NULL: it does not exist */
	struct model_object *objects[MODEL_OBJECTS]; /* by ascending ID */
	struct model_graves *graves;                 /* NULL: none */
	/* No part of history: it is as now. */
	bool particular; /* has a policy of its own */
	struct engine_retention policy;
	uint64_t kept_from; /* while a lock keeps all of it: where its history begins; 0: not
			       learned */
};

/* What a partition that is gone has again when it comes back. */
struct model_left {
	uint32_t users; /* models that share it */
	/* Which one it is: one transaction may create several. */
	uint64_t id, created_sequence;
	bool particular;
	struct engine_retention policy;
	uint32_t version; /* the number of its next one */
	struct model_state versions[MODEL_VERSIONS];
	uint32_t numbers[MODEL_VERSIONS];
	uint32_t version_count;
};

struct model_partition {
	uint64_t id;
	struct model_state now, before; /* before: as of the beginning of the transaction */
	/* The versions that ended last. */
	struct model_state versions[MODEL_VERSIONS];
	uint32_t numbers[MODEL_VERSIONS];
	uint32_t version_count, version_count_before;
	/* Of the commands that set a policy "none" of its own first and last; 0: none did. */
	uint64_t none_first, none_last;
	/* Of the one that was there when the transaction began, if it goes; otherwise 0. */
	uint32_t version_left, version_count_left;
	bool came_back; /* once, and is that one still */
};

/* Everything at a moment. */
struct model_moment {
	uint64_t sequence, ms; /* 0: not in use */
	uint32_t version;      /* of the device; 0: just a moment */
	struct model_state states[MODEL_PARTITIONS];
};

/* page_bytes of the engine that the model describes. */
struct object_model {
	uint32_t page_bytes;
	uint64_t sequence, time_ms; /* of the open transaction */
	bool bypass;
	bool went_back;                 /* in the open transaction */
	struct engine_retention policy; /* of the device */
	uint64_t locked_until_ms;       /* the latest lock that ever was, in device time */
	struct model_clock clock;
	struct model_partition partitions[MODEL_PARTITIONS];
	struct model_moment moments[MODEL_MOMENTS];
	struct model_left *left[MODEL_LEFT]; /* NULL: a free place */
};

void object_model_init(struct object_model *model, uint32_t page_bytes);
void object_model_clear(struct object_model *model);

/*
 * `to` becomes a copy, which shares the objects. It must hold nothing before: a model that is all
 * zeros, or cleared.
 */
void object_model_copy(struct object_model *to, const struct object_model *from);

void object_model_begin(struct object_model *model, uint64_t sequence, uint64_t time_ms);
void object_model_commit(struct object_model *model);
void object_model_abort(struct object_model *model);

struct model_object *object_model_find(const struct model_state *state, uint64_t id);
uint64_t object_model_used_bytes(const struct object_model *model,
				 const struct model_object *object);
uint64_t object_model_highest(const struct model_state *state);

/* Changes. All of them are allowed; the caller has checked. */
void object_model_partition_create(struct object_model *model, struct model_partition *partition);
void object_model_partition_remove(struct object_model *model, struct model_partition *partition);
/*
 * Version `number` is the partition as it was when the transaction began; the next number is
 * expected to follow.
 */
void object_model_snapshot(struct model_partition *partition, uint32_t number);
void object_model_create(struct object_model *model, struct model_state *state,
			 enum engine_type type, uint64_t id);
void object_model_remove(struct object_model *model, struct model_state *state, uint64_t id);

/* ---- history ---- */

/* Remembers the present as a moment, in place of another one. */
struct model_moment *object_model_note_moment(struct object_model *model, uint32_t slot,
					      uint64_t sequence, uint64_t ms, uint32_t version);

/* Whether it is the same partition in both, not one that was made again. */
bool object_model_is_same(const struct model_state *a, const struct model_state *b);

/* The partition is again as in `then`; numbers of versions go on. */
void object_model_go_back(struct object_model *model, struct model_partition *partition,
			  const struct model_state *then);

/* The user object `id` is again as `then`, which may be removed. */
void object_model_restore(struct object_model *model, struct model_partition *partition,
			  uint64_t id, struct model_object *then);

/* The partition has the objects of `source`; `anew`: it is made by this. */
void object_model_clone(struct object_model *model, struct model_partition *partition,
			const struct model_state *source, bool anew);

void object_model_drop_version(struct model_partition *partition, uint32_t index);

/* The object as it is, or the note that it is not; NULL: not remembered. */
struct model_object *object_model_last(const struct model_state *state, uint64_t id);

/* The object for changing: not shared any more. `id` 0 = the partition itself. */
struct model_object *object_model_change(struct object_model *model, struct model_state *state,
					 uint64_t id);

/* Its times are stored as they are. */
void object_model_settled(struct model_object *object);

/*
 * It was accessed, which is stored at some time; whether a crash may leave `ms` of what is known.
 */
void object_model_accessed(struct model_object *object, enum engine_time which, uint64_t ms);
bool object_model_may_be_left(const struct model_object *object, enum engine_time which,
			      uint64_t ms);

void object_model_write(struct object_model *model, struct model_object *object, uint64_t offset,
			const void *data, uint64_t length);
/*
 * Whether writing there may put data alone, in an unlogged partition; the same without a
 * modification.
 */
bool object_model_may_overwrite(const struct object_model *model, const struct model_object *object,
				uint64_t offset, uint64_t length);
void object_model_overwrite(struct object_model *model, struct model_object *object,
			    uint64_t offset, const void *data, uint64_t length);
void object_model_truncate(struct object_model *model, struct model_object *object,
			   uint64_t length);
void object_model_clear_range(struct object_model *model, struct model_object *object,
			      uint64_t offset, uint64_t length);
void object_model_punch(struct object_model *model, struct model_object *object, uint64_t offset,
			uint64_t length);

/* Index of the first attribute at or behind (page, number). */
uint32_t object_model_attribute(const struct model_object *object, uint32_t page, uint32_t number);

/* The object has data and attributes as `then` again, by a modification of both. */
void object_model_copy_content(struct object_model *model, struct model_object *object,
			       const struct model_object *then);

/* Sets or with length 0 removes. false: the model has no room. */
bool object_model_set_attribute(struct object_model *model, struct model_object *object,
				struct model_attribute attribute);

#endif
