/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Sessions over a node /dev/sgN of Linux, in place of an iSCSI session of this process: the kernel
 * has logged in (open-iscsi), and passes commands on. It takes CDBs of 16 bytes and data in one
 * direction, so OSD commands go in envelopes (wire/envelope.h), each as SEND and then FETCH.
 */
#ifndef MUNINN_CLIENT_SG_H
#define MUNINN_CLIENT_SG_H

#include "client/session.h"

/* In place of a URL: sg:/dev/sg1. */
#define SG_SCHEME "sg:"
/* Most bytes of Data-Out or of Data-In of a command. */
#define SG_SESSION_DATA_MAX ((1U << 20) + (1U << 16))
/* As many as the kernel has under way for one open node. */
#define SG_QUEUE_DEPTH_MAX 16U

/*
 * Opens the node of `url`. `options`: the LUN is the node's; of the queue depth at most
 * SG_QUEUE_DEPTH_MAX. -ENOENT, -EACCES and others of open; -ENOTTY: it is no such node; each with a
 * sentence.
 */
int sg_session_open(const char *url, const struct session_options *options,
		    struct session **session, struct error_text *error);

/* The same with a node that is open already, and is closed with the session or if this fails. */
int sg_session_create(int fd, const struct session_options *options, struct session **session,
		      struct error_text *error);

#endif
