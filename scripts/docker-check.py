"""Compares the compose files of docker/: what compose.yaml shows to users is what the tests run. Looks at the seccomp profile.

    docker-check.py SECCOMP.json NAME=RESOLVED.yaml...     each as `docker compose config` prints it, with a PHOS_USER

Called by docker-check.sh.
"""

import json
import sys

import yaml

# What a service of the tests may have of its own, with the reason in the compose file.
DIFFERS = {
    "trainer": {"image", "command", "volumes", "networks", "environment", "deploy", "tmpfs", "depends_on", "read_only"},
    "phos-ft": {"image", "command", "volumes", "networks", "environment", "deploy", "tmpfs", "depends_on", "hostname"},
}
CAPABILITIES = {"SYS_PTRACE", "SYS_ADMIN", "NET_ADMIN", "SYS_TIME"}


# System calls that the profile lets through for nobody, and those that it lets through by their arguments alone. Kubernetes reads no
# conditions (of capabilities, kernels) as Docker has them: a rule with one would be in force everywhere.
NEVER = {
    "add_key", "bpf", "delete_module", "fanotify_init", "finit_module", "init_module", "io_uring_setup", "ioperm", "iopl", "kexec_file_load",
    "kexec_load", "keyctl", "open_by_handle_at", "perf_event_open", "pivot_root", "quotactl", "reboot", "request_key", "settimeofday",
    "swapoff", "swapon", "syslog", "userfaultfd",
}  # fmt: skip
BY_ARGUMENT = {"clone", "unshare", "socket", "personality"}


def profile(path: str) -> list:
    """What is wrong with a seccomp profile."""
    with open(path, encoding="utf-8") as file:
        found = json.load(file)
    wrong = []
    if found.get("defaultAction") != "SCMP_ACT_ERRNO":
        wrong.append(f"{path}: what it does not name is not refused")
    for rule in found["syscalls"]:
        if rule["action"] not in ("SCMP_ACT_ALLOW", "SCMP_ACT_ERRNO"):
            wrong.append(f"{path}: the action {rule['action']}")
        if set(rule) - {"comment", "names", "action", "args", "errnoRet"}:
            wrong.append(f"{path}: a rule has {sorted(rule)}")
        if rule["action"] != "SCMP_ACT_ALLOW":
            continue
        for name in sorted(NEVER & set(rule["names"])):
            wrong.append(f"{path}: it allows {name}")
        if not rule.get("args"):
            for name in sorted(BY_ARGUMENT & set(rule["names"])):
                wrong.append(f"{path}: it allows {name} whatever its arguments")
    return wrong


def mounts(service: dict) -> set:
    """Where volumes of phos-ft are mounted, and whether for reading only."""
    found = set()
    for volume in service.get("volumes", []):
        if isinstance(volume, dict):
            target, read_only = volume["target"], volume.get("read_only", False)
        else:
            parts = volume.split(":")
            target, read_only = parts[1], parts[2:] == ["ro"]
        if target in ("/opt/phos", "/run/phos"):
            found.add((target, read_only))
    return found


def flags(service: dict) -> set:
    """The names of phos-ft's flags in a command."""
    words = service.get("command") or []
    words = words.split() if isinstance(words, str) else words
    return {word.split("=")[0] for word in words}


def variables(service: dict) -> set:
    """The names of phos-ft's own variables, without those of the simulated driver and of tests."""
    found = service.get("environment") or {}
    names = found if isinstance(found, dict) else [entry.split("=")[0] for entry in found]
    return {n for n in names if n.startswith("PHOS_") and not n.startswith(("PHOS_SIM_", "PHOS_FAILPOINT"))}


def main() -> int:
    files = {}
    for argument in sys.argv[2:]:
        name, path = argument.split("=", 1)
        with open(path, encoding="utf-8") as file:
            files[name] = yaml.safe_load(file)["services"]
    shown = files["compose.yaml"]
    wrong = profile(sys.argv[1])
    trainer, sidecar = shown["trainer"], shown["phos-ft"]
    if set(trainer.get("cap_add", [])) != CAPABILITIES:
        wrong.append(f"compose.yaml: the trainer's capabilities are {trainer.get('cap_add')}")
    if sidecar.get("cap_drop") != ["ALL"] or sidecar.get("cap_add"):
        wrong.append("compose.yaml: the sidecar has capabilities")
    if "unconfined" in str([option for option in trainer.get("security_opt", []) if "seccomp" in str(option)]):
        wrong.append("compose.yaml: the trainer has no seccomp profile")
    for name, services in files.items():
        for service, entries in services.items():
            kind = next((kind for kind in DIFFERS if service.startswith(kind)), None)
            if kind is None:
                continue
            if entries.get("privileged"):
                wrong.append(f"{name}: {service} is privileged")
            if entries.get("ports"):
                wrong.append(f"{name}: {service} has ports")
            of = shown[kind]
            for key in sorted((set(of) | set(entries)) - DIFFERS[kind]):
                if of.get(key) != entries.get(key):
                    wrong.append(f"{name}: {service}: {key} is {entries.get(key)}, in compose.yaml {of.get(key)}")
            if mounts(of) != mounts(entries):
                wrong.append(f"{name}: {service}: mounts {mounts(entries)}, in compose.yaml {mounts(of)}")
            if kind == "phos-ft" and variables(of) != variables(entries):
                wrong.append(f"{name}: {service}: {variables(entries)}, in compose.yaml {variables(of)}")
            if kind == "phos-ft" and flags(of) != flags(entries):
                wrong.append(f"{name}: {service}: flags {flags(entries)}, in compose.yaml {flags(of)}")
    for line in wrong:
        print(f"docker-check: {line}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
