/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Security and the memory that it works in: a request whose sums can't be computed is refused as
 * one to be sent again, and no key stays behind where one was used.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include "common/bytes.h"
#include "osd/security_nonces.h"
#include "tests/osd/withdrawals.h"

#define M (&secured_manager)

/* ---- sums that can't be computed ---- */

/* The sum after so many more that OpenSSL has no memory for; negative: none. */
static int sums_left = -1;
static bool has_failed;

/* In place of OpenSSL's, which each sum begins with. */
EVP_MAC_CTX *EVP_MAC_CTX_dup(const EVP_MAC_CTX *context)
{
	EVP_MAC_CTX *(*duplicate)(const EVP_MAC_CTX *) = NULL;

	if (sums_left >= 0 && sums_left-- == 0) {
		has_failed = true;
		return NULL;
	}
	*(void **)&duplicate = dlsym(RTLD_NEXT, "EVP_MAC_CTX_dup");
	return duplicate(context);
}

static void execute(struct unit *unit, const struct encoded_call *encoded)
{
	unit_execute(unit, encoded->cdb, encoded->cdb_length, encoded->out, encoded->out_length,
		     encoded->in_capacity);
}

/* True: the command computes as many sums as that. */
static bool is_safe_without_sum(struct unit *unit, uint8_t method, int number)
{
	struct signed_call call = signed_write(unit, method, "again");
	uint64_t before = contents_of(unit);
	struct encoded_call encoded;

	signed_encode(unit, &call, &encoded);
	has_failed = false;
	sums_left = number;
	execute(unit, &encoded);
	sums_left = -1;
	if (unit->command.status != SCSI_STATUS_GOOD) {
		assert_true(has_failed);
		assert_int_equal(unit->command.status, SCSI_STATUS_BUSY);
		assert_int_equal(contents_of(unit), before);
		/* The same bytes again are no replay. */
		execute(unit, &encoded);
	}
	expect_good(unit);
	free(encoded.out);
	return has_failed;
}

static void test_a_request_whose_sums_cannot_be_computed_may_be_sent_again(void **state)
{
	struct unit *unit = *state;

	for (size_t i = 0; i < SECURED_METHODS; i++) {
		int number = 0;

		secured_close(unit, secured_methods[i]);
		while (is_safe_without_sum(unit, secured_methods[i], number))
			number++;
		/* Its key's and its own, at least. */
		assert_true(number >= 2);
		secured_reopen(unit, secured_methods[i]);
	}
}

/* Nor is it executed as if nobody had signed it. */
static void test_the_same_holds_where_nobody_has_to_sign(void **state)
{
	for (size_t i = 0; i < SECURED_METHODS; i++) {
		int number = 0;

		while (is_safe_without_sum(*state, secured_methods[i], number))
			number++;
		assert_true(number >= 2);
	}
}

static void test_a_token_that_cannot_be_computed_is_not_shown(void **state)
{
	const uint8_t cdb[6] = { 0x12, 1, 0xB1, 0, 255 };
	struct unit *unit = *state;
	uint8_t data[255];

	assert_int_equal(osd_inquiry(unit->device, 7, cdb, data, sizeof(data)),
			 4 + OSD_SECURITY_TOKEN_BYTES);
	sums_left = 0;
	assert_int_equal(osd_inquiry(unit->device, 7, cdb, data, sizeof(data)), 4);
	sums_left = -1;
	assert_int_equal(data[3], 0);
}

/* ---- keys that were used ---- */

enum { SENDERS = 8 };

static uint8_t sender_keys[SENDERS][OSD_KEY_BYTES];
static unsigned keys_wiped; /* of them */

/* In place of OpenSSL's, by which memory with keys is wiped and given back. */
void CRYPTO_clear_free(void *memory, size_t bytes, const char *file, int line)
{
	void (*clear_free)(void *, size_t, const char *, int) = NULL;

	for (unsigned i = 0; memory && i < SENDERS; i++)
		keys_wiped += memmem(memory, bytes, sender_keys[i], OSD_KEY_BYTES) != NULL;
	*(void **)&clear_free = dlsym(RTLD_NEXT, "CRYPTO_clear_free");
	clear_free(memory, bytes, file, line);
}

