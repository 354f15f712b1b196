/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dlopen FOLDER [blocked [wait] | rounds N [short]]: loads and unloads a library that allocates, and one with an
 * allocator of its own, ten times or N times. With "short", then once one whose functions have no room for jumps.
 * With "blocked", all signals are blocked meanwhile, and a SIGCHLD, which nobody sent, is an error.
 * With "wait", the program says "ready" and begins when it can read a byte.
 * dlopen FOLDER continued: all signals are blocked and a SIGCONT is pending, which must be so afterwards, too.
 * dlopen FOLDER again: says "loaded" when the library with an allocator is there. A byte later that is unloaded and
 * loaded again, and the program says "again", and whether it is at the same place. A byte later it is used.
 */
#include "tests/targets/truth.h"

#include <dlfcn.h>
#include <signal.h>
#include <sys/signalfd.h>

static void use(const char *folder, const char *name, const char *function)
{
	char path[4096];
	void *lib, *(*f)(int);

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!lib) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	f = (void *(*)(int))dlsym(lib, function);
	if (!f || !f(5))
		exit(1);
	dlclose(lib);
}

/* Block all signals; returns a descriptor from which pending ones of the kind SIGCHLD can be read. */
static int block_signals(void)
{
	sigset_t all, child;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	return signalfd(-1, &child, SFD_NONBLOCK | SFD_CLOEXEC);
}

static void say(const char *word)
{
	puts(word);
	fflush(stdout);
}

static int use_continued(const char *folder)
{
	sigset_t pending;

	block_signals();
	kill(getpid(), SIGCONT);
	use(folder, "plug_own.so", "plug_own_allocates");
	sigpending(&pending);
	puts(sigismember(&pending, SIGCONT) ? "pending" : "not pending");
	return 0;
}

static int use_again(const char *folder)
{
	void *(*first)(int), *(*f)(int);
	char path[4096], byte;
	void *lib;

	snprintf(path, sizeof(path), "%s/plug_own.so", folder);
	lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	first = lib ? (void *(*)(int))dlsym(lib, "plug_own_allocates") : NULL;
	if (!first || !first(5))
		return 1;
	say("loaded");
	if (read(STDIN_FILENO, &byte, 1) != 1 || dlclose(lib))
		return 1;
	lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	f = lib ? (void *(*)(int))dlsym(lib, "plug_own_allocates") : NULL;
	if (!f)
		return 1;
	say(f == first ? "again: same place" : "again: another place");
	if (read(STDIN_FILENO, &byte, 1) != 1 || !f(7))
		return 1;
	expect("allocs 7 %d plug_own_allocates", 7 * 56);
	return 0;
}

int main(int argc, char **argv)
{
	struct signalfd_siginfo info;
	int fd = -1, rounds = 10;

	if (argc < 2)
		return 2;
	truth_begin();
	if (argc == 3 && !strcmp(argv[2], "again"))
		return use_again(argv[1]);
	if (argc == 3 && !strcmp(argv[2], "continued"))
		return use_continued(argv[1]);
	if (argc > 3 && !strcmp(argv[2], "rounds"))
		rounds = atoi(argv[3]);
	else if (argc > 2)
		fd = block_signals();
	if (argc > 3 && fd >= 0) {
		puts("ready");
		fflush(stdout);
		if (read(0, &info, 1) != 1)
			return 1;
	}
	for (int i = 0; i < rounds; i++) {
		use(argv[1], "plug_alloc.so", "plug_allocates");
		use(argv[1], "plug_own.so", "plug_own_allocates");
	}
	if (argc > 4)
		use(argv[1], "plug_short.so", "plug_short_allocates");
	if (fd >= 0 && read(fd, &info, sizeof(info)) > 0) {
		fprintf(stderr, "a SIGCHLD of PID %u\n", info.ssi_pid);
		return 1;
	}
	expect("live %d %d plug_allocates", rounds * 5, rounds * 5 * 72);
	expect("allocs %d %d plug_own_allocates", rounds * 5, rounds * 5 * 56);
	expect("live 0 0 plug_own_allocates");
	if (argc > 4)
		expect("allocs 5 240 plug_short_allocates");
	return 0;
}
