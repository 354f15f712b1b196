/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tries probes on children of heaptap. */
#include "user/source/caps_trial.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "user/lib/clock.h"
#include "user/lib/helper_process.h"

/* One probe each, and its counter. */
enum slot { SLOT_CHILD, SLOT_BYSTANDER, SLOT_RETURN, SLOT_STEPPED, NR_SLOTS };

enum {
	MAIN_CALLS = 1,	       /* calls by the child's main thread */
	THREAD_CALLS = 10,     /* by its second thread */
	BYSTANDER_CALLS = 100, /* by the other process */
	TIMED_ROUNDS = 20,     /* by the child, of each function, to measure the way to a probe */
	TIMED_CALLS = 25,
	TIMED = TIMED_ROUNDS * TIMED_CALLS,
	/* Against hanging, not a measure: a busy machine takes seconds, and nothing can be traced without an answer. */
	CHILD_LIMIT_MS = 15000,
	LAB_LIMIT_MS = 20000,
	MAX_LABS = 4, /* more than trials per run of heaptap */
};

struct trial {
	enum caps_bpf_link link;
	bool has_cookie;
	int counters; /* map */
	struct caps_probe probes[NR_SLOTS];
	pid_t child, bystander;
	int go;			  /* writing end: closed, the children begin */
	int news;		  /* reading end: what the child says; end of file when both have gone */
	struct way_to_probe *way; /* shared with the child; there return_ns has entry_ns in it */
};

/* ---- the functions that are probed ---- */

/* The kernel corrupts Thumb code under a uprobe (32-bit ARM): these two are ARM code wherever they are built. */
#if defined(__arm__)
#define PLAIN_CODE __attribute__((target("arm")))
#else
#define PLAIN_CODE
#endif
#if defined(__clang__)
#define OWN_BODY __attribute__((noinline))
#else
#define OWN_BODY __attribute__((noipa))
#endif

OWN_BODY PLAIN_CODE static void probed_at_entry(void)
{
	__asm__ volatile("nop" : : "i"(1) : "memory");
}

/* The first instruction is one that the kernel does not carry out itself: the CPU makes one step. */
OWN_BODY PLAIN_CODE static int probed_stepped(int x)
{
	__asm__ volatile("nop" : "+r"(x) : : "memory");
	return -x;
}

OWN_BODY PLAIN_CODE static void probed_at_return(void)
{
	__asm__ volatile("nop" : : "i"(2) : "memory");
}

struct trial_place {
	u64 addr;   /* in this process */
	u64 offset; /* in the file */
	bool is_found;
};

static int caps_trial_find_offset(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct trial_place *p = ctx;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		u64 start = info->dlpi_addr + ph->p_vaddr;

		if (ph->p_type != PT_LOAD || p->addr < start || p->addr >= start + ph->p_filesz)
			continue;
		p->offset = p->addr - start + ph->p_offset;
		p->is_found = true;
	}
	return 1; /* the program itself comes first: no other object matters */
}

/* Where @fn lies in heaptap's own file. */
static int own_offset(const void *fn, u64 *offset)
{
	struct trial_place p = { .addr = (uintptr_t)fn };

	dl_iterate_phdr(caps_trial_find_offset, &p);
	*offset = p.offset;
	return p.is_found ? 0 : -ENOENT;
}

/* ---- the children ---- */

static void *second_thread(void *arg)
{
	(void)arg;
	for (int i = 0; i < THREAD_CALLS; i++)
		probed_at_entry();
	return NULL;
}

/* CPU time, because other processes take turns; the least, because they take the caches, too. */
static u32 timed_call_ns(enum slot slot)
{
	u64 least_ns = UINT64_MAX;

	for (int round = 0; round < TIMED_ROUNDS; round++) {
		u64 ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);

		for (int i = 0; i < TIMED_CALLS; i++)
			if (slot == SLOT_RETURN)
				probed_at_return();
			else if (slot == SLOT_STEPPED)
				probed_stepped(0);
			else
				probed_at_entry();
		ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - ns;
		least_ns = ns < least_ns ? ns : least_ns;
	}
	return (u32)(least_ns / TIMED_CALLS);
}

/* From here on any system call but write and exit_group kills, above all the one that a return probe adds. */
static void forbid_system_calls(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { .len = ARRAY_SIZE(filter), .filter = filter };

	/* A kernel without filters has no targets with filters: then the trial is right all the same. */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
}

/* Say "counted" after the entry probes and "survived" after the return probe. */
static void child_run(int go, int news, struct way_to_probe *way)
{
	struct rlimit no_core = { 1, 1 }; /* 0 would still start a core handler, 1 does not */
	pthread_t thread;
	bool has_thread;
	char byte;

	setrlimit(RLIMIT_CORE, &no_core);
	while (read(go, &byte, 1) < 0 && errno == EINTR)
		;
	has_thread = pthread_create(&thread, NULL, second_thread, NULL) == 0;
	for (int i = 0; i < MAIN_CALLS; i++)
		probed_at_entry();
	if (has_thread)
		pthread_join(thread, NULL);
	way->entry_ns = timed_call_ns(SLOT_CHILD);
	way->stepped_ns = timed_call_ns(SLOT_STEPPED);
	way->return_ns = timed_call_ns(SLOT_RETURN);
	forbid_system_calls();
	probed_at_return();
	if (syscall(SYS_write, news, "s", 1) == 1)
		syscall(SYS_exit_group, 0);
	syscall(SYS_exit_group, 1);
}

