/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of programs that heaptap starts: this program itself in several parts, told by its arguments. */
#include "user/source/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <pwd.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/source/launch_world.h"
#include "user/lib/log.h"
#include "user/lib/proc.h"
#include "tests/unit/rounds.h"
#include "tests/unit/skip.h"

/* ---- parts of the program that is started ---- */

static __attribute__((constructor)) void constructed(void)
{
	if (getenv("HEAPTAP_TELLS"))
		tell('c');
}

static void part_exit(char **args)
{
	_exit(atoi(args[0]));
}

static void part_signal(char **args)
{
	raise(atoi(args[0]));
	_exit(97);
}

static void part_tell(char **args)
{
	(void)args;
	tell('m');
	_exit(0);
}

static void part_exec(char **args)
{
	execv("/proc/self/exe", (char *[]){ "again", args[0], args[1], NULL });
	_exit(96);
}

static void *exec_from_thread(void *args)
{
	part_exec(args);
	return NULL;
}

static void *sleep_on(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static void part_thread_exec(char **args)
{
	pthread_t t;

	for (int i = 0; i < 10; i++)
		if (pthread_create(&t, NULL, sleep_on, NULL))
			_exit(95);
	if (pthread_create(&t, NULL, exec_from_thread, args))
		_exit(95);
	pause();
}

static void *nothing(void *arg)
{
	return arg;
}

static void part_threads(char **args)
{
	for (int i = atoi(args[0]); i > 0; i--) {
		pthread_t t;

		if (pthread_create(&t, NULL, nothing, NULL) || pthread_join(t, NULL))
			_exit(95);
	}
	_exit(0);
}

/* The first thread ends, another one ends the process. */
static void *exit_with(void *arg)
{
	usleep(1000);
	_exit(atoi(arg));
}

static void part_leader_ends(char **args)
{
	pthread_t t;

	if (pthread_create(&t, NULL, exit_with, args[0]))
		_exit(95);
	pthread_exit(NULL);
}

static void part_stop(char **args)
{
	tell('s');
	raise(SIGSTOP);
	tell('g');
	_exit(atoi(args[0]));
}

static void part_stdin(char **args)
{
	char c = 0;

	(void)args;
	_exit(read(STDIN_FILENO, &c, 1) == 1 ? c : 94);
}

static void part_uid(char **args)
{
	_exit(getuid() == (uid_t)atoi(args[0]) && geteuid() == getuid() ? 0 : 93);
}

static void on_signal(int sig)
{
	_exit(sig);
}

static void part_wait_signal(char **args)
{
	signal(SIGUSR2, on_signal);
	(void)args;
	tell('w');
	for (;;)
		pause();
}

/* Is anybody tracing this process? */
static bool is_traced(void)
{
	char line[128];
	FILE *f = fopen("/proc/self/status", "r");
	int pid = -1;

	while (f && pid < 0 && fgets(line, sizeof(line), f))
		sscanf(line, "TracerPid: %d", &pid);
	if (f)
		fclose(f);
	return pid;
}

static void part_daemon(char **args)
{
	if (fork())
		_exit(atoi(args[0]));
	setsid();
	if (fork())
		_exit(0);
	tell(is_traced() ? 'T' : 'd');
	_exit(0);
}

/* A process that is no thread but that ptrace calls a clone. */
static void part_clone(char **args)
{
	int status;
	pid_t pid = syscall(SYS_clone, 0L, NULL, NULL, NULL, NULL);

	if (!pid)
		part_exec(args);
	if (waitpid(pid, &status, __WALL) != pid || !WIFEXITED(status))
		_exit(92);
	_exit(WEXITSTATUS(status));
}

/* A library's constructor has forked: see fork.c of test_fork_in_constructor(). */
static void part_forked(char **args)
{
	int status = 0;

	if (getenv("HEAPTAP_IS_COPY"))
		_exit(atoi(args[0]));
	if (wait(&status) < 0 || !WIFEXITED(status))
		_exit(91);
	_exit(WEXITSTATUS(status));
}

/* Go on until stdin ends. */
static void part_hold(char **args)
{
	char c;

	(void)args;
	tell('h');
	do {
		free(malloc(33));
		fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK);
	} while (read(STDIN_FILENO, &c, 1) < 0 && errno == EAGAIN);
	tell('e');
	_exit(0);
}

static void ignore(int sig)
{
	(void)sig;
}

