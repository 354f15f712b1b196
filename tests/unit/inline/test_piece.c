/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The piece of code, in this process: what calls by its stubs leave in the rings, and that they change nothing for the
 * program. End-to-end tests try more, but on one CPU; this test runs wherever unit tests do.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "inline/layout.h"
#include "inline/shape.h"
#include "user/inject/code.h"
#include "user/inject/piece_object.h"

#if defined(__x86_64__) || defined(__aarch64__)

enum { SUM = 1, GIVE, WRAP, RISKY, RISKY_RET }; /* numbers of functions, of probes, and of stubs */
enum { ROOM = 65536, FUNCTIONS = 0, SLOT = 128, ISLAND = 4096, NR_THREADS = 4, NR_PAIRS = 2000 };

/*
 * Functions that are copied to memory where they can be changed. sum: of eight arguments. give: the argument. wrap:
 * calls its second argument with eight times its first one.
 */
#if defined(__x86_64__)
__asm__(".text\n"
	"body_sum: push %rbp\n mov %rsp,%rbp\n lea (%rdi,%rsi),%rax\n add %rdx,%rax\n add %rcx,%rax\n"
	" add %r8,%rax\n add %r9,%rax\n add 16(%rbp),%rax\n add 24(%rbp),%rax\n pop %rbp\n ret\n"
	"body_give: mov %rdi,%rax\n add $0,%rax\n ret\n"
	"body_wrap: sub $24,%rsp\n mov %rsi,%rax\n mov %rdi,(%rsp)\n mov %rdi,8(%rsp)\n mov %rdi,%rsi\n"
	" mov %rdi,%rdx\n mov %rdi,%rcx\n mov %rdi,%r8\n mov %rdi,%r9\n call *%rax\n add $24,%rsp\n ret\n"
	"body_end:\n");
#else
__asm__(".text\n"
	"body_sum: stp x29,x30,[sp,-32]!\n mov x29,sp\n add x0,x0,x1\n add x0,x0,x2\n add x0,x0,x3\n"
	" add x0,x0,x4\n add x0,x0,x5\n add x0,x0,x6\n add x0,x0,x7\n ldp x29,x30,[sp],32\n ret\n"
	"body_give: add x0,x0,0\n ret\n"
	"body_wrap: str x30,[sp,-16]!\n mov x9,x1\n mov x1,x0\n mov x2,x0\n mov x3,x0\n mov x4,x0\n mov x5,x0\n"
	" mov x6,x0\n mov x7,x0\n blr x9\n ldr x30,[sp],16\n ret\n"
	"body_end:\n");
#endif
/* Hidden: they are reached without a table of addresses, which would have one entry for all of them. */
extern const u8 body_sum[] __attribute__((visibility("hidden")));
extern const u8 body_give[] __attribute__((visibility("hidden")));
extern const u8 body_wrap[] __attribute__((visibility("hidden")));
extern const u8 body_end[] __attribute__((visibility("hidden")));

typedef u64 sum_fn(u64, u64, u64, u64, u64, u64, u64, u64);

static u8 *region, *room;

static struct piece_shared *shared(void)
{
	return (void *)(region + PIECE_SHARED_OFFSET);
}

static struct piece_tables *tables(void)
{
	return (void *)(region + PIECE_TABLES_OFFSET);
}

static void *function(u32 number)
{
	return room + FUNCTIONS + number * SLOT;
}

static u64 call(u32 number, u64 a, u64 b)
{
	return ((sum_fn *)(uintptr_t)function(number))(a, b, 3, 4, 5, 6, 7, 8);
}

/* A malloc of @size, whose block is at size + 133. */
static u64 allocate(u64 size)
{
	return call(SUM, size, 100);
}

/* Lead the instruction @at bytes behind the start of function @number, of @len bytes, to the piece. */
static void lead(u32 number, u32 stub_number, enum code_kind kind, size_t at, size_t len, u32 told)
{
	const taddr_t start = (u64)(uintptr_t)function(number);
	const u64 stub = (u64)(uintptr_t)room + ISLAND + stub_number * CODE_STUB_BYTES;
	const struct code_site site = { .kind = kind,
					.addr = start + at,
					.start = start,
					.body = function(number),
					.len = len,
					.padding = SLOT - len,
					.indexes = &told,
					.nr_indexes = 1 };
	struct code_hook hook;
	const char *why = "";

	if (code_hook(&hook, &site, stub, (u64)(uintptr_t)room + ISLAND, &why))
		fail_msg("%u: %s", stub_number, why);
	memcpy((void *)(uintptr_t)stub, hook.stub, sizeof(hook.stub));
	memcpy((void *)(uintptr_t)hook.addr, hook.new, hook.len);
}

