/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A thread that carries out system calls goes on as before, also if its tracer dies in the middle of one. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "arch/thread_call.h"
#include "user/lib/maps.h"
#include "user/lib/proc.h"
#include "user/lib/types.h"
#include "tests/unit/skip.h"

#if defined(__x86_64__) || defined(__aarch64__)

enum { WAIT_MS = 20000, STACK_BYTES = 65536, ROUNDS = 60 };
/* Numbers of registers that are looked at, and a mode of floating point that is not the usual one. */
#if defined(__x86_64__)
enum { REGS = 8, VECTORS = 16, MODE = 0x3f80 /* mxcsr: down */ };
#else
enum { REGS = 29, VECTORS = 32, MODE = 0x800000 /* fpcr: down */, FLAGS = 0x6 };
#endif

/* The moments at which the tracer dies. LIVES: it ends the call, and detaches. */
enum moment { AT_BEGIN, BEHIND_CALL, BEHIND_COPY, LIVES, NR_MOMENTS, AGAIN_AND_AGAIN };

static struct shared {
	volatile int is_ready, may_go; /* spin() knows their places, and those of what follows */
	volatile int nr_signals, nr_calls;
	u64 regs[REGS];
	u8 vectors[VECTORS][16];
	u32 mode;
	u8 wide[32]; /* a register of AVX: the kernel may restore its lower half only */
} * shared;

static u8 pattern[VECTORS][16];
static u64 numbers[REGS];

static void nap(void)
{
	usleep(1000);
}

static void count(int sig)
{
	(void)sig;
	shared->nr_signals++;
}

#if defined(__x86_64__)
/* Fill registers, wait for may_go without a call, and keep what the registers have then. */
static void spin(void)
{
	const u32 down = MODE, has_avx = __builtin_cpu_supports("avx") != 0;

	__asm__ volatile("ldmxcsr %3\n"
			 "movdqu 0(%0), %%xmm0\n movdqu 16(%0), %%xmm1\n movdqu 32(%0), %%xmm2\n"
			 "movdqu 112(%0), %%xmm7\n movdqu 240(%0), %%xmm15\n"
			 "mov 0(%1), %%rax\n mov 8(%1), %%rbx\n mov 16(%1), %%rcx\n mov 24(%1), %%r8\n"
			 "mov 32(%1), %%r9\n mov 40(%1), %%r10\n mov 48(%1), %%r11\n mov 56(%1), %%r12\n"
			 "test %4, %4\n jz 2f\n vmovdqu 0(%0), %%ymm3\n"
			 "2: movl $1, 0(%2)\n"
			 "1: cmpl $0, 4(%2)\n je 1b\n"
			 "mov %%rax, 16(%2)\n mov %%rbx, 24(%2)\n mov %%rcx, 32(%2)\n mov %%r8, 40(%2)\n"
			 "mov %%r9, 48(%2)\n mov %%r10, 56(%2)\n mov %%r11, 64(%2)\n mov %%r12, 72(%2)\n"
			 "movdqu %%xmm0, 80(%2)\n movdqu %%xmm1, 96(%2)\n movdqu %%xmm2, 112(%2)\n"
			 "movdqu %%xmm7, 192(%2)\n movdqu %%xmm15, 320(%2)\n stmxcsr 336(%2)\n"
			 "test %4, %4\n jz 3f\n vmovdqu %%ymm3, 340(%2)\n"
			 "3:\n"
			 :
			 : "r"(pattern), "D"(numbers), "S"(shared), "m"(down), "d"(has_avx)
			 : "rax", "rbx", "rcx", "r8", "r9", "r10", "r11", "r12", "xmm0", "xmm1", "xmm2",
			   "xmm3", "xmm7", "xmm15", "memory", "cc");
}