/* After the first signal threads begin and end, and signals come. */
static void part_busy(char **args)
{
	sigset_t set;
	int sig;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	tell('b');
	sigwait(&set, &sig);
	for (int i = 0; i < 20; i++) {
		pthread_t t;

		if (signal(SIGUSR1, ignore) == SIG_ERR || raise(SIGUSR1) ||
		    pthread_create(&t, NULL, nothing, NULL) || pthread_join(t, NULL))
			_exit(90);
	}
	tell('e');
	_exit(atoi(args[0]));
}

static const struct {
	const char *name;
	void (*play)(char **args);
} parts[] = {
	{ "busy", part_busy },	     { "exit", part_exit },
	{ "signal", part_signal },   { "tell", part_tell },
	{ "exec", part_exec },	     { "thread-exec", part_thread_exec },
	{ "threads", part_threads }, { "leader-ends", part_leader_ends },
	{ "stop", part_stop },	     { "stdin", part_stdin },
	{ "uid", part_uid },	     { "wait-signal", part_wait_signal },
	{ "daemon", part_daemon },   { "clone", part_clone },
	{ "forked", part_forked },   { "hold", part_hold },
};

static void test_status(void **state)
{
	struct world *w = *state;

	play(w, "exit", "0", NULL);
	assert_int_equal(w->status, 0);
	play(w, "exit", "77", NULL);
	assert_int_equal(WEXITSTATUS(w->status), 77);
	assert_int_equal(w->told_status, w->status);
	assert_int_equal(w->nr_exec, 2);
	assert_int_equal(w->nr_exiting, 2);
	assert_true(w->had_memory);
	play(w, "signal", "6", NULL);
	assert_true(WIFSIGNALED(w->status));
	assert_int_equal(WTERMSIG(w->status), SIGABRT);
	assert_int_equal(w->nr_exiting, 3);
	play(w, "signal", "9", NULL);
	assert_int_equal(WTERMSIG(w->status), SIGKILL);
}

/* Everything is told before code can run: first the image, then its libraries, constructors, main, the end. */
static void test_order(void **state)
{
	struct world *w = *state;
	const char *text;
	size_t maps;

	setenv("HEAPTAP_TELLS", "1", 1);
	play(w, "tell", NULL, NULL);
	unsetenv("HEAPTAP_TELLS");
	text = story(w);
	assert_int_equal(text[0], 'E');
	maps = strspn(text + 1, "M");
	/* When it is there, and when its libraries are. */
	assert_true(maps >= 2);
	assert_string_equal(text + 1 + maps, "cmX");
}

static void test_exec_errors(void **state)
{
	static const struct {
		const char *path;
		int err;
	} cases[] = {
		{ "/nowhere/at/all", -ENOENT },
		{ "no-such-program-in-path", -ENOENT },
		{ "/etc/passwd", -EACCES },
		{ "/tmp", -EACCES },
	};
	struct world *w = *state;
	struct launch_hooks hooks = { w, on_exec, on_mapped, on_exiting, NULL };
	struct launch *l;

	/* A directory that this user may not search would change the answer. */
	setenv("PATH", "/usr/bin:/bin", 1);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct launch_options o = { .argv = (char *[]){ (char *)cases[i].path, NULL } };

		assert_int_equal(launch_new(&l, &o, &hooks), cases[i].err);
	}
	assert_int_equal(w->nr_exec, 0);
	assert_int_equal(w->nr_exiting, 0);
	/* Nothing is left of it. */
	assert_int_equal(waitpid(-1, NULL, __WALL | WNOHANG), -1);
}

