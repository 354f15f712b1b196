/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The line below a trace. */
#include "user/top/status_line.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "user/lib/clock.h"
#include "user/lib/human.h"
#include "user/lib/log.h"
#include "user/report/estimate.h"

enum { WIDEST = 200 };

/* A part of the line, in the order of the line. */
enum status_part {
	PART_TIME,
	PART_LIVE,
	PART_BLOCKS,
	PART_GROWTH,
	PART_LOST,
	PART_PROBES,
	PART_EVENTS,
	PART_COST,
	NR_PARTS
};

struct part_text {
	char text[96];
	bool is_shown;
};

/* "0:07", "12:07", "1:00:07" */
static void write_clock(u64 ns, char *text, size_t size)
{
	u64 s = ns / SECOND_NS;

	if (s < 3600)
		snprintf(text, size, "%" PRIu64 ":%02" PRIu64, s / 60, s % 60);
	else
		snprintf(text, size, "%" PRIu64 ":%02" PRIu64 ":%02" PRIu64, s / 3600, s / 60 % 60, s % 60);
}

static void status_line_write_growth(const struct meter *m, char *text, size_t size)
{
	u64 time_ns;
	s64 grown = meter_growth(m, &time_ns);

	snprintf(text, size, "%s%s in %" PRIu64 " s", m->now.sums.is_sampled ? "~" : "",
		 human_change(grown).text, (time_ns + SECOND_NS / 2) / SECOND_NS);
}

static void write_parts(const struct meter *m, struct part_text parts[NR_PARTS])
{
	const struct session_totals *sums = &m->now.sums;
	const size_t size = sizeof(parts->text);

	write_clock(meter_elapsed_ns(m), parts[PART_TIME].text, size);
	snprintf(parts[PART_LIVE].text, size, "live %s",
		 estimate_if(sums->is_sampled, human_bytes(sums->live_bytes)).text);
	snprintf(parts[PART_BLOCKS].text, size, "in %s block%s",
		 estimate_if(sums->is_sampled, human_count(sums->live_blocks)).text,
		 sums->live_blocks == 1 ? "" : "s");
	status_line_write_growth(m, parts[PART_GROWTH].text, size);
	snprintf(parts[PART_EVENTS].text, size, "%s events/s", human_count(meter_events_per_s(m)).text);
	snprintf(parts[PART_LOST].text, size, "lost %s", human_count(sums->lost).text);
	snprintf(parts[PART_COST].text, size, "heaptap %s of a CPU",
		 human_percent(meter_cpu_permille(m), 1000).text);
	if (m->now.probes_permille)
		snprintf(parts[PART_PROBES].text, size, "breakpoints %s of its time",
			 human_percent(m->now.probes_permille, 1000).text);
}

/* Between two parts. The number of blocks belongs to the bytes. */
static const char *before_part(size_t part)
{
	return part == PART_BLOCKS ? " " : "  ";
}

void status_line_text(const struct meter *m, u32 columns, char *text, size_t size)
{
	/* Losses come early, because the numbers mean less with them, and what the program pays. */
	static const enum status_part order[] = { PART_LIVE,   PART_TIME,   PART_LOST,	 PART_GROWTH,
						  PART_PROBES, PART_BLOCKS, PART_EVENTS, PART_COST };
	struct part_text parts[NR_PARTS] = { 0 };
	size_t used = 0;

	_Static_assert(ARRAY_SIZE(order) == NR_PARTS, "each part has its place");
	write_parts(m, parts);
	for (size_t i = 0; i < NR_PARTS; i++) {
		struct part_text *p = &parts[order[i]];
		size_t len = strlen(p->text) + (used ? strlen(before_part(order[i])) : 0);

		if (!*p->text)
			continue;
		p->is_shown = used + len <= columns && used + len < size;
		if (!p->is_shown)
			break;
		used += len;
	}
	used = 0;
	*text = '\0';
	for (size_t i = 0; i < NR_PARTS; i++)
		if (parts[i].is_shown)
			used += (size_t)snprintf(text + used, size - used, "%s%s", used ? before_part(i) : "",
						 parts[i].text);
}

void status_line_round(struct status_line *l, struct session *s)
{
	u64 now = clock_now_ns();
	struct meter_sample sample;
	char text[WIDEST];

	if (now < l->next_ns)
		return;
	l->next_ns = now + SECOND_NS;
	sample = meter_look(s);
	meter_add(&l->meter, &sample);
	status_line_text(&l->meter, log_status_columns(), text, sizeof(text));
	log_status(text);
}
