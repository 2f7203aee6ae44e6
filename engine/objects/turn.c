/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The turn: who may use what is stored. */
#include "engine/objects/turn.h"

#include <time.h>

#include "engine/records/work.h"

enum {
	/* How long who takes it tries before he waits: about as long as he would need to wake up.
	 */
	TAKE_NS = 5000,
	/* Who may not wait tries for longer: he would have to hand over to somebody else. */
	TRY_NS = 30000,
	PAUSES = 16, /* between two tries */
	/* So many may pass the first of the queue, so that the turn is used while he wakes up. */
	PASSES_MAX = 4,
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void turn_init(struct turn *turn)
{
	pthread_rwlockattr_t attributes;

	*turn = (struct turn){ 0 };
	pthread_rwlockattr_init(&attributes);
	pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&turn->lock, &attributes);
	pthread_rwlockattr_destroy(&attributes);
	pthread_mutex_init(&turn->queue.mutex, NULL);
	for (int place = 0; place < TURN_PLACES; place++)
		pthread_cond_init(&turn->queue.places[place], NULL);
	pthread_mutex_init(&turn->work.callers, NULL);
	pthread_mutex_init(&turn->work.mutex, NULL);
	pthread_cond_init(&turn->work.changed, NULL);
}

void turn_destroy(struct turn *turn)
{
	for (int place = 0; place < TURN_PLACES; place++)
		pthread_cond_destroy(&turn->queue.places[place]);
	pthread_mutex_destroy(&turn->queue.mutex);
	pthread_cond_destroy(&turn->work.changed);
	pthread_mutex_destroy(&turn->work.mutex);
	pthread_mutex_destroy(&turn->work.callers);
	pthread_rwlock_destroy(&turn->lock);
}

/* ---- the queue ---- */

/* Whether nobody waits. Who comes then need not queue. */
static bool is_empty(struct turn_queue *queue)
{
	return __atomic_load_n(&queue->first, __ATOMIC_RELAXED) ==
	       __atomic_load_n(&queue->next, __ATOMIC_RELAXED);
}

/* Waits until all who came before have the turn, or had it. */
static void queue_up(struct turn_queue *queue)
{
	uint32_t number;

	pthread_mutex_lock(&queue->mutex);
	number = queue->next;
	__atomic_store_n(&queue->next, number + 1, __ATOMIC_RELAXED);
	while (queue->first != number)
		pthread_cond_wait(&queue->places[number % TURN_PLACES], &queue->mutex);
	pthread_mutex_unlock(&queue->mutex);
}

/* Who was the first has the turn. */
static void leave(struct turn_queue *queue)
{
	uint32_t number;

	pthread_mutex_lock(&queue->mutex);
	number = queue->first + 1;
	__atomic_store_n(&queue->first, number, __ATOMIC_RELAXED);
	__atomic_store_n(&queue->passes, 0, __ATOMIC_RELAXED);
	if (number != queue->next)
		pthread_cond_broadcast(&queue->places[number % TURN_PLACES]);
	pthread_mutex_unlock(&queue->mutex);
}

/* ---- counting ---- */

