/* SPDX-License-Identifier: GPL-2.0-or-later */
/* heaptap system: watch all processes of this machine. */
#include <string.h>

#include "user/cli/commands.h"
#include "user/cli/options_rooms.h"
#include "user/lib/log.h"
#include "user/lib/status.h"
#include "user/session/control.h"
#include "user/system/system.h"

int cmd_system(const struct options *o)
{
	const struct session_options session = options_session(o);
	const struct system_options so = options_system(o, &session);
	const struct control_times times = { .duration_ns = o->duration_ns };
	struct control *c = NULL;
	int status, err = control_new(&c, &times, false);

	if (err) {
		error("system: signals: %s", strerror(-err));
		return STATUS_IMPOSSIBLE;
	}
	status = system_run(&so, c);
	control_free(c);
	return status;
}
