/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Compares access lists, and changes those of a tgtd that serves. */
#include "daemon/access.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/bytes.h"
#include "daemon/tgt_control.h"

/* ---- who is allowed ---- */

/* Whether the first `bits` of two addresses are the same. */
static bool is_same_net(const uint8_t *a, const uint8_t *b, unsigned int bits)
{
	unsigned int whole = bits / 8, rest = bits % 8;
	uint8_t mask = (uint8_t)(0xff00 >> rest);

	return !memcmp(a, b, whole) && (!rest || ((a[whole] ^ b[whole]) & mask) == 0);
}

/* `entry` is ALL, ADDRESS or ADDRESS/PREFIX; both are of the same family or do not match. */
static bool matches(const char *entry, const char *address)
{
	char text[64]; /* as an entry */
	uint8_t wanted[16], is[16];
	unsigned int bits;
	int family = strchr(entry, ':') ? AF_INET6 : AF_INET;
	char *slash;

	if (!strcmp(entry, "ALL"))
		return true;
	snprintf(text, sizeof(text), "%s", entry);
	slash = strchr(text, '/');
	bits = family == AF_INET6 ? 128 : 32;
	if (slash) {
		*slash = '\0';
		bits = (unsigned int)strtoul(slash + 1, NULL, 10);
	}
	return inet_pton(family, text, wanted) == 1 && inet_pton(family, address, is) == 1 &&
	       is_same_net(wanted, is, bits);
}

bool access_allows(const struct config *config, const char *name, const char *address)
{
	for (unsigned int i = 0; i < config->allow_names; i++)
		if (!strcmp(config->allow_name[i], name))
			return true;
	for (unsigned int i = 0; i < config->allow_addresses; i++)
		if (matches(config->allow_address[i], address))
			return true;
	return false;
}

/* ---- lists ---- */

typedef int list_request(struct tgtd *tgtd, const char *entry, struct error_text *error);

static bool is_in(const char *list, unsigned int count, size_t bytes, const char *entry)
{
	for (unsigned int i = 0; i < count; i++)
		if (!strcmp(list + i * bytes, entry))
			return true;
	return false;
}

/* Makes a request of each entry of `list` that `other` does not have. */
static int for_each_beyond(struct tgtd *tgtd, list_request *request, const char *list,
			   unsigned int count, const char *other, unsigned int other_count,
			   size_t bytes, struct error_text *error)
{
	int result = 0;

	for (unsigned int i = 0; !result && i < count; i++)
		if (!is_in(other, other_count, bytes, list + i * bytes))
			result = request(tgtd, list + i * bytes, error);
	return result;
}

int access_change(struct tgtd *tgtd, const struct config *old, const struct config *new,
		  struct error_text *error)
{
	const size_t address_bytes = sizeof(old->allow_address[0]);
	const size_t name_bytes = sizeof(old->allow_name[0]);
	int result = for_each_beyond(tgtd, tgt_disallow_address, old->allow_address[0],
				     old->allow_addresses, new->allow_address[0],
				     new->allow_addresses, address_bytes, error);

	if (!result)
		result = for_each_beyond(tgtd, tgt_disallow_name, old->allow_name[0],
					 old->allow_names, new->allow_name[0], new->allow_names,
					 name_bytes, error);
	if (!result)
		result = for_each_beyond(tgtd, tgt_allow_address, new->allow_address[0],
					 new->allow_addresses, old->allow_address[0],
					 old->allow_addresses, address_bytes, error);
	if (!result)
		result = for_each_beyond(tgtd, tgt_allow_name, new->allow_name[0], new->allow_names,
					 old->allow_name[0], old->allow_names, name_bytes, error);
	return result;
}

/* ---- the account ---- */

/*
 * An account that nobody knows. While it is required nobody gets in without an account, and tgtd
 * can lose the old one, whose name the new one may have.
 */
static int require_nobody(struct tgtd *tgtd, char user[64], struct error_text *error)
{
	uint64_t random[4];
	char secret[64];

	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return error_set(error, -EIO, "no random numbers");
	snprintf(user, 64, "nobody-%016llx", (unsigned long long)random[0]);
	snprintf(secret, sizeof(secret), "%016llx%016llx", (unsigned long long)random[1],
		 (unsigned long long)random[2]);
	return tgt_require_account(tgtd, user, secret, error);
}

int access_change_account(struct tgtd *tgtd, const struct config *old, const struct config *new,
			  struct error_text *error)
{
	char nobody[64];
	int result;

	if (!old->chap_user[0])
		return tgt_require_account(tgtd, new->chap_user, new->chap_secret, error);
	if (!new->chap_user[0])
		return tgt_forget_account(tgtd, old->chap_user, error);
	result = require_nobody(tgtd, nobody, error);
	if (!result)
		result = tgt_forget_account(tgtd, old->chap_user, error);
	if (!result)
		result = tgt_require_account(tgtd, new->chap_user, new->chap_secret, error);
	if (!result)
		result = tgt_forget_account(tgtd, nobody, error);
	return result;
}
