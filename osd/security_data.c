/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Check values over Data-Out and Data-In. */
#include "osd/security.h"

#include <assert.h>
#include <errno.h>

#include <openssl/crypto.h>

#include "common/bytes.h"
#include "osd/execute.h"

const uint8_t *osd_security_nonce(const struct osd_request *request)
{
	return request->command->cdb + osd_security_layout(request->cdb.version)->nonce;
}

/* ---- Data-Out ---- */

static struct osd_integrity_lengths out_lengths(const struct osd_request *request)
{
	return (struct osd_integrity_lengths){ request->out_data_length,
					       request->cdb.set_data.length,
					       request->cdb.get_list.length };
}

static bool has_data_out(const struct osd_request *request)
{
	struct osd_integrity_lengths lengths = out_lengths(request);

	return lengths.data + lengths.sets + lengths.gets != 0;
}

static int sum_data_out(const struct osd_request *request, const uint8_t key[OSD_KEY_BYTES],
			uint8_t *information)
{
	const struct osd_cdb *cdb = &request->cdb;
	const uint8_t *data = request->command->data_out;
	struct osd_integrity_lengths lengths = out_lengths(request);
	const struct iovec pieces[] = {
		{ (void *)(data + request->out_data), lengths.data },
		{ (void *)(data + (lengths.sets ? cdb->set_data.offset : 0)), lengths.sets },
		{ (void *)(data + (lengths.gets ? cdb->get_list.offset : 0)), lengths.gets },
	};

	return osd_data_out_integrity(cdb->version, key, osd_security_nonce(request), &lengths,
				      pieces, 3, information);
}

void osd_security_sum(const struct osd_request *request, uint8_t method,
		      const uint8_t key[OSD_KEY_BYTES], struct osd_security_sums *sums)
{
	int result = 0;

	*sums = (struct osd_security_sums){ 0 };
	assert(osd_data_out_integrity_bytes(request->cdb.version) <= sizeof(sums->data_out));
	memcpy(sums->key, key, OSD_KEY_BYTES);
	if (request->out_data != 0)
		result = osd_continuation_check_value(key, osd_security_nonce(request),
						      request->command->data_out, request->out_data,
						      sums->continuation);
	if (result == 0 && method == OSD_ALLDATA && has_data_out(request))
		result = sum_data_out(request, key, sums->data_out);
	sums->known = result == 0;
}

static int check_continuation_value(struct osd_request *request)
{
	const uint8_t *segment = request->command->data_out;
	const struct osd_security_sums *sums = &request->security.sums;

	if (request->out_data != 0 &&
	    !osd_check_values_equal(sums->continuation, segment + OSD_CONTINUATION_CHECK_VALUE,
				    sizeof(sums->continuation)))
		return osd_fail_field(request, OSD_FIELD_CONTINUATION);
	return 0;
}

/*
 * Finds integrity information of `bytes` at the place that the CDB's `field` gives, behind `used`.
 */
static int find_integrity(struct osd_request *request, uint16_t field, uint64_t used, size_t bytes,
			  uint64_t space, uint64_t *offset)
{
	uint32_t encoded = get_be32(request->command->cdb + field);

	if (osd_offset_decode(request->cdb.version, encoded, offset) != 0 || *offset < used ||
	    *offset > space || space - *offset < bytes)
		return osd_fail_field(request, field);
	return 0;
}

static int check_data_out(struct osd_request *request)
{
	const struct osd_security_layout *layout = osd_security_layout(request->cdb.version);
	struct osd_command *command = request->command;
	size_t bytes = osd_data_out_integrity_bytes(request->cdb.version);
	uint64_t offset;

	if (!has_data_out(request))
		return 0;
	if (find_integrity(request, layout->data_out_offset, command->data_out_used, bytes,
			   command->data_out_length, &offset) != 0)
		return -EINVAL;
	command->data_out_used = offset + bytes;
	if (!osd_check_values_equal(request->security.sums.data_out, command->data_out + offset,
				    bytes))
		return osd_fail(request, SENSE_ILLEGAL_REQUEST,
				SENSE_INVALID_DATA_OUT_BUFFER_INTEGRITY_CHECK_VALUE);
	return 0;
}

/* ---- Data-In ---- */

/*
 * Is there a place for the integrity information of Data-In, if the command can answer with data?
 */
static int find_integrity_place(struct osd_request *request)
{
	const struct osd_security_layout *layout = osd_security_layout(request->cdb.version);
	const struct osd_cdb *cdb = &request->cdb;
	bool in_data = cdb->list_attributes && request->entry->flags & OSD_LISTS;
	uint64_t used = request->in_data_length;

	if (cdb->retrieved.length > 0 && !in_data)
		used = max_u64(used, cdb->retrieved.offset + cdb->retrieved.length);
	if (used == 0)
		return 0;
	return find_integrity(
		request, layout->data_in_offset, used, osd_data_in_integrity_bytes(cdb->version),
		request->command->data_in_capacity, &request->security.integrity_offset);
}

int osd_security_check_buffers(struct osd_request *request)
{
	struct osd_security_state *state = &request->security;

	if (state->method < OSD_CMDRSP)
		return 0;
	/* The key is another one than a moment ago, or nothing was computed yet. */
	if (!state->sums.known ||
	    !osd_check_values_equal(state->sums.key, state->key, OSD_KEY_BYTES))
		osd_security_sum(request, state->method, state->key, &state->sums);
	if (!state->sums.known)
		return osd_result(request, -ENOMEM, 0);
	if (check_continuation_value(request) != 0)
		return -EINVAL;
	if (state->method != OSD_ALLDATA)
		return 0;
	return check_data_out(request) != 0 ? -EINVAL : find_integrity_place(request);
}

void osd_security_sign_data(struct osd_request *request)
{
	struct osd_security_state *state = &request->security;
	struct osd_command *command = request->command;
	size_t bytes = osd_data_in_integrity_bytes(request->cdb.version);
	struct osd_integrity_lengths lengths = { .data = command->data_in_length };
	struct iovec pieces[2];

	if (state->method != OSD_ALLDATA || !state->checked || command->data_in_length == 0)
		return;
	assert(state->integrity_offset >= command->data_in_length &&
	       state->integrity_offset + bytes <= command->data_in_capacity);
	if (state->answer_attributes != 0) {
		lengths.data = state->answer_data;
		lengths.gets = state->answer_attributes;
	}
	pieces[0] = (struct iovec){ command->data_in, lengths.data };
	pieces[1] = (struct iovec){ command->data_in, 0 };
	if (lengths.gets != 0)
		pieces[1] = (struct iovec){ command->data_in + request->cdb.retrieved.offset,
					    lengths.gets };
	memset(command->data_in + command->data_in_length, 0,
	       state->integrity_offset - command->data_in_length);
	/* Without memory the value stays zero. */
	osd_data_in_integrity(request->cdb.version, state->key, osd_security_nonce(request),
			      &lengths, pieces, 2, command->data_in + state->integrity_offset);
	command->data_in_length = state->integrity_offset + bytes;
}
