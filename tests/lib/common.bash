# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# Shared by all end-to-end tests: run heaptap, compare its report with the output of the target and with the oracle.

bats_require_minimum_version 1.5.0

# Tests under sudo are those of root.
unset SUDO_UID SUDO_GID
# To start a program, or a copy of this shell, is what takes time here: so builtins where they can do it.
ROOT=$(cd "${BASH_SOURCE[0]%/*}/../.." && pwd)
: "${O:=$ROOT/build}"
: "${HEAPTAP:=$O/heaptap}"
: "${LIMIT_S:=300}" # for what hangs, not a measure of speed
: "${HEAPTAP_ROUNDS:=10}" # of tests that repeat something at random moments; make soak has 100
T=$O/tests/targets
ORACLE=$O/tests/oracle
REPORT_JQ=$(<"$ROOT/tests/lib/report.jq")

# HEAPTAP_BACKEND=ptrace, =inline or =auto runs all tests with that one, but those that ask for another. Without it BPF
# does: heaptap chooses, and may put no code into programs. =connect: BPF, by serve and connect.
by_connect() { [ "${HEAPTAP_BACKEND:-}" = connect ]; }

if [ -z "${HEAPTAP_BACKEND:-}" ]; then
	export HEAPTAP_NO_CODE=1
elif by_connect; then
	export HEAPTAP_NO_CODE=1
	# shellcheck source=tests/lib/connected.bash
	. "$ROOT/tests/lib/connected.bash"
else
	unset HEAPTAP_NO_CODE
	HEAPTAP_CONFIG=$BATS_RUN_TMPDIR/backend.conf
	[ -f "$HEAPTAP_CONFIG" ] || echo "backend $HEAPTAP_BACKEND" >"$HEAPTAP_CONFIG"
	export HEAPTAP_CONFIG
fi

# with_bpf_only REASON
with_bpf_only() { [ "${HEAPTAP_BACKEND:-}" != ptrace ] || skip "with BPF only: $1"; }

by_inline() { [ "${HEAPTAP_BACKEND:-}" = inline ]; }

# not_by_inline REASON: what the inline source cannot do (doc/inline.md), or what another source alone does
not_by_inline() { ! by_inline || skip "not by inline: $1"; }

# not_by_connect REASON
not_by_connect() { ! by_connect || skip "not by connect: $1"; }

# needs_target NAME
needs_target() { [ -x "$T/$1" ] || skip "$1 was not built here: see make targets"; }

# ---- processes ----

# Started by this test; ended with it.
STARTED=()

# start COMMAND...: in the background, output to $BATS_TEST_TMPDIR/NAME.out and .err; its pid is in $PID
start() {
	start_as "${1##*/}" "$@"
	# On a busy machine the child is this shell for a while.
	until has_executed "$PID"; do nap 0.01; done
}

# with_descriptors N COMMAND...: become it, by `run` or in the background, with N descriptors beside the standard ones; bats
# has more, a user's shell none
with_descriptors() {
	local n=$1 fd
	shift
	for fd in /proc/self/fd/*; do [ "${fd##*/}" -le 2 ] || eval "exec ${fd##*/}>&-"; done
	for ((fd = 3; fd < 3 + n; fd++)); do eval "exec $fd</dev/null"; done
	exec "$@"
}

# start_as NAME COMMAND...: that, with $NAME.out and $NAME.err; it may not have executed its program yet
start_as() {
	local name=$1
	shift
	# An earlier program of this name may have left output.
	: >"$BATS_TEST_TMPDIR/$name.out"
	: >"$BATS_TEST_TMPDIR/$name.err"
	# With job control, or a child in the background ignores SIGINT and SIGQUIT.
	set -m
	"$@" >"$BATS_TEST_TMPDIR/$name.out" 2>"$BATS_TEST_TMPDIR/$name.err" 3>&- &
	PID=$!
	set +m
	STARTED+=("$PID")
}

