#!/usr/bin/env bash
# Sees to it that a Docker Engine answers and that there is a Compose: starts dockerd if none runs (in CI), and says what is
# missing otherwise. Needs root for starting.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
die() { printf 'docker-engine: error: %s\n' "$*" >&2; exit 1; }

command -v docker >/dev/null || die "docker is missing: make setup installs it"
docker compose version >/dev/null 2>&1 || command -v docker-compose >/dev/null ||
    die "neither \`docker compose\` nor docker-compose is there: make setup installs it"
! docker info >/dev/null 2>&1 || exit 0
# Of a machine that was set up to run one: the service manager knows its options.
if [[ -d /run/systemd/system ]] && systemctl start docker 2>/dev/null && docker info >/dev/null 2>&1; then
    exit 0
fi
command -v dockerd >/dev/null || die "no engine answers, and dockerd is not installed: make setup installs it"
[[ $EUID -eq 0 ]] || die "no engine answers, and starting dockerd needs root"
log=$root/.build/dockerd.log
mkdir -p "$root/.build"
printf 'docker-engine: starting dockerd, log in %s\n' "$log" >&2
setsid nohup dockerd >"$log" 2>&1 </dev/null &
for _ in $(seq 600); do
    ! docker info >/dev/null 2>&1 || exit 0
    kill -0 $! 2>/dev/null || { tail -n 20 "$log" >&2; die "dockerd ended: see above"; }
    sleep 0.2
done
tail -n 20 "$log" >&2
die "dockerd does not answer within two minutes: see above"
