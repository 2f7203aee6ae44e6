/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The picture of watch: what was seen of the target, and drawing it. */
#ifndef MUNINN_CLIENT_CTL_WATCH_H
#define MUNINN_CLIENT_CTL_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "wire/vendor.h"

/*
 * Lines of a list that are kept: more than a target of ours can have (65,534 partitions, 61,439
 * versions).
 */
#define WATCH_LINES_MAX 65536

/* One bar: a partition, or a version. */
struct watch_line {
	char label[24];
	uint64_t number;  /* of the partition */
	uint64_t time_ms; /* 0: none */
	uint64_t used, written;
	char name[OSD_VERSION_NAME_MAX + 1]; /* "": none */
};

struct watch_list {
	struct watch_line *lines; /* WATCH_LINES_MAX, the caller's */
	size_t count;
	uint64_t left_out, left_out_used; /* how many did not fit, and their bytes */
};

struct watch_picture {
	bool is_device;
	struct watch_list partitions; /* of the device, in the order of their IDs */
	struct watch_list versions;   /* the oldest first; of the device they have no `used` */
	uint64_t used, capacity;      /* of the device */
	uint64_t horizon_ms;          /* every moment from then on can be reached; 0: not known */
	bool coloured;
	size_t rows, columns; /* of the terminal; 0: no limit */
};

/*
 * Draws the picture. Without a limit, all of it. On a terminal no line is wider than that, and the
 * picture says how many lines did not fit: the oldest versions, and the partitions that use least.
 * Changes the order of picture->partitions.
 */
void watch_draw(FILE *to, struct watch_picture *picture);

#endif
