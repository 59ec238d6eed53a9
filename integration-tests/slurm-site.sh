#!/usr/bin/env bash
# A node of a cluster for tests, in a mount namespace: phos-ft-job as a site installs it, its users, the simulated GPU, and a squeue that
# says what /run/jobs says. /etc, /run, /opt and /usr/local/sbin are copies there; nothing of the machine changes.
#   unshare --mount --propagation private integration-tests/slurm-site.sh BUILD COMMAND ARGUMENT...
# BUILD has the programs (target/debug). Then COMMAND runs, as root.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$1
shift

mount -t tmpfs -o mode=755 site /run
cp -a /etc /run/etc
mount --bind /run/etc /etc
mount -t tmpfs -o mode=755 site /opt
mount -t tmpfs -o mode=755 site /usr/local/sbin
umask 022

mkdir -p /opt/phos/bin /opt/phos/lib /opt/phos/criu /opt/slurm /opt/sim
cp "$build/phos-ft" "$build/phos-trainer" /opt/phos/bin/
cp "$build/libphos_shim.so" "$build/libphos_criu_preload.so" /opt/phos/lib/
cp -rL "$root/.build/criu/." /opt/phos/criu/
cp "$build/libphos_gpu_sim.so" /opt/sim/libcuda.so.1
cp "$build/libphos_gpu_sim.so" /opt/sim/libnvidia-ml.so.1
ln -s libcuda.so.1 /opt/sim/libcuda.so
chown -R 0:0 /opt
chmod -R go-w /opt
echo /opt/sim >/etc/ld.so.conf.d/sim.conf
# The simulated driver is no link, as its processes are seen by its name; ldconfig wonders at that.
ldconfig -i 2>/dev/null
mkdir -p /run/phos-gpu-sim/dev0 /run/phos-gpu-sim/proc
mount -t tmpfs -o size=256m,mode=777 site /run/phos-gpu-sim/dev0
chmod 777 /run/phos-gpu-sim/proc

# The numbers are none that a machine has.
for user in 54242:train 54244:other; do
    name=${user#*:} number=${user%:*}
    echo "$name:x:$number:$number::/run/home/$name:/bin/bash" >>/etc/passwd
    echo "$name:x:$number:" >>/etc/group
    echo "$name:*:19000:0:99999:7:::" >>/etc/shadow
    install -d -o "$number" -g "$number" -m 700 "/run/home/$name"
done
echo "project:x:54243:train" >>/etc/group
sed -i 's/^users:\(.*\):\([^:]*\)$/users:\1:train,other/' /etc/group

install -m 755 "$root/docker/slurm/phos-ft-job" /usr/local/sbin/phos-ft-job
install -m 440 "$root/docker/slurm/sudoers" /etc/sudoers.d/phos-ft-job
cat >/opt/slurm/squeue <<'END'
#!/bin/sh
for word; do case $word in --jobs=*) exec grep "^${word#--jobs=} " /run/jobs ;; esac; done
END
chmod 755 /opt/slurm/squeue
# Another job of the user's, one that is over, one of somebody else.
printf '%s\n' '7 54242 RUNNING' '8 54244 RUNNING' '9 54242 COMPLETED' >/run/jobs
mkdir -p /etc/phos-ft
/opt/phos/bin/phos-ft keygen /etc/phos-ft/slurm.key >/dev/null
(umask 077 && echo AWS_SECRET_ACCESS_KEY=of-the-site >/etc/phos-ft/slurm.env)
cat >/etc/phos-ft/slurm.conf <<'END'
STORE=/run/store
KEY_FILE=/etc/phos-ft/slurm.key
CREDENTIALS=/etc/phos-ft/slurm.env
SQUEUE=/opt/slurm/squeue
STATE_DIR=/run/state
SIDECAR_WAIT=30s
END
exec "$@"
