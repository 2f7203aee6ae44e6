/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * A copy of an image that is in use has what the device had at one instant, whatever is erased and
 * programmed until it is complete; what goes wrong with it does the device no harm.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "nand/image_copy.h"
#include "nand/private.h"
#include "tests/nand/fixture.h"

enum { BLOCK_PAGES = 8, BLOCKS = 16, OLD = 1, NEW = 2 };

/* A device with an image, and the two files of a copy. */
struct scene {
	struct test_directory *directory;
	struct nand *nand;
	char image[128], nvram[128];
	int image_fd, nvram_fd;
};

static int open_empty(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	return fd;
}

static struct crowd *_Atomic crowd; /* see pread */

static void scene_begin(struct scene *scene, void **state)
{
	crowd = NULL; /* of a test that failed */
	scene->directory = *state;
	scene->nand = create_image(scene->directory);
	snprintf(scene->image, sizeof(scene->image), "%s/copy", scene->directory->directory);
	snprintf(scene->nvram, sizeof(scene->nvram), "%s/copy.nvram", scene->directory->directory);
	scene->image_fd = open_empty(scene->image);
	scene->nvram_fd = open_empty(scene->nvram);
}

static void scene_end(struct scene *scene)
{
	close(scene->image_fd);
	close(scene->nvram_fd);
	assert_int_equal(nand_close(scene->nand), 0);
	unlink(scene->image);
	unlink(scene->nvram);
}

static void program_block(struct nand *nand, uint32_t block, uint32_t pages, uint32_t generation)
{
	for (uint32_t page = 0; page < pages; page++)
		assert_int_equal(program_filled(nand, block * BLOCK_PAGES + page, generation), 0);
}

static void program_anew(struct nand *nand, uint32_t block, uint32_t generation)
{
	assert_int_equal(nand_erase(nand, NAND_CAUSE_USER, block), 0);
	program_block(nand, block, BLOCK_PAGES, generation);
}

static struct nand_image_copy *open_copy(const struct scene *scene,
					 const struct nand_image_copy_options *options)
{
	struct nand_image_copy *copy;
	struct error_text error = { "" };

	if (nand_image_copy_open(scene->nand, scene->image_fd, scene->nvram_fd, options, &copy,
				 &error))
		fail_msg("%s", error.text);
	return copy;
}

/* At the instant: the NVRAM as it is now. */
static void begin_copy(const struct scene *scene, struct nand_image_copy *copy)
{
	uint64_t bytes;
	const void *nvram = nand_nvram(scene->nand, &bytes);

	memcpy(nand_image_copy_nvram(copy), nvram, bytes);
	nand_image_copy_begin(copy);
}

static void complete(struct nand_image_copy *copy)
{
	struct error_text error = { "" };
	uint64_t done, total;
	int result;

	while ((result = nand_image_copy_step(copy, &error)) > 0)
		;
	if (result)
		fail_msg("%s", error.text);
	nand_image_copy_progress(copy, &done, &total);
	assert_int_equal(done, total);
	nand_image_copy_close(copy);
}

static struct nand *open_result(const struct scene *scene)
{
	struct error_text error = { "" };
	struct nand *nand;

	if (nand_open(scene->image, &nand, &error))
		fail_msg("%s", error.text);
	return nand;
}

static void assert_block(struct nand *nand, uint32_t block, uint32_t pages, uint32_t generation)
{
	struct nand_block_info info;

	assert_int_equal(nand_block_info(nand, block, &info), 0);
	assert_int_equal(info.next_page, pages);
	for (uint32_t page = 0; page < pages; page++)
		assert_int_equal(read_filled(nand, block * BLOCK_PAGES + page, generation), 0);
}

