/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The end of the process at any instruction: each page is whole or not programmed, NVRAM is as it
 * was last stored to.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/nand/fixture.h"

/*
 * Every page is unprogrammed, or has the contents that its block's life (= erase count) was given.
 */
static void assert_pages_whole_or_absent(struct nand *nand)
{
	for (uint32_t block = 0; block < nand->geometry.blocks; block++) {
		uint64_t first = (uint64_t)block * nand->geometry.pages_per_block;
		struct nand_block_info info;

		assert_int_equal(nand_block_info(nand, block, &info), 0);
		for (uint32_t i = 0; i < nand->geometry.pages_per_block; i++)
			assert_int_equal(read_filled(nand, first + i, info.erase_count),
					 i < info.next_page ? 0 : -ENODATA);
	}
}

static void assert_killed(pid_t child)
{
	int status;

	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGKILL);
}

/* ---- killed at chosen points: a back end that dies in the middle of its work ---- */

static struct nand_backend dying;
static uint32_t dies_after_data_bytes, dies_after_spare_bytes;

static void die(void)
{
	kill(getpid(), SIGKILL);
	abort();
}

/* Past the back end, so that a page can be left in the middle of anything. */
static void store(const struct nand *nand, uint64_t offset, const void *from, size_t bytes)
{
	if (pwrite(nand->image_fd, from, bytes, (off_t)offset) != (ssize_t)bytes)
		_exit(3);
}

static int dying_write(struct nand *nand, uint64_t page, const void *data, const void *spare)
{
	uint64_t at = nand_page_offset(&nand->layout, &nand->geometry, page);

	store(nand, at, data, dies_after_data_bytes);
	store(nand, at + nand->geometry.page_bytes, spare, dies_after_spare_bytes);
	die();
	return 0;
}

static void dying_discard(struct nand *nand, uint32_t block)
{
	static const uint8_t zeroes[3 * 4096 + 5];
	uint64_t page = (uint64_t)block * nand->geometry.pages_per_block;

	store(nand, nand_page_offset(&nand->layout, &nand->geometry, page), zeroes, sizeof(zeroes));
	die();
}

/*
 * Opens the image in a child whose back end dies, and starts there a program of `page` or an erase
 * of its block.
 */
static void die_in_child(const struct test_directory *directory, uint64_t page, bool erase)
{
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		struct nand *nand = open_image_ok(directory);

		dying = *nand->backend;
		dying.async = NULL;
		dying.write = dying_write;
		dying.discard = dying_discard;
		nand->backend = &dying;
		if (erase)
			nand_erase(nand, NAND_CAUSE_USER,
				   (uint32_t)(page / nand->geometry.pages_per_block));
		else
			program_filled(nand, page, 0);
		_exit(2);
	}
	assert_killed(child);
}

static void test_killed_anywhere_in_a_program_the_page_is_absent(void **state)
{
	static const uint32_t data_bytes[] = { 0, 1, 2048, 4095, 4096, 4096, 4096, 4096 };
	static const uint32_t spare_bytes[] = { 0, 0, 0, 0, 0, 64, 127, 128 };
	struct test_directory *directory = *state;
	struct nand *nand = create_image(directory);

	assert_int_equal(program_filled(nand, 0, 0), 0);
	assert_int_equal(nand_close(nand), 0);
	for (size_t i = 0; i < sizeof(data_bytes) / sizeof(data_bytes[0]); i++) {
		dies_after_data_bytes = data_bytes[i];
		dies_after_spare_bytes = spare_bytes[i];
		die_in_child(directory, 1, false);
		nand = open_image_ok(directory);
		assert_int_equal(read_filled(nand, 0, 0), 0);
		assert_int_equal(read_filled(nand, 1, 0), -ENODATA);
		nand_abandon(nand);
	}
	nand = open_image_ok(directory);
	assert_int_equal(program_filled(nand, 1, 0), 0);
	assert_pages_whole_or_absent(nand);
	assert_int_equal(nand_close(nand), 0);
}

