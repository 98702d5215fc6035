package script

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/controlplane"
	"github.com/autoscaler-agent/autoscaler-agent/userdata"
	"github.com/autoscaler-agent/autoscaler-agent/userdata/leader"
)

// TestAddons runs what leader.sh applies to a new cluster, as it stands, with the real kubectl
// against a real control plane: every object is taken, twice, and the pods are placed on a
// leader as kubeadm and a kubelet leave it. No image runs. The published manifests are read
// from AUTOSCALER_TEST_ADDONS, a mirror by `leader-config --format downloads`; without it only
// the manifest in the repository is applied.
func TestAddons(t *testing.T) {
	cp := controlplane.ForTest(t, controlplane.Options{Fast: true})
	leaderNode(t, cp)
	mirror := os.Getenv("AUTOSCALER_TEST_ADDONS")
	type choice struct{ network, cloud, version string }
	var choices []choice
	if mirror == "" {
		t.Log("AUTOSCALER_TEST_ADDONS is not set: of flannel and the cloud controller managers nothing is applied")
	} else {
		choices = append(choices, choice{"flannel", "", "v1.36.3"}, choice{"none", "aws", "v1.36.3"})
		for _, minor := range []int{userdata.OldestMinor, userdata.NewestMinor} {
			choices = append(choices, choice{"none", "openstack", newest(t, minor)})
		}
	}
	choices = append(choices, choice{"none", "", "v1.36.3"})
	for n, c := range choices {
		s := leader.Spec{Machine: userdata.Spec{System: "debian", Arch: "amd64", KubernetesVersion: c.version, Join: userdata.Join{Endpoint: "k8s.example.net:6443"}},
			PodSubnet: "10.32.0.0/12", ServiceSubnet: leader.DefaultServiceSubnet, DNSDomain: leader.DefaultDNSDomain, Network: c.network, CloudController: c.cloud}
		// kubectl asks every API what it has, and that of metrics-server answers nothing here.
		s.WithoutMetrics = n < len(choices)-1
		for _, again := range []bool{false, true} {
			out, err := applyAddons(t, cp, s, mirror)
			if t.Logf("%+v: %s", c, out); err != nil {
				t.Fatal(err)
			}
			if n == len(choices)-1 && strings.Contains(out, " created\n") == again {
				t.Errorf("the second run makes objects, or the first none: %t", again)
			}
		}
	}
	// The network comes before the Node is Ready, and the cloud controller manager before the
	// Node is known to the cloud.
	if mirror != "" {
		placed(t, cp, "kube-flannel/kube-flannel-ds")
	}
	becomes(t, cp, func(n *corev1.Node) {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now()}}
	})
	if mirror != "" {
		placed(t, cp, "kube-system/aws-cloud-controller-manager", "kube-system/openstack-cloud-controller-manager")
	}
	becomes(t, cp, func(n *corev1.Node) {
		n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(x corev1.Taint) bool { return x.Key == uninitialized })
	})
	placed(t, cp, "kube-system/metrics-server")
	checkFlannel(t, cp, mirror)
	documentsAreTaken(t, cp)
}

// newest is the newest patch of a minor that the table has.
func newest(t *testing.T, minor int) string {
	t.Helper()
	table, err := userdata.Versions()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range table {
		if p.Name == "kubectl" && strings.HasPrefix(p.Version, fmt.Sprintf("v1.%d.", minor)) {
			return p.Version
		}
	}
	t.Fatalf("no kubectl of 1.%d", minor)
	return ""
}

// applyAddons executes the part of the script between its marker and its end. fetch takes
// files from the mirror, by their pinned checksum.
func applyAddons(t *testing.T, cp *controlplane.ControlPlane, s leader.Spec, mirror string) (string, error) {
	t.Helper()
	script, err := leader.Render(s)
	if err != nil {
		t.Fatal(err)
	}
	_, part, ok := strings.Cut(string(script), "\nphase addons\n")
	part, _, end := strings.Cut(part, "\nrm -rf \"$tmp\"")
	if !ok || !end {
		t.Fatal("the script has no part that applies addons")
	}
	files, err := leader.Downloads(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !strings.HasSuffix(f.Path, ".yaml") && !strings.HasSuffix(f.Path, ".yml") {
			continue
		}
		data, err := os.ReadFile(filepath.Join(mirror, f.Path))
		digest := sha256.Sum256(data)
		if err != nil || hex.EncodeToString(digest[:]) != f.SHA256 {
			t.Fatalf("%s is not the pinned file: %v", f.Path, err)
		}
	}
	dir := t.TempDir()
	if err := os.Symlink(cp.Binaries().Path(controlplane.Kubectl), filepath.Join(dir, "kubectl")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "set -eu\ntmp='"+dir+"'\nphase() { :; }\ndie() { echo \"failed $*\"; exit 1; }\nfetch() { cp \"$MIRROR/$2\" \"$3\"; }\n"+part)
	cmd.Env = []string{"PATH=" + dir + ":/usr/bin:/bin", "KUBECONFIG=" + cp.Kubeconfig(), "MIRROR=" + mirror, "HOME=" + dir}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	return out.String(), err
}