static void add_function(u32 number, const u8 *body, const u8 *end, const struct call_probe *call)
{
	struct piece_probe *p = &shared()->probes[number];

	memset(function(number), 0x90, SLOT);
	memcpy(function(number), body, (size_t)(end - body));
	*p = (struct piece_probe){ .call = *call,
				   .ip = (u64)(uintptr_t)function(number),
				   .shape = piece_shape_of(call) };
	p->call.fn = (u16)number;
	p->call.own_after = (u32)(end - body);
}

/* The last instruction of a function. */
static size_t at_ret(const u8 *body, const u8 *end)
{
	return (size_t)(end - body) - (code_native()->step == 1 ? 1 : 4);
}

static void add_functions(void)
{
	/* A malloc that can throw: its end is seen where it returns. */
	const struct call_probe risky = { .kind = ALLOC_MALLOC,
					  .flags = PROBE_RETURNS | PROBE_THROWS,
					  .size_arg = 1 };
	const size_t sum_bytes = (size_t)(body_give - body_sum);

	add_function(SUM, body_sum, body_give, &piece_shapes[SHAPE_MALLOC]);
	add_function(GIVE, body_give, body_wrap, &piece_shapes[SHAPE_FREE]);
	add_function(WRAP, body_wrap, body_end, &piece_shapes[SHAPE_NEW]);
	add_function(RISKY, body_sum, body_give, &risky);
	lead(SUM, SUM, CODE_ENTRY, 0, sum_bytes, SUM);
	lead(GIVE, GIVE, CODE_ENTRY, 0, (size_t)(body_wrap - body_give),
	     GIVE | PIECE_FREE << PIECE_KIND_SHIFT);
	lead(WRAP, WRAP, CODE_ENTRY, 0, (size_t)(body_end - body_wrap), WRAP);
	lead(RISKY, RISKY_RET, CODE_RET, at_ret(body_sum, body_give), sum_bytes,
	     RISKY | PIECE_RET << PIECE_KIND_SHIFT);
	lead(RISKY, RISKY, CODE_ENTRY, 0, sum_bytes, RISKY);
}

