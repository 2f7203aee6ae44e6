/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Creation: what is made, and that a failed one leaves nothing. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/nand/fixture.h"

static int files_in(const char *directory)
{
	DIR *handle = opendir(directory);
	int files = 0;

	assert_non_null(handle);
	for (struct dirent *entry; (entry = readdir(handle)) != NULL;)
		files += entry->d_name[0] != '.';
	closedir(handle);
	return files;
}

static void assert_create_fails(const char *path, const struct nand_geometry *geometry,
				uint64_t nvram_bytes, int result, const char *fragment)
{
	struct error_text error = { "" };

	assert_int_equal(nand_create(path, geometry, nvram_bytes, &error), result);
	if (!strstr(error.text, fragment))
		fail_msg("\"%s\" is not in \"%s\"", fragment, error.text);
}

static void test_a_new_image_is_erased_its_nvram_zero(void **state)
{
	struct test_directory *directory = *state;
	struct nand *nand = create_image(directory);
	uint8_t zeroes[TEST_NVRAM_BYTES] = { 0 };
	uint64_t bytes;

	for (uint32_t block = 0; block < small_geometry.blocks; block++) {
		struct nand_block_info info;

		assert_int_equal(nand_block_info(nand, block, &info), 0);
		assert_int_equal(info.state, NAND_BLOCK_GOOD);
		assert_int_equal(info.next_page, 0);
		assert_int_equal(info.erase_count, 0);
	}
	for (uint64_t page = 0; page < nand->layout.pages; page++)
		assert_int_equal(read_filled(nand, page, 0), -ENODATA);
	assert_memory_equal(nand_nvram(nand, &bytes), zeroes, sizeof(zeroes));
	assert_int_equal(bytes, TEST_NVRAM_BYTES);
	assert_int_equal(nand_close(nand), 0);
}

static void test_nvram_may_be_empty(void **state)
{
	struct test_directory *directory = *state;
	uint64_t bytes = 1;
	struct nand *nand;

	assert_int_equal(nand_create(directory->image, &small_geometry, 0, NULL), 0);
	nand = open_image_ok(directory);
	assert_non_null(nand_nvram(nand, &bytes));
	assert_int_equal(bytes, 0);
	assert_int_equal(nand_nvram_sync(nand, 0, 0), 0);
	assert_int_equal(nand_nvram_sync(nand, 0, 1), -ERANGE);
	assert_int_equal(nand_close(nand), 0);
}

static void test_an_image_is_sparse_and_its_nvram_is_not(void **state)
{
	struct test_directory *directory = *state;
	struct nand_geometry geometry = nand_geometry_default(UINT64_C(1) << 30);
	struct stat image, nvram;

	assert_int_equal(nand_create(directory->image, &geometry, 1 << 20, NULL), 0);
	assert_int_equal(stat(directory->image, &image), 0);
	assert_int_equal(stat(directory->nvram, &nvram), 0);
	assert_true(image.st_size > 1 << 30);
	assert_true(image.st_blocks * 512 < 1 << 20);
	assert_int_equal(nvram.st_size, (1 << 20) + 4096);
	assert_true(nvram.st_blocks * 512 >= nvram.st_size);
}

static void test_two_images_differ(void **state)
{
	struct nand *one, *other;

	(void)state;
	assert_int_equal(nand_open_memory(&small_geometry, 0, &one, NULL), 0);
	assert_int_equal(nand_open_memory(&small_geometry, 0, &other, NULL), 0);
	assert_memory_not_equal(nand_uuid(one), nand_uuid(other), 16);
	assert_int_equal(nand_close(one), 0);
	assert_int_equal(nand_close(other), 0);
}

static void test_an_existing_file_is_never_touched(void **state)
{
	struct test_directory *directory = *state;
	uint32_t image_crc, nvram_crc;

	assert_int_equal(nand_close(create_image(directory)), 0);
	image_crc = file_crc(directory->image);
	nvram_crc = file_crc(directory->nvram);
	assert_create_fails(directory->image, &small_geometry, 0, -EEXIST, "image exists already");
	assert_int_equal(file_crc(directory->image), image_crc);
	assert_int_equal(file_crc(directory->nvram), nvram_crc);
	assert_int_equal(unlink(directory->image), 0);
	assert_create_fails(directory->image, &small_geometry, 0, -EEXIST,
			    "image.nvram exists already");
	assert_false(file_exists(directory->image));
	assert_int_equal(file_crc(directory->nvram), nvram_crc);
}

