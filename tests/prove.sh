#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# prove.sh KIND FILE...: runs tests of one kind, several files at a time, and names at the end the tests that failed.
#
# KIND is unit (programs of tests/unit), plain (bats, without root), e2e (bats, each file with libraries of its own),
# ptrace or inline (like e2e, with that source). A KIND of its own for single files: KIND:FILE.
#   JOBS=2          files at a time (one more than there are CPUs)
#   HEAPTAP_TAGS=x  only tests that have this bats tag
# The output of each file is in $O/tests/log/KIND/NAME.tap afterwards.
set -uo pipefail

here=${BASH_SOURCE[0]}
: "${O:=build}"
: "${JOBS:=$(($(nproc) + 1))}"

log_of() { printf '%s/tests/log/%s/%s.tap\n' "$O" "$1" "$(basename "$2" .bats)"; }

# run_one KIND FILE: TAP on stdout
run_one() {
	local tags=() said
	[ -z "${HEAPTAP_TAGS:-}" ] || tags=(--filter-tags "$HEAPTAP_TAGS")
	case $1 in
	unit)
		# stderr of a unit test is of interest only if the test fails.
		said=$(mktemp)
		# cmocka 1.1.5 prints "not ok" for a skipped test, which prove counts as failed.
		CMOCKA_MESSAGE_OUTPUT=TAP "$2" 2>"$said" | sed -u 's/^not ok \([0-9]* # SKIP\)/ok \1/'
		[ "${PIPESTATUS[0]}" -ne 0 ] || { rm -f "$said"; return 0; }
		cat "$said" >&2
		rm -f "$said"
		return 1
		;;
	plain) bats --tap "${tags[@]}" "$2" ;;
	e2e | ptrace | inline)
		[ "$1" = e2e ] || export HEAPTAP_BACKEND=$1
		if [ -n "${SHARED_LIBRARIES:-}" ]; then
			bats --tap "${tags[@]}" "$2"
		else
			"$(dirname "$here")/own_libraries.sh" bats --tap "${tags[@]}" "$2"
		fi
		;;
	*)
		echo "prove.sh: no such kind: $1" >&2
		return 99
		;;
	esac
}

if [ "$1" = --one ]; then
	kind=${2%%:*}
	file=${2#*:}
	run_one "$kind" "$file" | tee "$(log_of "$kind" "$file")"
	exit "${PIPESTATUS[0]}"
fi

kind=$1
shift
tests=()
for file in "$@"; do
	case $file in
	*:*) tests+=("$file") ;;
	*) tests+=("$kind:$file") ;;
	esac
done

logs=()
for test in "${tests[@]}"; do
	logs+=("$(log_of "${test%%:*}" "${test#*:}")")
	mkdir -p "$(dirname "${logs[-1]}")"
	rm -f "${logs[-1]}"
done

if [[ " ${tests[*]}" =~ \ (e2e|ptrace|inline): ]] && ! unshare -m true 2>/dev/null; then
	echo "prove.sh: no mount namespace here: tests share libraries, so one file at a time"
	export SHARED_LIBRARIES=1
	JOBS=1
fi

# Lines of the kernel about probes: a uprobe that is left in its file, a fault of its own, or a crash of heaptap. Tests let
# the reader of names die (heaptap-names), which heaptap survives.
kernel_says() {
	dmesg 2>/dev/null |
		grep -E 'leaking uprobe|BUG: |Oops|WARNING: .*(uprobe|bpf|ptrace)|(heaptap|links-of-heapta)\S* *\S*: segfault|traps: (heaptap|links-of)' |
		grep -v heaptap-names || true
}
said_before=$(kernel_says | wc -l)

# A comment of cmocka that a test passed says nothing new.
prove -fo --timer -j "$JOBS" -e "$here --one" "${tests[@]}" 2>&1 | grep --line-buffered -v '^# ok - '
status=${PIPESTATUS[0]}
if [[ $kind =~ ^(e2e|ptrace|inline)$ && $(kernel_says | wc -l) -gt $said_before ]]; then
	echo "prove.sh: the kernel has logged during these tests:"
	kernel_says | tail -n "+$((said_before + 1))"
	[ "$status" -ne 0 ] || [ -z "${HEAPTAP_WATCH:-}" ] || status=1
fi
[ "$status" -ne 0 ] || exit 0

printf '\n%s tests that failed:\n' "$kind"
for i in "${!tests[@]}"; do
	awk -v file="${tests[i]#*:}" '
		/^1\.\.[0-9]+/ { sub(/^1\.\./, ""); planned = $1 }
		/^(not )?ok / { done++ }
		/^not ok / && !/# (SKIP|TODO)/ { sub(/^not ok [0-9]+ (- )?/, ""); print "  " file ": " $0; named = 1 }
		END { if (!named && done < planned || planned == "") print "  " file ": ended after " done + 0 " tests" }' "${logs[i]}"
done
exit "$status"
