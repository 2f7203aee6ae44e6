/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Sessions and the coming and going of commands. */
#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "client/client_private.h"
#include "client/login.h"
#include "client/sg.h"

#define QUEUE_DEPTH_DEFAULT 32U
#define TIMEOUT_DEFAULT_MS  30000U
/* How long a target may take to answer the logout. */
#define LOGOUT_TIMEOUT_MS 5000U
/* How often a command is sent again because a unit attention has kept it from starting. */
#define UNIT_ATTENTIONS_MAX 4U

static struct login_options login_options_of(const struct osd_client_options *options)
{
	return (struct login_options){
		.initiator_name = options->initiator_name,
		.immediate_data = !options->no_immediate_data,
		.initial_r2t = !options->no_initial_r2t,
		.timeout_ms = options->timeout_ms ? options->timeout_ms : TIMEOUT_DEFAULT_MS,
		.isid = options->isid,
	};
}

int osd_client_on_session(struct session *session, enum osd_version version,
			  struct osd_client **client)
{
	struct osd_client *created = calloc(1, sizeof(*created));

	if (!created) {
		session_destroy(session);
		return -ENOMEM;
	}
	created->session = session;
	created->version = version;
	created->queue_depth = QUEUE_DEPTH_DEFAULT;
	*client = created;
	return 0;
}

/* One that takes the place of another waits for what the unit has begun: its first command does. */
static int check_unit(struct osd_client *client, const struct osd_client_options *options,
		      struct error_text *error)
{
	struct osd_client_error failure;
	struct osd_inquiry_data inquiry;

	if (client_inquiry(client, options->isid != 0, &inquiry, &failure) < 0) {
		*error = failure.sentence;
		return failure.result;
	}
	if (inquiry.qualifier != 0)
		return error_set(
			error, -ENODEV,
			"the target has no such LUN; check the number at the end of the URL");
	if (inquiry.device_type != OSD_PERIPHERAL_DEVICE_TYPE && !options->any_device_type)
		return error_set(error, -EMEDIUMTYPE,
				 "the LUN is not an OSD but SCSI device type 0x%02x (%s %s); check "
				 "the number at the end of the URL",
				 inquiry.device_type, inquiry.vendor, inquiry.product);
	return 0;
}

/* By iSCSI, or by the node of a kernel that has logged in. Sets login->isid to the session's. */
static int open_session(const char *url, struct login_options *login,
			struct session_options *options, struct session **session,
			struct error_text *error)
{
	struct login_result arrived;
	int result;

	if (strncmp(url, SG_SCHEME, strlen(SG_SCHEME)) == 0) {
		login->isid = 0;
		return sg_session_open(url, options, session, error);
	}
	result = login_connect(url, login, &arrived, error);
	if (result < 0)
		return result;
	login->isid = arrived.isid;
	options->lun = arrived.lun;
	return session_create(arrived.fd, &arrived.parameters, options, session, error);
}

int osd_client_connect(const char *url, const struct osd_client_options *options,
		       struct osd_client **client, struct error_text *error)
{
	struct login_options login = login_options_of(options);
	struct session_options session_options = {
		.queue_depth = options->queue_depth ? options->queue_depth : QUEUE_DEPTH_DEFAULT,
		.timeout_ms = login.timeout_ms,
	};
	struct error_text ignored;
	struct session *session;
	int result;

	error = error ? error : &ignored;
	result = open_session(url, &login, &session_options, &session, error);
	if (result < 0)
		return result;
	result =
		osd_client_on_session(session, options->version ? options->version : OSD_2, client);
	if (result < 0)
		return error_set(error, result, "connect: out of memory");
	(*client)->queue_depth = session_options.queue_depth;
	(*client)->isid = login.isid;
	result = check_unit(*client, options, error);
	if (result < 0) {
		osd_client_disconnect(*client);
		*client = NULL;
	}
	return result;
}

void osd_client_disconnect(struct osd_client *client)
{
	if (!client)
		return;
	session_logout(client->session, LOGOUT_TIMEOUT_MS);
	session_destroy(client->session);
	free(client);
}

uint64_t osd_client_isid(const struct osd_client *client)
{
	return client->isid;
}