static int set_up(void **state)
{
	const struct piece_head *head;
	struct piece_control *control;
	struct code_ways ways;

	(void)state;
	region = mmap(NULL, PIECE_REGION_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	room = mmap(NULL, ROOM, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (region == MAP_FAILED || room == MAP_FAILED)
		return -1;
	memcpy(region, piece_object_start, piece_object_bytes());
	head = (const void *)region;
	ways = (struct code_ways){ (u64)(uintptr_t)region + head->enter,
				   (u64)(uintptr_t)region + head->enter_call };
	memcpy(room + ISLAND, &ways, sizeof(ways));
	shared()->is_sequence = 1;
	shared()->nr_places = PIECE_FIRST_PLACES;
	tables()->max_wait = ~0ULL;
	add_functions();
	__builtin___clear_cache((char *)region, (char *)region + PIECE_CODE_BYTES);
	__builtin___clear_cache((char *)room, (char *)room + ROOM);
	control = (void *)(region + PIECE_CONTROL_OFFSET);
	control->is_on = piece_is_on;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	munmap(region, PIECE_REGION_BYTES);
	munmap(room, ROOM);
	return 0;
}

/* ---- records ---- */

struct sums {
	u64 allocs, frees, failed, bytes, lost;
};

static void add_ring(struct sums *s, const struct piece_ring *r)
{
	u64 stamp = 0;

	assert_true(r->written <= PIECE_RING_RECORDS);
	for (u64 i = 0; i < r->written; i++) {
		const struct piece_record *rec = &r->records[i];

		assert_true(rec->stamp > stamp);
		stamp = rec->stamp;
		s->allocs += rec->kind == EVENT_ALLOC && rec->addr;
		s->failed += rec->kind == EVENT_ALLOC && !rec->addr;
		s->bytes += rec->kind == EVENT_ALLOC ? rec->size : 0;
		s->frees += rec->kind == EVENT_FREE;
	}
}

static struct sums all_rings(void)
{
	struct sums s = { .lost = shared()->lost_allocs + shared()->lost_frees + shared()->abandoned };

	for (u32 i = 0; i < shared()->nr_used; i++)
		add_ring(&s, &shared()->rings[i]);
	return s;
}

static const struct piece_record *record(u64 nr)
{
	assert_true(shared()->nr_used > 0);
	return &shared()->rings[0].records[nr];
}

static void check_record(u64 nr, u8 kind, u16 fn, u64 addr, u64 size)
{
	const struct piece_record *rec = record(nr);

	assert_int_equal(rec->kind, kind);
	assert_int_equal(rec->fn, fn);
	assert_true(rec->addr == addr);
	assert_true(rec->size == size);
}

static void test_calls(void **state)
{
	(void)state;
	assert_int_equal(allocate(1000), 1133);
	assert_int_equal(call(GIVE, 1133, 0), 1133);
	assert_int_equal(allocate(5), 138);
	check_record(0, EVENT_ALLOC, SUM, 1133, 1000);
	check_record(1, EVENT_FREE, GIVE, 1133, 0);
	check_record(2, EVENT_ALLOC, SUM, 138, 5);
	assert_int_equal(all_rings().allocs, 2);
}

/* An operator new and the malloc that it calls are one call. */
static void test_operator(void **state)
{
	(void)state;
	assert_int_equal(call(WRAP, 10, (u64)(uintptr_t)function(SUM)), 80);
	check_record(0, EVENT_ALLOC, WRAP, 80, 10);
	assert_int_equal(all_rings().allocs, 1);
	assert_int_equal(all_rings().lost, 0);
}

/* A function that keeps its return address. */
static void test_ret(void **state)
{
	(void)state;
	assert_int_equal(call(RISKY, 20, 100), 153);
	check_record(0, EVENT_ALLOC, RISKY, 153, 20);
	assert_int_equal(all_rings().allocs, 1);
}

static void *many_pairs(void *nothing)
{
	for (u64 i = 0; i < NR_PAIRS; i++)
		call(GIVE, allocate(i + 1), 0);
	return nothing;
}

/* Numbers of all threads are different, and those of each thread grow. */
static void test_threads(void **state)
{
	pthread_t threads[NR_THREADS];
	struct sums s;

	(void)state;
	for (u32 i = 0; i < NR_THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, many_pairs, NULL), 0);
	for (u32 i = 0; i < NR_THREADS; i++)
		pthread_join(threads[i], NULL);
	s = all_rings();
	assert_int_equal(s.allocs, NR_THREADS * NR_PAIRS);
	assert_int_equal(s.frees, NR_THREADS * NR_PAIRS);
	assert_int_equal(s.lost, 0);
	assert_true(sequence_last(&shared()->sequence) >= 2 * NR_THREADS * NR_PAIRS);
}

/* Two threads, of which the first one has the only place. Calls of the other one are lost, which changes nothing. */
static void test_no_place(void **state)
{
	pthread_t thread;

	(void)state;
	shared()->nr_places = 1;
	shared()->is_full = 1;
	allocate(1);
	assert_int_equal(pthread_create(&thread, NULL, many_pairs, NULL), 0);
	pthread_join(thread, NULL);
	assert_int_equal(all_rings().allocs, 1);
	assert_int_equal(shared()->lost_allocs, NR_PAIRS);
	assert_int_equal(shared()->lost_frees, NR_PAIRS);
	assert_int_equal(shared()->nr_used, 1);
}

/* All threads that there can be have places: one more does not wait. */
static void test_all_places(void **state)
{
	(void)state;
	shared()->nr_places = PIECE_MAX_THREADS;
	shared()->nr_used = PIECE_MAX_THREADS;
	assert_int_equal(allocate(1), 134);
	assert_int_equal(shared()->lost_allocs, 1);
	assert_int_equal(shared()->lost_frees, 0);
	assert_int_equal(shared()->is_dropping, 0);
}

/* Where others have the keys behind a thread's own, it gets no place, and does not search the whole table. */
static void test_crowded_keys(void **state)
{
	struct piece_key *keys = ((struct piece_private *)(region + PIECE_PRIVATE_OFFSET))->keys;
	u64 pointer = (u64)(uintptr_t)__builtin_thread_pointer();
	u32 slot = (u32)((pointer & ~7ULL) * PIECE_HASH >> PIECE_HASH_SHIFT) % PIECE_MAX_THREADS;

	(void)state;
	for (u32 i = 0; i < PIECE_MAX_THREADS; i++)
		keys[i].key = i == (slot + PIECE_MAX_THREADS / 2) % PIECE_MAX_THREADS ? 0 : 8 * (i + 1) + 1;
	assert_int_equal(allocate(1), 134);
	assert_int_equal(shared()->lost_allocs, 1);
	assert_int_equal(shared()->nr_used, 0);
}

/* Threads wait for places, which come one by one. */
static void test_late_places(void **state)
{
	pthread_t threads[NR_THREADS];
	struct sums s;

	(void)state;
	shared()->nr_places = 0;
	for (u32 i = 0; i < NR_THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, many_pairs, NULL), 0);
	for (u32 i = 0; i < NR_THREADS; i++) {
		__atomic_store_n(&shared()->nr_places, i + 1, __ATOMIC_RELEASE);
		while (__atomic_load_n(&shared()->nr_used, __ATOMIC_ACQUIRE) <= i)
			sched_yield();
	}
	for (u32 i = 0; i < NR_THREADS; i++)
		pthread_join(threads[i], NULL);
	s = all_rings();
	assert_int_equal(s.allocs + s.frees, 2 * NR_THREADS * NR_PAIRS);
	assert_int_equal(s.lost, 0);
}

