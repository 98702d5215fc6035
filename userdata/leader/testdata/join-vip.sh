#!/bin/sh
# Made by autoscaler-agent leader-config --join: a further machine of the control plane, with Kubernetes v1.36.3.
# Run it as root. It reads its secrets from the file that is its argument; - is standard input.
set -eu
state=/var/lib/autoscaler-agent-leader
refuse() { echo "$0: $1" >&2; exit 1; }
values=${1:-/root/control-plane-join.env} text=''
if [ ! -e "$state/initialized" ]; then
  if [ "$values" = - ]; then
    text=$(cat)
  else
    [ -f "$values" ] || refuse "there is no file $values: make it on a machine of the control plane (docs/ha.md), copy it here with mode 0600, or give its text on standard input with the argument -"
    case $(stat -c %a "$values") in
      400 | 600) ;;
      *) refuse "others may read $values: make a new one, its secrets are known, and copy it with mode 0600" ;;
    esac
    text=$(cat "$values")
  fi
fi
# echo and sed here are no place for a secret in an argument: printf is the shell's own.
value() { printf '%s\n' "$text" | sed -n "s/^$1=//p" | tail -n 1; }
JOIN_TOKEN=$(value JOIN_TOKEN) JOIN_CERT_HASH=$(value JOIN_CERT_HASH) CERTIFICATE_KEY=$(value CERTIFICATE_KEY) text=''
if [ ! -e "$state/initialized" ]; then
  case $JOIN_TOKEN in
    ??????.????????????????) ;;
    *) refuse "$values has no JOIN_TOKEN of the form abcdef.0123456789abcdef" ;;
  esac
  case $JOIN_CERT_HASH in
    sha256:????????????????????????????????????????????????????????????????) ;;
    *) refuse "$values has no JOIN_CERT_HASH of the form sha256: and 64 hex digits" ;;
  esac
  case ${#CERTIFICATE_KEY} in
    64) ;;
    0) [ -e /etc/kubernetes/pki/ca.key ] || refuse "$values has no CERTIFICATE_KEY, and the cluster's certificates are not in /etc/kubernetes/pki either (docs/ha.md tells both ways)" ;;
    *) refuse "CERTIFICATE_KEY in $values is not 64 hex digits" ;;
  esac
  case $JOIN_TOKEN${JOIN_CERT_HASH#sha256:}$CERTIFICATE_KEY in
    *[!a-z0-9.]*) refuse "a value in $values has a character that is none of a-z, 0-9 and ." ;;
  esac
fi
# --- functions: begin ---
umask 077
phase() {
  case $1 in warning* | failed*) ;; *) at=${1%% *} ;; esac
  echo "autoscaler-agent: phase=$*"
  c=${JOIN_CONSOLE:-/dev/console}
  if [ -w "$c" ]; then echo "autoscaler-agent: phase=$*" 2>/dev/null >"$c" || :; fi
}
up() { cut -d . -f 1 /proc/uptime; }
began=$(up)
# late SECONDS: what takes so long would not end within the time of the last word, which is well
# before AUTOSCALER_SCALING_MAX_NODE_PROVISION_TIME gives the machine up.
late() { [ $(($(up) - began + $1)) -gt "${JOIN_SECONDS:-660}" ]; }
died='' at=start
die() { died=1; phase "failed $*"; exit 1; }
# full names the first directory whose file system has no 8 MiB left.
full() {
  for d in "${tmp:-/tmp}" "${prefix:-/}" /opt /var/lib /etc /run; do
    free=$(df -Pk "$d" 2>/dev/null | tail -n 1 | tr -s ' ' | cut -d ' ' -f 4)
    if [ "${free:-9999}" -lt 8192 ]; then echo "$d"; return; fi
  done
}
# stopped is the last word of a script that ends early.
stopped() {
  rc=$?
  if [ "$rc" -eq 0 ] || [ -n "$died" ]; then return; fi
  d=$(full)
  if [ -n "$d" ]; then phase "failed reason=no-space dir=$d during=$at"; else phase "failed reason=$at rc=$rc"; fi
}
# --- functions: end ---
trap stopped EXIT
phase start
ID=$(. /etc/os-release && echo "$ID")
[ "$ID" = 'debian' ] || die "reason=system want=debian is=$ID"
prefix=/usr/local pm=apt
bin=$prefix/bin
phase install
case $(uname -m) in
  x86_64) ARCH=amd64 ;;
  *) die "reason=architecture-$(uname -m)" ;;
