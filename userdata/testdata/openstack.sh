#!/bin/sh
# Worker user data made by autoscaler-agent: Kubernetes v1.30.14 on openstack.
# It holds a join token: keep it from other users. Safe to run at every boot.
set -eu
umask 077
phase() {
  echo "autoscaler-agent: phase=$*"
  c=${JOIN_CONSOLE:-/dev/console}
  if [ -w "$c" ]; then echo "autoscaler-agent: phase=$*" 2>/dev/null >"$c" || :; fi
}
if [ -e /etc/kubernetes/kubelet.conf ]; then
  phase already-joined
  exit 0
fi
trap 'rc=$?; [ "$rc" -eq 0 ] || phase "failed rc=$rc"' EXIT
phase start
phase install
VERSION='v1.30.14'
KUBERNETES_URL='https://mirror.example.net/k8s'
case $(uname -m) in
  x86_64) ARCH=amd64 ;;
  aarch64 | arm64) ARCH=arm64 ;;
  *) phase "failed reason=architecture-$(uname -m)"; exit 1 ;;
esac
CNI_URL='https://github.com/containernetworking/plugins/releases/download/v1.9.1/cni-plugins-linux-'"$ARCH"'-v1.9.1.tgz'
CONTAINERD_URL='https://github.com/containerd/containerd/releases/download/v2.2.5/containerd-2.2.5-linux-'"$ARCH"'.tar.gz'
RUNC_URL='https://github.com/opencontainers/runc/releases/download/v1.4.3/runc.'"$ARCH"''
sum() {
  case $1/$ARCH in
    'kubelet/amd64') echo 'cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc' ;;
    'kubelet/arm64') echo 'dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd' ;;
  esac
}
PATH=$PATH:/opt/bin
export PATH
have() { command -v "$1" >/dev/null 2>&1; }
# fetch NAME URL FILE SUFFIX: NAME finds the pinned sum, URL.SUFFIX is the published one.
fetch() {
  phase "download file=$1"
  get="curl -fsSL --connect-timeout 20 --retry 6 --retry-connrefused"
  $get -o "$3" "$2"
  want=$(sum "$1")
  [ -n "$want" ] || want=$($get "$2.$4" | cut -d ' ' -f 1)
  if ! echo "$want  $3" | sha256sum -c - >/dev/null; then
    rm -f "$3"
    phase "failed reason=checksum file=$1"
    exit 1
  fi
}
tmp=$(mktemp -d)
mkdir -p /opt/bin /opt/cni/bin /etc/modules-load.d /etc/sysctl.d /etc/systemd/system /etc/containerd
chmod 755 /opt/bin /opt/cni /opt/cni/bin /etc/containerd
printf 'overlay\nbr_netfilter\n' >/etc/modules-load.d/kubernetes.conf
modprobe -a overlay br_netfilter || :
printf '%s = 1\n' net.bridge.bridge-nf-call-iptables net.bridge.bridge-nf-call-ip6tables \
  net.ipv4.ip_forward net.ipv6.conf.all.forwarding >/etc/sysctl.d/90-kubernetes.conf
chmod 644 /etc/modules-load.d/kubernetes.conf /etc/sysctl.d/90-kubernetes.conf
sysctl -q -p /etc/sysctl.d/90-kubernetes.conf || :
swapoff -a || :
systemctl mask --quiet swap.target || :
if ! have containerd; then
  fetch containerd "$CONTAINERD_URL" "$tmp/containerd.tgz" sha256sum
  tar -C /opt -xzf "$tmp/containerd.tgz"
  cat >/etc/systemd/system/containerd.service <<'UNIT'
[Unit]
Description=containerd
After=network.target
[Service]
ExecStart=/opt/bin/containerd
Environment=PATH=/opt/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
Type=notify
Delegate=yes
KillMode=process
Restart=always
RestartSec=5
LimitNOFILE=1048576
TasksMax=infinity
OOMScoreAdjust=-999
[Install]
WantedBy=multi-user.target
UNIT
  chmod 644 /etc/systemd/system/containerd.service
