/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Object IDs in flat and packed partitions. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "wire/layout.h"

#define ID(identifier, version, page) \
	((uint64_t)(identifier) << 32 | (uint64_t)(uint16_t)(version) << 16 | (page))

static void test_packed_ids_are_identifier_version_and_first_page(void **state)
{
	struct osd_object_id id;

	(void)state;
	assert_int_equal(osd_object_id_decode(OSD_LAYOUT_PACKED, UINT64_C(0x0000000500030002), &id),
			 0);
	assert_true(id.object == 0x10004 && id.version == 3 && id.ago == 0 && id.page == 2);
	assert_int_equal(osd_object_id_decode(OSD_LAYOUT_PACKED, UINT64_C(0xFFFFFFFFFFFE0000), &id),
			 0);
	assert_true(id.object == UINT64_C(0x10000FFFE) && id.version == 0 && id.ago == 2 &&
		    id.page == 0);
	assert_int_equal(osd_object_id_decode(OSD_LAYOUT_PACKED, ID(1, INT16_MIN, 0xFFFF), &id), 0);
	assert_true(id.object == OSD_FIRST_ID && id.ago == 32768 && id.page == 0xFFFF);
	assert_int_equal(osd_object_id_decode(OSD_LAYOUT_PACKED, ID(0, 1, 0), &id), -EINVAL);
	assert_int_equal(osd_object_id_decode(OSD_LAYOUT_PACKED, 0, &id), 0);
	assert_true(id.object == 0);
	assert_true(osd_object_id_encode(OSD_LAYOUT_PACKED, 0x10004) == ID(5, 0, 0));
	assert_true(osd_object_id_encode(OSD_LAYOUT_FLAT, 0x10004) == 0x10004);
}

static void test_the_last_object_of_a_packed_partition_has_the_highest_identifier(void **state)
{
	struct osd_object_id id;

	(void)state;
	assert_true(osd_object_id_encode(OSD_LAYOUT_PACKED, OSD_FIRST_ID) == ID(1, 0, 0));
	assert_true(osd_object_id_encode(OSD_LAYOUT_PACKED, OSD_PACKED_OBJECT_MAX) ==
		    ID(UINT32_MAX, 0, 0));
	assert_int_equal(osd_object_id_decode(OSD_LAYOUT_PACKED, ID(UINT32_MAX, 0, 0), &id), 0);
	assert_true(id.object == OSD_PACKED_OBJECT_MAX);
}

static void test_flat_ids_are_taken_as_they_are(void **state)
{
	struct osd_object_id id;

	(void)state;
	assert_int_equal(osd_object_id_decode(OSD_LAYOUT_FLAT, UINT64_MAX, &id), 0);
	assert_true(id.object == UINT64_MAX && id.version == 0 && id.ago == 0 && id.page == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_packed_ids_are_identifier_version_and_first_page),
		cmocka_unit_test(
			test_the_last_object_of_a_packed_partition_has_the_highest_identifier),
		cmocka_unit_test(test_flat_ids_are_taken_as_they_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
