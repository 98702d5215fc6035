#!/bin/sh
# tree.sh DIR: a root directory with Debian's cloud-init, the Python that it needs, and shells, from
# the packages of this machine's apt. Nothing is installed on this machine, and no script of a
# package is run.
set -eu
tree=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/archives/partial"
: >"$work/status" # as if nothing were installed: every package comes, libc too
fetch() {
  apt-get -qq -y -o Dir::State::status="$work/status" -o Dir::Cache::archives="$work/archives" -o APT::Sandbox::User=root -o Debug::NoLocking=1 \
    --no-install-recommends --download-only install cloud-init python3 dash bash coreutils base-passwd
}
fetch >/dev/null 2>&1 || { apt-get update -qq && fetch; }
mkdir -p "$tree/tmp"
for d in bin sbin lib lib64; do
  mkdir -p "$tree/usr/$d"
  ln -s "usr/$d" "$tree/$d"
done
for deb in "$work"/archives/*.deb; do
  dpkg-deb --fsys-tarfile "$deb" | tar -x --keep-directory-symlink -C "$tree"
done
cp "$tree/usr/share/base-passwd/passwd.master" "$tree/etc/passwd"
cp "$tree/usr/share/base-passwd/group.master" "$tree/etc/group"
