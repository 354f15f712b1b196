/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * waits: a thread for each kind of system call that waits, and that Linux has fail with EINTR after a stop. No signal
 * comes but those that a command asks for.
 *
 * ready              all wait
 * > signal N         N signals with a handler end as many waits of one thread: "handled N"
 * > limits N         N waits with a limit of a second are over, of each kind that has one: "over"
 * > end              each wait gets what it waits for, and is over: "ended N, EINTR N"
 */
#include "tests/targets/truth.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>

enum { HOUR_S = 3600 };

/* A thread and its call. */
struct waiter {
	const char *name;
	long (*wait)(struct waiter *w, const struct timespec *limit);
	void (*wake)(struct waiter *w);
	const struct timespec *limit; /* of the call; sockets have their own */
	int fds[2];
	int sem;
	aio_context_t aio;
	pthread_t thread;
	long nr_eintr, nr_over; /* changed by the thread */
};

static volatile int is_end;
static volatile long nr_handled;

static const struct timespec hour = { .tv_sec = HOUR_S }, second = { .tv_sec = 1 };

static int in_ms(const struct timespec *limit)
{
	return limit ? (int)limit->tv_sec * 1000 : -1;
}

static long wait_epoll(struct waiter *w, const struct timespec *limit)
{
	struct epoll_event ev;

	return epoll_wait(w->fds[0], &ev, 1, in_ms(limit));
}

static long wait_epoll_mask(struct waiter *w, const struct timespec *limit)
{
	struct epoll_event ev;
	sigset_t none;

	sigemptyset(&none);
	return epoll_pwait(w->fds[0], &ev, 1, in_ms(limit), &none);
}

static void wake_epoll(struct waiter *w)
{
	eventfd_write(w->fds[1], 1);
}

static long wait_semaphore(struct waiter *w, const struct timespec *limit)
{
	struct sembuf take = { .sem_op = -1 };

	return semtimedop(w->sem, &take, 1, limit);
}

static void wake_semaphore(struct waiter *w)
{
	struct sembuf give = { .sem_op = 1 };

	semop(w->sem, &give, 1);
}

static long wait_signal(struct waiter *w, const struct timespec *limit)
{
	sigset_t set;

	(void)w;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	return sigtimedwait(&set, NULL, limit);
}

static void wake_signal(struct waiter *w)
{
	pthread_kill(w->thread, SIGUSR1);
}

static long wait_aio(struct waiter *w, const struct timespec *limit)
{
	struct io_event ev;

	return syscall(SYS_io_getevents, w->aio, 1L, 1L, &ev, limit);
}

static void wake_aio(struct waiter *w)
{
	static char byte;
	struct iocb cb = { .aio_lio_opcode = IOCB_CMD_PREAD,
			   .aio_fildes = (u_int32_t)w->fds[0],
			   .aio_buf = (u_int64_t)(uintptr_t)&byte,
			   .aio_nbytes = 1 };
	struct iocb *cbs[] = { &cb };

	if (syscall(SYS_io_submit, w->aio, 1L, cbs) != 1)
		abort();
}

static long wait_recv(struct waiter *w, const struct timespec *limit)
{
	char byte;

	(void)limit;
	return recv(w->fds[0], &byte, 1, 0);
}

static long wait_read(struct waiter *w, const struct timespec *limit)
{
	char byte;

	(void)limit;
	return read(w->fds[0], &byte, 1);
}

/* At no place of a file, as sockets allow it. */
static long wait_preadv2(struct waiter *w, const struct timespec *limit)
{
	char byte;
	struct iovec iov = { &byte, 1 };

	(void)limit;
	return preadv2(w->fds[0], &iov, 1, -1, 0);
}

static long wait_recvmmsg(struct waiter *w, const struct timespec *limit)
{
	char byte;
	struct iovec iov = { &byte, 1 };
	struct mmsghdr m = { .msg_hdr = { .msg_iov = &iov, .msg_iovlen = 1 } };

	(void)limit;
	return recvmmsg(w->fds[0], &m, 1, 0, NULL);
}

