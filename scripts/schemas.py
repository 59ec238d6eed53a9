#!/usr/bin/env python3
"""Compares what commands printed with the schemas of docs/schemas, which say what `--json` prints.

    scripts/schemas.py FOLDER     of FILE.json in it, by docs/schemas/FILE.json; of COMMAND.2.json as of COMMAND.json

A field that a schema does not have is an error here, although programs should pass over what they do not know: schemas are to have all of them. Runs in
the tests' environment (.build/venv), which has jsonschema.
"""
import json
import sys
from pathlib import Path

from jsonschema import Draft202012Validator

SCHEMAS = Path(__file__).resolve().parent.parent / "docs/schemas"


def strict(schema):
    """The same, with nothing let through that it does not name."""
    if isinstance(schema, list):
        return [strict(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: strict(part) for name, part in schema.items()}
    if "properties" in found:
        found.setdefault("additionalProperties", False)
    return found


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    printed = sorted(Path(sys.argv[1]).glob("*.json"))
    seen, wrong = set(), 0
    for path in printed:
        name = path.name.split(".")[0]
        seen.add(name)
        schema = json.loads((SCHEMAS / f"{name}.json").read_text())
        Draft202012Validator.check_schema(schema)
        for error in Draft202012Validator(strict(schema)).iter_errors(json.loads(path.read_text())):
            print(f"schemas: error: {path.name}: {'/'.join(map(str, error.absolute_path))}: {error.message[:300]}", file=sys.stderr)
            wrong += 1
    missing = {path.stem for path in SCHEMAS.glob("*.json")} - seen
    if missing:
        print(f"schemas: error: nothing was printed for {', '.join(sorted(missing))}", file=sys.stderr)
        wrong += 1
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
