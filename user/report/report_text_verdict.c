/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The answer with which the report for people begins: at most two sentences that a reader can quote. */
#include "user/report/report_text.h"

#include "user/lib/escape.h"
#include "user/report/report_hint.h"
#include "user/report/report_verdict.h"
#include "user/scan/leaks.h"
#include "user/source/source.h"

/* Why the numbers are not exact, if they are not. */
static void doubt_line(struct text *t, const struct report_process *p)
{
	struct losses lost = report_losses(p);
	u64 nr_lost = lost.allocs + lost.frees;

	if (!nr_lost)
		return;
	text_tone_begin(t, TONE_WARN);
	if (!IS_AGENT && (lost.cramped || lost.twins))
		fputs("not exact: later calls were not seen", t->out);
	else
		fprintf(t->out, "not exact: %s event%s lost", human_count(nr_lost).text,
			nr_lost == 1 ? " was" : "s were");
	text_tone_end(t);
	putc('\n', t->out);
}

/* Are the lost blocks held by pointers that heaptap was not told how to read? */
static void tagged_line(struct text *t, const struct report_process *p)
{
	char text[REPORT_HINT_TEXT] = "";

	if (p->leaks && p->leaks->has_verdict)
		report_hint_tagged(text, &p->leaks->result);
	if (*text)
		fprintf(t->out, "%s\n", text);
}

int text_verdict(struct text *t, const struct report_process *p, const struct report_row *rows, size_t nr)
{
	struct report_verdict v;
	int err = report_verdict(&v, t->report, p, rows, nr);

	if (err)
		return err;
	fwrite(v.text, 1, v.bad_at, t->out);
	if (v.nr_bad)
		text_tone_begin(t, TONE_WARN);
	fwrite(v.text + v.bad_at, 1, v.nr_bad, t->out);
	if (v.nr_bad)
		text_tone_end(t);
	fprintf(t->out, "%s\n", v.text + v.bad_at + v.nr_bad);
	if (!p->unwatched)
		doubt_line(t, p);
	if (!IS_AGENT)
		tagged_line(t, p);
	if (p->ending) {
		escape_text(t->out, p->ending);
		putc('\n', t->out);
	}
	return 0;
}
