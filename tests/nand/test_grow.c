/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * An image grows: what is on it stays, the new blocks are like those of a new image. Killed at any
 * moment of that, it has its old size or its new one.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nand/private.h"
#include "nand/salvage.h"
#include "tests/nand/fixture.h"

#define WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })

enum { BLOCKS = 16, PAGES = 8, MORE_BLOCKS = 50, MOST_BLOCKS = BLOCKS * NAND_GROWTH_MAX };

/* What the larger NVRAM has: the first bytes where they were, the rest 5000 further on. */
enum { KEPT_BYTES = 3000, MOVED_BY = 5000 };
#define MORE_NVRAM_BYTES (TEST_NVRAM_BYTES + MOVED_BY)

static int grow(struct nand *nand, uint32_t blocks, struct error_text *error)
{
	const uint8_t *nvram = nand_nvram(nand, NULL);
	const struct nand_nvram_piece pieces[] = {
		{ nvram, 0, KEPT_BYTES },
		{ nvram + KEPT_BYTES, KEPT_BYTES + MOVED_BY, TEST_NVRAM_BYTES - KEPT_BYTES },
	};
	const struct nand_growth growth = { blocks, MORE_NVRAM_BYTES, pieces, 2 };

	return nand_grow(nand, &growth, error);
}

/* Grows the closed image; its NVRAM stays as large as it is. */
static void grow_once_more(const struct test_directory *directory, uint32_t blocks)
{
	struct nand *nand = open_image_ok(directory);
	uint64_t bytes;
	const uint8_t *nvram = nand_nvram(nand, &bytes);
	const struct nand_nvram_piece all = { nvram, 0, bytes };
	const struct nand_growth growth = { blocks, bytes, &all, 1 };
	struct error_text error = { "" };

	if (nand_grow(nand, &growth, &error))
		fail_msg("%s", error.text);
	assert_int_equal(nand_close(nand), 0);
}

static uint8_t nvram_byte(uint32_t at)
{
	return (uint8_t)(at * 7 + 1);
}

/* Full blocks, one that was erased, a bad one, a part of one; and NVRAM. Left open. */
static struct nand *make_used(const struct test_directory *directory)
{
	struct nand *nand = create_image(directory);
	uint8_t *nvram = nand_nvram(nand, NULL);

	for (uint64_t page = 0; page < 3 * PAGES + 2; page++)
		assert_int_equal(program_filled(nand, page, 1), 0);
	assert_int_equal(nand_erase(nand, NAND_CAUSE_USER, 1), 0);
	assert_int_equal(nand_mark_bad(nand, 9), 0);
	for (uint64_t page = 0; page < PAGES; page++)
		assert_int_equal(program_filled(nand, (BLOCKS - 1) * PAGES + page, 1), 0);
	for (uint32_t at = 0; at < TEST_NVRAM_BYTES; at++)
		nvram[at] = nvram_byte(at);
	return nand;
}

static void check_blocks(struct nand *nand)
{
	struct nand_block_info info;

	for (uint64_t page = 0; page < BLOCKS * PAGES; page++) {
		uint64_t block = page / PAGES;
		bool there = block == 0 || block == 2 || block == BLOCKS - 1 ||
			     (block == 3 && page % PAGES < 2);

		assert_int_equal(read_filled(nand, page, 1), there ? 0 : -ENODATA);
	}
	assert_int_equal(nand_block_info(nand, 1, &info), 0);
	assert_int_equal(info.erase_count, 1);
	assert_int_equal(nand_block_info(nand, 9, &info), 0);
	assert_int_equal(info.state, NAND_BLOCK_BAD);
	for (uint32_t block = BLOCKS; block < nand_geometry(nand)->blocks; block++) {
		assert_int_equal(nand_block_info(nand, block, &info), 0);
		assert_int_equal(info.state, NAND_BLOCK_GOOD);
		assert_int_equal(info.next_page, 0);
		assert_int_equal(info.erase_count, 0);
	}
}

