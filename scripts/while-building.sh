#!/usr/bin/env bash
# What tests need that is fetched rather than built: it waits for the network while the compiler computes. Quick when it is there.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
scripts/image-bases.sh
scripts/python-image.sh trixie bookworm bullseye
scripts/browser.sh
