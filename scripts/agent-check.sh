#!/usr/bin/env bash
# The agent has no network and no runtime of its own: everything else may die, and it may not. Says what it depends on against that.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

found=$(cargo tree --package phos-agent --edges normal --locked --prefix none | cut -d ' ' -f 1 | sort -u |
    grep -xE 'tokio|mio|async-std|smol|hyper|reqwest|rustls|object_store|aws-.*|phos-storage|phos-ft' || true)
if [[ -n $found ]]; then
    printf 'phos-agent depends on %s: the agent has no network (sidecar/agent/src/lib.rs)\n' "$(tr '\n' ' ' <<<"$found")" >&2
    exit 1
fi
