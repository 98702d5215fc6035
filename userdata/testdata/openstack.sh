#!/bin/sh
# User data made by autoscaler-agent. It holds a join token: keep it from other users.
set -eu
umask 077
if [ -e /etc/kubernetes/kubelet.conf ]; then
  echo 'autoscaler-agent: phase=already-joined'
  exit 0
fi
mkdir -p /var/lib/autoscaler-agent-join
cat >/var/lib/autoscaler-agent-join/worker.sh <<'END-OF-WORKER'
#!/bin/sh
# Made by autoscaler-agent: a worker of Kubernetes v1.30.14 on openstack.
# Rendered with: {"cloud":"openstack","arch":"amd64","reservation":{"kube":{"milliCPU":100,"memory":268435456,"ephemeralStorage":1073741825},"system":{"milliCPU":100,"memory":268435456},"eviction":{"memory":104857600,"ephemeralStorage":2147483648},"maxPods":110},"labels":{"empty":"","example.net/pool":"batch","node.kubernetes.io/lifecycle":"spot"},"taints":[{"key":"example.net/dedicated","value":"batch","effect":"NoSchedule"},{"key":"slow","effect":"PreferNoSchedule"}],"clusterDNS":["10.96.0.10","fd00::a"],"downloads":{"mirrors":["https://mirror.example.net/k8s/","http://10.0.0.5:8080"],"containerd":"v1.7.34"},"proxy":{"HTTP":"http://proxy.example.net:3128","HTTPS":"http://proxy.example.net:3128","No":["10.0.0.0/8"]},"registryMirrors":{"registry.k8s.io":"https://mirror.example.net/v2"}}
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
HTTP_PROXY='http://proxy.example.net:3128' http_proxy='http://proxy.example.net:3128'
export HTTP_PROXY http_proxy
HTTPS_PROXY='http://proxy.example.net:3128' https_proxy='http://proxy.example.net:3128'
export HTTPS_PROXY https_proxy
NO_PROXY='127.0.0.1,localhost,169.254.169.254,2001:db8::1,.svc,.cluster.local,10.0.0.0/8' no_proxy='127.0.0.1,localhost,169.254.169.254,2001:db8::1,.svc,.cluster.local,10.0.0.0/8'
export NO_PROXY no_proxy
for u in containerd kubelet; do
  mkdir -p /etc/systemd/system/$u.service.d
  cat >/etc/systemd/system/$u.service.d/10-proxy.conf <<'UNIT'
[Service]
Environment="HTTP_PROXY=http://proxy.example.net:3128"
Environment="HTTPS_PROXY=http://proxy.example.net:3128"
Environment="NO_PROXY=127.0.0.1,localhost,169.254.169.254,2001:db8::1,.svc,.cluster.local,10.0.0.0/8"
UNIT
  chmod -R u=rwX,go=rX /etc/systemd/system/$u.service.d
done
phase install
case $(uname -m) in
  x86_64) ARCH=amd64 ;;
  *) die "reason=architecture-$(uname -m)" ;;
esac
BASES='https://mirror.example.net/k8s/ http://10.0.0.5:8080/'
CONTAINERD=github.com/containerd/containerd/releases/download/v1.7.34/containerd-1.7.34-linux-$ARCH.tar.gz
RUNC=github.com/opencontainers/runc/releases/download/v1.4.3/runc.$ARCH
CNI=github.com/containernetworking/plugins/releases/download/v1.9.1/cni-plugins-linux-$ARCH-v1.9.1.tgz
CRICTL=github.com/kubernetes-sigs/cri-tools/releases/download/v1.30.1/crictl-v1.30.1-linux-$ARCH.tar.gz
KUBERNETES=dl.k8s.io/release/v1.30.14/bin/linux/$ARCH
sum() {
  case $1/$ARCH in
    cni/amd64) echo b98f74a0f8522f0a83867178729c1aa70f2158f90c45a2ca8fa791db1c76b303 ;;
    containerd/amd64) echo 640f989745020ea4897ad0a3d7d977863a7279d3f2e132792fc62c25a45bda50 ;;
    crictl/amd64) echo 71873cdeeeb6c9ee0f79c27b45db38066da81f0c30dcda909b4eedc3aff63f59 ;;
    kubeadm/amd64) echo bf1f8af81af8ecf003cbc03a8700c6e94a74c183ee092bbc77b92270ada2be70 ;;
    kubelet/amd64) echo cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc ;;
    runc/amd64) echo f6ae8efc0fa40079e1475e97cbe9d1bd3f106a28d6af78a11d9f1bd565515e60 ;;
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
if [ $pm = dnf ]; then need conntrack conntrack-tools; else need conntrack conntrack; fi
if [ $pm = dnf ]; then need iptables iptables-nft; else need iptables iptables; fi
if have getenforce && [ "$(getenforce)" = Enforcing ]; then
  setenforce 0
  sed -i 's/^SELINUX=enforcing/SELINUX=permissive/' /etc/selinux/config
