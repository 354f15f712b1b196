/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The helper process that serves HTTP: from the last snapshot, and profiles that heaptap makes when asked. */
#pragma once

#include "user/lib/types.h"

/*
 * Serve on the socket @listener until the other end of @channel is closed. All other descriptors are closed. For a
 * process just forked, of one thread. Sends CHANNEL_READY first. @is_loopback: refuse requests whose Host is not a name
 * of loopback: a web page whose name leads to 127.0.0.1 (DNS rebinding) made the browser of this machine's user ask.
 */
void http_server_run(int listener, int channel, bool is_loopback) __attribute__((noreturn));
