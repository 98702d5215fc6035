phase disks
need mkfs.xfs xfsprogs
disks=$(for d in /dev/disk/by-id/*NVMe_Instance_Storage_*; do
  case $d in *-part*) ;; *) [ ! -e "$d" ] || readlink -f "$d" ;; esac
done | sort -u)
# A disk in use has a signature (blkid -p ends with 2 where there is none: no file system, RAID, LVM or
# partition table), a mount, or another device on it.
blank() { # DISK
  rc=0
  blkid -p "$1" >/dev/null 2>&1 || rc=$?
  [ "$rc" = 2 ] && [ "$(lsblk -nro NAME,MOUNTPOINT "$1" | tr -d ' \n')" = "${1##*/}" ]
}
# shellcheck disable=SC2086 # a list of device files
set -- $disks
if ! blkid -L k8s-local >/dev/null; then
  [ "$#" -ge "$LEAST_DISKS" ] || die "reason=disks-too-few want=$LEAST_DISKS are=$#"
  for d in "$@"; do
    blank "$d" || die "reason=disk-not-blank disk=$d"
  done
  target=$1
  if [ "$#" -gt 1 ]; then
    need mdadm mdadm
    target=/dev/md/k8s-local
    mdadm --create "$target" --run --homehost=any --level="$LEVEL" --raid-devices="$#" "$@" || die "reason=disks-raid"
    udevadm settle
  fi
  mkfs.xfs -q -K -L k8s-local "$target" || die "reason=disks-format"
  udevadm settle
fi
uuid=$(blkid -s UUID -o value "$(blkid -L k8s-local)")
mount_unit() { # WHAT WHERE OPTIONS
  unit=$(systemd-escape -p --suffix=mount "$2")
  printf '%s\n' '[Unit]' 'Before=containerd.service kubelet.service' '[Mount]' "What=$1" "Where=$2" "Options=$3" \
    '[Install]' 'WantedBy=multi-user.target' >"/etc/systemd/system/$unit"
  chmod 644 "/etc/systemd/system/$unit"
  systemctl daemon-reload
  systemctl enable --now "$unit" || die "reason=disks-mount where=$2"
}
systemctl stop kubelet.service containerd.service 2>/dev/null || :
mount_unit "/dev/disk/by-uuid/$uuid" /mnt/k8s-local defaults,noatime
for d in /var/lib/kubelet /var/lib/containerd /var/log/pods; do
  mkdir -p "$d" "/mnt/k8s-local/${d##*/}"
  mountpoint -q "$d" || cp -a "$d/." "/mnt/k8s-local/${d##*/}/"
  mount_unit "/mnt/k8s-local/${d##*/}" "$d" bind
done
for u in containerd kubelet; do
  mkdir -p "/etc/systemd/system/$u.service.d"
  printf '[Unit]\nRequiresMountsFor=/var/lib/kubelet /var/lib/containerd /var/log/pods\n' >"/etc/systemd/system/$u.service.d/10-instance-store.conf"
done
chmod -R u=rwX,go=rX /etc/systemd/system/containerd.service.d /etc/systemd/system/kubelet.service.d
