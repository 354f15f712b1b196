/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The first program of a guest: mounts what programs expect, runs the tests, says how they ended, powers off. The tests
 * are /guest.sh, or without a shell the commands in /tests, one a line, or without that those that come over the
 * console; what they print is told apart by GUEST- lines. Some commands are words of our own, see words[].
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

enum { MAX_WORDS = 30, MAX_STARTED = 64 };

/* By "start": with a pipe to its standard input. */
static struct started {
	char name[32];
	pid_t pid;
	pid_t printer;
	int in;
	int status; /* as wait() has it; -1: it runs */
} started[MAX_STARTED];
static size_t nr_started;

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

static pid_t start(char *const *argv, int in, int out, int err)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	setsid();
	setenv("PATH", "/bin", 1);
	setenv("HOME", "/tmp", 1);
	if (in >= 0)
		dup2(in, STDIN_FILENO);
	if (out >= 0)
		dup2(out, STDOUT_FILENO);
	if (err >= 0)
		dup2(err, STDERR_FILENO);
	execv(argv[0], argv);
	_exit(127);
}

/*
 * Exit status, or 128 + signal. Orphans come to us too. Words NAME=VALUE of the kernel's command line are in our
 * environment, and so in the tests'.
 */
static int wait_for(pid_t tests)
{
	pid_t pid;
	int status = 0;

	do {
		pid = wait(&status);
		for (size_t i = 0; i < nr_started; i++)
			if (started[i].pid == pid)
				started[i].status = status;
	} while (pid > 0 && pid != tests);
	if (pid < 0)
		return 126;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int run(char *const *argv)
{
	return wait_for(start(argv, -1, -1, -1));
}

/* cat FILE: reports come to the console without a shell. */
static int print_file(char *const *argv)
{
	char buf[4096];
	ssize_t n;
	int fd = open(argv[1], O_RDONLY);

	if (fd < 0)
		return 1;
	fflush(stdout);
	while ((n = read(fd, buf, sizeof(buf))) > 0)
		if (write(STDOUT_FILENO, buf, n) != n)
			break;
	close(fd);
	return n != 0;
}

/* hex FILE: files of bytes too. */
static int print_hex(char *const *argv)
{
	FILE *f = fopen(argv[1], "r");
	int c, n = 0;

	if (!f)
		return 1;
	while ((c = getc(f)) != EOF)
		printf("%02x%s", c, ++n % 64 ? "" : "\n");
	fclose(f);
	return 0;
}

/* insmod FILE */
static int load_module(char *const *argv)
{
	int fd = open(argv[1], O_RDONLY | O_CLOEXEC), err;

	err = fd < 0 ? -1 : (int)syscall(SYS_finit_module, fd, "", 0);
	if (err)
		perror(argv[1]);
	if (fd >= 0)
		close(fd);
	return err != 0;
}

/* net NUMBER: of the first network card that is no loop, in a network of 24 bits */
static int set_up_net(char *const *argv)
{
	struct ifreq r = { 0 };
	struct sockaddr_in *addr = (struct sockaddr_in *)&r.ifr_addr;
	int fd = socket(AF_INET, SOCK_DGRAM, 0), i = 1, err = fd < 0;

	for (; !err && i < 16; i++) {
		r.ifr_ifindex = i;
		if (!ioctl(fd, SIOCGIFNAME, &r) && !ioctl(fd, SIOCGIFFLAGS, &r) &&
		    !(r.ifr_flags & IFF_LOOPBACK))
			break;
	}
	err = err || i == 16;
	addr->sin_family = AF_INET;
	err = err || inet_pton(AF_INET, argv[1], &addr->sin_addr) != 1 || ioctl(fd, SIOCSIFADDR, &r);
	addr->sin_addr.s_addr = htonl(0xffffff00);
	err = err || ioctl(fd, SIOCSIFNETMASK, &r) || ioctl(fd, SIOCGIFFLAGS, &r);
	r.ifr_flags |= IFF_UP;
	err = err || ioctl(fd, SIOCSIFFLAGS, &r);
	if (err)
		perror("net");
	if (fd >= 0)
		close(fd);
	return err;
}

/* on DEVICE PROGRAM...: it reads and writes there */
static int run_on(char *const *argv)
{
	int fd = open(argv[1], O_RDWR | O_CLOEXEC), status;
	struct termios raw;

	if (fd < 0) {
		perror(argv[1]);
		return 1;
	}
	if (!tcgetattr(fd, &raw)) {
		cfmakeraw(&raw);
		tcsetattr(fd, TCSANOW, &raw);
	}
	status = wait_for(start(argv + 2, fd, fd, -1));
	close(fd);
	return status;
}

/* A process that passes on whole lines, so that those of two programs stay apart. Returns its end of a pipe. */
static int open_printer(pid_t *pid)
{
	char line[4096];
	int ends[2];
	FILE *f;

	if (pipe2(ends, O_CLOEXEC))
		return -1;
	*pid = fork();
	if (*pid) {
		close(ends[0]);
		return ends[1];
	}
	close(ends[1]);
	f = fdopen(ends[0], "r");
	while (f && fgets(line, sizeof(line), f))
		fputs(line, stdout);
	exit(0);
}

/* start NAME PROGRAM...: in the background, until the guest ends; it shows no status line, as no terminal is there */
static int start_named(char *const *argv)
{
	struct started *s = &started[nr_started];
	int ends[2], out;

	if (nr_started == MAX_STARTED || pipe2(ends, O_CLOEXEC))
		return 1;
	snprintf(s->name, sizeof(s->name), "%s", argv[1]);
	s->in = ends[1];
	out = open_printer(&s->printer);
	s->pid = start(argv + 2, ends[0], out, out);
	s->status = -1;
	nr_started++;
	close(ends[0]);
	close(out);
	return 0;
}

/* The latest of the name, or -1. */
static int find_started(const char *name)
{
	for (size_t i = nr_started; i-- > 0;)
		if (!strcmp(started[i].name, name))
			return (int)i;
	return -1;
}

/* tell NAME WORDS...: a line for its standard input */
static int tell(char *const *argv)
{
	char line[1024] = "";
	int i = find_started(argv[1]);

	for (size_t k = 2; argv[k]; k++)
		snprintf(line + strlen(line), sizeof(line) - strlen(line), "%s%s", k > 2 ? " " : "", argv[k]);
	snprintf(line + strlen(line), sizeof(line) - strlen(line), "\n");
	return i < 0 || write(started[i].in, line, strlen(line)) < 0;
}

/* kill NAME NUMBER */
static int send_signal(char *const *argv)
{
	int i = find_started(argv[1]);

	return i < 0 || started[i].status >= 0 || kill(started[i].pid, atoi(argv[2]));
}

/* wait NAME: until all that it printed is out; its exit status is the word's */
static int wait_started(char *const *argv)
{
	int i = find_started(argv[1]), status;

	if (i < 0)
		return 125;
	if (started[i].status < 0)
		wait_for(started[i].pid);
	waitpid(started[i].printer, NULL, 0); /* of ours, or of nobody any more */
	status = started[i].status;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* status NAME: whether it runs and who traces it, as the kernel says */
static int tell_status(char *const *argv)
{
	char path[64], line[256];
	int i = find_started(argv[1]);
	FILE *f;

	if (i < 0)
		return 125;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)started[i].pid);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, "State:", 6) || !strncmp(line, "TracerPid:", 10))
			fputs(line, stdout);
	if (f)
		fclose(f);
	return !f;
}