static void check_nvram(struct nand *nand, bool grown)
{
	uint64_t bytes;
	const uint8_t *nvram = nand_nvram(nand, &bytes);

	assert_int_equal(bytes, grown ? MORE_NVRAM_BYTES : TEST_NVRAM_BYTES);
	for (uint32_t at = 0; at < bytes; at++) {
		uint8_t expected = nvram_byte(at);

		if (grown && at >= KEPT_BYTES)
			expected = at < KEPT_BYTES + MOVED_BY ? 0 : nvram_byte(at - MOVED_BY);
		if (nvram[at] != expected)
			fail_msg("byte %u of NVRAM is %u, not %u", at, nvram[at], expected);
	}
}

static void check_grown(struct nand *nand, uint32_t blocks)
{
	assert_int_equal(nand_geometry(nand)->blocks, blocks);
	assert_int_equal(nand_geometry(nand)->grown_from, BLOCKS);
	check_blocks(nand);
	check_nvram(nand, true);
}

static void grow_ok(struct nand *nand, uint32_t blocks)
{
	struct error_text error = { "" };

	if (grow(nand, blocks, &error))
		fail_msg("%s", error.text);
	assert_int_equal(nand_close(nand), 0);
}

/* ---- growing ---- */

static void test_a_grown_image_has_what_it_had_and_erased_blocks_behind_that(void **state)
{
	const struct test_directory *directory = *state;
	struct nand *nand = make_used(directory);
	char unnamed[128];

	grow_ok(nand, MORE_BLOCKS);
	nand = open_image_ok(directory);
	check_grown(nand, MORE_BLOCKS);
	assert_int_equal(nand_close(nand), 0);
	snprintf(unnamed, sizeof(unnamed), "%s.grown", directory->nvram);
	assert_false(file_exists(unnamed));
}

static void test_new_blocks_are_programmed_and_erased_as_all(void **state)
{
	const struct test_directory *directory = *state;

	grow_ok(make_used(directory), MORE_BLOCKS);
	for (uint32_t life = 1; life < 3; life++) {
		struct nand *nand = open_image_ok(directory);

		for (uint64_t page = BLOCKS * PAGES; page < MORE_BLOCKS * PAGES; page++)
			assert_int_equal(program_filled(nand, page, life), 0);
		assert_int_equal(nand_close(nand), 0);
		nand = open_image_ok(directory);
		for (uint64_t page = BLOCKS * PAGES; page < MORE_BLOCKS * PAGES; page++)
			assert_int_equal(read_filled(nand, page, life), 0);
		for (uint32_t block = BLOCKS; block < MORE_BLOCKS; block++)
			assert_int_equal(nand_erase(nand, NAND_CAUSE_USER, block), 0);
		/* Over the place where the old blocks end. */
		nand_give_back(nand, BLOCKS - 2, 4);
		assert_int_equal(read_filled(nand, 0, 1), 0);
		assert_int_equal(program_filled(nand, (BLOCKS + 1) * PAGES, life), 0);
		assert_int_equal(nand_erase(nand, NAND_CAUSE_USER, BLOCKS + 1), 0);
		assert_int_equal(nand_close(nand), 0);
	}
}

/* Both copies in turn: damaged, and of the old size, as when the process ends between the two. */
static void test_one_of_the_superblocks_is_enough(void **state)
{
	const struct test_directory *directory = *state;
	struct nand *nand = make_used(directory);
	uint8_t old[NAND_HEADER_BYTES];

	file_read(directory->image, 0, old, sizeof(old));
	grow_ok(nand, MORE_BLOCKS);
	for (int round = 0; round < 4; round++) {
		uint64_t at = round % 2 * (uint64_t)NAND_SUPERBLOCK_SPACING;

		if (round < 2)
			file_write(directory->image, at, old, sizeof(old));
		else
			file_flip(directory->image, at, 1);
		log_capture();
		nand = open_image_ok(directory);
		/* Only damage is a reason to look at the host's disk. */
		assert_non_null(strstr(log_captured(), round < 2 ? "was older" : "was damaged"));
		check_grown(nand, MORE_BLOCKS);
		assert_int_equal(nand_close(nand), 0);
	}
}

