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

bool access_allows(const struct target_config *target, const char *name, const char *address)
{
	for (unsigned int i = 0; i < target->allow_names; i++)
		if (!strcmp(target->allow_name[i], name))
			return true;
	for (unsigned int i = 0; i < target->allow_addresses; i++)
		if (matches(target->allow_address[i], address))
			return true;
	return false;
}

/* ---- lists ---- */

typedef int list_request(struct tgtd *tgtd, unsigned int target, const char *entry,
			 struct error_text *error);

/* One of the two lists of a target. */
struct list {
	char *entries; /* of `bytes` bytes each */
	size_t bytes;
	unsigned int *count;
	list_request *allow, *disallow;
};

enum { LISTS = 2 };

static void find_lists(struct target_config *target, struct list lists[LISTS])
{
	lists[0] = (struct list){ target->allow_address[0], sizeof(target->allow_address[0]),
				  &target->allow_addresses, tgt_allow_address,
				  tgt_disallow_address };
	lists[1] = (struct list){ target->allow_name[0], sizeof(target->allow_name[0]),
				  &target->allow_names, tgt_allow_name, tgt_disallow_name };
}

static bool is_in(const struct list *list, const char *entry)
{
	for (unsigned int i = 0; i < *list->count; i++)
		if (!strcmp(list->entries + i * list->bytes, entry))
			return true;
	return false;
}

/* Takes out of tgtd's list what the new one does not have. */
static int remove_others(struct tgtd *tgtd, unsigned int target, struct list *now,
			 const struct list *new, struct error_text *error)
{
	unsigned int i = 0;
	int result = 0;

	while (!result && i < *now->count) {
		char *entry = now->entries + i * now->bytes;

		if (is_in(new, entry)) {
			i++;
			continue;
		}
		result = now->disallow(tgtd, target, entry, error);
		if (!result)
			memmove(entry, entry + now->bytes, (--*now->count - i) * now->bytes);
	}
	return result;
}

/* Behind remove_others there is room for all of them. */
static int add_missing(struct tgtd *tgtd, unsigned int target, struct list *now,
		       const struct list *new, struct error_text *error)
{
	int result = 0;

	for (unsigned int i = 0; !result && i < *new->count; i++) {
		const char *entry = new->entries + i *new->bytes;

		if (is_in(now, entry))
			continue;
		result = now->allow(tgtd, target, entry, error);
		if (!result)
			memcpy(now->entries + (*now->count)++ * now->bytes, entry, now->bytes);
	}
	return result;
}

bool access_is_same_lists(const struct target_config *a, const struct target_config *b)
{
	struct target_config copies[2] = { *a, *b };
	struct list lists[2][LISTS];
	bool same = true;

	find_lists(&copies[0], lists[0]);
	find_lists(&copies[1], lists[1]);
	for (int i = 0; i < LISTS; i++) {
		same &= *lists[0][i].count == *lists[1][i].count;
		for (unsigned int j = 0; same && j < *lists[0][i].count; j++)
			same = is_in(&lists[1][i], lists[0][i].entries + j * lists[0][i].bytes);
	}
	return same;
}

int access_change_lists(struct tgtd *tgtd, struct target_config *now,
			const struct target_config *new, struct error_text *error)
{
	struct target_config copy = *new;
	struct list have[LISTS], want[LISTS];
	int result = 0;

	find_lists(now, have);
	find_lists(&copy, want);
	/* First who is kept out. */
	for (int i = 0; !result && i < LISTS; i++)
		result = remove_others(tgtd, now->id, &have[i], &want[i], error);
	for (int i = 0; !result && i < LISTS; i++)
		result = add_missing(tgtd, now->id, &have[i], &want[i], error);
	return result;
}

/* ---- accounts ---- */

static bool is_same_account(const struct chap_account *a, const struct chap_account *b)
{
	return !strcmp(a->user, b->user) && !strcmp(a->secret, b->secret);
}

/* Whether each target of `a` has the accounts that `b` has for it; one that is missing has none. */
static bool has_its_accounts(const struct config *a, const struct config *b)
{
	static const struct target_config none;
	bool same = true;

	for (unsigned int i = 0; same && i < a->target_count; i++) {
		const struct target_config *other = config_find_target(b, a->targets[i].label);

		other = other ? other : &none;
		same = is_same_account(&a->targets[i].chap, &other->chap) &&
		       is_same_account(&a->targets[i].mutual, &other->mutual);
	}
	return same;
}

