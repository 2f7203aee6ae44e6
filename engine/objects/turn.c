/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The turn: who may use what is stored. */
#include "engine/objects/turn.h"

#include "engine/records/work.h"

void turn_init(struct turn *turn)
{
	pthread_rwlockattr_t attributes;

	*turn = (struct turn){ 0 };
	pthread_rwlockattr_init(&attributes);
	pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&turn->lock, &attributes);
	pthread_rwlockattr_destroy(&attributes);
}

void turn_destroy(struct turn *turn)
{
	pthread_rwlock_destroy(&turn->lock);
}

/* Somebody has held the turn since `since`. */
static void count(struct turn *turn, uint64_t since)
{
	uint64_t records = records_worked - since;
	uint64_t most = __atomic_load_n(&turn->most, __ATOMIC_RELAXED);

	while (records > most && !__atomic_compare_exchange_n(&turn->most, &most, records, true,
							      __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

void turn_take(struct turn *turn)
{
	pthread_rwlock_wrlock(&turn->lock);
	turn->since = records_worked;
}

bool turn_try_take(struct turn *turn)
{
	if (pthread_rwlock_trywrlock(&turn->lock) != 0)
		return false;
	turn->since = records_worked;
	return true;
}

void turn_give(struct turn *turn)
{
	count(turn, turn->since);
	pthread_rwlock_unlock(&turn->lock);
}

uint64_t turn_share(struct turn *turn)
{
	pthread_rwlock_rdlock(&turn->lock);
	return records_worked;
}

bool turn_try_share(struct turn *turn, uint64_t *since)
{
	if (pthread_rwlock_tryrdlock(&turn->lock) != 0)
		return false;
	*since = records_worked;
	return true;
}

void turn_unshare(struct turn *turn, uint64_t since)
{
	count(turn, since);
	pthread_rwlock_unlock(&turn->lock);
}

uint64_t turn_take_most(struct turn *turn)
{
	return __atomic_exchange_n(&turn->most, 0, __ATOMIC_RELAXED);
}