static void test_an_image_grows_as_often_as_it_likes_up_to_its_limit(void **state)
{
	const struct test_directory *directory = *state;
	const uint32_t sizes[] = { BLOCKS + 2, MORE_BLOCKS, 600, MOST_BLOCKS };
	struct error_text error;
	struct nand *nand;

	grow_ok(make_used(directory), BLOCKS + 1);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		grow_once_more(directory, sizes[i]);
		nand = open_image_ok(directory);
		check_grown(nand, sizes[i]);
		assert_int_equal(nand_close(nand), 0);
	}
	nand = open_image_ok(directory);
	assert_int_equal(grow(nand, MOST_BLOCKS + 1, &error), -EINVAL);
	assert_non_null(strstr(error.text, "can grow to at most"));
	check_grown(nand, MOST_BLOCKS);
	assert_int_equal(nand_close(nand), 0);
}

static void test_an_image_never_shrinks(void **state)
{
	const struct test_directory *directory = *state;
	struct nand *nand = make_used(directory);
	uint32_t of_image = file_crc(directory->image), of_nvram = file_crc(directory->nvram);
	struct error_text error;

	for (uint32_t blocks = BLOCKS - 1; blocks <= BLOCKS; blocks++) {
		assert_int_equal(grow(nand, blocks, &error), -EINVAL);
		assert_non_null(strstr(error.text, "can only become larger"));
	}
	assert_int_equal(file_crc(directory->image), of_image);
	assert_int_equal(file_crc(directory->nvram), of_nvram);
	assert_int_equal(nand_close(nand), 0);
}

