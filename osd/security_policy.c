/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The judge: whose method and keys protect what a partition number with version bits shows. All
 * commands ask here, for the object that they address and for further ones.
 */
#include <errno.h>

#include "common/bytes.h"
#include "osd/execute.h"

/* Snapshots have no keys; what they were made of governs them, as long as that is there. */
static int find_governing(const struct osd_request *request, struct osd_policy *policy)
{
	for (unsigned i = 0; i <= ENGINE_CLONE_DEPTH_MAX; i++) {
		struct engine_clone clone;
		int result = osd_clone_get(request, policy->address.partition, &clone);

		/* An ordinary partition, or none at all. */
		if (result == -ENOENT || (result == 0 && clone.writable))
			return 0;
		if (result != 0)
			return result;
		policy->stands_alone = clone.source == 0;
		if (policy->stands_alone)
			return 0;
		policy->address.partition = clone.source;
	}
	return 0;
}

/* Do the version bits show the partition that has the ID now? */
static int look_at_version(const struct osd_request *request, struct engine_address named,
			   struct osd_policy *policy, bool *is_present)
{
	int result = -ENOENT;

	*is_present = true;
	if (named.version == 0)
		return 0;
	if (osd_has(request->device, ENGINE_HAS_VERSIONS))
		result = engine_partition_shown(request->txn, named, is_present);
	if (result != -ENOENT)
		return result;
	policy->shows_nothing = true;
	*is_present = true;
	return 0;
}

int osd_security_find_policy(const struct osd_request *request, uint64_t partition,
			     struct osd_policy *policy)
{
	struct engine_address named = osd_address(partition, 0);
	bool is_present;
	int result;

	*policy = (struct osd_policy){ 0 };
	if (named.partition == 0)
		return 0;
	result = look_at_version(request, named, policy, &is_present);
	if (result != 0)
		return result;
	if (!is_present) {
		policy->address = named;
		policy->stands_alone = true;
		return 0;
	}
	policy->address.partition = named.partition;
	return find_governing(request, policy);
}

static int check_method(int result, uint32_t length, uint8_t *method)
{
	if (result == -ENOENT) {
		*method = OSD_NOSEC;
		return 0;
	}
	return result == 0 && (length != 1 || *method > OSD_ALLDATA) ? -EBADMSG : result;
}

/* The strongest method of what a snapshot was made of, and so on. */
static int strengthen(const struct osd_request *request, struct engine_address snapshot,
		      uint8_t *method)
{
	for (unsigned above = 1; above <= ENGINE_CLONE_DEPTH_MAX; above++) {
		uint8_t own = OSD_NOSEC;
		uint32_t length = 0;
		int result = engine_snapshot_attribute_get(
			request->txn, snapshot, above, OSD_PARTITION_SECURITY,
			OSD_SECURITY_DEFAULT_METHOD, &own, 1, &length);

		if (result == -ENODATA)
			return 0;
		result = check_method(result, length, &own);
		if (result != 0)
			return result;
		*method = (uint8_t)max_u64(*method, own);
	}
	return 0;
}

int osd_security_method_at(const struct osd_request *request, const struct osd_policy *policy,
			   uint8_t *method)
{
	bool of_root = policy->address.partition == 0;
	uint32_t length = 0;
	int result = osd_attribute_at(request->txn, policy->address,
				      of_root ? OSD_ROOT_SECURITY : OSD_PARTITION_SECURITY,
				      OSD_SECURITY_DEFAULT_METHOD, method, 1, &length);

	result = check_method(result, length, method);
	if (result == 0 && policy->stands_alone && osd_has(request->device, ENGINE_HAS_CLONES))
		result = strengthen(request, policy->address, method);
	return result;
}

int osd_security_method_of(const struct osd_request *request, uint64_t partition, uint8_t *method)
{
	struct osd_policy policy;
	int result = osd_security_find_policy(request, partition, &policy);

	*method = OSD_NOSEC;
	return result != 0 ? result : osd_security_method_at(request, &policy, method);
}

int osd_security_is_present(const struct osd_request *request, struct engine_address address,
			    bool *is_present)
{
	struct engine_address partition = { .partition = address.partition,
					    .version = address.version };

	*is_present = true;
	if (address.version <= ENGINE_PARTITION_VERSION_LAST)
		return 0;
	return engine_partition_shown(request->txn, partition, is_present);
}
