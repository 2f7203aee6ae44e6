/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The host's file system: space comes back after an erase; a full one is an error, never the end of
 * the process. The full one is a small tmpfs or ext4 in a mount namespace of this process; where
 * that is not allowed, those tests are skipped.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/nand/fixture.h"

static void write_text(const char *path, const char *text)
{
	FILE *file = fopen(path, "we");

	if (file) {
		fputs(text, file);
		fclose(file);
	}
}

/* A mount namespace of our own, through a user namespace if need be. */
static bool enter_namespace(void)
{
	uid_t uid = getuid();
	gid_t gid = getgid();
	char map[64];

	if (unshare(CLONE_NEWNS) < 0) {
		if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
			return false;
		write_text("/proc/self/setgroups", "deny");
		snprintf(map, sizeof(map), "0 %u 1\n", uid);
		write_text("/proc/self/uid_map", map);
		snprintf(map, sizeof(map), "0 %u 1\n", gid);
		write_text("/proc/self/gid_map", map);
	}
	return mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) == 0;
}

static bool have_namespace;

static int group_setup(void **state)
{
	(void)state;
	/* Once for all runs of the group. */
	have_namespace = have_namespace || enter_namespace();
	test_space = NAND_SPACE_GIVEN_BACK;
	return 0;
}

/* directory_setup with `bytes` of space of its own. */
static struct test_directory *mount_small(void **state, unsigned long bytes)
{
	struct test_directory *directory = *state;
	char options[64];

	snprintf(options, sizeof(options), "size=%lu", bytes);
	if (!have_namespace || mount("tmpfs", directory->directory, "tmpfs", 0, options) < 0)
		skip();
	return directory;
}

/* The same on a file system that lies on a drive, which is a file beside it. */
static struct test_directory *mount_drive(void **state, const char *mebibytes)
{
	struct test_directory *directory = *state;
	char command[1024];

	snprintf(command, sizeof(command),
		 "exec >/dev/null 2>&1; PATH=$PATH:/usr/sbin:/sbin; truncate -s %sM %s.drive && "
		 "mkfs.ext4 -q %s.drive && mount -o loop %s.drive %s",
		 mebibytes, directory->directory, directory->directory, directory->directory,
		 directory->directory);
	if (!have_namespace || system(command) != 0)
		skip();
	return directory;
}

static int teardown(void **state)
{
	struct test_directory *directory = *state;
	char drive[128];

	umount2(directory->directory, MNT_DETACH);
	snprintf(drive, sizeof(drive), "%s.drive", directory->directory);
	unlink(drive);
	return directory_teardown(state);
}

static void fill_up(const char *directory, char *path, size_t path_bytes)
{
	static const char zeroes[4096];
	FILE *file;

	snprintf(path, path_bytes, "%s/filler", directory);
	file = fopen(path, "we");
	assert_non_null(file);
	setvbuf(file, NULL, _IONBF, 0);
	while (fwrite(zeroes, 1, sizeof(zeroes), file) == sizeof(zeroes))
		;
	fclose(file);
}

static void test_a_full_file_system_fails_programs_and_nothing_else(void **state)
{
	struct test_directory *directory = mount_small(state, 2 << 20);
	struct nand_geometry geometry = small_geometry;
	struct nand_counters counters;
	char filler[128];
	struct nand *nand;

	/* No page shares one of the host with another, so that none has its space by accident. */
	geometry.spare_bytes = 4096;
	assert_int_equal(nand_create(directory->image, &geometry, TEST_NVRAM_BYTES, NULL), 0);
	nand = open_image_ok(directory);
	for (uint64_t page = 0; page < 12; page++)
		assert_int_equal(program_filled(nand, page, 1), 0);
	fill_up(directory->directory, filler, sizeof(filler));
	memset(nand_nvram(nand, NULL), 1, TEST_NVRAM_BYTES);
	log_capture();
	/* The second block was begun before, so it has its space; the third has not. */
	for (uint64_t page = 12; page < 16; page++)
		assert_int_equal(program_filled(nand, page, 1), 0);
	assert_int_equal(program_filled(nand, 16, 1), -ENOSPC);
	assert_int_equal(program_filled(nand, 24, 1), -ENOSPC);
	assert_non_null(strstr(log_captured(),
			       "no space for block 2 on the host's file system (No space left"));
	assert_null(strstr(log_captured(), "block 3"));
	for (uint64_t page = 0; page < 16; page++)
		assert_int_equal(read_filled(nand, page, 1), 0);
	assert_int_equal(nand_sync(nand, 0, 16), 0);
	assert_int_equal(unlink(filler), 0);
	assert_int_equal(program_filled(nand, 16, 1), 0);
	nand_read_counters(nand, &counters);
	assert_int_equal(counters.by_cause[NAND_CAUSE_USER].pages_programmed, 17);
	assert_int_equal(nand_close(nand), 0);
}

