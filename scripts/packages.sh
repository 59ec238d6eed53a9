#!/usr/bin/env bash
# Makes packages of what scripts/dist.sh laid out: a .deb for Debian 11 and newer and Ubuntu 20.04 and newer, and a wheel for pip. The same bytes
# for the same files.
#   scripts/packages.sh [PROFILE]      of .build/dist (default: release) or .build/dist-PROFILE; into .build/packages or .build/packages-PROFILE
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
profile=${1:-release}
dist=.build/dist out=.build/packages
# Nobody downloads what is tested: it need not be small.
compression=(-Zxz) level=9
if [[ $profile != release ]]; then
    dist=.build/dist-$profile out=.build/packages-$profile
    compression=(-Zgzip -z1) level=1
fi
die() { printf 'packages: error: %s\n' "$*" >&2; exit 1; }
[[ -x $dist/bin/phos-ft ]] || die "$dist is not there: run \`make dist\` first"
command -v dpkg-deb >/dev/null || die "dpkg-deb is missing: install dpkg, as Debian and Ubuntu have it"
version=$("$dist/bin/phos-ft" --version | cut -d' ' -f2)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH

work=$(mktemp -d .build/packages.XXXXXX)
trap 'rm -rf "$work"' EXIT
package=$work/deb usr=$work/deb/usr
mkdir -p "$package/DEBIAN" "$usr"/{bin,include,lib/phos-ft,share/man/man1,share/doc/phos-ft,share/bash-completion/completions} \
    "$usr"/share/{zsh/vendor-completions,fish/vendor_completions.d} "$work/out"
cp -r "$dist"/{bin,lib,criu,seccomp.json} "$usr/lib/phos-ft/"
ln -s ../lib/phos-ft/bin/phos-ft "$usr/bin/phos-ft"
cp shim/include/phos_ft.h "$usr/include/"
program=$dist/bin/phos-ft
"$program" completions bash >"$usr/share/bash-completion/completions/phos-ft"
"$program" completions zsh >"$usr/share/zsh/vendor-completions/_phos-ft"
"$program" completions fish >"$usr/share/fish/vendor_completions.d/phos-ft.fish"
"$program" man "$usr/share/man/man1"
gzip -9n "$usr"/share/man/man1/*.1
{
    printf 'Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: phos-ft\n\n'
    printf 'Files: *\nCopyright: The phos-ft developers\nLicense: Apache-2.0\n'
    printf ' On Debian systems, the text is in /usr/share/common-licenses/Apache-2.0.\n\n'
    printf 'Files: usr/lib/phos-ft/criu/*\nCopyright: see the packages of Debian that usr/lib/phos-ft/criu/packages names\nLicense: GPL-2 and others\n'
    printf ' CRIU and its libraries, as Debian built them.\n'
} >"$usr/share/doc/phos-ft/copyright"
gzip -9nc CHANGELOG.md >"$usr/share/doc/phos-ft/changelog.gz"
sed -e "s/@VERSION@/$version/" -e "s/@KIB@/$(du -sk "$usr" | cut -f1)/" sidecar/packaging/control >"$package/DEBIAN/control"
(cd "$package" && find usr -type f -print0 | sort -z | xargs -0 md5sum) >"$package/DEBIAN/md5sums"
chmod -R a+rX,u+w,go-w "$package"
dpkg-deb --root-owner-group "${compression[@]}" --build "$package" "$work/out/phos-ft_${version}_amd64.deb" >/dev/null
PHOS_LEVEL=$level python3 scripts/wheel.py "$dist" "$version" "$work/out" >/dev/null
rm -rf "$out"
mv "$work/out" "$out"
du -h "$out"/* | sed 's/^/packages: /' >&2