static void test_bad_arguments_leave_nothing(void **state)
{
	struct test_directory *directory = *state;
	struct nand_geometry bad = small_geometry;
	char path[128];

	bad.page_bytes = 4000;
	assert_create_fails(directory->image, &bad, 0, -EINVAL, "must be a power of two");
	assert_create_fails(directory->image, &small_geometry, UINT64_MAX, -EINVAL,
			    "bytes of NVRAM are too many");
	snprintf(path, sizeof(path), "%s/none/image", directory->directory);
	assert_create_fails(path, &small_geometry, 0, -ENOENT, "cannot create");
	assert_int_equal(files_in(directory->directory), 0);
}

/*
 * Runs a creation under a limit on the size of files, so that it fails where the limit is reached.
 */
static void create_under_limit(const struct test_directory *directory, uint64_t limit,
			       uint64_t nvram_bytes, const char *fragment)
{
	struct rlimit before, now;

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	now = before;
	now.rlim_cur = limit;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &now), 0);
	assert_create_fails(directory->image, &small_geometry, nvram_bytes, -EFBIG, fragment);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(files_in(directory->directory), 0);
}

static void test_a_failure_at_any_step_leaves_nothing(void **state)
{
	struct test_directory *directory = *state;
	struct nand_layout layout = nand_layout_of(&small_geometry);

	create_under_limit(directory, 0, 0, "write the superblock");
	create_under_limit(directory, NAND_SUPERBLOCK_SPACING, 0, "write the superblock");
	create_under_limit(directory, layout.image_bytes - 1, 0, "bytes long");
	create_under_limit(directory, layout.image_bytes, layout.image_bytes, "cannot reserve");
}

/*
 * A crash is the end of the process at any point, so every prefix of what nand_create does must be
 * refused.
 */
