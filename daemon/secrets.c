/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Reads CHAP secrets from their files. */
#include "daemon/secrets.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_BYTES_MAX 256

/* A name without / is a credential. -ENOENT with a sentence: systemd has given none. */
static int find_file(const char *name, char path[PATH_MAX], struct error_text *error)
{
	const char *folder = getenv("CREDENTIALS_DIRECTORY");

	if (name[0] == '/') {
		strcpy(path, name);
		return 0;
	}
	if (!folder)
		return error_set(error, -ENOENT,
				 "%s is the name of a credential, and systemd has given none: "
				 "LoadCredential=%s:FILE in the unit does; by hand, set "
				 "CREDENTIALS_DIRECTORY",
				 name, name);
	if (snprintf(path, PATH_MAX, "%s/%s", folder, name) >= PATH_MAX)
		return error_set(error, -ENAMETOOLONG, "%s: the path is too long", name);
	return 0;
}

/* systemd itself sees to who can read a credential, partly by an access control list. */
static int check_readers(int fd, bool is_credential, const char *path, struct error_text *error)
{
	struct stat status;

	if (fstat(fd, &status))
		return error_set(error, -errno, "%s: %s", path, strerror(errno));
	if (!S_ISREG(status.st_mode))
		return error_set(error, -EISDIR, "%s is no file", path);
	if (!is_credential && status.st_mode & (S_IRWXG | S_IRWXO))
		return error_set(error, -EACCES,
				 "%s: others than its owner can use this secret: chmod 600 %s",
				 path, path);
	return 0;
}

/* The first line is the secret, and the only one. */
static int take_secret(int fd, const char *path, char secret[CONFIG_SECRET_BYTES],
		       struct error_text *error)
{
	struct error_text reason = { "" };
	char text[FILE_BYTES_MAX + 1] = "";
	ssize_t got = read(fd, text, FILE_BYTES_MAX);
	int result;

	if (got < 0)
		return error_set(error, -errno, "%s: %s", path, strerror(errno));
	if (got > 0 && text[got - 1] == '\n')
		text[got - 1] = '\0';
	result = config_check_secret(text, &reason);
	if (!result && strlen(text) + 1 < (size_t)got)
		result = error_set(&reason, -EINVAL, "there is more in it than one secret");
	if (!result)
		strcpy(secret, text);
	explicit_bzero(text, sizeof(text));
	return result ? error_set(error, -EBADMSG, "%s: %s", path, reason.text) : 0;
}

static int read_secret(const char *name, char secret[CONFIG_SECRET_BYTES], struct error_text *error)
{
	char path[PATH_MAX];
	int result = find_file(name, path, error), fd;

	if (result)
		return result;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return error_set(error, -errno, "%s: %s", path, strerror(errno));
	result = check_readers(fd, name[0] != '/', path, error);
	if (!result)
		result = take_secret(fd, path, secret, error);
	close(fd);
	return result;
}

static int load(const struct config *config, struct chap_account *account, const char *section,
		const char *kind, struct error_text *error)
{
	struct error_text reason = { "" };
	int result;

	if (!account->secret_file[0])
		return 0;
	result = read_secret(account->secret_file, account->secret, &reason);
	return result ? error_set(error, result, "%s: %s %s_secret_file: %s", config->source,
				  section, kind, reason.text)
		      : 0;
}

static int load_all(struct config *config, struct error_text *error)
{
	int result = load(config, &config->discovery, "[target]", "discovery", error);

	for (unsigned int i = 0; !result && i < config->target_count; i++) {
		struct target_config *target = &config->targets[i];
		char section[CONFIG_DEVICE_BYTES + 16];

		config_target_section(target, section, sizeof(section));
		result = load(config, &target->chap, section, "chap", error);
		if (!result)
			result = load(config, &target->mutual, section, "mutual", error);
	}
	return result;
}

/* ---- what all of them show ---- */

#define ACCOUNTS_MAX (1 + 2 * CONFIG_TARGETS_MAX)

static int check_users(const struct config *config, struct error_text *error)
{
	const struct chap_account *accounts[ACCOUNTS_MAX] = { &config->discovery };
	unsigned int count = 1;

	for (unsigned int i = 0; i < config->target_count; i++) {
		accounts[count++] = &config->targets[i].chap;
		accounts[count++] = &config->targets[i].mutual;
	}
	for (unsigned int i = 0; i < count; i++)
		for (unsigned int j = 0; accounts[i]->user[0] && j < i; j++)
			if (!strcmp(accounts[i]->user, accounts[j]->user) &&
			    strcmp(accounts[i]->secret, accounts[j]->secret))
				return error_set(error, -EINVAL,
						 "%s: user %s has two secrets: one user has one, "
						 "of all targets and of discovery",
						 config->source, accounts[i]->user);
	return 0;
}

int secrets_load(struct config *config, struct error_text *error)
{
	int result = load_all(config, error);

	if (!result)
		result = check_users(config, error);
	for (unsigned int i = 0; !result && i < config->target_count; i++) {
		const struct target_config *target = &config->targets[i];
		char section[CONFIG_DEVICE_BYTES + 16];

		config_target_section(target, section, sizeof(section));
		if (target->mutual.user[0] && !strcmp(target->mutual.secret, target->chap.secret))
			result = error_set(error, -EINVAL,
					   "%s: %s: mutual_secret must be another one than "
					   "chap_secret, which initiators know",
					   config->source, section);
	}
	return result;
}
