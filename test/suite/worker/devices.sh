#!/bin/sh
# What udev does on a real machine, which no container runs: links to the disks that this one has, by
# the name that an instance-store volume has on AWS, and by what is on them. udevadm settle and the
# machine's first process run it.
mkdir -p /dev/disk/by-id /dev/disk/by-uuid /dev/disk/by-label
for d in /dev/loop[0-9]* /dev/md[0-9]*; do
  [ -b "$d" ] || continue
  case $d in /dev/loop*) ln -sf "$d" "/dev/disk/by-id/nvme-Amazon_EC2_NVMe_Instance_Storage_AWS${d##*/}" ;; esac
  uuid=$(blkid -p -s UUID -o value "$d") || continue
  [ -z "$uuid" ] || ln -sf "$d" "/dev/disk/by-uuid/$uuid"
  label=$(blkid -p -s LABEL -o value "$d")
  [ -z "$label" ] || ln -sf "$d" "/dev/disk/by-label/$label"
done
