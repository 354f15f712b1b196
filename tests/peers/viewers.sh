#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Reads reports by programs and schemas of others: go tool pprof; speedscope's own page in Chromium, which also reads
# folded stacks, and its schema; the official schema of SARIF 2.1.0 in a package of Microsoft's. Needs root, npm with
# its registry, and what tests/deps.sh viewers installs.
#   viewers.sh BUILD-FOLDER
set -euo pipefail

die() { printf 'viewers: %s\n' "$*" >&2; exit 1; }

out=$1
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# unpack DIR PACKAGE: nothing of it is run by npm
unpack() {
	mkdir "$1"
	npm pack --silent --pack-destination "$work" "$2" >"$1.name" || die "npm cannot get $2"
	tar -xzf "$(tail -1 "$1.name")" -C "$1" --strip-components=1
}
unpack speedscope speedscope@1.25.0
unpack sarif @microsoft/jest-sarif@1.0.0-beta.0

report() { "$out/heaptap" report -q --force -o r.json -o r.speedscope.json -o r.sarif -o r.pb.gz -o r.folded "$1"; }

# opened FILE VIEW: speedscope's page with it, in page.html. As speedscope's command line does: a script gives the file.
opened() {
	"$here/viewers.py" script "$1" >file.js
	timeout 120 chromium --headless --no-sandbox --disable-gpu --allow-file-access-from-files \
		--user-data-dir="$work/chromium" --virtual-time-budget=20000 --dump-dom \
		"file://$work/speedscope/dist/release/index.html#view=$2&localProfilePath=$work/file.js" \
		>page.html 2>chromium.log || { tail -3 chromium.log; die "chromium failed"; }
}

# in_pprof INDEX KEY...: what go tool pprof shows of r.pb.gz is what r.json has
in_pprof() {
	HOME=$work go tool pprof -top -nodefraction=0 -unit=B -sample_index="$1" r.pb.gz >top 2>go.log ||
		{ cat go.log; die "go tool pprof failed"; }
	"$here/viewers.py" top top r.json "${@:2}"
}

"$out/heaptap" run -q -w leak.heaptap --force -o r.json -- "$out/tests/targets/leak" >/dev/null 2>&1
report leak.heaptap
"$here/viewers.py" schema r.sarif sarif/lib/schemas/sarif-2.1.0-rtm.5.json
"$here/viewers.py" schema r.speedscope.json speedscope/dist/release/file-format-schema.json
opened r.speedscope.json time-ordered
"$here/viewers.py" compare page.html r.json
opened r.folded sandwich
"$here/viewers.py" functions page.html r.json live_bytes
in_pprof inuse_space live_bytes
in_pprof inuse_objects live_blocks
in_pprof alloc_space alloc_bytes
in_pprof alloc_objects allocs
in_pprof leak_space definite.bytes indirect.bytes
in_pprof leak_objects definite.blocks indirect.blocks
HOME=$work go tool pprof -raw r.pb.gz >raw
grep -q "\[FN\]\[FL\]\[LN\]\[IN\]" raw || die "go tool pprof -raw: a mapping lacks names"
"$out/heaptap" run -q --check -o misuse.sarif -- "$out/tests/targets/misuse" >/dev/null 2>&1 || true
"$here/viewers.py" schema misuse.sarif sarif/lib/schemas/sarif-2.1.0-rtm.5.json
echo "viewers: passed"
