/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * CHECKSUM: each command digests a bounded number of bytes. The state of the digest goes to the
 * initiator and comes back with the next command.
 */
#define OPENSSL_SUPPRESS_DEPRECATED /* a digest whose state can be looked at */

#include <errno.h>
#include <openssl/sha.h>
#include <stdlib.h>

#include "common/bytes.h"
#include "osd/functions.h"

enum {
	BUFFER_BYTES = 64 << 10,
	CHECKSUM_BYTES_MAX = 8 << 20, /* digested by one command */
};

/*
 * Between commands: bytes digested 8, the digest's eight words 4 each. Commands end at whole
 * blocks.
 */
#define DIGEST_STATE_BYTES 40

static void save_digest(const SHA256_CTX *digest, uint64_t digested, uint8_t *state)
{
	put_be64(state, digested);
	for (size_t i = 0; i < 8; i++)
		put_be32(state + 8 + 4 * i, digest->h[i]);
}

static int load_digest(struct osd_request *request, uint64_t length, SHA256_CTX *digest,
		       uint64_t *digested)
{
	struct osd_item item;

	SHA256_Init(digest);
	*digested = 0;
	if (osd_parameter(request, OSD_ITEM_CONTINUATION, &item) != 0)
		return 0;
	if (item.length != DIGEST_STATE_BYTES)
		return osd_fail_parameter(request, OSD_ITEM_CONTINUATION);
	*digested = get_be64(item.value);
	if (*digested > length || *digested % SHA256_CBLOCK != 0)
		return osd_fail_parameter(request, OSD_ITEM_CONTINUATION);
	for (size_t i = 0; i < 8; i++)
		digest->h[i] = get_be32(item.value + 8 + 4 * i);
	digest->Nl = (SHA_LONG)(*digested << 3);
	digest->Nh = (SHA_LONG)(*digested >> 29);
	return 0;
}

/* Digests up to CHECKSUM_BYTES_MAX more of the range. */
static int digest_some(struct osd_request *request, uint64_t offset, uint64_t length,
		       SHA256_CTX *digest, uint64_t *digested)
{
	uint64_t end = min_u64(length, *digested + CHECKSUM_BYTES_MAX), got;
	uint8_t *buffer = malloc(BUFFER_BYTES);
	int result = buffer ? 0 : -ENOMEM;

	while (result == 0 && *digested < end) {
		uint64_t part = min_u64(end - *digested, BUFFER_BYTES);

		result = engine_object_read(request->subject.object, offset + *digested, buffer,
					    part, &got);
		if (result == 0 && got != part)
			result = -EIO; /* the range lies inside the object */
		if (result == 0)
			SHA256_Update(digest, buffer, part);
		*digested += part;
	}
	free(buffer);
	return osd_result(request, result, 0);
}

int osd_function_checksum(struct osd_request *request)
{
	uint64_t length = request->subject.stat.length, offset, wanted, digested;
	uint8_t state[DIGEST_STATE_BYTES], value[SHA256_DIGEST_LENGTH];
	struct osd_item_writer writer;
	SHA256_CTX digest;

	if (osd_parameter_number(request, OSD_ITEM_OFFSET, 0, &offset) != 0)
		return -EINVAL;
	if (offset > length)
		return osd_fail_parameter(request, OSD_ITEM_OFFSET);
	if (osd_parameter_number(request, OSD_ITEM_LENGTH, length - offset, &wanted) != 0)
		return -EINVAL;
	if (wanted > length - offset)
		return osd_fail_parameter(request, OSD_ITEM_LENGTH);
	if (load_digest(request, wanted, &digest, &digested) != 0 ||
	    digest_some(request, offset, wanted, &digest, &digested) != 0)
		return -EINVAL;
	osd_result_begin(request, &writer);
	osd_item_add_number(&writer, OSD_ITEM_LENGTH, digested);
	if (digested < wanted) {
		save_digest(&digest, digested, state);
	} else {
		SHA256_Final(value, &digest);
		osd_item_add(&writer, OSD_ITEM_DIGEST, value, sizeof(value));
	}
	osd_result_end(request, &writer, digested < wanted ? state : NULL, sizeof(state),
		       osd_permille(digested, wanted));
	return 0;
}
