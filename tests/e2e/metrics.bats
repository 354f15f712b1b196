#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# --metrics: OpenMetrics and pprof profiles over HTTP.

load ../lib/common

setup() {
	export HEAPTAP_RUN_DIR=$BATS_TEST_TMPDIR/run
	STARTED=()
	cd "$BATS_TEST_TMPDIR" || return 1
	# Other tests have programs of the same name.
	SWELL=$BATS_TEST_TMPDIR/swell-$$
	cp "$T/swell" "$SWELL"
	grep -qa 'libmicrohttpd.so.12 is not there' "$HEAPTAP" || skip "built without libmicrohttpd"
	# The first python3 of the path may not be that of the distribution.
	for PYTHON in python3 /usr/bin/python3 none; do
		[ "$PYTHON" != none ] || skip "no python3-prometheus-client here"
		! "$PYTHON" -c 'import prometheus_client' 2>/dev/null || break
	done
}

teardown() { end_started; }

# said TEXT: heaptap has said so
said() { grep -q -- "$1" "$err"; }

# serving COMMAND [ARG...]: heaptap in the background with metrics at $ADDRESS (a free port); its pid is in $TAP, its address in $URL
serving() {
	start "$HEAPTAP" "$@" --metrics "${ADDRESS:-0}"
	TAP=$PID
	err=$BATS_TEST_TMPDIR/heaptap.err
	wait_for said 'metrics: http'
	URL=$(sed -n 's,.*metrics: \(http.*\)/metrics$,\1,p' "$err")
}

# swelling BYTES: a process that forgets so many bytes every 100 ms; its pid is in $TARGET
swelling() {
	start "$SWELL" "$1"
	TARGET=$PID
}

# page PYTHON: is it true of the page now? `value(name, **labels)` is the sum of the samples with these labels, `samples` are all
page() { "$PYTHON" "$ROOT/tests/lib/openmetrics.py" "$URL/metrics" "$1" >page.out 2>&1; }

@test "metrics: attach serves OpenMetrics that a strict parser takes, by process and caller" {
	swelling 65536
	serving attach "$TARGET" --scan
	wait_for page "value('heaptap_heap_live_bytes', pid='$TARGET') > 0"
	wait_for page "value('heaptap_caller_live_bytes', pid='$TARGET', function='malloc') > 0"
	page "all((value('heaptap_heap_live_blocks') == value('heaptap_heap_allocations_total') - value('heaptap_heap_releases_total'),
	           value('heaptap_heap_lost_events_total') == 0,
	           any(s.labels.get('caller', '').startswith('swell_forgets (') and ') < main' in s.labels['caller'] for s in samples),
	           value('heaptap_heap_verdict_timestamp_seconds') > 0))" || { cat page.out; false; }
	kill -INT "$TAP"
	ended "$TAP" 0
	untouched "$TARGET"
}

# bats test_tags=full
@test "metrics: system has rows of processes, growth, own cost, and verdicts of those that are traced" {
	not_by_inline "system has no inline source"
	swelling 65536
	serving system --comm "${SWELL##*/}" -n 5
	wait_for page "value('heaptap_process_growing', pid='$TARGET') == 1 and value('heaptap_process_growth_bytes_per_second') > 0"
	wait_for page "value('heaptap_heap_verdict_bytes', pid='$TARGET', verdict='definite') > 0"
	wait_for page "value('heaptap_caller_live_bytes', pid='$TARGET') > 0"
	page "value('heaptap_processes', state='traced') == 1 and value('heaptap_own_cpu_seconds_total') > 0"
	page "value('heaptap_own_resident_bytes') > 0 and value('heaptap_snapshot_timestamp_seconds') > 0"
	kill -INT "$TAP"
	ended "$TAP" 0
	untouched "$TARGET"
}