// uninitialized is the taint that a kubelet with --cloud-provider=external sets.
const uninitialized = "node.cloudprovider.kubernetes.io/uninitialized"

// leaderNode is the Node of a leader before network and cloud controller manager run.
func leaderNode(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	_, err := cp.Client().CoreV1().Nodes().Create(t.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "leader", Labels: map[string]string{"node-role.kubernetes.io/control-plane": "", "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", "kubernetes.io/hostname": "leader"}},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule}, {Key: uninitialized, Value: "true", Effect: corev1.TaintEffectNoSchedule}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	becomes(t, cp, func(n *corev1.Node) {
		n.Status.Capacity = corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("8Gi"), "pods": resource.MustParse("110"), "ephemeral-storage": resource.MustParse("50Gi")}
		n.Status.Allocatable = n.Status.Capacity
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Reason: "KubeletNotReady", Message: "cni plugin not initialized", LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now()}}
	})
}

// becomes changes the leader's status and its spec, as kubelet and cloud controller manager do.
func becomes(t *testing.T, cp *controlplane.ControlPlane, change func(*corev1.Node)) {
	t.Helper()
	nodes := cp.Client().CoreV1().Nodes()
	await.True(t, "the leader is changed", func() bool { // controllers write to it, too
		n, err := nodes.Get(t.Context(), "leader", metav1.GetOptions{})
		if err != nil {
			return false
		}
		change(n)
		if n, err = nodes.UpdateStatus(t.Context(), n, metav1.UpdateOptions{}); err != nil {
			return false
		}
		change(n)
		_, err = nodes.Update(t.Context(), n, metav1.UpdateOptions{})
		return err == nil
	})
}

// placed waits until a pod of each owner is on the leader.
func placed(t *testing.T, cp *controlplane.ControlPlane, owners ...string) {
	t.Helper()
	for _, owner := range owners {
		await.True(t, "a pod of "+owner+" is on the leader", func() bool {
			pods, err := cp.Client().CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
			return err == nil && slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool {
				return strings.HasPrefix(p.Namespace+"/"+p.Name, owner+"-") && p.Spec.NodeName == "leader"
			})
		})
	}
}

// checkFlannel: the network of the pods is the one that was asked for.
func checkFlannel(t *testing.T, cp *controlplane.ControlPlane, mirror string) {
	t.Helper()
	if mirror == "" {
		return
	}
	c, err := cp.Client().CoreV1().ConfigMaps("kube-flannel").Get(t.Context(), "kube-flannel-cfg", metav1.GetOptions{})
	if err != nil || !strings.Contains(c.Data["net-conf.json"], `"Network": "10.32.0.0/12"`) {
		t.Errorf("flannel's network: %v %v", err, c.Data)
	}
	var d *appsv1.DaemonSet
	if d, err = cp.Client().AppsV1().DaemonSets("kube-system").Get(t.Context(), "aws-cloud-controller-manager", metav1.GetOptions{}); err != nil || !strings.HasSuffix(d.Spec.Template.Spec.Containers[0].Image, ":v1.36.1") {
		t.Errorf("the image of AWS's cloud controller manager: %v %v", err, d.Spec.Template.Spec.Containers)
	}
}

// documentsAreTaken: the API server takes what docs/leader.md shows.
func documentsAreTaken(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	page, err := os.ReadFile("../../../docs/leader.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```yaml\n")
	text, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("the page shows no object")
	}
	cmd := exec.CommandContext(t.Context(), cp.Binaries().Path(controlplane.Kubectl), "apply", "--dry-run=server", "--validate=strict", "-f", "-")
	cmd.Stdin = strings.NewReader(text)
	cmd.Env = []string{"KUBECONFIG=" + cp.Kubeconfig(), "HOME=" + t.TempDir()}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
