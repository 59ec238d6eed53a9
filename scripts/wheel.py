#!/usr/bin/env python3
"""Makes a wheel of what scripts/dist.sh laid out; the same bytes for the same files.

    scripts/wheel.py DIST VERSION FOLDER

The format: https://packaging.python.org/en/latest/specifications/binary-distribution-format/. The program is not a script of the wheel, since
it looks for its libraries beside itself: the command is an entry point that becomes it.
"""

import base64
import hashlib
import os
import pathlib
import sys
import time
import zipfile

TAG = "py3-none-manylinux_2_31_x86_64"
ROOT = pathlib.Path(__file__).resolve().parent.parent


def main() -> int:
    if len(sys.argv) != 4:
        print(__doc__, file=sys.stderr)
        return 2
    dist, version, folder = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
    made = max(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), 315532800)  # zip begins in 1980
    date = time.gmtime(made)[:6]
    info = f"phos_ft-{version}.dist-info"
    files: dict[str, tuple[bytes, int]] = {}
    for path in sorted((ROOT / "sidecar/packaging/phos_ft").glob("*.py")):
        files[f"phos_ft/{path.name}"] = (path.read_text().replace("@VERSION@", version).encode(), 0o644)
    files["phos_ft/include/phos_ft.h"] = ((ROOT / "shim/include/phos_ft.h").read_bytes(), 0o644)
    for path in sorted(dist.rglob("*")):
        name = path.relative_to(dist).as_posix()
        if path.is_symlink():
            print(f"wheel: error: {name} is a link, which a wheel cannot have", file=sys.stderr)
            return 1
        # What is for containers alone stays out.
        if path.is_file() and name not in ("entrypoint", "release"):
            files[f"phos_ft/dist/{name}"] = (path.read_bytes(), 0o755 if os.access(path, os.X_OK) else 0o644)
    license = (ROOT / "LICENSE").read_bytes()
    files[f"{info}/METADATA"] = (metadata(version).encode(), 0o644)
    files[f"{info}/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: phos-ft\nRoot-Is-Purelib: false\nTag: {TAG}\n".encode(),
        0o644,
    )
    files[f"{info}/entry_points.txt"] = (b"[console_scripts]\nphos-ft = phos_ft.__main__:main\n", 0o644)
    files[f"{info}/licenses/LICENSE"] = (license, 0o644)
    record = "".join(f"{name},sha256={digest(content)},{len(content)}\n" for name, (content, _) in files.items())
    files[f"{info}/RECORD"] = (f"{record}{info}/RECORD,,\n".encode(), 0o644)
    wheel = folder / f"phos_ft-{version}-{TAG}.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=int(os.environ.get("PHOS_LEVEL", "9"))) as archive:
        for name, (content, mode) in files.items():
            entry = zipfile.ZipInfo(name, date)
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    print(wheel)
    return 0


def digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def metadata(version: str) -> str:
    return f"""\
Metadata-Version: 2.1
Name: phos-ft
Version: {version}
Summary: Keeps an unmodified GPU training job alive through crashes and the loss of its machine
License: Apache-2.0; the CRIU inside is under GPL-2.0, its libraries under their own licenses
Classifier: Environment :: GPU :: NVIDIA CUDA
Classifier: Operating System :: POSIX :: Linux
Classifier: Topic :: Scientific/Engineering :: Artificial Intelligence
Requires-Python: >=3.8
Description-Content-Type: text/markdown

`phos-ft -- python train.py` runs a training job and takes consistent, incremental images of it (processes and GPU memory) while it trains. After
a crash or the loss of the machine it resumes from the newest one, bit for bit. The job needs no change.

This package brings the program, its shim and its CRIU, for Linux on x86-64 with glibc 2.31 or newer. `phos-ft doctor` says whether a machine can
checkpoint and restore jobs.
"""


if __name__ == "__main__":
    sys.exit(main())