fi
if ! have runc; then
  fetch runc "$RUNC_URL" "$tmp/runc" sha256
  install -m 755 "$tmp/runc" /opt/bin/runc
fi
# Flatcar's own configuration is in /usr; a package may ship one with CRI switched off.
conf=/etc/containerd/config.toml
if [ ! -e $conf ] && [ ! -e /usr/share/containerd/config.toml ] || grep -qs '^disabled_plugins.*"cri"' $conf; then
  containerd config default | sed 's/SystemdCgroup = false/SystemdCgroup = true/' >"$tmp/config.toml"
  install -m 644 "$tmp/config.toml" $conf
  systemctl try-restart containerd || :
fi
if [ ! -e /opt/cni/bin/loopback ]; then
  fetch cni "$CNI_URL" "$tmp/cni.tgz" sha256
  tar -C /opt/cni/bin -xzf "$tmp/cni.tgz"
fi
for name in kubeadm kubelet; do
  if ! have $name; then
    fetch $name "$KUBERNETES_URL/$VERSION/bin/linux/$ARCH/$name" "$tmp/$name" sha256
    install -m 755 "$tmp/$name" /opt/bin/$name
  fi
done
rm -rf "$tmp"
if ! systemctl cat kubelet.service >/dev/null 2>&1; then
  mkdir -p /etc/systemd/system/kubelet.service.d
  cat >/etc/systemd/system/kubelet.service <<UNIT
[Unit]
Description=kubelet
Wants=network-online.target
After=network-online.target containerd.service
[Service]
ExecStart=$(command -v kubelet)
Restart=always
RestartSec=10
StartLimitIntervalSec=0
[Install]
WantedBy=multi-user.target
UNIT
  cat >/etc/systemd/system/kubelet.service.d/10-kubeadm.conf <<'UNIT'
[Service]
Environment="KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf"
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
ExecStart=
UNIT
  echo "ExecStart=$(command -v kubelet)"' $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS' \
    >>/etc/systemd/system/kubelet.service.d/10-kubeadm.conf
  chmod -R u=rwX,go=rX /etc/systemd/system/kubelet.service /etc/systemd/system/kubelet.service.d
