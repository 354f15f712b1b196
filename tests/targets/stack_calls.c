/* SPDX-License-Identifier: GPL-2.0-or-later */
/* stack_calls [own]: allocates below all sorts of frames and tells its call chains. own: none through libc. */
#include <alloca.h>
#include <setjmp.h>
#include <signal.h>
#include <ucontext.h>

#include "tests/targets/stack_truth.h"

/* noipa is gcc's alone. */
#define CALL __attribute__((noinline, used))

enum { NR_THREADS = 4, NR_TURNS = 250, SIGNAL_STACK = 1 << 16 };

static volatile char sink;

CALL void t_allocates(size_t bytes)
{
	ENTER();
	ALLOCATE(bytes);
	LEAVE();
}

CALL static void t_plain(size_t bytes)
{
	ENTER();
	t_allocates(bytes);
	t_allocates(bytes + 1);
	LEAVE();
}

CALL static void t_alloca(size_t bytes)
{
	char *room;

	ENTER();
	for (int i = 0; i < 5; i++) {
		room = alloca(bytes + i * 40 + 1);
		room[0] = i;
		keep(room);
		t_plain(bytes);
	}
	LEAVE();
}

CALL static void t_array(int n)
{
	volatile char array[n * 100 + 1];

	ENTER();
	array[n] = n;
	t_plain(n + array[n]);
	LEAVE();
}

CALL static void t_large(size_t bytes)
{
	volatile char large[100000];

	ENTER();
	large[bytes] = 1;
	t_array(large[bytes]);
	t_alloca(bytes);
	sink = large[bytes];
	LEAVE();
}

CALL static long t_arguments(long a, long b, long c, long d, long e, long f, long g, long h, long i)
{
	ENTER();
	t_plain(a + i);
	sink = h;
	LEAVE();
	return a + b + c + d + e + f + g + h + i;
}

CALL static void t_aligned(size_t bytes)
{
	_Alignas(64) volatile char wide[128];

	ENTER();
	wide[bytes & 127] = 1;
	t_array(3);
	t_alloca(bytes);
	sink = wide[bytes & 127];
	LEAVE();
}

CALL static void t_recurses(int n)
{
	ENTER();
	if (n > 1)
		t_recurses(n - 1);
	if (n % 10 == 1)
		t_allocates(n);
	LEAVE();
}

/* The caller left by a jump, so that its frame is gone. */
CALL void t_tailed(size_t bytes)
{
	ENTER();
	t_allocates(bytes);
	LEAVE();
}

#ifdef __aarch64__
#define JUMP "b "
#else
#define JUMP "jmp "
#endif

void t_jumps_on(size_t bytes);
__asm__(".text\n"
	".type t_jumps_on, %function\n"
	"t_jumps_on:\n"
	".cfi_startproc\n" JUMP "t_tailed\n"
	".cfi_endproc\n"
	".size t_jumps_on, . - t_jumps_on\n");

CALL static void t_tail(size_t bytes)
{
	ENTER();
	t_jumps_on(bytes);
	LEAVE();
}

static sigjmp_buf back;

CALL static void t_long_jumps(int n)
{
	ENTER();
	ALLOCATE(n);
	if (n == 0)
		siglongjmp(back, 1);
	t_long_jumps(n - 1);
	LEAVE();
}

CALL static void t_set_jumps(int n)
{
	volatile unsigned nr;

	ENTER();
	nr = shadow->nr;
	if (!sigsetjmp(back, 0))
		t_long_jumps(n);
	shadow->nr = nr;
	ALLOCATE(n);
	LEAVE();
}

/* ---- signals: an instruction that traps, so that the C library has no part in it ---- */

CALL static void t_traps(size_t bytes)
{
	ENTER();
	sink = bytes;
#ifdef __aarch64__
	__asm__ volatile("udf #0");
#else
	__asm__ volatile("ud2");
#endif
	t_allocates(bytes);
	LEAVE();
}

/* The handler returns behind the trap. */
static void skip_trap(ucontext_t *context)
{
#ifdef __x86_64__
	context->uc_mcontext.gregs[REG_RIP] += 2;
#elif defined(__i386__)
	context->uc_mcontext.gregs[REG_EIP] += 2;
#else
	context->uc_mcontext.pc += 4;
#endif
}

CALL static void t_handles(int sig, siginfo_t *info, void *context)
{
	static int nr_nested;

	(void)sig;
	(void)info;
	shadow_push("*");
	ENTER();
	skip_trap(context);
	t_allocates(7);
	if (nr_nested++ % 2 == 0)
		t_traps(8);
	LEAVE();
	shadow_pop();
}

