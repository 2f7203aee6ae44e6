/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The picture of watch on terminals of any size, and without one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* They are part of the program and of no library. */
#include "client/ctl/format.c"     /* NOLINT(bugprone-suspicious-include) */
#include "client/ctl/watch_draw.c" /* NOLINT(bugprone-suspicious-include) */

#define LINES 200
#define KIB   1024

struct scene {
	struct watch_picture picture;
	struct watch_line partitions[LINES], versions[LINES];
	char *text;
};

static int set_up(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));

	assert_non_null(scene);
	scene->picture = (struct watch_picture){ .partitions.lines = scene->partitions,
						 .versions.lines = scene->versions,
						 .used = 100 * KIB,
						 .capacity = 1000 * KIB,
						 .horizon_ms = 1000 };
	*state = scene;
	return 0;
}

static int tear_down(void **state)
{
	struct scene *scene = *state;

	free(scene->text);
	free(scene);
	return 0;
}

static void add_partition(struct scene *scene, uint64_t number, uint64_t used)
{
	struct watch_line *line = &scene->partitions[scene->picture.partitions.count++];

	*line = (struct watch_line){ .number = number, .used = used };
	snprintf(line->label, sizeof(line->label), "0x%" PRIx64, number);
}

static void add_version(struct scene *scene, uint64_t number, uint64_t used, const char *name)
{
	struct watch_line *line = &scene->versions[scene->picture.versions.count++];

	*line = (struct watch_line){ .time_ms = number * 1000, .used = used, .written = 10 * KIB };
	snprintf(line->label, sizeof(line->label), "%" PRIu64, number);
	snprintf(line->name, sizeof(line->name), "%s", name);
}

/* A device with so many of each; partition 0x10000 + n uses n KiB. */
static void fill(struct scene *scene, unsigned partitions, unsigned versions)
{
	scene->picture.is_device = true;
	for (unsigned n = 0; n < partitions; n++)
		add_partition(scene, 0x10000 + n, n * UINT64_C(1024));
	for (unsigned n = 0; n < versions; n++)
		add_version(scene, 32768 + n, 0, "of-the-device");
}

static const char *draw(struct scene *scene, size_t rows, size_t columns)
{
	size_t length;
	FILE *to;

	free(scene->text);
	scene->text = NULL;
	scene->picture.rows = rows;
	scene->picture.columns = columns;
	to = open_memstream(&scene->text, &length);
	assert_non_null(to);
	watch_draw(to, &scene->picture);
	fclose(to);
	return scene->text;
}

static bool shows(const struct scene *scene, const char *what)
{
	return strstr(scene->text, what) != NULL;
}

static size_t count_rows(const char *text)
{
	size_t rows = 0;

	for (; *text; text++)
		rows += *text == '\n';
	return rows;
}

/* Columns of the widest row; of what UTF-8 has more bytes for one, the first counts. */
static size_t widest_row(const char *text)
{
	size_t widest = 0, columns = 0;

	for (; *text; text++) {
		columns = *text == '\n' ? 0 : columns + (((uint8_t)*text & 0xC0) != 0x80);
		widest = columns > widest ? columns : widest;
	}
	return widest;
}

static void test_no_row_is_wider_and_no_more_are_drawn_than_the_terminal_has(void **state)
{
	struct scene *scene = *state;

	fill(scene, 60, 60);
	add_partition(scene, UINT64_C(0xFFFFFFFFFFFF), UINT64_C(1) << 60);
	add_version(scene, 61439, 0,
		    "a-name-that-is-as-long-as-names-may-be-and-so-on-and-on-and-on");
	for (int is_device = 0; is_device <= 1; is_device++)
		for (size_t columns = 1; columns <= 200; columns++)
			for (size_t rows = 10; rows <= 160; rows += 10) {
				scene->picture.is_device = is_device;
				draw(scene, rows, columns);
				assert_in_range(widest_row(scene->text), 1, columns);
				assert_in_range(count_rows(scene->text), 1, rows - 1);
			}
}

static void test_what_matters_most_stays_on_narrow_terminals(void **state)
{
	struct scene *scene = *state;

	fill(scene, 3, 3);
	draw(scene, 40, 100);
	assert_true(shows(scene, "0x10002") && shows(scene, "2.0 KiB") && shows(scene, "32770"));
	assert_true(shows(scene, "1970-01-01T09:06:10Z") && shows(scene, "+10.0 KiB"));
	assert_true(shows(scene, "of-the-device"));
	draw(scene, 40, 66);
	assert_true(shows(scene, "1970-01-01T09:06:10Z") && shows(scene, "+10.0 KiB"));
	assert_false(shows(scene, "of-the-device"));
	draw(scene, 40, 45);
	assert_true(shows(scene, "+10.0 KiB"));
	assert_false(shows(scene, "1970-01-01T09"));
	draw(scene, 40, 30);
	assert_true(shows(scene, "|=========|    2.0 KiB\n") && shows(scene, "32770"));
	draw(scene, 40, 20);
	assert_true(shows(scene, "0x10002    2.0 KiB\n"));
	assert_false(shows(scene, "|"));
}

