/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What a browser and Prometheus get from the service: the status page and the metrics, over HTTP at
 * `metrics`. Nothing can be changed there. The library serves within the service's own loop,
 * without threads; connections, their memory and their time are bounded, and tgtd is asked at most
 * once a second, however many ask.
 */
#ifndef MUNINN_DAEMON_HTTP_H
#define MUNINN_DAEMON_HTTP_H

#include <stdint.h>

#include "common/error.h"

struct http;
struct server;

/* Begins to listen. *http is NULL if `metrics` is not set. -errno with a sentence. */
int http_open(struct server *server, struct http **http, struct error_text *error);
void http_close(struct http *http);

/* NULL everywhere below: there is none. Readable: there is something to do; -1. */
int http_fd(const struct http *http);
/* After how long http_serve wants to be called in any case. */
int64_t http_wait_ms(const struct http *http);
/* Does what is to be done, without waiting for who asks. */
void http_serve(struct http *http);

#endif
