/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Whichever put of a command fails, the command fails with it and has changed nothing, also after a
 * crash.
 */
#include "engine/history.h"
#include "tests/engine/fixture.h"

/* Every command has a partition of its own, with OBJECT that says "one" and an older "zero". */
struct scene {
	struct fixture *f;
	uint64_t partition;
	struct engine_moment before; /* when it said "zero" */
};

static struct engine_address in(const struct scene *scene, uint64_t id)
{
	return (struct engine_address){ .partition = scene->partition, .object = id };
}

static int create_object(const struct scene *scene)
{
	uint64_t id;

	return engine_create(scene->f->txn, scene->partition, ENGINE_USER_OBJECT, 0, 50, &id);
}

static int remove_object(const struct scene *scene)
{
	return engine_remove(scene->f->txn, in(scene, OBJECT));
}

static int write_pages(const struct scene *scene)
{
	static const char pages[5 * PAGE] = "two";

	return engine_write(scene->f->txn, in(scene, OBJECT), 0, pages, sizeof(pages));
}

static int set_attribute(const struct scene *scene)
{
	return engine_attribute_set(scene->f->txn, in(scene, OBJECT), 0x10000, 1, "two", 3);
}

static int create_partition(const struct scene *scene)
{
	return engine_partition_create(scene->f->txn, 0, NULL);
}

static int clear_partition(const struct scene *scene)
{
	return engine_partition_remove(scene->f->txn, scene->partition, true);
}

static int make_snapshot(const struct scene *scene)
{
	uint32_t version;

	return engine_snapshot(scene->f->txn, scene->partition, "here", &version);
}

static int go_back(const struct scene *scene)
{
	return engine_rollback(scene->f->txn, scene->partition, scene->before);
}

static int go_back_with_object(const struct scene *scene)
{
	return engine_rollback_object(scene->f->txn, scene->partition, OBJECT, scene->before);
}

static int clone(const struct scene *scene)
{
	uint64_t id;

	return engine_clone(scene->f->txn, scene->partition, scene->before, 0, true, &id);
}

static const struct command {
	const char *name;
	int (*run)(const struct scene *scene);
	enum engine_mode mode;
} commands[] = {
	{ "create an object", create_object, ENGINE_WRITE },
	{ "remove an object", remove_object, ENGINE_WRITE },
	{ "write", write_pages, ENGINE_WRITE },
	{ "set an attribute", set_attribute, ENGINE_WRITE },
	{ "create a partition", create_partition, ENGINE_WRITE },
	{ "remove a partition", clear_partition, ENGINE_WRITE },
	{ "make a snapshot", make_snapshot, ENGINE_HISTORY },
	{ "go back", go_back, ENGINE_HISTORY },
	{ "go back with an object", go_back_with_object, ENGINE_HISTORY },
	{ "make a clone", clone, ENGINE_HISTORY },
};

static struct scene scene_of(struct fixture *f, uint64_t partition)
{
	struct scene scene = { .f = f, .partition = partition };

	create(f, partition);
	put_text(f, in(&scene, OBJECT), "zero");
	scene.before = at_number(take_snapshot(f, partition, NULL));
	put_text(f, in(&scene, OBJECT), "one");
	return scene;
}

static void expect_unchanged(const struct scene *scene, uint64_t partitions)
{
	struct fixture *f = scene->f;
	uint32_t length;

	check_text(f, in(scene, OBJECT), "one");
	begin(f, ENGINE_READ);
	assert_int_equal(stat_of(f, in(scene, 0)).members, 1);
	assert_int_equal(stat_of(f, the_root).members, partitions);
	assert_int_equal(
		engine_attribute_get(f->txn, in(scene, OBJECT), 0x10000, 1, NULL, 0, &length),
		-ENOENT);
	commit(f);
}

/* Returns whether a put failed. */
static bool fails(const struct scene *scene, const struct command *command, int64_t puts)
{
	struct fixture *f = scene->f;
	bool failed;
	int result;

	begin(f, command->mode);
	memory_store_fail_put(f->memory, puts);
	result = end(f, command->run(scene));
	failed = memory_store_fail_put_left(f->memory) < 0;
	memory_store_fail_put(f->memory, -1);
	if (result != (failed ? -ENOSPC : 0))
		fail_msg("%s, put %d: result %d", command->name, (int)puts, result);
	return failed;
}

static void test_a_command_whose_put_fails_has_changed_nothing(void **state)
{
	struct fixture *f = *state;
	uint64_t partitions = 0;

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		struct scene scene = scene_of(f, PARTITION + 100 * i);
		int64_t puts = 0;

		begin(f, ENGINE_READ);
		partitions = stat_of(f, the_root).members;
		commit(f);
		for (; fails(&scene, &commands[i], puts); puts++) {
			expect_unchanged(&scene, partitions);
			crash(f);
			expect_unchanged(&scene, partitions);
		}
		/* A command that puts nothing would prove nothing. */
		assert_true(puts > 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_command_whose_put_fails_has_changed_nothing),
	};

	return cmocka_run_group_tests_name("failed puts", tests, NULL, NULL);
}
