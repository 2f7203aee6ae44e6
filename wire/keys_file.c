/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Reads and creates the file that holds a unit's device key. */
#include "wire/keys_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/crypto.h>
#include <openssl/rand.h>

#include "common/owner.h"

enum { TEXT_BYTES = 2 * OSD_DEVICE_KEY_BYTES };

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

static bool parse(const char *text, size_t length, uint8_t key[OSD_DEVICE_KEY_BYTES])
{
	if (length == TEXT_BYTES + 1 && text[TEXT_BYTES] == '\n')
		length--;
	for (size_t i = 0; i < OSD_DEVICE_KEY_BYTES && length == TEXT_BYTES; i++) {
		int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		key[i] = (uint8_t)(high * 16 + low);
	}
	return length == TEXT_BYTES;
}

static int read_open_file(int fd, const char *path, uint8_t key[OSD_DEVICE_KEY_BYTES],
			  struct error_text *error)
{
	char text[TEXT_BYTES + 2];
	struct stat stat;
	ssize_t length;
	bool good;

	if (fstat(fd, &stat) != 0)
		return error_set(error, -errno, "%s: %s", path, strerror(errno));
	if (stat.st_mode & (S_IRWXG | S_IRWXO))
		return error_set(error, -EPERM,
				 "%s: others than its owner can use this key; chmod 600 %s", path,
				 path);
	length = read(fd, text, sizeof(text));
	if (length < 0)
		return error_set(error, -errno, "%s: %s", path, strerror(errno));
	good = parse(text, (size_t)length, key);
	OPENSSL_cleanse(text, sizeof(text));
	if (!good)
		return error_set(error, -EINVAL,
				 "%s: a device key is %d hexadecimal digits; muninnctl key create "
				 "makes such a file",
				 path, TEXT_BYTES);
	return 0;
}

int osd_key_file_read(const char *path, uint8_t key[OSD_DEVICE_KEY_BYTES], struct error_text *error)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int result;

	if (fd < 0)
		return error_set(error, -errno, "device key %s: %s", path, strerror(errno));
	result = read_open_file(fd, path, key, error);
	close(fd);
	return result;
}

static int write_text(int fd, const char *text, size_t length)
{
	ssize_t written = write(fd, text, length);

	if (written < 0)
		return -errno;
	if ((size_t)written != length)
		return -ENOSPC;
	return fsync(fd) < 0 ? -errno : 0;
}

/* The file is there whole or not at all. */
static int make_file(const char *path, const char *text, size_t length)
{
	const char *name;
	int folder = owner_open_folder(path, &name);
	int fd, result;

	if (folder < 0)
		return folder;
	fd = owner_make_file(folder, name, O_WRONLY, 0600);
	result = fd < 0 ? fd : write_text(fd, text, length);
	if (fd >= 0 && result < 0)
		unlinkat(folder, name, 0);
	if (fd >= 0)
		close(fd);
	close(folder);
	return result;
}

int osd_key_file_create(const char *path, struct error_text *error)
{
	uint8_t key[OSD_DEVICE_KEY_BYTES];
	char text[TEXT_BYTES + 2];
	int result;

	if (RAND_bytes(key, sizeof(key)) != 1)
		return error_set(error, -ENOMEM, "%s: the system gives no random bytes", path);
	for (size_t i = 0; i < sizeof(key); i++)
		snprintf(text + 2 * i, 3, "%02x", key[i]);
	text[TEXT_BYTES] = '\n';
	result = make_file(path, text, TEXT_BYTES + 1);
	OPENSSL_cleanse(key, sizeof(key));
	OPENSSL_cleanse(text, sizeof(text));
	return result < 0 ? error_set(error, result, "%s: %s", path, strerror(-result)) : 0;
}
