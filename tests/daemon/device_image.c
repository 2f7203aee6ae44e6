/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Makes a formatted image for one test, and removes it with all that lies beside it. */
#include "tests/daemon/device_image.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/options.h"
#include "nand/nand.h"

void device_image_make(struct device_image *image)
{
	const struct engine_options options = { 0 };
	struct nand_geometry geometry = nand_geometry_default(32 << 20);
	struct error_text error = { "" };
	struct nand *nand;
	uint64_t nvram_bytes;

	strcpy(image->folder, "/tmp/muninn-device-XXXXXX");
	assert_non_null(mkdtemp(image->folder));
	snprintf(image->path, sizeof(image->path), "%s/image", image->folder);
	assert_int_equal(engine_nvram_bytes(&geometry, &options, &nvram_bytes, &error), 0);
	assert_int_equal(nand_create(image->path, &geometry, nvram_bytes, &error), 0);
	assert_int_equal(nand_open(image->path, &nand, &error), 0);
	if (engine_format(nand, &options, &error))
		fail_msg("%s", error.text);
	assert_int_equal(nand_close(nand), 0);
}

void device_image_remove(const struct device_image *image)
{
	DIR *folder = opendir(image->folder);
	struct dirent *entry;
	char path[512];

	assert_non_null(folder);
	while ((entry = readdir(folder))) {
		snprintf(path, sizeof(path), "%s/%s", image->folder, entry->d_name);
		if (entry->d_name[0] != '.')
			assert_int_equal(unlink(path), 0);
	}
	closedir(folder);
	assert_int_equal(rmdir(image->folder), 0);
}
