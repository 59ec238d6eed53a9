#!/usr/bin/env bash
# Fails unless each file runs with the C library of a version: what it asks of glibc is no newer, and it asks for no other
# library than glibc's and libgcc_s.
#   scripts/glibc-check.sh VERSION FILE...
set -euo pipefail
[[ $# -ge 2 ]] || { echo "usage: $0 VERSION FILE..." >&2; exit 2; }
allowed=$1
shift
status=0
for file in "$@"; do
    newest=$(objdump -T "$file" | grep -oE 'GLIBC_[0-9.]+' | sort -Vu | tail -n 1)
    newest=${newest#GLIBC_}
    [[ -n $newest ]] || { echo "glibc-check: $file names no version of glibc: not a dynamic program?" >&2; exit 1; }
    if [[ $(printf '%s\n' "$newest" "$allowed" | sort -V | tail -n 1) != "$allowed" ]]; then
        echo "glibc-check: $file needs glibc $newest, more than $allowed, for:" >&2
        objdump -T "$file" | grep -F "GLIBC_$newest" >&2
        status=1
    fi
    others=$(objdump -p "$file" | sed -nE 's/^ *NEEDED *//p' |
        grep -vE '^(lib(c|m|dl|pthread|rt|util)\.so\.[0-9]+|libgcc_s\.so\.1|ld-linux-x86-64\.so\.2)$' || true)
    if [[ -n $others ]]; then
        echo "glibc-check: $file needs libraries that an image may not have: ${others//$'\n'/ }" >&2
        status=1
    fi
    echo "glibc-check: $file needs glibc $newest"
done
exit "$status"
