/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rates of a running session. */
#include "user/top/meter.h"

#include "user/lib/clock.h"

struct meter_sample meter_look(struct session *s)
{
	const struct session_probes probes = session_probes(s);

	return (struct meter_sample){ .time_ns = clock_now_ns(),
				      .cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID),
				      .probes_permille =
					      probes.cpu_ns ? (u32)(probes.ns * 1000 / probes.cpu_ns) : 0,
				      .sums = session_totals(s) };
}

void meter_add(struct meter *m, const struct meter_sample *sample)
{
	if (!m->nr)
		m->first = *sample;
	m->before = m->nr ? m->now : *sample;
	m->now = *sample;
	m->past[m->nr % METER_PAST].time_ns = sample->time_ns;
	m->past[m->nr % METER_PAST].live_bytes = sample->sums.live_bytes;
	m->nr++;
}

u64 meter_elapsed_ns(const struct meter *m)
{
	return m->now.time_ns - m->first.time_ns;
}

/* @n in the time between the last two samples, for each @unit_ns of it. */
static u64 meter_rate(const struct meter *m, u64 n, u64 unit_ns)
{
	u64 time_ns = m->now.time_ns - m->before.time_ns;

	return time_ns ? (u64)((double)n * (double)unit_ns / (double)time_ns) : 0;
}

u64 meter_events_per_s(const struct meter *m)
{
	u64 then = m->before.sums.events, now = m->now.sums.events;

	/* The counts of a process that executes another program begin anew. */
	return meter_rate(m, now > then ? now - then : 0, SECOND_NS);
}

u32 meter_cpu_permille(const struct meter *m)
{
	return (u32)meter_rate(m, m->now.cpu_ns - m->before.cpu_ns, 1000);
}

s64 meter_growth(const struct meter *m, u64 *time_ns)
{
	u32 oldest = m->nr > METER_PAST ? m->nr % METER_PAST : 0;

	*time_ns = m->nr ? m->now.time_ns - m->past[oldest].time_ns : 0;
	return m->nr ? (s64)(m->now.sums.live_bytes - m->past[oldest].live_bytes) : 0;
}
