/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The helper process that sends profiles. */
#pragma once

/*
 * Send each profile that comes by @channel to @url under the name @name (NULL: as OTLP, which needs none), until the
 * other end of @channel is closed. All other descriptors are closed. For a process just forked, of one thread. Sends
 * CHANNEL_READY first, and CHANNEL_ANSWER after each profile.
 */
void push_helper_run(const char *url, const char *name, int channel) __attribute__((noreturn));