static void bystander_run(int go, int news, struct way_to_probe *way)
{
	char byte;

	(void)news;
	(void)way;
	while (read(go, &byte, 1) < 0 && errno == EINTR)
		;
	for (int i = 0; i < BYSTANDER_CALLS; i++)
		probed_at_entry();
	syscall(SYS_exit_group, 0);
}

/* Fork before any link exists: a child that held a copy of one would keep the probe in. */
static pid_t caps_trial_start(void (*run)(int go, int news, struct way_to_probe *way), const int go[2],
			      const int news[2], struct way_to_probe *way)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid < 0 ? -errno : pid;
	close(go[1]);
	close(news[0]);
	run(go[0], news[1], way);
	syscall(SYS_exit_group, 1); /* not reached; no exit handlers of the parent's */
	return 0;
}

static int start_children(struct trial *t)
{
	int go[2], news[2];
	int err = 0;

	if (pipe2(go, O_CLOEXEC) != 0)
		return -errno;
	if (pipe2(news, O_CLOEXEC) != 0) {
		err = -errno;
		close(go[0]);
		close(go[1]);
		return err;
	}
	t->child = caps_trial_start(child_run, go, news, t->way);
	t->bystander = t->child < 0 ? -1 : caps_trial_start(bystander_run, go, news, t->way);
	if (t->child < 0 || t->bystander < 0)
		err = t->child < 0 ? t->child : t->bystander;
	close(go[0]);
	close(news[1]);
	t->go = go[1];
	t->news = news[0];
	return err;
}

/* Wait until both have gone. Returns 1 if the child said that it survived, 0 if not, -ETIMEDOUT. */
static int wait_children(struct trial *t)
{
	struct pollfd p = { .fd = t->news, .events = POLLIN };
	u64 end = clock_now_ms() + CHILD_LIMIT_MS;
	bool has_survived = false;

	for (;;) {
		u64 now = clock_now_ms();
		char byte;
		ssize_t n;

		if (now >= end)
			return -ETIMEDOUT;
		if (poll(&p, 1, (int)(end - now)) <= 0)
			continue;
		n = read(t->news, &byte, 1);
		if (n == 0)
			return has_survived;
		if (n == 1)
			has_survived = true;
	}
}

static void caps_trial_reap(pid_t pid)
{
	if (pid <= 0)
		return;
	kill(pid, SIGKILL);
	helper_process_wait(pid, NULL);
}

/* ---- the trial ---- */

static int probe_place(struct trial *t, enum slot slot)
{
	const void *fn = slot == SLOT_RETURN	? (const void *)probed_at_return
			 : slot == SLOT_STEPPED ? (const void *)probed_stepped
						: (const void *)probed_at_entry;
	pid_t pid = slot == SLOT_BYSTANDER ? t->bystander : t->child;
	struct caps_probe *p = &t->probes[slot];
	u64 offset;
	int err = own_offset(fn, &offset);

	if (err)
		return err;
	p->prog = caps_bpf_program(t->counters, slot, t->link, t->has_cookie);
	if (p->prog < 0)
		return p->prog;
	return caps_bpf_attach(p, t->link, t->has_cookie, offset, pid, slot == SLOT_RETURN);
}

/* The bystander has the probe too, or no call of its own could be counted wrongly. */
static int caps_trial_place_all(struct trial *t)
{
	int err = probe_place(t, SLOT_CHILD);

	if (!err)
		err = probe_place(t, SLOT_BYSTANDER);
	if (!err && probe_place(t, SLOT_STEPPED) != 0)
		caps_bpf_detach(&t->probes[SLOT_STEPPED]);
	/* Without return probes there are still entry probes: its counter stays 0, so it is not called safe. */
	if (!err && probe_place(t, SLOT_RETURN) != 0)
		caps_bpf_detach(&t->probes[SLOT_RETURN]);
	return err;
}

static void caps_trial_judge(const struct trial *t, struct trial_result *result, bool has_survived)
{
	u64 unit = t->has_cookie ? CAPS_COOKIE : 1;
	u64 hits[NR_SLOTS] = { 0 };

	for (u32 slot = 0; slot < NR_SLOTS; slot++)
		if (caps_bpf_counter_read(t->counters, slot, &hits[slot]) != 0)
			hits[slot] = 0;
	result->err = hits[SLOT_CHILD] ? 0 : -ENODATA;
	result->is_pid_exact = hits[SLOT_CHILD] == unit * (MAIN_CALLS + THREAD_CALLS + TIMED) &&
			       hits[SLOT_BYSTANDER] == unit * BYSTANDER_CALLS;
	result->is_return_safe = has_survived && hits[SLOT_RETURN] == unit * (1 + TIMED);
	result->way = *t->way;
	/* A probe at a return has a breakpoint at the entry, too. */
	result->way.return_ns -=
		result->way.return_ns > result->way.entry_ns ? result->way.entry_ns : result->way.return_ns;
}

