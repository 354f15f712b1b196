/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Jumps are taken back where they are ours; nothing is written to a program that was executed since. */
#include "user/inject/process_private.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "user/inject/guard.h"
#include "user/lib/helper_process.h"
#include "user/lib/proc.h"
#include "tests/unit/skip.h"

enum { NR_PATCHES = 4, APART = 64 };

static const u8 old_code[5] = { 0x55, 0x48, 0x89, 0xe5, 0x90 }, new_code[5] = { 0xe9, 1, 2, 3, 4 };

/* Code that raises SIGILL, and behind it, at LOOP, code that stays there; and a breakpoint. */
#if defined(__aarch64__)
enum { LOOP = 4 };
static const u8 trap_and_loop[] = { 0, 0, 0, 0, 0, 0, 0, 0x14 }, breakpoint[] = { 0, 0, 0x20, 0xd4 };
#else
enum { LOOP = 2 };
static const u8 trap_and_loop[] = { 0x0f, 0x0b, 0xeb, 0xfe }, breakpoint[] = { 0xcc };
#endif

/* A file stands for the memory of a target, with a jump in each place. */
struct world {
	struct injection *in;
	int mem;
};

static void world_init(struct world *w)
{
	w->in = calloc(1, sizeof(*w->in));
	w->mem = memfd_create("target", MFD_CLOEXEC);
	assert_non_null(w->in);
	assert_true(w->mem >= 0);
	for (u32 i = 0; i < NR_PATCHES; i++) {
		struct inject_patch *p = &w->in->patches[w->in->nr_patches++];

		p->addr = (taddr_t)i * APART;
		p->displaced = sizeof(p->old);
		p->len = sizeof(p->old);
		memcpy(p->old, old_code, sizeof(p->old));
		memcpy(p->new, new_code, sizeof(p->new));
		assert_int_equal(inject_write(w->mem, p->addr, p->new, sizeof(p->new)), 0);
	}
}

static void world_fini(struct world *w)
{
	close(w->mem);
	free(w->in);
}

static void assert_code(const struct world *w, u32 nr, const u8 *code)
{
	u8 now[5];

	assert_int_equal(inject_read(w->mem, (taddr_t)nr * APART, now, sizeof(now)), 0);
	assert_memory_equal(now, code, sizeof(now));
}

/* All jumps from the second one on are taken back; the first one is another step's. */
static void test_restores(void **state)
{
	struct world w;

	(void)state;
	world_init(&w);
	assert_int_equal(inject_restore_code(w.in, w.mem, 1), 0);
	assert_int_equal(w.in->nr_patches, 1);
	assert_code(&w, 0, new_code);
	for (u32 i = 1; i < NR_PATCHES; i++)
		assert_code(&w, i, old_code);
	world_fini(&w);
}

/* A jump in padding stays while other functions are restored: a thread may stand on it. */
static void test_hops(void **state)
{
	struct world w;

	(void)state;
	world_init(&w);
	w.in->patches[1].is_hop = 1;
	assert_int_equal(inject_restore_code(w.in, w.mem, 0), 0);
	assert_int_equal(w.in->nr_patches, 1);
	assert_code(&w, 0, old_code);
	assert_code(&w, 1, new_code);
	assert_int_equal(inject_restore_hops(w.in, w.mem, 0), 0);
	assert_int_equal(w.in->nr_patches, 0);
	assert_code(&w, 1, old_code);
	world_fini(&w);
}

/* A jump of two bytes: what is behind it is other code, which may have changed. */
static void test_short(void **state)
{
	const u8 behind = 0x77, changed[5] = { old_code[0], old_code[1], behind, new_code[3], new_code[4] };
	struct world w;

	(void)state;
	world_init(&w);
	w.in->patches[0].len = 2;
	assert_int_equal(inject_write(w.mem, 2, &behind, 1), 0);
	assert_int_equal(inject_restore_code(w.in, w.mem, 0), 0);
	assert_code(&w, 0, changed);
	world_fini(&w);
}

/* A breakpoint on a jump: the jump comes back with the bytes that the debugger saved. */
static void test_breakpoint(void **state)
{
	struct world w;
	u8 changed[5];

	(void)state;
	world_init(&w);
	memcpy(changed, new_code, sizeof(changed));
	memcpy(changed, breakpoint, sizeof(breakpoint));
	assert_int_equal(inject_write(w.mem, 2 * APART, changed, sizeof(changed)), 0);
	assert_int_equal(inject_restore_code(w.in, w.mem, 0), -EBUSY);
	assert_int_equal(w.in->nr_patches, 1);
	assert_int_equal(w.in->patches[0].addr, 2 * APART);
	assert_code(&w, 2, changed);
	assert_code(&w, 3, old_code);
	world_fini(&w);
}

