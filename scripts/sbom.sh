#!/usr/bin/env bash
# Lists what a release is made of, as a CycloneDX document: the crates that are linked into phos-ft and its two libraries, CRIU and the
# libraries in its bundle.
#   scripts/sbom.sh CRIU OUT     CRIU is the bundle's folder
# The same for the same sources and bundle: SOURCE_DATE_EPOCH is the time that it names.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
criu=${1:?the CRIU bundle} out=${2:?a file to write}
: "${SOURCE_DATE_EPOCH:?}"
export SOURCE_DATE_EPOCH

# cargo-cyclonedx writes beside the manifests, of all members of the workspace.
name=sbom-$$
work=$(mktemp -d)
trap 'rm -rf "$work"; find "$root" -maxdepth 3 -name "$name.json" -not -path "*/target/*" -delete' EXIT
"${CARGO:-cargo}" cyclonedx --quiet --manifest-path "$root/Cargo.toml" --format json --spec-version 1.5 --all --no-build-deps \
    --target x86_64-unknown-linux-gnu --override-filename "$name"
python3 "$root/scripts/sbom.py" --root "$root" --packages "$criu/packages" \
    "$root/sidecar/$name.json" "$root/shim/$name.json" "$root/shim/criu-preload/$name.json" >"$work/sbom"
mv "$work/sbom" "$out"