int osd_client_failed(const struct osd_client *client, struct error_text *error)
{
	return session_error(client->session, error);
}

int osd_client_discover(const char *url, const struct osd_client_options *options,
			osd_client_found *found, void *context, struct error_text *error)
{
	struct login_options login = login_options_of(options);

	return login_discover(url, &login, found, context, error);
}

/* ---- commands ---- */

static struct osd_request *request_of(struct session_task *task)
{
	return (struct osd_request *)((uint8_t *)task - offsetof(struct osd_request, task));
}

/* Repeats a command that met a unit attention, so many times. */
static bool wants_repeat(struct osd_request *request)
{
	return request->error.result == -EBUSY && request->error.has_sense &&
	       request->error.sense.key == SENSE_UNIT_ATTENTION &&
	       request->unit_attentions++ < UNIT_ATTENTIONS_MAX;
}

static void task_done(struct session_task *task)
{
	struct osd_request *request = request_of(task);
	uint8_t *scratch = request->scratch;

	outcome_decode(request, request->client->session);
	security_verify(request);
	if (wants_repeat(request) || security_retype(request->client, request)) {
		if (security_sign(request->client, request) == 0 &&
		    session_submit(request->client->session, task) == 0)
			return;
	}
	request->pending = false;
	security_forget(request);
	/*
	 * `done` may free the request or submit it again; what it could look at is freed
	 * afterwards.
	 */
	if (request->done)
		request->done(request);
	free(scratch);
}

int osd_client_submit(struct osd_client *client, struct osd_request *request)
{
	int result = client_is_stopped(client) ? -ECANCELED : request_prepare(request, client);

	if (result < 0)
		return result;
	request->client = client;
	request->unit_attentions = 0;
	request->retyped = false;
	request->task.done = task_done;
	result = session_submit(client->session, &request->task);
	if (result < 0)
		request_release(request);
	request->pending = result == 0;
	return result;
}

int osd_client_step(struct osd_client *client, int timeout_ms)
{
	return session_step(client->session, timeout_ms);
}

int osd_client_descriptor(const struct osd_client *client)
{
	return session_descriptor(client->session);
}

short osd_client_events(const struct osd_client *client)
{
	return session_events(client->session);
}

int osd_client_push(struct osd_client *client)
{
	return session_push(client->session);
}

int osd_client_submit_scsi(struct osd_client *client, struct session_task *task)
{
	return session_submit(client->session, task);
}

size_t osd_client_outstanding(const struct osd_client *client)
{
	return session_outstanding(client->session);
}

uint32_t osd_client_queue_depth(const struct osd_client *client)
{
	return client->queue_depth;
}

int osd_client_drain(struct osd_client *client)
{
	while (session_outstanding(client->session) > 0)
		session_step(client->session, -1);
	return session_error(client->session, NULL);
}

void osd_client_stop_when(struct osd_client *client, bool (*stop)(void))
{
	client->stop = stop;
}

bool client_is_stopped(const struct osd_client *client)
{
	return client->stop && client->stop();
}

int client_not_submitted(const struct osd_client *client, int result, const char *what,
			 struct osd_client_error *error)
{
	struct error_text sentence;

	if (result == -ECANCELED)
		return outcome_set_local(error, result, "%s: interrupted", what);
	if (session_error(client->session, &sentence) < 0)
		return outcome_set(error, result, "%s", sentence.text);
	if (result == -EMSGSIZE)
		return outcome_set_local(error, result,
					 "%s: more data than /dev/sg takes at once, %u bytes; a "
					 "smaller --chunk may help",
					 what, SG_SESSION_DATA_MAX);
	return outcome_set(error, result, "%s: %s", what,
			   result == -ENOTCONN ? "the target has asked for the end of the session"
					       : strerror(-result));
}

int osd_client_run(struct osd_client *client, struct osd_request *request)
{
	int result = osd_client_submit(client, request);

	if (result < 0)
		return client_not_submitted(client, result, osd_action_name(request->cdb.action),
					    &request->error);
	while (request->pending)
		session_step(client->session, -1);
	return request->error.result;
}
