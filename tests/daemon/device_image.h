/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* A formatted image in a folder of its own, for tests of what opens one. */
#ifndef MUNINN_TESTS_DAEMON_DEVICE_IMAGE_H
#define MUNINN_TESTS_DAEMON_DEVICE_IMAGE_H

struct device_image {
	char folder[64];
	char path[96];
};

/* A device of a few MiB, small enough to be made for each test. */
void device_image_make(struct device_image *image);

/* With all that lies beside it. */
void device_image_remove(const struct device_image *image);

#endif
