# shellcheck shell=bash
# Packages of a Debian suite without installing them: sourced by scripts that need some (the CRIU bundle, the C library to
# link against, base images). They set `root` (of the repository) and `work` (a folder of their own), and define `say`
# and `die`.
#
#   PHOS_DEBIAN_MIRROR   mirror to take packages from (default: the one in the host's apt sources, else debootstrap's)

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
    if [[ -z $uri ]] && command -v debootstrap >/dev/null; then
        # Not on Debian: the archive that debootstrap would take, which saves naming one here.
        uri=$(sed -n 's/^DEF_MIRROR="\(.*\)"/\1/p' "$(command -v debootstrap)" | head -n 1)
    fi
    [[ -n $uri ]] || die "the host's apt sources name no Debian archive: install debootstrap (which knows one), or give one in
  PHOS_DEBIAN_MIRROR"
    printf '%s\n' "$uri"
}

# fetch SUITE PACKAGE...: the packages and all they depend on, unpacked in $work/root. apt gets lists, cache and an empty
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
