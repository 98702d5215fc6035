PATH=$PATH:$bin
export PATH
have() { command -v "$1" >/dev/null 2>&1; }
# fetch NAME PATH FILE: from the first base address whose file has the pinned checksum.
fetch() {
  phase "download file=$1"
  for base in $BASES; do
    if curl -fsSL --connect-timeout 20 --retry 5 --retry-connrefused --retry-max-time 180 -o "$3" "$base$2"; then
      if echo "$(sum "$1")  $3" | sha256sum -c - >/dev/null 2>&1; then return 0; fi
      why=checksum rc=
    else
      why=download rc=" curl=$?"
      if [ -n "$(full)" ]; then why=no-space rc=; fi
    fi
    rm -f "$3"
  done
  die "reason=$why file=$1$rc"
}
# place FILE: as a program, whole or not at all.
place() {
  install -m 755 "$1" "$bin/.${1##*/}.new"
  mv -f "$bin/.${1##*/}.new" "$bin/${1##*/}"
}
tmp=$(mktemp -d)
mkdir -p "$bin" /opt/cni/bin /etc/modules-load.d /etc/sysctl.d /etc/systemd/system /etc/containerd/conf.d
chmod 755 "$prefix" "$bin" /opt /opt/cni /opt/cni/bin /etc/containerd /etc/containerd/conf.d
printf 'overlay\nbr_netfilter\n' >/etc/modules-load.d/kubernetes.conf
modprobe -a overlay br_netfilter || phase "warning reason=modules"
printf '%s = 1\n' net.bridge.bridge-nf-call-iptables net.bridge.bridge-nf-call-ip6tables \
  net.ipv4.ip_forward net.ipv6.conf.all.forwarding >/etc/sysctl.d/90-kubernetes.conf
printf '%s\n' 'fs.inotify.max_user_instances = 8192' 'fs.inotify.max_user_watches = 524288' >>/etc/sysctl.d/90-kubernetes.conf
chmod 644 /etc/modules-load.d/kubernetes.conf /etc/sysctl.d/90-kubernetes.conf
sysctl -q -p /etc/sysctl.d/90-kubernetes.conf || phase "warning reason=sysctl"
swapoff -a || :
systemctl mask --quiet swap.target || :
