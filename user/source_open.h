/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which source of events: chosen by options and by what works here. */
#pragma once

#include "user/options.h"
#include "user/source.h"

/*
 * Choose a source by @o and prepare it; nothing is attached yet. @is_launch: targets are started by us. *@source is
 * freed with (*@ops)->free(), then *@custom, which it uses, with free(); both are set on success only. Logs why
 * not: -EPERM, -EOPNOTSUPP (no source works here), -ENOMEM or another -errno.
 */
int source_open(struct source **source, const struct source_ops **ops, struct probe_custom **custom,
		const struct options *o, bool is_launch) __must_check;
