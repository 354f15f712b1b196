/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From options to outputs, a session and a control, and to their end. */
#include "user/cli/tracing.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "user/cli/options_rooms.h"
#include "user/lib/cleanup.h"
#include "user/lib/human.h"
#include "user/lib/log.h"
#include "user/lib/program_path.h"
#include "user/lib/status.h"
#include "user/probe/own_sampler.h"
#include "user/report/output.h"
#include "user/scan/snapshot_price.h"
#include "user/session/control.h"
#include "user/session/session.h"
#include "user/session/session_live.h"
#include "user/session/session_span.h"
#include "user/lib/privileges.h"
#include "user/stream/record_file.h"
#include "user/stream/recorder.h"
#include "user/target/target.h"

/* Does the recording go to standard output? Reports then go elsewhere. */
static bool records_to_stdout(const struct options *o)
{
	return o->record && record_file_descriptor(o->record) == STDOUT_FILENO;
}

/* Would a recording be mixed with other output? */
static int check_stdout(const struct options *o, bool is_launch)
{
	bool is_taken = is_launch || o->events;

	for (size_t i = 0; i < o->outputs.nr; i++)
		is_taken |= !strcmp(o->outputs.items[i], "-");
	if (!is_taken || !records_to_stdout(o))
		return 0;
	error("--record: %s: standard output belongs to %s; name a file or another descriptor (/dev/fd/3)",
	      o->record, is_launch ? "the program" : "a report");
	return -EINVAL;
}

/* Where an output goes: to a file, or to a new one in a directory. */
struct destination {
	struct stat st;	  /* of the file, or of its directory */
	const char *base; /* the name in the directory; "" = the file exists; borrowed */
};

/* False: there is no such place. */
static bool find_destination(struct destination *p, const char *name)
{
	const char *slash = strrchr(name, '/');
	char dir[PATH_MAX] = ".";

	p->base = "";
	if (!stat(name, &p->st))
		return true;
	p->base = slash ? slash + 1 : name;
	if (slash)
		snprintf(dir, sizeof(dir), "%.*s/", (int)(slash - name), name);
	return !stat(dir, &p->st);
}

/* Any number of outputs may go to /dev/null. */
static bool is_one_file(const char *name, const char *other)
{
	const dev_t null = makedev(1, 3);
	struct destination a, b;

	if (!find_destination(&a, name) || !find_destination(&b, other))
		return !strcmp(name, other);
	return a.st.st_dev == b.st.st_dev && a.st.st_ino == b.st.st_ino && !strcmp(a.base, b.base) &&
	       !(S_ISCHR(a.st.st_mode) && a.st.st_rdev == null);
}

/* Would one output be written over another? */
static int check_names(const struct options *o)
{
	for (size_t i = 0; i < o->outputs.nr; i++) {
		const char *name = o->outputs.items[i];
		bool is_record = o->record && is_one_file(name, o->record);
		size_t first = 0;

		while (first < i && !is_one_file(name, o->outputs.items[first]))
			first++;
		if (first == i && !is_record)
			continue;
		error("--output: %s: %s", name,
		      is_record ? "is the file of --record, too" : "is named twice");
		return -EINVAL;
	}
	return 0;
}

void tracing_choose_backend(struct source_choice *c, const char *command)
{
	const u64 needed = 40 << 20, room = snapshot_price_room(getpid());

	if (IS_AGENT || c->backend == BACKEND_PTRACE || room >= needed)
		return;
	if (c->backend != BACKEND_AUTO) {
		warn("%s: only %s of memory are left for heaptap, and BPF takes %s: the kernel may end heaptap: "
		     "use --backend ptrace",
		     command, human_bytes(room).text, human_bytes(needed).text);
		return;
	}
	warn("%s: only %s of memory are left for heaptap, and BPF takes %s: tracing by ptrace, which is slower",
	     command, human_bytes(room).text, human_bytes(needed).text);
	c->backend = BACKEND_PTRACE;
}

/* Do all processes that @o names for attach sample themselves? *@status: a name that nothing has, logged. */
static bool all_tell_samples(const struct options *o, int *status)
{
	bool tell = o->targets.nr > 0;

	for (size_t i = 0; i < o->targets.nr && *status == STATUS_DONE; i++) {
		auto_free pid_t *pids = NULL;
		size_t nr = 0;

		if (target_find(o->targets.items[i], &pids, &nr))
			*status = STATUS_NO_TARGET;
		for (size_t k = 0; k < nr && tell; k++)
			tell = own_sampler_in_process(pids[k]);
	}
	return tell;
}

static bool program_tells_samples(const char *name)
{
	char path[PATH_MAX];
	int fd = program_path(name, path, sizeof(path)) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	bool tells = fd >= 0 && own_sampler_in_file(fd);

	if (fd >= 0)
		close(fd);
	return tells;
}

int tracing_choose_sampler(struct source_choice *source, const struct options *o, bool attaches)
{
	int status = STATUS_DONE;

	if (IS_AGENT || !o->sample_bytes || source->backend == BACKEND_INLINE)
		return STATUS_DONE;
	source->tells_samples =
		attaches ? all_tell_samples(o, &status) : o->nr_args > 0 && program_tells_samples(o->args[0]);
	if (source->tells_samples && !o->quiet)
		info("%s: the program samples its blocks itself and tells of them (%s): nothing else is placed in it",
		     source->command, OWN_SAMPLER_PROVIDER);
	return status;
}

int tracing_run(const struct options *o, const struct tracing_command *command)
{
	bool is_launch = command->is_launch;
	struct session_options so = options_session(o);
	const struct output_options oo = options_output(o);
	const struct control_times times = options_times(o);
	struct session *s = NULL;
	struct control *c = NULL;
	struct outputs *outs = NULL;
	int status, err;

	if (check_stdout(o, is_launch) || check_names(o))
		return STATUS_USAGE;
	err = outputs_new(&outs, &oo, is_launch || records_to_stdout(o) ? stderr : stdout);
	if (err)
		return outputs_status(err);
	so.source.stops_at_checks = true;
	so.source.wants_exec = !IS_AGENT && o->scan != SCAN_NEVER;
	so.wants_residence = true;
	so.source.joins_targets = command->joins_targets;
	so.source.joins_later = command->joins_later;
	so.source.wants_end = command->wants_end;
	so.source.code = command->attaches ? CODE_LATER : CODE_FIRST;
	err = recorder_check(&so.recorder);
	status = err == -ENOMEM ? STATUS_IMPOSSIBLE : STATUS_USAGE;
	if (err)
		goto out;
	status = tracing_choose_sampler(&so.source, o, command->attaches);
	if (status != STATUS_DONE)
		goto out;
	status = STATUS_IMPOSSIBLE;
	tracing_choose_backend(&so.source, so.command);
	if (session_new(&s, &so, outs, !command->attaches))
		goto out;
	if (so.between)
		session_span_set(s, so.between);
	status = command->prepare ? command->prepare(command->ctx, s) : STATUS_DONE;
	if (status != STATUS_DONE)
		goto out;
	status = STATUS_IMPOSSIBLE;
	/* Threads begin with control_guard(). */
	privileges_drop(PRIVILEGES_TRACING, 0);
	err = control_new(&c, &times, is_launch);
	if (err)
		error("%s: signals: %s", so.command, strerror(-err));
	else
		control_guard(c, so.command);
	session_guard(s, c);
	if (!err)
		status = command->work(command->ctx, o, s, c);
out:
	session_free(s);
	control_free(c);
	outputs_free(outs);
	return status;
}
