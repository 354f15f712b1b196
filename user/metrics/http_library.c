/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the functions of libmicrohttpd. */
#include "user/metrics/http_library.h"

#ifndef WITHOUT_METRICS
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

int http_library_load(struct http_library *l)
{
	const struct {
		const char *name;
		void *where;
	} wanted[] = {
#define ROW(function) { "MHD_" #function, &l->function },
		HTTP_FUNCTIONS(ROW)
#undef ROW
	};
	void *library = dlopen("libmicrohttpd.so.12", RTLD_NOW | RTLD_LOCAL);

	if (!library)
		return -ENOSYS;
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		void *found = dlsym(library, wanted[i].name);

		if (!found)
			return -ENOSYS;
		memcpy(wanted[i].where, &found, sizeof(found));
	}
	return 0;
}
#endif