/* As cp(1) does: much with each call, of which the kernel makes large pieces of memory. */
static void write_all_of_it(const struct nand *nand, const char *image)
{
	static const char zeroes[65536];
	uint64_t end = nand->layout.data_offset +
		       nand->geometry.blocks * (uint64_t)nand->layout.block_stride;
	int fd = open(image, O_RDWR | O_CLOEXEC);

	for (uint64_t at = nand->layout.data_offset; at + sizeof(zeroes) <= end;
	     at += sizeof(zeroes))
		assert_int_equal(pwrite(fd, zeroes, sizeof(zeroes), (off_t)at), sizeof(zeroes));
	close(fd);
}

/*
 * The kernel keeps neighbouring pages of a file as one piece. A store into a mapping wants space
 * for the whole piece, and some of that may be in an erased block, which has none.
 */
static void test_what_lies_beside_a_hole_can_be_programmed_on_a_full_drive(void **state)
{
	enum { PAGES = 64, KEPT = 3 }; /* pages of a block; one block of so many keeps its space */
	struct test_directory *directory = mount_drive(state, "16");
	struct nand_geometry geometry = small_geometry;
	char filler[128];
	struct nand *nand;

	/* Longer than such a piece: what has been programmed is in another one. */
	geometry.pages_per_block = PAGES;
	assert_int_equal(nand_create(directory->image, &geometry, TEST_NVRAM_BYTES, NULL), 0);
	nand = open_image_ok(directory);
	write_all_of_it(nand, directory->image);
	for (uint32_t block = 0; block < geometry.blocks; block++)
		if (block % KEPT == 0)
			assert_int_equal(program_filled(nand, block * (uint64_t)PAGES, 1), 0);
		else
			assert_int_equal(nand_erase(nand, NAND_CAUSE_USER, block), 0);
	fill_up(directory->directory, filler, sizeof(filler));
	for (uint64_t page = 0; page < geometry.blocks * (uint64_t)PAGES; page++)
		if (page / PAGES % KEPT == 0 && page % PAGES != 0)
			assert_int_equal(program_filled(nand, page, 1), 0);
	for (uint64_t page = 0; page < geometry.blocks * (uint64_t)PAGES; page++)
		if (page / PAGES % KEPT == 0)
			assert_int_equal(read_filled(nand, page, 1), 0);
	assert_int_equal(nand_close(nand), 0);
}

/*
 * Where space is kept, it is taken for many blocks at once; what is left must be used up all the
 * same.
 */
