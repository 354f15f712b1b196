/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The last report of attach tells what a call cost by probes, if a program has spent much of its time in them. */
#pragma once

struct options;
struct session;

/* Tracing by @s, with the options @o, begins: measure what the probes run. */
void attach_price_begin(const struct options *o, struct session *s);

/*
 * Tracing by @s is over, and its last report comes. If a process has spent more than a fifth of its time in probes,
 * measure for the report what a call costs. Takes some 300 ms then. Does nothing if @o names a backend.
 */
void attach_price_end(const struct options *o, struct session *s);
