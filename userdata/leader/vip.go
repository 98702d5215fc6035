package leader

import (
	_ "embed"
	"net/netip"
	"strings"
)

//go:embed kube-vip.yaml
var kubeVIP string

const (
	// kubeVIPImage is pinned by its version. No digest that its publisher vouches for could be
	// read where this table was made: KubeVIPDigest takes the operator's.
	kubeVIPImage    = "ghcr.io/kube-vip/kube-vip:v1.0.4"
	kubeVIPManifest = "/etc/kubernetes/manifests/kube-vip.yaml"
	adminConf       = "/etc/kubernetes/admin.conf"
	// superAdminConf has rights before kubeadm init has bound those of adminConf: with these alone
	// the address never comes up, and kubeadm init waits for it (Kubernetes 1.29 and later).
	superAdminConf = "/etc/kubernetes/super-admin.conf"
)

func (s Spec) validateVIP(bad func(field, format string, args ...any)) {
	if s.KubeVIPInterface == "" && s.KubeVIPDigest == "" {
		return
	}
	a, err := netip.ParseAddr(s.host())
	switch {
	case s.KubeVIPInterface == "":
		bad("kubeVIPInterface", "name the network interface that holds the address, for example eth0")
	case len(s.KubeVIPInterface) > 15 || strings.Trim(strings.ToLower(s.KubeVIPInterface), "abcdefghijklmnopqrstuvwxyz0123456789._-") != "":
		bad("kubeVIPInterface", "%q is not the name of a network interface, for example eth0", s.KubeVIPInterface)
	case err != nil:
		bad("kubeVIPInterface", "the endpoint is the name %q, and kube-vip holds an address: give the address as the endpoint, for example 10.0.0.100:6443", s.host())
	case a.String() == s.AdvertiseAddress:
		bad("kubeVIPInterface", "%s is the machine's own address: give kube-vip one that no machine has", a)
	}
	if digest, ok := strings.CutPrefix(s.KubeVIPDigest, "sha256:"); s.KubeVIPDigest != "" && (!ok || len(digest) != 64 || strings.Trim(digest, "0123456789abcdef") != "") {
		bad("kubeVIPDigest", "%q is not sha256: and 64 lower-case hex digits", s.KubeVIPDigest)
	}
}

// vip is the shell step that writes kube-vip's manifest for a kubeconfig; nothing without kube-vip.
func (s Spec) vip(kubeconfig string) string {
	a, err := netip.ParseAddr(s.host())
	if s.KubeVIPInterface == "" || err != nil {
		return ""
	}
	image, bits := kubeVIPImage, "32"
	if s.KubeVIPDigest != "" {
		image += "@" + s.KubeVIPDigest
	}
	if a.Is6() {
		bits = "128"
	}
	text := strings.NewReplacer("IMAGE", image, "ADDRESS", a.String(), "PORT", s.endpoint()[strings.LastIndexByte(s.endpoint(), ':')+1:],
		"INTERFACE", s.KubeVIPInterface, "BITS", bits, "KUBECONFIG", kubeconfig).Replace(kubeVIP)
	// A name with a dot is none that kubelet reads: no half of a file is started.
	return "mkdir -p /etc/kubernetes/manifests\ncat >/etc/kubernetes/manifests/.kube-vip.new <<'" + endOfFile + "'\n" + text + endOfFile +
		"\nchmod 600 /etc/kubernetes/manifests/.kube-vip.new\nmv -f /etc/kubernetes/manifests/.kube-vip.new " + kubeVIPManifest + "\n"
}
