/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The configuration of muninnd: what conf/muninn.conf documents key by key, as one flat structure.
 */
#ifndef MUNINN_DAEMON_CONFIG_H
#define MUNINN_DAEMON_CONFIG_H

#include <limits.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "common/error.h"
#include "common/log.h"
#include "daemon/allocator.h"
#include "daemon/module/limits.h"
#include "daemon/module/options.h"
#include "daemon/module/unit_type.h"
#include "engine/engine.h"
#include "nand/nand.h"

#define CONFIG_FILE_DEFAULT     "/etc/muninn/muninn.conf"
#define CONFIG_MODULE_INSTALLED "/usr/lib/tgt/backing-store/bs_muninn.so"

#define CONFIG_LUNS_MAX       64
#define CONFIG_LUN_NUMBER_MAX 255
#define CONFIG_LIST_MAX       32   /* entries of allow_address and of allow_name */
#define CONFIG_NAME_BYTES     224  /* iSCSI names: 223 bytes and NUL */
#define CONFIG_PAGE_BYTES_MAX 4096 /* the engine takes no more */
#define CONFIG_PORTAL_BYTES   72   /* [ADDRESS]:PORT */
#define CONFIG_PORTALS_MAX    8
#define CONFIG_PORTALS_BYTES  1024
#define CONFIG_TARGETS_MAX    16
#define CONFIG_SECRET_BYTES   64 /* 63 bytes and NUL */
#define CONFIG_DEVICES_MAX    64
#define CONFIG_GROUP_BYTES    33 /* names of groups: 32 bytes, as useradd has it, and NUL */
#define CONFIG_DEVICE_BYTES   43 /* names of devices and targets: 42 bytes, see config.c, and NUL */

/*
 * One [lun N] section, and for what it does not say the values of [nand] and [engine]. Or a [device
 * NAME] section, of which only what is of a device counts: units that name it have that of it.
 */
struct lun_config {
	unsigned int number;              /* 0: a device */
	int line;                         /* of its first key, for messages; 0 = built in */
	char device[CONFIG_DEVICE_BYTES]; /* the name of the device; "": the unit has its own */
	char target[CONFIG_DEVICE_BYTES]; /* the label of its target; "": that of [target] */
	const struct unit_type *type;
	bool added; /* at run time: not in the file */
	char image[PATH_MAX];
	char nvram[PATH_MAX]; /* its NVRAM file; "": IMAGE.nvram, or where that leads */
	/*
	 * For an image to create: bytes of page data, and shape; `blocks` follows from them. One
	 * that is there grows to a size that somebody has set.
	 */
	uint64_t size_bytes;
	bool size_is_set;
	struct nand_geometry geometry;
	struct lun_options options; /* with the placement of an engine that is created */
};

/* Where initiators connect. */
struct portal {
	char address[INET6_ADDRSTRLEN]; /* numeric IPv4 or IPv6, no brackets */
	uint16_t port;
};

/* Somebody who proves by CHAP that he knows a secret. */
struct chap_account {
	char user[64]; /* "": nobody has to */
	char secret[CONFIG_SECRET_BYTES];
	char secret_file[PATH_MAX]; /* has the secret (secrets.h); "": the configuration has it */
};

/* [target], or one [target LABEL] section. */
struct target_config {
	char label[CONFIG_DEVICE_BYTES]; /* "": [target] */
	int line;                        /* of its first key, for messages; 0 = built in */
	unsigned int id;                 /* tgtd's number of it; 0: it is not there */
	char name[CONFIG_NAME_BYTES];
	/* Who may log in: one of either list; both empty: everybody. */
	char allow_address[CONFIG_LIST_MAX][64];
	unsigned int allow_addresses;
	char allow_name[CONFIG_LIST_MAX][CONFIG_NAME_BYTES];
	unsigned int allow_names;
	struct chap_account chap;   /* of initiators */
	struct chap_account mutual; /* of the target, for initiators that ask */
};

struct config {
	char source[PATH_MAX]; /* file name for messages */

