#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Reads reports by programs and schemas that npm packages bring: speedscope's own page in Chromium and its schema, the
# official schema of SARIF 2.1.0 in a package of Microsoft's. Needs root, npm with its registry, chromium, python3 with
# jsonschema.
#   viewers.sh BUILD-FOLDER
set -euo pipefail

die() { printf 'viewers: %s\n' "$*" >&2; exit 1; }

out=$1
here=$(cd "$(dirname "$0")" && pwd)
for tool in npm chromium; do command -v "$tool" >/dev/null || die "no $tool here"; done
python3 -c 'import jsonschema' || die "python3 has no jsonschema: apt install python3-jsonschema"
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

report() { "$out/heaptap" report -q --force -o r.json -o r.speedscope.json -o r.sarif "$1"; }

"$out/heaptap" run -q -w leak.heaptap --force -o r.json -- "$out/tests/targets/leak" >/dev/null 2>&1
report leak.heaptap
"$here/viewers.py" schema r.sarif sarif/lib/schemas/sarif-2.1.0-rtm.5.json
"$here/viewers.py" schema r.speedscope.json speedscope/dist/release/file-format-schema.json
# As speedscope's command line does: a script that gives the file to the page.
"$here/viewers.py" script r.speedscope.json >file.js
timeout 120 chromium --headless --no-sandbox --disable-gpu --allow-file-access-from-files --user-data-dir="$work/chromium" \
	--virtual-time-budget=20000 --dump-dom "file://$work/speedscope/dist/release/index.html#localProfilePath=$work/file.js" \
	>page.html 2>chromium.log || { tail -3 chromium.log; die "chromium failed"; }
"$here/viewers.py" compare page.html r.json
"$out/heaptap" run -q --check -o misuse.sarif -- "$out/tests/targets/misuse" >/dev/null 2>&1 || true
"$here/viewers.py" schema misuse.sarif sarif/lib/schemas/sarif-2.1.0-rtm.5.json
echo "viewers: passed"