static bool has_wide(void)
{
	return __builtin_cpu_supports("avx");
}
#else
/* As on x86, with all registers but x29 and x30, and the flags. */
void spin_all(const u64 *words, const void *vectors, struct shared *s, u32 mode, u64 flags, u64 *flags_now);
__asm__(".text\n"
	".balign 16\n"
	"spin_all:\n"
	"stp x29, x30, [sp, #-176]!\n stp x19, x20, [sp, #16]\n stp x21, x22, [sp, #32]\n"
	"stp x23, x24, [sp, #48]\n stp x25, x26, [sp, #64]\n stp x27, x28, [sp, #80]\n"
	"stp d8, d9, [sp, #96]\n stp d10, d11, [sp, #112]\n stp d12, d13, [sp, #128]\n"
	"stp d14, d15, [sp, #144]\n str x5, [sp, #160]\n"
	"msr nzcv, x4\n msr fpcr, x3\n mov x29, x2\n mov x30, x0\n"
	".irp n, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30\n"
	"ldr q\\n, [x1, #\\n * 16]\n .endr\n"
	".irp n, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31\n"
	"ldr q\\n, [x1, #\\n * 16]\n .endr\n"
	".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25\n"
	"ldr x\\n, [x30, #\\n * 8]\n .endr\n"
	"ldr x26, [x30, #208]\n ldr x27, [x30, #216]\n ldr x28, [x30, #224]\n"
	"mov w30, #1\n str w30, [x29]\n"
	"1: ldr w30, [x29, #4]\n cbz w30, 1b\n"
	".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25\n"
	"str x\\n, [x29, #16 + \\n * 8]\n .endr\n"
	"str x26, [x29, #224]\n str x27, [x29, #232]\n str x28, [x29, #240]\n"
	"add x30, x29, #248\n"
	".irp n, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30\n"
	"str q\\n, [x30, #\\n * 16]\n .endr\n"
	".irp n, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31\n"
	"str q\\n, [x30, #\\n * 16]\n .endr\n"
	"mrs x0, fpcr\n str w0, [x29, #760]\n"
	"ldr x1, [sp, #160]\n mrs x0, nzcv\n str x0, [x1]\n"
	"ldp d8, d9, [sp, #96]\n ldp d10, d11, [sp, #112]\n ldp d12, d13, [sp, #128]\n"
	"ldp d14, d15, [sp, #144]\n"
	"ldp x19, x20, [sp, #16]\n ldp x21, x22, [sp, #32]\n ldp x23, x24, [sp, #48]\n"
	"ldp x25, x26, [sp, #64]\n ldp x27, x28, [sp, #80]\n ldp x29, x30, [sp], #176\n"
	"ret\n");

static void spin(void)
{
	const u64 flags = (u64)FLAGS << 28;
	u64 now;

	_Static_assert(offsetof(struct shared, regs) == 16 && offsetof(struct shared, vectors) == 248 &&
			       offsetof(struct shared, mode) == 760,
		       "spin_all() knows these");
	spin_all(numbers, pattern, shared, MODE, flags, &now);
	if (now != flags)
		_exit(10);
}

static bool has_wide(void)
{
	return false;
}
#endif

static void spinning_child(void)
{
	const bool has_all = VECTORS == 32;

	spin();
	for (size_t i = 0; i < VECTORS; i++)
		if ((has_all || i < 3 || i == 7 || i == 15) &&
		    memcmp(shared->vectors[i], pattern[i], sizeof(pattern[i])))
			_exit(4);
	if (memcmp(shared->regs, numbers, sizeof(numbers)))
		_exit(5);
	if (has_wide() && memcmp(shared->wide, pattern, sizeof(shared->wide)))
		_exit(7);
	_exit(shared->mode == MODE ? 3 : 6);
}

/* A read that waits is restarted. */
static void reading_child(void)
{
	int ends[2];
	char byte = 0;

	if (pipe(ends))
		_exit(9);
	if (!fork()) {
		while (!shared->may_go)
			nap();
		_exit(write(ends[1], "x", 1) != 1);
	}
	shared->is_ready = 1;
	if (read(ends[0], &byte, 1) != 1 || byte != 'x')
		_exit(4);
	_exit(3);
}

