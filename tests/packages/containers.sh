#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Starts what packaging/ has for containers and services: builds the image of the Dockerfile by a Docker daemon of our
# own, attaches in containers of Docker, of the Kubernetes DaemonSet and of the debug profile for one pod (by runc, as a
# kubelet would), and boots a systemd that runs both units on a redis-server. Needs root, the mirror of packages that apt of this machine uses,
# Docker, systemd-container, python3-yaml, and some 10 minutes.
#   containers.sh BUILD-FOLDER	HEAPTAP_ROOTS=DIR keeps the roots there
set -euo pipefail

say() { printf 'containers: %s\n' "$*"; }
die() { printf 'containers: %s\n' "$*" >&2; exit 1; }
. "$(dirname "$0")/root.bash"

begin_roots
out=$1
daemon=
target=
# The runtime's directory has one of the pod while it runs.
end_pod() { [ ! -d "$roots/runc/heaptap-pod-$$" ] || runc --root "$roots/runc" delete --force "heaptap-pod-$$"; }

end_all() {
	end_pod
	[ -z "$target" ] || kill "$target" 2>/dev/null || true
	if [ -n "$daemon" ]; then kill "$daemon" 2>/dev/null && wait "$daemon" || true; fi
	# Docker leaves its network namespace mounted.
	umount "$roots/exec/netns/default" 2>/dev/null || true
	remove_roots
}
trap end_all EXIT
for tool in docker:docker.io dockerd:docker.io runc:runc systemd-nspawn:systemd-container; do
	command -v "${tool%:*}" >/dev/null || die "no ${tool%:*}: apt install ${tool#*:}"
done
python3 -c 'import yaml' || die "python3 has no yaml: apt install python3-yaml"

# A daemon that touches no network of the machine and none of its images.
start_daemon() {
	local i
	export DOCKER_HOST=unix://$roots/docker.sock
	dockerd --data-root "$roots/docker" --exec-root "$roots/exec" --pidfile "$roots/docker.pid" -H "$DOCKER_HOST" \
		--storage-driver vfs --bridge=none --iptables=false --ip6tables=false >"$roots/dockerd.log" 2>&1 &
	daemon=$!
	for ((i = 0; i < 300; i++)); do
		! docker version >/dev/null 2>&1 || return 0
		kill -0 "$daemon" 2>/dev/null || break
		sleep 0.1
	done
	tail -5 "$roots/dockerd.log"
	die "dockerd does not start here"
}

# The image that the Dockerfile begins with is made here, and not pulled.
build_image() {
	mkdir -p "$roots/base" "$roots/source"
	if ! docker image inspect debian:12-slim >/dev/null 2>&1; then
		make_root bookworm "$roots/base" ca-certificates
		tar -C "$roots/base" -c . | docker import - debian:12-slim >/dev/null
	fi
	git -C "$top" archive HEAD | tar -x -C "$roots/source"
	say "docker build"
	docker build --network host -f "$roots/source/packaging/Dockerfile" -t heaptap "$roots/source" >"$roots/build.log" 2>&1 ||
		{ tail -20 "$roots/build.log"; die "docker build failed: $roots/build.log"; }
}

# has_traced FILE: its report is one of an attach by BPF that lost nothing
has_traced() {
	grep -q 'attached to, source bpf' "$1" && grep -q '^  lost        nothing$' "$1" && grep -q 'spin_allocates' "$1" ||
		{ cat "$1"; die "no trace"; }
}

# The options of the comment in the Dockerfile. Docker before 23 may not know CAP_BPF, which CAP_SYS_ADMIN includes.
try_docker() {
	local options
	options=$(sed -n '/docker run/,/attach/ s/^#  *//p' "$top/packaging/Dockerfile" | tr -d '\\\n' |
		sed 's/docker run --rm -it//; s/heaptap attach.*//')
	if [[ "$(docker run --rm --network none $options heaptap --version 2>&1)" == *'unknown capability: "CAP_BPF"'* ]]; then
		say "this Docker does not know CAP_BPF: CAP_SYS_ADMIN in its place"
		options=$(sed 's/--cap-add BPF --cap-add PERFMON/--cap-add SYS_ADMIN/' <<<"$options")
	fi
	docker run --rm --network none $options heaptap attach -t 2s "$target" >"$roots/docker.out" 2>&1 || true
	has_traced "$roots/docker.out"
	say "docker run: passed"
}

try_daemonset() {
	local id bundle=$roots/bundle
	mkdir -p "$bundle/rootfs"
	id=$(docker create heaptap)
	docker export "$id" | tar -x -C "$bundle/rootfs"
	docker rm "$id" >/dev/null
	mkdir -p "$bundle/rootfs/reports"
	(cd "$bundle" && rm -f config.json && runc spec)
	"$top/tests/packages/oci.py" "$top/packaging/kubernetes/daemonset.yaml" "$bundle/config.json" \
		heaptap attach -t 2s -o - -o /reports/r.json "$target"
	(cd "$bundle" && runc --root "$roots/runc" run "heaptap-$$" >"$roots/runc.out" 2>&1) || { cat "$roots/runc.out"; die "runc failed"; }
	has_traced "$roots/runc.out"
	say "container of the DaemonSet, by runc: passed"
}

