/* SPDX-License-Identifier: GPL-2.0-or-later */
/* heaptap system: watch all processes of this machine, and trace those that grow. */
#include <string.h>

#include "user/cli/commands.h"
#include "user/cli/options_rooms.h"
#include "user/lib/log.h"
#include "user/lib/status.h"
#include "user/session/control.h"
#include "user/session/session.h"
#include "user/system/system.h"

/* Several processes have reports: each needs a name of its own. */
static bool is_for_many(const char *name)
{
	if (!strcmp(name, "-") || strstr(name, "%p") || strstr(name, "%n"))
		return true;
	error("--output: %s: needs %%p or %%n in its name: each traced process has a report of its own",
	      name);
	return false;
}

int cmd_system(const struct options *o)
{
	struct session_options session = options_session(o);
	const struct output_options output = options_output(o);
	const struct system_options so = options_system(o, &session, &output);
	const struct control_times times = { .duration_ns = o->duration_ns };
	struct control *c = NULL;
	int status, err;

	if (o->backend == BACKEND_INLINE && o->everything && !o->sample_bytes) {
		error("system: --everything: its probes are in all processes: use --backend bpf");
		return STATUS_USAGE;
	}
	session.source.code = o->everything && !o->sample_bytes ? CODE_NEVER : CODE_LATER;
	if ((o->threshold_bytes || o->threshold_growth) && !o->zoom && !o->everything) {
		error("system: --threshold: with --zoom 0 no process is traced, so that there is nothing to report");
		return STATUS_USAGE;
	}
	for (size_t i = 0; i < o->outputs.nr; i++)
		if (!is_for_many(o->outputs.items[i]))
			return STATUS_USAGE;
	err = control_new(&c, &times, false);
	if (err) {
		error("system: signals: %s", strerror(-err));
		return STATUS_IMPOSSIBLE;
	}
	if (o->zoom && !o->everything && !o->sample_bytes)
		session.max_memory = (o->max_memory ? o->max_memory : session_default_memory()) / o->zoom;
	status = system_run(&so, c);
	control_free(c);
	return status;
}
