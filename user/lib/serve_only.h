/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Is this the agent that only serves (user/agent/files.mk)? Its books and its reports are a client's. */
#pragma once

#ifndef IS_SERVE_ONLY
#define IS_SERVE_ONLY false
#endif
