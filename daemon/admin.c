/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Connections of the administration socket: who is there, what he asks, and the answer to it. */
#include "daemon/admin.h"

#include <errno.h>
#include <grp.h>
#include <jansson.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/descriptors.h"
#include "common/log.h"
#include "daemon/admin_verbs.h"
#include "daemon/server.h"

#define CONNECTIONS_MAX   8
#define REQUEST_BYTES_MAX 16384
#define REQUEST_MS        5000  /* until all of it has come */
#define ANSWER_MS         10000 /* until all of it is taken */
#define GROUPS_MAX        1024
#define TURNED_AWAY_MS    60000 /* one line of who is turned away in this time */

struct connection {
	int fd; /* -1: there is none */
	int64_t deadline_ms;
	char who[64];
	bool is_owner;
	char request[REQUEST_BYTES_MAX];
	size_t got;
	int fds[DESCRIPTORS_MAX]; /* that came with it */
	int fd_count;
	char *answer; /* NULL: the request is not complete */
	size_t bytes, sent;
};

struct admin {
	struct server *server;
	int epoll_fd, listen_fd;
	bool accepts;      /* there is a place */
	bool carried_out;  /* a request, since admin_serve was called */
	bool reload_waits; /* until tgtd runs: somebody has sent SIGHUP */
	char reload_by[64];
	int64_t turned_away_ms; /* when a line said so; 0: never */
	unsigned int unsaid;    /* turned away since */
	struct connection connections[CONNECTIONS_MAX];
};

/* ---- who ---- */

static bool is_member(int fd, gid_t primary, gid_t wanted)
{
	gid_t groups[GROUPS_MAX];
	socklen_t bytes = sizeof(groups);

	if (primary == wanted)
		return true;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &bytes))
		return false;
	for (size_t i = 0; i < bytes / sizeof(groups[0]); i++)
		if (groups[i] == wanted)
			return true;
	return false;
}

/* Names who is at the other end, and says whether he may ask; the owner may more than others. */
static bool may_ask(const struct config *config, int fd, char *who, size_t bytes, bool *is_owner)
{
	struct ucred peer = { .uid = (uid_t)-1 };
	socklen_t length = sizeof(peer);
	const struct passwd *user;
	const struct group *group;

	*is_owner = false;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length))
		return false;
	user = getpwuid(peer.uid);
	snprintf(who, bytes, "user %s (%u)", user ? user->pw_name : "without a name", peer.uid);
	*is_owner = peer.uid == 0 || peer.uid == geteuid();
	if (*is_owner)
		return true;
	group = config->admin_group[0] ? getgrnam(config->admin_group) : NULL;
	return group && is_member(fd, peer.gid, group->gr_gid);
}

/* Whoever may connect can do so all the time: a line a minute. */
static void log_turned_away(struct admin *admin, const char *who)
{
	char more[64] = "";

	if (admin->turned_away_ms && clock_ms() - admin->turned_away_ms < TURNED_AWAY_MS) {
		admin->unsaid++;
		return;
	}
	if (admin->unsaid)
		snprintf(more, sizeof(more), ", and %u times somebody since the last such line",
			 admin->unsaid);
	log_line(LOG_LEVEL_WARNING, "administration: %s was turned away%s", who, more);
	admin->turned_away_ms = clock_ms();
	admin->unsaid = 0;
}

