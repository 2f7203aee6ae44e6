/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The open store of the conformance suite, and what several of its programs do with it. */
#include "tests/engine/records/suite.h"

void suite_open(struct store_fixture *f)
{
	f->store = f->tested->open(f->device);
	f->operations = f->store->operations;
}

static int setup_with(void **state, bool small)
{
	struct store_fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->tested = *state;
	f->device = f->tested->create(small);
	suite_open(f);
	*state = f;
	return 0;
}

int suite_setup(void **state)
{
	return setup_with(state, false);
}

int suite_setup_small(void **state)
{
	return setup_with(state, true);
}

int suite_teardown(void **state)
{
	struct store_fixture *f = *state;
	int result = f->operations->close(f->store, false);

	f->tested->destroy(f->device);
	free(f);
	return result;
}

int suite_run(struct CMUnitTest *tests, size_t count)
{
	int failed = 0;

	for (int n = 0; n < tested_store_count; n++) {
		for (size_t i = 0; i < count; i++)
			tests[i].initial_state = (void *)(uintptr_t)&tested_stores[n];
		print_message("-- %s\n", tested_stores[n].name);
		failed += _cmocka_run_group_tests(tested_stores[n].name, tests, count, NULL, NULL);
	}
	return failed;
}

bool is_hidden(void *context, const struct record_key *at, uint64_t sequence, uint64_t bound)
{
	const struct rollbacks *rollbacks = context;

	if (at->class == RECORD_CLASS_HISTORY)
		return false;
	/* The newest one that the reader stands behind says what is seen; others only before it. */
	for (uint32_t n = rollbacks->count; n-- > 0;) {
		const struct rollback *rollback = &rollbacks->list[n];

		if (rollback->at > bound)
			continue;
		if (sequence >= rollback->at)
			return false;
		if (sequence > rollback->to)
			return true;
		bound = rollback->to;
	}
	return false;
}

void go_back(struct store_fixture *f, struct rollbacks *rollbacks, uint64_t to)
{
	assert_true(rollbacks->count < ROLLBACKS_MAX);
	begin(f);
	f->operations->abort(f->store);
	rollbacks->list[rollbacks->count++] = (struct rollback){ .at = f->sequence, .to = to };
	/* The number of an aborted transaction may be used again. */
	f->sequence = f->operations->begin(f->store, f->sequence + 1);
	put(f, key(999999), 0);
	commit(f);
}

uint64_t suite_merge(struct store_fixture *f, const struct record_keep *keep)
{
	struct record_merge merge = { .segments_wanted = 4, .live_permille_max = 900 };
	uint32_t calls = f->operations->merge_calls_max(f->store) + 20;

	for (uint32_t fruitless = 0; calls > 0 && fruitless < 2; calls--) {
		int result = f->operations->merge(f->store, keep, &merge);

		assert_true(result == 0 || result == -EAGAIN);
		fruitless = result ? fruitless + 1 : 0;
	}
	return merge.records_dropped;
}
