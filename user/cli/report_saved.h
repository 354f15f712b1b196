/* SPDX-License-Identifier: GPL-2.0-or-later */
/* heaptap report on a JSON report: names for the addresses of a report that was made without names. */
#pragma once

struct options;

/* Write the JSON report o->args[0] with names to the outputs of @o, or print it. An exit status. Logs. */
int report_saved(const struct options *o);
