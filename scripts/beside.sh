#!/usr/bin/env bash
# Runs a command that waits most of its time beside one that computes, and succeeds if both do.
#   scripts/beside.sh COMMAND -- COMMAND ARGUMENT...
# What the first one says comes after the second has ended.
set -euo pipefail
[[ $# -ge 3 && $2 == -- ]] || { echo "usage: $0 COMMAND -- COMMAND ARGUMENT..." >&2; exit 2; }

log=$(mktemp)
# A process group of its own, with all that it starts.
set -m
"$1" >"$log" 2>&1 &
beside=$!
set +m
name=$1
trap 'rm -f "$log"' EXIT
trap 'kill -- "-$beside" 2>/dev/null; exit 130' INT TERM
shift 2
status=0
"$@" || status=$?
failed=0
wait "$beside" || failed=$?
cat "$log" >&2
if [[ $failed -ne 0 ]]; then
    echo "beside: $name ended with $failed" >&2
    exit "$failed"
fi
exit "$status"
