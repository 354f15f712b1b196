# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# Part of tests/bench/run.sh: what heaptap costs before anything happens.

# costs COMMAND...: "CPU-MS MIB" of one run, with all processes that it has waited for
costs() {
	python3 - "$@" <<-'EOF'
		import os, subprocess, sys
		null = subprocess.DEVNULL
		child = subprocess.Popen(sys.argv[1:], stdout=null, stderr=null)
		_, _, used = os.wait4(child.pid, 0)
		print(f"{(used.ru_utime + used.ru_stime) * 1000:.0f} {used.ru_maxrss / 1024:.1f}")
	EOF
}

# middle COMMAND...: the medians of eleven runs, after one that leaves what later ones know
middle() {
	local round
	costs "$@" >/dev/null
	for round in {1..11}; do costs "$@"; done >"$tmp/costs"
	echo "$(cut -d' ' -f1 "$tmp/costs" | sort -n | sed -n 6p) $(cut -d' ' -f2 "$tmp/costs" | sort -n | sed -n 6p)"
}

# start_row WHAT CPU-LIMIT MEMORY-LIMIT COMMAND...
start_row() {
	local ms mib
	progress "$1"
	read -r ms mib < <(middle "${@:4}")
	row "$1: CPU time" "$ms ms" "$2" "medians of 11"
	row "$1: most memory" "$mib MiB" "$3" ""
}

bench_start() {
	start_row "run true, as typed" "100 ms" "20 MiB" env -u HEAPTAP_NO_CODE "$heaptap" run -- true
	start_row "run true by BPF" "" "" "$heaptap" run --backend bpf -- true
	start_row "run true by ptrace" "" "" "$heaptap" run --backend ptrace -- true
	sleep 600 &
	target=$!
	start_row "attach for 0.1 s to a process that sleeps" "" "" "$heaptap" attach --backend bpf -t 100ms "$target"
	kill "$target"
	wait "$target" 2>/dev/null || true
	target=
}