static const struct {
	const char *name;
	int min_words;
	int (*run)(char *const *argv);
} words[] = {
	{ "cat", 2, print_file },     { "hex", 2, print_hex }, { "insmod", 2, load_module },
	{ "net", 2, set_up_net },     { "on", 3, run_on },     { "start", 3, start_named },
	{ "status", 2, tell_status }, { "tell", 3, tell },     { "kill", 3, send_signal },
	{ "wait", 2, wait_started },
};

static int run_words(int n, char *const *argv)
{
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(argv[0], words[i].name) && n >= words[i].min_words)
			return words[i].run(argv);
	return run(argv);
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
	status = run_words(n, argv);
	printf("\nGUEST-STATUS %d\n", status);
	return status;
}

/* Lines that come over the console: nothing of them may come back. */
static FILE *open_orders(void)
{
	struct termios t;

	if (tcgetattr(STDIN_FILENO, &t))
		return NULL;
	t.c_lflag &= ~(tcflag_t)(ECHO | ISIG);
	t.c_oflag &= ~(tcflag_t)OPOST;
	tcsetattr(STDIN_FILENO, TCSANOW, &t);
	printf("\nGUEST-READY\n");
	return stdin;
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
	if (!tests)
		tests = open_orders();
	while (tests && fgets(line, sizeof(line), tests) && strcmp(line, "end\n")) {
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