# A container as pods have them: no capability, a user of its own, a program that only this user may read.
start_pod() {
	local bundle=$roots/pod
	mkdir -p "$bundle/rootfs"
	[ -e "$bundle/rootfs/usr" ] || cp -a "$roots/bundle/rootfs/." "$bundle/rootfs/"
	install -o 1000 -g 1000 -m 700 "$out/tests/targets/spin" "$bundle/rootfs/spin" || die "no pod"
	(cd "$bundle" && rm -f config.json && runc spec)
	jq '.process.args = ["/spin"] | .process.terminal = false | .process.user = { uid: 1000, gid: 1000 }
		| .process.capabilities = {} | .process.noNewPrivileges = true' "$bundle/config.json" >"$bundle/config.new"
	mv "$bundle/config.new" "$bundle/config.json"
	(cd "$bundle" && runc --root "$roots/runc" run --detach "heaptap-pod-$$" >/dev/null 2>"$roots/pod.err" </dev/null) ||
		{ cat "$roots/pod.err"; die "no pod"; }
	runc --root "$roots/runc" state "heaptap-pod-$$" | jq .pid
}

# debug_attach OUT [CAPABILITY]: attach from the container of the debug profile, without this capability
debug_attach() {
	local conf=$roots/bundle/config.json
	"$top/tests/packages/oci.py" "$top/packaging/kubernetes/debug-profile.yaml:$first" "$conf" heaptap attach -t 2s 1
	jq --arg without "CAP_${2:-}" '.process.capabilities |= map_values(. - [$without])' "$conf" >"$conf.new"
	mv "$conf.new" "$conf"
	(cd "$roots/bundle" && runc --root "$roots/runc" run "heaptap-debug-$$" >"$1" 2>&1)
}

try_debug_profile() {
	local said=$roots/debug.out first cap
	(cd "$roots/bundle" && rm -f config.json && runc spec)
	first=$(start_pod)
	debug_attach "$said" || { cat "$said"; die "runc failed"; }
	has_traced "$said"
	grep -q '^spin (pid 1)  /spin$' "$said" || { cat "$said"; die "another process was traced"; }
	grep -q '^  scan  .*stopped for' "$said" || { cat "$said"; die "no verdict"; }
	# Each capability of the profile is needed.
	for cap in BPF PERFMON SYS_PTRACE; do
		! debug_attach "$said" "$cap" || { cat "$said"; die "works without CAP_$cap"; }
	done
	debug_attach "$said" DAC_READ_SEARCH || { cat "$said"; die "needs CAP_DAC_READ_SEARCH"; }
	! grep -q spin_allocates "$said" || { cat "$said"; die "names without CAP_DAC_READ_SEARCH"; }
	end_pod
	say "container of the debug profile, by runc, and without each of its capabilities: passed"
}

# A machine of its own, whose systemd starts redis-server and both units, and ends when this is written down.
try_units() {
	local root=$roots/machine file
	mkdir -p "$root"
	cp -a "$roots/bundle/rootfs/." "$root/"
	for file in /etc/resolv.conf /etc/hosts; do cp -L "$file" "$root$file"; done
	chroot "$root" sh -c 'apt-get update && apt-get install -y --no-install-recommends systemd redis-server' >"$roots/machine.log" 2>&1 ||
		{ tail -5 "$roots/machine.log"; die "no systemd in the root"; }
	cp "$roots/source/packaging/heaptap@.service" "$roots/source/packaging/heaptap-system.service" "$root/etc/systemd/system/"
	cat >"$root/etc/systemd/system/try.service" <<-'END'
		[Service]
		Type=oneshot
		StandardOutput=file:/try.out
		ExecStart=/bin/sh -c 'systemctl start redis-server; systemctl start heaptap@redis-server heaptap-system; sleep 5; systemctl is-active heaptap@redis-server heaptap-system; systemctl stop heaptap@redis-server heaptap-system; systemctl is-failed heaptap@redis-server heaptap-system; journalctl -b -o cat -u heaptap@redis-server -u heaptap-system'
		ExecStopPost=/bin/systemctl --no-block exit
	END
	mkdir -p "$root/etc/systemd/system/multi-user.target.wants"
	ln -sf ../try.service "$root/etc/systemd/system/multi-user.target.wants/try.service"
	# nspawn forbids bpf(2) to all that runs in it, unless it is named.
	timeout 120 systemd-nspawn -q --register=no --keep-unit -D "$root" --boot --capability=all \
		--system-call-filter="bpf perf_event_open" >"$roots/boot.log" 2>&1 </dev/null || { tail -5 "$roots/boot.log"; die "systemd does not boot here"; }
	[ "$(head -4 "$root/try.out")" = $'active\nactive\ninactive\ninactive' ] || { cat "$root/try.out"; die "a unit failed"; }
	jq -e '.backend == "bpf" and .processes[0].comm == "redis-server"' "$root"/var/lib/heaptap/redis-server/heap-*.json >/dev/null ||
		die "no report of redis-server"
	grep -q '^No process has grown' "$root/try.out" || { cat "$root/try.out"; die "heaptap-system says nothing"; }
	say "heaptap@redis-server and heaptap-system, by systemd $(chroot "$root" systemctl --version | awk 'NR == 1 { print $2 }'): passed"
}

start_daemon
build_image
"$out/tests/targets/spin" >/dev/null &
target=$!
try_docker
try_daemonset
try_debug_profile
try_units