static void test_a_copy_has_what_the_device_had_at_the_instant(void **state)
{
	struct nand_image_copy *copy;
	struct scene scene;
	struct nand *result;
	uint8_t *nvram;

	scene_begin(&scene, state);
	nvram = nand_nvram(scene.nand, NULL);
	memset(nvram, OLD, TEST_NVRAM_BYTES);
	program_block(scene.nand, 0, BLOCK_PAGES, OLD);
	program_block(scene.nand, 1, 3, OLD);
	program_block(scene.nand, BLOCKS - 1, BLOCK_PAGES, OLD);
	copy = open_copy(&scene, NULL);
	begin_copy(&scene, copy);
	/* Programmed on, erased, programmed anew, and for the first time. */
	memset(nvram, NEW, TEST_NVRAM_BYTES);
	assert_int_equal(program_filled(scene.nand, BLOCK_PAGES + 3, NEW), 0);
	program_anew(scene.nand, 0, NEW);
	assert_int_equal(nand_erase(scene.nand, NAND_CAUSE_USER, BLOCKS - 1), 0);
	program_block(scene.nand, 2, BLOCK_PAGES, NEW);
	complete(copy);
	assert_block(scene.nand, 0, BLOCK_PAGES, NEW);

	result = open_result(&scene);
	assert_block(result, 0, BLOCK_PAGES, OLD);
	assert_block(result, 1, 3, OLD);
	assert_block(result, 2, 0, OLD);
	assert_block(result, BLOCKS - 1, BLOCK_PAGES, OLD);
	assert_int_equal(((uint8_t *)nand_nvram(result, NULL))[TEST_NVRAM_BYTES - 1], OLD);
	/* What it has not it can take. */
	assert_int_equal(program_filled(result, BLOCK_PAGES + 3, OLD), 0);
	assert_block(result, 1, 4, OLD);
	assert_int_equal(nand_close(result), 0);
	scene_end(&scene);
}

static void test_a_copy_has_holes_where_nothing_is_programmed(void **state)
{
	struct nand_image_copy *copy;
	struct scene scene;
	struct stat status;
	uint64_t data;

	scene_begin(&scene, state);
	program_block(scene.nand, 3, BLOCK_PAGES, OLD);
	program_block(scene.nand, 9, BLOCK_PAGES, OLD);
	assert_int_equal(nand_erase(scene.nand, NAND_CAUSE_USER, 9), 0);
	copy = open_copy(&scene, NULL);
	begin_copy(&scene, copy);
	complete(copy);
	data = scene.nand->layout.data_offset;
	assert_int_equal(fstat(scene.image_fd, &status), 0);
	assert_int_equal(status.st_size, scene.nand->layout.image_bytes);
	assert_int_equal(lseek(scene.image_fd, (off_t)data, SEEK_DATA),
			 data + 3 * scene.nand->layout.block_stride);
	assert_int_equal(lseek(scene.image_fd, (off_t)(data + 4 * scene.nand->layout.block_stride),
			       SEEK_DATA),
			 -1);
	scene_end(&scene);
}

/* Its block table stands behind the blocks of its creation, and the new blocks behind that. */
static void test_a_device_that_has_grown_is_copied_with_its_new_blocks(void **state)
{
	const struct nand_growth growth = { .blocks = 2 * BLOCKS, .nvram_bytes = TEST_NVRAM_BYTES };
	struct error_text error = { "" };
	struct nand_image_copy *copy;
	struct scene scene;
	struct nand *result;

	scene_begin(&scene, state);
	program_block(scene.nand, BLOCKS - 1, BLOCK_PAGES, OLD);
	if (nand_grow(scene.nand, &growth, &error))
		fail_msg("%s", error.text);
	assert_int_equal(nand_close(scene.nand), 0);
	scene.nand = open_image_ok(scene.directory);
	program_block(scene.nand, BLOCKS, BLOCK_PAGES, OLD);
	program_block(scene.nand, 2 * BLOCKS - 1, 3, OLD);
	copy = open_copy(&scene, NULL);
	begin_copy(&scene, copy);
	program_anew(scene.nand, BLOCKS, NEW);
	complete(copy);
	result = open_result(&scene);
	assert_block(result, BLOCKS - 1, BLOCK_PAGES, OLD);
	assert_block(result, BLOCKS, BLOCK_PAGES, OLD);
	assert_block(result, 2 * BLOCKS - 1, 3, OLD);
	assert_block(result, BLOCKS + 1, 0, OLD);
	assert_int_equal(nand_close(result), 0);
	scene_end(&scene);
}

