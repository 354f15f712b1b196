/* SPDX-License-Identifier: GPL-2.0-or-later */
/* count.so, the oracle: preloaded, it counts each outermost allocator call, in the file HEAPTAP_COUNT.PID. */
#include "tests/oracle/count.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define TLS	  static __thread __attribute__((tls_model("initial-exec")))
#define EXPORT	  __attribute__((visibility("default"), used))
#define ADD(f, n) __atomic_fetch_add(&(f), (n), __ATOMIC_RELAXED)
#define SUB(f, n) __atomic_fetch_sub(&(f), (n), __ATOMIC_RELAXED)

/* Slots of live blocks, open addressing. From return of its alloc to entry of its free a block is in one slot. */
enum { TABLE_BITS = 22, TABLE_SIZE = 1 << TABLE_BITS, MAX_PROBE = 1 << 14 };
enum { SLOT_EMPTY = 0, SLOT_GONE = 1 };

struct slot {
	uintptr_t addr;
	size_t size;
};

enum state { STATE_NEW, STATE_STARTING, STATE_READY };

static struct count_page fallback_page;
static struct count_page *page = &fallback_page;
static struct slot *table;
static unsigned int longest_probe;
static int state;
static void *real[NR_COUNT_FNS];

/* dlsym() may allocate before we know whom to ask; those blocks are never given back. */
static char arena[1 << 16] __attribute__((aligned(16)));
static size_t arena_used;

/* The program's request that is under way in a thread. */
struct request {
	enum count_fn fn;
	size_t size, align; /* align: of an aligned operator new, else 1 */
};

TLS unsigned int depth;	    /* allocator calls in flight in this thread */
TLS struct request request; /* valid when depth > 0 */
TLS bool is_initialising;

static const char *const symbols[] = {
#define SYMBOL(id, symbol, name) symbol,
	COUNT_FUNCTIONS(SYMBOL)
#undef SYMBOL
};

/* ---- the shared page ---- */

/* Value of HEAPTAP_COUNT into @buf. libc's environ is not set yet when the first call comes early. */
static bool read_env(char *buf, size_t size)
{
	static const char name[] = "HEAPTAP_COUNT=";
	static char text[1 << 17];
	size_t len = 0;
	ssize_t n;
	int fd = open("/proc/self/environ", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	while (len < sizeof(text) - 1 && (n = read(fd, text + len, sizeof(text) - 1 - len)) > 0)
		len += n;
	close(fd);
	text[len] = '\0';
	for (char *p = text; p < text + len; p += strlen(p) + 1) {
		if (strncmp(p, name, sizeof(name) - 1) || strlen(p + sizeof(name) - 1) >= size)
			continue;
		strcpy(buf, p + sizeof(name) - 1);
		return true;
	}
	return false;
}

/* Decimal @n into @buf; snprintf() may allocate. */
static void put_number(char *buf, unsigned int n)
{
	char digits[16];
	int i = 0;

	do
		digits[i++] = '0' + n % 10;
	while (n /= 10);
	while (i)
		*buf++ = digits[--i];
	*buf = '\0';
}

/* Map PREFIX.PID, or PREFIX.PID.N after exec, at @at (NULL = anywhere). */
static struct count_page *map_page(void *at)
{
	static char prefix[2048], path[2100];
	void *p = MAP_FAILED;
	int fd = -1;

	if (!prefix[0] && !read_env(prefix, sizeof(prefix)))
		return NULL;
	for (unsigned int n = 0; fd < 0 && n < 100; n++) {
		strcpy(path, prefix);
		strcat(path, ".");
		put_number(path + strlen(path), getpid());
		if (n) {
			strcat(path, ".");
			put_number(path + strlen(path), n);
		}
		fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
		if (fd < 0 && errno != EEXIST)
			return NULL;
	}
	if (fd < 0)
		return NULL;
	if (!ftruncate(fd, sizeof(struct count_page)))
		p = mmap(at, sizeof(struct count_page), PROT_READ | PROT_WRITE,
			 MAP_SHARED | (at ? MAP_FIXED : 0), fd, 0);
	close(fd);
	return p == MAP_FAILED ? NULL : p;
}

/* As the parent's page is when it forks: the child sees it change. */
static struct count_page at_fork;

static void before_fork(void)
{
	at_fork = *page;
}

/* The child has a copy of the heap, and counters of its own. */
static void after_fork(void)
{
	struct count_page *p;

	if (page == &fallback_page)
		return;
	p = map_page(page);
	if (!p)
		return;
	p->live_blocks = at_fork.live_blocks;
	p->live_bytes = at_fork.live_bytes;
	p->peak_bytes = at_fork.live_bytes;
	p->pid = getpid();
	p->magic = COUNT_MAGIC;
}

static void *find_real(enum count_fn fn)
{
	void *f = dlsym(RTLD_NEXT, symbols[fn]);
	void *lib;

	if (f || fn < FN_new_1)
		return f;
	/* A library opened with RTLD_LOCAL brought libstdc++: it is not behind us in the global scope. */
	lib = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD);
	return lib ? dlsym(lib, symbols[fn]) : NULL;
}

