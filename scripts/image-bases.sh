#!/usr/bin/env bash
# Makes the images under those of scripts/docker-images.sh, which take nothing of what is built here: Debian's suites and the S3 server.
# Quick when they are there.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
scripts/docker-engine.sh
scripts/base-image.sh trixie bookworm bullseye
scripts/s3-image.sh
