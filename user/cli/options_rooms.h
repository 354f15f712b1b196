/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From the options of the command line to those of each room. Results borrow strings and lists from the options. */
#pragma once

#include "user/cli/options.h"
#include "user/remote/connection.h"
#include "user/report/output.h"
#include "user/session/control.h"
#include "user/session/session_options.h"
#include "user/system/system.h"

struct output_options options_output(const struct options *o);
struct session_options options_session(const struct options *o);
/* Do leaks from before an attach not count? New ones are none of before. */
bool options_spare_older(const struct options *o);
struct control_times options_times(const struct options *o);
/* @session and @output are borrowed too. */
struct system_options options_system(const struct options *o, const struct session_options *session,
				     const struct output_options *output);
struct serve_options options_serve(const struct options *o);
/* @session is borrowed too. */
struct connection_options options_connection(const struct options *o, struct session_options *session);