static void test_who_erases_goes_on_when_the_copy_takes_nothing(void **state)
{
	const struct nand_image_copy_options options = { .kept_bytes = 1, .wait_ms = 1 };
	struct error_text error = { "" };
	struct nand_image_copy *copy;
	struct scene scene;

	scene_begin(&scene, state);
	for (uint32_t block = 0; block < 4; block++)
		program_block(scene.nand, block, BLOCK_PAGES, OLD);
	copy = open_copy(&scene, &options);
	begin_copy(&scene, copy);
	/* Two have a place, the third waits in vain. */
	for (uint32_t block = 0; block < 4; block++)
		program_anew(scene.nand, block, NEW);
	assert_int_equal(nand_image_copy_step(copy, &error), -ETIMEDOUT);
	assert_non_null(strstr(error.text, "too slowly"));
	nand_image_copy_close(copy);
	for (uint32_t block = 0; block < 4; block++)
		assert_block(scene.nand, block, BLOCK_PAGES, NEW);
	scene_end(&scene);
}

/* Also while other things than blocks are copied. */
static void test_each_step_makes_room_for_what_is_erased(void **state)
{
	const struct nand_image_copy_options options = { .kept_bytes = 1, .wait_ms = 1 };
	struct error_text error = { "" };
	struct nand_image_copy *copy;
	struct nand *result;
	struct scene scene;

	scene_begin(&scene, state);
	for (uint32_t block = 0; block < 4; block++)
		program_block(scene.nand, block, BLOCK_PAGES, OLD);
	copy = open_copy(&scene, &options);
	begin_copy(&scene, copy);
	for (uint32_t block = 0; block < 4; block += 2) {
		program_anew(scene.nand, block, NEW);
		program_anew(scene.nand, block + 1, NEW);
		assert_int_equal(nand_image_copy_step(copy, &error), 1);
	}
	complete(copy);
	result = open_result(&scene);
	for (uint32_t block = 0; block < 4; block++)
		assert_block(result, block, BLOCK_PAGES, OLD);
	assert_int_equal(nand_close(result), 0);
	scene_end(&scene);
}

static void test_a_copy_that_ends_early_leaves_the_device_to_the_next_one(void **state)
{
	const struct nand_image_copy_options options = { .kept_bytes = 1, .wait_ms = 1 };
	struct nand_image_copy *copy;
	struct nand *result;
	struct scene scene;

	scene_begin(&scene, state);
	for (uint32_t block = 0; block < 4; block++)
		program_block(scene.nand, block, BLOCK_PAGES, OLD);
	copy = open_copy(&scene, &options);
	begin_copy(&scene, copy);
	nand_image_copy_close(copy);
	for (uint32_t block = 0; block < 4; block++)
		program_anew(scene.nand, block, NEW);
	assert_int_equal(ftruncate(scene.image_fd, 0), 0);
	assert_int_equal(ftruncate(scene.nvram_fd, 0), 0);
	copy = open_copy(&scene, NULL);
	begin_copy(&scene, copy);
	complete(copy);
	result = open_result(&scene);
	for (uint32_t block = 0; block < 4; block++)
		assert_block(result, block, BLOCK_PAGES, NEW);
	assert_int_equal(nand_close(result), 0);
	scene_end(&scene);
}

static void assert_refused(struct nand *nand, int image_fd, int nvram_fd, int result,
			   const char *reason)
{
	struct error_text error = { "" };
	struct nand_image_copy *copy;

	assert_int_equal(nand_image_copy_open(nand, image_fd, nvram_fd, NULL, &copy, &error),
			 result);
	assert_null(copy);
	if (!strstr(error.text, reason))
		fail_msg("\"%s\" is not in \"%s\"", reason, error.text);
}

