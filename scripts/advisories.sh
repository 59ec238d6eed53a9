#!/usr/bin/env bash
# Holds Cargo.lock against the known vulnerabilities of crates: the RustSec database as it is pinned in scripts/pins, without a network.
# `make advisories` asks for the newest; `scripts/pin.sh advisories` pins it.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
say() { printf 'advisories: %s\n' "$*" >&2; }

read -r commit date <scripts/pins/advisories.commit
database=$root/.build/advisories
# Below a name that cargo-deny makes of the database's address.
place=$database/advisory-db-3157b0e258782691
if [[ $(cat "$database/commit" 2>/dev/null) != "$commit" ]]; then
    rm -rf "$database"
    mkdir -p "$place"
    tar -xJf scripts/pins/advisories.tar.xz -C "$place"
    # It wants a repository with a commit, and looks at when it was fetched: when it was laid out here. How old the content is,
    # is said below: a build that was sound must not fail because time goes by.
    git -C "$place" init --quiet
    git -C "$place" -c user.name=phos-ft -c user.email=phos-ft@localhost commit --quiet --allow-empty -m "$commit"
    touch "$place/.git/FETCH_HEAD"
    echo "$commit" >"$database/commit"
fi
touch "$place/.git/FETCH_HEAD"
# Whether a crate was withdrawn since is not in the database, and nothing that can be asked here.
sed "s|^\[advisories\]|&\ndb-path = \"$database\"|; s|^yanked = .*|yanked = \"allow\"|" deny.toml >"$database/deny.toml"
"${CARGO:-cargo}" deny --config "$database/deny.toml" --workspace --locked --offline check advisories
days=$((($(date +%s) - $(date -d "$date" +%s)) / 86400))
say "none known on ${date%%T*}, $days days ago"
[[ $days -lt 120 ]] || say "that is long ago: \`make advisories\` asks for the newest, \`scripts/pin.sh advisories CLONE\` pins it"
