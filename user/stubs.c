/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stand-ins for commands that are not there yet; each goes when its command lands, then this file. */
#include "user/lib/log.h"
#include "user/options.h"

#define STUB(cmd)                                                                                            \
	__attribute__((weak)) int cmd_##cmd(const struct options *o)                                         \
	{                                                                                                    \
		error("%s: not in this version yet", o->command->name);                                      \
		return STATUS_IMPOSSIBLE;                                                                    \
	}

STUB(run)
STUB(attach)
STUB(report)
