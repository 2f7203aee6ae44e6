/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Starts muninnd, or a stock tgtd by tgtadm, in a folder. */
#include "bench/servers.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define TARGET_NAME "iqn.2014-06.local.muninn:bench"
/* tgtd's folder is its working directory, so this name is short enough for a socket's address. */
#define STOCK_SOCKET "stock-control"
/* How often, and how long after each other, a fresh tgtd is asked whether it is there. */
#define ASKS_MAX 200
#define ASK_MS   50

/* A loopback port that nobody has at this moment. */
static int find_port(unsigned *port, struct error_text *error)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool found = fd >= 0 && bind(fd, (struct sockaddr *)&address, length) == 0 &&
		     getsockname(fd, (struct sockaddr *)&address, &length) == 0;

	if (fd >= 0)
		close(fd);
	*port = ntohs(address.sin_port);
	return found ? 0 : error_set(error, -EADDRINUSE, "there is no free port on 127.0.0.1");
}

static int begin(struct bench_server *server, const char *folder, const char *log,
		 struct error_text *error)
{
	*server = (struct bench_server){ 0 };
	if (strlen(folder) >= sizeof(server->folder))
		return error_set(error, -ENAMETOOLONG, "%s: too long a name", folder);
	snprintf(server->folder, sizeof(server->folder), "%s", folder);
	snprintf(server->log, sizeof(server->log), "%s/%s", folder, log);
	return find_port(&server->port, error);
}

static int open_file(const struct bench_server *server, const char *name)
{
	char path[SERVER_PATH_BYTES + 32];

	snprintf(path, sizeof(path), "%s/%s", server->folder, name);
	return open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
}

static int failed(struct bench_server *server, const char *what, struct error_text *error)
{
	char said[384];

	bench_last_line(server->log, said, sizeof(said));
	bench_server_stop(server);
	return error_set(error, -EIO, "%s: %s", what, said[0] ? said : "it said nothing");
}

/* ---- ours ---- */

static int write_configuration(const struct bench_server *server,
			       const struct bench_server_options *options, struct error_text *error)
{
	int fd = open_file(server, "muninn.conf");
	FILE *file = fd < 0 || ftruncate(fd, 0) < 0 ? NULL : fdopen(fd, "w");

	if (!file) {
		int result = error_set(error, -errno, "%s/muninn.conf: %s", server->folder,
				       strerror(errno));

		if (fd >= 0)
			close(fd);
		return result;
	}
	fprintf(file, "[daemon]\nlog_level = warning\n[target]\nname = " TARGET_NAME "\n");
	for (unsigned i = 1; i <= options->units; i++) {
		fprintf(file, "[lun %u]\ntype = %s\nsize = %llu\n", i,
			options->volume_size ? "disk" : "osd", (unsigned long long)options->size);
		if (options->volume_size)
			fprintf(file, "volume_size = %llu\n",
				(unsigned long long)options->volume_size);
		if (options->backend)
			fprintf(file, "backend = %s\n", options->backend);
		fprintf(file, "%s", options->settings ? options->settings : "");
	}
	return fclose(file) == 0 ? 0
				 : error_set(error, -errno, "%s/muninn.conf: %s", server->folder,
					     strerror(errno));
}

int bench_server_start(struct bench_server *server, const struct bench_server_options *options,
		       struct error_text *error)
{
	struct bench_process_options process = { .log = server->log };
	char configuration[SERVER_PATH_BYTES + 16], port[16], line[256];
	int result = begin(server, options->folder, "muninnd.log", error);

	if (result == 0)
		result = write_configuration(server, options, error);
	if (result < 0)
		return result;
	snprintf(configuration, sizeof(configuration), "%s/muninn.conf", server->folder);
	snprintf(port, sizeof(port), "%u", server->port);
	result = bench_process_start(&server->process,
				     (char *[]){ (char *)options->muninnd, "--config",
						 configuration, "--state-dir", server->folder,
						 "--port", port, NULL },
				     &process, error);
	if (result < 0)
		return result;
	while (fgets(line, sizeof(line), server->process.output)) {
		if (strncmp(line, "Ready.", 6) != 0)
			continue;
		server->tgtd = bench_process_child(server->process.pid);
		return 0;
	}
	return failed(server, options->muninnd, error);
}

