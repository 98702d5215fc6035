#!/bin/sh
# Made by autoscaler-agent leader-config: the leader of a cluster with Kubernetes v1.36.3. Run it as root.
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
    flannel-kube-flannel.yml/amd64) echo e875824be2f552b45711dbda91af81b17eb961d00025d914d9fef18fad8f09c0 ;;
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
state=/var/lib/autoscaler-agent-leader
config=/etc/kubernetes/kubeadm-init.yaml
mkdir -p /etc/kubernetes "$state"
cat >"$config" <<'END-OF-FILE'
apiVersion: kubeadm.k8s.io/v1beta4
bootstrapTokens:
- description: made by kubeadm init; nothing uses it
  ttl: 1m0s
kind: InitConfiguration
localAPIEndpoint:
  advertiseAddress: 10.0.0.11
nodeRegistration:
  criSocket: unix:///run/containerd/containerd.sock
---
apiServer:
  certSANs:
  - 10.0.0.100
  - 10.0.0.11
apiVersion: kubeadm.k8s.io/v1beta4
controlPlaneEndpoint: 10.0.0.100:6443
kind: ClusterConfiguration
kubernetesVersion: v1.36.3
networking:
  dnsDomain: cluster.local
  podSubnet: 10.244.0.0/16
  serviceSubnet: 10.96.0.0/12
---
apiVersion: kubelet.config.k8s.io/v1beta1
cgroupDriver: systemd
kind: KubeletConfiguration
rotateCertificates: true
serverTLSBootstrap: true
END-OF-FILE
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
    hostPath: {path: /etc/kubernetes/super-admin.conf}
END-OF-FILE
chmod 600 /etc/kubernetes/manifests/.kube-vip.new
mv -f /etc/kubernetes/manifests/.kube-vip.new /etc/kubernetes/manifests/kube-vip.yaml
phase kubeadm-init
chmod 600 "$config"
configure --config "$config" # before-init may have changed the repository
if [ ! -e "$state/initialized" ]; then
  if ! kubeadm init --config "$config" --skip-token-print; then
    echo 'mend what kubeadm names, undo what it did (kubeadm reset --force), and run this script again'
    die reason=kubeadm-init
  fi
  : >"$state/initialized"
fi
KUBECONFIG=/etc/kubernetes/admin.conf
export KUBECONFIG
tries=60
until kubectl get --raw /readyz >/dev/null 2>&1; do
  tries=$((tries - 1))
  [ "$tries" -gt 0 ] || die "reason=api-server"
  sleep 2
done
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
phase addons
fetch flannel-kube-flannel.yml raw.githubusercontent.com/flannel-io/flannel/v0.28.9/Documentation/kube-flannel.yml "$tmp/addon.yaml"
sed 's#"Network": "10.244.0.0/16"#"Network": "10.244.0.0/16"#' "$tmp/addon.yaml" | kubectl apply -f - || die reason=addon
kubectl apply -f - <<'END-OF-FILE' || die reason=addon
# metrics-server v0.9.0 for a cluster whose workers come and go. It runs on the control plane,
# so that it keeps no worker from being scaled away, and a limit keeps it from taking the
# leader's memory (about 2 MiB for each node). It verifies the kubelets' certificates with the
# cluster's CA: the agent approves them.
apiVersion: v1
kind: ServiceAccount
metadata:
  name: metrics-server
  namespace: kube-system
  labels: {k8s-app: metrics-server}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: system:aggregated-metrics-reader
  labels:
    k8s-app: metrics-server
    rbac.authorization.k8s.io/aggregate-to-admin: "true"
    rbac.authorization.k8s.io/aggregate-to-edit: "true"
    rbac.authorization.k8s.io/aggregate-to-view: "true"
rules:
- apiGroups: [metrics.k8s.io]
  resources: [pods, nodes]
  verbs: [get, list, watch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: system:metrics-server
  labels: {k8s-app: metrics-server}
rules:
- apiGroups: [""]
  resources: [nodes/metrics]
  verbs: [get]
- apiGroups: [""]
  resources: [pods, nodes]
  verbs: [get, list, watch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: metrics-server-auth-reader
  namespace: kube-system
  labels: {k8s-app: metrics-server}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: extension-apiserver-authentication-reader}
subjects:
- {kind: ServiceAccount, name: metrics-server, namespace: kube-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: metrics-server:system:auth-delegator
  labels: {k8s-app: metrics-server}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: system:auth-delegator}
subjects:
- {kind: ServiceAccount, name: metrics-server, namespace: kube-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: system:metrics-server
  labels: {k8s-app: metrics-server}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: system:metrics-server}
subjects:
- {kind: ServiceAccount, name: metrics-server, namespace: kube-system}
---
apiVersion: v1
kind: Service
metadata:
  name: metrics-server
  namespace: kube-system
  labels: {k8s-app: metrics-server}
spec:
  selector: {k8s-app: metrics-server}
  ports:
  - {name: https, port: 443, protocol: TCP, targetPort: https, appProtocol: https}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: metrics-server
  namespace: kube-system
  labels: {k8s-app: metrics-server}
spec:
  selector:
    matchLabels: {k8s-app: metrics-server}
  strategy:
    rollingUpdate: {maxUnavailable: 0}
  template:
    metadata:
      labels: {k8s-app: metrics-server}
    spec:
      serviceAccountName: metrics-server
      priorityClassName: system-cluster-critical
      nodeSelector:
        kubernetes.io/os: linux
        node-role.kubernetes.io/control-plane: ""
      tolerations:
      - {key: node-role.kubernetes.io/control-plane, operator: Exists, effect: NoSchedule}
      containers:
      - name: metrics-server
        image: registry.k8s.io/metrics-server/metrics-server:v0.9.0
        args:
        - --cert-dir=/tmp
        - --secure-port=10250
        - --kubelet-certificate-authority=/var/run/secrets/kubernetes.io/serviceaccount/ca.crt
        - --kubelet-preferred-address-types=InternalIP,ExternalIP,Hostname
        - --kubelet-use-node-status-port
        - --metric-resolution=15s
        ports:
        - {name: https, containerPort: 10250, protocol: TCP}
        resources:
          requests: {cpu: 100m, memory: 200Mi}
          limits: {memory: 1Gi}
        livenessProbe:
          httpGet: {path: /livez, port: https, scheme: HTTPS}
        readinessProbe:
          httpGet: {path: /readyz, port: https, scheme: HTTPS}
          initialDelaySeconds: 20
        securityContext:
          allowPrivilegeEscalation: false
          capabilities: {drop: [ALL]}
          readOnlyRootFilesystem: true
          runAsNonRoot: true
          runAsUser: 1000
          seccompProfile: {type: RuntimeDefault}
        volumeMounts:
        - {name: tmp, mountPath: /tmp}
      volumes:
      - {name: tmp, emptyDir: {}}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata:
  name: v1beta1.metrics.k8s.io
  labels: {k8s-app: metrics-server}
spec:
  group: metrics.k8s.io
  version: v1beta1
  groupPriorityMinimum: 100
  versionPriority: 100
  insecureSkipTLSVerify: true # metrics-server makes its own certificate at its start
  service: {name: metrics-server, namespace: kube-system}
END-OF-FILE
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
