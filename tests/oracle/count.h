/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The page that count.so keeps in a shared file: what the oracle saw, readable at any moment. */
#pragma once

#include <stdint.h>

/*
 * Functions that are counted: C name in count.c, ELF symbol with SZ for size_t, name in reports.
 * Written anew, not taken from user/target/allocator.c: the oracle must not share its errors.
 */
#if __SIZEOF_SIZE_T__ == 8
#define SZ "m"
#else
#define SZ "j"
#endif

#define COUNT_C_FUNCTIONS(X)                                                                                 \
	X(malloc, "malloc", "malloc")                                                                        \
	X(calloc, "calloc", "calloc")                                                                        \
	X(realloc, "realloc", "realloc")                                                                     \
	X(reallocarray, "reallocarray", "reallocarray")                                                      \
	X(free, "free", "free")                                                                              \
	X(cfree, "cfree", "cfree")                                                                           \
	X(free_sized, "free_sized", "free_sized")                                                            \
	X(free_aligned_sized, "free_aligned_sized", "free_aligned_sized")                                    \
	X(posix_memalign, "posix_memalign", "posix_memalign")                                                \
	X(aligned_alloc, "aligned_alloc", "aligned_alloc")                                                   \
	X(memalign, "memalign", "memalign")                                                                  \
	X(valloc, "valloc", "valloc")                                                                        \
	X(pvalloc, "pvalloc", "pvalloc")

#define COUNT_NEW_FUNCTIONS(X)                                                                               \
	X(new_1, "_Znw" SZ, "operator new(size)")                                                            \
	X(new_2, "_Znw" SZ "RKSt9nothrow_t", "operator new(size, nothrow)")                                  \
	X(new_3, "_Znw" SZ "St11align_val_t", "operator new(size, align)")                                   \
	X(new_4, "_Znw" SZ "St11align_val_tRKSt9nothrow_t", "operator new(size, align, nothrow)")            \
	X(new_array_1, "_Zna" SZ, "operator new[](size)")                                                    \
	X(new_array_2, "_Zna" SZ "RKSt9nothrow_t", "operator new[](size, nothrow)")                          \
	X(new_array_3, "_Zna" SZ "St11align_val_t", "operator new[](size, align)")                           \
	X(new_array_4, "_Zna" SZ "St11align_val_tRKSt9nothrow_t", "operator new[](size, align, nothrow)")

#define COUNT_DELETE_FUNCTIONS(X)                                                                            \
	X(delete_1, "_ZdlPv", "operator delete(ptr)")                                                        \
	X(delete_2, "_ZdlPvRKSt9nothrow_t", "operator delete(ptr, nothrow)")                                 \
	X(delete_3, "_ZdlPvSt11align_val_t", "operator delete(ptr, align)")                                  \
	X(delete_4, "_ZdlPvSt11align_val_tRKSt9nothrow_t", "operator delete(ptr, align, nothrow)")           \
	X(delete_5, "_ZdlPv" SZ, "operator delete(ptr, size)")                                               \
	X(delete_6, "_ZdlPv" SZ "St11align_val_t", "operator delete(ptr, size, align)")                      \
	X(delete_array_1, "_ZdaPv", "operator delete[](ptr)")                                                \
	X(delete_array_2, "_ZdaPvRKSt9nothrow_t", "operator delete[](ptr, nothrow)")                         \
	X(delete_array_3, "_ZdaPvSt11align_val_t", "operator delete[](ptr, align)")                          \
	X(delete_array_4, "_ZdaPvSt11align_val_tRKSt9nothrow_t", "operator delete[](ptr, align, nothrow)")   \
	X(delete_array_5, "_ZdaPv" SZ, "operator delete[](ptr, size)")                                       \
	X(delete_array_6, "_ZdaPv" SZ "St11align_val_t", "operator delete[](ptr, size, align)")

#define COUNT_FUNCTIONS(X) COUNT_C_FUNCTIONS(X) COUNT_NEW_FUNCTIONS(X) COUNT_DELETE_FUNCTIONS(X)

#define COUNT_ENUM(id, symbol, name) FN_##id,
enum count_fn { COUNT_FUNCTIONS(COUNT_ENUM) NR_COUNT_FNS };
#undef COUNT_ENUM

#define COUNT_MAGIC 0x31746e756f637468ull /* "htcount1" */

/* Outermost calls only; free(NULL) is no call. Every field is changed by one atomic addition. */
struct count_page {
	uint64_t magic;
	uint64_t pid;
	uint64_t calls[NR_COUNT_FNS];  /* failed ones too */
	uint64_t failed[NR_COUNT_FNS]; /* NULL, an error, or an exception; not realloc(p, 0) */
	uint64_t bytes[NR_COUNT_FNS];  /* asked for, by calls that did not fail */
	uint64_t allocs, frees;	       /* blocks that came and went; realloc is one of each */
	uint64_t unknown_frees;	       /* of blocks that were never handed out */
	uint64_t live_blocks, live_bytes, peak_bytes;
	uint64_t untracked; /* blocks that did not fit in the table: live figures are then wrong */
};
