/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Cells that hold pointers of random programs, in each place where a program can keep a pointer. */
#include "tests/leaks/roots.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <string>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { NR_MEMORY = 1024, NR_FILES = 24, NR_TLS = 64, NR_KEYS = 40, NR_OWN_MODULE = 64 };

static void *globals[NR_WORKERS][NR_MEMORY];
static void **tables[NR_WORKERS], **old_tables[NR_WORKERS];
static __thread void *tls[NR_TLS];
static pthread_key_t keys[NR_KEYS];
static void **(*plug_cells)(size_t *nr), **(*plug_own_cells)(size_t *nr);
static bool has_timers;

static void *symbol_of(void *module, const char *name)
{
	void *p = dlsym(module, name);

	if (!p) {
		fprintf(stderr, "%s\n", dlerror());
		exit(99);
	}
	return p;
}

void roots_init(void)
{
	char path[4096];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);
	std::string name = std::string(path, len > 0 ? (size_t)len : 0);
	void *module;

	name = name.substr(0, name.rfind('/')) + "/plug_tls.so";
	module = dlopen(name.c_str(), RTLD_NOW);
	if (!module) {
		fprintf(stderr, "%s\n", dlerror());
		exit(99);
	}
	plug_cells = (void **(*)(size_t *))symbol_of(module, "plug_cells");
	plug_own_cells = (void **(*)(size_t *))symbol_of(module, "plug_own_cells");
	for (auto &key : keys)
		pthread_key_create(&key, NULL);
	for (auto &table : old_tables)
		table = (void **)calloc(NR_MEMORY, sizeof(*table));
	has_timers = access("/proc/self/timers", R_OK) == 0;
}

static void **map(int flags, int fd)
{
	void *p = mmap(NULL, NR_MEMORY * sizeof(void *), PROT_READ | PROT_WRITE, flags, fd, 0);

	return p == MAP_FAILED ? NULL : (void **)p;
}

static void **map_file(void)
{
	FILE *f = tmpfile();
	void **p = NULL;

	if (f && ftruncate(fileno(f), NR_MEMORY * sizeof(void *)) == 0)
		p = map(MAP_SHARED, fileno(f));
	if (f)
		fclose(f);
	return p;
}

void cells_init(struct cells *c, unsigned worker, void **stack)
{
	size_t nr;

	memset(c, 0, sizeof(*c));
	c->epoll = epoll_create1(EPOLL_CLOEXEC);
	tables[worker] = (void **)calloc(NR_MEMORY, sizeof(void *));
	c->of[IN_GLOBALS] = globals[worker];
	c->of[IN_HEAP] = tables[worker];
	c->of[IN_OLD] = old_tables[worker];
	c->of[IN_PRIVATE] = map(MAP_PRIVATE | MAP_ANONYMOUS, -1);
	c->of[IN_SHARED] = map(MAP_SHARED | MAP_ANONYMOUS, -1);
	c->of[IN_FILE] = map_file();
	for (int place = IN_GLOBALS; place <= IN_FILE; place++)
		c->nr[place] = c->of[place] ? NR_MEMORY : 0;
	c->of[IN_MODULE] = plug_cells(&nr) + worker * (nr / NR_WORKERS);
	c->nr[IN_MODULE] = nr / NR_WORKERS;
	c->nr[IN_TIMER] = has_timers ? NR_FILES : 0;
	c->nr[IN_EPOLL] = NR_FILES;
	c->of[IN_STACK] = stack;
	c->nr[IN_STACK] = NR_STACK_CELLS;
	c->of[IN_TLS] = tls;
	c->nr[IN_TLS] = NR_TLS;
	c->of[IN_MODULE_TLS] = plug_own_cells(&nr);
	c->nr[IN_MODULE_TLS] = NR_OWN_MODULE;
	c->nr[IN_KEY] = NR_KEYS;
}

bool cell_take(struct cells *c, enum place place, struct cell *cell)
{
	if (c->used[place] == c->nr[place])
		return false;
	*cell = { place, c->used[place]++ };
	return true;
}

/* Only the kernel keeps @p. The id by which the kernel is asked for it is not a pointer. */
static void put_timer(void *p, size_t index)
{
	static __thread timer_t timers[NR_FILES];
	struct sigevent event;

	if (!p) {
		timer_delete(timers[index]);
		return;
	}
	memset(&event, 0, sizeof(event));
	event.sigev_notify = SIGEV_SIGNAL;
	event.sigev_signo = SIGUSR2;
	event.sigev_value.sival_ptr = p;
	if (timer_create(CLOCK_MONOTONIC, &event, &timers[index]) != 0)
		_exit(98);
	memset((void *)&event, 0, sizeof(event));
	__asm__ volatile("" : : "r"(&event) : "memory");
}

static void put_epoll(int epoll, void *p, size_t index)
{
	static __thread int files[NR_FILES];
	struct epoll_event event;

	if (!p) {
		epoll_ctl(epoll, EPOLL_CTL_DEL, files[index], NULL);
		close(files[index]);
		return;
	}
	memset(&event, 0, sizeof(event));
	event.data.ptr = p;
	files[index] = eventfd(0, EFD_CLOEXEC);
	if (epoll_ctl(epoll, EPOLL_CTL_ADD, files[index], &event) != 0)
		_exit(98);
	memset((void *)&event, 0, sizeof(event));
	__asm__ volatile("" : : "r"(&event) : "memory");
}

void cell_put(struct cells *c, struct cell cell, void *p)
{
	switch (cell.place) {
	case IN_TIMER:
		put_timer(p, cell.index);
		break;
	case IN_EPOLL:
		put_epoll(c->epoll, p, cell.index);
		break;
	case IN_KEY:
		pthread_setspecific(keys[cell.index], p);
		break;
	default:
		c->of[cell.place][cell.index] = p;
	}
}