# nap SECONDS: no program is started
nap() {
	[ -p "$BATS_FILE_TMPDIR/nap" ] || mkfifo "$BATS_FILE_TMPDIR/nap"
	read -r -t "$1" _ <>"$BATS_FILE_TMPDIR/nap" || true
}

# has_executed PID: the child of this shell has executed its program, or has ended
has_executed() {
	local its own
	mapfile -d '' its 2>/dev/null <"/proc/$1/cmdline" || return 0
	mapfile -d '' own <"/proc/$BASHPID/cmdline"
	[ "${its[*]}" != "${own[*]}" ]
}

# is_of_other_test PID: the number may have a thread of another test by now, if its process has ended
is_of_other_test() {
	local vars
	mapfile -d '' -t vars 2>/dev/null <"/proc/$1/environ" || return 1
	[[ " ${vars[*]} " == *" BATS_TEST_TMPDIR="* && " ${vars[*]} " != *" BATS_TEST_TMPDIR=$BATS_TEST_TMPDIR "* ]]
}

# Take such numbers off the list of what this test has started.
forget_others() {
	local pid own=()
	for pid in "${STARTED[@]}"; do
		is_of_other_test "$pid" || own+=("$pid")
	done
	STARTED=("${own[@]}")
}

end_started() {
	local pid children
	forget_others
	for pid in "${STARTED[@]}"; do
		children=
		gone "$pid" || children=$(pgrep -P "$pid" || true) # the program of a run
		kill -KILL "$pid" $children 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
	STARTED=()
}

# wait_for COMMAND...: until it succeeds; fails after $LIMIT_S
wait_for() {
	local end=$((SECONDS + LIMIT_S))
	until "$@"; do
		[ "$SECONDS" -lt "$end" ] || { echo "waited in vain for: $*"; return 1; }
		nap 0.05
	done
}

# ended PID STATUS: a child of this shell has ended with this status
ended() {
	local status=0
	wait_for gone "$1" || return 1
	wait "$1" || status=$?
	[ "$status" -eq "$2" ] || { echo "status $status of $1, not $2"; return 1; }
}

