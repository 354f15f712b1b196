/* SPDX-License-Identifier: GPL-2.0-or-later */
/* In the agent: commands that belong to the machine where the names are. */
#include "user/lib/log.h"
#include "user/commands.h"
#include "user/options.h"

static int refuse(const struct options *o)
{
	error("%s: not in the agent", o->command->name);
	return STATUS_IMPOSSIBLE;
}

int cmd_connect(const struct options *o)
{
	return refuse(o);
}

int cmd_console(const struct options *o)
{
	return refuse(o);
}

int cmd_doctor(const struct options *o)
{
	return refuse(o);
}

int cmd_report(const struct options *o)
{
	return refuse(o);
}
