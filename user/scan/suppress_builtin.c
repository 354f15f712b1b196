/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Suppressions that apply unless --no-default-suppressions is given. Each was seen, and says where. */
#include "user/scan/suppress.h"

const char suppress_builtin[] =
	/* gperftools 2.10 (libtcmalloc of Debian 12) registers its extension object and forgets the old one. */
	"leak:MallocExtension::Register\n"
	/*
	 * The loader of glibc 2.35 and newer keeps its list of mapped objects in blocks to which only pointers into
	 * the middle lead (dl_find_object), and never frees them: "possibly leaked" in php, ruby, python3.
	 */
	"leak:^_dl_find_object_\n";
