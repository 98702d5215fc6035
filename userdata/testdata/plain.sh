#!/bin/sh
# Made by autoscaler-agent: a worker of Kubernetes v1.36.3 on aws.
# Rendered with: {"cloud":"aws","reservation":{"kube":{"milliCPU":100,"memory":268435456},"system":{"milliCPU":100,"memory":268435456},"eviction":{"memory":104857600},"evictionStoragePercent":10,"maxPods":110}}
set -eu
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
late() { [ $(($(up) - began + $1)) -gt "${JOIN_SECONDS:-660}" ]; }
died='' at=start
die() { died=1; phase "failed $*"; exit 1; }
full() {
  for d in "${tmp:-/tmp}" "${prefix:-/}" /opt /var/lib /etc /run; do
    free=$(df -Pk "$d" 2>/dev/null | tail -n 1 | tr -s ' ' | cut -d ' ' -f 4)
    if [ "${free:-9999}" -lt 8192 ]; then echo "$d"; return; fi
  done
}
stopped() {
  rc=$?
  if [ "$rc" -eq 0 ] || [ -n "$died" ]; then return; fi
  d=$(full)
  if [ -n "$d" ]; then phase "failed reason=no-space dir=$d during=$at"; else phase "failed reason=$at rc=$rc"; fi
}
# --- functions: end ---
if [ -e /etc/kubernetes/kubelet.conf ]; then
  phase already-joined
  exit 0
fi
trap stopped EXIT
phase start
ID=$(. /etc/os-release && echo "$ID")
case $ID in
  flatcar) prefix=/opt pm=none ;;
  debian | ubuntu) prefix=/usr/local pm=apt ;;
  *) prefix=/usr/local pm=dnf ;;
esac
bin=$prefix/bin
phase install
case $(uname -m) in
  x86_64) ARCH=amd64 ;;
  aarch64 | arm64) ARCH=arm64 ;;
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
    cni/arm64) echo 56171987d3947707c3563db2f4001bccaf50fd63468611b9f3cbecb1375ee7ec ;;
    containerd/amd64) echo 9d68969855fbf676cdb8ed758e420fb048d61f984f61de3e53eddfebe484d168 ;;
    containerd/arm64) echo a985fbb7e18fc0362d31a055338f5d7b0e087a3e27f14c70d1c5965399a29f95 ;;
    crictl/amd64) echo 83855e114566a8a8c44c548d515670f51de3a5e1da8b2effb59870e2f10c25a3 ;;
    crictl/arm64) echo 68328594ccf780a80ae2b092d9f6ce484eec7cf540c275242e8fd954bfd95332 ;;
    kubeadm/amd64) echo bba1733c701bf70ec74ba1cc3fd5745404c1134a8a4b0a5f8560cc9832023421 ;;
    kubeadm/arm64) echo 276cfbdc43b10fef663288cc1ed76abf77b1b7f700e9f1c053cb5dc3115484de ;;
    kubelet/amd64) echo 46707a53209f826ad0f0d62371ac69cd00e78fd9a8176cf5f6f87f18f7f8b718 ;;
    kubelet/arm64) echo 57205a5daf5883873d87b4914e1e00bdd7707acd075714788cfb0fc1f60bc414 ;;
    runc/amd64) echo f6ae8efc0fa40079e1475e97cbe9d1bd3f106a28d6af78a11d9f1bd565515e60 ;;
    runc/arm64) echo 633301e2e32f8a5ad54031aab4901eb00308bec677dd15faa2751e8f9dab5ca4 ;;
  esac
}
PATH=$PATH:$bin
export PATH
have() { command -v "$1" >/dev/null 2>&1; }
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
if [ $pm = dnf ]; then need curl curl; else need curl curl; fi
if have getenforce && [ "$(getenforce)" = Enforcing ]; then
  setenforce 0
  sed -i 's/^SELINUX=enforcing/SELINUX=permissive/' /etc/selinux/config
