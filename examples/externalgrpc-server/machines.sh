#!/bin/sh
# Machines that are files: for a first look at the example without a cloud. Put virsh,
# qm, govc or your provider's own tool in their place.
set -eu
dir=${MACHINES_DIR:-/tmp/externalgrpc-machines}
mkdir -p "$dir"
case $1 in
list)
	for f in "$dir"/*; do
		[ -e "$f" ] || continue
		echo "${f##*/} $(cat "$f")"
	done
	;;
create)
	[ ! -e "$dir/.fail" ] || { echo "no machine today" >&2; exit 1; }
	echo "running 127.0.0.1 $(date -u +%Y-%m-%dT%H:%M:%SZ)" >"$dir/.$2"
	mv "$dir/.$2" "$dir/$2"
	;;
delete) rm -f "$dir/$2" ;;
*)
	echo "usage: $0 list | create NAME | delete NAME" >&2
	exit 2
	;;
esac
