#!/usr/bin/env bash
# Runs a command with a /tmp in memory that is its alone (a mount namespace): tests write and sync thousands of small files there,
# and a disk that other machines keep busy would make them slow, or fail.
#   scripts/in-memory.sh COMMAND ARGUMENT...
# Who may not make a mount gets the /tmp that there is.
set -euo pipefail
[[ $# -gt 0 ]] || { echo "usage: $0 COMMAND ARGUMENT..." >&2; exit 2; }

if ! unshare --mount true 2>/dev/null; then
    echo "in-memory: no mount namespace can be made here: tests use the /tmp that there is" >&2
    exec "$@"
fi
# shellcheck disable=SC2016 # expanded inside
exec unshare --mount --propagation private bash -euc '
    here=$PWD root=$1
    shift
    # A checkout below /tmp stays where it is: by its descriptor, as its name leads to the new /tmp from then on.
    exec 9<"$root"
    mount -t tmpfs -o mode=1777,size=60%,nr_inodes=0 tests /tmp
    if [[ $root == /tmp/* ]]; then
        mkdir -p "$root"
        mount --no-canonicalize --bind /proc/self/fd/9 "$root"
        cd "$here"
    fi
    exec 9<&-
    unset TMPDIR
    exec "$@"
' bash "$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)" "$@"