static void test_wrong_files_are_refused(void **state)
{
	struct scene scene;
	int other;

	scene_begin(&scene, state);
	other = open(scene.directory->image, O_RDWR | O_CLOEXEC);
	assert_refused(scene.nand, other, scene.nvram_fd, -EINVAL, "empty");
	close(other);
	other = open("/dev/null", O_RDWR | O_CLOEXEC);
	assert_refused(scene.nand, scene.image_fd, other, -EINVAL, "regular");
	close(other);
	other = open(scene.nvram, O_RDONLY | O_CLOEXEC);
	assert_refused(scene.nand, scene.image_fd, other, -EINVAL, "open for writing");
	close(other);
	other = open(scene.image, O_RDWR | O_APPEND | O_CLOEXEC);
	assert_refused(scene.nand, other, scene.nvram_fd, -EINVAL, "appending");
	close(other);
	other = open(scene.image, O_RDWR | O_CLOEXEC);
	assert_refused(scene.nand, scene.image_fd, other, -EINVAL, "two files");
	close(other);
	scene_end(&scene);
}

static void test_a_device_in_memory_has_nothing_to_copy(void **state)
{
	struct error_text error = { "" };
	struct nand *nand;

	(void)state;
	assert_int_equal(nand_open_memory(&small_geometry, TEST_NVRAM_BYTES, &nand, &error), 0);
	assert_refused(nand, -1, -1, -EOPNOTSUPP, "no image");
	nand_close(nand);
}

