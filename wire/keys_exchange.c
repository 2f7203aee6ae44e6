/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The Diffie-Hellman exchange of SET MASTER KEY, and its parameter lists. */
#include "wire/keys_exchange.h"

#include <assert.h>
#include <errno.h>

#include <openssl/bn.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>

#include "common/bytes.h"

size_t osd_dh_bytes(uint8_t group)
{
	switch (group) {
	case OSD_DH_GROUP_2048:
		return 256;
	case OSD_DH_GROUP_3072:
		return 384;
	default:
		return 0;
	}
}

static BIGNUM *prime_of(uint8_t group)
{
	return group == OSD_DH_GROUP_2048 ? BN_get_rfc3526_prime_2048(NULL)
					  : BN_get_rfc3526_prime_3072(NULL);
}

/* result = base ^ secret modulo the group's prime, in time that does not depend on the secret. */
static int raise(uint8_t group, const BIGNUM *base, const uint8_t *secret, uint8_t *result)
{
	BN_CTX *context = BN_CTX_new();
	BIGNUM *prime = prime_of(group), *power = BN_new();
	BIGNUM *exponent = BN_bin2bn(secret, OSD_DH_SECRET_BYTES, NULL);
	int size = (int)osd_dh_bytes(group);
	bool good = context && prime && power && exponent;

	good = good && BN_mod_exp_mont_consttime(power, base, exponent, prime, context, NULL) == 1;
	good = good && BN_bn2binpad(power, result, size) == size;
	BN_clear_free(exponent);
	BN_clear_free(power);
	BN_free(prime);
	BN_CTX_free(context);
	return good ? 0 : -ENOMEM;
}

int osd_dh_begin(uint8_t group, struct osd_dh_pair *pair)
{
	BIGNUM *two;
	int result;

	if (osd_dh_bytes(group) == 0)
		return -EINVAL;
	pair->group = group;
	if (RAND_bytes(pair->secret, sizeof(pair->secret)) != 1)
		return -ENOMEM;
	two = BN_new();
	if (!two)
		return -ENOMEM;
	BN_set_word(two, 2);
	result = raise(group, two, pair->secret, pair->own);
	BN_free(two);
	return result;
}

/* Is 1 < number < prime - 1? With others everybody knows the shared secret. */
static bool is_in_group(const BIGNUM *number, const BIGNUM *prime)
{
	BIGNUM *last = BN_dup(prime);
	bool fits = last && BN_sub_word(last, 1) == 1 && !BN_is_zero(number) &&
		    !BN_is_one(number) && BN_cmp(number, last) < 0;

	BN_free(last);
	return fits;
}

int osd_dh_share(const struct osd_dh_pair *pair, const uint8_t *peer,
		 uint8_t shared[OSD_DH_BYTES_MAX])
{
	BIGNUM *prime = prime_of(pair->group);
	BIGNUM *number = BN_bin2bn(peer, (int)osd_dh_bytes(pair->group), NULL);
	int result = -ENOMEM;

	if (prime && number)
		result = is_in_group(number, prime)
				 ? raise(pair->group, number, pair->secret, shared)
				 : -EINVAL;
	BN_free(prime);
	BN_free(number);
	return result;
}

/* ---- parameter lists ---- */

/* A number behind its length; returns the bytes. */
static size_t put_number(uint8_t *to, uint8_t group, const uint8_t *number)
{
	size_t bytes = osd_dh_bytes(group);

	assert(bytes > 0);
	put_be32(to, (uint32_t)bytes);
	memcpy(to + 4, number, bytes);
	return 4 + bytes;
}

/* Reads a number at *at of a list, and moves on. */
static int get_number(const uint8_t *list, size_t length, size_t *at, uint8_t group,
		      const uint8_t **number)
{
	size_t bytes = osd_dh_bytes(group);

	if (bytes == 0 || *at > length || length - *at < 4 + bytes || get_be32(list + *at) != bytes)
		return -EINVAL;
	*number = list + *at + 4;
	*at += 4 + bytes;
	return 0;
}

size_t osd_seed_encode(uint8_t group, const uint8_t *number, uint8_t *list)
{
	return put_number(list, group, number);
}

int osd_seed_decode(const uint8_t *list, size_t length, uint8_t group, const uint8_t **number)
{
	size_t at = 0;

	return get_number(list, length, &at, group, number);
}

size_t osd_change_master_encode(uint8_t group, const uint8_t *application, const uint8_t *device,
				uint8_t *list)
{
	size_t at = put_number(list, group, application);

	return at + put_number(list + at, group, device);
}

int osd_change_master_decode(const uint8_t *list, size_t length, uint8_t group,
			     const uint8_t **application, const uint8_t **device)
{
	size_t at = 0;
	int result = get_number(list, length, &at, group, application);

	return result == 0 ? get_number(list, length, &at, group, device) : result;
}