# has_asked: does the page, which comes into body, have all metrics of $asked?
has_asked() {
	local name
	curl -s "$URL/metrics" >body
	for name in $asked; do
		# Nothing here is in a container.
		[[ $name == heaptap_container_* ]] || grep -qE "^$name[ {]" body || { echo "no $name"; return 1; }
	done
}

# bats test_tags=full
@test "metrics: the Grafana dashboard asks for metrics and labels that the page has" {
	not_by_inline "system has no inline source"
	local board=$ROOT/packaging/grafana-dashboard.json name asked
	swelling 65536
	serving system --comm "${SWELL##*/}" -n 5
	wait_for page "value('heaptap_heap_verdict_bytes', pid='$TARGET', verdict='definite') > 0"
	asked=$(jq -r '.. | .expr? // empty' "$board" | grep -oE 'heaptap_[a-z_]+' | sort -u)
	[ "$(wc -l <<<"$asked")" -ge 10 ]
	# Some are there only when it is clear how fast the process grows.
	wait_for has_asked >said || { tail -n 2 said; return 1; }
	for name in $(grep -o 'heaptap_container_[a-z_]*' <<<"$asked"); do
		strings "$HEAPTAP" | grep -qx "$name"
	done
	for name in $(jq -r '.. | .legendFormat? // empty' "$board" | grep -oE '[a-z]+' | sort -u); do
		# Prometheus adds the first; the others are of containers.
		[[ $name =~ ^(instance|container|pod)$ ]] || grep -q "[{,]$name=\"" body || { echo "no label $name"; return 1; }
	done
	kill -INT "$TAP"
	ended "$TAP" 0
}

# bats test_tags=full
@test "metrics: the type of the page is that of OpenMetrics, and it ends with EOF" {
	swelling 4096
	serving attach "$TARGET"
	wait_for page True
	curl -s -D head "$URL/metrics" >body
	grep -qi '^content-type: application/openmetrics-text; version=1.0.0; charset=utf-8' head
	[ "$(tail -n 1 body)" = '# EOF' ]
	[ "$(curl -s -o none -w '%{http_code}' "$URL/nothing")" -eq 404 ]
	[ "$(curl -s -o none -w '%{http_code}' -X POST -d x "$URL/metrics")" -eq 405 ]
	curl -s "$URL/debug/pprof/" | grep -q /debug/pprof/heap
}

# status HOST: of an answer to a request for the page at $URL that names HOST
status() { curl -s -o why -w '%{http_code}' -H "Host: $1" "$URL/metrics"; }

# bats test_tags=full
@test "metrics: a web page by another name of loopback is refused, names of an open address are not (S13)" {
	swelling 4096
	serving attach "$TARGET"
	wait_for page True
	[ "$(status x.example)" -eq 403 ]
	[ "$(wc -l <why)" -eq 1 ]
	[ "$(status localhost:1)" -eq 200 ]
	kill -INT "$TAP"
	ended "$TAP" 0
	ADDRESS=0.0.0.0:0 serving attach "$TARGET"
	wait_for page True
	[ "$(status x.example)" -eq 200 ]
	kill -INT "$TAP"
	ended "$TAP" 0
}

# bats test_tags=full
@test "metrics: names of programs cannot break the page" {
	SWELL=$BATS_TEST_TMPDIR/$'a"\\\nb\xff\x1b'
	cp "$T/swell" "$SWELL"
	start "$SWELL" 65536
	TARGET=$PID
	serving attach "$TARGET"
	wait_for page "value('heaptap_heap_live_bytes', pid='$TARGET', comm='a\"\\\\\\\\\\\\x0ab\\\\xff\\\\x1b') > 0"
}

