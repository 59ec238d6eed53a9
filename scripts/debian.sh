# shellcheck shell=bash
# Packages of a Debian suite without installing them: sourced by scripts that need some (the CRIU bundle, the C library to
# link against, base images). They set `root` (of the repository) and `work` (a folder of their own), and define `say`
# and `die`. Why packages are taken as they are: docs/decisions/19-supply-chain.md.
#
#   PHOS_DEBIAN_MIRROR   mirror to take packages from (default: the one in the host's apt sources, else deb.debian.org)
#   PHOS_PINNED=1        nothing but what is pinned in scripts/pins; without it, what has left the mirror is replaced by what
#                        Debian has now, which its signature vouches for

: "${root:?}" "${work:?}"
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# mirror: prints the archive to take packages from.
mirror() {
    if [[ -n ${PHOS_DEBIAN_MIRROR:-} ]]; then
        printf '%s\n' "$PHOS_DEBIAN_MIRROR"
        return
    fi
    # The archive the host itself is installed from; security archives carry other suites.
    local uri
    uri=$(cat /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list 2>/dev/null |
        sed -nE 's/^URIs: *([^ ]+).*/\1/p; s/^deb (\[[^]]*\] )?([^ ]+).*/\2/p' |
        grep -E '/debian/?$' | head -n 1 || true)
    # Not on Debian: the archive that it names itself.
    printf '%s\n' "${uri:-http://deb.debian.org/debian}"
}

# fetch_pinned PINS: the packages that scripts/pins/PINS names, unpacked in $work/root. Fails if one of them cannot be had; one that is
# not what was pinned ends it all.
fetch_pinned() {
    local pins=$root/scripts/pins/$1 archive sum path file
    archive=$(mirror)
    rm -rf "$work"
    mkdir -p "$work"/{root,cache/archives}
    grep -v '^#' "$pins" >"$work/taken"
    while read -r sum path; do
        file=$work/cache/archives/${path##*/}
        curl --fail --silent --show-error --location --output "$file" "$archive/$path" || {
            say "$archive does not have ${path##*/}, which is pinned in scripts/pins/$1"
            return 1
        }
        printf '%s  %s\n' "$sum" "$file" | sha256sum --check --quiet --strict - ||
            die "$archive/$path is not the package that was pinned in scripts/pins/$1: somebody changed it, there or on the way.
  Take another mirror (PHOS_DEBIAN_MIRROR), and tell its operators"
        dpkg-deb -x "$file" "$work/root" || return 1
    done <"$work/taken"
}

# unpinned PINS: says what it means that a pinned package cannot be had; ends where nothing else may be taken.
unpinned() {
    local remedy="\`scripts/pin.sh debian\` pins what Debian has now; an archive that keeps old packages, as PHOS_DEBIAN_MIRROR, has the
  pinned ones for ever (https://snapshot.debian.org/archive/debian/DATE, DATE on top of scripts/pins/$1)"
    [[ -z ${PHOS_PINNED:-} ]] || die "packages that are pinned in scripts/pins/$1 cannot be had (see above), and others must not be taken
  (PHOS_PINNED): $remedy"
    say "taking what Debian has now instead, by Debian's signature. To get the same as others again: $remedy"
}

# fetch SUITE PACKAGE...: the packages and all they depend on as the suite has them now, unpacked in $work/root. What is taken is what
# the archive's Release file vouches for, which is signed with a key in \`keyring\`. Their SHA-256 and paths are in $work/taken. apt gets lists, cache and an empty
# package status of its own: it resolves the whole closure, and the host's apt sees nothing of it.
fetch() {
    local suite=$1 archive
    shift
    archive=$(mirror)
    [[ -r $keyring ]] || die "no $keyring: install the package debian-archive-keyring"
    rm -rf "$work"
    mkdir -p "$work"/{root,lists/partial,cache/archives/partial,none}
    : >"$work/status"
    printf 'deb [signed-by=%s] %s %s main\n' "$keyring" "$archive" "$suite" >"$work/sources.list"
    local apt=(apt-get -qq -y
        -o "Dir::State=$work" -o "Dir::State::lists=$work/lists" -o "Dir::State::status=$work/status"
        -o "Dir::Cache=$work/cache" -o "Dir::Etc::sourcelist=$work/sources.list"
        -o "Dir::Etc::sourceparts=$work/none" -o "Dir::Etc::preferencesparts=$work/none"
        -o Dir::Etc::preferences=/dev/null -o APT::Sandbox::User=root -o Acquire::Languages=none
        # Contents and DEP-11 indexes are as large as the rest and not needed.
        -o Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled=false
        -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false
        -o Acquire::IndexTargets::deb::DEP-11-icons-small::DefaultEnabled=false
        -o Acquire::IndexTargets::deb::DEP-11-icons::DefaultEnabled=false)
    "${apt[@]}" update >&2 || return 1
    "${apt[@]}" --no-install-recommends -o Acquire::ForceHash=SHA256 --print-uris install "$@" |
        sed -nE "s|^'[^']*/(pool/[^']+)' .* SHA256:([0-9a-f]{64}).*|\\2 \\1|p" >"$work/taken"
    "${apt[@]}" --no-install-recommends --download-only install "$@" >&2 || return 1
    local package
    for package in "$work"/cache/archives/*.deb; do
        dpkg-deb -x "$package" "$work/root" || return 1
    done
}

# renew_keyring: Ubuntu's copy of Debian's keys is older than the newest suites. Each release of Debian vouches for the
# keys of the next: 22.04's copy for bullseye, 24.04's for bookworm.
renew_keyring() {
    local suite renewed=$root/.build/debian-archive-keyring.gpg
    say "trying again with newer keys"
    for suite in bullseye bookworm; do
        fetch "$suite" debian-archive-keyring || continue
        cp -L "$work/root/usr/share/keyrings/debian-archive-keyring.gpg" "$renewed"
        keyring=$renewed
    done
    [[ $keyring == "$renewed" ]]
}