bool access_is_same_accounts(const struct config *a, const struct config *b)
{
	return is_same_account(&a->discovery, &b->discovery) && has_its_accounts(a, b) &&
	       has_its_accounts(b, a);
}

bool access_lacks_account(const struct config *served, const struct config *wanted,
			  const char *label)
{
	const struct target_config *now = config_find_target(served, label);
	const struct target_config *new = config_find_target(wanted, label);

	return now && new &&new->chap.user[0] && !now->chap.user[0];
}

static int make_account(struct tgtd *tgtd, unsigned int target, const struct chap_account *account,
			bool outgoing, struct error_text *error)
{
	int result = 0;

	if (!account->user[0])
		return 0;
	result = tgt_account_create(tgtd, account->user, account->secret, error);
	return result ? result : tgt_account_bind(tgtd, target, account->user, outgoing, error);
}

/* `served`: whose targets have tgtd's numbers. */
static int make_accounts(struct tgtd *tgtd, const struct config *config,
			 const struct config *served, struct error_text *error)
{
	int result = make_account(tgtd, TGT_DISCOVERY, &config->discovery, false, error);

	for (unsigned int i = 0; !result && i < config->target_count; i++) {
		const struct target_config *target = &config->targets[i];
		const struct target_config *at = config_find_target(served, target->label);

		if (!at || !at->id)
			continue;
		result = make_account(tgtd, at->id, &target->chap, false, error);
		if (!result)
			result = make_account(tgtd, at->id, &target->mutual, true, error);
	}
	return result;
}

int access_make_accounts(struct tgtd *tgtd, const struct config *config, struct error_text *error)
{
	return make_accounts(tgtd, config, config, error);
}

/* Configured names have no brackets. */
static const char first[] = "(first)", nobody[] = "(nobody)";

/* An account whose secret nobody knows. */
static int make_unknown(struct tgtd *tgtd, const char *user, struct error_text *error)
{
	uint64_t random[2];
	char secret[CONFIG_SECRET_BYTES];

	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return error_set(error, -EIO, "no random numbers");
	snprintf(secret, sizeof(secret), "%016llx%016llx", (unsigned long long)random[0],
		 (unsigned long long)random[1]);
	return tgt_account_create(tgtd, user, secret, error);
}

/*
 * tgtd keeps a target's accounts at places, the lowest free one for the next, and looks for one
 * only at as many places as there are accounts, from the first one on. So this must not have the
 * first place, where the account that stays is to be when this one goes.
 */
static int bind_nobody(struct tgtd *tgtd, unsigned int target, struct error_text *error)
{
	int result = tgt_account_bind(tgtd, target, first, false, error);

	return result ? result : tgt_account_bind(tgtd, target, nobody, false, error);
}

/*
 * While a target has an account that nobody knows, nobody gets in without an account, and tgtd can
 * lose the old one, whose name the new one may have. For those that require one now.
 */
static int require_nobody(struct tgtd *tgtd, const struct config *now, struct error_text *error)
{
	int result = make_unknown(tgtd, first, error);

	if (!result)
		result = make_unknown(tgtd, nobody, error);
	if (!result && now->discovery.user[0])
		result = bind_nobody(tgtd, TGT_DISCOVERY, error);
	for (unsigned int i = 0; !result && i < now->target_count; i++)
		if (now->targets[i].chap.user[0] && now->targets[i].id)
			result = bind_nobody(tgtd, now->targets[i].id, error);
	return result;
}

/* Whatever tgtd has, also of a change that was left in the middle. */
static int delete_others(struct tgtd *tgtd, struct error_text *error)
{
	char *text, *rest, *line;
	int result = tgt_accounts(tgtd, &text, error);

	if (result)
		return result;
	rest = text;
	while (!result && (line = strsep(&rest, "\n"))) {
		const char *user = line + strspn(line, " \t");

		/* The first line is a headline. */
		if (user != line && user[0] && strcmp(user, nobody))
			result = tgt_account_delete(tgtd, user, error);
	}
	free(text);
	return result;
}

int access_change_accounts(struct tgtd *tgtd, const struct config *now, const struct config *new,
			   struct error_text *error)
{
	int result = require_nobody(tgtd, now, error);

	if (!result)
		result = delete_others(tgtd, error);
	if (!result)
		result = make_accounts(tgtd, new, now, error);
	return result ? result : tgt_account_delete(tgtd, nobody, error);
}
