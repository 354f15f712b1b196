/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Maps, programs and probes for the trials of caps_probe(). */
#include "user/source/caps_bpf.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "user/lib/cleanup.h"
#include "user/lib/proc.h"

/* Numbers of the kernel's interface that the headers of Debian 12 do not have yet (Linux 6.6). */
enum {
	ATTACH_UPROBE_MULTI = 48,   /* BPF_TRACE_UPROBE_MULTI */
	UPROBE_MULTI_RETURN = 1,    /* BPF_F_UPROBE_MULTI_RETURN */
	UPROBE_PMU_RETURN = 1,	    /* bit 0 of config: format/retprobe */
	HELPER_MAP_LOOKUP = 1,	    /* bpf_map_lookup_elem */
	HELPER_ATTACH_COOKIE = 174, /* bpf_get_attach_cookie, Linux 5.15 */
	MAP_TYPE_RING_BUFFER = 27,  /* BPF_MAP_TYPE_RINGBUF, Linux 5.8 */
	MAX_INSNS = 16,
};

/* BPF_LINK_CREATE's part of union bpf_attr, with the fields of uprobe_multi (Linux 6.6). */
struct multi_attr {
	u32 prog_fd, target_fd, attach_type, flags;
	u64 path, offsets, ref_ctr_offsets, cookies;
	u32 cnt, multi_flags, pid, zero;
};

/* The part of BPF_LINK_CREATE with the fields of perf_event (Linux 5.15). */
struct perf_link_attr {
	u32 prog_fd, target_fd, attach_type, flags;
	u64 cookie;
};

_Static_assert(sizeof(struct multi_attr) == 64 && offsetof(struct multi_attr, path) == 16,
	       "kernel interface");

static int sys_call_bpf(int cmd, const void *attr, size_t size)
{
	int ret = (int)syscall(SYS_bpf, cmd, attr, size);

	return ret < 0 ? -errno : ret;
}

/* All descriptors of bpf(2) are close-on-exec from birth. */
static int map_create(u32 type, u32 key_size, u32 value_size, u32 nr)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_type = type;
	attr.key_size = key_size;
	attr.value_size = value_size;
	attr.max_entries = nr;
	return sys_call_bpf(BPF_MAP_CREATE, &attr, sizeof(attr));
}

int caps_bpf_counters(u32 nr)
{
	return map_create(BPF_MAP_TYPE_ARRAY, sizeof(u32), sizeof(u64), nr);
}

int caps_bpf_counter_read(int counters, u32 slot, u64 *value)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_fd = (u32)counters;
	attr.key = (uintptr_t)&slot;
	attr.value = (uintptr_t)value;
	return sys_call_bpf(BPF_MAP_LOOKUP_ELEM, &attr, sizeof(attr));
}

#define INSN(c, d, s, o, i)                                                                                  \
	((struct bpf_insn){ .code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i) })

/* counter[slot] += cookie, or 1. Returns the number of instructions. */
static u32 program_write(struct bpf_insn *insn, int map_fd, u32 slot, bool has_cookie)
{
	u32 n = 0;

	if (has_cookie) {
		insn[n++] = INSN(BPF_JMP | BPF_CALL, 0, 0, 0, HELPER_ATTACH_COOKIE);
		insn[n++] = INSN(BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_7, BPF_REG_0, 0, 0);
	} else {
		insn[n++] = INSN(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_7, 0, 0, 1);
	}
	insn[n++] = INSN(BPF_ST | BPF_MEM | BPF_W, BPF_REG_10, 0, -4, (s32)slot);
	insn[n++] = INSN(BPF_LD | BPF_IMM | BPF_DW, BPF_REG_1, BPF_PSEUDO_MAP_FD, 0, map_fd);
	insn[n++] = INSN(0, 0, 0, 0, 0);
	insn[n++] = INSN(BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_2, BPF_REG_10, 0, 0);
	insn[n++] = INSN(BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_2, 0, 0, -4);
	insn[n++] = INSN(BPF_JMP | BPF_CALL, 0, 0, 0, HELPER_MAP_LOOKUP);
	insn[n++] = INSN(BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_0, 0, 1, 0);
	insn[n++] = INSN(BPF_STX | BPF_ATOMIC | BPF_DW, BPF_REG_0, BPF_REG_7, 0, BPF_ADD);
	insn[n++] = INSN(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, 0);
	insn[n++] = INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
	return n;
}

