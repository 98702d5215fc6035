package oneshot

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/agent/nojoin"
)

// TestUserDataThatIsNotOurs: user data that is empty or of another origin is named in the first sentence, with
// what no machine joins with where its linter finds that; a secret in it is no reason.
func TestUserDataThatIsNotOurs(t *testing.T) {
	dir := t.TempDir()
	file, groups := filepath.Join(dir, "worker.sh"), filepath.Join(dir, "groups.yaml")
	if err := os.WriteFile(groups, []byte("nova: {cluster: c, groups: [{name: workers, max: 1, flavor: [f], image: i, networks: [w], userdata: "+file+"}]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const guard = "#!/bin/sh\n[ -e /etc/kubernetes/kubelet.conf ] && exit 0\n"
	for text, want := range map[string]string{
		"":    "its user data (" + file + ") is empty",
		" \n": "its user data (" + file + ") is empty",
		guard + "kubeadm join --config /run/join.yaml\n":                                                                "was not made by autoscaler-agent userdata render",
		guard + "kubeadm join api:6443 --token abcdef.0123456789abcdef --discovery-token-unsafe-skip-ca-verification\n": "was not made by autoscaler-agent userdata render",
		guard + "echo KUBELET_EXTRA_ARGS=--network-plugin=cni >/etc/default/kubelet\nkubeadm join --config /x\n":        "no machine joins with it: line 3: the kubelet ends",
		"hello":                      "no machine joins with it: line 1: neither #!",
		"#cloud-config\nruncmd: [\n": "no machine joins with it: line",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		known := nojoin.Known{Group: "workers", Provider: "nova", ID: "openstack:///8c8c6c3c-0000-4000-8000-000000000000", Phase: cluster.PhaseRunning, At: time.Now(), Launched: time.Now().Add(-time.Hour)}
		x := ExplainInstance(t.Context(), config.OnlyGroupsFile(groups), known, string(known.ID))
		if !strings.Contains(x.Summary, want) || x.Remedy == "" || strings.Contains(x.Summary, "0123456789abcdef") {
			t.Errorf("%q: %q, want %q", text, x.Summary, want)
		}
	}
}

// TestConsolesOfOtherClouds: an ID that is of neither cloud is not asked for; what is known otherwise is told.
func TestConsolesOfOtherClouds(t *testing.T) {
	for _, id := range []string{"", "i-1", "kind://docker/a/b", "gce://p/z/i-0123456789abcdef0", "../i-0123456789abcdef0x", "azure:///x/01234567-89ab-cdef-0123-456789abcdef"} {
		x := ExplainInstance(t.Context(), config.Config{}, nojoin.Known{}, id)
		if x.Found || !strings.Contains(x.Summary, "no node group has an instance of that ID") || !strings.Contains(strings.Join(x.Known, "\n"), "is no instance of EC2") {
			t.Errorf("%q: %+v", id, x)
		}
	}
}
