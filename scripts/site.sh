#!/usr/bin/env bash
# Makes a site of docs/ in .build/site: its pages as they are, README.md and SECURITY.md with them, and what phos-ft says of its commands.
#   scripts/site.sh [PROFILE]     phos-ft of target/PROFILE (default: debug), built before
#   scripts/site.sh --check       only whether each page is in the summary, and each link leads somewhere; needs nothing that is built
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
die() { printf 'site: error: %s\n' "$*" >&2; exit 1; }
check=
[[ ${1:-} != --check ]] || check=yes
program=${CARGO_TARGET_DIR:-$root/target}/${1:-debug}/phos-ft
if [[ -z $check ]]; then
    [[ -x $program ]] || die "$program is not there: build it first (make site does)"
    command -v mdbook >/dev/null || die "no mdbook: scripts/setup.sh --site installs it"
fi

mkdir -p .build
work=$(mktemp -d .build/site.XXXXXX)
trap 'rm -rf "$work"' EXIT
cp -r docs/. "$work/"
# What they link to lies in one folder here.
sed 's|](docs/|](|g' README.md >"$work/introduction.md"
sed 's|](docs/|](|g' SECURITY.md >"$work/security.md"
sed -i 's|](\(\.\./\)*SECURITY\.md|](security.md|g; s|](\.\./README\.md|](introduction.md|g' "$work"/*.md
sed -i 's|](\.\./\.\./README\.md|](../introduction.md|g' "$work"/decisions/*.md
for page in "$work"/decisions/[0-9]*.md; do
    printf '%s\t- [%s](decisions/%s)\n' "$(basename "$page" | cut -d- -f1)" "$(sed -n '1s/^# //p' "$page")" "$(basename "$page")"
done | sort -n | cut -f2- >>"$work/SUMMARY.md"

export COLUMNS=110
# Backticks are Markdown's.
# shellcheck disable=SC2016
help_of() { printf '\n## phos-ft %s\n\n```text\n%s\n```\n' "$1" "$("$program" "$@" --help)"; }
# shellcheck disable=SC2016
commands() {
    printf '# Commands, flags and exit codes\n\nWhat `phos-ft --help` and `phos-ft COMMAND --help` say.\n\n## phos-ft\n\n```text\n%s\n```\n' "$("$program" --help)"
    # Each command stands in two columns, the first of which is its name.
    for command in $("$program" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z][a-z-]*\) .*/\1/p'); do
        [[ $command == help ]] || help_of "$command"
    done
}
if [[ -n $check ]]; then : >"$work/commands.md"; else commands >"$work/commands.md"; fi
[[ -n $check || $(grep -c '^## ' "$work/commands.md") -gt 10 ]] || die "what phos-ft says of its commands is not understood"

# A page that is linked to and is not there is a mistake.
missing=$(cd "$work" && grep -roP '\]\(\K(?!https?:|#)[^)#]+' --include='*.md' . | while IFS=: read -r page link; do
    [[ -e $(dirname "$page")/$link ]] || printf '%s leads to %s\n' "$page" "$link"
done)
# What lies beside docs/ is not on the site.
missing=$(grep -vP 'leads to (\.\./)*(docker|integration-tests|scripts|sidecar|shim|storage|policies|fuzz)/' <<<"$missing" || true)
[[ -z $missing ]] || die "pages that are not there:
$missing"

# So is a page that nobody finds.
lost=$(cd "$work" && for page in *.md; do
    [[ $page == SUMMARY.md ]] || grep -qF "($page)" SUMMARY.md || echo "$page"
done)
[[ -z $lost ]] || die "pages that are not in docs/SUMMARY.md: $lost"
[[ -z $check ]] || exit 0

mdbook build --dest-dir "$root/.build/site" "$work" >&2
printf 'site: %s, %s pages\n' .build/site "$(find .build/site -name '*.html' | wc -l)" >&2