fi
systemctl daemon-reload
systemctl enable --now containerd.service
systemctl enable --now kubelet.service
# --- join: begin ---
set -eu
JOIN_ENDPOINT='[2001:db8::1]:6443'
JOIN_TOKEN='{{join token}}'
JOIN_CERT_HASH='sha256:0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a,sha256:1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b'
umask 077
phase() {
  echo "autoscaler-agent: phase=$*"
  c=${JOIN_CONSOLE:-/dev/console}
  if [ -w "$c" ]; then echo "autoscaler-agent: phase=$*" 2>/dev/null >"$c" || :; fi
}
die() { phase "failed $*"; exit 1; }
dir=${JOIN_DIR:-/run/autoscaler-agent}
metadata=${OPENSTACK_METADATA_ENDPOINT:-http://169.254.169.254}
metadata=${metadata%/}
phase metadata
drive() {
  [ -e /dev/disk/by-label/config-2 ] || return 1
  mkdir -p "$dir/drive"
  mount -o ro /dev/disk/by-label/config-2 "$dir/drive" || return 1
  cat "$dir/drive/openstack/latest/meta_data.json"
  umount "$dir/drive" || :
}
mkdir -p "$dir"
document=$(drive || curl -fsS --connect-timeout 5 --max-time 20 --retry 6 --retry-connrefused \
  "$metadata/openstack/latest/meta_data.json") || die reason=metadata
document=$(printf '%s' "$document" | tr -d '\n')
outer=$(printf '%s' "$document" | sed -e 's/^ *{//' -e 's/} *$//' -e ':a' -e 's/{[^{}]*}//g' -e 'ta' -e 's/\[[^][]*\]//g')
fact() {
  printf '%s' "$1" | tr ',{}' '\n\n\n' | sed -n 's/^ *"'"$2"'": *"\([^"\\]*\)" *$/\1/p' | head -n 1
}
NODE_NAME=$(fact "$outer" name | tr 'A-Z' 'a-z')
INSTANCE_ID=$(fact "$outer" uuid)
ZONE=$(fact "$outer" availability_zone)
REGION=$(fact "$document" 'autoscaler-agent\.region')
INSTANCE_TYPE=$(fact "$document" 'autoscaler-agent\.type')
PROVIDER_ID=$(fact "$document" 'autoscaler-agent\.provider-id')
case $PROVIDER_ID in *[!A-Za-z0-9:/._-]*) die reason=bad-metadata-provider-id ;; esac
PROVIDER_ID=${PROVIDER_ID:-openstack:///}$INSTANCE_ID
case $NODE_NAME in '' | *[!a-z0-9.-]*) die reason=bad-metadata-name ;; esac
case $INSTANCE_ID in '' | *[!a-f0-9-]*) die reason=bad-metadata-uuid ;; esac
LABELS=
label() {
  case $2 in '' | *[!A-Za-z0-9._-]* | [._-]* | *[._-]) return 0 ;; esac
  LABELS=${LABELS:+$LABELS,}$1=$2
}
label topology.kubernetes.io/region "$REGION"
label topology.kubernetes.io/zone "$ZONE"
label node.kubernetes.io/instance-type "$INSTANCE_TYPE"
mkdir -p "$dir/patches"
chmod 700 "$dir" "$dir/patches"
trap 'rc=$?; rm -f "$dir/join.yaml"; [ "$rc" -eq 0 ] || phase "failed rc=$rc"' EXIT
hashes=$(printf '%s' "$JOIN_CERT_HASH" | sed 's/,/", "/g')
cat >"$dir/patches/kubeletconfiguration0+merge.yaml" <<PATCH
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
providerID: "$PROVIDER_ID"
serverTLSBootstrap: true
rotateCertificates: true
maxPods: 110
kubeReserved: {cpu: "100m", memory: "256Mi", ephemeral-storage: "1073741825"}
systemReserved: {cpu: "100m", memory: "256Mi"}
evictionHard:
  memory.available: "100Mi"
  nodefs.available: "2Gi"
  nodefs.inodesFree: "5%"
  imagefs.available: "15%"
  imagefs.inodesFree: "5%"
clusterDNS:
  - "10.96.0.10"
  - "fd00::a"
PATCH
cat >"$dir/join.yaml" <<JOIN
apiVersion: kubeadm.k8s.io/v1beta3
kind: JoinConfiguration
discovery:
  bootstrapToken:
    apiServerEndpoint: "$JOIN_ENDPOINT"
    token: "$JOIN_TOKEN"
    caCertHashes: ["$hashes"]
nodeRegistration:
  name: "$NODE_NAME"
  criSocket: unix:///run/containerd/containerd.sock
  kubeletExtraArgs:
    node-labels: "${LABELS:+$LABELS,}empty=,example.net/pool=batch,node.kubernetes.io/lifecycle=spot"
  taints:
    - {key: "example.net/dedicated", value: "batch", effect: "NoSchedule"}
    - {key: "slow", value: "", effect: "PreferNoSchedule"}
patches:
  directory: "$dir/patches"
JOIN
phase "join node=$NODE_NAME"
tries=5
pki=${JOIN_PKI:-/var/lib/kubelet/pki}
until kubeadm join --config "$dir/join.yaml"; do
  tries=$((tries - 1))
  [ "$tries" -gt 0 ] || die reason=kubeadm-join
  phase "retry left=$tries"
  mkdir -p "$dir/pki"
  cp -a "$pki"/kubelet-client* "$dir/pki/" 2>/dev/null || :
  kubeadm reset --force >/dev/null 2>&1 || :
  mkdir -p "$pki"
  cp -a "$dir/pki"/kubelet-client* "$pki/" 2>/dev/null || :
  sleep "${JOIN_PAUSE:-15}"
done
rm -rf "$dir/join.yaml" "$dir/pki"
phase joined
# --- join: end ---
