/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Whether the host can serve a configuration. `muninnd --check-config` and each start ask the same
 * functions, so that neither accepts what the other refuses.
 */
#ifndef MUNINN_DAEMON_CHECK_H
#define MUNINN_DAEMON_CHECK_H

#include "common/error.h"
#include "daemon/config.h"
#include "daemon/image.h"

/*
 * Whether the devices that are to be made are possible: what no host would serve, and only another
 * configuration mends. -EINVAL and a sentence that begins with the configuration's file.
 */
int check_plans(const struct config *config, struct error_text *error);

/* How a unit is looked at, and what becomes of what is wrong with it. */
enum check_care {
	CHECK_REFUSES, /* it refuses the configuration */
	CHECK_TELLS,   /* it is told, and the check goes on */
	CHECK_NAMES,   /* as CHECK_TELLS; of its image only the names of files are looked at */
};

/* For a reload. Without this (NULL) whatever is wrong with a unit refuses the configuration. */
struct check_tolerance {
	enum check_care care[CONFIG_LUNS_MAX]; /* of each unit */
	void (*tell)(void *context, const char *sentence);
	void *context;
};

/*
 * Looks for what of the host would keep the service from starting: folders, tgtd and module, the
 * portal's address, key files, devices that can't be made here. It may mend itself: an address or a
 * mount comes late. Leaves the host as it was, and works beside a running service. -errno and a
 * sentence as above.
 */
int check_host(const struct config *config, const struct check_tolerance *tolerance,
	       struct error_text *error);

/*
 * Whether the images that are there fit: of another engine, without their NVRAM, damaged, not able
 * to grow. A start finds this when it prepares them. Opens each device once, and tells systemd in
 * between that the service is alive. `engines`: of each unit; nothing of CHECK_NAMES. Otherwise as
 * above.
 */
int check_images(const struct config *config, const struct check_tolerance *tolerance,
		 struct image_engine engines[CONFIG_LUNS_MAX], struct error_text *error);

/* check_host of one unit alone, beside others that are served. */
int check_unit(const struct config *config, const struct lun_config *lun, struct error_text *error);

/* Whether tgtd, the module and the allocator are there. -errno with a sentence. */
int check_programs(const struct config *config, struct error_text *error);

/*
 * Whether the portals can be listened on. -EADDRINUSE: somebody does, perhaps the service itself;
 * other -errno: one is no address of this host, or not for this user.
 */
int check_portals(const struct config *config, struct error_text *error);

#endif
