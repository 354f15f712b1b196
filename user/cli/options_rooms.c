/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From the options of the command line to those of each room. */
#include "user/cli/options_rooms.h"

#include <string.h>

#include "user/lib/serve_only.h"
#include "user/remote/serve.h"
#include "user/report/format.h"
#include "user/report/report_rows.h"
#include "user/scan/leaks_marks.h"

struct output_options options_output(const struct options *o)
{
	return (struct output_options){ .names = o->outputs.items,
					.nr_names = o->outputs.nr,
					.format = o->format,
					.annotations = o->annotate ? report_format_named("github") : NULL,
					.force = o->force,
					.color = o->color,
					.keep = o->keep,
					.is_numbered = o->interval_ns != 0,
					.report = { .sort = &report_keys[o->sort],
						    .top = o->top,
						    .has_top = o->has_top,
						    .min_size = o->min_size,
						    .max_size = o->max_size,
						    .older_ns = o->older_ns,
						    .verbose = o->verbose,
						    .libraries = !IS_AGENT && o->libraries,
						    .gen_suppressions = o->gen_suppressions } };
}

static struct recorder_options options_recorder(const struct options *o)
{
	return (struct recorder_options){ .path = o->record,
					  .is_list = o->events,
					  .force = o->force,
					  .depth = o->depth,
					  .part_bytes = o->record_size,
					  .seek_bytes = o->record_seek,
					  .part_ns = o->record_ns,
					  .keep = o->keep };
}

static struct source_choice options_source(const struct options *o)
{
	return (struct source_choice){ .command = o->command->name,
				       .backend = o->backend,
				       .on_full = o->on_full,
				       .check = !IS_AGENT && o->sample_bytes && o->check == CHECK_STARTED
							? CHECK_NEVER
							: o->check,
				       .max_cost = o->max_cost,
				       .depth = o->depth,
				       .max_followed = o->follow ? o->max_procs : 0,
				       .ring_bytes = o->ring_bytes,
				       .sample_bytes = IS_AGENT ? 0 : o->sample_bytes,
				       .adapts_samples = !IS_AGENT && o->adapts_samples,
				       .want_mmap = o->want_mmap,
				       .no_cpp = o->no_cpp,
				       .omit = o->omit.items,
				       .usdt = o->usdt.items,
				       .allocs = o->allocs,
				       .nr_allocs = o->nr_allocs };
}

/* Does one of the reports that @o asks for have this property of its format? */
static bool any_format(const struct options *o, bool (*has)(const struct report_format *f))
{
	bool any = o->format && has(o->format);

	for (size_t i = 0; i < o->outputs.nr && !any; i++) {
		enum packing packing;
		const struct report_format *f = report_format_of(o->outputs.items[i], &packing);

		any = f && has(f);
	}
	return any;
}

static bool wants_tape(const struct report_format *f)
{
	return f->wants_tape;
}

static bool wants_slices(const struct report_format *f)
{
	return f->wants_slices;
}

/* The terminal of run is that of its program, too. */
static bool options_show_progress(const struct options *o)
{
	return !o->quiet && (o->status || strcmp(o->command->name, "run") != 0);
}

bool options_spare_older(const struct options *o)
{
	return !IS_AGENT && (o->leaks != LEAKS_ALL || o->older_blocks);
}

