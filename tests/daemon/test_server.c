/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Targets of a tgtd that is played here: what is left of one that tgtd does not take whole. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/config.h"
#include "daemon/server.h"
#include "daemon/tgt_control.h"

/* The targets that tgtd has; which offer it refuses, 0: none. */
static bool exists[8];
static unsigned int offers, refused_offer;

int __wrap_tgt_target_create(struct tgtd *tgtd, unsigned int target, const char *name,
			     struct error_text *error);
int __wrap_tgt_target_offer(struct tgtd *tgtd, unsigned int target, const char *parameter,
			    struct error_text *error);
int __wrap_tgt_target_delete(struct tgtd *tgtd, unsigned int target, struct error_text *error);

int __wrap_tgt_target_create(struct tgtd *tgtd, unsigned int target, const char *name,
			     struct error_text *error)
{
	(void)tgtd;
	(void)name;
	if (exists[target])
		return error_set(error, -EEXIST, "target %u is there already", target);
	exists[target] = true;
	return 0;
}

int __wrap_tgt_target_offer(struct tgtd *tgtd, unsigned int target, const char *parameter,
			    struct error_text *error)
{
	(void)tgtd;
	assert_true(exists[target]);
	if (++offers != refused_offer)
		return 0;
	return error_set(error, -EINVAL, "%s: refused", parameter);
}

int __wrap_tgt_target_delete(struct tgtd *tgtd, unsigned int target, struct error_text *error)
{
	(void)tgtd;
	(void)error;
	assert_true(exists[target]);
	exists[target] = false;
	return 0;
}

static void test_a_target_whose_offers_are_refused_is_gone_and_can_be_made_again(void **state)
{
	static struct config config;
	static struct server server = { .config = &config };
	struct error_text error = { "" };

	(void)state;
	config.target_count = 2;
	strcpy(config.targets[0].name, "iqn.x:a");
	strcpy(config.targets[1].name, "iqn.x:b");
	assert_int_equal(server_create_target(&server, &config.targets[0], &error), 0);
	assert_int_equal(config.targets[0].id, 1);
	for (unsigned int each = 1; each <= 3; each++) {
		offers = 0;
		refused_offer = each;
		error.text[0] = '\0';
		assert_int_equal(server_create_target(&server, &config.targets[1], &error),
				 -EINVAL);
		assert_non_null(strstr(error.text, ": refused"));
		assert_int_equal(config.targets[1].id, 0);
		assert_false(exists[2]);
	}
	refused_offer = 0;
	assert_int_equal(server_create_target(&server, &config.targets[1], &error), 0);
	assert_int_equal(config.targets[1].id, 2);
	assert_true(exists[1] && exists[2]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_a_target_whose_offers_are_refused_is_gone_and_can_be_made_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
