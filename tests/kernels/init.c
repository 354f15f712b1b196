/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The first program of a guest: mounts what programs expect, runs the tests, says how they ended, powers off. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

static void mount_at(const char *type, const char *dir)
{
	mkdir(dir, 0755);
	if (mount(type, dir, type, 0, NULL))
		printf("init: %s: cannot mount\n", dir);
}

/* Without a console in the archive nobody would hear us. */
static void open_console(void)
{
	int fd = open("/dev/console", O_RDWR);

	if (fd < 0)
		return;
	for (int i = 0; i < 3; i++)
		dup2(fd, i);
	if (fd > 2)
		close(fd);
	setvbuf(stdout, NULL, _IOLBF, 0);
}

/*
 * Exit status, or 128 + signal. Orphans come to us too. Words NAME=VALUE of the kernel's command line are in our
 * environment, and so in the tests'.
 */
static int run_tests(void)
{
	char *const argv[] = { "bash", "/guest.sh", NULL };
	pid_t tests = fork(), pid;
	int status = 0;

	if (tests == 0) {
		setsid();
		setenv("PATH", "/bin", 1);
		setenv("HOME", "/tmp", 1);
		execv("/bin/bash", argv);
		_exit(127);
	}
	do
		pid = wait(&status);
	while (pid > 0 && pid != tests);
	if (pid < 0)
		return 126;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int main(void)
{
	struct utsname u;
	int status;

	mount_at("devtmpfs", "/dev");
	open_console();
	mount_at("proc", "/proc");
	mount_at("sysfs", "/sys");
	mount_at("tmpfs", "/tmp");
	uname(&u);
	printf("\nGUEST-KERNEL %s\n", u.release);
	status = run_tests();
	printf("\nGUEST-END %s %d\n", status ? "failed" : "ok", status);
	fflush(stdout);
	sync();
	usleep(100000); /* the console's last bytes */
	reboot(RB_POWER_OFF);
	for (;;)
		pause();
}
