/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What keys are called: all that keys.h makes, and those that it never makes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/objects/keys.h"

static void expect(struct record_key key, const char *text)
{
	char told[KEY_TEXT];

	assert_string_equal(key_describe(&key, told), text);
}

static void test_each_key_has_a_name(void **state)
{
	(void)state;
	expect(key_of_data(3, 0x10004, 17), "partition 3, object 0x10004: data piece 17");
	expect(key_of_onode(3, 0x10004), "partition 3, object 0x10004: onode");
	expect(key_of_onode(3, 0), "partition 3: onode");
	expect(key_of_onode(0, 0), "root: onode");
	expect(key_of_onode(3, RECORD_ID_LASTING), "partition 3: lasting attributes");
	expect(key_of_onode_chunk(3, 0x10004, RECORD_EXTENTS_PIECE + 2),
	       "partition 3, object 0x10004: onode, chunk 2 of its extents");
	expect(key_of_onode_chunk(3, 0x10004, RECORD_ATTRIBUTES_PIECE),
	       "partition 3, object 0x10004: onode, chunk 0 of its attributes");
	expect(key_of_onode_chunk(3, RECORD_ID_LASTING, RECORD_ATTRIBUTES_PIECE + 1),
	       "partition 3: lasting attributes, chunk 1 of its attributes");
	expect(key_of_node(0, RECORD_ID_USER_OBJECTS, 5 << 7), "root: partitions, node 5");
	expect(key_of_node(3, RECORD_ID_USER_OBJECTS, 5 << 7 | 4),
	       "partition 3: user objects, node 5, operations 4");
	expect(key_of_node(3, RECORD_ID_COLLECTIONS, 0), "partition 3: collections, node 0");
	expect(key_of_node(3, 0x10001, 1 << 7), "partition 3, object 0x10001: members, node 1");
	expect(key_of_node(3, RECORD_ID_VERSION_SET, 0), "partition 3: kept versions, node 0");
	expect(key_of_node(0, RECORD_ID_VERSION_SET, 0),
	       "root: kept versions of the device, node 0");
	expect(key_of_node(3, RECORD_ID_CLONE_SET, 0), "partition 3: clones, node 0");
	expect(key_of_node(0, RECORD_ID_CLONE_SET, 0), "root: taken partition indices, node 0");
	expect(key_of_state(3), "partition 3: state");
	expect(key_of_state(0), "root: state");
	expect(key_of_history(3), "partition 3: what is kept of its history");
	expect(key_of_version(3, 9), "partition 3: version 9");
	expect(key_of_version(0, 9), "root: version of the device 9");
	expect(key_of_version_name(3, 0x12 * 8 + 1),
	       "partition 3: name of a version, hash 0x12, place 1");
	expect(key_of_table(RECORD_ID_TIMES, 4), "root: table of times, chunk 4");
	expect(key_of_table(RECORD_ID_HIDDEN, 4), "root: hidden intervals, chunk 4");
}

static void test_a_key_that_nobody_makes_is_told_by_its_parts(void **state)
{
	(void)state;
	expect(key_make(RECORD_CLASS_NODE, 3, 0x10004, 17),
	       "unknown: partition 3, identifier 0x10004, class 1, piece 0x11");
	expect(key_make(RECORD_CLASS_DATA, 3, 5, 17),
	       "unknown: partition 3, identifier 0x5, class 0, piece 0x11");
	expect(key_make(RECORD_CLASS_DATA, 3, 0x10004, UINT32_C(0x80000000)),
	       "unknown: partition 3, identifier 0x10004, class 0, piece 0x80000000");
	/* The class is not the one that follows from the rest. */
	expect(key_make(RECORD_CLASS_METADATA, 3, RECORD_ID_USER_OBJECTS, 0),
	       "unknown: partition 3, identifier 0x1, class 2, piece 0x0");
	expect(key_make(RECORD_CLASS_NODE, 3, RECORD_ID_STATE, 0),
	       "unknown: partition 3, identifier 0x4, class 1, piece 0x0");
	/* Only the root has this. */
	expect(key_make(RECORD_CLASS_HISTORY, 3, RECORD_ID_TIMES, 0),
	       "unknown: partition 3, identifier 0x24, class 3, piece 0x0");
	expect(key_make((enum record_class)7, 65535, UINT64_MAX, UINT32_MAX),
	       "unknown: partition 65535, identifier 0xffffffffffffffff, class 7, piece "
	       "0xffffffff");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_key_has_a_name),
		cmocka_unit_test(test_a_key_that_nobody_makes_is_told_by_its_parts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
