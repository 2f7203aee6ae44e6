/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * From an iSCSI URL to a socket in the full-feature phase. libiscsi parses the URL, connects, logs
 * in, does CHAP (user%secret in the URL; for mutual CHAP the URL's target_user and target_password)
 * and discovery. Then it is freed, and the socket remains.
 */
#ifndef MUNINN_CLIENT_LOGIN_H
#define MUNINN_CLIENT_LOGIN_H

#include "client/session.h"

struct login_options {
	const char *initiator_name; /* NULL: a name made from the host's */
	bool immediate_data;        /* offer ImmediateData=Yes */
	bool initial_r2t;           /* demand InitialR2T=Yes */
	uint32_t timeout_ms;        /* connection and login together; > 0 */
	/*
	 * The low 40 bits of the ISID, the others say that it is random (RFC 7143, 11.12.5). If the
	 * target has a session of this name and ISID, it ends that one. 0: one is drawn.
	 */
	uint64_t isid;
};

struct login_result {
	int fd; /* the caller's */
	unsigned lun;
	uint64_t isid; /* as in login_options */
	struct session_parameters parameters;
};

/*
 * Follows redirections, four at most. -EINVAL: malformed URL; -EACCES: CHAP or access control;
 * -ENODEV: no such target; -ETIMEDOUT; -ECONNREFUSED and other errors of the socket as far as they
 * are known, else -EIO; -EPROTO.
 */
int login_connect(const char *url, const struct login_options *options, struct login_result *result,
		  struct error_text *error);

/* A target that a portal announces. */
typedef int login_found(void *context, const char *target_name, const char *portal_address);

/*
 * Asks the portal of `url` (a target and LUN in it are ignored) for its targets. Errors as
 * login_connect.
 */
int login_discover(const char *url, const struct login_options *options, login_found *found,
		   void *context, struct error_text *error);

#endif
