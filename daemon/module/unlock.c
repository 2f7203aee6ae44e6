/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Ends the lock of a partition's history when an administrator asks for it. */
#include "daemon/module/unlock.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/log.h"
#include "daemon/module/instruction.h"
#include "engine/engine.h"
#include "engine/history.h"

static int end_lock(struct engine *engine, uint64_t partition)
{
	struct engine_retention retention;
	struct engine_txn *txn;
	int result;

	if (!(engine_capabilities(engine) & ENGINE_HAS_RETENTION))
		return -EOPNOTSUPP;
	result = engine_begin(engine, ENGINE_RESCUE, &txn);
	if (result)
		return result;
	result = engine_retention_get(txn, partition, &retention);
	retention.locked_until_ms = 0;
	if (!result)
		result = engine_retention_set(txn, partition, &retention, true);
	if (!result)
		return engine_commit(txn, true);
	engine_abort(txn);
	return result;
}

static const char *reason_of(int result)
{
	return result == -EINVAL       ? "the file holds no partition ID"
	       : result == -ENOENT     ? "there is no such partition"
	       : result == -EOPNOTSUPP ? "this unit's engine keeps no history that could be locked"
				       : strerror(-result);
}

void unlock_take(struct engine *engine, const char *image)
{
	uint64_t partition = 0;
	int result = instruction_read(image, "unlock", &partition);

	if (result == -ENOENT)
		return;
	if (!result)
		result = end_lock(engine, partition);
	if (!result)
		log_line(LOG_LEVEL_WARNING,
			 "%s: the history of partition 0x%" PRIx64
			 " is no longer locked, as the administrator asked",
			 image, partition);
	instruction_answer(image, "unlock", result ? reason_of(result) : NULL);
}
