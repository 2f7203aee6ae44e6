/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * CHAP secrets that the configuration does not hold itself: in a file that its owner alone can
 * read, or a credential that systemd has given the service ($CREDENTIALS_DIRECTORY).
 */
#ifndef MUNINN_DAEMON_SECRETS_H
#define MUNINN_DAEMON_SECRETS_H

#include "common/error.h"
#include "daemon/config.h"

/*
 * Reads them into the configuration, and checks what only all secrets show: tgtd has one secret for
 * each user, and a target does not prove itself by what its initiators know. -EINVAL with a
 * sentence: another configuration mends it; other -errno: perhaps the host does.
 */
int secrets_load(struct config *config, struct error_text *error);

#endif
