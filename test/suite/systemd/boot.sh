#!/bin/sh
# Boots systemd over the overlay $1 with the name $2, in a cgroup of its own in every
# hierarchy: with --keep-unit nspawn would make its own in the root cgroup.
set -eu
for h in /sys/fs/cgroup/unified /sys/fs/cgroup/systemd /sys/fs/cgroup; do
	[ -w "$h/cgroup.procs" ] || continue
	mkdir -p "$h/$2"
	echo $$ >"$h/$2/cgroup.procs" || true
done
exec env SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1 systemd-nspawn --quiet -D "$1" --machine="$2" \
	--register=no --keep-unit --boot --volatile=no --console=pipe --link-journal=no --resolv-conf=bind-host </dev/null
