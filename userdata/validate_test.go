package userdata

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// Each bad field is one error that names the field and what to do about it.
func TestValidate(t *testing.T) {
	for _, c := range []struct {
		want   string
		change func(*Spec)
	}{
		{`cloud: "azure" is not known: use aws or openstack`, func(s *Spec) { s.Cloud = "azure" }},
		{`kubernetesVersion: "1.36.3" is not a version`, func(s *Spec) { s.KubernetesVersion = "1.36.3" }},
		{`kubernetesVersion: "v1.36" is not a version`, func(s *Spec) { s.KubernetesVersion = "v1.36" }},
		{"kubernetesVersion: v1.24.9 is too old", func(s *Spec) { s.KubernetesVersion = "v1.24.9" }},
		{"kubernetesVersion: v1.36.3 for the API server's v1.35.1: a kubelet of 1.36 is newer than the API server, which has 1.35: Kubernetes allows no newer one; install one of 1.32 to 1.35 (--kubernetes-version)", func(s *Spec) { s.APIServerVersion = "v1.35.1" }},
		{"4 minors older than the API server", func(s *Spec) { s.APIServerVersion, s.KubernetesVersion = "v1.36.3", "v1.32.13" }},
		{"5 minors older than the API server, which has 1.35: Kubernetes allows 3; install one of 1.32 to 1.35", func(s *Spec) { s.APIServerVersion, s.KubernetesVersion = "v1.35.4+rke2r1", "v1.30.14" }},
		{`apiServerVersion: "latest" is not a version`, func(s *Spec) { s.APIServerVersion = "latest" }},
		{"kubeadmAPIVersion: ", func(s *Spec) { s.KubeadmAPIVersion = "v1beta2" }},
		{"join.token: not a bootstrap token", func(s *Spec) { s.Join.Token = "ABCDEF.0123456789abcdef" }},
		{"join.token: not a bootstrap token", func(s *Spec) { s.Join.Token = "abcdef.0123456789abcdef\n" }},
		{`join.endpoint: "k8s" has no port`, func(s *Spec) { s.Join.Endpoint = "k8s" }},
		{"has no valid port", func(s *Spec) { s.Join.Endpoint = "k8s:99999" }},
		{"has a malformed host", func(s *Spec) { s.Join.Endpoint = "https://k8s:6443" }},
		{"has a malformed host", func(s *Spec) { s.Join.Endpoint = "$(reboot):6443" }},
		{"has a malformed IPv6 address", func(s *Spec) { s.Join.Endpoint = "[::1%eth0]:6443" }},
		{"join.caCertHashes: empty", func(s *Spec) { s.Join.CACertHashes = nil }},
		{"join.caCertHashes: ", func(s *Spec) { s.Join.CACertHashes = []string{"sha256:00"} }},
		{"reservation.maxPods: 0", func(s *Spec) { s.Reservation.MaxPods = 0 }},
		{"reservation.kube: negative", func(s *Spec) { s.Reservation.Kube.Memory = -1 }},
		{"reservation.eviction: a kubelet cannot evict for CPU", func(s *Spec) { s.Reservation.Eviction.MilliCPU = 1 }},
		{"in bytes and in percent", func(s *Spec) { s.Reservation.Eviction.EphemeralStorage = 1 }},
		{"reservation.system: only cpu, memory", func(s *Spec) { s.Reservation.System.Pods = 1 }},
		{`labels["node-role.kubernetes.io/worker"]: a kubelet may not`, label("node-role.kubernetes.io/worker", "")},
		{`labels["node-restriction.kubernetes.io/x"]: a kubelet may not`, label("node-restriction.kubernetes.io/x", "")},
		{`labels["x.k8s.io/y"]: a kubelet may not`, label("x.k8s.io/y", "")},
		{"every machine sets this label itself", label("topology.kubernetes.io/zone", "eu-west-1a")},
		{"is not a label value", label("a", "b,c=d")},
		{"not a key", label("a b", "")},
		{"is not a lower-case DNS name", label("A/b", "")},
		{`taints["a"]: effect "Never"`, taint("a", "", "Never")},
		{"is not a taint value", taint("a", "b}", "NoExecute")},
		{`taints[""]: not a key`, taint("", "", "NoExecute")},
		{"given twice", func(s *Spec) {
			s.Taints = []cluster.Taint{{Key: "a", Value: "b", Effect: "NoSchedule"}, {Key: "a", Value: "c", Effect: "NoSchedule"}}
		}},
		{`clusterDNS: "kube-dns" is not an IP address`, func(s *Spec) { s.ClusterDNS = []string{"kube-dns"} }},
		{"kubernetesVersion: v1.29.9 is too old", func(s *Spec) { s.KubernetesVersion = "v1.29.9" }},
		{"kubernetesVersion: v1.37.0 is newer than this agent knows", func(s *Spec) { s.KubernetesVersion = "v1.37.0" }},
		{"kubeadmAPIVersion: the kubeadm of v1.36.3 does not read v1beta3", func(s *Spec) { s.KubeadmAPIVersion = "v1beta3" }},
		{"downloads.mirrors: ", func(s *Spec) { s.Downloads.Mirrors = []string{"https://x/'; reboot"} }},
		{"downloads.cni: ", func(s *Spec) { s.Downloads.CNI = "1.2" }},
		{"downloads.containerd: v1.6.39 is too old", func(s *Spec) { s.Downloads.Containerd = "v1.6.39" }},
		{"Kubernetes 1.35 is the last that works with containerd 1.7", func(s *Spec) { s.Downloads.Containerd = "v1.7.34" }},
		{"no checksum is known for containerd v2.99.0 amd64, containerd v2.99.0 arm64: give --checksum", func(s *Spec) { s.Downloads.Containerd = "v2.99.0" }},
		{"no checksum is known for kubeadm v1.36.99 amd64", func(s *Spec) { s.KubernetesVersion = "v1.36.99" }},
		{"system: \"windows\" is not known", func(s *Spec) { s.System = "windows" }},
		{"arch: \"s390x\" is not known", func(s *Spec) { s.Arch = "s390x" }},
		{"format: \"zip\" is not known", func(s *Spec) { s.Format = "zip" }},
		{"format: debian does not read Ignition", func(s *Spec) { s.System, s.Format = "debian", "ignition" }},
		{"format: Flatcar reads mime only in part", func(s *Spec) { s.System, s.Format = "flatcar", "mime" }},
		{"instanceStore: \"raid5\" is not known", func(s *Spec) { s.InstanceStore = "raid5" }},
		{"proxy.http: ", func(s *Spec) { s.Proxy.HTTP = "proxy:3128" }},
		{"proxy.no: ", func(s *Spec) { s.Proxy.HTTP, s.Proxy.No = "http://p:1", []string{"a b"} }},
		{"registryMirrors[\"a/b\"]: ", func(s *Spec) { s.RegistryMirrors = map[string]string{"a/b": "https://m"} }},
		{"registryMirrors[\"a\"]: ", func(s *Spec) { s.RegistryMirrors = map[string]string{"a": "m"} }},
		{"beforeJoin: give a script whose first line", func(s *Spec) { s.BeforeJoin = []byte("echo\n") }},
		{"afterJoin: the line END-OF-WORKER is reserved", func(s *Spec) { s.AfterJoin = []byte("#!/bin/sh\nEND-OF-WORKER") }},
		{"beforeJoin: the text {{join token}} is reserved", func(s *Spec) { s.BeforeJoin = []byte("#!/bin/sh\n: {{join token}}\n") }},
		{"beforeJoin: give text in UTF-8", func(s *Spec) { s.BeforeJoin = []byte("#!/bin/sh\r\n") }},
		{`downloads.sha256["helm/amd64"]: give NAME/ARCH`, func(s *Spec) {
			s.Downloads.SHA256 = map[string]string{"helm/amd64": strings.Repeat("0", 64)}
		}},
		{"is not 64 lower-case hex digits", func(s *Spec) { s.Downloads.SHA256 = map[string]string{"kubelet/amd64": "00"} }},
		{"aws takes at most 16384", func(s *Spec) {
			s.Labels = map[string]string{}
			for i := range 200 { // digests, which no compression shrinks
				sum := sha256.Sum256([]byte{byte(i)})
				s.Labels[hex.EncodeToString(sum[:16])+"/"+hex.EncodeToString(sum[16:])] = hex.EncodeToString(sum[:30])
			}
		}},
	} {
		s := sample()
		c.change(&s)
		_, err := Render(s)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one with %q", err, c.want)
		}
		if err != nil && (!strings.HasPrefix(err.Error(), "userdata: ") || strings.Contains(err.Error(), "0123456789abcdef")) {
			t.Errorf("error %q has no prefix, or repeats the token", err)
		}
		if err != nil && strings.Count(err.Error(), "\n") > 0 {
			t.Errorf("one fault, several errors: %v", err)
		}
	}
}

func label(key, value string) func(*Spec) {
	return func(s *Spec) { s.Labels = map[string]string{key: value} }
}

func taint(key, value, effect string) func(*Spec) {
	return func(s *Spec) { s.Taints = []cluster.Taint{{Key: key, Value: value, Effect: effect}} }
}

func TestEveryFaultIsReported(t *testing.T) {
	_, err := Render(Spec{})
	for _, field := range []string{"cloud", "kubernetesVersion", "join.token", "join.endpoint", "join.caCertHashes", "reservation.maxPods"} {
		if err == nil || !strings.Contains(err.Error(), "userdata: "+field+": ") {
			t.Errorf("%s is not reported: %v", field, err)
		}
	}
}

func TestAPIVersion(t *testing.T) {
	for version, want := range map[string]string{"v1.30.14": "v1beta3", "v1.31.0": "v1beta4", "v1.36.3": "v1beta4"} {
		s := sample()
		s.KubernetesVersion = version
		script, err := Render(s)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(unpack(t, "script", script)), `"apiVersion": "kubeadm.k8s.io/`+want+`"`) {
			t.Errorf("%s: not %s", version, want)
		}
	}
}
