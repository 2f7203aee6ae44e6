/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The turn: who may use what is stored. */
#include "engine/objects/turn.h"

#include <time.h>
#include <unistd.h>

#include "engine/records/work.h"

/* The turn's state: one of these, or both, or how many share it and perhaps the second. */
#define HELD   (UINT32_C(1) << 31) /* somebody has it alone */
#define SLEEPS (UINT32_C(1) << 30) /* the first of the queue sleeps until it can be his */

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
	*turn = (struct turn){ .tries = sysconf(_SC_NPROCESSORS_ONLN) > 1 };
	pthread_mutex_init(&turn->queue.mutex, NULL);
	pthread_cond_init(&turn->queue.first_may, NULL);
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
	pthread_cond_destroy(&turn->queue.first_may);
	pthread_mutex_destroy(&turn->queue.mutex);
	pthread_cond_destroy(&turn->work.changed);
	pthread_mutex_destroy(&turn->work.mutex);
	pthread_mutex_destroy(&turn->work.callers);
}

/* ---- the state ---- */

static uint32_t state_of(const struct turn *turn)
{
	return __atomic_load_n(&turn->state, __ATOMIC_SEQ_CST);
}

static bool change_state(struct turn *turn, uint32_t from, uint32_t to)
{
	return __atomic_compare_exchange_n(&turn->state, &from, to, false, __ATOMIC_SEQ_CST,
					   __ATOMIC_SEQ_CST);
}

static bool is_free(uint32_t state, bool shared)
{
	return shared ? !(state & HELD) : !(state & ~SLEEPS);
}

/* Takes it if it is free just now, whoever waits. */
static bool get(struct turn *turn, bool shared)
{
	uint32_t state;

	do {
		state = state_of(turn);
		if (!is_free(state, shared))
			return false;
	} while (!change_state(turn, state, shared ? state + 1 : state | HELD));
	return true;
}

bool turn_is_slept_for(const struct turn *turn)
{
	return state_of(turn) & SLEEPS;
}

/* The same, but nobody shares it before the first of the queue who waits to have it alone. */
static bool get_behind(struct turn *turn, bool shared)
{
	return !(shared && turn_is_slept_for(turn)) && get(turn, shared);
}

static void wake_first(struct turn *turn)
{
	pthread_mutex_lock(&turn->queue.mutex);
	pthread_cond_signal(&turn->queue.first_may);
	pthread_mutex_unlock(&turn->queue.mutex);
}

/* Ends that somebody has it alone. */
static void let_go(struct turn *turn)
{
	if (__atomic_exchange_n(&turn->state, 0, __ATOMIC_SEQ_CST) & SLEEPS)
		wake_first(turn);
}