# bats test_tags=full
@test "metrics: profiles of a process, which pprof and go read" {
	swelling 65536
	serving attach "$TARGET" --scan
	wait_for page "value('heaptap_heap_verdict_bytes', pid='$TARGET', verdict='definite') > 0"
	for kind in heap allocs leaks; do
		curl -sf "$URL/debug/pprof/$kind?pid=$TARGET" -o "$kind.pb.gz"
		python3 "$ROOT/tests/lib/pprof.py" "$kind.pb.gz" >"$kind.txt"
		grep -q swell_forgets "$kind.txt"
	done
	[ "$(curl -s -o why -w '%{http_code}' "$URL/debug/pprof/heap?pid=1")" -eq 404 ]
	grep -q 'no such process is traced' why
	[ "$(curl -s -o why -w '%{http_code}' "$URL/debug/pprof/heap?pid=x")" -eq 400 ]
	[ "$(curl -s -o why -w '%{http_code}' "$URL/debug/pprof/heap?seconds=3")" -eq 400 ]
	[ "$(curl -s -o why -w '%{http_code}' "$URL/debug/pprof/heap?container=x")" -eq 404 ]
	if command -v go >/dev/null; then
		HOME=$PWD go tool pprof -top "$URL/debug/pprof/heap?pid=$TARGET" >top.txt 2>go.err
		grep -q swell_forgets top.txt
		HOME=$PWD go tool pprof -top "$URL/debug/pprof/leaks" >top.txt 2>go.err
		grep -q 'Type: leak_space' top.txt
	fi
	kill -INT "$TAP"
	ended "$TAP" 0
}

# has_lost: the profile of leaks, which has new verdicts after 10 s, has blocks of $TARGET
has_lost() { curl -s "$URL/debug/pprof/leaks" | zcat 2>/dev/null | grep -qa swell_forgets; }

@test "metrics: the profile of leaks has those of the metrics, also after a report" {
	swelling 65536
	serving attach --scan -i 500ms -o r%n.json "$TARGET"
	for n in 2 4; do
		wait_for test -s "r$n.json"
		wait_for has_lost
		wait_for page "value('heaptap_heap_verdict_bytes', verdict='definite') > 0"
	done
}

# of_verdict VERDICT: bytes and blocks of $TARGET on the page; and in the profile of leaks
of_verdict() {
	page "print('have', *(int(value('heaptap_heap_verdict_' + what, pid='$TARGET', verdict='$1')) for what in ('bytes', 'blocks')))" ||
		sed -n 's/^have //p' page.out
}
of_profile() {
	jq -r --arg v "$1" '[.samples[] | select(.labels.verdict == $v) | .values] |
		"\([.[].leak_space] | add // 0) \([.[].leak_objects] | add // 0)"' leaks.txt
}

@test "metrics: the profile of leaks and the page have the same bytes and blocks" {
	local verdict
	kinds
	serving attach "$TARGET" --scan
	wait_for said 'attached to'
	built
	page_has_verdict() { [ "$(of_verdict definite)" = "1442 10" ]; }
	wait_for page_has_verdict
	curl -sf "$URL/debug/pprof/leaks?pid=$TARGET" -o leaks.pb.gz
	python3 "$ROOT/tests/lib/pprof.py" leaks.pb.gz >leaks.txt
	for verdict in definite indirect; do
		[ "$(of_profile "$verdict")" = "$(of_verdict "$verdict")" ]
	done
	[ "$(of_profile indirect)" = "848 13" ]
	kill -INT "$TAP"
	ended "$TAP" 0
}

@test "metrics: leaks without verdicts are refused with the reason" {
	swelling 65536
	serving attach "$TARGET"
	[ "$(curl -s -o why -w '%{http_code}' "$URL/debug/pprof/leaks")" -eq 404 ]
	grep -q 'start heaptap with --scan' why
}

# bats test_tags=full
@test "metrics: a thousand slow clients neither stop scrapes nor tracing" {
	swelling 65536
	serving attach "$TARGET"
	wait_for page "value('heaptap_heap_live_bytes') > 0"
	start python3 "$ROOT/tests/lib/slow_clients.py" "$URL" 1100
	wait_for says python3 ready
	page "value('heaptap_heap_live_bytes') > 0"
	curl -sf "$URL/debug/pprof/heap" -o heap.pb.gz
	kill -INT "$TAP"
	ended "$TAP" 0
	untouched "$TARGET"
}

