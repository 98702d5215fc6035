package nodecleaner

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func kubeadmConfig(podSubnet string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kubeadm-config"},
		Data: map[string]string{"ClusterConfiguration": "networking:\n  podSubnet: " + podSubnet + "\n"}}
}

// stolen writes a manifest as a thief of the agent's user can, and reads it as node restore does.
func stolen(t *testing.T, manifest string) (Kept, error) {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(manifestDir(dir), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(manifestDir(dir), "n.json"), []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	list, err := Manifests(dir)
	if err != nil {
		return Kept{}, err
	}
	return list[0], nil
}

// TestRestoreFromAThief: each field of a manifest that a thief of the state directory can write. What no kubelet may give its own
// Node is refused, over a Node that is there and on a fresh one; the rest comes back.
func TestRestoreFromAThief(t *testing.T) {
	k, err := stolen(t, `{"metadata": {"name": "n", "uid": "old", "finalizers": ["f"], "ownerReferences": [{"kind": "Pod", "name": "p"}],
		"labels": {"team": "blue", "node.kubernetes.io/pool": "a", "node-role.kubernetes.io/control-plane": "", "node-role.kubernetes.io/worker": "",
			"node-restriction.kubernetes.io/secret": "x", "x.node-restriction.kubernetes.io/secret": "x", "example.k8s.io/y": "z", "kubernetes.io/cluster-service": "true"},
		"annotations": {"autoscaler-agent/keep": "true", "autoscaler-agent/scale-down-requested": "true", "projectcalico.org/IPv4Address": "6.6.6.6/24",
			"flannel.alpha.coreos.com/public-ip": "6.6.6.6", "kubeadm.alpha.kubernetes.io/cri-socket": "unix:///tmp/x", "unheard.of/of": "x"}},
		"spec": {"providerID": "aws:///z/i-00", "podCIDRs": ["0.0.0.0/0"], "configSource": {}, "externalID": "x",
			"taints": [{"key": "dedicated", "value": "blue", "effect": "NoSchedule"}, {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"},
				{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}]},
		"status": {"addresses": [{"type": "InternalIP", "address": "6.6.6.6"}]}}`)
	if err != nil {
		t.Fatal(err)
	}
	for name, objects := range map[string][]*corev1.Node{"fresh": nil, "there again": {{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "new"}}}} {
		client := fake.NewClientset(kubeadmConfig("10.244.0.0/16"))
		for _, n := range objects {
			if err := client.Tracker().Add(n); err != nil {
				t.Fatal(err)
			}
		}
		done, err := Restore(t.Context(), restoring(client, true), k)
		if err != nil {
			t.Fatal(err)
		}
		n, err := client.CoreV1().Nodes().Get(t.Context(), "n", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(keys(n.Labels), " "); got != "node.kubernetes.io/pool team" {
			t.Errorf("%s: labels %s", name, got)
		}
		if got := strings.Join(keys(n.Annotations), " "); got != "autoscaler-agent/keep" {
			t.Errorf("%s: annotations %s", name, got)
		}
		if got := strings.Join(taintKeys(n.Spec.Taints), " "); got != "dedicated" || len(n.Spec.PodCIDRs) > 0 || n.Spec.PodCIDR != "" || len(n.Finalizers)+len(n.OwnerReferences)+len(n.Status.Addresses) > 0 {
			t.Errorf("%s: taints %s, %+v", name, got, n)
		}
		if len(done.Refused) != 7 || !slices.Contains(done.Refused, "label node-restriction.kubernetes.io/secret") || !slices.Contains(done.Refused, "taint node-role.kubernetes.io/control-plane") ||
			!slices.Contains(done.LeftOut, "annotation projectcalico.org/IPv4Address") {
			t.Errorf("%s: refused %q, left out %q", name, done.Refused, done.LeftOut)
		}
	}
	leader := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "new", Labels: map[string]string{"node-role.kubernetes.io/control-plane": ""}}}
	if _, err := Restore(t.Context(), restoring(fake.NewClientset(leader), true), k); err == nil || !strings.Contains(err.Error(), "refused: it is a Node of the control plane") {
		t.Errorf("over a Node of the control plane: %v", err)
	}
}

// TestRestoredRanges: a pod range comes back where it is within kubeadm's pod network and touches no other Node's.
func TestRestoredRanges(t *testing.T) {
	other := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "o"}, Spec: corev1.NodeSpec{PodCIDRs: []string{"10.244.2.0/24"}}}
	for ranges, want := range map[string]bool{"10.244.1.0/24": true, "10.244.2.0/24": false, "10.244.2.128/25": false, "10.244.0.0/16": false, "10.96.0.0/24": false,
		"0.0.0.0/0": false, "10.244.1.7/24": false, "10.244.1.0/24 8.8.8.0/24": false, "x": false, "": false} {
		free, err := restoring(fake.NewClientset(kubeadmConfig("10.244.0.0/16"), other), true).rangesFree(t.Context(), strings.Fields(ranges))
		if err != nil || free != want {
			t.Errorf("%q: %t, want %t; %v", ranges, free, want, err)
		}
	}
	if free, err := restoring(fake.NewClientset(), true).rangesFree(t.Context(), []string{"10.244.1.0/24"}); free || err != nil {
		t.Errorf("no kubeadm-config: %t %v", free, err)
	}
}

// TestHostileManifests: a file that is no Node's manifest is an error of one line, and none hangs the command or writes to its
// terminal.
func TestHostileManifests(t *testing.T) {
	for name, text := range map[string]string{
		"a name with an escape":  "{\"metadata\": {\"name\": \"n\\u001b[2J\"}}",
		"a UID with an escape":   "{\"metadata\": {\"name\": \"n\", \"uid\": \"\\u001b[2J\"}}",
		"a label with an escape": "{\"metadata\": {\"name\": \"n\", \"labels\": {\"a\\u001b\": \"\"}}}",
		"a taint with a line":    "{\"metadata\": {\"name\": \"n\"}, \"spec\": {\"taints\": [{\"key\": \"a\\nb\"}]}}",
		"a huge file":            "{\"metadata\": {\"name\": \"n\"}}" + strings.Repeat(" ", manifestMost),
		"a list":                 "[]",
	} {
		if k, err := stolen(t, text); err == nil || strings.ContainsAny(err.Error(), "\x1b\n") {
			t.Errorf("%s: %+v, %v", name, k, err)
		}
	}
	k, err := stolen(t, "{\"metadata\": {\"name\": \"n\", \"annotations\": {\"autoscaler-agent/deleted\": \"2026-11-21T12:00:00Z G3: \\u001b[2J\\nx\"}}}")
	if err != nil || k.Why != "G3: ?[2J?x" {
		t.Errorf("%q, %v", k.Why, err)
	}
	dir := t.TempDir()
	if err := os.MkdirAll(manifestDir(dir), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(manifestDir(dir), "pipe.json"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/hostname", filepath.Join(manifestDir(dir), "link.json")); err != nil {
		t.Fatal(err)
	}
	if list, err := Manifests(dir); len(list) > 0 || err == nil || strings.Count(err.Error(), "no regular file") != 2 {
		t.Errorf("a pipe and a link: %v, %v", list, err)
	}
}
