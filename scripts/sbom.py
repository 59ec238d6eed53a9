"""Puts the CycloneDX documents of several crates together, with packages of Debian: see sbom.sh."""

import argparse
import json
import urllib.parse

SPEC = "1.5"


def plain(node, root):
    """The document without the folder that it was made in."""
    if isinstance(node, dict):
        return {key: plain(value, root) for key, value in node.items()}
    if isinstance(node, list):
        return [plain(value, root) for value in node]
    if isinstance(node, str):
        return node.replace(root, "/phos-ft")
    return node


def debian(line):
    """A component of a line `name version sha256 path`."""
    name, version, sha256, path = line.rstrip("\n").split("\t")
    # Architecture is what stands last in the name of the file.
    arch = path.rsplit("_", 1)[1].removesuffix(".deb")
    purl = f"pkg:deb/debian/{name}@{urllib.parse.quote(version, safe='')}?arch={arch}"
    return {
        "type": "application" if name == "criu" else "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "purl": purl,
        # Of the package that it was taken from.
        "hashes": [{"alg": "SHA-256", "content": sha256}],
        "externalReferences": [{"type": "distribution", "url": f"https://deb.debian.org/debian/{path}"}],
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", required=True)
    parser.add_argument("--packages", required=True)
    parser.add_argument("crates", nargs="+")
    options = parser.parse_args()
    components, depends, mine = {}, {}, []
    metadata = None
    for path in options.crates:
        with open(path, encoding="utf-8") as file:
            document = plain(json.load(file), options.root)
        if document["specVersion"] != SPEC:
            raise SystemExit(f"{path} is of CycloneDX {document['specVersion']}, not {SPEC}")
        own = document["metadata"]["component"]
        metadata = metadata or document["metadata"]
        mine.append(own)
        for component in [own, *document.get("components", [])]:
            components.setdefault(component["bom-ref"], component)
        for entry in document.get("dependencies", []):
            depends.setdefault(entry["ref"], set()).update(entry.get("dependsOn", []))
    with open(options.packages, encoding="utf-8") as file:
        packages = [debian(line) for line in file]
    if not packages:
        raise SystemExit(f"{options.packages} names no packages")
    components.update((component["bom-ref"], component) for component in packages)
    main = mine[0]["bom-ref"]
    criu = [component["bom-ref"] for component in packages]
    # What is delivered beside phos-ft, and run or loaded by it.
    depends.setdefault(main, set()).update([c["bom-ref"] for c in mine[1:]] + criu)
    del components[main]
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": SPEC,
        "version": 1,
        "metadata": metadata,
        "components": [components[ref] for ref in sorted(components)],
        "dependencies": [{"ref": ref, "dependsOn": sorted(on)} for ref, on in sorted(depends.items())],
    }
    print(json.dumps(document, indent=1, sort_keys=True))


main()