# bats test_tags=full
@test "metrics: the helper has no rights, and its end does not end tracing" {
	swelling 65536
	serving attach "$TARGET"
	wait_for page True
	helper=$(pgrep -P "$TAP" heaptap-metrics)
	grep -Eq '^CapEff:[[:space:]]0+$' "/proc/$helper/status"
	grep -Eq '^CapPrm:[[:space:]]0+$' "/proc/$helper/status"
	grep -Eq '^Uid:[[:space:]]65534[[:space:]]65534' "/proc/$helper/status"
	grep -Eq '^Seccomp:[[:space:]]2' "/proc/$helper/status"
	kill -KILL "$helper"
	wait_for said 'the helper process has ended'
	has_probes "$TARGET"
	kill -INT "$TAP"
	ended "$TAP" 0
	untouched "$TARGET"
}

# bats test_tags=full
@test "metrics: a killed heaptap leaves no helper" {
	swelling 65536
	serving attach "$TARGET"
	wait_for page True
	helper=$(pgrep -P "$TAP" heaptap-metrics)
	kill -KILL "$TAP"
	wait_for gone "$helper"
	wait_for untouched "$TARGET"
}

# bats test_tags=full
@test "metrics: scrapes go on while heaptap ends" {
	swelling 65536
	serving attach "$TARGET"
	wait_for page True
	# Stopped, heaptap answers nothing; the helper does.
	kill -STOP "$TAP"
	page "value('heaptap_own_cpu_seconds_total') > 0"
	kill -CONT "$TAP"
	kill -INT "$TAP"
	ended "$TAP" 0
	run -7 curl -s "$URL/metrics"
}

# bats test_tags=full
@test "metrics: a UNIX socket, and addresses that cannot be" {
	swelling 65536
	start "$HEAPTAP" attach "$TARGET" --metrics "unix:$PWD/dir/socket"
	TAP=$PID
	err=$BATS_TEST_TMPDIR/heaptap.err
	wait_for said 'at the socket'
	fetched() { curl -sf --unix-socket dir/socket http://heaptap/metrics | grep -q heaptap_build_info; }
	wait_for fetched
	[ "$(stat -c %a dir/socket)" = 600 ]
	kill -INT "$TAP"
	ended "$TAP" 0
	[ ! -e dir/socket ]
	run -2 "$HEAPTAP" attach "$TARGET" --metrics nonsense
	[[ $output == *'needs PORT'* ]]
	run -2 "$HEAPTAP" system --metrics 99999
	run -3 "$HEAPTAP" attach "$TARGET" --metrics 192.0.2.1:9
	untouched "$TARGET"
}

# ---- push ----

# taking [STATUS]: a server that takes profiles; its address is in $SERVER, what it got in $got
taking() {
	[ "$(strings "$HEAPTAP" | grep -cx 'libcurl.so.4')" -gt 0 ] || skip "built without libcurl"
	start python3 "$ROOT/tests/lib/push_server.py" "$@"
	got=$BATS_TEST_TMPDIR/python3.out
	wait_for says python3 '^[0-9]'
	SERVER=http://127.0.0.1:$(head -n 1 "$got")
}

# pushed URL: a trace of $TARGET has been sent there, after 30 pauses, in each of which a block is forgotten
pushed() {
	swelling 65536
	start "$HEAPTAP" attach "$TARGET" --push "$1"
	TAP=$PID
	err=$BATS_TEST_TMPDIR/heaptap.err
	wait_for said 'attached to 1 process'
	works "$TARGET" 30
	kill -INT "$TAP"
	ended "$TAP" 0
	untouched "$TARGET"
}

@test "metrics: --push sends the last profile to Pyroscope's ingest when tracing ends" {
	taking
	pushed "$SERVER/ingest"
	tail -n +2 "$got" | jq -e '.path == "/ingest" and .query.name == "heaptap" and .query.format == "pprof"'
	tail -n +2 "$got" | jq -e '(.query.until | tonumber) >= (.query.from | tonumber) and (.query.from | tonumber) > 1700000000'
	tail -n +2 "$got" | jq -e '.types.leak_space.units == "bytes" and .parts == ["profile", "sample_type_config"]'
	python3 "$ROOT/tests/lib/pprof.py" 1.pb.gz | grep -q swell_forgets
	fails grep -q push: "$err"
}

@test "metrics: --push otlp:// sends a profile for each type of value to a receiver of OpenTelemetry" {
	taking
	pushed "otlp${SERVER#http}"
	tail -n +2 "$got" | jq -e '.path == "/v1development/profiles" and .query == ""'
	python3 "$ROOT/tests/lib/otlp.py" 1.otlp.gz >otlp.json
	jq -e --argjson pid "$TARGET" --arg comm "$(cat "/proc/$TARGET/comm")" \
		'.[0].attributes | .["process.pid"] == $pid and .["service.name"] == $comm' otlp.json
	jq -e '[.[0].profiles[] | .type + "/" + .unit] == ["alloc_objects/count", "alloc_space/bytes", "inuse_objects/count",
		"inuse_space/bytes", "leak_objects/count", "leak_space/bytes"] and .[0].scope == "heaptap"' otlp.json
	jq -e '[.[0].profiles[] | select(.type == "leak_objects") | .samples[]
		| select([.frames[].lines[].function] | index("swell_forgets")) | .value] | add >= 29' otlp.json
	jq -e '[.[0].profiles[0].samples[].frames[] | select(.lines[0].function == "swell_forgets")
		| .build_id["process.executable.build_id.gnu"] | length] | length > 0 and all(. == 40)' otlp.json
	fails grep -q push: "$err"
}