/* The mask and its signal stack stay, and it gets signals. */
static void masked_child(void)
{
	static char stack[STACK_BYTES];
	const stack_t own = { .ss_sp = stack, .ss_size = sizeof(stack) };
	sigset_t mask, now;
	stack_t found;

	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR2);
	if (sigprocmask(SIG_SETMASK, &mask, NULL) || sigaltstack(&own, NULL) ||
	    signal(SIGUSR1, count) == SIG_ERR)
		_exit(9);
	shared->is_ready = 1;
	while (!shared->may_go)
		;
	if (sigprocmask(SIG_SETMASK, NULL, &now) || sigaltstack(NULL, &found))
		_exit(9);
	if (memcmp(&mask, &now, sizeof(u64)) || found.ss_sp != stack || found.ss_size != sizeof(stack))
		_exit(4);
	raise(SIGUSR1);
	_exit(shared->nr_signals == 1 ? 3 : 5);
}

#if defined(__aarch64__)
/* A system call with all registers that it may have, and x7, which stays. */
static s64 call_with(u64 number, u64 a, u64 b, u64 mark, u64 *mark_now, u64 *number_now)
{
	register u64 x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = 8;
	register u64 x7 __asm__("x7") = mark, x8 __asm__("x8") = number;

	__asm__ volatile("svc #0" : "+r"(x0), "+r"(x1), "+r"(x2), "+r"(x7), "+r"(x8) : : "memory");
	*mark_now = x7;
	*number_now = x8;
	return (s64)x0;
}
#else
static s64 call_with(u64 number, u64 a, u64 b, u64 mark, u64 *mark_now, u64 *number_now)
{
	*mark_now = mark;
	*number_now = number;
	return syscall((long)number, a, b, 8UL);
}
#endif

/* Each call is made once, and its registers stay. */
static void calling_child(void)
{
	const u64 mark = 0x7777777777777777, one = 1;
	int fd = eventfd(0, EFD_CLOEXEC);
	u64 nr = 0, found = 0;

	shared->is_ready = 1;
	while (!shared->may_go || !nr) {
		u64 now, number;

		if (call_with(SYS_write, (u64)fd, (u64)(uintptr_t)&one, mark, &now, &number) != 8 ||
		    number != SYS_write)
			_exit(4);
		if (now != mark)
			_exit(5);
		nr++;
	}
	_exit(read(fd, &found, sizeof(found)) == 8 && found == nr ? 3 : 6);
}

#if defined(__aarch64__)
/* A sleep goes on where it was, by a call of its own, until a signal comes or its tracer has died. */
static void sleeping_child(void)
{
	struct timespec hour = { .tv_sec = 3600 }, left = { 0 };
	const pid_t self = getpid();
	u64 mark, number;

	if (signal(SIGUSR1, count) == SIG_ERR)
		_exit(9);
	if (!fork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (!shared->may_go)
			nap();
		while (!kill(self, SIGUSR1))
			nap();
		_exit(0);
	}
	shared->is_ready = 1;
	if (call_with(SYS_nanosleep, (u64)(uintptr_t)&hour, (u64)(uintptr_t)&left, 1, &mark, &number) !=
	    -EINTR)
		_exit(4);
	if (number != SYS_restart_syscall)
		_exit(5);
	_exit(left.tv_sec < hour.tv_sec ? 3 : 6);
}
#endif

struct found {
	struct inject_way_back back;
	pid_t pid;
	taddr_t sp_low;
	u64 sp;
};

/* The tracer is killed by SIGKILL, as heaptap may be. */
static void die(void)
{
	kill(getpid(), SIGKILL);
}

static int find_map(void *ctx, const struct map_line *line)
{
	struct found *f = ctx;

	if (!strcmp(line->path, "[stack]"))
		f->sp_low = line->start;
	if (line->is_executable && (line->inode || !strcmp(line->path, "[vdso]")) &&
	    (!f->back.insn || !f->back.restorer))
		return thread_call_find_way_back(&f->back, f->pid, line->start, line->end) == -ENOMEM;
	return 0;
}

static struct found find_all(pid_t pid)
{
	struct found f = { .pid = pid };
	char path[40], text[1024];
	struct map_line line;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	maps = fopen(path, "re");
	while (maps && fgets(text, sizeof(text), maps)) {
		text[strcspn(text, "\n")] = '\0';
		if (!maps_parse_line(text, strlen(text), &line) && find_map(&f, &line))
			_exit(1);
	}
	if (maps)
		fclose(maps);
	return f;
}