fi
systemctl disable --now firewalld.service 2>/dev/null || :
VERSION=v1.30.14 IMAGES='' REGISTRIES=/etc/containerd/certs.d
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
mkdir -p /etc/containerd/certs.d/registry.k8s.io
cat >/etc/containerd/certs.d/registry.k8s.io/hosts.toml <<'TOML'
server = "https://registry.k8s.io"
[host."https://mirror.example.net/v2"]
  capabilities = ["pull", "resolve"]
TOML
chmod -R u=rwX,go=rX /etc/containerd/certs.d
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
phase before-join
mkdir -p /var/lib/autoscaler-agent-join
cat >/var/lib/autoscaler-agent-join/before-join <<'END-OF-HOOK'
#!/bin/sh
echo before "$HOME"
END-OF-HOOK
chmod 700 /var/lib/autoscaler-agent-join/before-join
/var/lib/autoscaler-agent-join/before-join || die "reason=before-join rc=$?"
# --- join: begin ---
set -eu
JOIN_ENDPOINT='[2001:db8::1]:6443'
JOIN_CERT_HASH='sha256:0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a,sha256:1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b'
umask 077
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
hashes=$(printf '%s' "$JOIN_CERT_HASH" | sed 's/,/", "/g')
JOIN_TOKEN='{{join token}}'
cat >"$dir/patches/kubeletconfiguration0+merge.yaml" <<PATCH
{
 "apiVersion": "kubelet.config.k8s.io/v1beta1",
 "clusterDNS": [
  "10.96.0.10",
  "fd00::a"
 ],
 "evictionHard": {
  "imagefs.available": "15%",
  "imagefs.inodesFree": "5%",
  "memory.available": "100Mi",
  "nodefs.available": "2Gi",
  "nodefs.inodesFree": "5%"
 },
 "kind": "KubeletConfiguration",
 "kubeReserved": {
  "cpu": "100m",
  "ephemeral-storage": "1073741825",
  "memory": "256Mi"
 },
 "maxPods": 110,
 "providerID": "${PROVIDER_ID}",
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
 "apiVersion": "kubeadm.k8s.io/v1beta3",
 "discovery": {
  "bootstrapToken": {
   "apiServerEndpoint": "${JOIN_ENDPOINT}",
   "caCertHashes": [
    "${hashes}"
   ],
   "token": "${JOIN_TOKEN}"
  },
  "timeout": "${JOIN_DISCOVERY_TIMEOUT:-1m0s}"
 },
 "kind": "JoinConfiguration",
 "nodeRegistration": {
  "criSocket": "unix:///run/containerd/containerd.sock",
  "kubeletExtraArgs": {
   "hostname-override": "${NODE_NAME}",
   "node-labels": "${LABELS:+$LABELS,}empty=,example.net/pool=batch,node.kubernetes.io/lifecycle=spot"
  },
  "name": "${NODE_NAME}",
  "taints": [
   {
    "effect": "NoSchedule",
    "key": "example.net/dedicated",
    "value": "batch"
   },
   {
    "effect": "PreferNoSchedule",
    "key": "slow",
    "value": ""
   }
  ]
 },
 "patches": {
  "directory": "${dir}/patches"
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
phase after-join
mkdir -p /var/lib/autoscaler-agent-join
cat >/var/lib/autoscaler-agent-join/after-join <<'END-OF-HOOK'
#!/bin/sh
echo 'after'
END-OF-HOOK
chmod 700 /var/lib/autoscaler-agent-join/after-join
/var/lib/autoscaler-agent-join/after-join || die "reason=after-join rc=$?"
rm -rf /var/lib/autoscaler-agent-join
END-OF-WORKER
cat >/etc/systemd/system/autoscaler-agent-join.service <<'UNIT-END'
[Unit]
Description=Join this machine to its Kubernetes cluster
Wants=network-online.target
After=network-online.target
ConditionPathExists=!/etc/kubernetes/kubelet.conf
StartLimitIntervalSec=3600
StartLimitBurst=5
[Service]
Type=oneshot
ExecStart=/bin/sh /var/lib/autoscaler-agent-join/worker.sh
Restart=on-failure
RestartSec=60
UMask=0077
[Install]
WantedBy=multi-user.target
UNIT-END
chmod 644 /etc/systemd/system/autoscaler-agent-join.service
systemctl daemon-reload
systemctl enable autoscaler-agent-join.service
systemctl start autoscaler-agent-join.service