static void test_a_full_file_system_fails_programs_where_space_is_kept(void **state)
{
	struct test_directory *directory = mount_small(state, 2 << 20);
	struct nand_geometry geometry = small_geometry;
	char filler[128];
	struct nand *nand;
	uint32_t blocks = 0;

	geometry.blocks = 64; /* 2 MiB of data, which do not fit with their spare areas */
	assert_int_equal(nand_create(directory->image, &geometry, TEST_NVRAM_BYTES, NULL), 0);
	test_space = NAND_SPACE_KEPT;
	nand = open_image_ok(directory);
	test_space = NAND_SPACE_GIVEN_BACK;
	fill_up(directory->directory, filler, sizeof(filler));
	assert_int_equal(program_filled(nand, 0, 1), -ENOSPC);
	assert_int_equal(unlink(filler), 0);
	while (blocks < 64 && program_filled(nand, blocks * UINT64_C(8), 1) == 0)
		blocks++;
	assert_in_range(blocks, 32, 63);
	/* No erase gives space back, but each block has its own for ever. */
	assert_int_equal(nand_erase(nand, NAND_CAUSE_USER, 0), 0);
	assert_int_equal(program_filled(nand, blocks * UINT64_C(8), 1), -ENOSPC);
	for (uint64_t page = 0; page < 8; page++)
		assert_int_equal(program_filled(nand, page, 2), 0);
	for (uint64_t block = 1; block < blocks; block++)
		assert_int_equal(read_filled(nand, block * 8, 1), 0);
	assert_int_equal(nand_close(nand), 0);
}

/* cp(1) makes holes of what is allocated but not written yet. */
static void test_a_copy_that_lost_its_space_fails_programs_and_nothing_else(void **state)
{
	struct test_directory *directory = mount_small(state, 2 << 20);
	struct nand *nand = create_image(directory);
	uint64_t unwritten = nand->layout.data_offset + 8192;
	uint64_t end = nand->layout.data_offset + nand->layout.block_stride;
	char filler[128];
	int fd;

	assert_int_equal(program_filled(nand, 0, 1), 0);
	assert_int_equal(nand_close(nand), 0);
	fd = open(directory->image, O_RDWR | O_CLOEXEC);
	assert_int_equal(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)unwritten,
				   (off_t)(end - unwritten)),
			 0);
	close(fd);
	fill_up(directory->directory, filler, sizeof(filler));
	nand = open_image_ok(directory);
	assert_int_equal(program_filled(nand, 1, 1), -ENOSPC);
	assert_int_equal(read_filled(nand, 0, 1), 0);
	assert_int_equal(unlink(filler), 0);
	assert_int_equal(program_filled(nand, 1, 1), 0);
	assert_int_equal(read_filled(nand, 1, 1), 0);
	assert_int_equal(nand_close(nand), 0);
}

static void test_space_of_an_erased_block_serves_another(void **state)
{
	struct test_directory *directory = mount_small(state, 2 << 20);
	struct nand *nand = create_image(directory);
	char filler[128];

	for (uint64_t page = 0; page < 8; page++)
		assert_int_equal(program_filled(nand, page, 1), 0);
	fill_up(directory->directory, filler, sizeof(filler));
	assert_int_equal(program_filled(nand, 8, 1), -ENOSPC);
	assert_int_equal(nand_erase(nand, NAND_CAUSE_USER, 0), 0);
	assert_int_equal(program_filled(nand, 8, 1), 0);
	assert_int_equal(program_filled(nand, 0, 2), -ENOSPC);
	assert_int_equal(read_filled(nand, 0, 1), -ENODATA);
	assert_int_equal(nand_close(nand), 0);
	unlink(filler);
}

/* A thirty-second of the image is kept for those who free something. */
static void test_a_full_file_system_leaves_a_reserve_and_says_so(void **state)
{
	struct test_directory *directory = mount_small(state, 4 << 20);
	struct nand_geometry geometry = small_geometry;
	uint64_t block = 1;
	char filler[128];
	struct nand *nand;
	int result;

	geometry.blocks = 256;
	assert_int_equal(nand_create(directory->image, &geometry, TEST_NVRAM_BYTES, NULL), 0);
	nand = open_image_ok(directory);
	assert_int_equal(program_filled(nand, 0, 1), 0);
	assert_false(nand_host_is_full(nand));
	fill_up(directory->directory, filler, sizeof(filler));
	log_capture();
	while ((result = program_filled(nand, block * 8, 1)) == 0)
		assert_true(block++ < geometry.blocks);
	assert_int_equal(result, -ENOSPC);
	assert_true(block > 4);
	assert_true(nand_host_is_full(nand));
	assert_non_null(strstr(log_captured(), "no space for block"));
	assert_int_equal(unlink(filler), 0);
	while (nand_host_is_full(nand))
		usleep(10000);
	assert_int_equal(program_filled(nand, block * 8, 1), 0);
	assert_int_equal(nand_close(nand), 0);
}

