#!/usr/bin/env bash
# Checks docker/ without running it: bases of images are pinned, the compose files resolve, those of the tests are what
# compose.yaml shows to users, the Kubernetes objects fit the API's schema, the Slurm script is sound.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
venv=.build/check-venv
if ! cmp -s docker/requirements.txt "$venv/.requirements"; then
    rm -rf "$venv"
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check --require-hashes --only-binary :all: \
        -r docker/requirements.txt
    cp docker/requirements.txt "$venv/.requirements"
fi
compose=(docker-compose)
! docker compose version >/dev/null 2>&1 || compose=(docker compose)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
files=()
# A relative profile is looked for in the current folder by some versions, beside the compose file by others.
cd docker
if "${compose[@]}" -f compose.yaml config >/dev/null 2>"$work/words" || ! grep -q 'PHOS_USER' "$work/words"; then
    echo "docker-check: compose.yaml runs the job as somebody without asking for PHOS_USER" >&2
    exit 1
fi
for name in compose*.yaml; do
    PHOS_USER=1000:1000 "${compose[@]}" -f "$name" config >"$work/$name"
    files+=("$name=$work/$name")
done
cd "$root"
# What is not made here is named by its content.
bases=$(git ls-files -co --exclude-standard '*Dockerfile' | xargs sed -nE 's/^ARG BASE=//p; s/^FROM ([^$].*)/\1/p')
[[ -n $bases ]] || { echo "docker-check: the Dockerfiles name no base" >&2; exit 1; }
if loose=$(grep -vE '^phos-|@sha256:[0-9a-f]{64}$' <<<"$bases"); then
    echo "docker-check: bases without a digest: $loose" >&2
    exit 1
fi
"$venv/bin/python" scripts/docker-check.py docker/seccomp.json "${files[@]}"
"$venv/bin/kubernetes-validate" --strict --quiet docker/kubernetes/*.yaml
shellcheck docker/slurm/train.sbatch docker/slurm/phos-ft-job
! command -v visudo >/dev/null || visudo -cqf docker/slurm/sudoers
echo "docker-check: ok"
