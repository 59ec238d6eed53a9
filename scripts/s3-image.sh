#!/usr/bin/env bash
# Makes the image phos-s3: the S3 server of the tests (moto, scripts/requirements.txt) with a Python of its own, for compose
# files. Not a store for anything that is to last: it keeps everything in memory, and on disk over a `docker restart` only.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
work=$root/.build/s3-work
say() { printf 's3-image: %s\n' "$*" >&2; }
die() { say "error: $*"; exit 1; }
# shellcheck source=scripts/debian.sh
. "$root/scripts/debian.sh"

cd "$root"
tag=$(cat scripts/requirements.txt scripts/s3-serve.py scripts/s3-image.sh | sha256sum | cut -c1-12)
if ! docker image inspect "phos-s3:$tag" >/dev/null 2>&1; then
    say "fetching Python of Debian trixie and moto"
    # For tests alone: as Debian has it now, by Debian's signature.
    fetch trixie python3 || { renew_keyring && fetch trixie python3; } || die "no Python: see above"
    # Links that a Debian base has, so that the loader is where programs look for it.
    for name in bin lib lib64 sbin; do
        [[ -e $work/root/$name ]] || ln -s "usr/$name" "$work/root/$name"
    done
    mkdir -p "$work/root/opt/moto"
    mkdir -m 1777 "$work/root/tmp"
    version=$(basename "$work"/root/usr/bin/python3.* | sed 's/python//')
    "$root/.build/venv/bin/pip" install --quiet --disable-pip-version-check --no-compile \
        --target "$work/root/opt/moto" --python-version "$version" --only-binary :all: \
        --platform manylinux2014_x86_64 --platform manylinux_2_28_x86_64 --platform manylinux_2_34_x86_64 \
        --no-deps --require-hashes -r "$root/scripts/requirements.txt"
    cp scripts/s3-serve.py "$work/root/opt/serve.py"
    # What it imports is compiled once, by the Python that runs it: each start would do so otherwise.
    PYTHONPATH=/opt/moto chroot "$work/root" /usr/bin/python3 -c 'import runpy; runpy.run_path("/opt/serve.py")' || true
    tar -C "$work/root" --numeric-owner --owner 0 --group 0 -c . |
        docker import --change 'ENV PYTHONPATH=/opt/moto' --change 'EXPOSE 5000' --change 'USER 65534:65534' \
            --change 'CMD ["/usr/bin/python3","/opt/serve.py","--host=0.0.0.0","--port=5000","--bucket=phos","--state=/tmp/state","--ready=/tmp/ready"]' - "phos-s3:$tag" >/dev/null
    rm -rf "$work"
fi
docker tag "phos-s3:$tag" phos-s3:latest