fi
systemctl disable --now firewalld.service 2>/dev/null || :
VERSION=v1.36.3 IMAGES='' REGISTRIES=
conf=/etc/containerd/config.toml made='# Made by autoscaler-agent.' dropins='"/etc/containerd/conf.d/*.toml"'
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
reads() {
  containerd -c "$1" config dump >"$tmp/dump.toml" 2>/dev/null || return 1
  q="['\"]"
  [ -z "$IMAGES" ] || grep -qE "^ *sandbox(_image)? = $q$pause$q" "$tmp/dump.toml" || return 1
  [ -z "$REGISTRIES" ] || grep -qE "^ *config_path = $q$REGISTRIES$q" "$tmp/dump.toml"
}
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
# --- join: begin ---
set -eu
JOIN_ENDPOINT='k8s.example.net:6443'
JOIN_CERT_HASH='sha256:0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a'
umask 077
dir=${JOIN_DIR:-/run/autoscaler-agent}
imds=${AWS_EC2_METADATA_SERVICE_ENDPOINT:-http://169.254.169.254}
imds=${imds%/}/latest
phase metadata
session=$(curl -fsS --connect-timeout 5 --max-time 20 --retry 6 --retry-connrefused -X PUT \
  -H 'X-aws-ec2-metadata-token-ttl-seconds: 3600' "$imds/api/token") || die reason=imds-token
fact() {
  printf 'X-aws-ec2-metadata-token: %s\n' "$session" |
    curl -fsS --connect-timeout 5 --max-time 20 --retry 6 --retry-connrefused -H @- "$imds/meta-data/$1"
}
NODE_NAME=$(fact local-hostname) || die reason=imds-local-hostname
NODE_NAME=$(printf '%s' "${NODE_NAME%% *}" | tr 'A-Z' 'a-z')
INSTANCE_ID=$(fact instance-id) || die reason=imds-instance-id
INSTANCE_TYPE=$(fact instance-type) || die reason=imds-instance-type
ZONE=$(fact placement/availability-zone) || die reason=imds-zone
REGION=$(fact placement/region) || die reason=imds-region
for v in "$NODE_NAME" "$INSTANCE_ID" "$INSTANCE_TYPE" "$ZONE" "$REGION"; do
  case $v in '' | *[!a-z0-9.-]*) die "reason=bad-metadata" ;; esac
