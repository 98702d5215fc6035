#!/bin/sh
# The first process of a machine, which then becomes systemd. nspawn mounts the controllers
# read-only, and a kubelet needs them. The kernel settings that a kubelet would write to the
# host have no namespace: files with the wanted values lie over them.
for d in /sys/fs/cgroup/*/; do mount -o remount,bind,rw "$d" 2>/dev/null; done
mkdir -p /run/settings
for kv in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 \
  kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
  f=/run/settings/$(echo "${kv%=*}" | tr / .)
  echo "${kv#*=}" >"$f"
  mount --bind "$f" "/proc/sys/${kv%=*}"
done
[ ! -x /usr/local/sbin/worker-devices ] || /usr/local/sbin/worker-devices
exec /lib/systemd/systemd