struct session_options options_session(const struct options *o)
{
	return (struct session_options){
		.command = o->command->name,
		.source = options_source(o),
		.recorder = options_recorder(o),
		.tuning = { .is_thin = o->thin,
			    .depth = o->depth,
			    .min_size = o->thin ? o->min_size : 0,
			    .max_size = o->thin ? o->max_size : 0 },
		.scan = o->scan,
		.wrappers = o->wrappers,
		.wants_tape = !IS_SERVE_ONLY && any_format(o, wants_tape),
		.wants_slices = !IS_AGENT && (o->open || o->metrics || any_format(o, wants_slices)),
		.verdict = { .max_pause_ns = o->max_pause_ns,
			     .snapshot = o->snapshot,
			     .nr_jobs = o->nr_jobs,
			     .max_copy = o->max_copy,
			     .pointer_mask = o->pointer_mask,
			     .unaligned = o->unaligned,
			     .leaks = o->leaks,
			     .nr_whys = o->nr_whys,
			     .why_addr = o->why_addr,
			     .nr_samples = o->contents && !o->nr_samples ? 1 : o->nr_samples,
			     .content_bytes = o->contents },
		.fail = { .on_definite = o->fail_on_definite,
			  .spares_older = options_spare_older(o),
			  .on_errors = o->fail_on_errors,
			  .growth = o->fail_growth,
			  .bytes = o->fail_bytes },
		.suppress = o->suppress,
		.no_own_rules = o->no_default_suppressions,
		.stop_after = o->stop_after,
		.names = { o->sysroot, o->debug_path, o->debuginfod },
		.max_memory = o->max_memory,
		.start_paused = o->start_paused,
		.between = o->has_between ? &o->between : NULL,
		.shows_progress = options_show_progress(o),
	};
}

struct control_times options_times(const struct options *o)
{
	return (struct control_times){ .interval_ns = o->interval_ns, .duration_ns = o->duration_ns };
}

struct system_options options_system(const struct options *o, const struct session_options *session,
				     const struct output_options *output)
{
	const u64 interval_ns = 10000000000ULL;
	const struct watch_choice choice = { .comms = o->comms.items,
					     .exes = o->exes.items,
					     .uids = o->uids.items,
					     .cgroups = o->cgroups.items,
					     .containers = o->containers.items,
					     .pids = o->targets.items };

	return (struct system_options){
		.choice = choice,
		.max_procs = o->max_watched,
		.interval_ns = o->interval_ns ? o->interval_ns : interval_ns,
		.top = o->top,
		.wants_json = o->json,
		.zoom = { .session = session,
			  .nr = o->everything || o->sample_bytes ? 0 : o->zoom,
			  .is_chosen = watch_choice_any(&choice),
			  .spare = o->spare.items,
			  .max_cost =
				  (o->sample_bytes || o->everything) && !o->has_max_cost ? 0 : o->max_cost,
			  .wants_scan = o->scan != SCAN_NEVER },
		.dump = { .output = output,
			  .wants_scan = o->scan != SCAN_NEVER,
			  .max_bytes = o->threshold_bytes,
			  .max_growth = o->threshold_growth },
		.wants_everything = o->everything,
		.samples_growth = o->sample_bytes && o->zoom && !o->everything,
		.dumps_at_interval = o->outputs.nr && o->interval_ns,
		.metrics = o->metrics,
		.push = o->push
	};
}

/* Serve puts code into programs where it is asked for: by --backend, or to sample. */
static struct source_choice options_serve_source(const struct options *o)
{
	struct source_choice c = options_source(o);

	if (c.sample_bytes)
		c.code = o->is_program ? CODE_FIRST : CODE_LATER;
	return c;
}

struct serve_options options_serve(const struct options *o)
{
	return (struct serve_options){ .source = options_serve_source(o),
				       .targets = o->targets.items,
				       .nr_targets = o->targets.nr,
				       .program = o->is_program ? o->args : NULL,
				       .user = o->user,
				       .cwd = o->cwd,
				       .snapshot = (enum snapshot_way)o->snapshot,
				       .nr_jobs = o->nr_jobs,
				       .max_copy = o->max_copy,
				       .max_pause_ns = o->max_pause_ns,
				       .allow_kill = o->allow_kill };
}

struct connection_options options_connection(const struct options *o, struct session_options *session)
{
	return (struct connection_options){ .session = session,
					    .address = o->nr_args ? o->args[0] : NULL,
					    .program = o->nr_args > 1 ? o->args + 1 : NULL,
					    .listen = o->listen,
					    .token_file = o->token_file,
					    .discover = o->discover,
					    .announce = o->announce,
					    .is_insecure_fine = o->insecure_tcp,
					    .want_kill = o->want_kill,
					    .want_mmap = o->want_mmap,
					    .no_cpp = o->no_cpp,
					    .max_followed = o->follow ? o->max_procs : 0 };
}
