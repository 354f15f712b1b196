/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Has a thread of the kernel, which looks for work of io_uring, and allocates until it is ended. */
#include <linux/io_uring.h>
#include <sys/syscall.h>

#include "tests/targets/truth.h"

int main(void)
{
	struct io_uring_params p = { .flags = IORING_SETUP_SQPOLL, .sq_thread_idle = 100000000 };
	long fd = syscall(SYS_io_uring_setup, 8, &p);

	printf("%s\n", fd < 0 ? "no io_uring" : "io_uring");
	fflush(stdout);
	for (;;) {
		free(malloc(100));
		usleep(1000);
	}
}
