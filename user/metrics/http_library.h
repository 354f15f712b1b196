/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libmicrohttpd, loaded when somebody asks for metrics: it brings a library for TLS with it, which heaptap does not
 * need. Only the helper process loads it (user/metrics/http_server.h).
 */
#pragma once

#ifndef WITHOUT_METRICS
#include <microhttpd.h>

#include "user/lib/types.h"

/* The functions in use, each under its name without MHD_. */
#define HTTP_FUNCTIONS(X)                                                                                    \
	X(start_daemon)                                                                                      \
	X(run)                                                                                               \
	X(get_timeout)                                                                                       \
	X(get_daemon_info)                                                                                   \
	X(get_connection_info)                                                                               \
	X(create_response_from_buffer)                                                                       \
	X(create_response_from_fd)                                                                           \
	X(destroy_response)                                                                                  \
	X(add_response_header)                                                                               \
	X(queue_response)                                                                                    \
	X(lookup_connection_value)                                                                           \
	X(suspend_connection)                                                                                \
	X(resume_connection)

struct http_library {
#define MEMBER(name) __typeof__(MHD_##name) *name;
	HTTP_FUNCTIONS(MEMBER)
#undef MEMBER
};

/* Load the library for the rest of this process. 0; or -ENOSYS: it is not there, or lacks a function. */
int http_library_load(struct http_library *l) __must_check;
#endif