static void wake_socket(struct waiter *w)
{
	if (write(w->fds[1], "x", 1) != 1)
		abort();
}

/* The other end is full. */
static long wait_send(struct waiter *w, const struct timespec *limit)
{
	(void)limit;
	return send(w->fds[0], "x", 1, 0);
}

static long wait_pwritev2(struct waiter *w, const struct timespec *limit)
{
	struct iovec iov = { "x", 1 };

	(void)limit;
	return pwritev2(w->fds[0], &iov, 1, -1, 0);
}

static void wake_send(struct waiter *w)
{
	char bytes[4096];

	while (recv(w->fds[1], bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
}

static long wait_accept(struct waiter *w, const struct timespec *limit)
{
	(void)limit;
	return accept(w->fds[0], NULL, NULL);
}

static void wake_accept(struct waiter *w)
{
	struct sockaddr_un addr;
	socklen_t len = sizeof(addr);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	if (getsockname(w->fds[0], (struct sockaddr *)&addr, &len) ||
	    connect(fd, (struct sockaddr *)&addr, len))
		abort();
}

#define WAITER(what, by, woken_by, at_most)                                                                  \
	{                                                                                                    \
		.name = (what), .wait = (by), .wake = (woken_by), .limit = (at_most)                         \
	}

static struct waiter waiters[] = {
	WAITER("epoll_wait", wait_epoll, wake_epoll, &hour),
	WAITER("epoll_wait for ever", wait_epoll, wake_epoll, NULL),
	WAITER("epoll_wait of 1 s", wait_epoll, wake_epoll, &second),
	WAITER("epoll_pwait", wait_epoll_mask, wake_epoll, &hour),
	WAITER("semtimedop", wait_semaphore, wake_semaphore, &hour),
	WAITER("semop", wait_semaphore, wake_semaphore, NULL),
	WAITER("semtimedop of 1 s", wait_semaphore, wake_semaphore, &second),
	WAITER("sigtimedwait", wait_signal, wake_signal, &hour),
	WAITER("sigwaitinfo", wait_signal, wake_signal, NULL),
	WAITER("sigtimedwait of 1 s", wait_signal, wake_signal, &second),
	WAITER("io_getevents", wait_aio, wake_aio, &hour),
	WAITER("recv", wait_recv, wake_socket, NULL),
	WAITER("read", wait_read, wake_socket, NULL),
	WAITER("recvmmsg", wait_recvmmsg, wake_socket, NULL),
	WAITER("send", wait_send, wake_send, NULL),
	WAITER("preadv2", wait_preadv2, wake_socket, NULL),
	WAITER("pwritev2", wait_pwritev2, wake_send, NULL),
	WAITER("accept", wait_accept, wake_accept, NULL),
};

enum { NR = sizeof(waiters) / sizeof(*waiters) };

static void *waits(void *arg)
{
	struct waiter *w = arg;

	while (!is_end) {
		errno = 0;
		if (w->wait(w, w->limit) < 0 && errno == EINTR)
			__atomic_add_fetch(&w->nr_eintr, 1, __ATOMIC_SEQ_CST);
		else
			__atomic_add_fetch(&w->nr_over, 1, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

static void handle(int sig)
{
	(void)sig;
	nr_handled++;
}

/* A thread of its own: its signal has a handler, and comes in its waits only. */
static void *waits_for_handler(void *arg)
{
	struct waiter *w = arg;

	while (!is_end)
		if (wait_epoll_mask(w, NULL) < 0 && errno == EINTR)
			__atomic_add_fetch(&w->nr_eintr, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

static void limit_socket(int fd)
{
	const struct timeval tv = { .tv_sec = HOUR_S };

	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)) ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)))
		abort();
}

static void prepare_epoll(struct waiter *w)
{
	struct epoll_event ev = { .events = EPOLLIN };

	w->fds[0] = epoll_create1(0);
	w->fds[1] = eventfd(0, 0);
	if (epoll_ctl(w->fds[0], EPOLL_CTL_ADD, w->fds[1], &ev))
		abort();
}

static void prepare_socket(struct waiter *w)
{
	struct sockaddr_un any = { .sun_family = AF_UNIX };

	if (w->wait == wait_accept) {
		w->fds[0] = socket(AF_UNIX, SOCK_STREAM, 0);
		if (bind(w->fds[0], (struct sockaddr *)&any, sizeof(any.sun_family)) || listen(w->fds[0], 1))
			abort();
	} else if (socketpair(AF_UNIX, SOCK_STREAM, 0, w->fds)) {
		abort();
	}
	while (w->wake == wake_send && send(w->fds[0], "x", 1, MSG_DONTWAIT) == 1)
		;
	limit_socket(w->fds[0]);
}

static void prepare(struct waiter *w)
{
	if (w->wake == wake_epoll)
		prepare_epoll(w);
	else if (w->wake == wake_semaphore)
		w->sem = semget(IPC_PRIVATE, 1, 0600);
	else if (w->wake == wake_aio)
		w->fds[0] = open("/proc/self/exe", O_RDONLY);
	else if (w->wake != wake_signal)
		prepare_socket(w);
	if (w->wake == wake_aio && syscall(SYS_io_setup, 1L, &w->aio))
		abort();
}

static void start(struct waiter *w, void *(*body)(void *))
{
	prepare(w);
	if (pthread_create(&w->thread, NULL, body, w))
		abort();
}

static void send_signals(struct waiter *w, long nr)
{
	for (long i = 1; i <= nr; i++) {
		long before = __atomic_load_n(&w->nr_eintr, __ATOMIC_SEQ_CST);

		pthread_kill(w->thread, SIGUSR2);
		while (__atomic_load_n(&w->nr_eintr, __ATOMIC_SEQ_CST) == before)
			sched_yield();
	}
	printf("handled %ld, EINTR %ld\n", nr_handled, w->nr_eintr);
}

static void await_limits(long nr)
{
	for (int i = 0; i < NR; i++) {
		long first = __atomic_load_n(&waiters[i].nr_over, __ATOMIC_SEQ_CST);

		while (waiters[i].limit == &second &&
		       __atomic_load_n(&waiters[i].nr_over, __ATOMIC_SEQ_CST) < first + nr)
			usleep(1000);
	}
	puts("over");
}

static void end_all(struct waiter *handled)
{
	long nr_over = 0, nr_eintr = 0;

	is_end = 1;
	for (int i = 0; i < NR; i++) {
		waiters[i].wake(&waiters[i]);
		pthread_join(waiters[i].thread, NULL);
		nr_over += waiters[i].nr_over > 0;
		nr_eintr += waiters[i].nr_eintr;
		if (waiters[i].nr_eintr)
			printf("%s: EINTR %ld\n", waiters[i].name, waiters[i].nr_eintr);
		if (waiters[i].wake == wake_semaphore)
			semctl(waiters[i].sem, 0, IPC_RMID);
	}
	wake_epoll(handled);
	pthread_join(handled->thread, NULL);
	printf("ended %ld of %d, EINTR %ld\n", nr_over, NR, nr_eintr);
}

int main(void)
{
	struct waiter handled = WAITER("handled", wait_epoll_mask, wake_epoll, NULL);
	struct sigaction action = { .sa_handler = handle };
	char line[64];
	sigset_t set;
	long nr;

	truth_begin();
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	sigaction(SIGUSR2, &action, NULL);
	for (int i = 0; i < NR; i++)
		start(&waiters[i], waits);
	start(&handled, waits_for_handler);
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "signal %ld", &nr) == 1)
			send_signals(&handled, nr);
		else if (sscanf(line, "limits %ld", &nr) == 1)
			await_limits(nr);
		else
			break;
		fflush(stdout);
	}
	end_all(&handled);
	return 0;
}