/* The message of launch_new() on stderr. */
static const char *complaint(const struct launch_options *o, int err)
{
	static char text[512];
	struct launch_hooks hooks = { NULL, on_exec, on_mapped, on_exiting, NULL };
	FILE *f = tmpfile();
	int old = dup(STDERR_FILENO);
	struct launch *l;
	size_t n;

	dup2(fileno(f), STDERR_FILENO);
	n = launch_new(&l, o, &hooks);
	dup2(old, STDERR_FILENO);
	close(old);
	assert_int_equal((int)n, err);
	rewind(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	fclose(f);
	return text;
}

/* The one line says which of the things asked for was wrong. */
static void test_says_what(void **state)
{
	struct launch_options o = { .argv = (char *[]){ "/bin/true", NULL }, .cwd = "/nowhere" };

	(void)state;
	assert_non_null(strstr(complaint(&o, -ENOENT), "run: /nowhere: No such file or directory"));
	o.cwd = NULL;
	o.user = "no-such-user";
	assert_non_null(strstr(complaint(&o, -EINVAL), "run: no-such-user: "));
	o.user = NULL;
	o.argv = (char *[]){ "/no/program", NULL };
	assert_non_null(strstr(complaint(&o, -ENOENT), "run: /no/program: No such file or directory"));
}

static void test_exec(void **state)
{
	struct world *w = *state;

	play(w, "exec", "exit", "5");
	assert_int_equal(WEXITSTATUS(w->status), 5);
	assert_int_equal(w->nr_exec, 2);
	assert_int_equal(w->nr_exiting, 1);
}

static void test_exec_from_thread(void **state)
{
	struct world *w = *state;

	for (int i = 0; i < 10; i++) {
		w->nr_exec = 0;
		play(w, "thread-exec", "exit", "6");
		assert_int_equal(WEXITSTATUS(w->status), 6);
		assert_int_equal(w->nr_exec, 2);
	}
}

static void test_threads(void **state)
{
	struct world *w = *state;

	play(w, "threads", "300", NULL);
	assert_int_equal(w->status, 0);
	assert_int_equal(w->nr_exiting, 1);
	play(w, "leader-ends", "8", NULL);
	assert_int_equal(WEXITSTATUS(w->status), 8);
	assert_int_equal(w->nr_exiting, 2);
}

/* A stopped program stays so, and nothing of it is lost. */
static void test_job_control(void **state)
{
	struct world *w = *state;
	struct launch_options o = { .argv = (char *[]){ "/proc/self/exe", "stop", "4", NULL } };
	struct launch *l = launched(w, &o);
	struct proc_stat stat = { 0 };

	launch_start(l);
	wait_told(w, l, 's');
	do {
		assert_false(launch_poll(l));
		assert_int_equal(proc_read_stat(&stat, launch_pid(l)), 0);
	} while (stat.state != 't' && stat.state != 'T');
	for (int i = 0; i < 100; i++) {
		assert_false(launch_poll(l));
		usleep(200);
	}
	assert_string_equal(story(w), "");
	kill(launch_pid(l), SIGCONT);
	until_end(w, l);
	assert_int_equal(WEXITSTATUS(w->status), 4);
	assert_string_equal(story(w), "gX");
}

static void test_stdin(void **state)
{
	struct world *w = *state;
	int old = dup(STDIN_FILENO), fds[2];

	assert_int_equal(pipe(fds), 0);
	dup2(fds[0], STDIN_FILENO);
	assert_int_equal(write(fds[1], "K", 1), 1);
	play(w, "stdin", NULL, NULL);
	dup2(old, STDIN_FILENO);
	close(old);
	close(fds[0]);
	close(fds[1]);
	assert_int_equal(WEXITSTATUS(w->status), 'K');
}

static void test_signal(void **state)
{
	struct world *w = *state;
	struct launch_options o = { .argv = (char *[]){ "/proc/self/exe", "wait-signal", NULL } };
	struct launch *l = launched(w, &o);

	launch_start(l);
	wait_told(w, l, 'w');
	launch_signal(l, SIGUSR2);
	until_end(w, l);
	assert_int_equal(WEXITSTATUS(w->status), SIGUSR2);
}

/* While nobody has time for its end, it goes on. */
static void test_attended(void **state)
{
	struct world *w = *state;
	struct launch_options o = { .argv = (char *[]){ "/proc/self/exe", "busy", "7", NULL } };
	struct launch *l = launched(w, &o);
	char c = 0;

	launch_start(l);
	wait_told(w, l, 'b');
	launch_signal(l, SIGUSR2);
	while (read(w->story, &c, 1) != 1 || c != 'e')
		launch_attend(l);
	for (int i = 0; i < 100; i++) {
		launch_attend(l);
		usleep(200);
	}
	assert_int_equal(w->nr_exiting, 0);
	until_end(w, l);
	assert_int_equal(w->nr_exiting, 1);
	assert_int_equal(WEXITSTATUS(w->status), 7);
}

/* Once left, another one may trace it; its end is still ours to see. */
static void test_left(void **state)
{
	struct world *w = *state;
	struct launch_options o = { .argv = (char *[]){ "/proc/self/exe", "wait-signal", NULL } };
	struct launch *l = launched(w, &o);
	struct proc_status status;

	launch_start(l);
	wait_told(w, l, 'w');
	assert_int_equal(proc_read_status(&status, launch_pid(l)), 0);
	assert_int_equal(status.tracer_pid, getpid());
	assert_true(launch_leave(l));
	assert_true(launch_leave(l));
	assert_int_equal(proc_read_status(&status, launch_pid(l)), 0);
	assert_int_equal(status.tracer_pid, 0);
	launch_signal(l, SIGUSR2);
	until_end(w, l);
	assert_int_equal(WEXITSTATUS(w->status), SIGUSR2);
	assert_int_equal(w->nr_exiting, 0);
}

/* Like test_left(), while the dynamic linker works: no breakpoint stays in the program. */
static void test_left_at_start(void **state)
{
	struct world *w = *state;
	struct launch_options o = { .argv = (char *[]){ "/proc/self/exe", "exit", "7", NULL } };
	struct launch *l = launched(w, &o);

	launch_start(l);
	assert_true(launch_leave(l));
	until_end(w, l);
	assert_true(WIFEXITED(w->status));
	assert_int_equal(WEXITSTATUS(w->status), 7);
}

static void test_user(void **state)
{
	struct world *w = *state;
	const struct passwd *pw = getpwnam("nobody");
	char uid[32];
	struct launch_options o = { .user = "nobody" };
	struct launch *l;

	if (geteuid() || !pw)
		skip_because("not root, or no user nobody");
	snprintf(uid, sizeof(uid), "%u", pw->pw_uid);
	o.argv = (char *[]){ "sh", "-c", "test `id -u` = $1", "sh", uid, NULL };
	l = launched(w, &o);
	launch_start(l);
	until_end(w, l);
	assert_int_equal(w->status, 0);
}

/* Children that go their own way are not held, nor traced. */
static void test_daemon(void **state)
{
	struct world *w = *state;
	char c = 0;

	play(w, "daemon", "3", NULL);
	assert_int_equal(WEXITSTATUS(w->status), 3);
	fcntl(w->story, F_SETFL, 0);
	while (c != 'd')
		assert_true(read(w->story, &c, 1) == 1 && c != 'T');
}

/* The image of another process is not the program's. */
static void test_clone(void **state)
{
	struct world *w = *state;

	play(w, "clone", "exit", "7");
	assert_int_equal(w->status, 7 << 8);
	assert_int_equal(w->nr_exec, 1);
	assert_int_equal(w->nr_exiting, 1);
}

static bool compiled(const char *dir, const char *source, const char *command)
{
	char text[512];
	FILE *f;

	if (system("cc --version >/dev/null 2>&1")) {
		print_message("# no C compiler\n");
		return false;
	}
	snprintf(text, sizeof(text), "%s/a.c", dir);
	f = fopen(text, "w");
	assert_non_null(f);
	fputs(source, f);
	fclose(f);
	snprintf(text, sizeof(text), "cd '%s' && %s", dir, command);
	assert_int_equal(system(text), 0);
	return true;
}

static void remove_dir(const char *dir)
{
	char text[512];

	snprintf(text, sizeof(text), "rm -rf '%s'", dir);
	assert_int_equal(system(text), 0);
}

/* While the dynamic linker works there is a breakpoint in the program: not in copies of it. */
static void test_fork_in_constructor(void **state)
{
	static const char source[] =
		"#include <stdlib.h>\n#include <unistd.h>\n"
		"__attribute__((constructor)) static void f(void)\n"
		"{ if (!getenv(\"HEAPTAP_FORKS\")) return; unsetenv(\"HEAPTAP_FORKS\");\n"
		"  if (!fork()) setenv(\"HEAPTAP_IS_COPY\", \"1\", 1); }\n";
	struct world *w = *state;
	char dir[] = "/tmp/heaptap-launch-XXXXXX", lib[64];

#ifdef __SANITIZE_ADDRESS__
	skip_because("the sanitizer's runtime does not start behind a preloaded library");
#endif
	assert_non_null(mkdtemp(dir));
	if (!compiled(dir, source, "cc -shared -fPIC -o fork.so a.c")) {
		remove_dir(dir);
		skip_because("no C compiler here");
	}
	snprintf(lib, sizeof(lib), "%s/fork.so", dir);
	setenv("LD_PRELOAD", lib, 1);
	setenv("HEAPTAP_FORKS", "1", 1);
	play(w, "forked", "9", NULL);
	unsetenv("LD_PRELOAD");
	unsetenv("HEAPTAP_FORKS");
	remove_dir(dir);
	assert_int_equal(w->status, 9 << 8);
}

static void test_missing_library(void **state)
{
	struct world *w = *state;
	char dir[] = "/tmp/heaptap-launch-XXXXXX", program[64];
	struct launch_options o = { .argv = (char *[]){ program, NULL } };
	struct launch *l;

	assert_non_null(mkdtemp(dir));
	if (!compiled(dir,
		      "#ifdef LIB\nint f(void) { return 0; }\n#else\nint f(void);\nint main(void) { return "
		      "f(); }\n"
		      "#endif\n",
		      "cc -DLIB -shared -fPIC -o libf.so a.c && cc -o a a.c ./libf.so && rm libf.so")) {
		remove_dir(dir);
		skip_because("no C compiler here");
	}
	snprintf(program, sizeof(program), "%s/a", dir);
	l = launched(w, &o);
	launch_start(l);
	until_end(w, l);
	remove_dir(dir);
	assert_int_equal(WEXITSTATUS(w->status), 127);
}

/* ---- death of the tracer ---- */

/* Take this as heaptap, and kill it at a random moment; if the program got as far as main, it goes on to its end. */
static void one_death(struct world *w, int round)
{
	struct launch_options o = { .argv = (char *[]){ "/proc/self/exe", "hold", NULL } };
	char *text;
	int hold[2], status;
	pid_t pid;

	assert_int_equal(pipe2(hold, O_CLOEXEC), 0);
	pid = fork();
	if (!pid) {
		struct launch *l;

		dup2(hold[0], STDIN_FILENO);
		close(hold[1]);
		l = launched(w, &o);
		launch_start(l);
		until_end(w, l);
		_exit(0);
	}
	close(hold[0]);
	usleep(rand() % 4000);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	if (round % 2)
		usleep(rand() % 1000);
	close(hold[1]);
	/* The pipe ends when all who hold it have: until then our own end must be shut. */
	close(STORY_FD);
	text = calloc(1, 256);
	fcntl(w->story, F_SETFL, 0);
	for (size_t n = 0; n < 255 && read(w->story, text + n, 1) == 1;)
		n++;
	if (strchr(text, 'h') && !strchr(text, 'e'))
		fail_msg("the program died with its tracer: %s", text);
	free(text);
	close(w->story);
}

static void test_tracer_dies(void **state)
{
	struct world *w = *state;

	(void)state;
	for (int i = 0; i < rounds(); i++) {
		int fds[2];

		one_death(w, i);
		assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
		assert_int_equal(dup2(fds[1], STORY_FD), STORY_FD);
		close(fds[1]);
		w->story = fds[0];
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_status, setup, teardown),
		cmocka_unit_test_setup_teardown(test_order, setup, teardown),
		cmocka_unit_test_setup_teardown(test_exec_errors, setup, teardown),
		cmocka_unit_test_setup_teardown(test_says_what, setup, teardown),
		cmocka_unit_test_setup_teardown(test_exec, setup, teardown),
		cmocka_unit_test_setup_teardown(test_exec_from_thread, setup, teardown),
		cmocka_unit_test_setup_teardown(test_threads, setup, teardown),
		cmocka_unit_test_setup_teardown(test_job_control, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stdin, setup, teardown),
		cmocka_unit_test_setup_teardown(test_signal, setup, teardown),
		cmocka_unit_test_setup_teardown(test_attended, setup, teardown),
		cmocka_unit_test_setup_teardown(test_left, setup, teardown),
		cmocka_unit_test_setup_teardown(test_left_at_start, setup, teardown),
		cmocka_unit_test_setup_teardown(test_user, setup, teardown),
		cmocka_unit_test_setup_teardown(test_daemon, setup, teardown),
		cmocka_unit_test_setup_teardown(test_clone, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fork_in_constructor, setup, teardown),
		cmocka_unit_test_setup_teardown(test_missing_library, setup, teardown),
		cmocka_unit_test_setup_teardown(test_tracer_dies, setup, teardown),
	};

	for (size_t i = 0; argc > 1 && i < ARRAY_SIZE(parts); i++)
		if (!strcmp(argv[1], parts[i].name))
			parts[i].play(argv + 2);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
