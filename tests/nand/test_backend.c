/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The back ends of an image: one format, one contract; hosts without io_uring; the end of the
 * process in mid-air.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/nand/fixture.h"

static struct nand *open_as(const struct test_directory *directory, enum test_device device)
{
	test_device = device;
	return open_image_ok(directory);
}

static void test_an_image_is_the_same_for_all_back_ends(void **state)
{
	struct test_directory *directory = *state;
	struct nand *nand;

	test_device = TEST_DEVICE_MMAP;
	assert_int_equal(nand_close(create_image(directory)), 0);
	for (int writer = 0; writer < TEST_IMAGE_DEVICES; writer++) {
		nand = open_as(directory, (enum test_device)writer);
		for (uint64_t page = 0; page < 8; page++)
			assert_int_equal(program_filled(nand, (uint64_t)writer * 8 + page, 1), 0);
		assert_int_equal(nand_close(nand), 0);
		for (int reader = 0; reader < TEST_IMAGE_DEVICES; reader++) {
			nand = open_as(directory, (enum test_device)reader);
			for (uint64_t page = 0; page < (uint64_t)(writer + 1) * 8; page++)
				assert_int_equal(read_filled(nand, page, 1), 0);
			assert_int_equal(nand_close(nand), 0);
		}
	}
}

static void test_a_read_only_image_is_not_changed_by_the_file_back_end(void **state)
{
	const struct nand_options options = { .backend = NAND_BACKEND_FILE, .read_only = true };
	struct test_directory *directory = *state;
	struct nand_request request = { .kind = NAND_REQUEST_PROGRAM, .count = 1 };
	const struct nand_queue_options queue_options = { .depth = 1 };
	struct nand_request *submitted = &request, *completed;
	uint8_t data[4096] = { 0 };
	struct nand_page_io io = { 1, data, NULL };
	struct nand_queue *queue;
	struct nand *nand;
	uint32_t before;

	test_device = TEST_DEVICE_FILE_THREADS;
	nand = create_image(directory);
	assert_int_equal(program_filled(nand, 0, 1), 0);
	assert_int_equal(nand_close(nand), 0);
	before = file_crc(directory->image);
	assert_int_equal(nand_open_with(directory->image, &options, &nand, NULL), 0);
	assert_int_equal(read_filled(nand, 0, 1), 0);
	assert_int_equal(program_filled(nand, 1, 1), -EROFS);
	assert_int_equal(nand_queue_open(nand, &queue_options, &queue, NULL), 0);
	request.pages = &io;
	assert_int_equal(nand_submit(queue, &submitted, 1), 1);
	assert_int_equal(nand_reap(queue, &completed, 1, 1), 1);
	assert_int_equal(request.result, -EROFS);
	nand_queue_close(queue);
	assert_int_equal(nand_close(nand), 0);
	assert_int_equal(file_crc(directory->image), before);
}

/* ---- hosts without io_uring ---- */