static u64 nr_handled, nr_sent;

static void handle(int sig)
{
	(void)sig;
	call(GIVE, allocate(7), 0);
	nr_handled++;
}

static void *send_signals(void *to)
{
	for (; nr_sent < NR_PAIRS; nr_sent++)
		pthread_kill(*(const pthread_t *)to, SIGUSR1);
	return NULL;
}

/* Signals in the middle of the piece, whose handlers allocate. Those that do not fit into the ring are counted. */
static void test_signals(void **state)
{
	pthread_t self = pthread_self(), sender;
	u64 nr_calls = 0;
	struct sums s;

	(void)state;
	tables()->max_wait = 0;
	signal(SIGUSR1, handle);
	assert_int_equal(pthread_create(&sender, NULL, send_signals, &self), 0);
	for (; __atomic_load_n(&nr_sent, __ATOMIC_RELAXED) < NR_PAIRS; nr_calls++)
		assert_int_equal(call(GIVE, allocate(1), 0), 134);
	pthread_join(sender, NULL);
	assert_true(nr_handled > 0);
	s = all_rings();
	assert_int_equal(s.allocs + s.frees + s.lost, 2 * (nr_calls + nr_handled));
}

static jmp_buf back;

static u64 leave_by_jump(u64 a)
{
	(void)a;
	longjmp(back, 1);
}

/* An operator new that a jump leaves has failed; the calls behind it are as always. */
static void test_longjmp(void **state)
{
	(void)state;
	if (!setjmp(back))
		call(WRAP, 20, (u64)(uintptr_t)leave_by_jump);
	for (u64 i = 1; i < 100; i++)
		assert_int_equal(allocate(i), i + 133);
	assert_int_equal(all_rings().allocs, 99);
	assert_int_equal(all_rings().failed, 1);
}

/* Rings that are not read: calls are lost and counted, and the program goes on. */
static void test_full(void **state)
{
	struct sums s;

	(void)state;
	tables()->max_wait = 0;
	for (u64 i = 0; i < PIECE_RING_RECORDS + 10; i++)
		assert_int_equal(allocate(i), i + 133);
	assert_int_equal(shared()->nr_parts, PIECE_RING_RECORDS / PIECE_RING_PART);
	s = all_rings();
	assert_int_equal(s.allocs, PIECE_RING_RECORDS);
	assert_int_equal(s.lost, 10);
}