static void test_the_new_nvram_file_has_the_mode_of_the_old_one(void **state)
{
	const struct test_directory *directory = *state;
	struct nand *nand = make_used(directory);
	struct stat status;

	assert_int_equal(chmod(directory->nvram, 0604), 0);
	grow_ok(nand, MORE_BLOCKS);
	assert_int_equal(stat(directory->nvram, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0604);
}

/* It stays where it is, maybe on another file system: behind one link, not behind two. */
static void test_the_new_nvram_file_takes_the_place_that_a_link_leads_to(void **state)
{
	const struct test_directory *directory = *state;
	struct error_text error = { "" };
	char elsewhere[128], link[128];
	struct stat status;
	struct nand *nand;

	assert_int_equal(nand_close(make_used(directory)), 0);
	snprintf(elsewhere, sizeof(elsewhere), "%s.elsewhere", directory->nvram);
	snprintf(link, sizeof(link), "%s.link", directory->nvram);
	assert_int_equal(rename(directory->nvram, elsewhere), 0);
	assert_int_equal(symlink(elsewhere, link), 0);
	assert_int_equal(symlink(link, directory->nvram), 0);
	nand = open_image_ok(directory);
	assert_int_equal(grow(nand, MORE_BLOCKS, &error), -EINVAL);
	assert_non_null(strstr(error.text, "a link that a link leads to"));
	assert_int_equal(nand_close(nand), 0);
	assert_int_equal(unlink(link), 0);
	assert_int_equal(unlink(directory->nvram), 0);
	assert_int_equal(symlink(elsewhere, directory->nvram), 0);
	grow_ok(open_image_ok(directory), MORE_BLOCKS);
	assert_int_equal(lstat(directory->nvram, &status), 0);
	assert_true(S_ISLNK(status.st_mode));
	nand = open_image_ok(directory);
	check_grown(nand, MORE_BLOCKS);
	assert_int_equal(nand_close(nand), 0);
	assert_int_equal(unlink(elsewhere), 0);
}

/* ---- what is put in its place afterwards ---- */

static void test_the_nvram_file_of_before_is_refused(void **state)
{
	const struct test_directory *directory = *state;
	struct nand *nand = make_used(directory);
	char kept[128];

	snprintf(kept, sizeof(kept), "%s.kept", directory->nvram);
	assert_int_equal(link(directory->nvram, kept), 0);
	grow_ok(nand, MORE_BLOCKS);
	assert_int_equal(rename(kept, directory->nvram), 0);
	assert_open_fails(directory, -EINVAL, WORDS(directory->nvram, "has grown in between"));
}

static void test_a_lost_nvram_file_is_made_again_in_its_new_size(void **state)
{
	const struct test_directory *directory = *state;
	struct error_text error = { "" };
	struct nand *nand;
	uint64_t bytes;

	grow_ok(make_used(directory), MORE_BLOCKS);
	assert_int_equal(unlink(directory->nvram), 0);
	if (nand_create_nvram(directory->image, &error))
		fail_msg("%s", error.text);
	nand = open_image_ok(directory);
	nand_nvram(nand, &bytes);
	assert_int_equal(bytes, MORE_NVRAM_BYTES);
	check_blocks(nand);
	assert_int_equal(nand_close(nand), 0);
}

static void pass_over(void *context, const struct finding *finding)
{
	(void)context;
	(void)finding;
}

/* The NVRAM file says where the blocks are, too. */
static void test_a_copy_without_superblocks_finds_all_blocks(void **state)
{
	const struct test_directory *directory = *state;
	struct findings findings = { .take = pass_over };
	struct nand_geometry geometry;
	struct error_text error = { "" };
	struct nand *nand;

	grow_ok(make_used(directory), MORE_BLOCKS);
	nand = open_image_ok(directory);
	geometry = *nand_geometry(nand);
	geometry.grown_from = 0;
	for (uint64_t page = 0; page < PAGES; page++)
		assert_int_equal(program_filled(nand, (MORE_BLOCKS - 1) * PAGES + page, 1), 0);
	assert_int_equal(nand_close(nand), 0);
	file_flip(directory->image, 100, 1);
	file_flip(directory->image, NAND_SUPERBLOCK_SPACING + 100, 1);
	if (nand_open_copy(directory->image, &geometry, &findings, &nand, &error))
		fail_msg("%s", error.text);
	for (uint64_t page = 0; page < PAGES; page++) {
		assert_int_equal(read_filled(nand, page, 1), 0);
		assert_int_equal(read_filled(nand, (MORE_BLOCKS - 1) * PAGES + page, 1), 0);
	}
	nand_abandon(nand);
	assert_int_equal(findings.count, 1);
}

/* Of a growth whose last step did not happen: nothing is wrong, and the new NVRAM file is read. */
static void test_a_copy_reads_the_new_nvram_file_before_it_has_its_name(void **state)
{
	const struct test_directory *directory = *state;
	struct findings findings = { .take = pass_over };
	struct nand *nand = make_used(directory);
	struct error_text error = { "" };
	char unnamed[128], kept[128];

	snprintf(unnamed, sizeof(unnamed), "%s.grown", directory->nvram);
	snprintf(kept, sizeof(kept), "%s.kept", directory->nvram);
	assert_int_equal(link(directory->nvram, kept), 0);
	grow_ok(nand, MORE_BLOCKS);
	assert_int_equal(rename(directory->nvram, unnamed), 0);
	assert_int_equal(rename(kept, directory->nvram), 0);
	if (nand_open_copy(directory->image, NULL, &findings, &nand, &error))
		fail_msg("%s", error.text);
	check_grown(nand, MORE_BLOCKS);
	nand_abandon(nand);
	assert_int_equal(findings.count, 0);
	assert_int_equal(unlink(unnamed), 0);
}

/* As on a full file system: what is written beyond so many bytes of a file fails. */
static void check_fails(const struct test_directory *directory, uint64_t most)
{
	struct nand *nand = open_image_ok(directory);
	struct error_text error = { "" };
	struct rlimit before, small;
	struct stat status;
	char unnamed[128];
	int result;

	snprintf(unnamed, sizeof(unnamed), "%s.grown", directory->nvram);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	small = (struct rlimit){ .rlim_cur = most, .rlim_max = before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	result = grow(nand, MORE_BLOCKS, &error);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	signal(SIGXFSZ, SIG_DFL);
	assert_int_equal(result, -EFBIG);
	assert_false(file_exists(unnamed));
	assert_int_equal(stat(directory->image, &status), 0);
	assert_int_equal(status.st_size, nand->layout.image_bytes);
	assert_int_equal(nand_close(nand), 0);
}

static void test_a_growth_that_fails_leaves_nothing(void **state)
{
	const struct test_directory *directory = *state;
	struct nand *nand = make_used(directory);
	uint64_t image_bytes = nand->layout.image_bytes;

	assert_int_equal(nand_close(nand), 0);
	check_fails(directory, NAND_HEADER_BYTES + 100);
	assert_true(image_bytes > NAND_HEADER_BYTES + MORE_NVRAM_BYTES);
	check_fails(directory, image_bytes);
	nand = open_image_ok(directory);
	check_blocks(nand);
	check_nvram(nand, false);
	grow_ok(nand, MORE_BLOCKS);
}

/* ---- what is stable before what ---- */

/* What a growth has told the host, and has not made stable yet. */
static struct watch {
	bool on;
	ino_t image_file;
	bool image, nvram, folder;
	unsigned superblocks; /* written */
	bool named;
	const char *wrong; /* the first call that came too early */
} watch;

/* A host that fails now may keep this call, and none of those that are not stable. */
static void needs_all_stable(const char *call)
{
	if (!watch.wrong && (watch.image || watch.nvram || watch.folder))
		watch.wrong = call;
}

static bool is_image(int fd)
{
	struct stat status;

	return fstat(fd, &status) == 0 && status.st_ino == watch.image_file;
}

static bool is_folder(int fd)
{
	struct stat status;

	return fstat(fd, &status) == 0 && S_ISDIR(status.st_mode);
}

/* The next ones are in the place of the C library's. */
ssize_t pwrite(int fd, const void *from, size_t bytes, off_t offset)
{
	if (watch.on && !is_image(fd)) {
		watch.nvram = watch.folder = true;
	} else if (watch.on) {
		if (offset < NAND_SUPERBLOCKS_BYTES) {
			needs_all_stable("writing a superblock");
			watch.superblocks++;
		}
		watch.image = true;
	}
	return syscall(SYS_pwrite64, fd, from, bytes, offset);
}

int ftruncate(int fd, off_t bytes)
{
	if (watch.on && is_image(fd))
		watch.image = true;
	return (int)syscall(SYS_ftruncate, fd, bytes);
}

static void made_stable(int fd)
{
	if (is_folder(fd))
		watch.folder = false;
	else if (is_image(fd))
		watch.image = false;
	else
		watch.nvram = false;
}

int fsync(int fd)
{
	made_stable(fd);
	return (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
	made_stable(fd);
	return (int)syscall(SYS_fdatasync, fd);
}

int renameat(int from_folder, const char *from, int to_folder, const char *to)
{
	if (watch.on) {
		needs_all_stable("naming the NVRAM file");
		watch.folder = watch.named = true;
	}
	return (int)syscall(SYS_renameat, from_folder, from, to_folder, to);
}

static void test_each_step_is_stable_before_the_next_one_counts_on_it(void **state)
{
	struct nand *nand = make_used(*state);
	struct error_text error = { "" };
	struct stat status;

	assert_int_equal(fstat(nand->image_fd, &status), 0);
	assert_int_equal(nand_sync(nand, 0, BLOCKS), 0);
	watch = (struct watch){ .on = true, .image_file = status.st_ino };
	assert_int_equal(grow(nand, MORE_BLOCKS, &error), 0);
	needs_all_stable("the end");
	watch.on = false;
	if (watch.wrong)
		fail_msg("%s comes before what it counts on is stable", watch.wrong);
	assert_int_equal(watch.superblocks, NAND_SUPERBLOCK_COPIES);
	assert_true(watch.named);
	assert_int_equal(nand_close(nand), 0);
}

/* ---- killed meanwhile ---- */

/*
 * Grows in a child that is killed when it is about to do its n-th call of the host. False: it was
 * done before.
 */
static bool grow_and_die(const struct test_directory *directory, unsigned n)
{
	pid_t child = fork();
	int status = 0;

	if (child == 0) {
		struct error_text error;
		struct nand *nand;

		if (nand_open(directory->image, &nand, &error) ||
		    ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0 || raise(SIGSTOP) != 0)
			_exit(2);
		_exit(grow(nand, MORE_BLOCKS, &error) ? 3 : 0);
	}
	assert_true(child > 0);
	/* Each call stops it twice: before and behind. */
	for (unsigned stops = 0; waitpid(child, &status, 0) == child && WIFSTOPPED(status);
	     stops++) {
		if (stops == 2 * n)
			kill(child, SIGKILL);
		else if (ptrace(PTRACE_SYSCALL, child, NULL, NULL) < 0)
			kill(child, SIGKILL);
	}
	assert_false(WIFEXITED(status) && WEXITSTATUS(status) != 0);
	return WIFSIGNALED(status);
}

static bool host_lets_us_trace(void)
{
	pid_t child = fork();
	int status;

	if (child == 0)
		_exit(ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0);
	return waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status);
}

/* Whether the image has grown; all of it must be right. */
static bool check_either(const struct test_directory *directory, bool read_only)
{
	const struct nand_options options = { .read_only = read_only };
	struct error_text error = { "" };
	struct nand *nand;
	bool grown;

	if (nand_open_with(directory->image, &options, &nand, &error))
		fail_msg("%s", error.text);
	grown = nand_geometry(nand)->blocks != BLOCKS;
	if (grown) {
		check_grown(nand, MORE_BLOCKS);
	} else {
		check_blocks(nand);
		check_nvram(nand, false);
	}
	assert_int_equal(nand_close(nand), 0);
	return grown;
}

static void test_killed_before_any_call_of_the_host_it_has_grown_or_not(void **state)
{
	const struct test_directory *directory = *state;
	unsigned old = 0, grown = 0;
	char unnamed[128];

	if (!host_lets_us_trace())
		skip();
	snprintf(unnamed, sizeof(unnamed), "%s.grown", directory->nvram);
	assert_int_equal(nand_close(make_used(directory)), 0);
	for (unsigned n = 0; grow_and_die(directory, n); n++) {
		bool is_unnamed = file_exists(unnamed), now = check_either(directory, true);

		/* Who only reads leaves it as it is. */
		assert_int_equal(file_exists(unnamed), is_unnamed);
		/* Who opens it for writing finds the same, and cleans up. */
		assert_int_equal(check_either(directory, false), now);
		assert_false(file_exists(unnamed));
		assert_int_equal(check_either(directory, true), now);
		old += !now;
		grown += now;
		if (now) {
			assert_int_equal(unlink(directory->image), 0);
			assert_int_equal(unlink(directory->nvram), 0);
			assert_int_equal(nand_close(make_used(directory)), 0);
		}
	}
	assert_true(old > 20 && grown >= 4);
	assert_true(check_either(directory, false));
	print_message("killed at %u calls: %u times of the old size\n", old + grown, old);
}

static void test_what_a_growth_left_does_not_stand_in_the_way_of_the_next(void **state)
{
	const struct test_directory *directory = *state;
	struct nand *nand;

	if (!host_lets_us_trace())
		skip();
	assert_int_equal(nand_close(make_used(directory)), 0);
	assert_true(grow_and_die(directory, 12));
	nand = open_image_ok(directory);
	assert_int_equal(nand_geometry(nand)->blocks, BLOCKS);
	grow_ok(nand, MORE_BLOCKS);
	assert_true(check_either(directory, false));
}

#define with_directory(test) \
	cmocka_unit_test_setup_teardown(test, directory_setup, directory_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_directory(test_a_grown_image_has_what_it_had_and_erased_blocks_behind_that),
		with_directory(test_new_blocks_are_programmed_and_erased_as_all),
		with_directory(test_one_of_the_superblocks_is_enough),
		with_directory(test_an_image_grows_as_often_as_it_likes_up_to_its_limit),
		with_directory(test_an_image_never_shrinks),
		with_directory(test_the_new_nvram_file_has_the_mode_of_the_old_one),
		with_directory(test_the_new_nvram_file_takes_the_place_that_a_link_leads_to),
		with_directory(test_the_nvram_file_of_before_is_refused),
		with_directory(test_a_lost_nvram_file_is_made_again_in_its_new_size),
		with_directory(test_a_copy_without_superblocks_finds_all_blocks),
		with_directory(test_a_copy_reads_the_new_nvram_file_before_it_has_its_name),
		with_directory(test_a_growth_that_fails_leaves_nothing),
		with_directory(test_each_step_is_stable_before_the_next_one_counts_on_it),
		with_directory(test_killed_before_any_call_of_the_host_it_has_grown_or_not),
		with_directory(test_what_a_growth_left_does_not_stand_in_the_way_of_the_next),
	};

	return RUN_ON_IMAGES(tests, NULL, NULL);
}
