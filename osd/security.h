/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Security methods in the way of a command. Private to osd/.
 *
 * target.c calls the functions in this order: check_command before anything is looked up for the
 * initiator, check_subject when the addressed object is known, both before anything is executed;
 * seal_data when Data-In is complete; sign_sense when the sense data is. All of them do nothing
 * where the method is NOSEC.
 */
#ifndef MUNINN_OSD_SECURITY_H
#define MUNINN_OSD_SECURITY_H

#include <stdbool.h>
#include <stdint.h>

struct osd_device;
struct osd_options;
struct osd_request;
struct osd_security; /* of a logical unit */

/* Of one command. */
struct osd_security_state {
	bool checked;   /* the command's capability and integrity check values are right */
	uint8_t method; /* what protects the command: OSD_NOSEC, OSD_CAPKEY... */
};

/* At the start of a logical unit, and at its end. -ENOMEM, or the engine's error. */
int osd_security_create(struct osd_device *device, const struct osd_options *options);
void osd_security_destroy(struct osd_device *device);

/* Inside a transaction. Method, key, integrity check values, nonce, what the capability allows. */
int osd_security_check_command(struct osd_request *request);
/* Behind osd_validate_target: what the capability says of the object itself. */
int osd_security_check_subject(struct osd_request *request);
/* ALLDATA: integrity information behind the answer in Data-In. */
void osd_security_seal_data(struct osd_request *request);
/* CMDRSP and ALLDATA: response integrity check value in the encoded sense data. */
void osd_security_sign_sense(struct osd_request *request);

#endif