done
mkdir -p "$dir/patches"
chmod 700 "$dir" "$dir/patches"
hashes=$(printf '%s' "$JOIN_CERT_HASH" | sed 's/,/", "/g')
JOIN_TOKEN=$(cat /var/lib/autoscaler-agent-join/token) || die reason=token-file
cat >"$dir/patches/kubeletconfiguration0+merge.yaml" <<PATCH
{
 "apiVersion": "kubelet.config.k8s.io/v1beta1",
 "evictionHard": {
  "imagefs.available": "15%",
  "imagefs.inodesFree": "5%",
  "memory.available": "100Mi",
  "nodefs.available": "10%",
  "nodefs.inodesFree": "5%"
 },
 "kind": "KubeletConfiguration",
 "kubeReserved": {
  "cpu": "100m",
  "memory": "256Mi"
 },
 "maxPods": 110,
 "providerID": "aws:///${ZONE}/${INSTANCE_ID}",
 "rotateCertificates": true,
 "serverTLSBootstrap": true,
 "systemReserved": {
  "cpu": "100m",
  "memory": "256Mi"
 }
}
PATCH
cat >"$dir/join.yaml" <<JOIN
{
 "apiVersion": "kubeadm.k8s.io/v1beta4",
 "discovery": {
  "bootstrapToken": {
   "apiServerEndpoint": "${JOIN_ENDPOINT}",
   "caCertHashes": [
    "${hashes}"
   ],
   "token": "${JOIN_TOKEN}"
  }
 },
 "kind": "JoinConfiguration",
 "nodeRegistration": {
  "criSocket": "unix:///run/containerd/containerd.sock",
  "kubeletExtraArgs": [
   {
    "name": "hostname-override",
    "value": "${NODE_NAME}"
   },
   {
    "name": "node-labels",
    "value": "node.kubernetes.io/instance-type=${INSTANCE_TYPE},topology.kubernetes.io/region=${REGION},topology.kubernetes.io/zone=${ZONE}"
   }
  ],
  "name": "${NODE_NAME}"
 },
 "patches": {
  "directory": "${dir}/patches"
 },
 "timeouts": {
  "discovery": "${JOIN_DISCOVERY_TIMEOUT:-1m0s}"
 }
}
JOIN
why() {
  if [ -n "$(full)" ]; then echo no-space; return; fi
  case $(grep -v '\[WARNING ' "$dir/kubeadm.log" | tail -n 40) in
    *'no space left on device'*) echo no-space ;;
    *'could not find a JWS signature'* | *'token id '*) echo join-token ;;
    *'failed to verify JWS signature'*) echo cluster-info-signature ;;
    *'cluster CA found in'*) echo ca-pin ;;
    *'was different from the first'* | *'signed by unknown authority'*) echo cluster-info-changed ;;
    *'is not yet valid: '*) if [ "${1#-}" -gt 60 ]; then echo clock; else echo server-expired; fi ;;
    *'certificate is valid for '* | *'any IP SANs'*) echo server-name ;;
    *'only supports deploying'* | *'[ERROR KubeletVersion]'* | *'old API spec'* | *'is registered for version "kubeadm'*) echo version-skew ;;
    *'[ERROR CRI]'* | *'[ERROR ContainerRuntimeV'*) echo containerd ;;
    *'[preflight] Some fatal errors'*)
      echo "preflight checks=$(sed -n 's/.*\[ERROR \([A-Za-z0-9_-]*\)\].*/\1/p' "$dir/kubeadm.log" | tr '\n' ',' | sed 's/,$//')"
      ;;
    *'already exists in the cluster'*) echo node-name ;;
    *'Starting the kubelet'*) running ;;
    *'cluster-info" is forbidden'* | *'cluster-info" not found'*) echo cluster-info-closed ;;
    *'is forbidden: '* | *Unauthorized*) echo token-refused ;;
    *'dial tcp: lookup '*) echo dns ;;
    *proxyconnect* | *'Proxy Auth'*) echo endpoint-proxy ;;
    *'connection refused'*) echo endpoint-refused ;;
    *'no route to host'* | *'network is unreachable'*) echo endpoint-route ;;
    *'deadline exceeded'* | *'i/o timeout'* | *'Client.Timeout'* | *'handshake timeout'*)
      r=0
      getent ahosts "${JOIN_ENDPOINT%:*}" >/dev/null || r=$?
      if [ $r -eq 2 ]; then echo dns; else echo endpoint-timeout; fi
      ;;
    *': EOF'* | *'reset by peer'* | *'tls: '* | *'to HTTPS client'*) echo endpoint-other ;;
    *'failed to request the cluster-info'*) echo endpoint ;;
    *) echo kubeadm-join ;;
  esac
}
running() {
  if broken containerd; then
    echo containerd
  elif ! broken kubelet && grep -q 'TLS Bootstrap' "$dir/kubeadm.log"; then
    echo csr
  else
    case $(journalctl -qu kubelet -n 200 -o cat | grep 'command failed' | tail -n 1) in
      *'cgroup v1'*) echo kubelet-cgroup-v1 ;;
      *'swap on'*) echo kubelet-swap ;;
      *' CRI v1 '*) echo containerd ;;
      *' flag'* | *' config'*) echo kubelet-config ;;
      *) echo kubelet ;;
    esac
  fi
}
broken() {
  systemctl is-active -q "$1" || return 0
  n=$(systemctl show -p NRestarts --value "$1")
  [ "${n:-0}" -gt 2 ]
}
ahead() {
  url=https://$JOIN_ENDPOINT/version
  d=$(curl -skI --noproxy '*' -m 10 "$url" | tr -d '\r' | sed -n 's/^[Dd]ate: //p')
  if [ -n "$d" ]; then echo $(($(date +%s) - $(date -d "$d" +%s))); else echo 0; fi
}
phase "join node=$NODE_NAME"
tries=${JOIN_TRIES:-5} one=${JOIN_TRY:-120}
pki=${JOIN_PKI:-/var/lib/kubelet/pki}
until
  { timeout --foreground "$one" kubeadm join --config "$dir/join.yaml" && : >"$dir/ok"; } 2>&1 | tee "$dir/kubeadm.log"
  [ -e "$dir/ok" ]
do
  tries=$((tries - 1)) off=$(ahead)
  r=$(why "$off")
  if [ "${off#-}" -gt 300 ]; then r="$r clock=$off"; fi
  if [ "$tries" -le 0 ] || late "$one"; then die "reason=$r node=$NODE_NAME"; fi
  phase "retry left=$tries reason=$r"
  mkdir -p "$dir/pki"
  cp -a "$pki"/kubelet-client* "$dir/pki/" 2>/dev/null || :
  kubeadm reset --force >/dev/null 2>&1 || :
  mkdir -p "$pki"
  cp -a "$dir/pki"/kubelet-client* "$pki/" 2>/dev/null || :
  sleep "${JOIN_PAUSE:-15}"
done
rm -rf "$dir/join.yaml" "$dir/ok" "$dir/kubeadm.log" "$dir/pki"
phase joined
# --- join: end ---
rm -rf /var/lib/autoscaler-agent-join