/* A program has written over the number of calls under way: its own calls take no longer for that. */
static void test_overwritten(void **state)
{
	struct piece_place *place = (void *)(region + PIECE_PLACES_OFFSET);
	const struct rlimit no_limit = { RLIM_INFINITY, RLIM_INFINITY };
	struct rlimit seconds = { clock() / CLOCKS_PER_SEC + 10, RLIM_INFINITY };

	(void)state;
	assert_int_equal(allocate(1), 134);
	assert_int_equal(setrlimit(RLIMIT_CPU, &seconds), 0);
	for (u64 i = 0; i < 100; i++) {
		place->thread.nr_pending = UINT32_MAX - (u32)i;
		assert_int_equal(allocate(i), i + 133);
	}
	assert_int_equal(setrlimit(RLIMIT_CPU, &no_limit), 0);
}

/* A program has written over what it shares: a call that finds its ring full waits no longer for that. */
static void test_overwritten_wait(void **state)
{
	const struct rlimit no_limit = { RLIM_INFINITY, RLIM_INFINITY };
	struct rlimit seconds = { clock() / CLOCKS_PER_SEC + 10, RLIM_INFINITY };

	(void)state;
	tables()->max_wait = 1000;
	tables()->nr_cpus = 2;
	assert_int_equal(allocate(1), 134);
	memset(shared(), 0xff, offsetof(struct piece_shared, probes));
	shared()->is_paused = shared()->is_dropping = shared()->depth = 0;
	shared()->sample_bytes = 0;
	shared()->nr_places = PIECE_FIRST_PLACES;
	assert_int_equal(setrlimit(RLIMIT_CPU, &seconds), 0);
	for (u64 i = 0; i < PIECE_RING_RECORDS + 10; i++)
		assert_int_equal(allocate(i), i + 133);
	assert_int_equal(shared()->is_dropping, 1);
	assert_int_equal(setrlimit(RLIMIT_CPU, &no_limit), 0);
}

/* A release with its stack, which is new, where the ring has room for a few records only: no record goes beyond it. */
static void test_full_by_stack(void **state)
{
	struct piece_ring *r = &shared()->rings[0];
	u64 nr_stacks = 0;

	(void)state;
	tables()->max_wait = 0;
	shared()->depth = 1;
	shared()->has_free_stacks = 1;
	allocate(1);
	for (u64 nr = 1; nr < 8; nr++) {
		shared()->generation++;
		shared()->is_dropping = 0;
		r->written = PIECE_RING_RECORDS - nr;
		call(GIVE, 1133, 0);
		assert_true(r->written <= PIECE_RING_RECORDS);
		nr_stacks += r->written > PIECE_RING_RECORDS - nr + 1;
	}
	assert_true(nr_stacks > 0);
}

/* Nothing reads the CPU's counter, which a program may forbid itself: neither stamps nor waits. (T5) */
static void test_no_counter(void **state)
{
	(void)state;
	tables()->max_wait = 1000;
	if (prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0))
		skip();
	for (u64 i = 0; i < PIECE_RING_RECORDS + 10; i++)
		allocate(i);
	shared()->nr_places = 0;
	many_pairs(NULL);
	assert_int_equal(prctl(PR_SET_TSC, PR_TSC_ENABLE, 0, 0, 0), 0);
	assert_int_equal(shared()->is_dropping, 1);
	assert_true(all_rings().lost > 0);
}

/* Without effect: a call under way still returns. */
static void test_off(void **state)
{
	struct piece_control *control = (void *)(region + PIECE_CONTROL_OFFSET);

	(void)state;
	allocate(1);
	control->is_on = 0;
	assert_int_equal(allocate(2), 135);
	assert_int_equal(all_rings().allocs, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_calls),	 TEST(test_operator),
		TEST(test_ret),		 TEST(test_threads),
		TEST(test_no_place),	 TEST(test_all_places),
		TEST(test_late_places),	 TEST(test_signals),
		TEST(test_longjmp),	 TEST(test_full),
		TEST(test_no_counter),	 TEST(test_off),
		TEST(test_crowded_keys), TEST(test_full_by_stack),
		TEST(test_overwritten),	 TEST(test_overwritten_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
	print_message("skipped: no piece for this CPU\n");
	return 0;
}

#endif