# bats test_tags=full
@test "metrics: a server that refuses profiles, or is not there, is said, and nothing else changes" {
	taking 503
	swelling 65536
	for url in "$SERVER/ingest" http://127.0.0.1:1/ingest "otlp${SERVER#http}/v1/profiles"; do
		start "$HEAPTAP" attach "$TARGET" -t 100ms --push "$url"
		ended "$PID" 0
		grep -q "push: $url: " "$BATS_TEST_TMPDIR/heaptap.err"
	done
	run -2 "$HEAPTAP" attach "$TARGET" --push ftp://x/
	[[ $output == *'needs http://, https://, otlp:// or otlps://'* ]]
	untouched "$TARGET"
}

# has_callers: the data of the page have callers of $TARGET
has_callers() { curl -fsS "$URL/data?pid=$TARGET" | jq -e '.live and .processes[0].callers.nr > 0' >/dev/null; }

# verdict_time: when the verdict of the page was found, in ns
verdict_time() { jq -r '.time_ns - .verdict_age_ns' data.json; }

# has_held: the verdict of the page has blocks of $TARGET that are held
has_held() { curl -fsS -o data.json "$URL/data" && jq -e '.processes[0].scan.reachable.blocks > 900' data.json >/dev/null; }

# bats test_tags=full
@test "metrics: a process that grows after its first verdict has a new one at once on its page" {
	STEPPED=$T/elsewhere stepping
	serving attach "$TARGET" --scan
	curl -fsS -o data.json "$URL/data"
	jq -e '.processes[0].totals.live_blocks == 0 and .verdict_age_ns >= 0' data.json
	first=$(verdict_time)
	step "held 1000000"
	wait_for has_held
	# Without growth it would be a minute.
	[ "$(($(verdict_time) - first))" -lt 60000000000 ]
}

