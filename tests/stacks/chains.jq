# SPDX-License-Identifier: GPL-2.0-or-later
# The chains of a report as tests/targets/stack_truth.h tells them: END ALLOCATIONS BYTES FUNCTIONS.
def name: (.function // "*") | sub("[(<].*"; "") | if test("^(t_|main$)") then . else "*" end;
def collapsed: reduce .[] as $n ([]; if $n == "*" and .[-1] == "*" then . else . + [$n] end);
def stripped: if .[-1] == "*" then .[:-1] else . end;
[.processes[0].stacks[]
	| select(.allocs > 0)
	| { end: (.truncated // "complete"), allocs, bytes: .alloc_bytes,
	    chain: ([.frames[] | select(.inlined | not) | name] | collapsed | stripped) }
	| select(any(.chain[]; startswith("t_")))
	| .chain |= join(";")]
| group_by([.end, .chain])[]
| "chain \(.[0].end) \(map(.allocs) | add) \(map(.bytes) | add) \(.[0].chain)"