static void test_without_a_terminal_everything_is_drawn(void **state)
{
	struct scene *scene = *state;
	char label[32];

	fill(scene, LINES, LINES);
	draw(scene, 0, 0);
	for (unsigned n = 0; n < LINES; n++) {
		snprintf(label, sizeof(label), "\n0x%x ", 0x10000 + n);
		assert_true(shows(scene, label));
		snprintf(label, sizeof(label), "\n  %u ", 32768 + n);
		assert_true(shows(scene, label));
	}
	assert_false(shows(scene, "..."));
}

static void test_partitions_that_use_least_are_counted_where_not_all_fit(void **state)
{
	struct scene *scene = *state;
	const char *large, *largest;

	scene->picture.is_device = true;
	add_partition(scene, 0x10000, 90 * KIB);
	for (unsigned n = 1; n < 50; n++)
		add_partition(scene, 0x10000 + n, KIB);
	add_partition(scene, 0x10100, 100 * KIB);
	draw(scene, 8, 80);
	large = strstr(scene->text, "0x10000");
	largest = strstr(scene->text, "0x10100");
	assert_true(large && largest && large < largest);
	assert_true(shows(scene, "...  49 more with 49.0 KiB\n"));
	/* And those that were not even kept. */
	scene->picture.partitions.left_out = 1000;
	scene->picture.partitions.left_out_used = 51 * KIB;
	draw(scene, 8, 80);
	assert_true(shows(scene, "...  1049 more with 100.0 KiB\n"));
	draw(scene, 0, 0);
	assert_true(shows(scene, "...  1000 more with 51.0 KiB\n"));
}

static void test_a_device_shows_its_newest_versions_below_its_partitions(void **state)
{
	struct scene *scene = *state;

	fill(scene, 50, 50);
	draw(scene, 24, 80);
	assert_true(strstr(scene->text, "0x10031") < strstr(scene->text, "Versions of the device"));
	assert_true(shows(scene, "32817 ") && shows(scene, "more before these"));
	assert_false(shows(scene, "32768 "));
	/* What the one does not need the other has. */
	scene->picture.partitions.count = 0;
	add_partition(scene, 0x10000, KIB);
	add_partition(scene, 0x20000, KIB);
	draw(scene, 24, 80);
	assert_true(shows(scene, "0x10000") && shows(scene, "0x20000"));
	assert_false(shows(scene, "more with"));
	assert_in_range(count_rows(scene->text), 22, 23);
	scene->picture.versions.count = 0;
	draw(scene, 24, 80);
	assert_false(shows(scene, "Versions"));
}

static void test_a_partition_shows_its_newest_versions(void **state)
{
	struct scene *scene = *state;

	for (unsigned n = 1; n <= 50; n++)
		add_version(scene, n, n * UINT64_C(1024), "each-day");
	draw(scene, 24, 80);
	assert_true(shows(scene, "\n     50  1970-01-01T00:00:50Z |"));
	assert_true(shows(scene, "...  32 more before these\n"));
	assert_false(shows(scene, "\n     32 "));
	assert_true(shows(scene, "Every moment since 1970-01-01T00:00:01.000Z can be reached."));
}

static void test_long_names_end_behind_a_whole_character(void **state)
{
	struct scene *scene = *state;

	for (size_t columns = 60; columns < 120; columns++) {
		scene->picture.versions.count = 0;
		add_version(scene, 1, KIB, "äöüäöüäöüäöüäöüäöü");
		draw(scene, 24, columns);
		for (const char *at = scene->text; (at = strstr(at, "\xC3")) != NULL; at++)
			assert_true(at[1] != '\n');
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_no_row_is_wider_and_no_more_are_drawn_than_the_terminal_has, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(test_what_matters_most_stays_on_narrow_terminals,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_without_a_terminal_everything_is_drawn, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(
			test_partitions_that_use_least_are_counted_where_not_all_fit, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_device_shows_its_newest_versions_below_its_partitions, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(test_a_partition_shows_its_newest_versions, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_long_names_end_behind_a_whole_character,
						set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