/* Somebody has held the turn since `since`. */
static void count(struct turn *turn, uint64_t since)
{
	uint64_t records = records_worked - since;
	uint64_t most = __atomic_load_n(&turn->most, __ATOMIC_RELAXED);

	while (records > most && !__atomic_compare_exchange_n(&turn->most, &most, records, true,
							      __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

/* Somebody has it alone now. */
static void begin(struct turn *turn)
{
	turn->since = records_worked;
	turn->since_ns = now_ns();
	turn->times.taken++;
}

static void count_wait(struct turn_times *times, uint64_t waited_ns)
{
	times->waited++;
	times->waited_ns += waited_ns;
	if (waited_ns > times->waited_most_ns)
		times->waited_most_ns = waited_ns;
}

/* ---- trying ---- */

static void pause_a_little(void)
{
	for (int n = 0; n < PAUSES; n++)
#if defined(__x86_64__)
		__builtin_ia32_pause();
#else
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
#endif
}

/* Most have it for some microseconds: to sleep and to be woken takes longer. */
static bool try_for(struct turn *turn, uint64_t ns, int (*try)(pthread_rwlock_t *lock))
{
	uint64_t until = now_ns() + ns;

	do {
		pause_a_little();
		if (try(&turn->lock) == 0)
			return true;
	} while (now_ns() < until);
	return false;
}

/* Not before those who must not wait, and not before those who came first. */
static bool try_behind(struct turn *turn)
{
	uint64_t until = now_ns() + TAKE_NS;

	while (is_empty(&turn->queue)) {
		if (!__atomic_load_n(&turn->awaited, __ATOMIC_RELAXED) &&
		    pthread_rwlock_trywrlock(&turn->lock) == 0)
			return true;
		if (now_ns() >= until)
			return false;
		pause_a_little();
	}
	return false;
}

/* As one that may not wait. Who has it for long looks at `awaited`, and gives it soon. */
static bool try_now(struct turn *turn, int (*try)(pthread_rwlock_t *lock))
{
	bool got;

	if (try(&turn->lock) == 0)
		return true;
	__atomic_fetch_add(&turn->awaited, 1, __ATOMIC_RELAXED);
	got = try_for(turn, TRY_NS, try);
	__atomic_fetch_sub(&turn->awaited, 1, __ATOMIC_RELAXED);
	return got;
}

/* ---- taking and giving ---- */

static void wait_for(struct turn *turn)
{
	uint64_t came_ns = now_ns();

	queue_up(&turn->queue);
	pthread_rwlock_wrlock(&turn->lock);
	leave(&turn->queue);
	begin(turn);
	count_wait(&turn->times, turn->since_ns - came_ns);
}

/* Without waiting, and before nobody who came first. */
static bool take_in_order(struct turn *turn)
{
	return is_empty(&turn->queue) &&
	       (pthread_rwlock_trywrlock(&turn->lock) == 0 || try_behind(turn));
}

void turn_take(struct turn *turn)
{
	if (take_in_order(turn))
		begin(turn);
	else
		wait_for(turn);
}

/* Without waiting, although others wait. Not before those who must not wait. */
static bool pass(struct turn *turn)
{
	uint32_t *passes = &turn->queue.passes;

	if (__atomic_load_n(passes, __ATOMIC_RELAXED) >= PASSES_MAX ||
	    __atomic_load_n(&turn->awaited, __ATOMIC_RELAXED) ||
	    pthread_rwlock_trywrlock(&turn->lock) != 0)
		return false;
	__atomic_fetch_add(passes, 1, __ATOMIC_RELAXED);
	return true;
}

void turn_take_passing(struct turn *turn)
{
	if (take_in_order(turn) || (!is_empty(&turn->queue) && pass(turn)))
		begin(turn);
	else
		wait_for(turn);
}

bool turn_try_take(struct turn *turn)
{
	if (!try_now(turn, pthread_rwlock_trywrlock))
		return false;
	begin(turn);
	return true;
}

void turn_give(struct turn *turn)
{
	struct turn_work *work = &turn->work;

	count(turn, turn->since);
	turn->times.held_ns += now_ns() - turn->since_ns;
	pthread_rwlock_unlock(&turn->lock);
	/* Behind that, so that a caller who has just found the turn taken is told. */
	if (!__atomic_load_n(&work->wanted, __ATOMIC_SEQ_CST))
		return;
	pthread_mutex_lock(&work->mutex);
	pthread_cond_signal(&work->changed);
	pthread_mutex_unlock(&work->mutex);
}

uint64_t turn_share(struct turn *turn)
{
	if (!is_empty(&turn->queue) || pthread_rwlock_tryrdlock(&turn->lock) != 0) {
		queue_up(&turn->queue);
		pthread_rwlock_rdlock(&turn->lock);
		leave(&turn->queue);
	}
	return records_worked;
}

bool turn_try_share(struct turn *turn, uint64_t *since)
{
	*since = records_worked;
	return try_now(turn, pthread_rwlock_tryrdlock);
}

void turn_unshare(struct turn *turn, uint64_t since)
{
	count(turn, since);
	pthread_rwlock_unlock(&turn->lock);
}

/* Under the mutex, in the turn. */
static void run(struct turn_work *work)
{
	work->run(work->context);
	__atomic_store_n(&work->wanted, false, __ATOMIC_RELAXED);
}

void turn_serve(struct turn *turn)
{
	struct turn_work *work = &turn->work;

	if (!__atomic_load_n(&work->wanted, __ATOMIC_RELAXED))
		return;
	pthread_mutex_lock(&work->mutex);
	if (work->wanted)
		run(work);
	pthread_cond_signal(&work->changed);
	pthread_mutex_unlock(&work->mutex);
}

void turn_call(struct turn *turn, void (*function)(void *context), void *context)
{
	struct turn_work *work = &turn->work;
	uint64_t since = records_worked;

	pthread_mutex_lock(&work->callers);
	pthread_mutex_lock(&work->mutex);
	work->run = function;
	work->context = context;
	__atomic_store_n(&work->wanted, true, __ATOMIC_SEQ_CST);
	while (work->wanted) {
		/* Never waits here: who has the turn alone may wait for the mutex. */
		if (pthread_rwlock_tryrdlock(&turn->lock) == 0) {
			run(work);
			turn_unshare(turn, since);
		} else {
			pthread_cond_wait(&work->changed, &work->mutex);
		}
	}
	pthread_mutex_unlock(&work->mutex);
	pthread_mutex_unlock(&work->callers);
}

uint64_t turn_worked(const struct turn *turn, bool shared, uint64_t since)
{
	return records_worked - (shared ? since : turn->since);
}

uint64_t turn_take_most(struct turn *turn)
{
	return __atomic_exchange_n(&turn->most, 0, __ATOMIC_RELAXED);
}