/* As a full file system: what is written beyond a limit fails. */
static void test_what_can_not_be_written_ends_the_copy_with_the_reason(void **state)
{
	struct error_text error = { "" };
	struct rlimit before, small;
	struct nand_image_copy *copy;
	struct scene scene;
	int result;

	scene_begin(&scene, state);
	for (uint32_t block = 0; block < 4; block++)
		program_block(scene.nand, block, BLOCK_PAGES, OLD);
	copy = open_copy(&scene, NULL);
	begin_copy(&scene, copy);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	small = (struct rlimit){ .rlim_cur = scene.nand->layout.data_offset + 1000,
				 .rlim_max = before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	while ((result = nand_image_copy_step(copy, &error)) > 0)
		;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	signal(SIGXFSZ, SIG_DFL);
	assert_int_equal(result, -EFBIG);
	assert_non_null(strstr(error.text, "can't be written"));
	nand_image_copy_close(copy);
	program_anew(scene.nand, 0, NEW);
	scene_end(&scene);
}

/* Files whose next call of the kind fails. */
static int failing_range = -1, failing_sync = -1;

/* In the place of the C library's: the drive tells of an error once, as Linux does. */
int sync_file_range(int fd, off_t offset, off_t bytes, unsigned int flags)
{
	if (fd < 0 || fd != failing_range)
		return (int)syscall(SYS_sync_file_range, fd, offset, bytes, flags);
	failing_range = -1;
	errno = EIO;
	return -1;
}

int fsync(int fd)
{
	if (fd < 0 || fd != failing_sync)
		return (int)syscall(SYS_fsync, fd);
	failing_sync = -1;
	errno = EIO;
	return -1;
}

static void check_ends(const struct scene *scene, int *failing, int fd)
{
	struct error_text error = { "" };
	struct nand_image_copy *copy;
	int result;

	assert_int_equal(ftruncate(scene->image_fd, 0), 0);
	assert_int_equal(ftruncate(scene->nvram_fd, 0), 0);
	copy = open_copy(scene, NULL);
	begin_copy(scene, copy);
	*failing = fd;
	while ((result = nand_image_copy_step(copy, &error)) > 0)
		;
	assert_int_equal(*failing, -1);
	assert_int_equal(result, -EIO);
	assert_non_null(strstr(error.text, "can't be written"));
	nand_image_copy_close(copy);
}

static void test_what_does_not_reach_the_drive_ends_the_copy(void **state)
{
	struct scene scene;

	scene_begin(&scene, state);
	program_block(scene.nand, 0, BLOCK_PAGES, OLD);
	check_ends(&scene, &failing_range, scene.image_fd);
	check_ends(&scene, &failing_sync, scene.image_fd);
	check_ends(&scene, &failing_sync, scene.nvram_fd);
	scene_end(&scene);
}

/* Nobody knows how many pages it has, and salvage looks at all of them. */
static void test_all_of_a_block_whose_word_is_damaged_is_copied(void **state)
{
	const uint64_t damaged = UINT64_C(0x5a5a5a5a5a5a5a5a);
	uint8_t *bytes, *copied;
	struct nand_image_copy *copy;
	struct scene scene;
	uint64_t length;
	off_t at;

	scene_begin(&scene, state);
	program_block(scene.nand, 1, BLOCK_PAGES, OLD);
	assert_int_equal(nand_sync(scene.nand, 1, 1), 0);
	at = (off_t)nand_block_offset(&scene.nand->layout, 1);
	length = BLOCK_PAGES * scene.nand->layout.page_stride;
	assert_int_equal(pwrite(scene.nand->image_fd, &damaged, sizeof(damaged),
				(off_t)(scene.nand->layout.table_offset + sizeof(damaged))),
			 sizeof(damaged));
	copy = open_copy(&scene, NULL);
	begin_copy(&scene, copy);
	complete(copy);
	bytes = malloc(length);
	copied = malloc(length);
	assert_true(bytes && copied);
	assert_int_equal(pread(scene.nand->image_fd, bytes, length, at), length);
	assert_int_equal(pread(scene.image_fd, copied, length, at), length);
	assert_memory_equal(copied, bytes, length);
	free(bytes);
	free(copied);
	scene_end(&scene);
}

/* ---- beside others ---- */

struct rewriting {
	struct nand *nand;
	uint32_t rounds;
};

static void *rewrite_blocks(void *context)
{
	struct rewriting *rewriting = context;

	for (uint32_t round = 0; round < rewriting->rounds; round++)
		for (uint32_t block = BLOCKS; block-- > 0;)
			program_anew(rewriting->nand, block, NEW + round);
	return NULL;
}

static void test_blocks_that_are_rewritten_beside_the_copy_are_in_it_as_they_were(void **state)
{
	/* So few places that who erases has to wait for steps. */
	const struct nand_image_copy_options options = { .kept_bytes = 1, .wait_ms = 60000 };
	struct rewriting rewriting = { .rounds = 3 };
	struct nand_image_copy *copy;
	struct nand *result;
	struct scene scene;
	pthread_t thread;

	scene_begin(&scene, state);
	for (uint32_t block = 0; block < BLOCKS; block++)
		program_block(scene.nand, block, BLOCK_PAGES, OLD);
	copy = open_copy(&scene, &options);
	begin_copy(&scene, copy);
	rewriting.nand = scene.nand;
	assert_int_equal(pthread_create(&thread, NULL, rewrite_blocks, &rewriting), 0);
	complete(copy);
	assert_int_equal(pthread_join(thread, NULL), 0);
	result = open_result(&scene);
	for (uint32_t block = 0; block < BLOCKS; block++)
		assert_block(result, block, BLOCK_PAGES, OLD);
	assert_int_equal(nand_close(result), 0);
	scene_end(&scene);
}

/* ---- at one moment of another ---- */

/* A thread beside the test's: it erases and programs a block, or completes a copy. */
struct beside {
	struct scene *scene;
	struct nand_image_copy *copy; /* NULL: a block */
	uint32_t block;
	pthread_t thread;
	_Atomic pid_t id;
	_Atomic bool done;
	int result;
};

static void *run_beside(void *context)
{
	struct beside *beside = context;
	struct error_text error;

	beside->id = gettid();
	if (!beside->copy)
		program_anew(beside->scene->nand, beside->block, NEW);
	else
		while ((beside->result = nand_image_copy_step(beside->copy, &error)) > 0)
			;
	beside->done = true;
	return NULL;
}

static bool sleeps(pid_t thread)
{
	char path[64], state = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)thread);
	file = fopen(path, "re");
	if (!file)
		return false;
	if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
		state = 0;
	fclose(file);
	return state == 'S';
}

