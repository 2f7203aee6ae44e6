/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Task management requests of initiators that tgtd loses. tgtd notes one request in a command. A
 * second one for the same command takes its place, and tgtd would never answer the first one, nor
 * free it, nor let its session end. Here such a request is noticed and answered.
 *
 * Main thread only.
 */
#ifndef MUNINN_DAEMON_MODULE_REQUESTS_H
#define MUNINN_DAEMON_MODULE_REQUESTS_H

struct scsi_lu;

/* Commands of this unit are watched from now on. Before there are any. */
void requests_watch(struct scsi_lu *lu);

/* A request has come, and tgtd is about to act on it. */
void requests_arrive(void);

/* Answers those that have lost their place since. */
void requests_look(void);

#endif
