package leader

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/controlplane"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/world"
)

// bothVersions runs in a network and a mount namespace of its own: a machine with addresses of both IP versions makes the certificates
// and static pods of a control plane. $1 is kubeadm, $2 the configuration; what is printed is the API server's manifest and the
// addresses of its certificate.
const bothVersions = `ip link set lo up
ip link add eth0 type veth peer name eth9
ip link set eth9 up
ip link set eth0 up
ip addr add 10.90.0.10/24 dev eth0
ip addr add fd00:90::10/64 dev eth0 nodad
ip route add default via 10.90.0.1
ip route add default via fd00:90::1
mkdir -p /etc/kubernetes
mount -t tmpfs kubernetes /etc/kubernetes
for phase in "certs all" "control-plane all"; do "$1" init phase $phase --config "$2" >/etc/kubernetes/log 2>&1 || { cat /etc/kubernetes/log; exit 1; }; done
cat /etc/kubernetes/manifests/kube-apiserver.yaml
openssl x509 -in /etc/kubernetes/pki/apiserver.crt -noout -ext subjectAltName
`

// TestAdvertised: on a machine with addresses of both IP versions real kubeadm takes the configuration of each order of networks, and
// the API server advertises an address of the version of the first network of Services, which its certificate has.
func TestAdvertised(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("makes network and mount namespaces: run it as root")
	}
	bin, err := controlplane.Binaries(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	agent := filepath.Join(t.TempDir(), "autoscaler-agent")
	if err := world.BuildAgent(t.Context(), agent); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("/etc/kubernetes"); err != nil {
		t.Cleanup(func() { os.Remove("/etc/kubernetes") }) // the mount point
	}
	four, six := "10.90.0.10", "fd00:90::10"
	for _, c := range []struct{ pods, services, first, both string }{
		{"10.244.0.0/16", "10.96.0.0/16", four, ""},
		{"fd00:10:244::/56", "fd00:10:96::/112", six, ""},
		{"10.244.0.0/16,fd00:10:244::/56", "10.96.0.0/16,fd00:10:96::/112", four, four + "," + six},
		{"fd00:10:244::/56,10.244.0.0/16", "fd00:10:96::/112,10.96.0.0/16", six, six + "," + four},
	} {
		config, err := exec.CommandContext(t.Context(), agent, "leader-config", "--format", "kubeadm", "--endpoint", "k8s.example.net:6443", "--kubernetes-version", bin.Version,
			"--network", "none", "--pod-subnet", c.pods, "--service-subnet", c.services).Output()
		if err != nil {
			t.Fatal(err)
		}
		if has := strings.Contains(string(config), "${NODE_IPS}"); has != (c.both != "") {
			t.Errorf("%s: the configuration asks for both addresses of the machine: %v", c.pods, has)
		}
		file := filepath.Join(t.TempDir(), "kubeadm.yaml")
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(config), "${NODE_IPS}", c.both)), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), bin.Path(controlplane.Kubeadm), "config", "validate", "--config", file).CombinedOutput()
		if err != nil || strings.Contains(string(out), "strict decoding error") {
			t.Errorf("%s: %v\n%s", c.pods, err, out)
		}
		out, err = exec.CommandContext(t.Context(), "unshare", "--net", "--mount", "sh", "-ec", bothVersions, "sh", bin.Path(controlplane.Kubeadm), file).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", c.pods, err, out)
			continue
		}
		for _, want := range []string{"--advertise-address=" + c.first + "\n", "--service-cluster-ip-range=" + c.services + "\n"} {
			if !strings.Contains(string(out), want) {
				t.Errorf("%s: the API server is not started with %q", c.pods, want)
			}
		}
		if names := string(out[strings.LastIndex(string(out), "DNS:"):]); !slices.Contains(strings.Fields(strings.ReplaceAll(expanded(names), "Address:", " ")), expanded(c.first)) {
			t.Errorf("%s: the API server's certificate has no %s: %s", c.pods, c.first, names)
		}
	}
}

// expanded writes the address of IPv6 that the test gives as openssl does.
func expanded(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "fd00:90::10", "FD00:90:0:0:0:0:0:10"), ",", " ")
}