	/* [daemon] */
	char state_dir[PATH_MAX]; /* where images with a relative name are */
	char run_dir[PATH_MAX];   /* control socket */
	char tgtd[PATH_MAX];
	char module[PATH_MAX];
	char allocator[PATH_MAX]; /* jemalloc, system or a library: see allocator.h */
	enum log_level log_level;
	uint32_t stop_timeout; /* seconds that a stop waits for commands */
	uint32_t watchdog;     /* seconds that tgtd may hang; below WatchdogSec of the unit */
	/* Whose members may use the administration socket; "": root and the service alone. */
	char admin_group[CONFIG_GROUP_BYTES];
	struct portal metrics; /* where HTTP is served (http.h); port 0: nowhere */

	/* [target] has what is of all targets, too. */
	struct portal portals[CONFIG_PORTALS_MAX];
	unsigned int portal_count;
	struct chap_account discovery; /* of initiators that ask which targets there are */
	struct target_config targets[CONFIG_TARGETS_MAX];
	unsigned int target_count;

	struct limits limits; /* [limits] */

	struct lun_config luns[CONFIG_LUNS_MAX];
	unsigned int lun_count;
	struct lun_config devices[CONFIG_DEVICES_MAX];
	unsigned int device_count;
};

/* The first unit of the device of a unit: what is done with images is done for it. */
const struct lun_config *config_first_of_device(const struct config *config,
						const struct lun_config *lun);
bool config_is_first_of_device(const struct config *config, const struct lun_config *lun);

/*
 * Whether two units can be served at once: one device has one OSD, and a partition one disk and one
 * schedule. -EINVAL with a sentence that names both.
 */
int config_check_beside(const struct lun_config *lun, const struct lun_config *other,
			struct error_text *reason);

/* The built-in values, without a logical unit. */
void config_defaults(struct config *config);

/* Adds logical unit 1 with built-in values, as `muninnd --defaults` serves it. */
void config_add_default_lun(struct config *config);

/*
 * Reads `path` over the built-in values. On failure a negative errno and a sentence `FILE:LINE:
 * reason` (without the line where none is to blame). At least one [lun N] is required.
 */
int config_read(const char *path, struct config *config, struct error_text *error);

/* A file as it was read. */
struct config_file {
	char source[PATH_MAX]; /* its name, for messages */
	char *text;
	size_t bytes;
	struct stat status; /* all zero: it is no file */
};

/* -errno with a sentence. What was loaded is freed by config_file_free. */
int config_file_load(const char *path, struct config_file *file, struct error_text *error);
void config_file_free(struct config_file *file);

/*
 * As config_read. `added` (NULL: none): sections [lun N] that are no part of the file; -EEXIST with
 * a sentence if that has one of their units.
 */
int config_parse(const struct config_file *file, const char *added, struct config *config,
		 struct error_text *error);

/* Warns if others than its owner and the service can read the secret in it. */
void config_warn_of_readers(const struct config_file *file, const struct config *config);

/*
 * Name of the i-th key that a file may have, for checks of the documentation; NULL behind the last
 * one.
 */
const char *config_key_name(size_t i);

/* The partition that a disk is in. */
uint64_t config_partition(const struct lun_config *lun);

/* Parses a TCP port. -EINVAL with a sentence. */
int config_parse_port(const char *text, uint16_t *port, struct error_text *error);

/*
 * Makes state_dir, run_dir and every image an absolute path. Checks what only the whole
 * configuration shows: two units with one image, a CHAP user without a secret. -EINVAL with a
 * sentence as in config_read.
 */
int config_complete(struct config *config, struct error_text *error);

/* The socket address of a portal. Returns its length. */
socklen_t portal_address(const struct portal *portal, struct sockaddr_storage *address);

/* A portal as tgtd and URLs have it: ADDRESS:PORT or [ADDRESS]:PORT. */
void config_portal(const struct portal *portal, char text[CONFIG_PORTAL_BYTES]);
/* All of them, each behind `before`, with commas in between. */
void config_portals(const struct config *config, const char *before,
		    char text[CONFIG_PORTALS_BYTES]);

/* The target of a label, to be changed by owners of `config` only; NULL: there is none. */
struct target_config *config_find_target(const struct config *config, const char *label);

/* Whether a unit of `config` is on the target. */
bool config_has_units(const struct config *config, const struct target_config *target);

/* How its section is called, for messages: [target LABEL]. */
void config_target_section(const struct target_config *target, char *text, size_t bytes);

/* Whether a text can be a CHAP secret. -EINVAL with a sentence that does not have it. */
int config_check_secret(const char *secret, struct error_text *error);

#endif
