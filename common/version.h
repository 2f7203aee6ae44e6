/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Which Muninn this is. */
#ifndef MUNINN_COMMON_VERSION_H
#define MUNINN_COMMON_VERSION_H

#define MUNINN_VERSION "0.2.0"

#endif
