/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Notes each opening in the image and in its NVRAM file, and compares what they say. */
#include "nand/opening.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>

#include "common/log.h"
#include "nand/lab.h"

#define TIME_BYTES 64

static void say_time(const struct nand_opening *opening, char text[TIME_BYTES])
{
	time_t seconds = (time_t)(opening->time_us / 1000000);
	struct tm parts;

	if (opening->number == 0 || !localtime_r(&seconds, &parts) ||
	    !strftime(text, TIME_BYTES, "last opened %Y-%m-%d %H:%M:%S", &parts))
		strcpy(text, "never opened");
}

int nand_opening_check(const char *image, const struct nand_opening *of_image, const char *nvram,
		       const struct nand_opening *of_nvram, struct error_text *error)
{
	char image_time[TIME_BYTES], nvram_time[TIME_BYTES];
	bool is_older;

	if (of_image->is_unknown || of_nvram->is_unknown ||
	    (of_nvram->is_under_way && of_nvram->number == of_image->number + 1) ||
	    (of_nvram->number == of_image->number && of_nvram->time_us == of_image->time_us))
		return 0;
	is_older = of_nvram->number == of_image->number ? of_nvram->time_us < of_image->time_us
							: of_nvram->number < of_image->number;
	say_time(of_image, image_time);
	say_time(of_nvram, nvram_time);
	return error_set(
		error, -EINVAL,
		"%s (%s) is %s than %s (%s): one of them was put back without the other; put back "
		"both of one time, or move the NVRAM file away and open without it",
		nvram, nvram_time, is_older ? "older" : "newer", image, image_time);
}

/*
 * Makes these bytes stable and no others: after a crash of the process the host may have much of
 * the file in its cache. One write, so that a process which is killed leaves no half of them.
 */
static int store_at(int fd, const struct nand_opening *opening, off_t at)
{
	uint8_t bytes[NAND_OPENING_BYTES];
	struct iovec part = { .iov_base = bytes, .iov_len = sizeof(bytes) };
	ssize_t written;

	nand_opening_encode(opening, bytes);
	written = pwritev2(fd, &part, 1, at + NAND_OPENING_AT, RWF_DSYNC);
	if (written < 0)
		return -errno;
	return written == sizeof(bytes) ? 0 : -EIO;
}

/* The mapping shows what the file has. */
static int store_in_nvram(const struct nand *nand, const struct nand_opening *opening)
{
	return store_at(nand->nvram_fd, opening, 0);
}

static int store_in_image(const struct nand *nand, const struct nand_opening *opening)
{
	int result = 0;

	for (int copy = 0; copy < NAND_SUPERBLOCK_COPIES && result == 0; copy++)
		result = store_at(nand->image_fd, opening, (off_t)copy * NAND_SUPERBLOCK_SPACING);
	return result;
}

void nand_note_opening(struct nand *nand)
{
	struct nand_opening opening = { .number = nand->opening.number + 1, .is_under_way = true };
	struct timespec now;
	int result;

	if (nand->read_only || nand->image_fd < 0 || nand_power_is_off(nand))
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	opening.time_us = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
	result = store_in_nvram(nand, &opening);
	if (result == 0)
		result = store_in_image(nand, &opening);
	if (result < 0) {
		log_line(LOG_LEVEL_WARNING,
			 "%s: this opening can't be noted in it and its NVRAM file: %s; should one "
			 "of them be put back without the other, nobody will notice",
			 nand->path, strerror(-result));
		return;
	}
	/* If this is lost, the next opening takes more for right than it has to. */
	opening.is_under_way = false;
	(void)store_in_nvram(nand, &opening);
	nand->opening = opening;
}
