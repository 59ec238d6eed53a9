#!/usr/bin/env bash
# Checks docker/ without running it: the compose files resolve, those of the tests are what compose.yaml shows to users, the
# Kubernetes objects fit the API's schema, the Slurm script is sound.
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
for file in docker/compose*.yaml; do
    name=${file##*/}
    "${compose[@]}" -f "$file" config >"$work/$name"
    files+=("$name=$work/$name")
done
"$venv/bin/python" scripts/docker-check.py "${files[@]}"
"$venv/bin/kubernetes-validate" --strict --quiet docker/kubernetes/*.yaml
shellcheck docker/slurm/train.sbatch
echo "docker-check: ok"
