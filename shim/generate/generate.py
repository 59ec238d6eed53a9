#!/usr/bin/env python3
"""Writes shim/src/table/generated.rs from cuda.h and classes.toml.

    generate.py [--check] [--header PATH/cuda.h]

Without --header the header is taken from the wheel nvidia-cuda-runtime (version below), which pip
downloads into .build/. `cc -E` expands the header with __CUDA_API_VERSION_INTERNAL, so that every
name a driver exports appears: each version suffix, and the _ptds and _ptsz variants.

--check writes nothing and fails if the committed file is not what would be written.
"""

import argparse
import fnmatch
import pathlib
import re
import subprocess
import sys
import zipfile

try:
    import tomllib
except ModuleNotFoundError:  # before Python 3.11; scripts/requirements.txt has it
    import tomli as tomllib

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
OUTPUT = HERE.parent / "src" / "table" / "generated.rs"
PACKAGE = "nvidia-cuda-runtime"
VERSION = "13.5.37"

SCALARS = {
    "char": "std::ffi::c_char",
    "signed char": "i8",
    "unsigned char": "u8",
    "short": "i16",
    "unsigned short": "u16",
    "int": "i32",
    "unsigned": "u32",
    "unsigned int": "u32",
    "long long": "i64",
    "unsigned long long": "u64",
    "long": "i64",
    "unsigned long": "u64",
    "size_t": "usize",
    "float": "f32",
    "double": "f64",
    "uint32_t": "u32",
    "uint64_t": "u64",
    "int64_t": "i64",
    "cuuint32_t": "u32",
    "cuuint64_t": "u64",
    "void": "c_void",
}

# Structures that a driver call takes by value: written by hand in abi.rs.
BY_VALUE = {"CUmemLocation": "MemLocation", "CUipcMemHandle": "IpcHandle", "CUipcEventHandle": "IpcHandle"}

RESERVED = {"type", "ref", "in", "fn", "mod", "move", "use", "match", "loop"}


def fail(message):
    sys.exit(f"generate.py: {message}")


def header_path(argument):
    if argument:
        return pathlib.Path(argument)
    folder = ROOT / ".build" / f"cuda-{VERSION}"
    header = folder / "cuda.h"
    if not header.exists():
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:",
             "--platform", "manylinux_2_17_x86_64", "--platform", "manylinux2014_x86_64",
             "-d", folder, f"{PACKAGE}=={VERSION}"],
            check=True,
        )
        (wheel,) = folder.glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            (member,) = [n for n in archive.namelist() if n.endswith("/cuda.h")]
            header.write_bytes(archive.read(member))
    return header


