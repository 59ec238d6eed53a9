#!/usr/bin/env bash
# Runs a command with an S3 server (moto) on a free loopback port, which ends with it.
#   scripts/with-s3.sh COMMAND ARGUMENT...
# The command finds PHOS_TEST_S3_ENDPOINT (http://127.0.0.1:PORT) and a bucket phos-test; any credentials do.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv=$root/.build/venv
[[ $# -gt 0 ]] || { echo "usage: $0 COMMAND ARGUMENT..." >&2; exit 2; }
[[ -x $venv/bin/moto_server ]] || { echo "with-s3: moto is not installed: run make setup" >&2; exit 1; }

work=$(mktemp -d)
server=
# shellcheck disable=SC2317 # called by the trap
cleanup() {
    [[ -z $server ]] || { kill "$server" 2>/dev/null && wait "$server" 2>/dev/null; } || true
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Another process may take the port between its choice and its use: then the next one is tried.
for _ in 1 2 3 4 5; do
    port=$("$venv/bin/python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    "$venv/bin/python" "$root/scripts/s3-serve.py" --port "$port" --bucket phos-test --ready "$work/ready" >"$work/log" 2>&1 &
    server=$!
    for _ in $(seq 100); do
        kill -0 "$server" 2>/dev/null || break
        if [[ -e $work/ready ]]; then
            export PHOS_TEST_S3_ENDPOINT=http://127.0.0.1:$port
            "$@"
            exit
        fi
        sleep 0.2
    done
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
    server=
done
cat "$work/log" >&2
echo "with-s3: the S3 server did not start" >&2
exit 1
