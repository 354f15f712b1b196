# SPDX-License-Identifier: GPL-2.0-or-later
# Compare the "expect" lines of a program ($told) with the report of heaptap. Prints one line of sums.
# jq -r -L tests/lib --rawfile told OUT -f judge.jq REPORT

include "report";

def verdicts: ["definite", "indirect", "possible", "reachable", "unsure"];
def lost: .definite + .indirect;

expanded
| .processes[0] as $p
| ($told | split("\n") | map(select(startswith("expect ")) | split(" ")
	| { function: .[4], verdict: .[1], blocks: (.[2] | tonumber), bytes: (.[3] | tonumber) })) as $expected
| ($expected | map({ (.function): .verdict }) | add) as $truth
# The verdicts of heaptap by function of the program.
| [$p.stacks[] | . as $s
	| ([.frames[].function // "" | sub("\\(.*"; "") | select($truth[.])] | first) as $f
	| { f: ($f // ""), v: (verdicts | map({ (.): $s[.].blocks }) | add), blocks: $s.live_blocks, bytes: $s.live_bytes,
	    sample: [.frames[0:6][] | .function // "?"] | join(" ") }] as $found
| ($found | group_by(.f) | map({ (.[0].f): {
	blocks: map(.blocks) | add, bytes: map(.bytes) | add,
	v: (map(.v) | . as $all | verdicts | map(. as $k | { ($k): ($all | map(.[$k]) | add) }) | add) } }) | add) as $have
# Both must have the same blocks, else the comparison below means nothing.
| ($expected | map(select(.blocks != ($have[.function].blocks // 0) or .bytes != ($have[.function].bytes // 0))
	| "\(.function): told \(.blocks) blocks \(.bytes) bytes, found \($have[.function].blocks) \($have[.function].bytes)")) as $differ
| def sum(f): map(f) | add // 0;
{
	blocks: ($expected | sum(.blocks)),
	lost: ($expected | map(select(.verdict == "definite" or .verdict == "indirect")) | sum(.blocks)),
	found: ($expected | map(select(.verdict == "definite" or .verdict == "indirect")) | sum($have[.function].v | lost)),
	wrong: ($expected | map(select(.verdict == "possible" or .verdict == "reachable")) | sum($have[.function].v | lost)),
	foreign: ($have[""].v // {} | lost // 0),
	unsure: ($expected | sum($have[.function].v.unsure)),
	definite_told: ($expected | map(select(.verdict == "definite")) | sum(.blocks)),
	definite_found: ($expected | sum($have[.function].v.definite)),
	possible_told: ($expected | map(select(.verdict == "possible")) | sum(.blocks)),
	possible_found: ($expected | sum($have[.function].v.possible)),
	differ: $differ,
	no_verdict: ($p.scan == null),
	notes: $p.notes,
	pause_ms: (($p.scan.pause_ns // 0) / 1e6),
	examples: ([$found[] | select((.v | lost) > 0 and ($truth[.f] // "reachable" | . == "possible" or . == "reachable"))
		| "\(.v | lost) \(.f) \(.sample)"] | .[0:5])
}
