/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The helper process that serves HTTP: from the last snapshot, and profiles that heaptap makes when asked. */
#pragma once

/*
 * Serve on the socket @listener until the other end of @channel is closed. All other descriptors are closed. For a
 * process just forked, of one thread. Sends CHANNEL_READY first.
 */
void http_server_run(int listener, int channel) __attribute__((noreturn));