# gone PID: no such process, or one that only its parent has not noticed yet
gone() {
	local lines
	mapfile -t lines 2>/dev/null <"/proc/$1/status" || return 0
	[[ ${#lines[@]} -eq 0 || " ${lines[*]:1:3}" == *" State:"?Z* ]]
}

is_running() { ! gone "$1"; }

says() { grep -q -- "$2" "$BATS_TEST_TMPDIR/$1.out"; }

switches() { awk '/^voluntary_ctxt/ { print $2 }' "/proc/$1/status"; }

has_slept() { [ "$(switches "$1")" -ge "$2" ]; }

# ticks PID: of the CPU, used so far
ticks() { awk '{ sub(/.*\) /, ""); print $12 + $13 }' "/proc/$1/stat"; }

has_used() { [ "$(ticks "$1")" -ge "$2" ]; }

# as_seen: what a terminal shows of standard input: a status line is overwritten by what comes after it
as_seen() { sed 's/\r*$//; s/.*\r//'; }

# unbroken: a text report in one line, with one blank where it had blanks and line breaks
unbroken() { tr -s ' \n' ' '; }

# works PID [TIMES]: until a program such as spin, which sleeps again and again, has gone on for a while
works() { wait_for has_slept "$1" $(($(switches "$1") + ${2:-100})); }

# unread PIPE: a pipe that nobody reads; open as 8
unread() {
	mkfifo "$1"
	exec 8<>"$1"
}

# is_stuck PID: a thread of heaptap waits for the reader of a pipe
is_stuck() { cat "/proc/$1"/task/*/wchan | grep -q pipe_write; }

# caught_up: heaptap, which records $TARGET, has read all that has happened so far, and has done what follows from it
caught_up() {
	"$HEAPTAP" mark "$TARGET" "it has read it"
	"$HEAPTAP" mark "$TARGET" "it has done it"
}

# spinning [ARGS]: a started spin target, its pid in $TARGET
spinning() {
	start "$T/spin" "$@"
	TARGET=$PID
	wait_for says spin ready
}

# stepping: a started step target that takes commands by step "..."
stepping() {
	coproc STEP { exec "$@" "${STEPPED:-$T/step}" 2>/dev/null 3>&-; }
	TARGET=$STEP_PID
	STARTED+=("$TARGET")
	step_answer ready
}

step_answer() {
	local answer
	read -r -t "$LIMIT_S" answer <&"${STEP[0]}"
	[ "$answer" = "$1" ]
}

step() {
	echo "$1" >&"${STEP[1]}"
	step_answer ok
}

# kinds [PROGRAM]: an instance of leak_kinds, or of a variant, that waits for a line by tell; its pid is in $TARGET
kinds() {
	local program=${1:-leak_kinds}
	out=$BATS_TEST_TMPDIR/$program.out
	rm -f "$BATS_TEST_TMPDIR/lines"
	mkfifo "$BATS_TEST_TMPDIR/lines"
	start bash -c "exec '$T/$program' wait <'$BATS_TEST_TMPDIR/lines' >'$out'"
	TARGET=$PID
	exec 7>"$BATS_TEST_TMPDIR/lines"
	wait_for grep -qs ready "$out"
}

tell() { echo >&7; }

built() {
	tell
	wait_for grep -q built "$out"
}

# ---- the target is as before ----

# text_differs PID: prints bytes of mapped code that are not what the file says
text_differs() { "$ORACLE/text-differs" "$1"; }

# A thread may have a tracer, or be stopped, when the first one is not.
is_untraced() { ! grep -qsE '^TracerPid:	[1-9]' /proc/"$1"/task/*/status; }
none_is_stopped() { ! grep -qsE '^State:	[Tt]' /proc/"$1"/task/*/status; }
has_own_code() {
	local differs
	differs=$(text_differs "$1") && [ -z "$differs" ]
}
has_probes() { [ -n "$(text_differs "$1")" ]; }

# untouched PID: runs, nobody traces it, its code is its file's
untouched() {
	is_running "$1" || { echo "target $1 does not run"; return 1; }
	# After kill -9 of heaptap its guardian needs a moment.
	wait_for is_untraced "$1" || { echo "target $1 is still traced"; return 1; }
	# A guard that is about to take the code out stops the target for a moment; what nobody traces stays stopped.
	wait_for none_is_stopped "$1" || { echo "a thread of target $1 is stopped"; return 1; }
	wait_for has_own_code "$1" || { echo "code of $1 differs: $(text_differs "$1")"; return 1; }
}

# ---- nothing of heaptap is left, after each test ----

is_heaptap() { [ "$(readlink "/proc/$1/exe" 2>/dev/null)" = "$HEAPTAP" ]; }

# helpers_left: PIDs of processes that heaptap has made in this test
helpers_left() {
	local environ pid
	for environ in $(grep -lsaF "HEAPTAP_RUN_DIR=$BATS_TEST_TMPDIR/run" /proc/[0-9]*/environ); do
		pid=${environ//[!0-9]/}
		! is_heaptap "$pid" || gone "$pid" || echo "$pid"
	done
}

no_helpers() {
	helpers_left >"$BATS_TEST_TMPDIR/helpers"
	[ ! -s "$BATS_TEST_TMPDIR/helpers" ]
}

# is_stopped PID: by the test, with SIGSTOP
is_stopped() { grep -q '^State:	T' "/proc/$1/status" 2>/dev/null; }

# nothing_is_left: heaptap, if it still runs, is killed; then its helpers end, targets are as before, no file is left
nothing_is_left() {
	local pid file
	forget_others
	for pid in "${STARTED[@]}"; do
		! is_heaptap "$pid" || { kill -KILL "$pid" && wait "$pid"; } 2>/dev/null || true
	done
	wait_for no_helpers || { ps -o pid,stat,args -p "$(helpers_left | paste -sd,)"; return 1; }
	for pid in "${STARTED[@]}"; do
		[[ $(readlink "/proc/$pid/exe" 2>/dev/null) == "$T"/* ]] || continue
		gone "$pid" || is_stopped "$pid" || untouched "$pid" || return 1
	done
	file=$(find "$BATS_TEST_TMPDIR" -name '.heaptap-*' -print -quit 2>/dev/null)
	[ -z "$file" ] || { echo "left: $file"; return 1; }
}

# ---- heaptap ----

# Says yes if this system can run programs at the same addresses each time. Set FIXED_ADDRESSES to the answer where
# 32-bit static programs are judged: their heap lies at one of few places, and one in some thousand runs a number of libc's
# (the size of a CPU's cache, say) is the address of a lost block, which then has a pointer.
addresses_can_be_fixed() { ! setarch -R true 2>/dev/null || echo yes; }

# traced [OPTIONS] -- PROGRAM...: run it; $status, $out, $err and $report (JSON) tell the rest
traced() {
	out=$BATS_TEST_TMPDIR/program.out
	err=$BATS_TEST_TMPDIR/heaptap.err
	report=$BATS_TEST_TMPDIR/report.json
	rm -f "$report"
	! by_connect || { connected_run "$@"; return; }
	status=0
	timeout -k 5 "$LIMIT_S" ${FIXED_ADDRESSES:+setarch -R} "$HEAPTAP" run -o "$report" "$@" >"$out" 2>"$err" 3>&- || status=$?
}

# losing allocs|frees [OPTIONS] -- PROGRAM...: traced, again until some of these were lost: a small ring loses mostly, not always
losing() {
	local what=$1 i
	shift
	for i in {1..20}; do
		traced "$@"
		[ "$(field ".lost.$what")" -eq 0 ] || return 0
	done
	echo "no $what were lost in $i runs"
	return 1
}

# attached [OPTIONS] PID...: start heaptap on running processes, until it says that it traces; its pid is in $TAP. A machine
# that does something else for a while costs no verdict.
attached() {
	report=$BATS_TEST_TMPDIR/report.json
	err=$BATS_TEST_TMPDIR/heaptap.err
	rm -f "$report"
	! by_connect || { connected_attach "$@"; return; }
	start "$HEAPTAP" attach --max-pause 60s -o "$report" "$@"
	TAP=$PID
	wait_for is_tracing "$TAP" || return 1
	! gone "$TAP" || cat "$err"
}

# attached_between [OPTIONS]: attach between two allocations of the target, and detach before the last one
attached_between() {
	stepping
	step "alloc 10 100"
	attached "$@" "$TARGET"
	has_probes "$TARGET"
	step "alloc 7 50"
	step "free 9"
	step "burst 1000"
	detach
	is .totals.allocs 1007
	is .totals.live_blocks 0
	is .totals.frees 1007
	is .totals.unknown_frees 2
	is .started false
	is .exit null
	[ "$(of_function step_allocates allocs)" -eq 7 ]
	nothing_lost
	untouched "$TARGET"
	step "alloc 5 10"
}

# is_tracing PID: heaptap has said so on stderr, or has ended
is_tracing() {
	local lines
	mapfile -t lines <"$BATS_TEST_TMPDIR/heaptap.err"
	[[ ${lines[*]} == *'attached to'* ]] || gone "$1"
}

# unheard [OPTIONS]: attach writes reports of $TARGET until nobody takes them; its PID is in $TAP, its messages in $err
unheard() {
	unread "$BATS_TEST_TMPDIR/pipe"
	err=$BATS_TEST_TMPDIR/heaptap.err
	start bash -c "exec '$HEAPTAP' attach $* --no-scan -n 0 -i 100ms $TARGET >'$BATS_TEST_TMPDIR/pipe' 2>'$err' 8>&-"
	TAP=$PID
	wait_for is_tracing "$TAP"
	wait_for is_stuck "$TAP"
	has_probes "$TARGET"
}

# has_many: a report of $TAP has many calls
has_many() { kill -USR1 "$TAP" && jq -e '.processes[0].totals.allocs > 100' "$report"; }

# detach [SIGNAL]: ask heaptap to stop; it must end well
detach() {
	kill "-${1:-INT}" "$TAP"
	ended "$TAP" 0 || { cat "$err"; return 1; }
}

# Keys of a report that tell of the run that made it, for del() of jq: reports of the same events differ in them, as
# recordings keep times to 256 ns and have no cost of their own.
OF_THE_RUN='.time_ns, .duration_ns, .cost'

# jq OPTION... FILTER [FILE...]: as jq(1). A filter of callers or of the timeline reads reports as report.jq expands them,
# and has its function.
jq() {
	local before=() whole=expanded
	while [[ ${1:-} == -* ]]; do
		case $1 in
		--arg | --argjson | --slurpfile | --rawfile) before+=("$1" "$2" "$3"); shift 3; continue ;;
		-f) set -- "$(<"$2")" "${@:3}"; break ;;
		-[!-]*[nR]* | -[nR]*) whole=. ;;
		-[!-]*s* | -s*) whole='map(expanded)' ;;
		esac
		before+=("$1")
		shift
	done
	case $1 in
	*stacks* | *timeline* | *expanded*) command jq "${before[@]}" "$REPORT_JQ $whole | ($1"$'\n)' "${@:2}" ;;
	*) command jq "${before[@]}" "$@" ;;
	esac
}

# field JQ: of the first process in the report
field() { jq -r ".processes[0]$1" "$report"; }

# is FIELD VALUE
is() {
	local have
	have=$(field "$1")
	[ "$have" = "$2" ] || { echo "report: $1 is $have, not $2; notes: $(jq -c '[.processes[].notes]' "$report")"; return 1; }
}

# fails COMMAND...: with 1 (2 is an error of grep). bats does not notice the status of "! command" in the middle of a test
fails() {
	local status=0
	"$@" || status=$?
	[ "$status" -eq 1 ] || { echo "status $status, not 1: $*"; return 1; }
}

# no_line PATTERN FILE: and the file is there
no_line() {
	local nr
	nr=$(grep -cE -- "$1" "$2") || [ -n "$nr" ]
	[ "$nr" -eq 0 ] || { echo "$nr lines of $1"; return 1; }
}

nothing_lost() {
	jq -e '[.processes[].lost | .allocs, .frees, .stacks, .other] | add == 0' "$report" >/dev/null ||
		{ echo "lost: $(jq -c '[.processes[].lost]' "$report")"; return 1; }
}

# ---- a target's own words ----

names_of_symbols() {
	[ -f "$BATS_FILE_TMPDIR/names" ] || "$ORACLE/count-read" --names >"$BATS_FILE_TMPDIR/names"
	awk -F'\t' -v s="$1" '$1 == s { print $2; found = 1 } END { if (!found) print s }' "$BATS_FILE_TMPDIR/names"
}

# of_function NAME FIELD: sum over all stacks with this function in them
of_function() {
	jq --arg f "$1" ".processes[0].stacks
		| map(select(any(.frames[]; (.function // \"\") | . == \$f or startswith(\$f + \"(\"))) | .$2) | add // 0" "$report"
}

# equal WHAT HAVE WANTED
equal() { [ "$2" = "$3" ] || { echo "$1: report says $2, the program $3"; wrong=1; }; }

# calls_of SYMBOL: without those of libc's own start in a static program, which $base (a report of "nothing") has
calls_of() {
	local name have
	name=$(names_of_symbols "$1")
	have=$(field ".functions[\"$name\"] // 0")
	[ -z "${base:-}" ] || have=$((have - $(jq ".processes[0].functions[\"$name\"] // 0" "$base")))
	echo "$have"
}

# as_told [KIND...]: each "expect" line in $out (of these kinds) holds in the report; one jq looks at all lines. calls: without
# those of libc's own start in a static program, which $base (a report of "nothing") has
as_told() {
	[ -f "$BATS_FILE_TMPDIR/names" ] || "$ORACLE/count-read" --names >"$BATS_FILE_TMPDIR/names"
	jq -n -r --slurpfile report "$report" --rawfile out "$out" --rawfile names "$BATS_FILE_TMPDIR/names" \
		--slurpfile base "${base:-/dev/null}" --arg kinds "${*:-calls live allocs failed unknown}" '
		def words($text; $by): $text | split("\n") | map(split($by));
		def functions($of): $of[0].processes[0].functions // {};
		def of_function($name): map(select(any(.frames[]; (.function // "") | . == $name or startswith($name + "("))));
		def differ($what; $have; $want):
			select($have != ($want | tonumber)) | "\($what): report says \($have), the program \($want)";
		($report[0] | expanded).processes[0] as $p
		| (words($names; "\t") | map(select(length == 2) | {key: .[0], value: .[1]}) | from_entries) as $names
		| words($out; " ") | map(select(.[0] == "expect" and (.[1] | IN($kinds | split(" ")[]))))
		| if length == 0 then "the program told nothing" else .[] end
		| if type == "string" then . else [.[0:4][], (.[4:] | join(" "))] as [$expect, $kind, $a, $b, $c]
		| def sum($of; field): $p.stacks | of_function($of) | map(field) | add // 0;
		if $kind == "calls" then ($names[$a] // $a) as $f
			| differ("calls of \($a)"; (functions($report)[$f] // 0) - (functions($base)[$f] // 0); $b)
		elif $kind == "live" then
			differ("live blocks of \($c)"; sum($c; .live_blocks); $a),
			differ("live bytes of \($c)"; sum($c; .live_bytes); $b)
		elif $kind == "allocs" then
			differ("allocations of \($c)"; sum($c; .allocs); $a),
			differ("allocated bytes of \($c)"; sum($c; .alloc_bytes); $b)
		elif $kind == "bytes" then differ("live bytes of \($b)"; sum($b; .live_bytes); $a)
		elif $kind == "failed" then differ("failed allocations"; $p.totals.failed_allocs; $a)
		elif $kind == "unknown" then differ("unknown frees"; $p.totals.unknown_frees; $a)
		else
			differ("\($kind) blocks of \($c)"; sum($c; .[$kind].blocks // 0); $a),
			differ("\($kind) bytes of \($c)"; sum($c; .[$kind].bytes // 0); $b)
		end end' >"$BATS_TEST_TMPDIR/differences" || return 1
	cat "$BATS_TEST_TMPDIR/differences"
	[ ! -s "$BATS_TEST_TMPDIR/differences" ]
}

# ---- the oracle ----

# counted [OPTIONS] -- PROGRAM...: traced, with the oracle preloaded (in heaptap too: run has no environment of its own)
counted() {
	rm -f "$BATS_TEST_TMPDIR"/count.*
	HEAPTAP_COUNT=$BATS_TEST_TMPDIR/count LD_PRELOAD=$ORACLE/count.so${PRELOAD:+:$PRELOAD} traced "$@"
}

# count_page PID: the oracle's file of its latest image
count_page() {
	local n=1 page=$BATS_TEST_TMPDIR/count.$1
	while [ -f "$BATS_TEST_TMPDIR/count.$1.$n" ]; do
		page=$BATS_TEST_TMPDIR/count.$1.$n
		n=$((n + 1))
	done
	echo "$page"
}

# own_calls: how report and oracle differ on a program that does nothing: calls that an allocator makes at its start
# by names of its own, which cannot be preloaded over
own_calls() {
	counted -q -- "$T/nothing"
	"$ORACLE/count-read" "$(count_page "$(field .pid)")" >"$BATS_TEST_TMPDIR/count.json" || return 1
	jq -n -c --slurpfile r "$report" --slurpfile c "$BATS_TEST_TMPDIR/count.json" '
		$r[0].processes[0] as $p | $c[0] as $o
		| { functions: ([($p.functions + $o.functions | keys_unsorted[]) as $f
			| { ($f): (($p.functions[$f] // 0) - ($o.functions[$f] // 0)) }] | add),
		    totals: (["allocs", "alloc_bytes", "frees"] | map(. as $k | { ($k): ($p.totals[$k] - $o.totals[$k]) }) | add) }'
}

# as_counted [OLDER_PAGE]: the report's numbers, less $own, are the oracle's (since OLDER_PAGE)
as_counted() {
	local page count
	page=$(count_page "$(field .pid)")
	count=$BATS_TEST_TMPDIR/count.json
	"$ORACLE/count-read" "$page" "$@" >"$count" || return 1
	jq -n -r --slurpfile r "$report" --slurpfile c "$count" --argjson since "$(($# > 0))" \
		--argjson own "${own:-{\}}" '
		def differ($what; $have; $want): select($have != $want) | "\($what): report \($have), oracle \($want)";
		$r[0].processes[0] as $p | $c[0] as $o
		| (($p.functions + $o.functions | keys_unsorted[]) as $f
			| differ("functions." + $f; ($p.functions[$f] // 0) - ($own.functions[$f] // 0); $o.functions[$f] // 0)),
		differ("totals.allocs"; $p.totals.allocs - ($own.totals.allocs // 0); $o.totals.allocs),
		differ("totals.alloc_bytes"; $p.totals.alloc_bytes - ($own.totals.alloc_bytes // 0); $o.totals.alloc_bytes),
		differ("totals.failed_allocs"; $p.totals.failed_allocs; $o.totals.failed_allocs),
		if $since == 1 then # blocks from before are known to the oracle only
			differ("totals.frees + unknown_frees"; $p.totals.frees + $p.totals.unknown_frees;
				$o.totals.frees + $o.totals.unknown_frees)
		else
			differ("totals.frees"; $p.totals.frees - ($own.totals.frees // 0); $o.totals.frees),
			differ("totals.unknown_frees"; $p.totals.unknown_frees; $o.totals.unknown_frees),
			differ("totals.live_blocks"; $p.totals.live_blocks; $o.totals.live_blocks),
			differ("totals.live_bytes"; $p.totals.live_bytes; $o.totals.live_bytes)
		end' >"$BATS_TEST_TMPDIR/differences"
	cat "$BATS_TEST_TMPDIR/differences"
	[ ! -s "$BATS_TEST_TMPDIR/differences" ]
}

# ---- every test ----

setup() {
	export HEAPTAP_RUN_DIR=$BATS_TEST_TMPDIR/run # other heaptaps of this machine are not asked
	STARTED=()
	[ -x "$HEAPTAP" ] || { echo "no heaptap at $HEAPTAP"; return 1; }
}

teardown() {
	local harm=0
	# A test that failed has said why.
	[ -z "${BATS_TEST_COMPLETED:-}" ] || nothing_is_left >"$BATS_TEST_TMPDIR/left" 2>&1 || harm=1
	end_started
	[ "$harm" -eq 0 ] || sed 's/^/# left behind: /' "$BATS_TEST_TMPDIR/left" >&3
	# HEAPTAP_WATCH=1, as in make soak: the test fails.
	[ "$harm" -eq 0 ] || [ -z "${HEAPTAP_WATCH:-}" ]
}
