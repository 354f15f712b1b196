/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Trials of what works on this machine: they leave nothing behind, and name each thing that is missing. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <dirent.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/filter.h"
#include "user/source/caps.h"
#include "user/source/limits.h"
#include "tests/unit/skip.h"

/* The child's results, in memory that its parent can read. */
static struct shared {
	struct caps caps;
	int err;
	bool is_ready; /* the child could be put into the situation at all */
} * shared;

static int map_shared(void **state)
{
	(void)state;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return shared == MAP_FAILED ? -1 : 0;
}

/* Probe in a child that @prepare has put into some situation (true = it could). */
static void probe_in_child(bool (*prepare)(void))
{
	pid_t pid;
	int status = 0;

	memset(shared, 0, sizeof(*shared));
	pid = fork();
	if (pid == 0) {
		shared->is_ready = prepare();
		if (shared->is_ready)
			shared->err = caps_probe(&shared->caps, CAPS_QUICK);
		caps_settle();
		_exit(0);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	if (!shared->is_ready)
		skip_because("this situation cannot be made here");
}

static void assert_reason(const char *part)
{
	if (!strstr(shared->caps.reason, part))
		fail_msg("reason is \"%s\", without \"%s\"", shared->caps.reason, part);
}

static void need_bpf(void)
{
	struct caps caps;
	int err = caps_probe(&caps, CAPS_QUICK);

	caps_settle();
	if (err)
		skip_because("%s", caps.reason);
}

static int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int nr = 0;

	while (readdir(dir))
		nr++;
	closedir(dir);
	return nr;
}

/* Times differ from one trial to the next. */
static void forget_times(struct caps *caps)
{
	const struct way_to_probe none = { 0 };

	caps->way = caps->facts.now.multi.way = caps->facts.now.perf.way = none;
}

static void everything_is_consistent(void **state)
{
	struct caps caps, again;

	(void)state;
	need_bpf();
	assert_int_equal(caps_probe(&caps, CAPS_FULL), 0);
	assert_true(caps.has_bpf && caps.has_ring_buffer && caps.has_uprobes);
	assert_true(caps.has_uprobes == (caps.has_uprobe_multi || caps.has_perf_uprobes));
	assert_false(caps.is_multi_pid_exact && !caps.has_uprobe_multi);
	/* Multi links are younger than cookies. */
	assert_false(caps.has_uprobe_multi && !caps.has_cookie);
	assert_string_equal(caps.reason, "");
	assert_string_equal(caps.advice, "");
	/* The way into the kernel and back takes a time. */
	assert_true(caps.way.entry_ns > 20 && caps.way.stepped_ns > 20);
	/* The truth does not change from one trial to the next. */
	assert_int_equal(caps_probe(&again, CAPS_FULL), 0);
	forget_times(&caps);
	forget_times(&again);
	assert_memory_equal(&caps, &again, sizeof(caps));
	caps_settle();
}