/* From where a thread makes calls for us. FREE: as ANYWHERE, of a thread that nobody holds otherwise. */
enum hold { FREE, ANYWHERE, AT_ENTRY, AT_EXIT };

static void hold(pid_t pid, enum hold where)
{
	const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE;
	int status;

	if (ptrace(PTRACE_SEIZE, pid, 0, options) || ptrace(PTRACE_INTERRUPT, pid, 0, 0) ||
	    waitpid(pid, &status, __WALL) != pid || status >> 16 != PTRACE_EVENT_STOP)
		_exit(2);
	for (enum hold at = ANYWHERE; at < where; at++)
		if (ptrace(PTRACE_SYSCALL, pid, 0, 0) || waitpid(pid, &status, __WALL) != pid ||
		    status >> 8 != (SIGTRAP | 0x80))
			_exit(10);
}

/* A copy of the process, as a snapshot makes it. */
static pid_t copy(struct thread_call *c)
{
	struct thread_request r = { .number = SYS_clone, .args = { CLONE_FILES | CLONE_FS, 16 } };

	if (thread_call_do(c, &r) || r.result <= 0 || !r.child)
		_exit(4);
	return r.child;
}

static void reap(struct thread_call *c, pid_t child)
{
	struct thread_request r = { .number = SYS_wait4, .args = { (u64)child, 0, __WALL } };

	kill(child, SIGKILL);
	waitpid(child, NULL, __WALL);
	if (thread_call_do(c, &r) || r.result != child)
		_exit(5);
}

/* Runs in a process of its own. Each error has a status of its own. */
static void trace(pid_t pid, enum moment moment, enum hold where)
{
	const struct found f = find_all(pid);
	struct thread_request ask = { .number = SYS_getppid };
	struct thread_call c;

	if (!f.back.insn || !f.back.restorer)
		_exit(77);
	do {
		pid_t child;
		int err;

		hold(pid, where);
		err = where == FREE ? thread_call_begin(&c, pid, f.back.insn, &f.back)
				    : thread_call_begin_safe(&c, pid, &f.back, f.sp_low);
		if (err || !c.frame)
			_exit(!err || err == -ENOTSUP ? 77 : 3);
		if (moment == AT_BEGIN)
			die();
		if (thread_call_do(&c, &ask) || ask.result != getppid())
			_exit(6);
		if (moment == BEHIND_CALL)
			die();
		child = copy(&c);
		if (moment == BEHIND_COPY)
			die();
		reap(&c, child);
		if (thread_call_end(&c) || ptrace(PTRACE_DETACH, pid, 0, 0))
			_exit(7);
		shared->nr_calls++;
	} while (moment == AGAIN_AND_AGAIN);
	_exit(0);
}

/* Does the kernel wait for something on behalf of @pid? */
static bool has_stopped_running(pid_t pid)
{
	struct proc_stat stat;

	return !proc_read_stat(&stat, pid) && stat.state == 'S';
}

static pid_t start(void (*work)(void), bool is_waiting)
{
	pid_t pid;

	memset(shared, 0, sizeof(*shared));
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		work();
		_exit(8);
	}
	while (!shared->is_ready || (is_waiting && !has_stopped_running(pid)))
		nap();
	return pid;
}

static pid_t start_tracer(pid_t pid, enum moment moment, enum hold where)
{
	pid_t tracer = fork();

	assert_true(tracer >= 0);
	if (tracer == 0)
		trace(pid, moment, where);
	return tracer;
}

/* The tracer has ended, or this machine has no safe way. False: skip. */
static bool is_done(pid_t tracer)
{
	int status;

	assert_int_equal(waitpid(tracer, &status, 0), tracer);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		return false;
	if (WIFEXITED(status))
		assert_int_equal(WEXITSTATUS(status), 0);
	else
		assert_int_equal(WTERMSIG(status), SIGKILL);
	return true;
}

static void assert_unharmed(pid_t pid)
{
	int status;

	shared->may_go = 1;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 3);
}

