/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* muninnd: options, signals, and what it says when it is ready. */
#include <errno.h>
#include <getopt.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "common/log.h"
#include "common/version.h"
#include "daemon/check.h"
#include "daemon/config.h"
#include "daemon/image.h"
#include "daemon/origin.h"
#include "daemon/secrets.h"
#include "daemon/server.h"
#include "daemon/troubles.h"

enum { EXIT_STOPPED = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

static const char help[] =
	"muninnd: serves versioning object stores on flash as an iSCSI T10 OSD target\n"
	"\n"
	"  muninnd [--config FILE]     serve what FILE says (" CONFIG_FILE_DEFAULT ")\n"
	"  muninnd --defaults          serve one logical unit with the built-in configuration\n"
	"                              (type osd, engine muninn, index ribbon, back end mmap)\n"
	"  muninnd --check-config      only check the configuration, and say what it would serve\n"
	"\n"
	"Options that replace values of the configuration:\n"
	"  --state-dir DIR   folder of the images and of the control socket\n"
	"  --port PORT       TCP port of the portal, 1 to 65535\n"
	"  --size SIZE       of all images: bytes, or with K, M, G, T; smaller ones grow to it\n"
	"\n"
	"  --help            this text\n"
	"  --version         which muninnd this is\n"
	"\n"
	"FILE says what a unit stands on (engine, back end, cache sizes...): in [nand] and\n"
	"[engine] for all units, in [lun N] for one.\n"
	"\n"
	"muninnd runs in the foreground. It prints `LUN NUMBER TYPE URL` for each logical\n"
	"unit when initiators can log in. SIGINT and SIGTERM stop it: it ends the sessions and\n"
	"makes everything stable. SIGHUP lets a service of systemd take up FILE anew, as\n"
	"`muninnctl reload` does, and stops others: their terminal is gone.\n"
	"Exit codes: 0 stopped, 1 failed, also by what the host lacks, 2 wrong options or\n"
	"configuration.\n";

static int complain(int code, const char *reason)
{
	fprintf(stderr, "%smuninnd: %s\n", log_priority(LOG_LEVEL_ERROR), reason);
	return code;
}

/* What was printed may be for somebody to read, or for a script: a part of it is not enough. */
static int end_output(void)
{
	char reason[160];

	if (fflush(stdout) == 0 && !ferror(stdout))
		return EXIT_STOPPED;
	snprintf(reason, sizeof(reason), "the output can't be written: %s", strerror(errno));
	return complain(EXIT_FAILED, reason);
}

/* How to call muninnctl from the folder that muninnd was started in. */
static void control_command(const char *started_in, char *command, size_t bytes)
{
	char folder[PATH_MAX], path[PATH_MAX + 16];
	size_t length = strlen(started_in);

	origin_program_folder(folder, sizeof(folder));
	snprintf(path, sizeof(path), "%s/muninnctl", folder);
	if (access(path, X_OK))
		snprintf(command, bytes, "muninnctl");
	else if (!strncmp(path, started_in, length) && path[length] == '/')
		snprintf(command, bytes, "%s", path + length + 1);
	else
		snprintf(command, bytes, "%s", path);
}

/* Which units are on it, where there are several. */
static void say_target(const struct config *config, const struct target_config *target)
{
	printf("target %s: LUN", target->name);
	for (unsigned int i = 0, found = 0; i < config->lun_count; i++)
		if (!strcmp(config->luns[i].target, target->label))
			printf("%s%u", found++ ? ", " : " ", config->luns[i].number);
	printf("\n");
}

static int say_configuration(const struct config *config)
{
	struct image_engine engines[CONFIG_LUNS_MAX];
	struct error_text error = { "" };

	if (check_images(config, NULL, engines, &error))
		return complain(EXIT_FAILED, error.text);
	printf("%s: correct; logical units: %u\n", config->source, config->lun_count);
	for (unsigned int i = 0; config->target_count > 1 && i < config->target_count; i++)
		say_target(config, &config->targets[i]);
	for (unsigned int i = 0; i < config->lun_count; i++) {
		const struct lun_config *lun = &config->luns[i];

		printf("LUN %u %s %s: engine %s, index %s, back end %s\n", lun->number,
		       lun->type->word, lun->image, engines[i].name,
		       engines[i].index ? engines[i].index : "unknown",
		       lun_options_backend(&lun->options));
	}
	return end_output();
}

/* About the first OSD unit. A disk is for the initiator's kernel. */
static void say_what_next(const struct server *server, const char *started_in)
{
	const struct config *config = server->config;
	char control[PATH_MAX + 16], url[512], portal[CONFIG_PORTAL_BYTES];
	unsigned int i = 0;

	while (i < config->lun_count && config->luns[i].type != &unit_types[UNIT_TYPE_OSD])
		i++;
	if (i == config->lun_count) {
		config_portal(&config->portals[0], portal);
		printf(" Initiators attach with: iscsiadm -m discovery -t sendtargets -p %s\n\n",
		       portal);
		return;
	}
	control_command(started_in, control, sizeof(control));
	server_url(server, config->luns[i].number, url, sizeof(url));
	printf(" From another terminal:\n\n"
	       "  %s info %s\n"
	       "  %s import %s 0x100000 /usr/share/doc\n"
	       "  %s ls %s 0x100000\n"
	       "  %s --help\n\n",
	       control, url, control, url, control, url, control);
}

static void say_ready(const struct server *server, const char *started_in)
{
	const struct config *config = server->config;
	char url[512];

	for (unsigned int i = 0; i < config->lun_count; i++) {
		server_url(server, config->luns[i].number, url, sizeof(url));
		printf("LUN %u %s %s\n", config->luns[i].number, config->luns[i].type->word, url);
	}
	/* Nobody types at a service. */
	if (getenv("NOTIFY_SOCKET")) {
		printf("Ready.\n");
	} else {
		printf("\nReady.");
		say_what_next(server, started_in);
		printf("Ctrl-C stops the target; what it holds stays in %s.\n", config->state_dir);
	}
	fflush(stdout);
	sd_notifyf(0, "READY=1\nSTATUS=serving %u logical units at %s", config->lun_count,
		   server->portals);
}

static int listen_for(const sigset_t *wanted)
{
	sigprocmask(SIG_BLOCK, wanted, NULL);
	return signalfd(-1, wanted, SFD_CLOEXEC | SFD_NONBLOCK);
}

/*
 * SIGHUP of a service is the wish that it takes up its file anew. In a terminal it says that the
 * terminal is gone, and is a stop: *reload_fd is -1 then.
 */
static int listen_for_signals(int *stop_fd, int *reload_fd)
{
	bool is_service = getenv("NOTIFY_SOCKET") != NULL;
	sigset_t stop, reload;

	sigemptyset(&stop);
	sigemptyset(&reload);
	sigaddset(&stop, SIGINT);
	sigaddset(&stop, SIGTERM);
	sigaddset(is_service ? &reload : &stop, SIGHUP);
	signal(SIGPIPE, SIG_IGN);
	*stop_fd = listen_for(&stop);
	*reload_fd = is_service ? listen_for(&reload) : -1;
	return *stop_fd < 0 || (is_service && *reload_fd < 0) ? -errno : 0;
}

static int serve(struct config *config, struct origin *origin)
{
	static struct server server;
	struct error_text error = { "" };
	char started_in[PATH_MAX] = "";
	int stop_fd, reload_fd, result = listen_for_signals(&stop_fd, &reload_fd);

	if (result)
		return complain(EXIT_FAILED, strerror(-result));
	if (!getcwd(started_in, sizeof(started_in)))
		started_in[0] = '\0';
	log_configure(trouble_sink, config->log_level);
	result = server_start(&server, config, origin, stop_fd, reload_fd, &error);
	if (result == SERVER_STOP_WANTED)
		return EXIT_STOPPED;
	if (result)
		return complain(EXIT_FAILED, error.text);
	say_ready(&server, started_in);
	result = server_run(&server, &error);
	sd_notify(0, "STOPPING=1");
	if (result != SERVER_STOP_WANTED)
		complain(EXIT_FAILED, error.text);
	else
		log_line(LOG_LEVEL_INFO, "stopping");
	if (server_stop(&server, &error))
		return complain(EXIT_FAILED, error.text);
	return result == SERVER_STOP_WANTED ? EXIT_STOPPED : EXIT_FAILED;
}

int main(int argc, char **argv)
{
	static const struct option known[] = {
		{ "config", required_argument, NULL, 'c' },
		{ "defaults", no_argument, NULL, 'd' },
		{ "check-config", no_argument, NULL, 'k' },
		{ "state-dir", required_argument, NULL, 's' },
		{ "port", required_argument, NULL, 'p' },
		{ "size", required_argument, NULL, 'z' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'v' },
		{ NULL, 0, NULL, 0 },
	};
	static struct config config;
	static struct origin origin;
	struct origin_options options = { .config = CONFIG_FILE_DEFAULT };
	struct error_text error;
	bool check = false;
	int option, result;

	while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
		switch (option) {
		case 'c':
			options.config = optarg;
			break;
		case 'd':
			options.defaults = true;
			break;
		case 'k':
			check = true;
			break;
		case 's':
			options.state_dir = optarg;
			break;
		case 'p':
			options.port = optarg;
			break;
		case 'z':
			options.size = optarg;
			break;
		case 'h':
			fputs(help, stdout);
			return end_output();
		case 'v':
			puts("muninnd " MUNINN_VERSION);
			return end_output();
		default:
			return complain(EXIT_USAGE, "muninnd --help lists the options");
		}
	}
	if (optind < argc)
		return complain(EXIT_USAGE, "takes options only; muninnd --help lists them");
	if (origin_open(&origin, &options, &config, &error))
		return complain(EXIT_USAGE, error.text);
	if (check_plans(&config, &error))
		return complain(EXIT_USAGE, error.text);
	result = secrets_load(&config, &error);
	if (result)
		return complain(result == -EINVAL ? EXIT_USAGE : EXIT_FAILED, error.text);
	if (check_host(&config, NULL, &error))
		return complain(EXIT_FAILED, error.text);
	if (check)
		return say_configuration(&config);
	return serve(&config, &origin);
}
