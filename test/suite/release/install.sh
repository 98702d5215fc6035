#!/bin/sh
# What make release and its test need of Debian.
set -eu
for program in reprepro createrepo_c minisign gpg rpmsign debootstrap; do
  command -v "$program" >/dev/null || { apt-get update -qq; DEBIAN_FRONTEND=noninteractive apt-get install -y -qq reprepro createrepo-c minisign gnupg rpm debootstrap; break; }
done
