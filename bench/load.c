/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The loop of a load: sessions of all streams behind one epoll, and the clocks around them. */
#include "bench/load.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "bench/load_private.h"
#include "bench/process.h"

enum { EVENTS_MAX = 64, STREAMS_MAX = 8 };

/* When a stream with a rate submits next, and what is left of one with a number of bytes. */
struct stream_state {
	uint64_t due_ns, interval_ns;
	uint64_t bytes_left;
	uint32_t first_session;
	uint32_t turn; /* the session that is asked first */
};

struct load_loop {
	struct load *load;
	struct load_session *sessions;
	uint32_t session_count;
	struct stream_state states[STREAMS_MAX];
	int epoll;
	bool stopping; /* nothing more is submitted or counted */
	int result;
	struct error_text *error;
	double begun, server_begun, client_begun;
};

static volatile sig_atomic_t interrupted;

void load_interrupt(void)
{
	interrupted = 1;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static double seconds_of(uint64_t ns)
{
	return (double)ns * 1e-9;
}

static void fail(struct load_loop *loop, int result)
{
	if (loop->result == 0)
		loop->result = result;
	loop->stopping = true;
}

/* ---- submitting ---- */

static struct stream_state *state_of(struct load_loop *loop, const struct load_stream *stream)
{
	return &loop->states[stream - loop->load->streams];
}

/* False: the stream has submitted all its bytes. */
static bool take_bytes(struct load_loop *loop, const struct load_stream *stream)
{
	struct stream_state *state = state_of(loop, stream);

	if (stream->bytes == 0)
		return true;
	if (state->bytes_left < stream->block_bytes)
		return false;
	state->bytes_left -= stream->block_bytes;
	return true;
}

static void submit(struct load_loop *loop, struct load_session *session, uint64_t begun_ns)
{
	int result;

	if (loop->stopping || !take_bytes(loop, session->stream))
		return;
	result = load_submit(session, begun_ns, loop->error);
	if (result < 0)
		fail(loop, result);
}

void load_done(struct load_slot *slot, int result, const char *what)
{
	struct load_session *session = slot->session;
	struct load_loop *loop = session->loop;
	struct load_stream *stream = session->stream;
	uint64_t now = now_ns();

	session->in_flight--;
	slot->next_free = session->free;
	session->free = slot;
	if (result < 0 && loop->result == 0) {
		fail(loop, result);
		error_set(loop->error, result, "%s: %s", stream->unit.url, what);
	}
	/* The FLUSH at the end of a load is none of the stream's commands. */
	if (loop->stopping || (!slot->reads && !slot->writes && stream->operation != LOAD_FLUSH))
		return;
	latencies_add(stream->latencies, now - slot->begun_ns);
	stream->commands++;
	stream->session_commands[session->number]++;
	if (stream->rate == 0)
		submit(loop, session, now);
}

/* Submits what is due of a stream with a rate, as far as there are free slots. */
static void submit_due(struct load_loop *loop, struct load_stream *stream, uint64_t now)
{
	struct stream_state *state = state_of(loop, stream);
	uint32_t without = 0;

	while (state->due_ns <= now && without < stream->sessions && !loop->stopping) {
		struct load_session *session = &loop->sessions[state->first_session + state->turn];

		state->turn = (state->turn + 1) % stream->sessions;
		if (!session->free) {
			without++;
			continue;
		}
		without = 0;
		submit(loop, session, state->due_ns);
		state->due_ns += state->interval_ns;
	}
}

static bool has_free_slot(const struct load_loop *loop, const struct load_stream *stream,
			  const struct stream_state *state)
{
	for (uint32_t i = 0; i < stream->sessions; i++)
		if (loop->sessions[state->first_session + i].free)
			return true;
	return false;
}

/* ---- the loop ---- */

/* Sends what was submitted, and watches each socket for what its session waits for. */
static void push_all(struct load_loop *loop)
{
	for (uint32_t i = 0; i < loop->session_count; i++) {
		struct load_session *session = &loop->sessions[i];
		struct epoll_event event = { .data.ptr = session };

		osd_client_push(session->client);
		event.events = osd_client_events(session->client) & POLLOUT ? EPOLLIN | EPOLLOUT
									    : EPOLLIN;
		if (event.events == session->watched)
			continue;
		epoll_ctl(loop->epoll, session->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD,
			  osd_client_descriptor(session->client), &event);
		session->watched = event.events;
	}
}

static uint32_t in_flight(const struct load_loop *loop)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < loop->session_count; i++)
		sum += loop->sessions[i].in_flight;
	return sum;
}