/* Starts it, and returns when it waits for somebody, or has nothing left to do. */
static void start_beside(struct beside *beside)
{
	assert_int_equal(pthread_create(&beside->thread, NULL, run_beside, beside), 0);
	while (!beside->done && !(beside->id && sleeps(beside->id)))
		sched_yield();
}

/* Who begins when the image is read there; NULL: nobody. */
static struct {
	_Atomic(struct beside *) who;
	_Atomic off_t at;
} moment;

/* Three who erase, before the copy's thread reads a block: see where this is set. */
static struct crowd {
	struct beside beside[3]; /* the first two have all places; the third one waits for one */
	off_t blocks[BLOCKS];
	_Atomic bool holds; /* the first two, until they are let go */
} * _Atomic crowd;

static void wait_until_done(const struct beside *beside)
{
	while (!beside->done)
		sched_yield();
}

static void lead(struct crowd *led, off_t offset)
{
	const struct timespec rest = { .tv_nsec = 100000 };

	while (led->holds && offset >= led->blocks[BLOCKS - 2])
		nanosleep(&rest, NULL);
	if (offset == led->blocks[0]) {
		led->holds = false;
		for (int n = 0; n < 2; n++)
			wait_until_done(&led->beside[n]);
	}
	/* What they kept has been written before that. */
	if (offset == led->blocks[1])
		wait_until_done(&led->beside[2]);
}

/* In the place of the C library's. */
ssize_t pread(int fd, void *to, size_t bytes, off_t offset)
{
	struct beside *who = offset == moment.at ? atomic_exchange(&moment.who, NULL) : NULL;

	if (who)
		start_beside(who);
	if (crowd)
		lead(crowd, offset);
	return syscall(SYS_pread64, fd, to, bytes, offset);
}

/* A copy whose next reading of the block starts `beside`. */
static struct nand_image_copy *copy_to_moment(struct scene *scene, void **state,
					      struct beside *beside)
{
	struct nand_image_copy *copy;

	scene_begin(scene, state);
	program_block(scene->nand, beside->block, BLOCK_PAGES, OLD);
	copy = open_copy(scene, NULL);
	begin_copy(scene, copy);
	beside->scene = scene;
	moment.at = (off_t)nand_block_offset(&scene->nand->layout, beside->block);
	moment.who = beside;
	return copy;
}

static void check_old_in_copy(struct scene *scene, const struct beside *beside)
{
	struct nand *result = open_result(scene);

	assert_null(moment.who);
	assert_block(scene->nand, beside->block, BLOCK_PAGES, NEW);
	assert_block(result, beside->block, BLOCK_PAGES, OLD);
	assert_int_equal(nand_close(result), 0);
	scene_end(scene);
}

/* For a device that reads by other calls: nobody has begun. */
static void begin_at_last(void)
{
	struct beside *who = atomic_exchange(&moment.who, NULL);

	if (who)
		start_beside(who);
}

static void test_who_erases_what_a_step_reads_waits_for_it(void **state)
{
	struct beside beside = { .block = 3 };
	struct scene scene;
	struct nand_image_copy *copy = copy_to_moment(&scene, state, &beside);

	complete(copy);
	begin_at_last();
	assert_int_equal(pthread_join(beside.thread, NULL), 0);
	check_old_in_copy(&scene, &beside);
}

