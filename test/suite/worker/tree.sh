#!/bin/sh
# tree.sh DIR [PACKAGE...]: a bare Debian with systemd, cloud-init and curl, as a cloud image has
# them, and nothing of Kubernetes but the packages that are named. The mirror is the one that this machine's apt uses.
set -eu
tree=$1
shift
mirror=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Created-By: Packages' | awk '$2 == "bookworm" { print $1; exit }')
debootstrap --variant=minbase --include=systemd,systemd-sysv,dbus,libnss-systemd,procps,curl,ca-certificates,iproute2,kmod \
  --keyring=/usr/share/keyrings/debian-archive-keyring.gpg bookworm "$tree" "$mirror"
printf '#!/bin/sh\nexit 101\n' >"$tree/usr/sbin/policy-rc.d"
chmod 755 "$tree/usr/sbin/policy-rc.d"
cp /etc/resolv.conf "$tree/etc/"
rm -f "$tree/etc/apt/sources.list"
cp -a /etc/apt/sources.list* "$tree/etc/apt/"
cp -a /etc/apt/apt.conf.d/. "$tree/etc/apt/apt.conf.d/"
unshare -m sh -ec 'mount -t proc proc "$1/proc"
  chroot "$1" sh -ec "export DEBIAN_FRONTEND=noninteractive; apt-get update -qq; apt-get install -y -qq --no-install-recommends cloud-init $2"' _ "$tree" "$*"
rm -rf "$tree/usr/sbin/policy-rc.d" "$tree"/var/cache/apt/archives/*.deb "$tree"/var/lib/apt/lists/*
# Quiet boots: no timers, no console login, no mounts that a container has no use for.
for unit in apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer e2scrub_reap.service console-getty.service getty.target \
  dev-hugepages.mount dev-mqueue.mount sys-kernel-debug.mount sys-kernel-tracing.mount sys-kernel-config.mount sys-fs-fuse-connections.mount \
  modprobe@.service; do
  ln -sf /dev/null "$tree/etc/systemd/system/$unit"
done
: >"$tree/etc/machine-id"
mkdir -p "$tree/var/log/journal"
printf 'datasource_list: [NoCloud]\nnetwork: {config: disabled}\n' >"$tree/etc/cloud/cloud.cfg.d/90-datasource.cfg"
