/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the call frame information of a file from the cache, or compiles it and fills the cache. */
#include "user/unwind/cfi.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/unwind/cfi_cache.h"
#include "user/unwind/cfi_parse.h"
#include "user/lib/cleanup.h"
#include "user/lib/hash.h"
#include "user/lib/log.h"

/* Continue *@hash with the section, if the file has it. */
static int hash_section(const struct elf *elf, bool want_debug, u64 *hash)
{
	struct cfi_section s = { 0 };
	int err = cfi_section_read(&s, elf, want_debug);

	if (err)
		return err == -ENOENT ? 0 : err;
	*hash = hash_bytes(s.data, s.size, *hash ^ s.vaddr ^ s.data_base << 1 ^ want_debug);
	free(s.data);
	return 0;
}

/* The hash of everything that cfi_build() reads of a file. */
static int hash_input(const struct elf *elf, u64 *hash)
{
	int err;

	if (elf->machine == EM_ARM) /* reading .ARM.exidx is as fast as hashing it */
		return -ENOTSUP;
	*hash = hash_bytes(elf->segments, elf->nr_segments * sizeof(*elf->segments), elf->entry);
	err = hash_section(elf, false, hash);
	if (!err)
		err = hash_section(elf, true, hash);
	return err;
}

int cfi_load(struct cfi_table **out, struct elf *elf)
{
	struct cfi_cache_key key;
	auto_close int dir = -1;
	int err;

	if (IS_AGENT) /* small boards have no room for a cache, and few libraries */
		return cfi_build(out, elf);
	memset(&key, 0, sizeof(key));
	key.machine = elf->machine;
	key.word_size = elf->word_size;
	key.build_id_len = (u32)elf_build_id(elf, key.build_id, sizeof(key.build_id));
	if (key.build_id_len)
		dir = cfi_cache_open();
	if (dir < 0 || hash_input(elf, &key.input_hash))
		return cfi_build(out, elf);
	if (cfi_cache_read(dir, &key, out) == 0)
		return 0;
	err = cfi_build(out, elf);
	if (err)
		return err;
	err = cfi_cache_write(dir, &key, *out);
	if (err)
		debug("cache: call frame information not kept: %s", strerror(-err));
	cfi_cache_trim(dir, CFI_CACHE_MAX_BYTES);
	return 0;
}
