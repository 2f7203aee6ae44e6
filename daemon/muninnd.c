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
#include "daemon/server.h"

enum { EXIT_STOPPED = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

static const char help[] =
	"muninnd: serves versioning object stores on flash as an iSCSI T10 OSD target\n"
	"\n"
	"  muninnd [--config FILE]     serve what FILE says (" CONFIG_FILE_DEFAULT ")\n"
	"  muninnd --defaults          serve one logical unit with the built-in configuration\n"
	"                              (type osd, engine muninn, index bloom, back end mmap)\n"
	"  muninnd --check-config      only check the configuration, and say what it would serve\n"
	"\n"
	"Options that replace values of the configuration:\n"
	"  --state-dir DIR   folder of the images and of the control socket\n"
	"  --port PORT       TCP port of the portal, 1 to 65535\n"
	"  --size SIZE       size of new images: bytes, or with K, M, G, T\n"
	"\n"
	"  --help            this text\n"
	"  --version         which muninnd this is\n"
	"\n"
	"FILE says what a unit stands on (engine, back end, cache sizes...): in [nand] and\n"
	"[engine] for all units, in [lun N] for one.\n"
	"\n"
	"muninnd runs in the foreground. It prints `LUN NUMBER TYPE URL` for each logical\n"
	"unit when initiators can log in. SIGINT, SIGTERM and SIGHUP stop it: it ends the\n"
	"sessions and makes everything stable.\n"
	"Exit codes: 0 stopped, 1 failed, also by what the host lacks, 2 wrong options or\n"
	"configuration.\n";

struct options {
	const char *config;
	const char *state_dir;
	const char *port;
	const char *size;
	bool defaults;
	bool check;
};

static int complain(int code, const char *reason)
{
	fprintf(stderr, "%smuninnd: %s\n", log_priority(LOG_LEVEL_ERROR), reason);
	return code;
}

/* The folder of this program's file; "" when it cannot be told. */
static void program_folder(char *folder, size_t bytes)
{
	char path[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (length < 0) {
		folder[0] = '\0';
		return;
	}
	path[length] = '\0';
	snprintf(folder, bytes, "%s", dirname(path));
}

/* Run from a build folder, it uses the module that was built with it. */
static void prefer_module_beside(struct config *config)
{
	char folder[PATH_MAX], module[PATH_MAX + 32];

	program_folder(folder, sizeof(folder));
	snprintf(module, sizeof(module), "%s/../lib/bs_muninn.so", folder);
	if (!strcmp(config->module, CONFIG_MODULE_INSTALLED) && strlen(module) < PATH_MAX &&
	    !access(module, R_OK))
		strcpy(config->module, module);
}

static int override(const struct options *options, struct config *config, struct error_text *error)
{
	struct error_text reason = { "" };
	uint64_t size;

	if (options->state_dir) {
		if (strlen(options->state_dir) >= sizeof(config->state_dir))
			return error_set(error, -EINVAL, "--state-dir: the name is too long");
		strcpy(config->state_dir, options->state_dir);
		strcpy(config->run_dir, options->state_dir);
	}
	if (options->port && config_parse_port(options->port, &config->port, &reason))
		return error_set(error, -EINVAL, "--port: %s", reason.text);
	if (options->size) {
		if (lun_option_size(options->size, &size, &reason))
			return error_set(error, -EINVAL, "--size: %s", reason.text);
		for (unsigned int i = 0; i < config->lun_count; i++)
			config->luns[i].size_bytes = size;
		for (unsigned int i = 0; i < config->device_count; i++)
			config->devices[i].size_bytes = size;
	}
	return 0;
}

static int load(const struct options *options, struct config *config, struct error_text *error)
{
	int result = 0;

	if (options->defaults) {
		config_defaults(config);
		config_add_default_lun(config);
	} else {
		result = config_read(options->config, config, error);
	}
	if (!result)
		result = override(options, config, error);
	if (!result)
		result = config_complete(config, error);
	if (!result)
		prefer_module_beside(config);
	return result;
}

/* How to call muninnctl from the folder that muninnd was started in. */
static void control_command(const char *started_in, char *command, size_t bytes)
{
	char folder[PATH_MAX], path[PATH_MAX + 16];
	size_t length = strlen(started_in);

	program_folder(folder, sizeof(folder));
	snprintf(path, sizeof(path), "%s/muninnctl", folder);
	if (access(path, X_OK))
		snprintf(command, bytes, "muninnctl");
	else if (!strncmp(path, started_in, length) && path[length] == '/')
		snprintf(command, bytes, "%s", path + length + 1);
	else
		snprintf(command, bytes, "%s", path);
}

static int say_configuration(const struct config *config)
{
	struct image_engine engines[CONFIG_LUNS_MAX];
	struct error_text reason = { "" }, error;

	for (unsigned int i = 0; i < config->lun_count; i++)
		if (image_engine(&config->luns[i], &engines[i], &reason)) {
			/* As the start says it, where a sentence that is too long is cut alike. */
			error_set(&error, 0, "LUN %u: %s", config->luns[i].number, reason.text);
			fprintf(stderr, "muninnd: %s\n", error.text);
			return EXIT_FAILED;
		}
	printf("%s: correct; logical units: %u\n", config->source, config->lun_count);
	for (unsigned int i = 0; i < config->lun_count; i++) {
		const struct lun_config *lun = &config->luns[i];

		printf("LUN %u %s %s: engine %s, index %s, back end %s\n", lun->number,
		       lun->type->word, lun->image, engines[i].name,
		       engines[i].index ? engines[i].index : "unknown",
		       lun_options_backend(&lun->options));
	}
	return EXIT_STOPPED;
}

/* About the first OSD unit. A disk is for the initiator's kernel. */
static void say_what_next(const struct server *server, const char *started_in)
{
	const struct config *config = server->config;
	char control[PATH_MAX + 16], url[512];
	unsigned int i = 0;

	while (i < config->lun_count && config->luns[i].type != &unit_types[UNIT_TYPE_OSD])
		i++;
	if (i == config->lun_count) {
		printf(" Initiators attach with: iscsiadm -m discovery -t sendtargets -p %s\n\n",
		       server->portal);
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
		   server->portal);
}

static int wanted_signals(void)
{
	sigset_t wanted;

	sigemptyset(&wanted);
	sigaddset(&wanted, SIGINT);
	sigaddset(&wanted, SIGTERM);
	sigaddset(&wanted, SIGHUP);
	sigprocmask(SIG_BLOCK, &wanted, NULL);
	signal(SIGPIPE, SIG_IGN);
	return signalfd(-1, &wanted, SFD_CLOEXEC);
}

static int serve(const struct config *config)
{
	static struct server server;
	struct error_text error = { "" };
	char started_in[PATH_MAX] = "";
	int signal_fd = wanted_signals();
	int result;

	if (signal_fd < 0)
		return complain(EXIT_FAILED, strerror(errno));
	if (!getcwd(started_in, sizeof(started_in)))
		started_in[0] = '\0';
	log_configure(NULL, config->log_level);
	result = server_start(&server, config, signal_fd, &error);
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
	struct options options = { .config = CONFIG_FILE_DEFAULT };
	struct error_text error;
	int option;

	while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
		switch (option) {
		case 'c':
			options.config = optarg;
			break;
		case 'd':
			options.defaults = true;
			break;
		case 'k':
			options.check = true;
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
			return EXIT_STOPPED;
		case 'v':
			puts("muninnd " MUNINN_VERSION);
			return EXIT_STOPPED;
		default:
			return complain(EXIT_USAGE, "muninnd --help lists the options");
		}
	}
	if (optind < argc)
		return complain(EXIT_USAGE, "takes options only; muninnd --help lists them");
	if (load(&options, &config, &error))
		return complain(EXIT_USAGE, error.text);
	if (check_plans(&config, &error))
		return complain(EXIT_USAGE, error.text);
	if (check_host(&config, &error))
		return complain(EXIT_FAILED, error.text);
	if (options.check)
		return say_configuration(&config);
	return serve(&config);
}
