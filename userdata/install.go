package userdata

import (
	"maps"
	"slices"
	"strings"
)

// files are the names that Downloads.SHA256 may pin.
var files = []string{"kubeadm", "kubelet", "cni", "containerd", "runc"}

// Versions of what surrounds Kubernetes, used only on images that lack them.
const (
	defaultKubernetesURL = "https://dl.k8s.io/release"
	defaultCNI           = "v1.9.1"
	defaultContainerd    = "v2.2.5"
	defaultRunc          = "v1.4.3"
	defaultCNIURL        = "https://github.com/containernetworking/plugins/releases/download/{tag}/cni-plugins-linux-{arch}-{tag}.tgz"
	defaultContainerdURL = "https://github.com/containerd/containerd/releases/download/{tag}/containerd-{version}-linux-{arch}.tar.gz"
	defaultRuncURL       = "https://github.com/opencontainers/runc/releases/download/{tag}/runc.{arch}"
)

// install is the part of the script before the join section: kernel settings,
// container runtime, kubelet and kubeadm, each only where it is missing.
func (s Spec) install() string {
	d := s.Downloads
	var b strings.Builder
	b.WriteString("phase install\n")
	set := func(name, value string) { b.WriteString(name + "=" + shellQuote(value) + "\n") }
	set("VERSION", s.KubernetesVersion)
	set("KUBERNETES_URL", strings.TrimSuffix(or(d.KubernetesURL, defaultKubernetesURL), "/"))
	b.WriteString(installArch)
	for _, a := range []struct{ name, url, version string }{
		{"CNI_URL", or(d.CNI.URL, defaultCNIURL), or(d.CNI.Version, defaultCNI)},
		{"CONTAINERD_URL", or(d.Containerd.URL, defaultContainerdURL), or(d.Containerd.Version, defaultContainerd)},
		{"RUNC_URL", or(d.Runc.URL, defaultRuncURL), or(d.Runc.Version, defaultRunc)},
	} {
		url := strings.NewReplacer("{tag}", a.version, "{version}", a.version[1:]).Replace(a.url)
		b.WriteString(a.name + "=" + strings.ReplaceAll(shellQuote(url), "{arch}", `'"$ARCH"'`) + "\n")
	}
	b.WriteString("sum() {\n  case $1/$ARCH in\n")
	for _, name := range slices.Sorted(maps.Keys(d.SHA256)) {
		b.WriteString("    " + shellQuote(name) + ") echo " + shellQuote(d.SHA256[name]) + " ;;\n")
	}
	b.WriteString("  esac\n}\n")
	b.WriteString(installSteps)
	return b.String()
}

func or(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}

const installArch = `case $(uname -m) in
  x86_64) ARCH=amd64 ;;
  aarch64 | arm64) ARCH=arm64 ;;
  *) phase "failed reason=architecture-$(uname -m)"; exit 1 ;;
esac
`

// installSteps: a file without a pinned sum is checked against the sum published
// next to it, which finds a broken transfer but not a broken publisher. Programs go
// to /opt because /usr is read-only on Flatcar.
const installSteps = `PATH=$PATH:/opt/bin
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
`