/* Stores to it must not want space later. */
static void test_holes_of_a_copied_nvram_are_filled_at_opening(void **state)
{
	struct test_directory *directory = mount_small(state, 2 << 20);
	struct nand *nand = create_image(directory);
	int fd;

	memset(nand_nvram(nand, NULL), 0, TEST_NVRAM_BYTES);
	assert_int_equal(nand_close(nand), 0);
	fd = open(directory->nvram, O_RDWR | O_CLOEXEC);
	assert_int_equal(
		fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4096, TEST_NVRAM_BYTES),
		0);
	assert_int_equal(lseek(fd, 0, SEEK_HOLE), 4096);
	nand = open_image_ok(directory);
	assert_int_equal(lseek(fd, 0, SEEK_HOLE), 4096 + TEST_NVRAM_BYTES);
	assert_int_equal(nand_close(nand), 0);
	close(fd);
}

static void test_creation_without_space_leaves_nothing(void **state)
{
	struct test_directory *directory = mount_small(state, 1 << 20);
	struct error_text error = { "" };

	assert_int_equal(nand_create(directory->image, &small_geometry, 2 << 20, &error), -ENOSPC);
	assert_non_null(strstr(error.text, "cannot reserve"));
	assert_non_null(strstr(error.text, "No space left"));
	assert_false(file_exists(directory->image));
	assert_false(file_exists(directory->nvram));
}

static void test_an_erase_gives_its_space_back(void **state)
{
	struct test_directory *directory = *state;
	struct nand *nand = create_image(directory);
	struct stat before, after;

	for (uint64_t page = 0; page < 128; page++)
		assert_int_equal(program_filled(nand, page, 1), 0);
	assert_int_equal(nand_sync(nand, 0, 16), 0);
	assert_int_equal(stat(directory->image, &before), 0);
	for (uint32_t block = 0; block < 16; block += 2)
		assert_int_equal(nand_erase(nand, NAND_CAUSE_USER, block), 0);
	assert_int_equal(nand_sync(nand, 0, 16), 0);
	assert_int_equal(stat(directory->image, &after), 0);
	for (uint64_t page = 8; page < 16; page++)
		assert_int_equal(read_filled(nand, page, 1), 0);
	assert_int_equal(nand_close(nand), 0);
	if (after.st_blocks == before.st_blocks)
		skip(); /* a file system without holes */
	/* Half of it, as holes cost the file system some bookkeeping. */
	assert_true((before.st_blocks - after.st_blocks) * 512 >= 8 * 8 * 4096 / 2);
}

#define IN_DIRECTORY(test) cmocka_unit_test_setup_teardown(test, directory_setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_DIRECTORY(test_a_full_file_system_fails_programs_and_nothing_else),
		IN_DIRECTORY(test_what_lies_beside_a_hole_can_be_programmed_on_a_full_drive),
		IN_DIRECTORY(test_a_full_file_system_fails_programs_where_space_is_kept),
		IN_DIRECTORY(test_a_copy_that_lost_its_space_fails_programs_and_nothing_else),
		IN_DIRECTORY(test_space_of_an_erased_block_serves_another),
		IN_DIRECTORY(test_a_full_file_system_leaves_a_reserve_and_says_so),
		IN_DIRECTORY(test_holes_of_a_copied_nvram_are_filled_at_opening),
		IN_DIRECTORY(test_creation_without_space_leaves_nothing),
		IN_DIRECTORY(test_an_erase_gives_its_space_back),
	};

	return RUN_ON_IMAGES(tests, group_setup, NULL);
}
