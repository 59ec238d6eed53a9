#!/usr/bin/env bash
# Each "cannot" of SECURITY.md has a test beside it: says which rows have none, and which of the tests do not exist.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

rows=$(sed -nE '/^\| cannot \|/,/^$/p' SECURITY.md | grep -E '^\| ' | grep -v '^| cannot |')
tick=$'\x60'
status=0
while IFS='|' read -r _ what tests _; do
    names=$(grep -oE "${tick}[a-z_0-9]+${tick}" <<<"$tests" | tr -d "$tick" || true)
    if [[ -z $names ]]; then
        printf 'SECURITY.md has no test for: %s\n' "$what" >&2
        status=1
    fi
    for name in $names; do
        if ! git grep -qE "fn $name\(" -- '*.rs'; then
            printf 'SECURITY.md names the test %s, which does not exist\n' "$name" >&2
            status=1
        fi
    done
done <<<"$rows"
exit "$status"
