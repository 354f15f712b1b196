/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Packs the chunks of streams by zstd; left out where the library is. */
#pragma once

#include "user/stream/stream_write.h"

/* Never unpacks more than there is room for. */
extern const struct stream_codec stream_zstd;
