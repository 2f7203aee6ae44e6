/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Growth out of history: nobody has to keep figures for it, because the target can still say how
 * much the present of a day ago held.
 */
#include "client/ctl/growth.h"

#include <errno.h>

#include "client/ctl/items.h"

#define DAY_MS 86400000

struct sum {
	struct ctl *ctl;
	uint16_t version;
	uint64_t bytes;
};

/* Of the present one may be gone meanwhile. */
static int add_partition(void *context, uint64_t id)
{
	struct sum *sum = context;
	const struct osd_client_address address = { .partition = id, .version = sum->version };
	struct osd_client_error error;
	uint64_t bytes = 0;
	int result = osd_client_get_number(sum->ctl->client, address, OSD_PARTITION_INFORMATION,
					   OSD_INFORMATION_USED_CAPACITY, &bytes, &error);

	sum->bytes += bytes;
	return result == -ENOENT && !sum->version ? 0 : result;
}

/* What a present held: of the partition, or of all that there were. */
static int held_at(struct ctl *ctl, struct osd_client_address address, uint64_t *bytes)
{
	struct sum sum = { .ctl = ctl, .version = address.version };
	struct osd_client_error error;
	int result;

	if (address.partition)
		return osd_client_get_number(ctl->client, address, OSD_PARTITION_INFORMATION,
					     OSD_INFORMATION_USED_CAPACITY, bytes, &error);
	result = osd_client_list(ctl->client, address, 0, add_partition, &sum, &error);
	*bytes = sum.bytes;
	return result;
}

static uint64_t horizon_of(struct ctl *ctl, struct osd_client_address address)
{
	struct items found = { .length = 0 };
	struct osd_client_error error;

	if (osd_client_execute(ctl->client, OSD_FUNCTION_RETENTION, address, NULL, 0, items_take,
			       &found, &error) < 0)
		return 0;
	return items_number(&found, OSD_ITEM_HORIZON);
}

/* The version to read a day ago, or at the oldest moment that history reaches. */
static int resolve(struct ctl *ctl, struct osd_client_address *then, uint64_t ms)
{
	const struct osd_client_moment moment = { .kind = OSD_CLIENT_AT_TIME, .value = ms };
	struct osd_client_error error;

	return osd_client_resolve(ctl->client, *then, &moment, &then->version, &error);
}

void growth_take(struct growth *growth, struct ctl *ctl, struct osd_client_address address)
{
	const struct osd_client_address of = { .partition = address.partition };
	const uint64_t now_ms = ctl_now_ms();
	struct osd_client_address then = of;
	uint64_t horizon = horizon_of(ctl, of), ms = now_ms - DAY_MS, now, before;

	*growth = (struct growth){ .is_known = false };
	if (horizon > ms)
		ms = horizon;
	if (horizon == 0 || ms >= now_ms || resolve(ctl, &then, ms) < 0 ||
	    held_at(ctl, then, &before) < 0 || held_at(ctl, of, &now) < 0)
		return;
	*growth = (struct growth){
		.is_known = true,
		.bytes = (int64_t)(now - before),
		.span_ms = now_ms - ms,
	};
}

int64_t growth_of_a_day(const struct growth *growth)
{
	if (!growth->is_known || growth->span_ms < GROWTH_SPAN_MS_MIN)
		return 0;
	return (int64_t)((double)growth->bytes / (double)growth->span_ms * DAY_MS);
}

double growth_days_until_full(const struct growth *growth, uint64_t available)
{
	int64_t day = growth_of_a_day(growth);

	return day > 0 ? (double)available / (double)day : -1;
}
