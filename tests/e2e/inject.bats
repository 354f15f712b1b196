#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# System calls of heaptap fail, one in each run: a sample of what make check-inject tries (E5).
#
# bats file_tags=full

load ../lib/common

# injected SCENARIO ARGS...: all findings are printed
injected() {
	local scenario=$1
	shift
	command -v strace >/dev/null || skip "no strace"
	TMPDIR=$BATS_TEST_TMPDIR "$ROOT/tests/faults/inject.py" "$@" "$scenario" 3>&-
}

@test "inject: attach: one call of each kind fails: status, a word, the target untouched" {
	with_bpf_only "ptrace has a test of its own"
	injected attach -n 1 -e 1
}

@test "inject: attach by ptrace: one call of each kind fails: status, a word, the target untouched" {
	with_bpf_only "tried once is enough"
	injected ptrace -n 1 -e 1
}

@test "inject: report FILE: one call of each kind fails: the report or a word" {
	with_bpf_only "no source is asked"
	injected report -n 1 -e 1
}

@test "inject: connect, serve and record: one of the first allocations fails: a status and a word (A7)" {
	with_bpf_only "tried once is enough"
	injected connect -a -n 30
	injected serve -a -n 30
	injected record -a -n 44
}

@test "inject: a kernel without close_range(): the keeper of links ends them, and heaptap ends" {
	with_bpf_only "the keeper is for links"
	injected attach -n 1 -c close_range
}

@test "inject: a filter that forbids kill() does not keep heaptap waiting for its trial of ptrace" {
	with_bpf_only "tried once is enough"
	injected ptrace -n 1 -c kill
}

@test "inject: serve: a call that fails before it listens is named" {
	with_bpf_only "tried once is enough"
	injected serve -n 1 -c epoll_ctl
}

@test "inject: inline: a switch that cannot be written is named" {
	with_bpf_only "it has a source of its own"
	[ "$(uname -m)" = x86_64 ] || skip "the inline source is for x86_64"
	injected inline -n 1 -c pwrite64
}

# The process that changes the target is the only one of heaptap that comes so far.
@test "inject: inline: what puts the code in or takes it out is killed at any moment: the target goes on (A4)" {
	with_bpf_only "it has a source of its own"
	[ "$(uname -m)" = x86_64 ] || skip "the inline source is for x86_64"
	injected change -k -n 20
}