static void *real_fn(enum count_fn fn)
{
	void *f = __atomic_load_n(&real[fn], __ATOMIC_ACQUIRE);

	if (f)
		return f;
	f = find_real(fn);
	if (!f) {
		static const char text[] = "count.so: no function behind this one\n";

		if (write(2, text, sizeof(text) - 1))
			abort();
	}
	__atomic_store_n(&real[fn], f, __ATOMIC_RELEASE);
	return f;
}

static void start(void)
{
	static const enum count_fn eager[] = { FN_malloc,	  FN_calloc,	    FN_realloc,	 FN_free,
					       FN_posix_memalign, FN_aligned_alloc, FN_memalign, FN_valloc };
	struct count_page *p;
	int expected = STATE_NEW;

	if (!__atomic_compare_exchange_n(&state, &expected, STATE_STARTING, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_ACQUIRE))
		return; /* no second thread exists before the first allocation of the first one */
	is_initialising = true;
	/* All of them now: a thread must not wait for the loader's lock in its first call. */
	for (size_t i = 0; i < sizeof(eager) / sizeof(eager[0]); i++)
		real_fn(eager[i]);
	table = mmap(NULL, TABLE_SIZE * sizeof(*table), PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (table == MAP_FAILED)
		abort();
	p = map_page(NULL);
	if (p) {
		p->pid = getpid();
		p->magic = COUNT_MAGIC;
		page = p;
	}
	is_initialising = false;
	__atomic_store_n(&state, STATE_READY, __ATOMIC_RELEASE);
}

static __attribute__((constructor)) void constructor(void)
{
	start();
	pthread_atfork(before_fork, NULL, after_fork);
}

/* ---- live blocks ---- */

static struct slot *slot_at(uintptr_t addr, unsigned int i)
{
	uint64_t hash = (addr >> 3) * 0x9e3779b97f4a7c15ull;

	return &table[((hash >> (64 - TABLE_BITS)) + i) & (TABLE_SIZE - 1)];
}

static void note_probe(unsigned int i)
{
	unsigned int old = __atomic_load_n(&longest_probe, __ATOMIC_RELAXED);

	while (i > old && !__atomic_compare_exchange_n(&longest_probe, &old, i, false, __ATOMIC_RELAXED,
						       __ATOMIC_RELAXED))
		;
}

static void live_add(void *block, size_t size)
{
	uintptr_t addr = (uintptr_t)block;
	uint64_t live, peak;

	ADD(page->allocs, 1);
	ADD(page->live_blocks, 1);
	live = ADD(page->live_bytes, size) + size;
	peak = __atomic_load_n(&page->peak_bytes, __ATOMIC_RELAXED);
	while (live > peak && !__atomic_compare_exchange_n(&page->peak_bytes, &peak, live, false,
							   __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	for (unsigned int i = 0; i < MAX_PROBE; i++) {
		struct slot *s = slot_at(addr, i);
		uintptr_t old = __atomic_load_n(&s->addr, __ATOMIC_RELAXED);

		if (old > SLOT_GONE || !__atomic_compare_exchange_n(&s->addr, &old, addr, false,
								    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		s->size = size;
		note_probe(i);
		return;
	}
	ADD(page->untracked, 1);
}

/* Take @block out; false if it was never handed out. */
static bool live_take(void *block, size_t *size)
{
	uintptr_t addr = (uintptr_t)block;
	unsigned int last = __atomic_load_n(&longest_probe, __ATOMIC_RELAXED);

	for (unsigned int i = 0; i <= last; i++) {
		struct slot *s = slot_at(addr, i);
		uintptr_t found = __atomic_load_n(&s->addr, __ATOMIC_ACQUIRE);

		if (found == SLOT_EMPTY)
			return false;
		if (found != addr)
			continue;
		*size = s->size;
		__atomic_store_n(&s->addr, SLOT_GONE, __ATOMIC_RELEASE);
		SUB(page->live_blocks, 1);
		SUB(page->live_bytes, *size);
		return true;
	}
	return false;
}

/* A failed realloc: the block stays what it was. */
static void live_put_back(void *block, size_t size)
{
	live_add(block, size);
	SUB(page->allocs, 1);
}

/* ---- one call ---- */

/* One call; lives in the wrapper's frame, ended by its cleanup, exceptions and pthread_cancel included. */
struct call {
	struct request request, outer; /* this one; what it interrupts */
	bool is_outer;		       /* made by the program, not by an allocator */
	bool is_done;		       /* returned; else an exception left it */
};

static bool is_new(enum count_fn fn)
{
	return fn >= FN_new_1 && fn <= FN_new_array_4;
}

/*
 * Is an allocation of @size part of the operator new under way? Those hand their size on, at most rounded
 * up. Anything else comes from a new_handler, or is the exception that is about to be thrown.
 */
static bool is_part_of_new(size_t size)
{
	size_t asked = request.size ? request.size : 1, align = request.align;

	return size == request.size || size == asked || size == ((asked + align - 1) & ~(align - 1));
}

static inline struct call call_begin(enum count_fn fn, size_t size, size_t align)
{
	struct call c = { .request = { fn, size, align }, .outer = request };

	if (__atomic_load_n(&state, __ATOMIC_ACQUIRE) != STATE_READY && !is_initialising)
		start();
	c.is_outer = depth == 0 || (is_new(request.fn) && !is_part_of_new(size));
	depth++;
	if (c.is_outer) {
		request = c.request;
		ADD(page->calls[fn], 1);
	}
	return c;
}

static inline void call_end(struct call *c)
{
	if (depth)
		depth--;
	if (!c->is_outer)
		return;
	request = c->outer;
	if (!c->is_done)
		ADD(page->failed[c->request.fn], 1);
}

#define CALL(id, size, align)                                                                                \
	struct call c __attribute__((cleanup(call_end))) = call_begin(FN_##id, size, align)

/* Settle an allocation. */
static inline void *call_result(struct call *c, void *block)
{
	c->is_done = true;
	if (!c->is_outer)
		return block;
	if (!block) {
		ADD(page->failed[c->request.fn], 1);
		return NULL;
	}
	ADD(page->bytes[c->request.fn], c->request.size);
	live_add(block, c->request.size);
	return block;
}

static bool is_arena(const void *p)
{
	return (const char *)p >= arena && (const char *)p < arena + sizeof(arena);
}

static void *arena_alloc(size_t size)
{
	size_t at = ADD(arena_used, (size + 15) & ~(size_t)15);

	return at + size <= sizeof(arena) ? arena + at : NULL;
}

/*
 * All releases. Inside operator new a release counts when it is of a block that the program has: then it is
 * the program's own, from its new_handler. (Others are of the exception that a nothrow form throws and catches.)
 */
static inline __attribute__((always_inline)) void
release(enum count_fn fn, void *block, void (*call)(void *block, size_t a, size_t b), size_t a, size_t b)
{
	struct call c __attribute__((cleanup(call_end))) = { { fn, 0, 1 }, request, false, true };
	bool was_live = false;
	size_t size;

	if (__atomic_load_n(&state, __ATOMIC_ACQUIRE) != STATE_READY && !is_initialising)
		start();
	if (block && (depth == 0 || is_new(request.fn)))
		was_live = live_take(block, &size);
	c.is_outer = depth == 0 || was_live;
	depth++;
	if (c.is_outer)
		request = c.request;
	if (block && c.is_outer) {
		ADD(page->calls[fn], 1);
		ADD(*(was_live ? &page->frees : &page->unknown_frees), 1);
	}
	if (!is_arena(block))
		call(block, a, b);
}

/* ---- what programs call ---- */

EXPORT void *malloc(size_t size)
{
	CALL(malloc, size, 1);
	void *(*f)(size_t);

	if (is_initialising)
		return arena_alloc(size);
	f = real_fn(FN_malloc);
	return call_result(&c, f(size));
}

EXPORT void *calloc(size_t n, size_t size)
{
	CALL(calloc, n * size, 1);
	void *(*f)(size_t, size_t);

	if (is_initialising)
		return arena_alloc(n * size);
	f = real_fn(FN_calloc);
	return call_result(&c, f(n, size));
}

/* realloc and reallocarray: the old block leaves the table first, as its address may be reused at once. */
static inline void *resize(struct call *c, void *old, size_t n, size_t size)
{
	bool was_live = false;
	size_t old_size = 0;
	bool is_array = c->request.fn == FN_reallocarray;
	void *(*call)(void *, size_t) = is_array ? NULL : real_fn(FN_realloc);
	void *(*call_array)(void *, size_t, size_t) = is_array ? real_fn(FN_reallocarray) : NULL;
	void *block;
	bool is_freed;

	if (c->is_outer && old)
		was_live = live_take(old, &old_size);
	block = is_array ? call_array(old, n, size) : call(old, size);
	is_freed = block || (old && (!n || !size));
	if (c->is_outer && old && is_freed)
		ADD(*(was_live ? &page->frees : &page->unknown_frees), 1);
	if (c->is_outer && was_live && !is_freed)
		live_put_back(old, old_size);
	if (!block && is_freed) {
		c->is_done = true;
		return NULL;
	}
	return call_result(c, block);
}

EXPORT void *realloc(void *old, size_t size)
{
	CALL(realloc, size, 1);

	if (is_initialising)
		return NULL;
	if (is_arena(old)) {
		void *(*f)(size_t) = real_fn(FN_malloc);
		void *block = f(size);

		if (block)
			memcpy(block, old,
			       size < (size_t)(arena + sizeof(arena) - (char *)old)
				       ? size
				       : (size_t)(arena + sizeof(arena) - (char *)old));
		return call_result(&c, block);
	}
	return resize(&c, old, 1, size);
}

EXPORT void *reallocarray(void *old, size_t n, size_t size)
{
	CALL(reallocarray, n * size, 1);

	return resize(&c, old, n, size);
}

static inline void call_free(void *block, size_t a, size_t b)
{
	void (*f)(void *) = real_fn(FN_free);

	(void)a;
	(void)b;
	f(block);
}

EXPORT void free(void *block)
{
	release(FN_free, block, call_free, 0, 0);
}

EXPORT void cfree(void *block);
void cfree(void *block)
{
	release(FN_cfree, block, call_free, 0, 0);
}

EXPORT void free_sized(void *block, size_t size);
void free_sized(void *block, size_t size)
{
	release(FN_free_sized, block, call_free, size, 0);
}

EXPORT void free_aligned_sized(void *block, size_t align, size_t size);
void free_aligned_sized(void *block, size_t align, size_t size)
{
	release(FN_free_aligned_sized, block, call_free, align, size);
}

EXPORT int posix_memalign(void **out, size_t align, size_t size)
{
	CALL(posix_memalign, size, 1);
	int (*f)(void **, size_t, size_t) = real_fn(FN_posix_memalign);
	int rc = f(out, align, size);

	call_result(&c, rc ? NULL : *out);
	return rc;
}

#define ALIGNED(id)                                                                                          \
	EXPORT void *id(size_t align, size_t size);                                                          \
	void *id(size_t align, size_t size)                                                                  \
	{                                                                                                    \
		CALL(id, size, 1);                                                                           \
		void *(*f)(size_t, size_t) = real_fn(FN_##id);                                               \
                                                                                                             \
		return call_result(&c, f(align, size));                                                      \
	}
ALIGNED(aligned_alloc)
ALIGNED(memalign)

#define PAGED(id)                                                                                            \
	EXPORT void *id(size_t size);                                                                        \
	void *id(size_t size)                                                                                \
	{                                                                                                    \
		CALL(id, size, 1);                                                                           \
		void *(*f)(size_t) = real_fn(FN_##id);                                                       \
                                                                                                             \
		return call_result(&c, f(size));                                                             \
	}
PAGED(valloc)
PAGED(pvalloc)

/* All forms of operator new take the size first and two more arguments at most; unused ones do no harm. */
#define OPERATOR_NEW(id, symbol, name)                                                                       \
	EXPORT void *id(size_t size, size_t a, void *b) __asm__(symbol);                                     \
	void *id(size_t size, size_t a, void *b)                                                             \
	{                                                                                                    \
		CALL(id, size, strstr(symbol, "align_val_t") ? a : 1);                                       \
		void *(*f)(size_t, size_t, void *) = real_fn(FN_##id);                                       \
                                                                                                             \
		return call_result(&c, f(size, a, b));                                                       \
	}
COUNT_NEW_FUNCTIONS(OPERATOR_NEW)

#define OPERATOR_DELETE(id, symbol, name)                                                                    \
	static inline void call_##id(void *block, size_t a, size_t b)                                        \
	{                                                                                                    \
		void (*f)(void *, size_t, size_t) = real_fn(FN_##id);                                        \
                                                                                                             \
		f(block, a, b);                                                                              \
	}                                                                                                    \
	EXPORT void id(void *block, size_t a, size_t b) __asm__(symbol);                                     \
	void id(void *block, size_t a, size_t b)                                                             \
	{                                                                                                    \
		release(FN_##id, block, call_##id, a, b);                                                    \
	}
COUNT_DELETE_FUNCTIONS(OPERATOR_DELETE)

/* A jump ends the calls that it leaves; cleanups do not run. (Jumps that stay inside one call are not known here.) */
#define JUMP(id, symbol)                                                                                     \
	EXPORT void id(void *env, int value) __asm__(symbol) __attribute__((noreturn));                      \
	void id(void *env, int value)                                                                        \
	{                                                                                                    \
		void (*f)(void *, int) = dlsym(RTLD_NEXT, symbol);                                           \
                                                                                                             \
		depth = 0;                                                                                   \
		f(env, value);                                                                               \
		__builtin_unreachable();                                                                     \
	}
JUMP(jump_1, "longjmp")
JUMP(jump_2, "_longjmp")
JUMP(jump_3, "siglongjmp")
JUMP(jump_4, "__longjmp_chk")
