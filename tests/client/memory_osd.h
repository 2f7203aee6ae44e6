/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * An OSD in memory for the loopback target: only the commands that the client sends, OSD-2, without
 * timestamps. It can be made to die, or to run full, at a chosen command.
 */
#ifndef MUNINN_TESTS_CLIENT_MEMORY_OSD_H
#define MUNINN_TESTS_CLIENT_MEMORY_OSD_H

#include "tests/client/loopback.h"

struct memory_attribute {
	uint32_t page, number;
	uint8_t *value;
	uint32_t length;
};

#define MEMORY_ATTRIBUTES_MAX 32

struct memory_object {
	uint64_t partition, id; /* id 0: the partition itself */
	uint8_t *data;
	uint64_t length;
	struct memory_attribute attributes[MEMORY_ATTRIBUTES_MAX];
	size_t attribute_count;
};

struct memory_osd {
	struct memory_object **objects; /* by partition and ID */
	size_t count, capacity;
	uint64_t commands; /* executed so far */
	uint64_t dies_at;  /* this command is not answered and the connection closed; 0 = never */
	bool executes_the_last;   /* … but it is carried out */
	uint64_t objects_max;     /* 0 = no limit; otherwise CREATEs fail with a quota error */
	uint64_t unreadable_from; /* READs from this byte on are refused as wrong; 0 = none */
	uint64_t damaged_id;      /* READs of this object end with a medium error; 0 = none */
	size_t list_ids_max;      /* IDs in one LIST answer; 0 = as many as there is space for */
	bool lists_ids_alone;     /* LIST takes no notice of LIST_ATTR */
	bool lists_no_values;     /* LIST with attributes brings none */
	uint64_t thief_every; /* so often somebody else takes the ID behind one just created; 0 =
				 never */
};

void memory_osd_free(struct memory_osd *osd);
/* The loopback_execute of it. */
void memory_osd_execute(void *osd, struct loopback_command *command);

/* NULL: not there. */
struct memory_object *memory_osd_find(struct memory_osd *osd, uint64_t partition, uint64_t id);
const struct memory_attribute *memory_osd_attribute(const struct memory_object *object,
						    uint32_t page, uint32_t number);
/* Objects in a partition. */
size_t memory_osd_count(const struct memory_osd *osd, uint64_t partition);

#endif
