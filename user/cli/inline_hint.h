/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The hint at --backend inline, for programs that have spent much of their time in probes. */
#pragma once

struct options;
struct session;

/* Tracing by @s, with the options @o, begins: measure what the probes run. */
void inline_hint_begin(const struct options *o, struct session *s);

/*
 * Tracing by @s, with the options @o, is over, and its last report comes. If a process has spent more than a fifth of
 * its time in probes, measure for the report what a call costs. Takes some 300 ms then. Does nothing if @o names a
 * backend.
 */
void inline_hint_measure(const struct options *o, struct session *s);
