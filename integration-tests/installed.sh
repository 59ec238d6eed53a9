#!/bin/sh
# In a bare container of a test: installs phos-ft from a package, asks what it says of the machine, and runs a job under it, which is killed, resumed
# and compared with one that nothing happened to.
#   installed.sh deb|wheel
set -eu
die() { echo "installed: error: $*" >&2; exit 1; }

case $1 in
deb)
    dpkg --install /packages/phos-ft_*_amd64.deb
    [ -s /usr/include/phos_ft.h ] || die "no header"
    for file in man/man1/phos-ft.1.gz man/man1/phos-ft-run.1.gz bash-completion/completions/phos-ft zsh/vendor-completions/_phos-ft \
        fish/vendor_completions.d/phos-ft.fish doc/phos-ft/copyright; do
        [ -s "/usr/share/$file" ] || die "no /usr/share/$file"
    done
    (cd / && md5sum --check --quiet /var/lib/dpkg/info/phos-ft.md5sums)
    ;;
wheel)
    python3 -m venv --without-pip /venv
    pip=/pip
    for wheel in /usr/share/python-wheels/pip-*.whl; do
        [ ! -e "$wheel" ] || pip=$wheel
    done
    PYTHONPATH=$pip /venv/bin/python -m pip install --quiet --no-index --disable-pip-version-check /packages/phos_ft-*.whl
    PATH=/venv/bin:$PATH
    [ "$(/venv/bin/python -c 'import phos_ft; print(phos_ft.__version__)')" = "$(phos-ft --version | cut -d' ' -f2)" ] || die "versions differ"
    /venv/bin/python -m phos_ft --version >/dev/null
    [ "$(/venv/bin/python -c 'import phos_ft; phos_ft.step(1); print(phos_ft.enabled(), phos_ft.checkpoint(), phos_ft.last())')" = "False False None" ] \
        || die "hints do something without phos-ft"
    ;;
esac

phos-ft doctor
export PHOS_STATE_DIR=/work/state
# Half a minute, of which a busy machine takes the checkpoint in the first.
steps=500
phos-ft --interval never -- phos-trainer --steps $steps --step-ms 50 --log /work/loss.log 2>/work/said &
supervisor=$!
# What it has not opened yet at a checkpoint is not put back.
until [ -s /work/loss.log ]; do
    kill -0 $supervisor || { cat /work/said >&2; die "the job made no step"; }
    sleep 0.1
done
tries=0
until phos-ft checkpoint; do
    tries=$((tries + 1))
    [ $tries -lt 100 ] || { cat /work/said >&2; die "no checkpoint"; }
    sleep 0.1
done
pid=$(pidof -s phos-trainer)
kill -9 "$pid"
wait $supervisor || { cat /work/said >&2; die "the job ended with $?"; }
grep -q 'resumed checkpoint=' /work/said || { cat /work/said >&2; die "it was not resumed"; }
phos-trainer --steps $steps --log /work/undisturbed.log >/dev/null
cmp /work/loss.log /work/undisturbed.log || die "the resumed job computed something else"
phos-ft list

[ "$1" != deb ] || { dpkg --remove phos-ft && [ ! -e /usr/lib/phos-ft ] && [ ! -e /usr/bin/phos-ft ]; } || die "something was left"
echo "installed: ok"