static void test_killed_in_an_erase_no_page_is_half_there(void **state)
{
	struct test_directory *directory = *state;
	struct nand *nand = create_image(directory);

	for (uint64_t page = 0; page < 24; page++)
		assert_int_equal(program_filled(nand, page, 0), 0);
	assert_int_equal(nand_close(nand), 0);
	die_in_child(directory, 8, true);
	nand = open_image_ok(directory);
	assert_pages_whole_or_absent(nand);
	assert_int_equal(read_filled(nand, 8, 0), -ENODATA);
	assert_int_equal(program_filled(nand, 8, 1), 0);
	assert_int_equal(nand_close(nand), 0);
}

/* ---- killed at random ---- */

/* What the child has done so far; shared with the parent. */
struct progress {
	_Atomic uint64_t steps;
	_Atomic uint64_t nvram_stores;
};

/* Erases and programs round the device for ever, counting in NVRAM. */
static void churn(const struct test_directory *directory, struct progress *progress)
{
	struct nand *nand = open_image_ok(directory);
	_Atomic uint64_t *stored = nand_nvram(nand, NULL);

	for (;;) {
		for (uint32_t block = 0; block < nand->geometry.blocks; block++) {
			struct nand_block_info info;

			if (nand_erase(nand, NAND_CAUSE_USER, block) < 0 ||
			    nand_block_info(nand, block, &info) < 0)
				_exit(2);
			for (uint32_t i = 0; i < nand->geometry.pages_per_block; i++) {
				if (program_filled(
					    nand,
					    (uint64_t)block * nand->geometry.pages_per_block + i,
					    info.erase_count) < 0)
					_exit(3);
				atomic_fetch_add(stored, 1);
				atomic_store(&progress->nvram_stores, atomic_load(stored));
				atomic_fetch_add(&progress->steps, 1);
			}
		}
	}
}

static void test_killed_at_random_every_page_is_whole_or_absent(void **state)
{
	const int rounds = test_device == TEST_DEVICE_MMAP ? 40 : 15;
	struct test_directory *directory = *state;
	struct progress *progress = mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE,
					 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned int seed = 20140610;

	assert_ptr_not_equal(progress, MAP_FAILED);
	assert_int_equal(nand_close(create_image(directory)), 0);
	for (int round = 0; round < rounds; round++) {
		uint64_t until = progress->steps + 1 + (uint64_t)rand_r(&seed) % 300;
		int spins = rand_r(&seed) % 3000;
		uint64_t stored;
		struct nand *nand;
		pid_t child = fork();

		assert_true(child >= 0);
		if (child == 0)
			churn(directory, progress);
		while (atomic_load(&progress->steps) < until && waitpid(child, NULL, WNOHANG) == 0)
			sched_yield();
		for (volatile int i = 0; i < spins; i++)
			;
		kill(child, SIGKILL);
		assert_killed(child);
		nand = open_image_ok(directory);
		assert_pages_whole_or_absent(nand);
		stored = *(uint64_t *)nand_nvram(nand, NULL);
		assert_true(stored == progress->nvram_stores ||
			    stored == progress->nvram_stores + 1);
		nand_abandon(nand);
	}
	munmap(progress, sizeof(*progress));
}

static void test_abandon_keeps_what_was_stored(void **state)
{
	struct test_directory *directory = *state;
	struct nand *nand = create_image(directory);

	assert_int_equal(program_filled(nand, 0, 0), 0);
	strcpy(nand_nvram(nand, NULL), "kept");
	nand_abandon(nand);
	nand = open_image_ok(directory);
	assert_int_equal(read_filled(nand, 0, 0), 0);
	assert_string_equal(nand_nvram(nand, NULL), "kept");
	assert_int_equal(nand_close(nand), 0);
}

#define IN_DIRECTORY(test) \
	cmocka_unit_test_setup_teardown(test, directory_setup, directory_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_DIRECTORY(test_killed_anywhere_in_a_program_the_page_is_absent),
		IN_DIRECTORY(test_killed_in_an_erase_no_page_is_half_there),
		IN_DIRECTORY(test_killed_at_random_every_page_is_whole_or_absent),
		IN_DIRECTORY(test_abandon_keeps_what_was_stored),
	};

	return RUN_ON_IMAGES(tests, NULL, NULL);
}
