/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The report for speedscope: a profile for each number of callers and each process, with the frames of all of them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/lib/array.h"
#include "user/lib/flush.h"
#include "user/lib/json.h"
#include "user/names/symbolize.h"
#include "user/report/format.h"
#include "user/report/frames.h"
#include "user/report/intern.h"
#include "user/report/measure.h"
#include "user/report/report_rows.h"
#include "user/target/target.h"

/* One sample a line. */
enum { FOLD_SAMPLES = 4, MAX_TITLE = 256 };

/* A frame: numbers of strings, "" where a part is not known. */
struct scope_frame {
	u64 name, file, line;
};

/* The frames of one caller, outermost first: numbers of frames. */
struct sample {
	u32 *frames; /* owned */
	size_t nr, max;
};

struct scope {
	const struct report *report;
	struct json json;
	struct intern_strings strings;
	struct intern_table frames; /* of struct scope_frame */
	struct report_frames stack; /* of the caller that is being read */
};

/* The callers of one process. */
struct scope_callers {
	struct report_row *rows; /* owned */
	struct sample *samples;	 /* owned; one for each row */
	size_t nr;
};

static int report_speedscope_add_frame(struct scope *sc, struct sample *s, const char *name,
				       const struct symbol *symbol)
{
	const char *path = symbol && symbol->file ? symbol->file : "";
	struct scope_frame key = { .line = symbol ? symbol->line : 0 };
	size_t text = 0, file = 0, number = 0;
	bool is_new;
	int err = intern_string(&sc->strings, name, &text, NULL);

	if (!err)
		err = intern_string(&sc->strings, path, &file, NULL);
	key.name = text;
	key.file = file;
	if (!err)
		err = intern_item(&sc->frames, &key, &number, &is_new);
	if (!err)
		err = array_reserve(s->frames, s->max, s->nr + 1);
	if (!err)
		s->frames[s->nr++] = (u32)number;
	return err;
}

static int read_sample(struct scope *sc, struct sample *s, const struct report_process *p,
		       const struct report_row *row)
{
	struct report_frames *f = &sc->stack;
	char mark[sizeof(f->mark) + 2];
	int err = report_frames(f, sc->report, p, row);

	snprintf(mark, sizeof(mark), "[%s]", f->mark);
	if (!err && *f->mark)
		err = report_speedscope_add_frame(sc, s, mark, NULL);
	for (size_t i = f->nr; i-- > 0 && !err;)
		err = report_speedscope_add_frame(sc, s, report_frame_name(f, sc->report, i),
						  f->list[i].symbol);
	return err ? err : report_speedscope_add_frame(sc, s, report_alloc_fn(p, row)->name, NULL);
}

static int report_speedscope_callers_init(struct scope_callers *c, struct scope *sc,
					  const struct report_process *p)
{
	int err = report_rows(sc->report, p, &c->rows, &c->nr, NULL);

	if (err)
		return err;
	c->samples = calloc(c->nr + 1, sizeof(*c->samples));
	if (!c->samples)
		return -ENOMEM;
	for (size_t i = 0; i < c->nr && !err; i++)
		err = read_sample(sc, &c->samples[i], p, &c->rows[i]);
	return err;
}

static void report_speedscope_callers_fini(struct scope_callers *c)
{
	for (size_t i = 0; c->samples && i < c->nr; i++)
		free(c->samples[i].frames);
	free(c->samples);
	free(c->rows);
}

static void put_samples(struct json *j, const struct scope_callers *c, const struct report_measure *m)
{
	json_array_begin(j, "samples");
	for (size_t i = 0; i < c->nr; i++) {
		if (!report_number(&c->rows[i], m->number))
			continue;
		json_array_begin(j, NULL);
		for (size_t k = 0; k < c->samples[i].nr; k++)
			json_u64(j, NULL, c->samples[i].frames[k]);
		json_array_end(j);
	}
	json_array_end(j);
	json_array_begin(j, "weights");
	for (size_t i = 0; i < c->nr; i++)
		if (report_number(&c->rows[i], m->number))
			json_u64(j, NULL, report_number(&c->rows[i], m->number));
	json_array_end(j);
}

static void put_profile(struct json *j, const struct scope_callers *c, const struct report_process *p,
			const struct report_measure *m)
{
	char title[MAX_TITLE];
	u64 sum = 0;

	for (size_t i = 0; i < c->nr; i++)
		sum += report_number(&c->rows[i], m->number);
	snprintf(title, sizeof(title), "%s, %s (pid %d)", m->what, p->target->comm, (int)p->target->pid);
	json_object_begin(j, NULL);
	json_string(j, "type", "sampled");
	json_string(j, "name", title);
	json_string(j, "unit", m->is_bytes ? "bytes" : "none");
	json_u64(j, "startValue", 0);
	json_u64(j, "endValue", sum);
	put_samples(j, c, m);
	json_object_end(j);
}

static int report_speedscope_put_process(struct scope *sc, const struct report_process *p)
{
	struct scope_callers c = { 0 };
	int err = report_speedscope_callers_init(&c, sc, p);

	for (const struct report_measure *m = report_measures; m->name && !err; m++)
		if (p->leaks || !m->is_of_scan)
			put_profile(&sc->json, &c, p, m);
	report_speedscope_callers_fini(&c);
	return err;
}

/* The profile that is shown first: one of the first process. */
static u64 active_profile(const struct report *r)
{
	const struct report_measure *active = report_measure_for(r);
	u64 nr = 0;

	for (const struct report_measure *m = report_measures; m < active; m++)
		nr += !m->is_of_scan || (r->nr_processes && r->processes[0].leaks);
	return nr;
}

/* All frames, which the samples have collected. */
static void report_speedscope_put_frames(struct scope *sc)
{
	struct json *j = &sc->json;

	json_object_begin(j, "shared");
	json_array_begin(j, "frames");
	json_fold(j, FOLD_SAMPLES - 1);
	for (size_t i = 0; i < sc->frames.nr; i++) {
		const struct scope_frame *f = intern_get(&sc->frames, i);

		json_object_begin(j, NULL);
		json_string(j, "name", sc->strings.list[f->name]);
		if (*sc->strings.list[f->file])
			json_string(j, "file", sc->strings.list[f->file]);
		if (f->line)
			json_u64(j, "line", f->line);
		json_object_end(j);
	}
	json_array_end(j);
	json_object_end(j);
}

int report_speedscope(FILE *out, const struct report *r)
{
	struct scope sc = { .report = r,
			    .frames = { .item_size = sizeof(struct scope_frame),
					.key_size = sizeof(struct scope_frame) } };
	int err = 0;

	json_init(&sc.json, out, FOLD_SAMPLES);
	json_object_begin(&sc.json, NULL);
	json_string(&sc.json, "$schema", "https://www.speedscope.app/file-format-schema.json");
	json_string(&sc.json, "exporter", "heaptap " HEAPTAP_VERSION);
	json_u64(&sc.json, "activeProfileIndex", active_profile(r));
	json_array_begin(&sc.json, "profiles");
	for (size_t i = 0; i < r->nr_processes && !err; i++)
		err = report_speedscope_put_process(&sc, &r->processes[i]);
	json_array_end(&sc.json);
	report_speedscope_put_frames(&sc);
	json_object_end(&sc.json);
	report_frames_fini(&sc.stack);
	intern_fini(&sc.frames);
	intern_strings_fini(&sc.strings);
	return err ? err : flush_stream(out);
}