/* Whoever has a capability key may do what its capability says. */
static void test_the_keys_of_senders_are_wiped_with_the_lists_of_their_nonces(void **state)
{
	const uint8_t nonce[OSD_NONCE_BYTES] = { 0, 0, 0, 0, 0, 1 };
	struct osd_nonces *nonces;

	(void)state;
	assert_int_equal(osd_nonces_create((size_t)2 * SENDERS, 0, UINT64_MAX, &nonces), 0);
	for (unsigned i = 0; i < SENDERS; i++) {
		const struct osd_nonce_owner owner = { .partition = P, .key = sender_keys[i] };

		memset(sender_keys[i], 0xA0 + (int)i, OSD_KEY_BYTES);
		assert_int_equal(osd_nonces_take(nonces, &owner, nonce, 0, 1), 0);
	}
	keys_wiped = 0;
	osd_nonces_destroy(nonces);
	assert_int_equal(keys_wiped, SENDERS);
}

/* NULL, or a capability key that wiped memory is searched for. */
static const uint8_t *key_to_wipe;
static unsigned copies_wiped;

/* Or of OpenSSL itself, which wipes copies of its own? The target may be in a library, too. */
static bool is_of_the_target(const void *code)
{
	Dl_info target, there;

	return dladdr((const void *)(uintptr_t)osd_execute, &target) && dladdr(code, &there) &&
	       target.dli_fbase == there.dli_fbase;
}

/* In place of OpenSSL's. */
void OPENSSL_cleanse(void *memory, size_t bytes)
{
	/* Found once: looking for it would cover what is left on the stack below. */
	static void (*cleanse)(void *, size_t);

	copies_wiped += key_to_wipe && memmem(memory, bytes, key_to_wipe, OSD_KEY_BYTES) &&
			is_of_the_target(__builtin_return_address(0));
	if (!cleanse)
		*(void **)&cleanse = dlsym(RTLD_NEXT, "OPENSSL_cleanse");
	cleanse(memory, bytes);
}

/* How many copies of its key a command wipes that succeeds. */
static unsigned count_wiped(struct unit *unit, struct signed_call call,
			    const struct osd_capability *capability)
{
	struct encoded_call encoded;
	uint8_t key[OSD_KEY_BYTES];

	signed_encode(unit, &call, &encoded);
	capability_key(unit_version, capability ? capability : &call.capability, call.secret, key);
	copies_wiped = 0;
	key_to_wipe = key;
	execute(unit, &encoded);
	key_to_wipe = NULL;
	free(encoded.out);
	expect_good(unit);
	return copies_wiped;
}

/*
 * The next frame on the stack may cover a copy before a command ends, so that
 * test_no_key_stays_on_the_stack does not miss what wipes it. But on another path nothing may.
 */
static void test_each_copy_of_a_capability_key_is_wiped(void **state)
{
	struct unit *unit = *state;

	for (size_t i = 0; i < SECURED_METHODS; i++) {
		uint8_t method = secured_methods[i];
		/* One to sum up Data-Out with, before the command's turn, and the command's own. */
		unsigned copies = method == OSD_CAPKEY ? 1 : 2;

		/* And one to find out whether it is signed at all. */
		assert_int_equal(count_wiped(unit, signed_write(unit, method, "open"), NULL),
				 copies + 1);
		secured_close(unit, method);
		assert_int_equal(count_wiped(unit, signed_write(unit, method, "closed"), NULL),
				 copies);
		secured_reopen(unit, method);
	}
}

enum { STACK_BYTES = 8 << 20 };

/* Where the stack was. */
static const uint8_t *frame;

static void *execute_there(void *argument)
{
	struct unit *unit = argument;

	frame = __builtin_frame_address(0);
	osd_execute(unit->device, &unit->command);
	return NULL;
}