def expand(header):
    command = ["cc", "-E", "-P", "-D__CUDA_API_VERSION_INTERNAL", "-x", "c", str(header)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return re.sub(r"__attribute__\s*\(\([^)]*\)\)", "", text)


def typedefs(text):
    """Name of a type -> ("scalar", rust) | ("pointer",) | ("struct", name)."""
    types = {name: ("scalar", rust) for name, rust in SCALARS.items()}
    # Bodies first: typedef enum|struct|union [tag] { ... } NAME;
    depth_free = re.sub(r"\{[^{}]*\}", "{}", text)
    while "{" in re.sub(r"\{\}", "", depth_free):
        shorter = re.sub(r"\{(?:[^{}]|\{\})*\}", "{}", depth_free)
        if shorter == depth_free:
            break
        depth_free = shorter
    for kind, name in re.findall(r"typedef\s+(enum|struct|union)\s*\w*\s*\{\}\s*(\w+)\s*;", depth_free):
        types[name] = ("scalar", "u32") if kind == "enum" else ("struct", name)
    # Structures that are only named here and have their body elsewhere.
    for name in re.findall(r"typedef\s+(?:struct|union)\s+\w+\s+(\w+)\s*;", depth_free):
        types.setdefault(name, ("struct", name))
    for name in re.findall(r"typedef\s+struct\s+\w+\s*\*\s*(\w+)\s*;", depth_free):
        types[name] = ("pointer",)
    for name in re.findall(r"typedef\s+[\w\s\*]+\(\s*\*\s*(\w+)\s*\)\s*\(", depth_free):
        types[name] = ("pointer",)
    for old, name in re.findall(r"typedef\s+((?:\w+\s+)+?)(\w+)\s*;", depth_free):
        old = " ".join(w for w in old.split() if w not in ("const", "struct", "enum"))
        if old in types and name not in types:
            types[name] = types[old]
    return types


def rust_type(c_type, types):
    c_type = c_type.strip()
    stars = c_type.count("*")
    const = bool(re.match(r"const\b", c_type))
    base = " ".join(w for w in c_type.replace("*", " ").split() if w not in ("const", "struct", "enum"))
    if base not in types:
        fail(f"unknown type {c_type!r}")
    kind = types[base]
    if kind[0] == "scalar":
        rust = kind[1]
    elif kind[0] == "pointer":
        rust = "Handle"
    elif stars == 0:
        if base.removesuffix("_v1") not in BY_VALUE:
            fail(f"{base} is passed by value: add it to abi.rs and to BY_VALUE")
        return BY_VALUE[base.removesuffix("_v1")]
    else:
        rust = BY_VALUE.get(base, "c_void")
    for level in range(stars):
        rust = ("*const " if const and level == 0 else "*mut ") + rust
    return rust


def parameters(text, types):
    text = " ".join(text.split())
    if text in ("", "void"):
        return []
    result = []
    for i, part in enumerate(text.split(",")):
        part = part.strip()
        array = part.endswith("]")
        part = re.sub(r"\[[^\]]*\]", "", part)
        match = re.match(r"^(.*?[\s\*])(\w+)$", part)
        c_type, name = match.groups() if match else (part, f"a{i}")
        if array:
            c_type += "*"
        name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
        if name in RESERVED:
            name += "_"
        if name in [n for n, _ in result]:
            name = f"{name}{i}"
        result.append((name, rust_type(c_type, types)))
    return result


def functions(text, types):
    found = {}
    for statement in re.sub(r"^#.*$", "", text, flags=re.M).split(";"):
        match = re.match(r"^\s*(?:extern \"C\" \{)?\s*(?:extern\s+)?CUresult\s+(cu[A-Z]\w*)\s*\((.*)\)\s*$", statement, re.S)
        if match:
            found.setdefault(match[1], match[2])
    return {name: parameters(arguments, types) for name, arguments in found.items()}


def strip_stream(name):
    return re.sub(r"_pt[ds][sz]$", "", name)


def base(name):
    return re.sub(r"_v\d+$", "", strip_stream(name))


def classify(names, classes):
    track = {n: module for module, group in classes["track"].items() for n in group}
    result, used = {}, set()
    for name in sorted(names):
        plain = strip_stream(name)
        if plain in track:
            used.add(plain)
            result[name] = ("track", track[plain])
            continue
        exact = [c for c in ("gate", "hold") if plain in classes[c]["names"]]
        fitting = exact or [
            c for c in ("gate", "hold")
            if any(fnmatch.fnmatchcase(plain, p) for p in classes[c]["names"] if "*" in p)
        ]
        if not fitting:
            fail(f"{name} is in cuda.h and in no class of classes.toml")
        if len(fitting) > 1:
            fail(f"{name} fits more than one class")
        result[name] = (fitting[0], None)
    for missing in set(track) - used:
        fail(f"{missing} is tracked in classes.toml and not in cuda.h")
    for c in ("gate", "hold"):
        for pattern in classes[c]["names"]:
            if not any(fnmatch.fnmatchcase(strip_stream(n), pattern) for n in names) and "*" not in pattern:
                fail(f"{pattern} in class {c} names nothing in cuda.h")
    return result


def constant(name):
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).upper()