/* Other code, and no memory at all, are no concern of ours. */
static void test_gone(void **state)
{
	struct world w;
	const u8 other[5] = { 0xc3, 9, 9, 9, 9 };

	(void)state;
	world_init(&w);
	assert_int_equal(inject_write(w.mem, APART, other, sizeof(other)), 0);
	assert_int_equal(ftruncate(w.mem, 3 * APART), 0);
	assert_int_equal(inject_restore_code(w.in, w.mem, 0), 0);
	assert_int_equal(w.in->nr_patches, 0);
	assert_code(&w, 1, other);
	world_fini(&w);
}

/* A jump that cannot be overwritten stays in the list. */
static void test_no_write(void **state)
{
	struct world w;
	int writable;

	(void)state;
	world_init(&w);
	writable = w.mem;
	w.mem = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	assert_true(w.mem >= 0);
	for (u32 i = 0; i < NR_PATCHES; i++)
		assert_int_equal(inject_read(w.mem, w.in->patches[i].addr, w.in->patches[i].new, 5), 0);
	assert_int_equal(inject_restore_code(w.in, w.mem, 0), -EBUSY);
	assert_int_equal(w.in->nr_patches, NR_PATCHES);
	close(writable);
	world_fini(&w);
}

/* Memory where the piece was, in this process: it is the piece's only while the memfd is mapped there. */
static void test_executed(void **state)
{
	struct world w;
	int fd = memfd_create(INJECT_MEMORY_NAME, MFD_CLOEXEC);
	u8 *region = mmap(NULL, PIECE_PRIVATE_OFFSET + PIECE_PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct piece_control *control = (void *)(region + PIECE_CONTROL_OFFSET);
	void *private = region + PIECE_PRIVATE_OFFSET;

	(void)state;
	world_init(&w);
	assert_ptr_not_equal(region, MAP_FAILED);
	assert_true(fd >= 0 && !ftruncate(fd, PIECE_PAGE));
	w.in->pid = getpid();
	w.in->region = (taddr_t)(uintptr_t)region;
	w.in->state = INJECT_IN;
	assert_int_equal(inject_set_on(w.in, true), -ESRCH);
	assert_int_equal(control->is_on, 0);
	assert_ptr_equal(mmap(private, PIECE_PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0), private);
	assert_int_equal(inject_set_on(w.in, true), 0);
	assert_true(control->is_on == piece_is_on);
	munmap(private, PIECE_PAGE);
	assert_int_equal(inject_take_out(w.in, 0), 0);
	assert_int_equal(w.in->state, INJECT_NOTHING);
	assert_true(control->is_on == piece_is_on);
	close(fd);
	munmap(region, PIECE_PRIVATE_OFFSET);
	world_fini(&w);
}

/* A region in which one thread has a call under way. */
static taddr_t busy_region(struct injection *in, int fd, u64 **active)
{
	u8 *region =
		mmap(NULL, PIECE_REGION_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct piece_private *private = (void *)(region + PIECE_PRIVATE_OFFSET);
	struct piece_place *places = (void *)(region + PIECE_PLACES_OFFSET);

	assert_ptr_not_equal(region, MAP_FAILED);
	assert_int_equal(ftruncate(fd, PIECE_PRIVATE_BYTES), 0);
	assert_int_equal(mprotect(region, PIECE_PRIVATE_OFFSET, PROT_READ | PROT_WRITE), 0);
	assert_ptr_equal(
		mmap(private, PIECE_PRIVATE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd, 0),
		private);
	assert_int_equal(mprotect(places, PIECE_PLACES_MAPPED(1), PROT_READ | PROT_WRITE), 0);
	private->keys[0].key = 1;
	places->thread.hook = 1;
	*active = &places->thread.hook;
	in->nr_places = in->nr_shards = 1;
	return (taddr_t)(uintptr_t)region;
}

static int ready[2];

/* A target whose region is that of the piece. It writes to `ready` when it is where it shall be. */
struct target {
	struct world w;
	u64 *active; /* calls under way, of its one thread */
	int fd;
};

static void target_init(struct target *t)
{
	world_init(&t->w);
	assert_int_equal(pipe(ready), 0);
	t->fd = memfd_create(INJECT_MEMORY_NAME, MFD_CLOEXEC);
	t->w.in->nr_patches = 0;
	t->w.in->region = busy_region(t->w.in, t->fd, &t->active);
	t->w.in->state = INJECT_IN;
}

/* The piece is @code, of @len bytes. */
static void target_set_code(const struct target *t, const void *code, size_t len)
{
	void *region = (void *)(uintptr_t)t->w.in->region;

	memcpy(region, code, len);
	assert_int_equal(mprotect(region, PIECE_PAGE, PROT_READ | PROT_EXEC), 0);
}

/* Begin the target. True in it. */
static bool target_fork(const struct target *t)
{
	t->w.in->pid = fork();
	assert_true(t->w.in->pid >= 0);
	return !t->w.in->pid;
}

static void target_await(const struct target *t)
{
	char byte;

	assert_true(t->w.in->pid > 0);
	assert_int_equal(read(ready[0], &byte, 1), 1);
}

/* Drop the islands of the target that are of no more use. */
static void target_drop_islands(struct target *t)
{
	struct stopped s;

	assert_int_equal(threads_stop(&s, t->w.in->pid, UINT64_MAX), 0);
	assert_int_equal(inject_drop_islands(t->w.in, &s, t->w.mem = inject_open_memory(t->w.in->pid)), 0);
	threads_resume(&s);
}

static void target_fini(struct target *t)
{
	kill(t->w.in->pid, SIGKILL);
	assert_int_equal(waitpid(t->w.in->pid, NULL, 0), t->w.in->pid);
	munmap((void *)(uintptr_t)t->w.in->region, PIECE_REGION_BYTES);
	close(ready[0]);
	close(ready[1]);
	close(t->fd);
	world_fini(&t->w);
}

/* A thread that leaves the piece when nobody has stopped it for a while, as one does that waits for a CPU. */
static void leave_undisturbed(volatile u64 *active)
{
	int none = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event ev;

	/* A stop interrupts it. */
	while (epoll_wait(none, &ev, 1, 200))
		;
	*active = 0;
	for (;;)
		pause();
}

static void test_waits_for_cpu(void **state)
{
	const u64 minute_ns = 60ULL * 1000 * 1000 * 1000;
	struct target t;

	(void)state;
	target_init(&t);
	if (target_fork(&t))
		leave_undisturbed(t.active);
	assert_int_equal(inject_take_out(t.w.in, minute_ns), 0);
	assert_int_equal(t.w.in->state, INJECT_NOTHING);
	target_fini(&t);
}

static void stay_in_handler(int sig)
{
	(void)sig;
	if (write(ready[1], "", 1) == 1)
		pause();
	_exit(1);
}

/* A frame with old addresses of the piece, as calls inside it leave them. */
static void stay_with_old_words(taddr_t region)
{
	volatile taddr_t words[64];

	for (u32 i = 0; i < 64; i++)
		words[i] = region + 0x9b;
	if (write(ready[1], "", 1) == 1)
		pause();
	_exit(words[0] != 0);
}

static void run_into_piece(taddr_t region)
{
	struct sigaction handler = { .sa_handler = stay_in_handler };

	sigaction(SIGILL, &handler, NULL);
	((void (*)(void))(uintptr_t)region)();
}

/* Stay at the first instruction of the piece, which does not end. */
static void stay_at_piece(taddr_t region)
{
	if (write(ready[1], "", 1) == 1)
		((void (*)(void))(uintptr_t)(region + LOOP))();
	_exit(1);
}

/* @pid has spent so much CPU time that it is where it stays. */
static void wait_for_cpu(pid_t pid)
{
	enum { ENOUGH_NS = 20 * 1000 * 1000 };
	struct timespec t = { 0 };
	clockid_t clock;
	u64 begin_ns;

	assert_int_equal(clock_getcpuclockid(pid, &clock), 0);
	assert_int_equal(clock_gettime(clock, &t), 0);
	begin_ns = (u64)t.tv_sec * 1000000000 + (u64)t.tv_nsec;
	while (!clock_gettime(clock, &t) &&
	       (u64)t.tv_sec * 1000000000 + (u64)t.tv_nsec < begin_ns + ENOUGH_NS)
		sched_yield();
}

/* Can the piece be taken out of a process that does @stay with its address? @is_end: where calls return to. */
static int taken_out_of(void (*stay)(taddr_t region), bool is_end)
{
	struct target t;
	int err;

	target_init(&t);
	*t.active = 0;
	target_set_code(&t, trap_and_loop, sizeof(trap_and_loop));
	if (is_end)
		t.w.in->returned = t.w.in->region + (stay == stay_at_piece ? LOOP : 0);
	if (target_fork(&t))
		stay(t.w.in->region);
	target_await(&t);
	if (stay == stay_at_piece)
		wait_for_cpu(t.w.in->pid);
	err = inject_take_out(t.w.in, 0);
	target_fini(&t);
	return err;
}

static void test_old_words(void **state)
{
	(void)state;
	assert_int_equal(taken_out_of(stay_with_old_words, false), 0);
}

/* Memory of the program, mapped where ours would have grown, stays. */
static void test_foreign_memory(void **state)
{
	struct target t;
	taddr_t region;
	u64 word;
	int mem;

	(void)state;
	target_init(&t);
	*t.active = 0;
	region = t.w.in->region;
	t.w.in->nr_places = 2;
	if (target_fork(&t))
		stay_with_old_words(region);
	target_await(&t);
	assert_int_equal(inject_take_out(t.w.in, 0), 0);
	mem = inject_open_memory(t.w.in->pid);
	assert_true(mem >= 0);
	assert_int_not_equal(inject_read(mem, region, &word, sizeof(word)), 0);
	assert_int_equal(
		inject_read(mem, region + PIECE_PLACES_OFFSET + PIECE_PLACES_MAPPED(1), &word, sizeof(word)),
		0);
	close(mem);
	target_fini(&t);
}

static void test_handler_inside(void **state)
{
	(void)state;
	assert_int_equal(taken_out_of(run_into_piece, false), -EBUSY);
}

/* A thread, or one that a handler has interrupted, is just where a call returns to the piece. */
static void test_returning(void **state)
{
	(void)state;
	assert_int_equal(taken_out_of(stay_at_piece, true), -EBUSY);
	assert_int_equal(taken_out_of(run_into_piece, true), -EBUSY);
}

static void outlive_heaptap(const struct tracer_changer *c)
{
	int end = c->end;
	struct pollfd p;

	helper_process_keep(&end, 1, true);
	p = (struct pollfd){ .fd = end };
	poll(&p, 1, -1);
	c->outlive(c->ctx, end, -1, false);
}

/* A heaptap that traces @target, is being killed, and has closed its files already. It lets go later. */
static void die_slowly(const struct world *w)
{
	struct proc_stat stat;
	struct injection *in;
	struct guard *g;

	if (ptrace(PTRACE_SEIZE, w->in->pid, 0, 0) || guard_new(&g) || proc_read_stat(&stat, w->in->pid))
		_exit(1);
	in = guard_add(g, w->in->pid, stat.start_time);
	in->region = w->in->region;
	in->state = INJECT_IN;
	if (!fork())
		outlive_heaptap(guard_changer(g));
	close_range(3, ~0U, 0);
	usleep(300 * 1000);
	_exit(0);
}

static void test_guard_of_tracer(void **state)
{
	int fd = memfd_create(INJECT_MEMORY_NAME, MFD_CLOEXEC), status;
	struct world w;
	pid_t heaptap;
	u64 *active;

	(void)state;
	if (geteuid())
		skip_because("not root: the guard may not trace what is no child of it");
	world_init(&w);
	w.in->region = busy_region(w.in, fd, &active);
	*active = 0;
	w.in->pid = fork();
	assert_true(w.in->pid >= 0);
	if (!w.in->pid)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (!w.in->pid)
		pause();
	heaptap = fork();
	assert_true(heaptap >= 0);
	if (!heaptap)
		die_slowly(&w);
	assert_int_equal(waitpid(heaptap, &status, 0), heaptap);
	assert_int_equal(status, 0);
	/* Twenty seconds at most. */
	for (int i = 0; i < 400 && !inject_check_region(w.in); i++)
		usleep(50 * 1000);
	assert_int_equal(inject_check_region(w.in), -ESRCH);
	kill(w.in->pid, SIGKILL);
	assert_int_equal(waitpid(w.in->pid, NULL, 0), w.in->pid);
	munmap((void *)(uintptr_t)w.in->region, PIECE_REGION_BYTES);
	close(fd);
	world_fini(&w);
}

enum { NR_ISLANDS = 3 };

static void set_jump(u8 code[CODE_MAX_JUMP], s64 away)
{
#if defined(__aarch64__)
	const u32 jump = 0x14000000 | ((u32)(away / 4) & 0x3ffffff);

	memcpy(code, &jump, sizeof(jump));
#else
	const s32 distance = (s32)(away - 5);

	code[0] = 0xe9;
	memcpy(code + 1, &distance, sizeof(distance));
#endif
}

/* A jump to @island, from the page behind all islands. */
static void lead_to(struct injection *in, const struct inject_island *island)
{
	struct inject_patch *p = &in->patches[in->nr_patches++];

	p->addr = in->islands[NR_ISLANDS - 1].start + PIECE_PAGE;
	p->len = code_native()->jump_bytes;
	set_jump(p->new, (s64)(island->start + 16 - p->addr));
}

static bool is_mapped(pid_t pid, taddr_t addr)
{
	int mem = inject_open_memory(pid);
	u8 byte;
	bool is_there = mem >= 0 && !inject_read(mem, addr, &byte, 1);

	close(mem);
	return is_there;
}

/* Of three islands, a jump leads to one, a signal handler returns to one, and one is of no more use. */
static void test_islands(void **state)
{
	const size_t size = (NR_ISLANDS + 1) * PIECE_PAGE;
	struct inject_island islands[NR_ISLANDS];
	struct target t;
	u8 *code;

	(void)state;
	target_init(&t);
	code = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (u32 i = 0; i < NR_ISLANDS; i++) {
		memcpy(code + i * PIECE_PAGE, trap_and_loop, sizeof(trap_and_loop));
		islands[i] = (struct inject_island){ (taddr_t)(uintptr_t)code + i * PIECE_PAGE, PIECE_PAGE };
	}
	assert_int_equal(mprotect(code, size, PROT_READ | PROT_EXEC), 0);
	memcpy(t.w.in->islands, islands, sizeof(islands));
	t.w.in->nr_islands = NR_ISLANDS;
	lead_to(t.w.in, &islands[1]);
	if (target_fork(&t))
		run_into_piece(islands[2].start);
	target_await(&t);
	target_drop_islands(&t);
	assert_int_equal(t.w.in->nr_islands, 2);
	assert_int_equal(t.w.in->islands[0].start + t.w.in->islands[1].start,
			 islands[1].start + islands[2].start);
	assert_false(is_mapped(t.w.in->pid, islands[0].start));
	assert_true(is_mapped(t.w.in->pid, islands[1].start) && is_mapped(t.w.in->pid, islands[2].start));
	munmap(code, size);
	target_fini(&t);
}

/* Be where the piece jumps to @island, through a word below the stack pointer or a register, and stay there. */
static void stay_before_jump(taddr_t region, taddr_t island)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (write(ready[1], "", 1) == 1) {
#if defined(__x86_64__)
		__asm__ volatile("mov %0, -16(%%rsp)\n\tjmp *%1" : : "r"(island), "r"(region) : "memory");
#elif defined(__aarch64__)
		__asm__ volatile("mov x17, %0\n\tbr %1" : : "r"(island), "r"(region) : "x17", "memory");
#endif
	}
	_exit(region != island);
}

/* A thread in the piece goes on in an island that only this word, or register, names. */
static void test_jump_to_island(void **state)
{
	struct target t;
	void *code;

	(void)state;
	target_init(&t);
	target_set_code(&t, trap_and_loop + LOOP, LOOP);
	code = mmap(NULL, PIECE_PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	t.w.in->islands[0] = (struct inject_island){ (taddr_t)(uintptr_t)code, PIECE_PAGE };
	t.w.in->nr_islands = 1;
	if (target_fork(&t))
		stay_before_jump(t.w.in->region, t.w.in->islands[0].start);
	target_await(&t);
	wait_for_cpu(t.w.in->pid);
	target_drop_islands(&t);
	assert_int_equal(t.w.in->nr_islands, 1);
	assert_true(is_mapped(t.w.in->pid, t.w.in->islands[0].start));
	munmap(code, PIECE_PAGE);
	target_fini(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_restores),
		cmocka_unit_test(test_breakpoint),
		cmocka_unit_test(test_gone),
		cmocka_unit_test(test_no_write),
		cmocka_unit_test(test_executed),
		cmocka_unit_test(test_hops),
		cmocka_unit_test(test_short),
		cmocka_unit_test(test_waits_for_cpu),
		cmocka_unit_test(test_old_words),
		cmocka_unit_test(test_foreign_memory),
		cmocka_unit_test(test_handler_inside),
		cmocka_unit_test(test_islands),
		cmocka_unit_test(test_jump_to_island),
		cmocka_unit_test(test_returning),
		cmocka_unit_test(test_guard_of_tracer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