static void nothing_is_left(void **state)
{
	struct caps caps;
	int fds = count_fds();

	(void)state;
	for (int i = 0; i < 6; i++)
		(void)!caps_probe(&caps, CAPS_QUICK);
	assert_int_equal(count_fds(), fds);
	/* The trial's own process is not seen by a plain wait, and gone after caps_settle(). */
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	caps_settle();
	assert_int_equal(waitpid(-1, NULL, __WALL | WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

/* A trace of days keeps no zombie: rounds of its loop collect what has ended, and do not wait for what runs (T12). */
static void rounds_collect_what_has_ended(void **state)
{
	siginfo_t si;
	struct caps caps;

	(void)state;
	if (caps_probe(&caps, CAPS_QUICK))
		skip_because("no BPF here");
	/* The trial's process has ended, and is a child still. */
	assert_int_equal(waitid(P_ALL, 0, &si, WEXITED | WNOWAIT | __WALL), 0);
	caps_reap();
	assert_int_equal(waitid(P_ALL, 0, &si, WEXITED | WNOWAIT | WNOHANG | __WALL), -1);
	assert_int_equal(errno, ECHILD);
}

static volatile sig_atomic_t nr_sigchld;

static void on_sigchld(int sig)
{
	(void)sig;
	nr_sigchld++;
}

static void signals_are_undisturbed(void **state)
{
	struct caps caps, ignored;
	int err;

	(void)state;
	nr_sigchld = 0;
	signal(SIGCHLD, on_sigchld);
	err = caps_probe(&caps, CAPS_QUICK);
	caps_settle();
	assert_int_equal(nr_sigchld, 0);
	/* Ignored by whoever started us: the children vanish without being waited for. */
	signal(SIGCHLD, SIG_IGN);
	assert_int_equal(caps_probe(&ignored, CAPS_QUICK), err);
	caps_settle();
	signal(SIGCHLD, SIG_DFL);
	forget_times(&caps);
	forget_times(&ignored);
	assert_memory_equal(&caps, &ignored, sizeof(caps));
}

static bool become_nobody(void)
{
	return setgroups(0, NULL) == 0 && setresgid(65534, 65534, 65534) == 0 &&
	       setresuid(65534, 65534, 65534) == 0;
}

/* Without privileges the missing ones are named (E1, E3). */
static void nobody(void **state)
{
	(void)state;
	probe_in_child(become_nobody);
	assert_int_equal(shared->err, -EPERM);
	assert_false(shared->caps.has_bpf || shared->caps.has_uprobes);
	assert_reason(
		"bpf(2): no permission (CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN and CAP_SYS_PTRACE missing)");
	assert_reason("sudo heaptap");
	assert_string_equal(shared->caps.advice, "sudo heaptap ...");
	assert_false(shared->caps.env.is_root);
	for (int i = 0; i < CAPS_NR_PRIVILEGES; i++)
		assert_false(caps_has_privilege(&shared->caps.env, &caps_privileges[i]));
}

static bool no_bpf_eperm(void)
{
	return filter_install(FILTER_BPF | FILTER_PERF, EPERM) == 0;
}

/* Keep only the capabilities in @keep. */
static bool keep_privileges(uint64_t keep)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { { (uint32_t)keep, (uint32_t)keep, 0 },
						  { (uint32_t)(keep >> 32), (uint32_t)(keep >> 32), 0 } };

	return syscall(SYS_capset, &header, data) == 0;
}

static bool drop_all(void)
{
	return keep_privileges(0);
}

static bool drop_ptrace_and_bpf(void)
{
	return no_bpf_eperm() &&
	       keep_privileges(1ULL << CAP_BPF | 1ULL << CAP_PERFMON | 1ULL << CAP_SYS_ADMIN);
}

static bool drop_admin(void)
{
	return keep_privileges(1ULL << CAP_BPF | 1ULL << CAP_PERFMON);
}

/* A container's root: sudo gives nothing back. */
static void root_without_privileges(void **state)
{
	(void)state;
	need_bpf();
	probe_in_child(drop_all);
	assert_int_equal(shared->err, -EPERM);
	assert_reason("CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN and CAP_SYS_PTRACE missing");
	assert_reason("give the container the capabilities BPF, PERFMON");
}

/* A missing feature that nobody asked for is not given as the reason. */
static void the_right_reason(void **state)
{
	(void)state;
	need_bpf();
	probe_in_child(drop_ptrace_and_bpf);
	assert_int_equal(shared->err, -EPERM);
	assert_reason("bpf(2): forbidden by the seccomp filter");
}

/* Works or not, as the kernel is; if not, by the name of what uprobes ask for (E1, E3). */
static void without_admin(void **state)
{
	(void)state;
	need_bpf();
	probe_in_child(drop_admin);
	assert_true(shared->caps.has_bpf);
	print_message("uprobes without CAP_SYS_ADMIN: %s\n", shared->err ? shared->caps.reason : "work");
	if (!shared->err)
		return;
	assert_int_equal(shared->err, -EPERM);
	assert_reason("uprobes: no permission (CAP_SYS_ADMIN and CAP_SYS_PTRACE missing)");
}

static bool enter_user_namespace(void)
{
	return become_nobody() && unshare(CLONE_NEWUSER) == 0;
}

/* Root of a user namespace may not trace by BPF, and the reason is named (E1, E3). */
static void user_namespace(void **state)
{
	(void)state;
	probe_in_child(enter_user_namespace);
	assert_int_equal(shared->err, -EPERM);
	assert_true(shared->caps.env.is_confined);
	assert_reason("user namespace");
}

static bool no_bpf_enosys(void)
{
	return filter_install(FILTER_BPF | FILTER_PERF, ENOSYS) == 0;
}

static bool no_links(void)
{
	return filter_install(FILTER_LINK | FILTER_PERF, EPERM) == 0;
}

static bool no_perf(void)
{
	return filter_install(FILTER_PERF, ENOSYS) == 0;
}

/* Docker's default: the call fails although every privilege is there (E1, E3). */
static void filtered(void **state)
{
	(void)state;
	need_bpf();
	probe_in_child(no_bpf_enosys);
	assert_int_equal(shared->err, -EPERM);
	assert_reason("bpf(2): forbidden by the seccomp filter");
	assert_int_equal(shared->caps.env.seccomp, 2);
	probe_in_child(no_bpf_eperm);
	assert_int_equal(shared->err, -EPERM);
	assert_reason("bpf(2): forbidden by the seccomp filter");
}

static void filtered_links(void **state)
{
	(void)state;
	need_bpf();
	probe_in_child(no_links);
	assert_int_equal(shared->err, -EPERM);
	assert_true(shared->caps.has_bpf && shared->caps.has_ring_buffer);
	assert_false(shared->caps.has_uprobes);
	assert_reason("uprobes: forbidden by the seccomp filter");
}

/* Multi links need no perf events: forbidding these changes nothing where there are multi links. */
static void perf_is_not_needed(void **state)
{
	struct caps caps;

	(void)state;
	need_bpf();
	assert_int_equal(caps_probe(&caps, CAPS_QUICK), 0);
	caps_settle();
	probe_in_child(no_perf);
	assert_int_equal(shared->err == 0, caps.has_uprobe_multi);
}

static bool lower_memlock(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0)
		return false;
	limit.rlim_cur = 0;
	return setrlimit(RLIMIT_MEMLOCK, &limit) == 0;
}

static void memlock(void **state)
{
	struct rlimit before, after;
	struct caps caps;

	(void)state;
	need_bpf();
	limits_restore(RLIMIT_MEMLOCK);
	assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &before), 0);
	(void)!caps_probe(&caps, CAPS_QUICK);
	limits_restore(RLIMIT_MEMLOCK);
	caps_settle();
	assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &after), 0);
	assert_memory_equal(&before, &after, sizeof(before));
	/* Where maps count against it the limit is raised, elsewhere it does not matter. */
	probe_in_child(lower_memlock);
	assert_int_equal(shared->err, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_is_consistent),
		cmocka_unit_test(nothing_is_left),
		cmocka_unit_test(rounds_collect_what_has_ended),
		cmocka_unit_test(signals_are_undisturbed),
		cmocka_unit_test(nobody),
		cmocka_unit_test(root_without_privileges),
		cmocka_unit_test(the_right_reason),
		cmocka_unit_test(without_admin),
		cmocka_unit_test(user_namespace),
		cmocka_unit_test(filtered),
		cmocka_unit_test(filtered_links),
		cmocka_unit_test(perf_is_not_needed),
		cmocka_unit_test(memlock),
	};

	return cmocka_run_group_tests(tests, map_shared, NULL);
}
