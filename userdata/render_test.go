package userdata

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

var update = flag.Bool("update", false, "write the golden files anew")

func sample() Spec {
	return Spec{
		Cloud:             "aws",
		KubernetesVersion: "v1.36.3",
		Join: Join{
			Endpoint:     "k8s.example.net:6443",
			Token:        "abcdef.0123456789abcdef",
			CACertHashes: []string{"sha256:" + strings.Repeat("0a", 32)},
		},
		Reservation: DefaultReservation(),
	}
}

func rich() Spec {
	s := sample()
	s.KubernetesVersion = "v1.30.14"
	s.Join.Endpoint = "[2001:db8::1]:6443"
	s.Join.CACertHashes = append(s.Join.CACertHashes, "sha256:"+strings.Repeat("1b", 32))
	s.Labels = map[string]string{"example.net/pool": "batch", "node.kubernetes.io/lifecycle": "spot", "empty": ""}
	s.Taints = []cluster.Taint{{Key: "example.net/dedicated", Value: "batch", Effect: "NoSchedule"}, {Key: "slow", Effect: "PreferNoSchedule"}}
	s.ClusterDNS = []string{"10.96.0.10", "fd00::a"}
	s.Reservation.Kube.EphemeralStorage = 1<<30 + 1
	s.Reservation.Eviction.EphemeralStorage = 2 << 30
	s.Reservation.EvictionStoragePercent = 0
	s.Downloads.Mirrors = []string{"https://mirror.example.net/k8s/", "http://10.0.0.5:8080"}
	s.Downloads.Containerd = "v1.7.34"
	s.Arch = "amd64"
	s.Proxy = Proxy{HTTP: "http://proxy.example.net:3128", HTTPS: "http://proxy.example.net:3128", No: []string{"10.0.0.0/8"}}
	s.RegistryMirrors = map[string]string{"registry.k8s.io": "https://mirror.example.net/v2"}
	s.InstanceStore = "raid0"
	s.BeforeJoin, s.AfterJoin = []byte("#!/bin/sh\necho before \"$HOME\"\n"), []byte("#!/bin/sh\necho 'after'")
	s.Downloads.SHA256 = map[string]string{"kubelet/amd64": strings.Repeat("c", 64), "kubelet/arm64": strings.Repeat("d", 64)}
	return s
}

// onOpenStack is user data whose servers get a token each.
func onOpenStack() Spec {
	s := rich()
	s.Cloud, s.Join.Token, s.InstanceStore = "openstack", TokenPlaceholder, ""
	return s
}

func TestGolden(t *testing.T) {
	for name, spec := range map[string]Spec{"plain": sample(), "openstack": onOpenStack(), "attested": attested(t)} {
		t.Run(name, func(t *testing.T) {
			got, err := Render(spec)
			if err != nil {
				t.Fatal(err)
			}
			if worker, packed, err := Unpack(got); err != nil {
				t.Fatal(err)
			} else if packed { // what a person can read
				got = worker
			}
			file := filepath.Join("testdata", name+".sh")
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s differs from what Render makes; read the difference, then run go test ./userdata -update\n%s", file, got)
			}
			for _, shell := range []string{"sh", "dash", "bash", "busybox"} {
				checkSyntax(t, shell, file)
			}
		})
	}
}

func checkSyntax(t *testing.T, shell, file string) {
	t.Helper()
	path, err := exec.LookPath(shell)
	if err != nil {
		if shell == "sh" {
			t.Fatal(err)
		}
		return
	}
	args := []string{"-n", file}
	if shell == "busybox" {
		args = []string{"sh", "-n", file}
	}
	if out, err := exec.Command(path, args...).CombinedOutput(); err != nil {
		t.Errorf("%s %s: %v\n%s", shell, strings.Join(args, " "), err, out)
	}
}

// TestDisksFit: user data with the machine's own disks fits EC2 for both architectures and
// every minor of Kubernetes, with a quarter of a kilobyte to spare for labels and taints.
func TestDisksFit(t *testing.T) {
	for _, version := range latest(t) {
		for _, store := range InstanceStores {
			s := sample()
			s.KubernetesVersion, s.InstanceStore = version, store
			out, err := Render(s)
			if err != nil || len(out)+256 > Limit("aws") {
				t.Errorf("%s %s: %d bytes, %v", version, store, len(out), err)
			}
		}
	}
}

// TestBare: steps lose their comments and nothing else.
func TestBare(t *testing.T) {
	for steps, want := range map[string]string{
		"a\n  # why\nb # stays\n": "a\nb # stays\n", "# shellcheck disable=SC2086\nx\n": "# shellcheck disable=SC2086\nx\n",
		"echo '#'\n#x\n": "echo '#'\n#x\n", "": "",
	} {
		if got := bare(steps); got != want {
			t.Errorf("%q becomes %q, want %q", steps, got, want)
		}
	}
}
