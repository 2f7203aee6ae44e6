/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
#include "osd/security.h"

#include "osd/execute.h"

int osd_security_create(struct osd_device *device, const struct osd_options *options)
{
	(void)options;
	device->security = NULL;
	return 0;
}

void osd_security_destroy(struct osd_device *device)
{
	(void)device;
}

int osd_security_check_command(struct osd_request *request)
{
	request->security = (struct osd_security_state){ .checked = true, .method = OSD_NOSEC };
	return 0;
}

int osd_security_check_subject(struct osd_request *request)
{
	(void)request;
	return 0;
}

void osd_security_seal_data(struct osd_request *request)
{
	(void)request;
}

void osd_security_sign_sense(struct osd_request *request)
{
	(void)request;
}