esac
BASES='https:/'
CONTAINERD=github.com/containerd/containerd/releases/download/v2.3.4/containerd-2.3.4-linux-$ARCH.tar.gz
RUNC=github.com/opencontainers/runc/releases/download/v1.4.3/runc.$ARCH
CNI=github.com/containernetworking/plugins/releases/download/v1.9.1/cni-plugins-linux-$ARCH-v1.9.1.tgz
CRICTL=github.com/kubernetes-sigs/cri-tools/releases/download/v1.36.0/crictl-v1.36.0-linux-$ARCH.tar.gz
KUBERNETES=dl.k8s.io/release/v1.36.3/bin/linux/$ARCH
sum() {
  case $1/$ARCH in
    cni/amd64) echo b98f74a0f8522f0a83867178729c1aa70f2158f90c45a2ca8fa791db1c76b303 ;;
    containerd/amd64) echo 9d68969855fbf676cdb8ed758e420fb048d61f984f61de3e53eddfebe484d168 ;;
    crictl/amd64) echo 83855e114566a8a8c44c548d515670f51de3a5e1da8b2effb59870e2f10c25a3 ;;
    kubeadm/amd64) echo bba1733c701bf70ec74ba1cc3fd5745404c1134a8a4b0a5f8560cc9832023421 ;;
    kubectl/amd64) echo ebbd080e7c2e275093b55915722043257eb24004363e20acb3c4d71919f88336 ;;
    kubelet/amd64) echo 46707a53209f826ad0f0d62371ac69cd00e78fd9a8176cf5f6f87f18f7f8b718 ;;
    runc/amd64) echo f6ae8efc0fa40079e1475e97cbe9d1bd3f106a28d6af78a11d9f1bd565515e60 ;;
  esac
}
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
# need PROGRAM PACKAGE: from the system's own package manager, where the image lacks it.
need() {
  if have "$1"; then return 0; fi
  phase "package name=$2"
  case $pm in
    apt)
      [ -n "${indexed:-}" ] || apt-get -qq -o DPkg::Lock::Timeout=300 update || die "reason=package-index"
      indexed=1
      DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o DPkg::Lock::Timeout=300 install --no-install-recommends "$2"
      ;;
    dnf) dnf -q -y install "$2" ;;
    *) false ;;
  esac || die "reason=package name=$2"
}
need curl curl
VERSION=v1.36.3 IMAGES='' REGISTRIES=
conf=/etc/containerd/config.toml made='# Made by autoscaler-agent.' dropins='"/etc/containerd/conf.d/*.toml"'
# cri VERSION PAUSE REGISTRIES: settings under the names that a configuration of this version has for them.
cri() {
  images='plugins."io.containerd.cri.v1.images"' pinned=pinned_images.sandbox runtime='plugins."io.containerd.cri.v1.runtime"'
  if [ "$1" -le 2 ]; then images='plugins."io.containerd.grpc.v1.cri"' pinned=sandbox_image runtime=$images; fi
  echo "version = $1"
  [ -z "$2" ] || echo "$images.$pinned = \"$2\""
  [ -z "$3" ] || echo "$images.registry.config_path = \"$3\""
}
own_config() {
  echo "$made"
  echo "imports = [$dropins]"
  cri "$newest" "$pause" /etc/containerd/certs.d
  echo "$runtime.containerd.runtimes.runc.runtime_type = \"io.containerd.runc.v2\""
  echo "$runtime.containerd.runtimes.runc.options.SystemdCgroup = true"
}
# reads FILE: containerd reads there what was asked for. What it prints has one form, whatever the file has.
reads() {
  containerd -c "$1" config dump >"$tmp/dump.toml" 2>/dev/null || return 1
  q="['\"]"
  [ -z "$IMAGES" ] || grep -qE "^ *sandbox(_image)? = $q$pause$q" "$tmp/dump.toml" || return 1
  [ -z "$REGISTRIES" ] || grep -qE "^ *config_path = $q$REGISTRIES$q" "$tmp/dump.toml"
}
# configure OPTIONS: containerd has the sandbox image that kubeadm names for them. A configuration that the image
# brings keeps what it says, but for what was asked for.
configure() {
  base=$conf next=/etc/containerd/.config.toml.new image=/usr/share/containerd/config.toml own=''
  [ -e $base ] || base=$image # Flatcar's
  if [ ! -e $base ] || grep -qx "$made" $base || containerd -c $base config dump 2>/dev/null | grep -q '^disabled_plugins = .*cri'; then own=yes; fi
  if [ -z "$own$IMAGES$REGISTRIES" ]; then return 0; fi
  newest=$(containerd config default | sed -n 's/^version = //p')
  [ -n "$newest" ] || die reason=containerd-config
  pause=$(kubeadm config images list "$@" 2>/dev/null | grep pause:) || phase "warning reason=sandbox-image"
  if [ -n "$own" ]; then
    own_config >$next
    if cmp -s $next $conf; then rm $next; return 0; fi
  elif reads $base; then
    return 0
  elif [ "$newest" -gt 2 ]; then
    version=$(sed -n 's/^version *= *\([0-9]*\).*/\1/p' $base)
    cri "${version:-1}" "${IMAGES:+$pause}" "$REGISTRIES" >/etc/containerd/conf.d/autoscaler-agent.toml
    if reads $base; then
      cat $base
    elif grep -q '^imports *= *\[' $base; then
      sed "s#^imports *= *\[#&$dropins, #" $base
    else
      echo "imports = [$dropins]"
      cat $base
    fi >$next
  else # for a file with one setting of a plugin, containerd 1 would drop the plugin's others
    sed -E ${IMAGES:+-e "s#^( *sandbox_image = ).*#\1\"$pause\"#"} ${REGISTRIES:+-e "s#^( *config_path = ).*#\1\"$REGISTRIES\"#"} $base >$next
  fi
  if [ -z "$own" ] && ! reads $next; then
    rm -f $next /etc/containerd/conf.d/autoscaler-agent.toml
    phase "warning reason=containerd-config"
    return 0
  fi
  chmod -R u=rwX,go=rX $next /etc/containerd/conf.d
  mv -f $next $conf
  if [ -e $image ]; then
    d=/etc/systemd/system/containerd.service.d
    mkdir -p $d
    printf '[Service]\nEnvironment=CONTAINERD_CONFIG=%s\n' $conf >$d/10-config.conf
    chmod -R u=rwX,go=rX $d
    systemctl daemon-reload
  fi
  systemctl try-restart containerd || :
}
if ! have containerd; then
  fetch containerd "$CONTAINERD" "$tmp/containerd.tgz"
  tar -C "$tmp" -xzf "$tmp/containerd.tgz"
  # containerd is the last one: where it is, all are.
  for f in "$tmp"/bin/*; do [ "${f##*/}" = containerd ] || place "$f"; done
  place "$tmp/bin/containerd"
  rm -rf "${tmp:?}/bin" "$tmp/containerd.tgz"