static const struct work {
	void (*work)(void);
	enum hold where;
	bool is_waiting; /* in a system call */
} works[] = {
	{ spinning_child, ANYWHERE },	    { reading_child, ANYWHERE, true }, { masked_child, ANYWHERE },
	{ spinning_child, FREE },	    { reading_child, FREE, true },     { masked_child, FREE },
	{ calling_child, ANYWHERE },	    { calling_child, AT_ENTRY },       { calling_child, AT_EXIT },
#if defined(__aarch64__)
	{ sleeping_child, ANYWHERE, true },
#endif
};

/* The program goes on with its registers, its mask and its system call, at whatever moment the tracer dies. */
static void goes_on(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(works); i++) {
		for (enum moment moment = AT_BEGIN; moment < NR_MOMENTS; moment++) {
			pid_t pid = start(works[i].work, works[i].is_waiting);
			bool is_safe = is_done(start_tracer(pid, moment, works[i].where));

			print_message("# work %zu, moment %d\n", i, (int)moment);
			assert_unharmed(pid);
			if (!is_safe)
				skip_because("this CPU has no safe way for this call");
		}
	}
}

/* Also in the middle of a call: the tracer is killed at any moment. */
static void tracer_killed(void **state)
{
	int nr_calls = 0;
	siginfo_t si = { .si_pid = 0 };

	(void)state;
	srand(1);
	for (int i = 0; i < ROUNDS; i++) {
		pid_t pid = start(i % 2 ? spinning_child : reading_child, !(i % 2));
		pid_t tracer = start_tracer(pid, AGAIN_AND_AGAIN, i % 3 ? FREE : ANYWHERE);

		/* Where a CPU is emulated, the first call takes long. */
		while (i % 4 > 1 && !shared->nr_calls &&
		       !waitid(P_PID, (id_t)tracer, &si, WEXITED | WNOHANG | WNOWAIT) && !si.si_pid)
			nap();
		usleep((useconds_t)(rand() % 20000));
		kill(tracer, SIGKILL);
		if (!is_done(tracer)) {
			assert_unharmed(pid);
			skip_because("this CPU has no safe way for this call");
		}
		nr_calls += shared->nr_calls;
		assert_unharmed(pid);
	}
	assert_true(nr_calls > 0);
}

enum { ENDS_AS_WANTED = 7 };

/* A program that has just begun, in the stop of exec. There the kernel may still know addresses of the last one. */
static void begun_program(void **state)
{
	pid_t pid = fork();
	struct thread_request ask = { .number = SYS_getppid };
	struct thread_call c;
	int status = 0;

	(void)state;
	if (!pid) {
		raise(SIGSTOP);
		execl("/proc/self/exe", "test_thread_call", "end", NULL);
		_exit(1);
	}
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_int_equal(ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_TRACEEXEC | PTRACE_O_TRACESYSGOOD), 0);
	kill(pid, SIGCONT);
	do {
		assert_int_equal(waitpid(pid, &status, __WALL), pid);
		assert_true(WIFSTOPPED(status));
	} while (status >> 16 != PTRACE_EVENT_EXEC && !ptrace(PTRACE_CONT, pid, 0, 0));
	assert_int_equal(thread_call_begin_held(&c, pid, find_all(pid).back.insn), 0);
	assert_int_equal(thread_call_do(&c, &ask), 0);
	assert_int_equal(ask.result, getpid());
	assert_int_equal(thread_call_end(&c), 0);
	assert_int_equal(ptrace(PTRACE_DETACH, pid, 0, 0), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WIFEXITED(status) ? WEXITSTATUS(status) : -1, ENDS_AS_WANTED);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(begun_program),
		cmocka_unit_test(goes_on),
		cmocka_unit_test(tracer_killed),
	};

	if (argc > 1 && !strcmp(argv[1], "end"))
		return ENDS_AS_WANTED;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 1;
	for (size_t i = 0; i < REGS; i++)
		numbers[i] = (i + 1) * 0xf111111111111111ULL;
	for (size_t i = 0; i < sizeof(pattern); i++)
		pattern[i / 16][i % 16] = (u8)(i * 37 + 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

static void no_way(void **state)
{
	(void)state;
	skip_because("no calls in threads on this CPU");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(no_way) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
