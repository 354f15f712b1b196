/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Metrics and profiles of all processes (user/metrics/metrics.h). */
#pragma once

struct metrics;
struct push;
struct system_state;

/* For each round of the loop. NULL is fine. */
void system_metrics_round(struct metrics *m, struct push *p, struct system_state *s);

/* Tracing ends soon: push the last profiles. */
void system_metrics_end(struct push *p, struct system_state *s);