/* Ends that somebody shares it. */
static void let_go_share(struct turn *turn)
{
	if (__atomic_sub_fetch(&turn->state, 1, __ATOMIC_SEQ_CST) == SLEEPS &&
	    __atomic_fetch_and(&turn->state, ~SLEEPS, __ATOMIC_SEQ_CST) & SLEEPS)
		wake_first(turn);
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
static bool try_for(struct turn *turn, uint64_t ns, bool shared,
		    bool (*try)(struct turn *turn, bool shared))
{
	uint64_t until = turn->tries ? now_ns() + ns : 0;

	do {
		pause_a_little();
		if (try(turn, shared))
			return true;
	} while (until && now_ns() < until);
	return false;
}

/* As one that may not wait. Who has it for long looks at `wanted`, and gives it soon. */
static bool try_now(struct turn *turn, bool shared)
{
	bool got;

	if (get_behind(turn, shared))
		return true;
	__atomic_fetch_add(&turn->awaited, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&turn->wanted, 1, __ATOMIC_RELAXED);
	got = try_for(turn, TRY_NS, shared, get_behind);
	__atomic_fetch_sub(&turn->wanted, 1, __ATOMIC_RELAXED);
	__atomic_fetch_sub(&turn->awaited, 1, __ATOMIC_RELAXED);
	return got;
}

/* Not before those who must not wait. */
static bool get_unless_awaited(struct turn *turn, bool shared)
{
	return !__atomic_load_n(&turn->awaited, __ATOMIC_RELAXED) && get(turn, shared);
}

/* ---- the queue ---- */

/* Whether nobody waits. Who comes then need not queue. */
static bool is_empty(const struct turn_queue *queue)
{
	return __atomic_load_n(&queue->first, __ATOMIC_RELAXED) ==
	       __atomic_load_n(&queue->next, __ATOMIC_RELAXED);
}

/* Under the queue's mutex, as the first of it. */
static void sleep_until_free(struct turn *turn, bool shared)
{
	while (!get(turn, shared)) {
		uint32_t state = state_of(turn);

		if (!is_free(state, shared) && change_state(turn, state, state | SLEEPS))
			pthread_cond_wait(&turn->queue.first_may, &turn->queue.mutex);
	}
}

/* Waits until all who came before have had the turn, or have it, and then for the turn. */
static void wait_for(struct turn *turn, bool shared)
{
	struct turn_queue *queue = &turn->queue;
	uint32_t number;
	bool got;

	__atomic_fetch_add(&turn->wanted, 1, __ATOMIC_RELAXED);
	pthread_mutex_lock(&queue->mutex);
	number = queue->next;
	__atomic_store_n(&queue->next, number + 1, __ATOMIC_RELAXED);
	while (queue->first != number)
		pthread_cond_wait(&queue->places[number % TURN_PLACES], &queue->mutex);
	pthread_mutex_unlock(&queue->mutex);
	got = try_for(turn, TAKE_NS, shared, get);
	pthread_mutex_lock(&queue->mutex);
	if (!got)
		sleep_until_free(turn, shared);
	__atomic_store_n(&queue->first, ++number, __ATOMIC_RELAXED);
	__atomic_store_n(&queue->passes, 0, __ATOMIC_RELAXED);
	if (number != queue->next)
		pthread_cond_broadcast(&queue->places[number % TURN_PLACES]);
	pthread_mutex_unlock(&queue->mutex);
	__atomic_fetch_sub(&turn->wanted, 1, __ATOMIC_RELAXED);
}

/* Without waiting, and before nobody who came first. */
static bool get_in_order(struct turn *turn, bool shared)
{
	return is_empty(&turn->queue) && get_unless_awaited(turn, shared);
}

/* The same, although others wait, but not often before the same one. */
static bool pass(struct turn *turn, bool shared)
{
	uint32_t *passes = &turn->queue.passes;

	if (is_empty(&turn->queue))
		return get_in_order(turn, shared);
	if (__atomic_load_n(passes, __ATOMIC_RELAXED) >= PASSES_MAX ||
	    !get_unless_awaited(turn, shared))
		return false;
	__atomic_fetch_add(passes, 1, __ATOMIC_RELAXED);
	return true;
}

/* ---- taking and giving ---- */

static void take(struct turn *turn, bool (*try)(struct turn *turn, bool shared))
{
	uint64_t came_ns;

	if (try(turn, false) || try_for(turn, TAKE_NS, false, try)) {
		begin(turn);
		return;
	}
	came_ns = now_ns();
	wait_for(turn, false);
	begin(turn);
	count_wait(&turn->times, turn->since_ns - came_ns);
}

void turn_take(struct turn *turn)
{
	take(turn, get_in_order);
}

void turn_take_passing(struct turn *turn)
{
	take(turn, pass);
}

bool turn_try_take(struct turn *turn)
{
	if (!try_now(turn, false))
		return false;
	begin(turn);
	return true;
}

void turn_give(struct turn *turn)
{
	struct turn_work *work = &turn->work;

	count(turn, turn->since);
	turn->times.held_ns += now_ns() - turn->since_ns;
	let_go(turn);
	/* Behind that, so that a caller who has just found the turn taken is told. */
	if (!__atomic_load_n(&work->wanted, __ATOMIC_SEQ_CST))
		return;
	pthread_mutex_lock(&work->mutex);
	pthread_cond_signal(&work->changed);
	pthread_mutex_unlock(&work->mutex);
}

uint64_t turn_share(struct turn *turn)
{
	if (!get_in_order(turn, true) && !try_for(turn, TAKE_NS, true, get_in_order))
		wait_for(turn, true);
	return records_worked;
}

bool turn_try_share(struct turn *turn, uint64_t *since)
{
	*since = records_worked;
	return try_now(turn, true);
}

void turn_unshare(struct turn *turn, uint64_t since)
{
	count(turn, since);
	let_go_share(turn);
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
		if (get(turn, true)) {
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