int caps_bpf_program(int counters, u32 slot, enum caps_bpf_link link, bool has_cookie)
{
	LIBBPF_OPTS(bpf_prog_load_opts, opts,
		    .expected_attach_type = link == CAPS_LINK_MULTI ? ATTACH_UPROBE_MULTI : 0);
	struct bpf_insn insns[MAX_INSNS];

	return bpf_prog_load(BPF_PROG_TYPE_KPROBE, NULL, "GPL", insns,
			     program_write(insns, counters, slot, has_cookie), &opts);
}

int caps_bpf_ring(void)
{
	return map_create(MAP_TYPE_RING_BUFFER, 0, 0, (u32)sysconf(_SC_PAGESIZE));
}

void caps_bpf_detach(struct caps_probe *p)
{
	if (p->link >= 0)
		close(p->link);
	if (p->perf >= 0)
		close(p->perf);
	if (p->prog >= 0)
		close(p->prog);
	*p = CAPS_NO_PROBE;
}

/* The program file as the kernel resolves it for us, also when it was deleted meanwhile. */
static const char own_file[] = "/proc/self/exe";

static int link_multi(int prog, u64 offset, pid_t pid, bool is_return)
{
	u64 cookie = CAPS_COOKIE;
	struct multi_attr attr = {
		.prog_fd = (u32)prog,
		.attach_type = ATTACH_UPROBE_MULTI,
		.path = (uintptr_t)own_file,
		.offsets = (uintptr_t)&offset,
		.cookies = (uintptr_t)&cookie,
		.cnt = 1,
		.multi_flags = is_return ? UPROBE_MULTI_RETURN : 0,
		.pid = (u32)pid,
	};

	return sys_call_bpf(BPF_LINK_CREATE, &attr, sizeof(attr));
}

static int open_perf(u64 offset, pid_t pid, bool is_return)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.config = is_return ? UPROBE_PMU_RETURN : 0,
		.uprobe_path = (uintptr_t)own_file,
		.probe_offset = offset,
		.disabled = 1,
	};
	char text[16];
	ssize_t n = proc_read_text("/sys/bus/event_source/devices/uprobe/type", text, sizeof(text));
	int fd;

	if (n < 0)
		return -ENODEV;
	attr.type = (u32)strtoul(text, NULL, 10);
	fd = (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Link the program to the event; before Linux 5.15 by ioctl, which knows no cookie. */
static int link_perf(struct caps_probe *p, bool has_cookie)
{
	struct perf_link_attr attr = {
		.prog_fd = (u32)p->prog,
		.target_fd = (u32)p->perf,
		.attach_type = BPF_PERF_EVENT,
		.cookie = CAPS_COOKIE,
	};

	if (has_cookie) {
		p->link = sys_call_bpf(BPF_LINK_CREATE, &attr, sizeof(attr));
		if (p->link < 0)
			return p->link;
	} else if (ioctl(p->perf, PERF_EVENT_IOC_SET_BPF, p->prog) != 0) {
		return -errno;
	}
	return ioctl(p->perf, PERF_EVENT_IOC_ENABLE, 0) != 0 ? -errno : 0;
}

int caps_bpf_attach(struct caps_probe *p, enum caps_bpf_link link, bool has_cookie, u64 offset, pid_t pid,
		    bool is_return)
{
	if (link == CAPS_LINK_MULTI) {
		p->link = link_multi(p->prog, offset, pid, is_return);
		return p->link < 0 ? p->link : 0;
	}
	p->perf = open_perf(offset, pid, is_return);
	return p->perf < 0 ? p->perf : link_perf(p, has_cookie);
}
