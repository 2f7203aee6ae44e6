/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What muninnctl shows of a long function's progress. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* It is part of the program and of no library. */
#include "client/ctl/progress.c" /* NOLINT(bugprone-suspicious-include) */

const char *ctl_format_size(uint64_t bytes, char text[CTL_SIZE_TEXT])
{
	snprintf(text, CTL_SIZE_TEXT, "%" PRIu64, bytes);
	return text;
}

static void tell(struct progress *progress, uint64_t permille)
{
	uint8_t items[64];
	struct osd_item_writer writer;

	osd_items_begin(&writer, items, sizeof(items));
	osd_item_add_number(&writer, OSD_ITEM_PROGRESS, permille);
	assert_int_equal(progress_items(progress, items, writer.length), 0);
}

static void test_progress_never_goes_back_though_the_target_may_have_more_to_do(void **state)
{
	static const struct {
		uint64_t told, shown;
	} steps[] = {
		{ 0, 0 },     { 333, 333 }, { 77, 333 },  { 332, 333 },
		{ 525, 525 }, { 262, 525 }, { 999, 999 }, { 1000, 1000 },
	};
	struct ctl_options options = { .quiet = true };
	struct ctl ctl = { .options = &options };
	struct progress progress;

	(void)state;
	progress_watch(&progress, &ctl, "versions");
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		tell(&progress, steps[i].told);
		assert_true(progress.permille == steps[i].shown);
	}
	tell(&progress, UINT64_MAX);
	assert_true(progress.permille == 1000);
	progress_end(&progress);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_progress_never_goes_back_though_the_target_may_have_more_to_do),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
