#!/bin/sh
# Host packages of make e2e-worker.
set -eu
if command -v systemd-nspawn >/dev/null && command -v debootstrap >/dev/null && command -v ip >/dev/null && command -v mkfs.xfs >/dev/null && command -v cc >/dev/null && [ -e /usr/include/blkid/blkid.h ]; then exit 0; fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends systemd-container debootstrap iproute2 xfsprogs gcc libc6-dev libblkid-dev
