/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The first program of a guest: mounts what programs expect, runs the tests, says how they ended, powers off. The tests
 * are /guest.sh, or without a shell the commands in /tests, one a line; what those print is told apart by GUEST- lines.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_WORDS = 30 };

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
static int run(char *const *argv)
{
	pid_t tests = fork(), pid;
	int status = 0;

	if (tests == 0) {
		setsid();
		setenv("PATH", "/bin", 1);
		setenv("HOME", "/tmp", 1);
		execv(argv[0], argv);
		_exit(127);
	}
	do
		pid = wait(&status);
	while (pid > 0 && pid != tests);
	if (pid < 0)
		return 126;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* "cat FILE", so that reports come to the console without a shell. */
static int print_file(const char *path)
{
	char buf[4096];
	ssize_t n;
	int fd = open(path, O_RDONLY);

	if (fd < 0)
		return 1;
	fflush(stdout);
	while ((n = read(fd, buf, sizeof(buf))) > 0)
		if (write(STDOUT_FILENO, buf, n) != n)
			break;
	close(fd);
	return n != 0;
}

static int run_line(char *line)
{
	char *argv[MAX_WORDS + 1];
	int n = 0, status;

	line[strcspn(line, "\n")] = 0;
	printf("\nGUEST-BEGIN %s\n", line);
	for (char *word = strtok(line, " \n"); word && n < MAX_WORDS; word = strtok(NULL, " \n"))
		argv[n++] = word;
	argv[n] = NULL;
	if (!n)
		return 0;
	status = n == 2 && !strcmp(argv[0], "cat") ? print_file(argv[1]) : run(argv);
	printf("\nGUEST-STATUS %d\n", status);
	return status;
}

static int run_tests(void)
{
	char *const guest[] = { "/bin/bash", "/guest.sh", NULL };
	char line[1024];
	int nr = 0, failed = 0;
	FILE *tests;

	if (!access(guest[1], F_OK))
		return run(guest);
	tests = fopen("/tests", "r");
	while (tests && fgets(line, sizeof(line), tests)) {
		nr++;
		failed |= run_line(line);
	}
	return !nr || failed;
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
	/* Boards without a power switch end the emulator when they start again. */
	reboot(!strncmp(u.machine, "mips", 4) || !strcmp(u.machine, "ppc") ? RB_AUTOBOOT : RB_POWER_OFF);
	for (;;)
		pause();
}