/* ---- the distribution's ---- */

enum { WORDS_MAX = 24 };

/* Runs tgtadm with the words of `line`. */
static int tgtadm(const struct bench_server *server, const char *line, struct error_text *error)
{
	const struct bench_process_options process = { .folder = server->folder,
						       .log = server->log,
						       .variable = "TGT_IPC_SOCKET",
						       .value = STOCK_SOCKET };
	char words[256], *rest = words;
	char *argv[WORDS_MAX + 1] = { "tgtadm", "--lld", "iscsi" };
	unsigned count = 3;

	snprintf(words, sizeof(words), "%s", line);
	while (count < WORDS_MAX && (argv[count] = strsep(&rest, " ")))
		count++;
	argv[count] = NULL;
	return bench_process_run(argv, &process, error);
}

static int make_target(struct bench_server *server, struct error_text *error)
{
	/* The offers are muninnd's (daemon/server.c). */
	static const char *const lines[] = {
		"--op update --mode target --tid 1 --name MaxRecvDataSegmentLength --value 262144",
		"--op update --mode target --tid 1 --name FirstBurstLength --value 262144",
		"--op update --mode target --tid 1 --name MaxBurstLength --value 1048576",
		"--op new --mode logicalunit --tid 1 --lun 1 --bstype null --backing-store null",
		("--op new --mode logicalunit --tid 1 --lun 2 --bstype rdwr "
		 "--backing-store stock.img"),
		"--op bind --mode target --tid 1 --initiator-address ALL",
	};
	int result = -EIO;

	for (unsigned i = 0; i < ASKS_MAX && result < 0; i++) {
		if (i > 0)
			poll(NULL, 0, ASK_MS);
		result = tgtadm(server, "--op new --mode target --tid 1 --targetname " TARGET_NAME,
				error);
	}
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]) && result == 0; i++)
		result = tgtadm(server, lines[i], error);
	return result;
}

int bench_server_start_stock(struct bench_server *server, const char *folder, uint64_t size,
			     struct error_text *error)
{
	struct bench_process_options process = { .variable = "TGT_IPC_SOCKET",
						 .value = STOCK_SOCKET };
	int result = begin(server, folder, "stock.log", error), fd;
	char portal[64];

	if (result < 0)
		return result;
	fd = open_file(server, "stock.img");
	if (fd < 0 || ftruncate(fd, (off_t)size) < 0)
		result = error_set(error, -errno, "%s/stock.img: %s", folder, strerror(errno));
	if (fd >= 0)
		close(fd);
	process.folder = server->folder;
	process.log = server->log;
	snprintf(portal, sizeof(portal), "portal=127.0.0.1:%u", server->port);
	if (result == 0)
		result = bench_process_start(
			&server->process,
			(char *[]){ "tgtd", "-f", "-C", "0", "--iscsi", portal, NULL }, &process,
			error);
	if (result < 0)
		return result;
	server->tgtd = server->process.pid;
	if (make_target(server, error) < 0)
		return failed(server, "tgtd of the package tgt", error);
	return 0;
}

/* ---- both ---- */

void bench_server_url(const struct bench_server *server, unsigned lun, char url[SERVER_URL_BYTES])
{
	snprintf(url, SERVER_URL_BYTES, "iscsi://127.0.0.1:%u/" TARGET_NAME "/%u", server->port,
		 lun);
}

void bench_server_stop(struct bench_server *server)
{
	bool stock = server->tgtd == server->process.pid;

	/* tgtd itself does nothing at a SIGTERM. */
	bench_process_end(&server->process, stock ? SIGKILL : SIGTERM);
	server->tgtd = 0;
}