static void test_what_is_left_of_a_half_made_image_is_refused(void **state)
{
	struct test_directory *directory = *state;
	struct nand_superblock superblock = { .state = NAND_IMAGE_CREATING,
					      .geometry = small_geometry };
	uint8_t bytes[NAND_HEADER_BYTES];
	int fd = open(directory->image, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	static const char *const interrupted[] = { "its creation was interrupted", NULL };

	assert_true(fd >= 0);
	close(fd);
	assert_open_fails(directory, -EINVAL, interrupted);
	nand_superblock_encode(&superblock, bytes);
	file_write(directory->image, 0, bytes, sizeof(bytes));
	assert_open_fails(directory, -EINVAL, interrupted);
	file_write(directory->image, NAND_SUPERBLOCK_SPACING, bytes, sizeof(bytes));
	assert_open_fails(directory, -EINVAL, interrupted);
	assert_int_equal(
		truncate(directory->image, (off_t)nand_layout_of(&small_geometry).image_bytes), 0);
	assert_open_fails(directory, -EINVAL, interrupted);
}

static void test_a_small_file_system_is_warned_of(void **state)
{
	struct test_directory *directory = *state;
	struct nand_geometry geometry = nand_geometry_default(UINT64_C(8) << 40);
	const uint64_t nvram_bytes = 8 << 20;
	struct error_text error = { "" };
	char takes[64];

	log_capture();
	if (nand_create(directory->image, &geometry, nvram_bytes, &error) < 0) {
		/* File systems that cannot hold such a sparse file say so. */
		assert_non_null(strstr(error.text, "bytes long"));
		skip();
	}
	snprintf(takes, sizeof(takes), "when full it takes %llu MiB,",
		 (unsigned long long)(nand_layout_of(&geometry).image_bytes + nvram_bytes) >> 20);
	assert_non_null(strstr(log_captured(), takes));
}

static void remove_nvram(const struct test_directory *directory)
{
	assert_int_equal(unlink(directory->nvram), 0);
}

static void test_a_lost_nvram_file_is_made_anew(void **state)
{
	struct test_directory *directory = *state;
	struct nand *nand = create_image(directory);
	uint8_t zeroes[TEST_NVRAM_BYTES] = { 0 };
	uint64_t bytes;

	assert_int_equal(program_filled(nand, 0, 7), 0);
	memset(nand_nvram(nand, &bytes), 0xFF, TEST_NVRAM_BYTES);
	assert_int_equal(nand_close(nand), 0);
	assert_int_equal(nand_create_nvram(directory->image, NULL), -EEXIST);

	remove_nvram(directory);
	assert_int_equal(nand_create_nvram(directory->image, NULL), 0);
	assert_int_equal(files_in(directory->directory), 2);
	nand = open_image_ok(directory);
	assert_memory_equal(nand_nvram(nand, &bytes), zeroes, sizeof(zeroes));
	assert_int_equal(read_filled(nand, 0, 7), 0);

	remove_nvram(directory);
	assert_int_equal(nand_create_nvram(directory->image, NULL), -EBUSY);
	assert_int_equal(nand_close(nand), 0);
}

/* ---- NVRAM elsewhere ---- */

/* A link to a file in a folder of its own beside the image; `elsewhere`: that file. */
static void link_nvram(const struct test_directory *directory, bool relative, char elsewhere[256])
{
	char folder[200];

	snprintf(folder, sizeof(folder), "%s/fast", directory->directory);
	assert_true(mkdir(folder, 0700) == 0 || errno == EEXIST);
	snprintf(elsewhere, 256, "%s/nvram", folder);
	assert_int_equal(symlink(relative ? "fast/nvram" : elsewhere, directory->nvram), 0);
}

static void remove_elsewhere(const struct test_directory *directory, const char *elsewhere)
{
	char folder[200];

	snprintf(folder, sizeof(folder), "%s/fast", directory->directory);
	assert_int_equal(unlink(elsewhere), 0);
	assert_int_equal(rmdir(folder), 0);
}

static void test_nvram_is_where_a_link_leads(void **state)
{
	struct test_directory *directory = *state;
	uint8_t sevens[TEST_NVRAM_BYTES];
	char elsewhere[256], *file;
	struct nand *nand;
	uint64_t bytes;

	memset(sevens, 7, sizeof(sevens));
	for (int relative = 0; relative < 2; relative++) {
		link_nvram(directory, relative, elsewhere);
		file = nand_nvram_path(directory->image);
		assert_string_equal(file, elsewhere);
		free(file);
		nand = create_image(directory);
		assert_true(file_exists(elsewhere));
		memcpy(nand_nvram(nand, &bytes), sevens, sizeof(sevens));
		assert_int_equal(nand_close(nand), 0);
		nand = open_image_ok(directory);
		assert_memory_equal(nand_nvram(nand, &bytes), sevens, sizeof(sevens));
		assert_int_equal(nand_close(nand), 0);
		remove_elsewhere(directory, elsewhere);
		assert_int_equal(unlink(directory->nvram), 0);
		assert_int_equal(unlink(directory->image), 0);
	}
}

static void test_what_is_wrong_where_a_link_leads_is_said_of_that_file(void **state)
{
	struct test_directory *directory = *state;
	struct error_text error;
	char elsewhere[256], own[256];
	struct nand *nand;

	link_nvram(directory, false, elsewhere);
	assert_int_equal(nand_close(create_image(directory)), 0);
	/* Taken by another image. */
	snprintf(own, sizeof(own), "%s.own", directory->image);
	assert_int_equal(rename(directory->image, own), 0);
	assert_create_fails(directory->image, &small_geometry, 0, -EEXIST,
			    "fast/nvram exists already");
	assert_int_equal(rename(own, directory->image), 0);
	/* Lost. */
	assert_int_equal(unlink(elsewhere), 0);
	assert_int_equal(nand_open(directory->image, &nand, &error), -EINVAL);
	assert_non_null(strstr(error.text, "fast/nvram is missing: it belongs to"));
	assert_int_equal(nand_create_nvram(directory->image, NULL), 0);
	assert_true(file_exists(elsewhere));
	nand = open_image_ok(directory);
	assert_int_equal(nand_close(nand), 0);
	remove_elsewhere(directory, elsewhere);
	/* Nor can its folder be made. */
	assert_int_equal(nand_create_nvram(directory->image, &error), -ENOENT);
	assert_non_null(strstr(error.text, "fast/nvram"));
}

#define NOBODY 65534

static uid_t owner_of(const char *path)
{
	struct stat status;

	assert_int_equal(lstat(path, &status), 0);
	assert_int_equal(status.st_uid, status.st_gid);
	return status.st_uid;
}

/* The image's folder belongs to a user, who has made a link to where only root may write. */
static void test_root_makes_nothing_where_the_link_of_a_user_leads(void **state)
{
	struct test_directory *directory = *state;
	struct error_text error = { "" };
	char elsewhere[256], folder[200];
	struct nand *nand;

	if (geteuid() != 0)
		skip();
	assert_int_equal(chown(directory->directory, NOBODY, NOBODY), 0);
	link_nvram(directory, false, elsewhere);
	snprintf(folder, sizeof(folder), "%s/fast", directory->directory);
	assert_int_equal(lchown(directory->nvram, NOBODY, NOBODY), 0);
	assert_create_fails(directory->image, &small_geometry, 0, -EPERM,
			    "image.nvram is a link of the user 65534");
	assert_false(file_exists(directory->image));
	assert_int_equal(files_in(folder), 0);
	/* Nor is it made anew there. What the service has made there opens. */
	assert_int_equal(lchown(directory->nvram, 0, 0), 0);
	nand = create_image(directory);
	assert_int_equal(nand_close(nand), 0);
	assert_int_equal(lchown(directory->nvram, NOBODY, NOBODY), 0);
	assert_int_equal(nand_close(open_image_ok(directory)), 0);
	remove_elsewhere(directory, elsewhere);
	assert_int_equal(mkdir(folder, 0700), 0);
	assert_int_equal(nand_create_nvram(directory->image, &error), -EPERM);
	assert_non_null(strstr(error.text, "image.nvram is a link of the user 65534"));
	assert_int_equal(files_in(folder), 0);
	assert_int_equal(rmdir(folder), 0);
}

static void test_what_root_makes_where_its_own_link_leads_is_the_folders_owners(void **state)
{
	struct test_directory *directory = *state;
	char elsewhere[256], folder[200];

	if (geteuid() != 0)
		skip();
	assert_int_equal(chown(directory->directory, NOBODY, NOBODY), 0);
	link_nvram(directory, true, elsewhere);
	snprintf(folder, sizeof(folder), "%s/fast", directory->directory);
	assert_int_equal(chown(folder, NOBODY - 1, NOBODY - 1), 0);
	assert_int_equal(nand_close(create_image(directory)), 0);
	assert_int_equal(owner_of(directory->image), NOBODY);
	assert_int_equal(owner_of(elsewhere), NOBODY - 1);
	assert_int_equal(unlink(elsewhere), 0);
	assert_int_equal(nand_create_nvram(directory->image, NULL), 0);
	assert_int_equal(owner_of(elsewhere), NOBODY - 1);
	assert_int_equal(nand_close(open_image_ok(directory)), 0);
	remove_elsewhere(directory, elsewhere);
}

/* A process of another user follows any link: it can make nothing that its user could not. */
static void test_who_is_not_root_makes_the_nvram_where_the_link_of_root_leads(void **state)
{
	struct test_directory *directory = *state;
	char elsewhere[256], folder[200];
	struct error_text error = { "" };
	int result;

	if (geteuid() != 0)
		skip();
	assert_int_equal(chown(directory->directory, NOBODY, NOBODY), 0);
	link_nvram(directory, false, elsewhere);
	snprintf(folder, sizeof(folder), "%s/fast", directory->directory);
	assert_int_equal(chown(folder, NOBODY, NOBODY), 0);
	assert_int_equal(setegid(NOBODY), 0);
	assert_int_equal(seteuid(NOBODY), 0);
	result = nand_create(directory->image, &small_geometry, 0, &error);
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(setegid(0), 0);
	assert_string_equal(error.text, "");
	assert_int_equal(result, 0);
	assert_int_equal(owner_of(elsewhere), NOBODY);
	remove_elsewhere(directory, elsewhere);
}

static void test_no_nvram_file_is_made_for_what_is_no_image(void **state)
{
	struct test_directory *directory = *state;
	struct error_text error = { "" };

	assert_int_equal(nand_create_nvram(directory->image, &error), -ENOENT);
	assert_int_equal(nand_close(create_image(directory)), 0);
	remove_nvram(directory);
	assert_int_equal(truncate(directory->image, 0), 0);
	assert_int_equal(nand_create_nvram(directory->image, &error), -EINVAL);
	assert_non_null(strstr(error.text, "no complete Muninn image"));
	assert_int_equal(files_in(directory->directory), 1);
}

#define IN_DIRECTORY(test) \
	cmocka_unit_test_setup_teardown(test, directory_setup, directory_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_DIRECTORY(test_a_new_image_is_erased_its_nvram_zero),
		IN_DIRECTORY(test_nvram_may_be_empty),
		IN_DIRECTORY(test_an_image_is_sparse_and_its_nvram_is_not),
		cmocka_unit_test(test_two_images_differ),
		IN_DIRECTORY(test_an_existing_file_is_never_touched),
		IN_DIRECTORY(test_bad_arguments_leave_nothing),
		IN_DIRECTORY(test_a_failure_at_any_step_leaves_nothing),
		IN_DIRECTORY(test_what_is_left_of_a_half_made_image_is_refused),
		IN_DIRECTORY(test_a_small_file_system_is_warned_of),
		IN_DIRECTORY(test_a_lost_nvram_file_is_made_anew),
		IN_DIRECTORY(test_nvram_is_where_a_link_leads),
		IN_DIRECTORY(test_what_is_wrong_where_a_link_leads_is_said_of_that_file),
		IN_DIRECTORY(test_root_makes_nothing_where_the_link_of_a_user_leads),
		IN_DIRECTORY(test_what_root_makes_where_its_own_link_leads_is_the_folders_owners),
		IN_DIRECTORY(test_who_is_not_root_makes_the_nvram_where_the_link_of_root_leads),
		IN_DIRECTORY(test_no_nvram_file_is_made_for_what_is_no_image),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
