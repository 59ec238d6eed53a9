#!/usr/bin/env bash
# Shows that a criu works on this machine: `criu check`, then dump, kill and restore of a process with threads inside a
# fresh PID namespace. Needs root.
#   scripts/criu-check.sh [CRIU]     default: the one scripts/criu-bundle.sh --print names
set -euo pipefail
trap 'echo "criu-check: line $LINENO failed: $BASH_COMMAND" >&2' ERR
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

if [[ ${1:-} == --inside ]]; then
    # PID 1 of the namespace.
    criu=$2
    dir=$3
    # High PIDs for the victim, so that they are free at restore (criu itself gets the low ones).
    echo 5000 >/proc/sys/kernel/ns_last_pid
    # What this shell inherited was opened in another mount namespace, where CRIU cannot find it.
    for fd in /proc/self/fd/*; do
        fd=${fd##*/}
        [[ $fd -le 2 || $fd -eq 255 ]] || exec {fd}>&-
    done
    setsid "$(command -v /usr/bin/python3 || command -v python3)" -c '
import os, threading, time, sys
state = [0, 0, 0]
def work(i):
    while True:
        state[i] += 1
        time.sleep(0.01)
for i in range(3):
    threading.Thread(target=work, args=(i,), daemon=True).start()
# One open file of one length: read while this writes, and after this was killed, it is whole, and CRIU finds the file
# it dumped.
count = os.open(sys.argv[1] + "/count", os.O_RDWR | os.O_CREAT)
while True:
    os.pwrite(count, b"%-31d\n" % state[0], 0)
    time.sleep(0.02)
' "$dir" </dev/null >/dev/null 2>&1 &
    victim=$!
    sleep 0.5
    mkdir "$dir/image"
    "$criu" dump --tree "$victim" --images-dir "$dir/image" --leave-running -o dump.log -v4 ||
        { tail -n 20 "$dir/image/dump.log"; exit 1; }
    kill -9 "$victim"
    wait "$victim" 2>/dev/null || true
    read -r before <"$dir/count"
    printf '%-31s\n' gone 1<>"$dir/count"
    "$criu" restore --images-dir "$dir/image" --restore-detached -o restore.log -v4 ||
        { tail -n 20 "$dir/image/restore.log"; exit 1; }
    sleep 0.5
    read -r after <"$dir/count"
    kill -9 "$victim"
    echo "counter at the dump about $before, after the restore $after, $(du -sh "$dir/image" | cut -f1) of image"
    [[ $after != gone && $after -gt $((before / 2)) ]] || { echo "criu-check: it did not go on" >&2; exit 1; }
    exit
fi

criu=${1:-$("$here/criu-bundle.sh" --print)}
"$criu" --version
"$criu" check
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
unshare --pid --fork --mount-proc bash "${BASH_SOURCE[0]}" --inside "$criu" "$dir"
echo "criu-check: ok"