fi
if ! systemctl cat containerd.service >/dev/null 2>&1; then
  u=/etc/systemd/system/containerd.service
  cat >$u.new <<UNIT
[Unit]
Description=containerd
After=network.target
[Service]
ExecStart=$(command -v containerd)
Environment=PATH=$bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
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
  chmod 644 $u.new
  mv -f $u.new $u
fi
if ! have runc; then
  fetch runc "$RUNC" "$tmp/runc"
  place "$tmp/runc"
fi
if [ ! -e /opt/cni/bin/loopback ] || [ -e /opt/cni/bin/.partial ]; then
  fetch cni "$CNI" "$tmp/cni.tgz"
  : >/opt/cni/bin/.partial
  tar -C /opt/cni/bin -xzf "$tmp/cni.tgz"
  rm -f "$tmp/cni.tgz" /opt/cni/bin/.partial
fi
if ! have crictl; then
  fetch crictl "$CRICTL" "$tmp/crictl.tgz"
  tar -C "$tmp" -xzf "$tmp/crictl.tgz" crictl
  place "$tmp/crictl"
fi
[ -e /etc/crictl.yaml ] || echo 'runtime-endpoint: unix:///run/containerd/containerd.sock' >/etc/crictl.yaml
for name in kubeadm kubelet; do
  if ! have $name; then
    fetch $name "$KUBERNETES/$name" "$tmp/$name"
    place "$tmp/$name"
    rm -f "$tmp/$name"
  fi
