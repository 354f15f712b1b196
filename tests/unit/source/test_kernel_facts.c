/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The file with facts about the kernel: what it keeps, and which files are ignored. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/filter.h"
#include "tests/unit/skip.h"
#include "user/source/caps.h"

static char base[64];

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)kind;
	(void)at;
	return remove(path);
}

static int make_base(void **state)
{
	(void)state;
	snprintf(base, sizeof(base), "/tmp/test_kernel_facts.XXXXXX");
	return mkdtemp(base) ? 0 : -1;
}

static int remove_base(void **state)
{
	(void)state;
	return nftw(base, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void read_facts(struct kernel_facts_file *f)
{
	struct caps_env env;

	caps_read_env(&env);
	kernel_facts_read(f, &env, base);
}

/* Whoever is not root, or under a filter, has no file. */
static void need_file(void)
{
	struct kernel_facts_file f;

	read_facts(&f);
	if (!f.is_usable)
		skip_because("only root without a filter of system calls keeps facts");
}

static void keep_something(void)
{
	struct kernel_facts_file f;

	read_facts(&f);
	f.now.has_stop_at = true;
	f.now.ptrace_at = 24;
	f.now.blocked_at = 2000;
	kernel_facts_keep(&f, base);
}

static bool is_known(void)
{
	struct kernel_facts_file f;

	read_facts(&f);
	assert_memory_equal(&f.known, &f.now, sizeof(f.now));
	assert_true(!f.known.has_stop_at || (f.known.ptrace_at == 24 && f.known.blocked_at == 2000));
	return f.known.has_stop_at;
}

/* The only file of the directory. */
static const char *kept_path(void)
{
	static char path[128];
	char pattern[128];
	glob_t found;

	snprintf(pattern, sizeof(pattern), "%s/heaptap/*", base);
	assert_int_equal(glob(pattern, 0, NULL, &found), 0);
	assert_int_equal(found.gl_pathc, 1);
	snprintf(path, sizeof(path), "%s", found.gl_pathv[0]);
	globfree(&found);
	return path;
}

static void facts_are_kept(void **state)
{
	struct stat st;

	(void)state;
	need_file();
	assert_false(is_known());
	keep_something();
	assert_true(is_known());
	assert_int_equal(stat(kept_path(), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
}

/* Each byte counts. A file that was spoiled is replaced. */
static void damage_is_seen(void **state)
{
	struct stat st;
	int fd;

	(void)state;
	need_file();
	keep_something();
	assert_int_equal(stat(kept_path(), &st), 0);
	for (off_t at = 0; at < st.st_size; at++) {
		char byte;

		fd = open(kept_path(), O_RDWR);
		assert_int_equal(pread(fd, &byte, 1, at), 1);
		byte ^= 4;
		assert_int_equal(pwrite(fd, &byte, 1, at), 1);
		close(fd);
		assert_false(is_known());
		keep_something();
		assert_true(is_known());
	}
	assert_int_equal(truncate(kept_path(), st.st_size - 1), 0);
	assert_false(is_known());
	keep_something();
	assert_true(is_known());
	assert_int_equal(truncate(kept_path(), st.st_size + 1), 0);
	assert_false(is_known());
}

/* Of the file and of both directories. */
static void others_cannot_write(void **state)
{
	char paths[3][128];

	(void)state;
	need_file();
	keep_something();
	snprintf(paths[0], sizeof(paths[0]), "%s", kept_path());
	snprintf(paths[1], sizeof(paths[1]), "%s/heaptap", base);
	snprintf(paths[2], sizeof(paths[2]), "%s", base);
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		assert_int_equal(chmod(paths[i], 0720), 0);
		assert_false(is_known());
		assert_int_equal(chmod(paths[i], 0702), 0);
		assert_false(is_known());
		assert_int_equal(chmod(paths[i], 0700), 0);
		assert_int_equal(chown(paths[i], 65534, 0), 0);
		assert_false(is_known());
		assert_int_equal(chown(paths[i], 0, 0), 0);
		assert_true(is_known());
	}
}

static void links_are_not_followed(void **state)
{
	char path[128], other[128];

	(void)state;
	need_file();
	keep_something();
	snprintf(path, sizeof(path), "%s", kept_path());
	snprintf(other, sizeof(other), "%s/other", base);
	assert_int_equal(rename(path, other), 0);
	assert_int_equal(symlink(other, path), 0);
	assert_false(is_known());
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rename(other, path), 0);
	assert_true(is_known());
	/* Nor where the file is written. */
	snprintf(path, sizeof(path), "%s/heaptap", base);
	assert_int_equal(rename(path, other), 0);
	assert_int_equal(symlink(other, path), 0);
	assert_false(is_known());
	keep_something();
	assert_false(is_known());
}

/* No directory, and one that is no directory: only the time is lost. */
static void without_a_place_nothing_is_kept(void **state)
{
	char path[128];
	int fd;

	(void)state;
	need_file();
	snprintf(path, sizeof(path), "%s/heaptap", base);
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	assert_true(fd >= 0);
	close(fd);
	keep_something();
	assert_false(is_known());
	remove_base(NULL);
	keep_something();
	assert_false(is_known());
	assert_int_equal(mkdir(base, 0700), 0);
}

/* A child for which @become has been called knows no facts of its parent. Has it a file at all? */
static void child_knows(bool (*become)(void), bool is_usable)
{
	struct kernel_facts_file f;
	int status = 0;
	pid_t pid = fork();

	if (!pid) {
		if (!become())
			_exit(2);
		read_facts(&f);
		_exit(f.is_usable == is_usable && !f.known.has_stop_at ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_not_equal(WEXITSTATUS(status), 2);
	assert_int_equal(WEXITSTATUS(status), 0);
}

static bool become_nobody(void)
{
	return !setresuid(65534, 65534, 65534);
}

static bool become_filtered(void)
{
	return !filter_install(FILTER_LINK, EPERM);
}

/* All but the rights that the test itself needs. */
static bool lose_rights(void)
{
	const uint32_t keep = 1U << CAP_DAC_OVERRIDE;
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { { keep, keep, 0 } };

	return !syscall(SYS_capset, &header, data);
}

static void other_surroundings_have_other_facts(void **state)
{
	(void)state;
	need_file();
	keep_something();
	child_knows(become_nobody, false);
	child_knows(become_filtered, false);
	child_knows(lose_rights, true);
	assert_true(is_known());
}

static bool are_kept(const struct trial_result *multi, const struct trial_result *perf)
{
	struct kernel_facts now = { 0 };

	kernel_facts_add_trial(&now, true, multi);
	kernel_facts_add_trial(&now, false, perf);
	assert_memory_equal(&now.multi, multi, sizeof(*multi));
	assert_memory_equal(&now.perf, perf, sizeof(*perf));
	return now.has_trials;
}

/* Trials on a busy machine may fail: what they say then is not kept. */
static void only_good_trials_are_kept(void **state)
{
	const struct trial_result good = { .is_pid_exact = true, .is_return_safe = true },
				  late = { .err = -ENODATA }, none = { .err = -EINVAL };
	struct trial_result unsafe = good, inexact = good;

	(void)state;
	unsafe.is_return_safe = inexact.is_pid_exact = false;
	assert_true(are_kept(&good, &late));
	assert_true(are_kept(&none, &good)); /* a kernel without multi links */
	assert_false(are_kept(&late, &good));
	assert_false(are_kept(&none, &late));
	assert_false(are_kept(&unsafe, &good));
	assert_false(are_kept(&none, &unsafe));
	assert_false(are_kept(&inexact, &good));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(facts_are_kept, make_base, remove_base),
		cmocka_unit_test_setup_teardown(damage_is_seen, make_base, remove_base),
		cmocka_unit_test_setup_teardown(others_cannot_write, make_base, remove_base),
		cmocka_unit_test_setup_teardown(links_are_not_followed, make_base, remove_base),
		cmocka_unit_test_setup_teardown(without_a_place_nothing_is_kept, make_base, remove_base),
		cmocka_unit_test_setup_teardown(other_surroundings_have_other_facts, make_base, remove_base),
		cmocka_unit_test(only_good_trials_are_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
