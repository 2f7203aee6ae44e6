/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Which tgtd is this? Its structures have no stable layout, so the module runs only in the tgtd
 * that it was built for.
 */
#ifndef MUNINN_DAEMON_MODULE_IDENTITY_H
#define MUNINN_DAEMON_MODULE_IDENTITY_H

#include "common/error.h"

/*
 * 0 when the running program is the tgtd whose build ID was recorded when the module was built, or
 * the one whose build ID (hexadecimal) is in the environment variable MUNINN_TGTD_BUILD_ID;
 * otherwise -ENOEXEC with a sentence.
 */
int tgtd_identity_check(struct error_text *error);

#endif
