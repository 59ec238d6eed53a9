#!/usr/bin/env bash
# Undoes the rules of storage/mutants and sidecar/mutants one at a time, in a copy of the tree, and runs the tests that must notice.
#   scripts/mutants.sh [NAME...]     all of them take an hour or two on two cores
#   scripts/mutants.sh --share       a seventh of the store's, by the day of the week: what CI runs
#   scripts/mutants.sh --check       only whether each still applies and names tests that exist: quick
# With MUTANTS_UNTIL, a time in seconds since 1970, those are left out that would begin after it, and named.
#
# A mutant is a patch with the rule in a sentence before it ("Rule: ") and the tests that fail without it ("Test: ", one each line).
# When the code changes and one no longer applies, undo the rule in the new code, and take the difference.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

tests_of() { sed -n 's/^Test: //p' "$1"; }
# The package whose tests must notice, by the folder.
package_of() { if [[ $1 == sidecar/* ]]; then echo phos-ft; else echo phos-storage; fi; }

check() {
    local status=0 name
    for patch in {storage,sidecar}/mutants/*.patch; do
        name=$(basename -s .patch "$patch")
        if [[ -e storage/mutants/$name.patch && -e sidecar/mutants/$name.patch ]]; then
            echo "mutants: there are two of the name $name" >&2
            status=1
        fi
        if ! git apply --check "$patch" 2>/dev/null; then
            echo "mutants: $name no longer applies: undo its rule in the code as it is now, and put the difference into $patch" >&2
            status=1
        fi
        if ! grep -q '^Rule: .' "$patch" || [[ -z $(tests_of "$patch") ]]; then
            echo "mutants: $patch does not say which rule it undoes, or which test notices" >&2
            status=1
        fi
        while read -r test; do
            if ! grep -rqE "fn ${test%%::*}\(" "${patch%%/*}"/{tests,src}; then
                echo "mutants: the test $test, which is to notice $name, does not exist" >&2
                status=1
            fi
        done < <(tests_of "$patch")
    done
    return "$status"
}

check
[[ ${1:-} == --check ]] && exit 0
patches=()
if [[ ${1:-} == --share ]]; then
    shift
    day=$(date -u +%u)
    all=(storage/mutants/*.patch)
    for i in "${!all[@]}"; do
        [[ $((i % 7 + 1)) -ne $day ]] || patches+=("${all[$i]}")
    done
    # Where there is no time for all of them, another is the last one each week.
    week=$((10#$(date -u +%V) % ${#patches[@]}))
    patches=("${patches[@]:week}" "${patches[@]:0:week}")
fi

is_too_late() { [[ -n ${MUTANTS_UNTIL:-} && $(date +%s) -ge $MUTANTS_UNTIL ]]; }
if is_too_late; then
    echo "mutants: none tried, as the time is over (MUTANTS_UNTIL)"
    exit 0
fi

# Outside of any repository for git, or it would look for the paths from the root of that. What is built there has another linker by its
# path, so none of it is what is built here.
copy=$root/.build/mutants
export GIT_CEILING_DIRECTORIES=$root/.build CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$root/target}/mutants CARGO_INCREMENTAL=0
rm -rf "$copy"
mkdir -p "$copy"
git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' file; do
    if [[ -e $file ]]; then printf '%s\0' "$file"; fi
done | xargs -0 cp --parents --preserve=mode -t "$copy"
# What setup built: the linker's sysroot.
ln -s "$root/.build" "$copy/.build"
cd "$copy"

# The tests that a file names, of these packages. How nextest ends: 0 all passed, 100 a test failed, else nothing was tested.
run() {
    local filter='' file=$1 packages
    shift
    packages=("${@/#/--package=}")
    while read -r test; do
        filter+="${filter:+ | }test(/(^|::)$test\$/)"
    done < <(tests_of "$file")
    local status=0
    cargo nextest run "${packages[@]}" --locked --no-fail-fast -E "$filter" >"$copy.log" 2>&1 || status=$?
    echo "$status"
}

for name in "$@"; do
    patch=storage/mutants/$name.patch
    [[ -e $patch ]] || patch=sidecar/mutants/$name.patch
    patches+=("$patch")
done
[[ ${#patches[@]} -gt 0 ]] || patches=({storage,sidecar}/mutants/*.patch)

cat "${patches[@]}" >"$copy.all"
mapfile -t packages < <(for patch in "${patches[@]}"; do package_of "$patch"; done | sort -u)
status=$(run "$copy.all" "${packages[@]}")
if [[ $status != 0 ]]; then
    tail -n 50 "$copy.log" >&2
    echo "mutants: the tests do not pass as things are ($copy.log)" >&2
    exit 1
fi

survived=0
for patch in "${patches[@]}"; do
    name=$(basename -s .patch "$patch")
    if is_too_late; then
        printf 'mutants: %-40s left out, as the time is over (MUTANTS_UNTIL)\n' "$name"
        continue
    fi
    git apply "$patch"
    # Each of its tests must notice, not one of them.
    outcome=noticed
    while read -r test; do
        echo "Test: $test" >"$copy.one"
        case $(run "$copy.one" "$(package_of "$patch")") in
        100) ;;
        0) outcome="SURVIVES $test" ;;
        *) outcome="could not be tested ($copy.log)"; tail -n 30 "$copy.log" >&2 ;;
        esac
    done < <(tests_of "$patch")
    git apply --reverse "$patch"
    printf 'mutants: %-40s %s\n' "$name" "$outcome"
    [[ $outcome == noticed ]] || survived=$((survived + 1))
done
if [[ $survived -gt 0 ]]; then
    echo "mutants: $survived of ${#patches[@]} rules are tested by nothing" >&2
    exit 1
fi
