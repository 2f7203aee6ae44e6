/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The two sides of a comparison over iSCSI: a muninnd with OSD units, and a tgtd of the
 * distribution with disks `null` (keeps nothing) and `rdwr` (a file). Each has a folder, a free
 * loopback port and a control socket of its own. Both offer initiators the same transfers.
 */
#ifndef MUNINN_BENCH_SERVERS_H
#define MUNINN_BENCH_SERVERS_H

#include <stdint.h>
#include <sys/types.h>

#include "bench/process.h"
#include "common/error.h"

#define SERVER_PATH_BYTES 512
#define SERVER_URL_BYTES  128

struct bench_server {
	struct bench_process process;
	pid_t tgtd; /* that serves; muninnd's child */
	unsigned port;
	char folder[SERVER_PATH_BYTES];
	char log[SERVER_PATH_BYTES + 16];
};

struct bench_server_options {
	const char *folder;   /* absolute, exists */
	const char *muninnd;  /* the program */
	const char *backend;  /* NULL: the service's default */
	const char *settings; /* further lines for each unit's section; NULL: none */
	uint64_t size;        /* of each unit */
	unsigned units;       /* LUN 1, 2, ...: images lun1.img, lun2.img, ... */
	uint64_t volume_size; /* they are disks of so many bytes; 0: they are OSDs */
};

/* Starts muninnd; new units are made, images that are there are opened again. */
int bench_server_start(struct bench_server *server, const struct bench_server_options *options,
		       struct error_text *error);

enum { STOCK_NULL = 1, STOCK_RDWR = 2 };

/* Starts a stock tgtd: LUN STOCK_NULL, and LUN STOCK_RDWR on the file stock.img of `size` bytes. */
int bench_server_start_stock(struct bench_server *server, const char *folder, uint64_t size,
			     struct error_text *error);

void bench_server_url(const struct bench_server *server, unsigned lun, char url[SERVER_URL_BYTES]);

/* Stops muninnd in good order, and a stock tgtd at once. Nothing happens if it never started. */
void bench_server_stop(struct bench_server *server);

#endif