/* He has no place yet when a step comes to the block, and needs none when there is one. */
static void test_what_a_step_copies_while_who_erases_waits_for_a_place_is_copied_once(void **state)
{
	const struct nand_image_copy_options options = { .kept_bytes = 1, .wait_ms = UINT32_MAX };
	const uint32_t erased[3] = { BLOCKS - 2, BLOCKS - 1, 0 };
	struct crowd led = { .holds = true };
	struct error_text error = { "" };
	struct nand_image_copy *copy;
	struct nand *result;
	struct scene scene;

	scene_begin(&scene, state);
	for (uint32_t block = 0; block < BLOCKS; block++) {
		program_block(scene.nand, block, BLOCK_PAGES, OLD);
		led.blocks[block] = (off_t)nand_block_offset(&scene.nand->layout, block);
	}
	copy = open_copy(&scene, &options);
	begin_copy(&scene, copy);
	/* All but blocks. */
	for (int step = 0; step < 2; step++)
		assert_int_equal(nand_image_copy_step(copy, &error), 1);
	crowd = &led;
	for (int n = 0; n < 3; n++) {
		led.beside[n] = (struct beside){ .scene = &scene, .block = erased[n] };
		start_beside(&led.beside[n]);
	}
	complete(copy);
	for (int n = 0; n < 3; n++)
		assert_int_equal(pthread_join(led.beside[n].thread, NULL), 0);
	crowd = NULL;
	result = open_result(&scene);
	for (uint32_t block = 0; block < BLOCKS; block++)
		assert_block(result, block, BLOCK_PAGES, OLD);
	assert_int_equal(nand_close(result), 0);
	scene_end(&scene);
}

static void test_a_copy_is_not_complete_before_who_erases_has_read(void **state)
{
	struct beside beside = { .block = 3 };
	struct scene scene;

	beside.copy = copy_to_moment(&scene, state, &beside);
	program_anew(scene.nand, beside.block, NEW);
	begin_at_last();
	assert_int_equal(pthread_join(beside.thread, NULL), 0);
	assert_int_equal(beside.result, 0);
	nand_image_copy_close(beside.copy);
	check_old_in_copy(&scene, &beside);
}

static void test_who_waits_for_a_place_goes_on_when_the_copy_is_closed(void **state)
{
	const struct nand_image_copy_options options = { .kept_bytes = 1, .wait_ms = UINT32_MAX };
	struct scene scene;
	struct beside beside = { .scene = &scene, .block = 2 };
	struct nand_image_copy *copy;

	scene_begin(&scene, state);
	for (uint32_t block = 0; block < 3; block++)
		program_block(scene.nand, block, BLOCK_PAGES, OLD);
	copy = open_copy(&scene, &options);
	begin_copy(&scene, copy);
	for (uint32_t block = 0; block < 2; block++)
		program_anew(scene.nand, block, NEW);
	start_beside(&beside);
	nand_image_copy_close(copy);
	assert_int_equal(pthread_join(beside.thread, NULL), 0);
	assert_block(scene.nand, 2, BLOCK_PAGES, NEW);
	scene_end(&scene);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, directory_setup, directory_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_copy_has_what_the_device_had_at_the_instant),
		TEST(test_a_copy_has_holes_where_nothing_is_programmed),
		TEST(test_a_device_that_has_grown_is_copied_with_its_new_blocks),
		TEST(test_who_erases_goes_on_when_the_copy_takes_nothing),
		TEST(test_each_step_makes_room_for_what_is_erased),
		TEST(test_a_copy_that_ends_early_leaves_the_device_to_the_next_one),
		TEST(test_wrong_files_are_refused),
		TEST(test_a_device_in_memory_has_nothing_to_copy),
		TEST(test_what_can_not_be_written_ends_the_copy_with_the_reason),
		TEST(test_what_does_not_reach_the_drive_ends_the_copy),
		TEST(test_all_of_a_block_whose_word_is_damaged_is_copied),
		TEST(test_blocks_that_are_rewritten_beside_the_copy_are_in_it_as_they_were),
		TEST(test_who_erases_what_a_step_reads_waits_for_it),
		TEST(test_what_a_step_copies_while_who_erases_waits_for_a_place_is_copied_once),
		TEST(test_a_copy_is_not_complete_before_who_erases_has_read),
		TEST(test_who_waits_for_a_place_goes_on_when_the_copy_is_closed),
	};

	return RUN_ON_IMAGES(tests, NULL, NULL);
}