@test "metrics: the page of an attach without --scan names heaptap scan, and has its verdict from then on" {
	stepping
	serving attach "$TARGET"
	wait_for said 'attached to 1 process'
	step "alloc 5 100"
	step "lose 5"
	page_says() { curl -fsS "$URL/data" | jq -e --arg said "$1" '.processes[0].verdict | startswith($said)' >/dev/null; }
	wait_for page_says "no leak verdict: the memory was not searched (heaptap scan $TARGET does that)"
	[ "$(curl -s -o none.txt -w '%{http_code}' "$URL/debug/pprof/leaks")" != 200 ]
	grep -q '^no leak verdict so far: heaptap scan PID finds one, or start heaptap with --scan' none.txt
	"$HEAPTAP" scan -o scan.json "$TARGET"
	wait_for page_says "$(jq -r '.processes[0].verdict' scan.json)"
	curl -fsS "$URL/data" | jq -e '.verdict_age_ns > 0 and .processes[0].scan.definite.bytes == 500'
	wait_for page "value('heaptap_heap_verdict_bytes', pid='$TARGET', verdict='definite') == 500"
	curl -fsS -o leaks.pb.gz "$URL/debug/pprof/leaks"
	# A later report has a verdict of its own, or none.
	kill -USR1 "$TAP"
	wait_for page_says 'no leak verdict: '
}

# has_row JQ: is it true of the row of $TARGET on the page of system?
has_row() { curl -fsS -o row.json "$URL/data" && jq -e ".processes[] | select(.pid == $TARGET) | $1" row.json >/dev/null; }

# bats test_tags=full
@test "metrics: attach serves a page that follows the process; system one of all, with links to those that are traced" {
	swelling 65536
	serving attach "$TARGET" --scan
	# The first verdict may be of a moment before anything was lost.
	wait_for has_lost
	wait_for has_callers
	[ "$(curl -s -o /dev/null -w '%{http_code}' -H 'Host: example.com' "$URL/data")" = 403 ]
	[ "$(curl -s -o /dev/null -w '%{http_code}' "$URL/data?pid=1")" = 404 ]
	# Whoever looks has a verdict, and how old it may be.
	curl -s "$URL/data" | jq -e '.verdict_age_ns > 0 and .processes[0].scan != null and (.processes[0].verdict | startswith("leaks "))'
	if command -v chromedriver >/dev/null; then
		# The page follows, also where somebody has chosen what is shown; not while it is paused.
		python3 "$ROOT/tests/lib/page.py" "$URL/" eval 'document.querySelector("#live").textContent' \
			eval 'window.first = report.processes[0].totals.allocs, 0' click '[data-id=calls]' click '[data-id=function]' \
			wait 'report.processes[0].totals.allocs > window.first + 3 && state.process.data === report.processes[0]' \
			eval 'state.kind.id' eval 'state.group' eval 'document.querySelector("#table").dataset.rows > 0' \
			click '#live' eval 'document.querySelector("#live").textContent' >got
		printf '%s\n' '"\u25cf live"' 0 '"calls"' '"function"' true '"paused"' | diff - got
	fi
	kill -INT "$TAP"
	ended "$TAP" 0
	serving system --pid "$TARGET"
	wait_for has_row '.traced and (.answer | test("^leaks .* swell_forgets "))'
	jq -e '.system and .live and (.head | startswith("1 process, ")) and .watched == 1' row.json
	wait_for has_callers
	[ "$(curl -s -o none.txt -w '%{http_code}' "$URL/data?pid=1")" = 404 ]
	grep -q 'no such process is traced' none.txt
	if command -v chromedriver >/dev/null; then
		python3 "$ROOT/tests/lib/page.py" "$URL/" eval 'window.first = report.time_ns, 0' wait 'report.time_ns > window.first' \
			eval "document.querySelector('[data-pid=\"$TARGET\"] a').getAttribute('href')" \
			click "[data-pid=\"$TARGET\"] a" wait 'report.processes[0].totals' eval 'window.first = report.time_ns, 0' \
			wait 'report.time_ns > window.first' eval 'report.processes[0].pid' >got
		printf '%s\n' 0 "\"?pid=$TARGET\"" 0 "$TARGET" | diff - got
	fi
}