done
configure --kubernetes-version "$VERSION" ${IMAGES:+--image-repository "$IMAGES"}
rm -rf "$tmp"
if ! systemctl cat kubelet.service >/dev/null 2>&1; then
  u=/etc/systemd/system/kubelet.service
  mkdir -p $u.d
  cat >$u.d/10-kubeadm.conf <<'UNIT'
[Service]
Environment="KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf"
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
ExecStart=
UNIT
  echo "ExecStart=$(command -v kubelet)"' $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS' >>$u.d/10-kubeadm.conf
  # The unit is the last: where it is, all is there.
  cat >$u.new <<UNIT
[Unit]
Description=kubelet
Wants=network-online.target
After=network-online.target containerd.service
StartLimitIntervalSec=0
[Service]
ExecStart=$(command -v kubelet)
Environment=PATH=$bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
Restart=always
RestartSec=10
[Install]
WantedBy=multi-user.target
UNIT
  chmod -R u=rwX,go=rX $u.new $u.d
  mv -f $u.new $u
fi
phase services
systemctl daemon-reload
systemctl enable containerd.service kubelet.service
systemctl start containerd.service || die reason=containerd
PROGRAMS='kubectl'
tmp=$(mktemp -d)
for name in $PROGRAMS; do
  if ! have "$name"; then
    fetch "$name" "$KUBERNETES/$name" "$tmp/$name"
    place "$tmp/$name"
  fi
done
config=/run/autoscaler-agent-leader/kubeadm-join.yaml
mkdir -p /etc/kubernetes "$state"
join_config() {
cat <<JOIN
{
 "apiVersion": "kubeadm.k8s.io/v1beta4",
 "controlPlane": {
  "certificateKey": "${CERTIFICATE_KEY}",
  "localAPIEndpoint": {
   "advertiseAddress": "10.0.0.11"
  }
 },
 "discovery": {
  "bootstrapToken": {
   "apiServerEndpoint": "10.0.0.100:6443",
   "caCertHashes": [
    "${JOIN_CERT_HASH}"
   ],
   "token": "${JOIN_TOKEN}"
  }
 },
 "kind": "JoinConfiguration",
 "nodeRegistration": {
  "criSocket": "unix:///run/containerd/containerd.sock"
 }
}
JOIN
}
phase kubeadm-join
configure --kubernetes-version "$VERSION" ${IMAGES:+--image-repository "$IMAGES"}
if [ ! -e "$state/initialized" ]; then
  mkdir -p "${config%/*}"
  chmod 700 "${config%/*}"
  ( umask 077; join_config | if [ -n "$CERTIFICATE_KEY" ]; then cat; else grep -v '"certificateKey"'; fi >"$config" )
  joined=yes
  kubeadm join --config "$config" || joined=''
  rm -f "$config"
  if [ -z "$joined" ]; then
    echo 'mend what kubeadm names, undo what it did (kubeadm reset --force; where it got as far as etcd, docs/ha.md: replacing one), and run this script again'
    die reason=kubeadm-join
  fi
  : >"$state/initialized"
  [ "$values" = - ] || rm -f "$values"
