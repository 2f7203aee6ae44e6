/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What Prometheus and the status page are told, made of answers of `status` that are made up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/facts.h"
#include "daemon/metrics.h"
#include "daemon/page.h"

static json_t *parse(const char *text)
{
	json_error_t wrong;
	json_t *status = json_loads(text, 0, &wrong);

	if (!status)
		fail_msg("%s", wrong.text);
	return status;
}

/* Two units of one device, the first of which has executed so many reads. */
static json_t *status_of(int reads)
{
	char text[512];

	snprintf(text, sizeof(text),
		 "{\"version\":\"1\",\"tgtd\":{},\"targets\":[],\"units\":["
		 "{\"lun\":7,\"type\":\"osd\",\"image\":\"/i\",\"reads\":%d,\"used_bytes\":11},"
		 "{\"lun\":8,\"type\":\"disk\",\"image\":\"/i\",\"reads\":1,\"used_bytes\":11}]}",
		 reads);
	return parse(text);
}

static void assert_told(const json_t *status, const char *line, bool is_told)
{
	char *text = metrics_text(status);

	assert_non_null(text);
	if ((strstr(text, line) != NULL) != is_told)
		fail_msg("'%s' is %s: %s", line, is_told ? "missing" : "there", text);
	free(text);
}

static void test_counters_are_those_of_the_unit(void **state)
{
	json_t *status = status_of(100);

	(void)state;
	assert_told(status, "muninn_unit_commands_total{lun=\"7\",kind=\"read\"} 100\n", true);
	assert_told(status, "muninn_unit_commands_total{lun=\"8\",kind=\"read\"} 1\n", true);
	/* A unit that does not answer has no zeros, which would be counters that begin again. */
	json_object_set_new(json_array_get(json_object_get(status, "units"), 0), "trouble",
			    json_string("it hangs"));
	assert_told(status, "muninn_unit_commands_total{lun=\"7\"", false);
	json_decref(status);
}

static void test_what_is_of_a_device_is_told_once(void **state)
{
	json_t *status = status_of(0);

	(void)state;
	assert_told(status, "muninn_device_used_bytes{device=\"lun7\"} 11\n", true);
	assert_told(status, "{device=\"lun8\"}", false);
	/* By the first unit that answers. */
	json_object_set_new(json_array_get(json_object_get(status, "units"), 0), "trouble",
			    json_string("it hangs"));
	assert_told(status, "muninn_device_used_bytes{device=\"lun8\"} 11\n", true);
	assert_told(status, "{device=\"lun7\"}", false);
	assert_told(status, "muninn_unit_up{lun=\"7\",type=\"osd\"} 0\n", true);
	/* A fact that it does not have is no zero. */
	assert_told(status, "muninn_device_index_bytes{", false);
	json_decref(status);
}

static void test_classes_of_latency_add_up_as_prometheus_wants_them(void **state)
{
	json_t *status = status_of(0), *unit = json_array_get(json_object_get(status, "units"), 0);
	struct latency latency = { 0 };

	(void)state;
	assert_false(facts_latency(unit, "latency_reads", &latency));
	assert_told(status, "_bucket{", false);
	json_object_set_new(unit, "latency_reads",
			    json_string("1500007 3 0 4 0 0 0 0 0 0 0 0 0 0 0 0 0 5"));
	assert_true(facts_latency(unit, "latency_reads", &latency));
	assert_told(status, "_bucket{lun=\"7\",kind=\"read\",le=\"5e-05\"} 3\n", true);
	assert_told(status, "_bucket{lun=\"7\",kind=\"read\",le=\"0.0001\"} 3\n", true);
	assert_told(status, "_bucket{lun=\"7\",kind=\"read\",le=\"10\"} 7\n", true);
	assert_told(status, "_bucket{lun=\"7\",kind=\"read\",le=\"+Inf\"} 12\n", true);
	assert_told(status, "_sum{lun=\"7\",kind=\"read\"} 1.500007\n", true);
	assert_told(status, "_count{lun=\"7\",kind=\"read\"} 12\n", true);
	/* Of a module of another version. */
	json_object_set_new(unit, "latency_reads", json_string("1500007 3 0 4"));
	assert_told(status, "_bucket{", false);
	json_decref(status);
}

static void test_a_command_is_in_the_first_class_that_is_long_enough(void **state)
{
	struct latency latency = { 0 };

	(void)state;
	for (int class = 0; class < LATENCY_LIMITS; class ++) {
		latency_count(&latency, latency_limits_us[class]);
		latency_count(&latency, latency_limits_us[class] + 1);
	}
	latency_count(&latency, 0);
	for (int class = 0; class < LATENCY_CLASSES; class ++)
		assert_int_equal(latency.count[class], class == LATENCY_LIMITS ? 1 : 2);
}

static void test_an_answer_that_is_missing_makes_a_text_all_the_same(void **state)
{
	char *page = page_text(NULL, NULL);

	(void)state;
	assert_told(NULL, "muninn_tgtd_up 0\n", true);
	assert_non_null(page);
	assert_non_null(strstr(page, "</html>"));
	free(page);
}

static void test_what_others_have_chosen_is_no_markup(void **state)
{
	json_t *status =
		parse("{\"version\":\"1\",\"units\":[{\"lun\":1,\"type\":\"osd\",\"trouble\":"
		      "\"<b>&\\\"\"}],\"troubles\":[{\"time\":\"t\",\"level\":\"warning\","
		      "\"line\":\"refused <script>\"}]}");
	char *page = page_text(status, NULL);

	(void)state;
	assert_non_null(page);
	assert_non_null(strstr(page, "<p>&lt;b&gt;&amp;&quot;</p>"));
	assert_non_null(strstr(page, "<li>t warning: refused &lt;script&gt;</li>"));
	assert_null(strstr(page, "<script"));
	free(page);
	json_decref(status);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counters_are_those_of_the_unit),
		cmocka_unit_test(test_what_is_of_a_device_is_told_once),
		cmocka_unit_test(test_classes_of_latency_add_up_as_prometheus_wants_them),
		cmocka_unit_test(test_a_command_is_in_the_first_class_that_is_long_enough),
		cmocka_unit_test(test_an_answer_that_is_missing_makes_a_text_all_the_same),
		cmocka_unit_test(test_what_others_have_chosen_is_no_markup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
