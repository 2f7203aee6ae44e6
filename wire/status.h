/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* SCSI status codes that a command ends with. By themselves, because libiscsi has such names too.
 */
#ifndef MUNINN_WIRE_STATUS_H
#define MUNINN_WIRE_STATUS_H

enum {
	SCSI_STATUS_GOOD = 0x00,
	SCSI_STATUS_CHECK_CONDITION = 0x02,
	SCSI_STATUS_BUSY = 0x08,
	SCSI_STATUS_TASK_ABORTED = 0x40,
};

#endif