/* On a stack of its own, which it leaves as it is when it ends. */
static void execute_on(uint8_t *stack, struct unit *unit, const struct encoded_call *encoded)
{
	pthread_attr_t attributes;
	pthread_t thread;

	unit->command = (struct osd_command){ .cdb = encoded->cdb,
					      .cdb_length = encoded->cdb_length,
					      .data_out = encoded->out,
					      .data_out_length = encoded->out_length };
	assert_int_equal(pthread_attr_init(&attributes), 0);
	assert_int_equal(pthread_attr_setstack(&attributes, stack, STACK_BYTES), 0);
	assert_int_equal(pthread_create(&thread, &attributes, execute_there, unit), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(pthread_attr_destroy(&attributes), 0);
}

static void check_stack(const uint8_t *stack, const uint8_t key[OSD_KEY_BYTES])
{
#ifdef __SANITIZE_THREAD__
	(void)stack;
	(void)key;
#else
	assert_null(memmem(stack, STACK_BYTES, key, OSD_KEY_BYTES));
#endif
}

/* True: the command computes so many sums that `number` of them can succeed before one fails. */
static bool leaves_no_key(uint8_t *stack, struct unit *unit, struct signed_call call, int number)
{
	const struct key_pair *working = &M->working[KEY_VERSION];
	struct encoded_call encoded;
	uint8_t key[OSD_KEY_BYTES];

	signed_encode(unit, &call, &encoded);
	capability_key(unit_version, &call.capability, call.secret, key);
	memset(stack, 0, STACK_BYTES);
	has_failed = false;
	sums_left = number;
	execute_on(stack, unit, &encoded);
	sums_left = -1;
	free(encoded.out);
	assert_true(frame > stack && frame < stack + STACK_BYTES);
	check_stack(stack, working->authentication);
	check_stack(stack, working->generation);
	check_stack(stack, key);
	for (size_t i = 0; i < call.extension_count; i++) {
		capability_key(OSD_2, &call.extensions[i].capability, call.extensions[i].secret,
			       key);
		check_stack(stack, key);
	}
	return has_failed;
}

/*
 * Wherever the command ends: what comes behind that would cover what it has left. Code for TSan
 * keeps on the stack what otherwise is in registers only; there nobody looks.
 */
static void test_no_key_stays_on_the_stack(void **state)
{
	uint8_t *stack = aligned_alloc(4096, STACK_BYTES);
	struct unit *unit = *state;

	assert_non_null(stack);
	for (size_t i = 0; i < SECURED_METHODS; i++) {
		uint8_t method = secured_methods[i];

		for (int closed = 0; closed < 2; closed++) {
			int number = 0;

			if (closed)
				secured_close(unit, method);
			while (leaves_no_key(stack, unit, signed_write(unit, method, "wiped"),
					     number))
				number++;
			expect_good(unit);
		}
		secured_reopen(unit, method);
	}
	free(stack);
}

static struct signed_call query_into_matches(struct unit *unit)
{
	struct signed_call query = members_query(unit, MATCHES);

	signed_extend(&query, P, MATCHES, OSD_TYPE_COLLECTION, OSD_PERMISSION_WRITE);
	return query;
}

/* It is checked again in each of its turns. */
static void test_each_copy_of_a_key_is_wiped_in_each_turn(void **state)
{
	/* Of up to 256 matches. */
	const unsigned turns = (unsigned)divide_up(OBJECTS, 256);
	struct signed_call query;
	struct unit *unit;

	members_begin(state, OBJECTS);
	unit = *state;
	query = query_into_matches(unit);
	/* Those from before its first turn, that turn's, and one of each further turn. */
	assert_int_equal(count_wiped(unit, query, NULL), 2 + turns - 1);
	query = query_into_matches(unit);
	assert_int_equal(count_wiped(unit, query, &query.extensions[0].capability), 1 + turns);
	unit_tear_down(state);
}

static void test_no_key_of_a_command_of_several_turns_stays_on_the_stack(void **state)
{
	uint8_t *stack = aligned_alloc(4096, STACK_BYTES);
	struct unit *unit;
	int number = 0;

	assert_non_null(stack);
	members_begin(state, OBJECTS);
	unit = *state;
	while (leaves_no_key(stack, unit, query_into_matches(unit), number))
		number++;
	expect_good(unit);
	/* The keys of two turns at least. */
	assert_true(number >= 4);
	free(stack);
	unit_tear_down(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_keys_in_both(test_a_request_whose_sums_cannot_be_computed_may_be_sent_again),
		with_keys(test_the_same_holds_where_nobody_has_to_sign),
		with_keys(test_a_token_that_cannot_be_computed_is_not_shown),
		cmocka_unit_test(test_the_keys_of_senders_are_wiped_with_the_lists_of_their_nonces),
		with_keys_in_both(test_each_copy_of_a_capability_key_is_wiped),
		cmocka_unit_test(test_each_copy_of_a_key_is_wiped_in_each_turn),
		with_keys_in_both(test_no_key_stays_on_the_stack),
		cmocka_unit_test(test_no_key_of_a_command_of_several_turns_stays_on_the_stack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
