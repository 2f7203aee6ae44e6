/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Clones of partitions: clone, refresh, detach. */
#include <errno.h>
#include <inttypes.h>

#include "client/ctl/ctl.h"
#include "client/ctl/places.h"

/*
 * The target says only that there is no such source. Finds out whether partition or version is
 * missing.
 */
static int fail_clone(struct ctl *ctl, struct osd_client_address source,
		      const struct osd_client_error *error)
{
	const struct osd_client_moment moment = { .kind = OSD_CLIENT_AT_VERSION,
						  .value = source.version };
	const struct osd_client_address partition = { .partition = source.partition };
	struct osd_client_error outcome;
	uint64_t value;
	int code;

	if (error->result != -ENOENT)
		return ctl_fail_command(ctl, error);
	if (osd_client_get_number(ctl->client, partition, OSD_PARTITION_INFORMATION,
				  OSD_INFORMATION_PARTITION_ID, &value, &outcome) == -ENOENT)
		return ctl_fail(ctl, CTL_NOT_FOUND,
				"clone: there is no partition 0x%" PRIx64
				" now; one that was removed can be read as it was, or brought back "
				"by a rollback of the device, but not be cloned",
				source.partition);
	code = source.version ? ctl_check_moment(ctl, partition, &moment) : CTL_OK;
	return code == CTL_OK ? ctl_fail_command(ctl, error) : code;
}

int verb_clone(struct ctl *ctl)
{
	struct osd_client_address source;
	struct osd_client_error error;
	char name[OSD_VERSION_NAME_MAX + 1];
	uint64_t requested, chosen;
	int code = ctl_partition_address(ctl, 0, &source);

	if (code == CTL_OK)
		code = ctl_partition_to_make(ctl, 1, &requested, name);
	if (code == CTL_OK)
		code = ctl_connect(ctl);
	if (code != CTL_OK)
		return code;
	/* The target would copy the source's name, and then nobody could say which one is meant. */
	if (osd_client_clone_named(ctl->client, source, requested, !ctl->options->read_only, name,
				   &chosen, &error) < 0)
		return fail_clone(ctl, source, &error);
	return ctl_print_id(ctl, "partition", chosen);
}

typedef int change_clone(const struct ctl *ctl, uint64_t clone, struct osd_client_error *error);

/* The target gives the same answer for a missing partition and for one that is no clone. */
static int fail_change(struct ctl *ctl, struct osd_client_address address,
		       const struct osd_client_error *error)
{
	struct osd_client_error outcome;
	uint64_t source = 0;
	int result;

	if (error->result != -ENOENT)
		return ctl_fail_command(ctl, error);
	result = osd_client_get_number(ctl->client, address, OSD_MUNINN_PARTITION,
				       OSD_MUNINN_SOURCE_PARTITION, &source, &outcome);
	if (result == -ENODATA)
		return ctl_fail(ctl, CTL_USAGE,
				"%s: partition 0x%" PRIx64
				" is no clone, or was detached: it stands on no other partition",
				ctl->verb, address.partition);
	if (result == 0 && source == 0)
		return ctl_fail(ctl, CTL_NOT_FOUND,
				"%s: the partition that 0x%" PRIx64
				" was cloned from has been removed",
				ctl->verb, address.partition);
	return ctl_fail_command(ctl, error);
}

static int run_on_clone(struct ctl *ctl, change_clone *change)
{
	struct osd_client_address address;
	struct osd_client_error error;
	int code = ctl_partition_to_change(ctl, &address);

	if (code != CTL_OK)
		return code;
	if (change(ctl, address.partition, &error) < 0)
		return fail_change(ctl, address, &error);
	return ctl->options->json ? ctl_print_id(ctl, "changed", address.partition) : CTL_OK;
}

static int refresh(const struct ctl *ctl, uint64_t clone, struct osd_client_error *error)
{
	return osd_client_refresh_clone(ctl->client, clone, ctl->options->force, error);
}

static int detach(const struct ctl *ctl, uint64_t clone, struct osd_client_error *error)
{
	return osd_client_detach_clone(ctl->client, clone, error);
}

int verb_refresh(struct ctl *ctl)
{
	return run_on_clone(ctl, refresh);
}

int verb_detach(struct ctl *ctl)
{
	return run_on_clone(ctl, detach);
}