fi
KUBECONFIG=/etc/kubernetes/admin.conf
export KUBECONFIG
tries=60
until kubectl get --raw /readyz >/dev/null 2>&1; do
  tries=$((tries - 1))
  [ "$tries" -gt 0 ] || die "reason=api-server"
  sleep 2
done
# The token has done its work. The certificates in the Secret kubeadm-certs end with their own.
[ -z "$JOIN_TOKEN" ] || kubectl -n kube-system delete secret "bootstrap-token-${JOIN_TOKEN%%.*}" --ignore-not-found >/dev/null || phase "warning reason=token-stays"
mkdir -p /etc/kubernetes/manifests
cat >/etc/kubernetes/manifests/.kube-vip.new <<'END-OF-FILE'
# kube-vip holds the address of the API servers on one machine of the control plane at a time, by
# a Lease of its own. It asks the API server of its own machine.
apiVersion: v1
kind: Pod
metadata:
  name: kube-vip
  namespace: kube-system
spec:
  hostNetwork: true
  priorityClassName: system-node-critical
  hostAliases:
  - ip: 127.0.0.1
    hostnames: [kubernetes]
  containers:
  - name: kube-vip
    image: ghcr.io/kube-vip/kube-vip:v1.0.4@sha256:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff
    imagePullPolicy: IfNotPresent
    args: [manager, --prometheusHTTPServer, ""] # no port of its own
    env:
    - {name: address, value: "10.0.0.100"}
    - {name: port, value: "6443"}
    - {name: vip_interface, value: "eth0"}
    - {name: vip_subnet, value: "32"}
    - {name: vip_arp, value: "true"}
    - {name: cp_enable, value: "true"}
    - {name: cp_namespace, value: kube-system}
    - {name: svc_enable, value: "false"}
    - {name: vip_leaderelection, value: "true"}
    - {name: vip_leasename, value: plndr-cp-lock}
    - {name: vip_leaseduration, value: "5"}
    - {name: vip_renewdeadline, value: "3"}
    - {name: vip_retryperiod, value: "1"}
    - name: vip_nodename
      valueFrom: {fieldRef: {fieldPath: spec.nodeName}}
    securityContext:
      allowPrivilegeEscalation: false
      capabilities:
        drop: [ALL]
        add: [NET_ADMIN, NET_RAW]
    volumeMounts:
    - {name: kubeconfig, mountPath: /etc/kubernetes/admin.conf, readOnly: true}
  volumes:
  - name: kubeconfig
    hostPath: {path: /etc/kubernetes/admin.conf}
END-OF-FILE
chmod 600 /etc/kubernetes/manifests/.kube-vip.new
mv -f /etc/kubernetes/manifests/.kube-vip.new /etc/kubernetes/manifests/kube-vip.yaml
# The person who ran the script gets kubectl's configuration, as a person's own files are written: by that person.
person=${SUDO_USER:-root}
home=$(getent passwd "$person" | cut -d : -f 6)
if [ -e "$home/.kube/config" ]; then
  cmp -s /etc/kubernetes/admin.conf "$home/.kube/config" || echo "$home/.kube/config is there already and stays: this cluster's is /etc/kubernetes/admin.conf"
else
  runuser -u "$person" -- sh -c 'umask 077; mkdir -p "$1/.kube" && cat >"$1/.kube/config"' sh "$home" </etc/kubernetes/admin.conf ||
    phase "warning reason=kubeconfig"
fi
rm -rf "$tmp" "$state/before-init" "$state/after-init"
phase leader-ready
echo 'next: autoscaler-agent install'