/* When the loop has something to do by itself: the next command that is due, or `end`. */
static uint64_t next_event(const struct load_loop *loop, uint64_t end)
{
	for (uint32_t i = 0; i < loop->load->stream_count && !loop->stopping; i++) {
		const struct load_stream *stream = &loop->load->streams[i];

		if (stream->rate > 0 && loop->states[i].due_ns < end &&
		    has_free_slot(loop, stream, &loop->states[i]))
			end = loop->states[i].due_ns;
	}
	return end;
}

static void step(struct load_loop *loop, struct load_session *session)
{
	int result = osd_client_step(session->client, 0);

	if (result < 0 && loop->result == 0) {
		osd_client_failed(session->client, loop->error);
		fail(loop, result);
	}
}

/* Waits until something comes or until a time, at most a second. */
static void wait_and_step(struct load_loop *loop, uint64_t until)
{
	struct epoll_event events[EVENTS_MAX];
	uint64_t now = now_ns(), wait = until > now ? until - now : 0;
	struct timespec time = { 1, 0 };
	int ready;

	if (wait < 1000000000)
		time = (struct timespec){ 0, (long)wait };
	ready = epoll_pwait2(loop->epoll, events, EVENTS_MAX, &time, NULL);
	for (int i = 0; i < ready; i++)
		step(loop, events[i].data.ptr);
	/* Nothing for so long: the sessions look at their deadlines. */
	for (uint32_t i = 0; ready == 0 && time.tv_sec && i < loop->session_count; i++)
		step(loop, &loop->sessions[i]);
}

static void begin_counting(struct load_loop *loop)
{
	struct load *load = loop->load;

	for (uint32_t i = 0; i < load->stream_count; i++) {
		struct load_stream *stream = &load->streams[i];

		memset(stream->latencies, 0, sizeof(*stream->latencies));
		memset(stream->session_commands, 0, sizeof(stream->session_commands));
		stream->commands = 0;
	}
	loop->begun = seconds_of(now_ns());
	loop->server_begun = bench_process_seconds(load->server);
	loop->client_begun = bench_process_seconds(getpid());
}

static void end_counting(struct load_loop *loop)
{
	struct load *load = loop->load;

	load->elapsed = seconds_of(now_ns()) - loop->begun;
	load->server_seconds = bench_process_seconds(load->server) - loop->server_begun;
	load->client_seconds = bench_process_seconds(getpid()) - loop->client_begun;
	loop->stopping = true;
}

/*
 * Whether the first stream has counted as many commands as it has under way: fewer of them would
 * tell nothing. One with a rate has what it has.
 */
static bool has_enough(const struct load *load)
{
	const struct load_stream *stream = &load->streams[0];

	return stream->rate > 0 || stream->commands >= (uint64_t)stream->depth * stream->sessions;
}

static void submit_first(struct load_loop *loop)
{
	uint64_t now = now_ns();

	for (uint32_t i = 0; i < loop->load->stream_count; i++)
		loop->states[i].due_ns = now;
	for (uint32_t i = 0; i < loop->session_count; i++) {
		struct load_session *session = &loop->sessions[i];

		for (uint32_t n = 0; n < session->stream->depth && session->stream->rate == 0; n++)
			submit(loop, session, now);
	}
}

