/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The files whose code a process has mapped: for those who look up addresses, or which build ran. */
#pragma once

#include "user/lib/json.h"
#include "user/report/report.h"

/* Write the code of @p by address, with build IDs, as a part of the text. */
void report_libraries_text(FILE *out, const struct report_process *p);
/* The key "libraries". */
void report_libraries_json(struct json *j, const struct report_process *p);