def render(known, kinds, classes):
    wanted = sorted(known)
    for name in classes["uses"]["names"]:
        if name not in known:
            fail(f"{name} in [uses] is not in cuda.h")
    waiting = set(classes["wait"]["names"])
    for name in waiting:
        if kinds.get(name, ("track", None))[0] == "track":
            fail(f"{name} in [wait] is not in cuda.h, or is tracked: its wrapper has to call moment::waited itself")
    out = []
    w = out.append
    w("// Written by shim/generate/generate.py from cuda.h and classes.toml. Do not edit.")
    w("")
    w("use std::ffi::c_void;")
    w("")
    w("use crate::abi::{Handle, IpcHandle, MemLocation};")
    w("use crate::table::{Entry, Wrapper};")
    w("use crate::{driver, gate, moment};")
    w("")
    w("#[rustfmt::skip]")
    w("/// Entry points by number: an [`Entry`] is an index of [`NAMES`], which is sorted.")
    w("#[allow(missing_docs, dead_code)]")
    w("pub mod ids {")
    w("    use crate::table::Entry;")
    for i, name in enumerate(wanted):
        w(f"    pub const {constant(name)}: Entry = Entry({i});")
    w("}")
    w("")
    w("/// How many entry points have a number.")
    w(f"pub const COUNT: usize = {len(wanted)};")
    w("")
    w("/// Their names, sorted.")
    w("#[rustfmt::skip]")
    w("pub static NAMES: [&std::ffi::CStr; COUNT] = [")
    for name in wanted:
        w(f'    c"{name}",')
    w("];")
    w("")
    w("/// What takes the place of each.")
    w("#[rustfmt::skip]")
    w("pub static WRAPPERS: [Wrapper; COUNT] = [")
    for name in wanted:
        w(f"    Wrapper(exports::{name} as *const ()),")
    w("];")
    w("")
    for title, constant_name, classes_of in [
        ("what has a wrapper written by hand, which a newer version would need as well", "TRACKED", ("track",)),
        ("what only passes the gate", "HELD", ("gate", "hold")),
    ]:
        tracked = {base(n) for n in known if kinds[n][0] == "track" and kinds[n][1] not in classes["unknown"]["counted"]}
        bases = tracked if classes_of == ("track",) else {base(n) for n in known} - tracked
        w(f"/// Names without version and stream suffix of {title}, sorted.")
        w("#[rustfmt::skip]")
        w(f"pub static {constant_name}: [&str; {len(bases)}] = [")
        for name in sorted(bases):
            w(f'    "{name}",')
        w("];")
        w("")
    for constant_name, key, title in [
        ("HARMLESS", "harmless_prefixes", "Beginnings of names that are in no cuda.h known here and only ask"),
        ("REFUSED", "refused_words", "Words in names that are in no cuda.h known here and that enqueue, allocate or share"),
    ]:
        words = sorted(classes["unknown"][key])
        w(f"/// {title}.")
        w("#[rustfmt::skip]")
        w(f"pub static {constant_name}: [&str; {len(words)}] = [")
        for name in words:
            w(f'    "{name}",')
        w("];")
        w("")
    w("/// The driver's own functions, typed. Each is undefined behaviour exactly where the driver's is;")
    w("/// a function that this driver lacks answers `CUDA_ERROR_NOT_SUPPORTED`.")
    w("#[rustfmt::skip]")
    w("#[allow(non_snake_case, missing_docs, dead_code, clippy::missing_safety_doc, clippy::too_many_arguments)]")
    w("pub mod real {")
    w("    use super::*;")
    for name in sorted(classes["uses"]["names"]):
        arguments = known[name]
        signature = ", ".join(f"{n}: {t}" for n, t in arguments)
        types = ", ".join(t for _, t in arguments)
        values = ", ".join(n for n, _ in arguments)
        w(f"    pub unsafe fn {name}({signature}) -> u32 {{")
        w(f"        let Some(address) = driver::address(ids::{constant(name)}) else {{ return driver::missing() }};")
        w(f"        // SAFETY: the address is that of this entry point, whose C signature stands here.")
        w(f"        unsafe {{ std::mem::transmute::<*const (), unsafe extern \"C\" fn({types}) -> u32>(address)({values}) }}")
        w("    }")
    w("}")
    w("")
    w("/// The driver's own functions behind tracked entry points: the number tells which variant.")
    w("#[rustfmt::skip]")
    w("#[allow(non_snake_case, missing_docs, dead_code, clippy::missing_safety_doc, clippy::too_many_arguments)]")
    w("pub mod tracked {")
    w("    use super::*;")
    seen = set()
    for name in wanted:
        if kinds[name][0] != "track" or strip_stream(name) in seen:
            continue
        seen.add(strip_stream(name))
        arguments = known[name]
        signature = "".join(f", {n}: {t}" for n, t in arguments)
        types = ", ".join(t for _, t in arguments)
        values = ", ".join(n for n, _ in arguments)
        w(f"    pub unsafe fn {strip_stream(name)}(entry: Entry{signature}) -> u32 {{")
        w("        let Some(address) = driver::address(entry) else { return driver::missing() };")
        w("        // SAFETY: the address is that of a variant of this entry point, whose C signature stands here.")
        w(f"        unsafe {{ std::mem::transmute::<*const (), unsafe extern \"C\" fn({types}) -> u32>(address)({values}) }}")
        w("    }")
    w("}")
    w("")
    w("/// What the library exports.")
    w("#[rustfmt::skip]")
    w("#[allow(non_snake_case, missing_docs, dead_code, clippy::missing_safety_doc, clippy::too_many_arguments)]")
    w("pub mod exports {")
    w("    use super::*;")
    for name in wanted:
        kind, module = kinds[name]
        arguments = known[name]
        signature = ", ".join(f"{n}: {t}" for n, t in arguments)
        types = ", ".join(t for _, t in arguments)
        values = ", ".join(n for n, _ in arguments)
        w("    #[cfg_attr(not(test), unsafe(no_mangle))]")
        w(f"    pub unsafe extern \"C\" fn {name}({signature}) -> u32 {{")
        if kind in ("gate", "hold"):
            w(f"        let Some(address) = driver::address(ids::{constant(name)}) else {{ return driver::missing() }};")
            waits = strip_stream(name) in waiting
            w(f"        let {'' if waits else '_'}inside = gate::{'enter' if kind == 'gate' else 'enter_query'}();")
            w("        // SAFETY: the address is that of this entry point, whose C signature stands here.")
            call = f"unsafe {{ std::mem::transmute::<*const (), unsafe extern \"C\" fn({types}) -> u32>(address)({values}) }}"
            if waits:
                w(f"        let result = {call};")
                w("        drop(inside);")
                w("        moment::waited(result);")
                w("        result")
            else:
                w(f"        {call}")
        else:
            comma = ", " if values else ""
            w("        // SAFETY: the caller's promises are those of the entry point.")
            w(f"        unsafe {{ crate::{module}::{strip_stream(name)}(ids::{constant(name)}{comma}{values}) }}")
        w("    }")
    w("}")
    w("")
    return "\n".join(out)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--header")
    options = parser.parse_args()
    classes = tomllib.loads((HERE / "classes.toml").read_text())
    text = expand(header_path(options.header))
    known = functions(text, typedefs(text))
    if len(known) < 600:
        fail(f"only {len(known)} functions found: the header was not understood")
    kinds = classify(known, classes)
    written = render(known, kinds, classes)
    if options.check:
        if not OUTPUT.exists() or OUTPUT.read_text() != written:
            fail(f"{OUTPUT.relative_to(ROOT)} is out of date: run shim/generate/generate.py")
        return
    OUTPUT.write_text(written)
    count = {c: sum(1 for k, _ in kinds.values() if k == c) for c in ("gate", "track", "hold")}
    print(f"{len(known)} functions: {count}")


if __name__ == "__main__":
    main()
