/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Markers in C++: in a template, in an inline function with two callers, and a throw with libstdc++'s own probe. */
#include <stdexcept>

#include "include/heaptap.h"

template <class T> static void marked(const char *name)
{
	HEAPTAP_MARK(name);
}

inline void paused(void (*work)())
{
	HEAPTAP_PAUSE();
	work();
	HEAPTAP_RESUME();
}

static int *volatile kept[8];

int main()
{
	marked<int>("first");
	kept[0] = new int(1);
	paused([] { kept[1] = new int[100]; });
	paused([] { kept[2] = new int[100]; });
	kept[3] = new int(2);
	marked<long>("second");
	try {
		throw std::runtime_error("thrown");
	} catch (const std::exception &) {
		kept[4] = new int(3);
	}
	return 0;
}