/* Until the time is over, or until the streams have moved their bytes. */
static void serve(struct load_loop *loop)
{
	struct load *load = loop->load;
	bool timed = load->streams[0].bytes == 0, counting = false;
	uint64_t begun = now_ns();
	uint64_t warm = begun + (timed ? (uint64_t)(load->warm_up * 1e9) : 0);
	uint64_t end = UINT64_MAX, until;

	begin_counting(loop);
	submit_first(loop);
	while (true) {
		uint64_t now = now_ns();

		if (!counting && now >= warm && (!timed || has_enough(load))) {
			if (timed)
				begin_counting(loop);
			end = timed ? now + (uint64_t)(load->seconds * 1e9) : UINT64_MAX;
			counting = true;
		}
		if (now >= end && has_enough(load) && !loop->stopping)
			end_counting(loop);
		if (interrupted && loop->result == 0)
			fail(loop, error_set(loop->error, -EINTR, "interrupted"));
		for (uint32_t i = 0; i < load->stream_count; i++)
			if (load->streams[i].rate > 0)
				submit_due(loop, &load->streams[i], now);
		push_all(loop);
		if (in_flight(loop) == 0 && (loop->stopping || !timed))
			break;
		/* What is late waits for commands to end. */
		until = counting ? end : warm;
		wait_and_step(loop, loop->stopping || now >= until ? UINT64_MAX
								   : next_event(loop, until));
	}
	if (!loop->stopping && load->flush) {
		int result = load_flush(&loop->sessions[0], loop->error);

		if (result < 0)
			fail(loop, result);
	}
	if (!loop->stopping)
		end_counting(loop);
}

/* ---- around it ---- */

static int open_sessions(struct load_loop *loop)
{
	struct load *load = loop->load;
	int result = 0;

	for (uint32_t i = 0; i < load->stream_count; i++) {
		struct load_stream *stream = &load->streams[i];
		struct stream_state *state = &loop->states[i];

		state->bytes_left = stream->bytes;
		state->interval_ns = stream->rate > 0 ? (uint64_t)(1e9 / stream->rate) : 0;
		state->first_session = loop->session_count;
		stream->latencies = latencies_create();
		if (!stream->latencies)
			return error_set(loop->error, -ENOMEM, "out of memory");
		for (uint32_t n = 0; n < stream->sessions && result == 0; n++) {
			struct load_session *session = &loop->sessions[loop->session_count++];

			session->loop = loop;
			session->stream = stream;
			session->number = n;
			result = load_session_open(session, load->seed + i, loop->error);
		}
	}
	return result;
}

int load_run(struct load *load, struct error_text *error)
{
	struct load_loop loop = { .load = load, .error = error };
	uint32_t sessions = 0;

	for (uint32_t i = 0; i < load->stream_count; i++) {
		sessions += load->streams[i].sessions;
		load->streams[i].latencies = NULL;
	}
	loop.sessions = calloc(sessions, sizeof(*loop.sessions));
	loop.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (!loop.sessions || loop.epoll < 0) {
		loop.result = error_set(error, -ENOMEM, "out of memory or descriptors");
	} else {
		/* Commands that are due are sent to the microsecond. */
		prctl(PR_SET_TIMERSLACK, 1UL);
		loop.result = open_sessions(&loop);
		if (loop.result == 0)
			serve(&loop);
	}
	loop.stopping = true;
	for (uint32_t i = 0; i < loop.session_count; i++)
		load_session_close(&loop.sessions[i]);
	if (loop.epoll >= 0)
		close(loop.epoll);
	free(loop.sessions);
	if (loop.result < 0)
		load_free(load);
	return loop.result;
}

void load_free(struct load *load)
{
	for (uint32_t i = 0; i < load->stream_count; i++) {
		free(load->streams[i].latencies);
		load->streams[i].latencies = NULL;
	}
}