CALL static void t_signals(void)
{
	static char room[SIGNAL_STACK];
	struct sigaction action = { .sa_sigaction = t_handles, .sa_flags = SA_SIGINFO | SA_NODEFER };
	stack_t stack = { .ss_sp = room, .ss_size = sizeof(room) };

	ENTER();
	sigaction(SIGILL, &action, NULL);
	t_traps(1);
	sigaltstack(&stack, NULL);
	action.sa_flags |= SA_ONSTACK;
	sigaction(SIGILL, &action, NULL);
	for (int i = 0; i < 3; i++)
		t_traps(2);
	action.sa_flags = SA_SIGINFO;
	action.sa_handler = SIG_DFL;
	sigaction(SIGILL, &action, NULL);
	LEAVE();
}

/* ---- threads: two paths that take turns, of different frame sizes ---- */

CALL static void t_left(int i)
{
	ENTER();
	t_array(i % 4);
	LEAVE();
}

CALL static void t_right(int i)
{
	ENTER();
	t_alloca(i % 7 * 16);
	LEAVE();
}

CALL static void *t_thread(void *arg)
{
	struct shadow *own = arg;

	shadow = own;
	ENTER();
	for (int i = 0; i < NR_TURNS; i++) {
		t_left(i);
		t_right(i);
	}
	LEAVE();
	return NULL;
}

/* Not t_: what pthread_create() allocates is not told. */
static void threads(void)
{
	static struct shadow shadows[NR_THREADS];
	pthread_t ids[NR_THREADS];

	for (int i = 0; i < NR_THREADS; i++) {
		shadows[i].outside = OUTSIDE_THREAD;
		pthread_create(&ids[i], NULL, t_thread, &shadows[i]);
	}
	for (int i = 0; i < NR_THREADS; i++)
		pthread_join(ids[i], NULL);
}

/* ---- through the C library ---- */

CALL static int t_compares(const void *a, const void *b)
{
	shadow_push("*");
	ENTER();
	t_allocates(1);
	LEAVE();
	shadow_pop();
	return *(const int *)a - *(const int *)b;
}

CALL static void t_sorts(void)
{
	int numbers[] = { 3, 1, 4, 1, 5, 9, 2, 6 };

	ENTER();
	qsort(numbers, sizeof(numbers) / sizeof(*numbers), sizeof(*numbers), t_compares);
	LEAVE();
}

CALL static void t_duplicates(void)
{
	char *copy;

	ENTER();
	shadow_push("*");
	note(4);
	copy = strdup("abc");
	keep(copy);
	free(copy);
	shadow_pop();
	LEAVE();
}

#ifdef __GLIBC__
static ucontext_t main_context, contexts[2];
static struct shadow context_shadows[2];

CALL static void t_yields(int i, int n)
{
	ENTER();
	t_allocates(n);
	if (n > 1)
		t_yields(i, n - 1);
	shadow = &context_shadows[!i];
	swapcontext(&contexts[i], &contexts[!i]);
	t_allocates(n);
	LEAVE();
}

CALL static void t_coroutine(int i)
{
	shadow = &context_shadows[i];
	ENTER();
	for (int n = 1; n < 6; n++)
		t_yields(i, n);
	shadow = &main_shadow;
	setcontext(&main_context);
}

static void coroutines(void)
{
	static char stacks[2][1 << 16];
	volatile int is_back = 0;

	getcontext(&main_context);
	if (is_back)
		return;
	is_back = 1;
	for (int i = 0; i < 2; i++) {
		getcontext(&contexts[i]);
		contexts[i].uc_stack.ss_sp = stacks[i];
		contexts[i].uc_stack.ss_size = sizeof(stacks[i]);
		contexts[i].uc_link = NULL;
		context_shadows[i].outside = 1;
		makecontext(&contexts[i], (void (*)(void))t_coroutine, 1, i);
	}
	setcontext(&contexts[0]);
}
#else
static void coroutines(void)
{
}
#endif

__attribute__((constructor)) CALL static void t_constructor(void)
{
	chains_begin();
	main_shadow.end = getenv("TRUTH_CONSTRUCTOR_END");
	ENTER();
	t_allocates(11);
	LEAVE();
	main_shadow.end = NULL;
}

/* The last one: main has returned. */
static void t_at_exit(void)
{
	main_shadow.nr = 0;
	ENTER();
	t_allocates(12);
	LEAVE();
	chains_print();
}

int main(int argc, char **argv)
{
	_Alignas(64) volatile char wide[64];

	(void)argv;
	ENTER();
	wide[argc] = 1;
	t_plain(10);
	t_alloca(20);
	t_large(30);
	t_arguments(1, 2, 3, 4, 5, 6, 7, 8, 9);
	t_aligned(40);
	t_recurses(50);
	t_recurses(200);
	t_tail(50);
	t_set_jumps(5);
	t_signals();
	threads();
	if (argc < 2) {
		t_sorts();
		t_duplicates();
		coroutines();
	}
	t_aligned(wide[argc]);
	LEAVE();
	atexit(t_at_exit);
	return 0;
}