/* Best effort: he has not asked yet, and gets no place. */
static void turn_away(struct admin *admin, int fd, const char *who)
{
	const struct config *config = admin->server->config;
	const struct passwd *own = getpwuid(geteuid());
	char text[512];
	int length = snprintf(
		text, sizeof(text),
		"{\"error\":{\"kind\":\"denied\",\"message\":\"%s may not administer this service: "
		"root may, user %s%s%s%s\"}}\n",
		who, own ? own->pw_name : "of the service",
		config->admin_group[0] ? ", and members of group " : "", config->admin_group,
		config->admin_group[0] ? "" : "; admin_group in [daemon] lets a group do it");

	if (send(fd, text, (size_t)length, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		log_line(LOG_LEVEL_DEBUG, "administration: %s was turned away unheard", who);
	log_turned_away(admin, who);
}

/* ---- connections ---- */

static void watch_fd(struct admin *admin, int operation, int fd, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.fd = fd };

	epoll_ctl(admin->epoll_fd, operation, fd, &event);
}

/* While all places are taken, others wait to be accepted. */
static void look_for_place(struct admin *admin)
{
	bool accepts = false;

	for (int i = 0; i < CONNECTIONS_MAX; i++)
		accepts |= admin->connections[i].fd < 0;
	if (accepts != admin->accepts)
		watch_fd(admin, EPOLL_CTL_MOD, admin->listen_fd, accepts ? EPOLLIN : 0);
	admin->accepts = accepts;
}

static void end(struct admin *admin, struct connection *connection)
{
	close(connection->fd);
	descriptors_close(connection->fds, &connection->fd_count);
	free(connection->answer);
	connection->answer = NULL;
	connection->fd = -1;
	look_for_place(admin);
}

static void accept_one(struct admin *admin)
{
	const struct config *config = admin->server->config;
	struct connection *connection = admin->connections;
	char who[sizeof(connection->who)] = "somebody";
	bool is_owner;
	int fd = accept4(admin->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return;
	while (connection < admin->connections + CONNECTIONS_MAX && connection->fd >= 0)
		connection++;
	if (connection == admin->connections + CONNECTIONS_MAX ||
	    !may_ask(config, fd, who, sizeof(who), &is_owner)) {
		turn_away(admin, fd, who);
		close(fd);
		return;
	}
	connection->fd = fd;
	connection->got = 0;
	connection->is_owner = is_owner;
	connection->deadline_ms = clock_ms() + REQUEST_MS;
	memcpy(connection->who, who, sizeof(who));
	watch_fd(admin, EPOLL_CTL_ADD, fd, EPOLLIN);
	look_for_place(admin);
}

static void send_answer(struct admin *admin, struct connection *connection)
{
	while (connection->sent < connection->bytes) {
		ssize_t sent = send(connection->fd, connection->answer + connection->sent,
				    connection->bytes - connection->sent,
				    MSG_DONTWAIT | MSG_NOSIGNAL);

		if (sent < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (sent < 0)
			break;
		connection->sent += (size_t)sent;
	}
	end(admin, connection);
}

/* Who waited meanwhile was not slow. */
static void put_off(struct admin *admin, int64_t ms)
{
	for (int i = 0; i < CONNECTIONS_MAX; i++)
		admin->connections[i].deadline_ms += ms;
}

static json_t *carry_out(struct admin *admin, const json_t *request,
			 const struct admin_caller *caller)
{
	int64_t began_ms = clock_ms();
	json_t *said = admin_carry_out(admin->server, request, caller);

	put_off(admin, clock_ms() - began_ms);
	admin->carried_out = true;
	return said;
}

/* Carries it out; then the answer goes as far as the other end takes it. */
static void answer(struct admin *admin, struct connection *connection)
{
	const struct admin_caller caller = {
		.who = connection->who,
		.is_owner = connection->is_owner,
		.fds = connection->fds,
		.fd_count = connection->fd_count,
	};
	json_error_t wrong;
	json_t *request = json_loadb(connection->request, connection->got, 0, &wrong);
	json_t *said = carry_out(admin, request, &caller);

	json_decref(request);
	descriptors_close(connection->fds, &connection->fd_count);
	connection->answer = said ? json_dumps(said, JSON_COMPACT) : NULL;
	json_decref(said);
	explicit_bzero(connection->request, connection->got);
	if (!connection->answer) {
		end(admin, connection);
		return;
	}
	connection->bytes = strlen(connection->answer);
	connection->answer[connection->bytes++] = '\n'; /* in the place of NUL */
	connection->sent = 0;
	connection->deadline_ms = clock_ms() + ANSWER_MS;
	watch_fd(admin, EPOLL_CTL_MOD, connection->fd, EPOLLOUT);
	send_answer(admin, connection);
}

static void receive(struct admin *admin, struct connection *connection)
{
	ssize_t got = descriptors_receive(connection->fd, connection->request + connection->got,
					  sizeof(connection->request) - connection->got,
					  connection->fds, &connection->fd_count);

	if (got == -EAGAIN || got == -EINTR)
		return;
	if (got > 0)
		connection->got += (size_t)got;
	if (got > 0 && memchr(connection->request, '\n', connection->got))
		answer(admin, connection);
	else if (got <= 0 || connection->got == sizeof(connection->request))
		end(admin, connection);
}

static void attend(struct admin *admin, int fd)
{
	for (int i = 0; i < CONNECTIONS_MAX; i++) {
		struct connection *connection = &admin->connections[i];

		if (connection->fd != fd)
			continue;
		if (connection->answer)
			send_answer(admin, connection);
		else if (!admin->carried_out)
			receive(admin, connection);
		return;
	}
}

static void end_slow_ones(struct admin *admin)
{
	for (int i = 0; i < CONNECTIONS_MAX; i++)
		if (admin->connections[i].fd >= 0 &&
		    clock_ms() >= admin->connections[i].deadline_ms)
			end(admin, &admin->connections[i]);
}

/* Somebody has sent SIGHUP to the service. */
static void note_reload(struct admin *admin)
{
	struct signalfd_siginfo info;

	if (read(admin->server->reload_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return;
	snprintf(admin->reload_by, sizeof(admin->reload_by), "SIGHUP of process %u", info.ssi_pid);
	admin->reload_waits = true;
	if (!server_tgtd_runs(admin->server))
		log_line(LOG_LEVEL_INFO,
			 "administration: %s: the configuration is taken up when "
			 "tgtd runs again",
			 admin->reload_by);
}

static void reload(struct admin *admin)
{
	const struct admin_caller caller = { .who = admin->reload_by };
	json_t *request = json_pack("{s:s}", "do", "reload");

	admin->reload_waits = false;
	json_decref(carry_out(admin, request, &caller));
	json_decref(request);
}

/* It may ask tgtd, too. */
static void serve_http(struct admin *admin)
{
	int64_t began_ms = clock_ms();

	http_serve(admin->server->http);
	put_off(admin, clock_ms() - began_ms);
}

void admin_serve(struct admin *admin)
{
	struct epoll_event events[CONNECTIONS_MAX + 4];
	int count = epoll_wait(admin->epoll_fd, events, CONNECTIONS_MAX + 4, 0);

	admin->carried_out = false;
	for (int i = 0; i < count; i++) {
		int fd = events[i].data.fd;

		if (fd == admin->listen_fd)
			accept_one(admin);
		else if (fd == admin->server->reload_fd)
			note_reload(admin);
		else if (fd != admin->server->signal_fd)
			attend(admin, fd);
	}
	serve_http(admin);
	if (admin->reload_waits && !admin->carried_out && server_tgtd_runs(admin->server))
		reload(admin);
	end_slow_ones(admin);
}

int64_t admin_wait_ms(const struct admin *admin)
{
	int64_t first_ms = INT64_MAX, http_ms = http_wait_ms(admin->server->http);

	if (admin->reload_waits && server_tgtd_runs(admin->server))
		return 0;
	for (int i = 0; i < CONNECTIONS_MAX; i++)
		if (admin->connections[i].fd >= 0 && admin->connections[i].deadline_ms < first_ms)
			first_ms = admin->connections[i].deadline_ms;
	first_ms = first_ms == INT64_MAX ? INT32_MAX : first_ms - clock_ms();
	if (first_ms > http_ms)
		first_ms = http_ms;
	return first_ms < 0 ? 0 : first_ms;
}

int admin_fd(const struct admin *admin)
{
	return admin->epoll_fd;
}

/* ---- life ---- */

/* With a group everybody may connect: may_ask looks at who does, and can tell him. */
int admin_open_to_group(const struct config *config)
{
	return chmod(ADMIN_SOCKET, config->admin_group[0] ? 0666 : 0600) ? -errno : 0;
}

static int listen_on(const struct config *config)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = ADMIN_SOCKET };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int result;

	if (fd < 0)
		return -errno;
	/* That of a predecessor, which is gone: this process has the run directory's lock. */
	unlink(ADMIN_SOCKET);
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) || admin_open_to_group(config) ||
	    listen(fd, 16)) {
		result = -errno;
		close(fd);
		return result;
	}
	return fd;
}

int admin_open(struct server *server, struct admin **admin, struct error_text *error)
{
	struct admin *new = calloc(1, sizeof(*new));

	if (!new)
		return error_set(error, -ENOMEM, "out of memory");
	new->server = server;
	for (int i = 0; i < CONNECTIONS_MAX; i++)
		new->connections[i].fd = -1;
	new->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	new->listen_fd = new->epoll_fd < 0 ? -errno : listen_on(server->config);
	if (new->listen_fd < 0) {
		int result = error_set(error, new->listen_fd, "%s/" ADMIN_SOCKET ": %s",
				       server->config->run_dir, strerror(-new->listen_fd));

		if (new->epoll_fd >= 0)
			close(new->epoll_fd);
		free(new);
		return result;
	}
	new->accepts = true;
	watch_fd(new, EPOLL_CTL_ADD, new->listen_fd, EPOLLIN);
	watch_fd(new, EPOLL_CTL_ADD, server->signal_fd, EPOLLIN);
	if (server->http)
		watch_fd(new, EPOLL_CTL_ADD, http_fd(server->http), EPOLLIN);
	if (server->reload_fd >= 0)
		watch_fd(new, EPOLL_CTL_ADD, server->reload_fd, EPOLLIN);
	*admin = new;
	return 0;
}

void admin_close(struct admin *admin)
{
	if (!admin)
		return;
	for (int i = 0; i < CONNECTIONS_MAX; i++)
		if (admin->connections[i].fd >= 0)
			end(admin, &admin->connections[i]);
	close(admin->listen_fd);
	close(admin->epoll_fd);
	unlink(ADMIN_SOCKET);
	free(admin);
}
