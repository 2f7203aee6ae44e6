/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Every record store against a model: random transactions, rollbacks, crashes, merges. */
#include "tests/engine/records/suite.h"

enum { KEYS = 60, MOMENTS = 3000, KEPT_EVERY = 150 };

/* What each key was after each committed transaction, and after each rollback. */
struct model {
	uint64_t numbers[MOMENTS];
	uint64_t values[MOMENTS][KEYS];
	uint32_t moments;
	struct rollbacks rollbacks;
	bool goes_back;
	bool merges; /* only each KEPT_EVERY-th moment is kept */
	uint64_t dropped;
	uint64_t random;
};

static uint32_t below(struct model *model, uint32_t limit)
{
	model->random = model->random * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (uint32_t)(model->random >> 33) % limit;
}

/* Some keys differ by their class alone. */
static struct record_key model_key(uint32_t number)
{
	struct record_key at = key(number / RECORD_CLASS_HISTORY);

	at.class = number % RECORD_CLASS_HISTORY;
	return at;
}

static void check_moment(struct store_fixture *f, const struct model *model, uint32_t moment)
{
	for (uint32_t n = 0; n < KEYS; n++)
		assert_int_equal(get(f, model_key(n), model->numbers[moment]),
				 model->values[moment][n]);
}

static void check_present(struct store_fixture *f, const struct model *model)
{
	for (uint32_t n = 0; n < KEYS; n++)
		assert_int_equal(get_newest(f, model_key(n)), model->values[model->moments - 1][n]);
}

/* Some moment that is kept. */
static uint32_t some_moment(struct model *model)
{
	uint32_t moment = below(model, model->moments);

	return model->merges ? moment / KEPT_EVERY * KEPT_EVERY : moment;
}

static void step(struct store_fixture *f, struct model *model)
{
	uint64_t values[KEYS];
	uint32_t puts = 1 + below(model, 8);

	if (model->moments)
		memcpy(values, model->values[model->moments - 1], sizeof(values));
	else
		memset(values, 0xff, sizeof(values));
	f->sequence = f->operations->begin(f->store, f->sequence + 1 + below(model, 50));
	for (uint32_t n = 0; n < puts; n++) {
		uint32_t number = below(model, KEYS);

		values[number] = model->random;
		assert_int_equal(try_put(f, model_key(number), values[number], 0,
					 8 + below(model, below(model, 4) ? 60 : 500),
					 RECORD_ROOM_WRITE),
				 0);
	}
	if (below(model, 10) == 0) {
		f->operations->abort(f->store);
		return;
	}
	commit(f);
	model->numbers[model->moments] = f->sequence;
	memcpy(model->values[model->moments++], values, sizeof(values));
}

static void step_back(struct store_fixture *f, struct model *model)
{
	uint32_t moment = some_moment(model);

	go_back(f, &model->rollbacks, model->numbers[moment]);
	model->numbers[model->moments] = f->sequence;
	memcpy(model->values[model->moments++], model->values[moment], sizeof(model->values[0]));
}

static uint32_t kept_moments(void *context, const struct record_key *at,
			     const struct record_info *info, uint64_t *bounds, uint32_t max)
{
	const struct model *model = context;
	uint32_t count = 0;

	(void)at;
	for (uint32_t moment = 0; moment < model->moments; moment += KEPT_EVERY)
		if (model->numbers[moment] >= info->sequence) {
			assert_true(count < max);
			bounds[count++] = model->numbers[moment];
		}
	return count;
}

static void run_model(struct store_fixture *f, bool goes_back, bool merges)
{
	struct model *model = calloc(1, sizeof(*model));
	struct record_hidden hidden = { .is_hidden = is_hidden };
	const struct record_keep keep = { .context = model, .bounds = kept_moments };

	assert_non_null(model);
	*model = (struct model){ .random = 7, .goes_back = goes_back, .merges = merges };
	hidden.context = &model->rollbacks;
	f->operations->set_hidden(f->store, &hidden);
	while (model->moments < MOMENTS) {
		if (model->goes_back && model->moments && below(model, 100) == 0 &&
		    model->rollbacks.count < ROLLBACKS_MAX)
			step_back(f, model);
		else
			step(f, model);
		if (below(model, 100) == 0) {
			crash(f);
			f->operations->set_hidden(f->store, &hidden);
			if (model->moments)
				check_present(f, model);
		}
		if (model->merges && below(model, 50) == 0)
			model->dropped += suite_merge(f, &keep);
		if (model->moments && below(model, 20) == 0)
			check_moment(f, model, some_moment(model));
	}
	check_present(f, model);
	for (uint32_t moment = 0; moment < MOMENTS; moment += merges ? KEPT_EVERY : 17)
		check_moment(f, model, moment);
	assert_true(!goes_back || model->rollbacks.count > 10);
	assert_true(!merges || model->dropped > 1000);
	free(model);
}

static void test_random_transactions_aborts_and_crashes_agree_with_a_model(void **state)
{
	run_model(*state, false, false);
}

static void test_random_rollbacks_agree_with_a_model(void **state)
{
	run_model(*state, true, false);
}

static void test_random_merges_agree_with_a_model(void **state)
{
	const struct store_fixture *f = *state;

	if (!f->operations->merge)
		skip();
	run_model(*state, false, true);
}

static void test_random_merges_of_what_was_rolled_back_agree_with_a_model(void **state)
{
	const struct store_fixture *f = *state;

	if (!f->operations->merge)
		skip();
	run_model(*state, true, true);
}

int main(void)
{
	struct CMUnitTest tests[] = {
		TEST(test_random_transactions_aborts_and_crashes_agree_with_a_model),
		TEST(test_random_rollbacks_agree_with_a_model),
		TEST(test_random_merges_agree_with_a_model),
		TEST(test_random_merges_of_what_was_rolled_back_agree_with_a_model),
	};

	return suite_run(tests, sizeof(tests) / sizeof(tests[0]));
}