/* Runs in the laboratory process, whose end closes everything. */
static struct trial_result lab_run(enum caps_bpf_link link, bool has_cookie)
{
	struct trial t = { .link = link,
			   .has_cookie = has_cookie,
			   .go = -1,
			   .probes = { CAPS_NO_PROBE, CAPS_NO_PROBE, CAPS_NO_PROBE, CAPS_NO_PROBE } };
	struct trial_result result = { 0 };

	/* The end of the process unmaps it. */
	t.way = mmap(NULL, sizeof(*t.way), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	t.counters = t.way == MAP_FAILED ? -errno : caps_bpf_counters(NR_SLOTS);
	result.err = t.counters < 0 ? t.counters : start_children(&t);
	if (!result.err)
		result.err = caps_trial_place_all(&t);
	if (!result.err) {
		close(t.go);
		caps_trial_judge(&t, &result, wait_children(&t) == 1);
	}
	caps_trial_reap(t.child);
	caps_trial_reap(t.bystander);
	return result;
}

/* ---- the laboratory: a process of its own, because taking a probe out waits for the kernel's grace periods ---- */

/* Static, because they are children of the process, whoever asked for the trial: each one must be waited for once. */
static pid_t lab_pids[MAX_LABS];

/*
 * A child without exit signal: no SIGCHLD disturbs heaptap, and wait(2) for any child does not see it.
 * With all arguments 0 their order, which differs by CPU, does not matter.
 */
static pid_t lab_fork(void)
{
	pid_t pid = (pid_t)syscall(SYS_clone, 0L, 0L, 0L, 0L, 0L);

	return pid < 0 ? -errno : pid;
}

static int lab_read(int fd, struct trial_result *result)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	u64 end = clock_now_ms() + LAB_LIMIT_MS;
	u64 now;

	while ((now = clock_now_ms()) < end) {
		ssize_t n;

		if (poll(&p, 1, (int)(end - now)) <= 0)
			continue;
		n = read(fd, result, sizeof(*result)); /* less than PIPE_BUF: all or nothing */
		return n == (ssize_t)sizeof(*result) ? 0 : -ECHILD;
	}
	return -ETIMEDOUT;
}

static int lab_try(struct trial_result *result, enum caps_bpf_link link, bool has_cookie)
{
	int pipe_fds[2], err;
	size_t i = 0;
	pid_t pid;

	while (i < MAX_LABS && lab_pids[i])
		i++;
	if (i == MAX_LABS) {
		trial_settle();
		i = 0;
	}
	if (pipe2(pipe_fds, O_CLOEXEC) != 0)
		return -errno;
	pid = lab_fork();
	if (pid == 0) {
		*result = lab_run(link, has_cookie);
		err = write(pipe_fds[1], result, sizeof(*result)) == (ssize_t)sizeof(*result) ? 0 : 1;
		syscall(SYS_exit_group, err);
	}
	close(pipe_fds[1]);
	err = pid < 0 ? pid : lab_read(pipe_fds[0], result);
	close(pipe_fds[0]);
	if (pid < 0)
		return err;
	lab_pids[i] = pid;
	if (err)
		kill(pid, SIGKILL); /* its children end by themselves: their pipe ends */
	return err;
}

int trial_run(struct trial_result *result, enum caps_bpf_link link, struct caps *caps,
	      enum caps_effort effort)
{
	struct kernel_facts_file *f = &caps->facts;
	bool is_multi = link == CAPS_LINK_MULTI;
	int err;

	if (effort == CAPS_QUICK && is_multi)
		kernel_facts_read(f, &caps->env, KERNEL_FACTS_BASE);
	if (f->known.has_trials) {
		*result = is_multi ? f->known.multi : f->known.perf;
		return 0;
	}
	err = lab_try(result, link, caps->has_cookie);
	if (!err)
		kernel_facts_add_trial(&f->now, is_multi, result);
	return err;
}

static void lab_wait(int flags)
{
	pid_t got;

	for (size_t i = 0; i < MAX_LABS; i++) {
		do
			got = lab_pids[i] ? waitpid(lab_pids[i], NULL, __WALL | flags) : 0;
		while (got < 0 && errno == EINTR);
		/* Not a child any more: the watcher of a program that heaptap has started has seen the end. */
		if (got)
			lab_pids[i] = 0;
	}
}

void trial_reap(void)
{
	lab_wait(WNOHANG);
}

void trial_settle(void)
{
	lab_wait(0);
}
