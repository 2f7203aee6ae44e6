/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Pieces of the status page: texts and numbers, and what is drawn. */
#ifndef MUNINN_DAEMON_PAGE_PARTS_H
#define MUNINN_DAEMON_PAGE_PARTS_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

struct trend;

#define PAGE_SIZE_BYTES 32

/* Initiators choose some texts, such as those that messages repeat. */
void page_put_escaped(FILE *to, const char *words);
/* "1.5 GiB", in PAGE_SIZE_BYTES. */
const char *page_size(uint64_t bytes, char *text);

/* The segments of a device by their use, and how much of them lives. */
void page_put_map(FILE *to, const json_t *map);
/* Its newest versions by their time, with what each holds. */
void page_put_versions(FILE *to, const json_t *map, int64_t now_ms);
/* Throughput and latency of the last minutes. */
void page_put_trend(FILE *to, const struct trend *trend);

#endif