/* What kernel.io_uring_disabled and the filters of containers do, to this process for good. */
static bool forbid_io_uring(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_io_uring_setup, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* Numbers tell which expectation failed: the child's asserts are not the parent's. */
static int use_without_io_uring(const struct test_directory *directory)
{
	struct nand_options options = { .backend = NAND_BACKEND_FILE, .io = NAND_IO_URING };
	struct error_text error = { "" };
	struct nand *nand;

	if (!forbid_io_uring())
		return 99;
	if (nand_open_with(directory->image, &options, &nand, &error) != -EPERM || nand)
		return 1;
	if (!strstr(error.text, "has no io_uring for this process (Operation not permitted)") ||
	    !strstr(error.text, "io_uring_disabled"))
		return 2;
	log_capture();
	options.io = NAND_IO_BEST;
	if (nand_open_with(directory->image, &options, &nand, &error) < 0)
		return 3;
	if (!strstr(log_captured(), "has no io_uring for this process") ||
	    !strstr(log_captured(), "using threads, which are slower"))
		return 4;
	for (uint64_t page = 0; page < 128; page++)
		if (program_filled(nand, page, 1) < 0 || read_filled(nand, page, 1) < 0)
			return 5;
	return nand_close(nand) < 0 ? 6 : 0;
}

static void test_without_io_uring_threads_do_its_work_and_a_demand_is_refused(void **state)
{
	struct test_directory *directory = *state;
	int status;
	pid_t child;

	test_device = TEST_DEVICE_MMAP;
	assert_int_equal(nand_close(create_image(directory)), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(use_without_io_uring(directory));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 99)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- transfers that are cut short ---- */

static void test_a_transfer_that_was_cut_short_is_gone_on_with(void **state)
{
	struct test_directory *directory = *state;
	uint8_t stored[100], got[61], expected[60];
	int fd;

	for (size_t i = 0; i < sizeof(stored); i++)
		stored[i] = (uint8_t)i;
	fd = open(directory->image, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, stored, sizeof(stored)), sizeof(stored));
	for (uint64_t done = 0; done <= 60; done++) {
		struct nand_transfer transfer = { .offset = 40, .bytes = 60, .memory = got };

		memset(got, 0xEE, sizeof(got));
		memset(expected, 0xEE, sizeof(expected));
		memcpy(expected + done, stored + 40 + done, 60 - done);
		assert_int_equal(nand_transfer_by_hand(fd, &transfer, done), 0);
		assert_memory_equal(got, expected, 60);
		assert_int_equal(got[60], 0xEE);
		transfer.offset = 41;
		assert_int_equal(nand_transfer_by_hand(fd, &transfer, 0), -EIO);
	}
	close(fd);
}

/* The host lost the end of the file behind our back: no crash, no data. */
static void test_a_page_that_the_host_lost_is_an_error(void **state)
{
	struct test_directory *directory = *state;
	struct nand *nand;

	test_device = TEST_DEVICE_FILE_THREADS;
	nand = create_image(directory);
	for (uint64_t page = 0; page < 128; page++)
		assert_int_equal(program_filled(nand, page, 1), 0);
	/* Data of the first page; its spare area stays. */
	assert_int_equal(fallocate(nand->image_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				   (off_t)nand->layout.data_offset, 4096),
			 0);
	assert_int_equal(read_filled(nand, 0, 1), -EBADMSG);
	assert_int_equal(read_filled(nand, 1, 1), 0);
	assert_int_equal(nand_close(nand), 0);
}

/* ---- the space of erased blocks ---- */

static blkcnt_t allocated(const struct test_directory *directory)
{
	struct stat status;

	assert_int_equal(stat(directory->image, &status), 0);
	return status.st_blocks;
}

static void keep_space(const struct test_directory *directory, enum test_device device)
{
	blkcnt_t full;
	struct nand *nand;

	test_device = device;
	nand = create_image(directory);
	for (uint64_t page = 0; page < 128; page++)
		assert_int_equal(program_filled(nand, page, 1), 0);
	assert_int_equal(nand_sync(nand, 0, 16), 0);
	full = allocated(directory);
	for (uint32_t block = 0; block < 16; block++)
		assert_int_equal(nand_erase(nand, NAND_CAUSE_USER, block), 0);
	assert_int_equal(nand_sync(nand, 0, 16), 0);
	assert_int_equal(allocated(directory), full);
	for (uint64_t page = 0; page < 128; page++)
		assert_int_equal(read_filled(nand, page, 1), -ENODATA);
	for (uint64_t page = 0; page < 128; page++)
		assert_int_equal(program_filled(nand, page, 2), 0);
	for (uint64_t page = 0; page < 128; page++)
		assert_int_equal(read_filled(nand, page, 2), 0);
	assert_int_equal(nand_close(nand), 0);
}

static void test_erased_blocks_keep_their_space(void **state)
{
	const struct test_directory *directory = *state;

	keep_space(directory, TEST_DEVICE_FILE_THREADS);
	assert_int_equal(unlink(directory->image), 0);
	assert_int_equal(unlink(directory->nvram), 0);
	keep_space(directory, TEST_DEVICE_MMAP);
}

/*
 * Space is taken for many blocks at once, as on a drive. What was given back beside them stays with
 * the host, and has it again only for programs of its own.
 */
static void give_back_and_program(const struct test_directory *directory, enum test_device device)
{
	blkcnt_t full, holes;
	struct nand *nand;

	test_device = device;
	nand = create_image(directory);
	nand->space_ahead = UINT64_C(64) << 20;
	assert_int_equal(program_filled(nand, 0, 1), 0);
	assert_int_equal(nand_sync(nand, 0, 16), 0);
	full = allocated(directory);
	for (uint32_t block = 4; block < 16; block++)
		assert_true(nand_may_give_back(nand, block));
	nand_give_back(nand, 4, 12);
	for (uint32_t block = 3; block < 16; block++)
		assert_int_equal(nand_may_give_back(nand, block), block == 3);
	holes = allocated(directory);
	assert_true((full - holes) * 512 >= 11 * 8 * 4096);
	/* The first is prepared already; then one that was given back, and one before such a one.
	 */
	assert_int_equal(program_filled(nand, UINT64_C(8), 1), 0);
	assert_int_equal(program_filled(nand, UINT64_C(8) * 8, 1), 0);
	nand_give_back(nand, 3, 1);
	assert_int_equal(program_filled(nand, UINT64_C(3) * 8, 1), 0);
	assert_int_equal(nand_sync(nand, 0, 16), 0);
	assert_true((allocated(directory) - holes) * 512 < 3 * 8 * 4096);
	/* Those that are expected are taken ahead again. */
	nand_expect_programs(nand, 4, 12);
	assert_int_equal(program_filled(nand, UINT64_C(4) * 8, 1), 0);
	assert_int_equal(nand_sync(nand, 0, 16), 0);
	assert_true(allocated(directory) >= full - 16);
	for (uint64_t page = 0; page < 40; page += 8)
		assert_int_equal(read_filled(nand, page, 1), page == 16 ? -ENODATA : 0);
	assert_int_equal(nand_close(nand), 0);
}

static void test_what_was_given_back_is_taken_by_its_own_programs_alone(void **state)
{
	const struct test_directory *directory = *state;

	give_back_and_program(directory, TEST_DEVICE_FILE_THREADS);
	assert_int_equal(unlink(directory->image), 0);
	assert_int_equal(unlink(directory->nvram), 0);
	give_back_and_program(directory, TEST_DEVICE_MMAP);
}

/* ---- kill -9 with many requests under way ---- */

enum { DEPTH = 8 };

/*
 * Erases and programs round the device for ever, a block a request, all of them under way at once.
 */
static void churn(const struct test_directory *directory, _Atomic uint64_t *steps)
{
	static struct nand_request requests[DEPTH];
	static struct nand_page_io pages[DEPTH][8];
	static uint8_t spares[DEPTH][8][112];
	const struct nand_queue_options options = { .depth = DEPTH };
	struct nand *nand = open_image_ok(directory);
	uint8_t *data = aligned_alloc(4096, DEPTH * 8 * 4096);
	struct nand_request *completed;
	struct nand_queue *queue;

	if (!data || nand_queue_open(nand, &options, &queue, NULL) < 0)
		_exit(2);
	for (uint32_t turn = 0;; turn++) {
		uint32_t slot = turn % DEPTH, block = turn % 16;
		struct nand_request *request = &requests[slot];
		struct nand_block_info info;

		if (turn >= DEPTH &&
		    (nand_reap(queue, &completed, 1, 1) != 1 || completed->result < 0))
			_exit(3);
		if (nand_erase(nand, NAND_CAUSE_USER, block) < 0 ||
		    nand_block_info(nand, block, &info) < 0)
			_exit(4);
		for (uint32_t i = 0; i < 8; i++) {
			pages[slot][i] = (struct nand_page_io){ block * UINT64_C(8) + i,
								data + (slot * 8 + i) * 4096,
								spares[slot][i] };
			fill_page(nand, pages[slot][i].page, info.erase_count, pages[slot][i].data,
				  pages[slot][i].spare);
		}
		*request = (struct nand_request){ .kind = NAND_REQUEST_PROGRAM,
						  .pages = pages[slot],
						  .count = 8 };
		if (nand_submit(queue, &request, 1) != 1)
			_exit(5);
		atomic_fetch_add(steps, 1);
	}
}

static void test_killed_with_requests_under_way_every_page_is_whole_or_absent(void **state)
{
	struct test_directory *directory = *state;
	_Atomic uint64_t *steps =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned int seed = 20161121;

	assert_ptr_not_equal(steps, MAP_FAILED);
	assert_int_equal(nand_close(create_image(directory)), 0);
	for (int round = 0; round < 20; round++) {
		uint64_t until = atomic_load(steps) + 10 + (uint64_t)rand_r(&seed) % 200;
		struct nand *nand;
		int status;
		pid_t child = fork();

		assert_true(child >= 0);
		if (child == 0)
			churn(directory, steps);
		while (atomic_load(steps) < until && waitpid(child, NULL, WNOHANG) == 0)
			sched_yield();
		kill(child, SIGKILL);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
		/* At once: the next process must not meet transfers of the last one. */
		nand = open_image_ok(directory);
		for (uint32_t block = 0; block < 16; block++) {
			struct nand_block_info info;

			assert_int_equal(nand_block_info(nand, block, &info), 0);
			for (uint32_t i = 0; i < 8; i++)
				assert_int_equal(read_filled(nand, block * UINT64_C(8) + i,
							     info.erase_count),
						 i < info.next_page ? 0 : -ENODATA);
		}
		assert_int_equal(nand_close(nand), 0);
	}
	munmap((void *)steps, 4096);
}

#define IN_DIRECTORY(test) \
	cmocka_unit_test_setup_teardown(test, directory_setup, directory_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_DIRECTORY(test_an_image_is_the_same_for_all_back_ends),
		IN_DIRECTORY(test_a_read_only_image_is_not_changed_by_the_file_back_end),
		IN_DIRECTORY(test_without_io_uring_threads_do_its_work_and_a_demand_is_refused),
		IN_DIRECTORY(test_a_transfer_that_was_cut_short_is_gone_on_with),
		IN_DIRECTORY(test_a_page_that_the_host_lost_is_an_error),
		IN_DIRECTORY(test_erased_blocks_keep_their_space),
		IN_DIRECTORY(test_what_was_given_back_is_taken_by_its_own_programs_alone),
	};
	const struct CMUnitTest everywhere[] = {
		IN_DIRECTORY(test_killed_with_requests_under_way_every_page_is_whole_or_absent),
	};
	int failures = cmocka_run_group_tests(tests, NULL, NULL);

	return failures + RUN_ON_IMAGES(everywhere, NULL, NULL);
}
