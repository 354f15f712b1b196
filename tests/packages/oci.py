#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# Says what a kubelet says to its runtime: fills config.json, as "runc spec" writes it, from the pod of a DaemonSet, or
# from the container of a debug profile, which joins the namespaces of another container.
#   oci.py DAEMONSET.YAML CONFIG.JSON COMMAND...		COMMAND runs in place of the container's own
#   oci.py PROFILE.YAML:PID CONFIG.JSON COMMAND...	PID is the first process of the other container
import json
import sys

import yaml

path, config, *command = sys.argv[1:]
path, _, joined = path.partition(":")
with open(path, encoding="utf-8") as f:
    if joined:
        container = yaml.safe_load(f)
    else:
        pod = next(part for part in yaml.safe_load_all(f) if part["kind"] == "DaemonSet")["spec"]["template"]["spec"]
        container = pod["containers"][0]
        assert pod["hostPID"]
rights = container["securityContext"]
with open(config, encoding="utf-8") as f:
    conf = json.load(f)

capabilities = ["CAP_" + name for name in rights["capabilities"]["add"]]
assert rights["capabilities"]["drop"] == ["ALL"]
process, linux = conf["process"], conf["linux"]
process["capabilities"] = {kind: capabilities for kind in ("bounding", "effective", "permitted")}
process["noNewPrivileges"] = not rights.get("allowPrivilegeEscalation", True)
process["user"] = {"uid": rights["runAsUser"], "gid": 0}
process["args"] = command
process["terminal"] = False
process.pop("rlimits", None)
conf["root"] = {"path": "rootfs", "readonly": rights.get("readOnlyRootFilesystem", False)}
assert rights["seccompProfile"]["type"] == "Unconfined"
linux["namespaces"] = [n for n in linux["namespaces"] if n["type"] != "pid"]
if joined:
    linux["namespaces"] = [n for n in linux["namespaces"] if n["type"] in ("mount", "cgroup")]
    shared = {"pid": "pid", "network": "net", "ipc": "ipc", "uts": "uts"}
    linux["namespaces"] += [{"type": t, "path": f"/proc/{joined}/ns/{name}"} for t, name in shared.items()]
    conf.pop("hostname", None)
linux.pop("seccomp", None)
for mount in container.get("volumeMounts", []):
    conf["mounts"].append({"destination": mount["mountPath"], "type": "tmpfs", "source": "tmpfs"})
with open(config, "w", encoding="utf-8") as f:
    json.dump(conf, f)
