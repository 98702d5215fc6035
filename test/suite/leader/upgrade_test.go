package leader

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/controlplane"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/world"
	"github.com/autoscaler-agent/autoscaler-agent/test/suite/worker"
	"github.com/autoscaler-agent/autoscaler-agent/userdata"
)

// upgrading is a cluster of one minor of Kubernetes, and the programs of the next one.
type upgrading struct {
	*ha
	next   controlplane.Bin
	images []string // archives of the next version's
}

// TestUpgradeByKubeadm takes the whole way of docs/upgrade.md, by the page's own commands: two leaders and a worker of the
// minor that AUTOSCALER_TEST_KUBERNETES names; kubeadm upgrade plan and apply on the first leader, kubeadm upgrade node on
// the second; only then the agent publishes user data of the next minor; a worker with the newer kubelet takes the place of
// the old one, whose pods move within their budget; the old machine is ended, and its Node goes.
func TestUpgradeByKubeadm(t *testing.T) {
	if os.Getenv(controlplane.KubernetesEnv) == "" || os.Getenv(gate) != "inside" {
		t.Skip("boots containers as root with the programs of two minors: make e2e-upgrade")
	}
	h := &ha{rig: newRig(t)}
	u := &upgrading{ha: h}
	u.prepare(t)
	h.front = router
	h.forward(t)
	h.set = " --set AUTOSCALER_BOOTSTRAP_LAUNCH_TEMPLATES=" + h.cloud.LaunchTemplateID(group) + " --set AUTOSCALER_BOOTSTRAP_UPGRADE=minor --set AUTOSCALER_SCALING_DRIFT=true --set AUTOSCALER_SCALING_REPLACE_SETTLE_TIME=1m"
	h.leaders = []*worker.Container{h.leaderWith(t, "cp-1", h.hook(t, "10.244.0.0/24", h.archives, onCgroupV1, smallEtcd))}
	h.api = clientAt(t, h.leaders[0], router+":6443")
	h.installOn(t, 0)
	h.join(t, 1)
	h.installOn(t, 1)
	for n := range h.leaders {
		h.servesWithCertificate(t, n)
		h.ready(t, h.api, h.name(n))
	}
	h.ended = func(i aws.Instance) { t.Logf("%s is ended", i.ID) }
	old, oldMachine := u.firstWorker(t)
	available := u.watchAvailable(t)

	u.leader(t, 0, "")
	u.waitsFor(t, h.name(1))
	u.leader(t, 1, "kubeadm upgrade node")
	began := time.Now()
	must(t, h.leaders[0], "set -e; export KUBECONFIG=/etc/kubernetes/admin.conf\n"+section(t, "upgrade.md", "3. The machines that run", "poddisruptionbudget"))
	// No image of CoreDNS and of kube-proxy is to be had, so that none of their pods is ever Ready: the first machine would never prove itself.
	must(t, h.leaders[0], "export KUBECONFIG=/etc/kubernetes/admin.conf; kubectl -n kube-system scale deployment coredns --replicas 0; kubectl -n kube-system delete daemonset kube-proxy")
	u.follows(t)
	fresh := u.replaced(t, old, oldMachine)
	t.Logf("%s (%s) took the place of %s (%s) %s after the last leader was upgraded", fresh.PrivateDNS, u.next.Version, old.PrivateDNS, h.parts.Kubernetes, time.Since(began).Round(time.Second))
	if least := available(); least < 1 {
		t.Errorf("%d pods were available at the worst moment, and the PodDisruptionBudget asks for one", least)
	}
	u.wholeCluster(t, old, fresh)
}

// prepare makes images and downloads of the next minor, and an agent whose table of checksums has those of the programs
// that are built here: the published ones cannot be had.
func (u *upgrading) prepare(t *testing.T) {
	t.Helper()
	minor, _ := cluster.MinorOf(u.parts.Kubernetes)
	var err error
	if u.next, err = controlplane.BinariesOf(t.Context(), fmt.Sprintf("1.%d", minor+1), t.Output()); err != nil {
		t.Fatal(err)
	}
	known := len(u.archives)
	u.makeImages(t, u.next)
	u.images = slices.Clone(u.archives[known:])
	sums := u.publish(t, u.mirror, u.rig.parts)
	next, err := worker.NewMirror(u.parts.With(u.next), u.specOf(u.next.Version))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(next.Close)
	newer := u.publish(t, next, u.parts.With(u.next))
	maps.Copy(sums, newer)
	older := u.mirror.Config.Handler
	u.mirror.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if newer[strings.TrimPrefix(q.URL.Path, "/")] != "" && u.serves[q.URL.Path] == "" {
			next.Config.Handler.ServeHTTP(w, q)
			return
		}
		older.ServeHTTP(w, q)
	})
	u.buildAgent(t, sums)
	clear(u.mirror.SHA256) // the table has them: no flag gives one
}

// publish lists the checksums of what a mirror serves, with kubectl of the same version, by path.
func (u *upgrading) publish(t *testing.T, m *worker.Mirror, parts worker.Parts) map[string]string {
	t.Helper()
	bin := u.control
	if parts.Kubernetes == u.next.Version {
		bin = u.next
	}
	kubectl := userdata.PublishedPath("kubectl", bin.Version, "amd64")
	u.serves["/"+kubectl] = bin.Path(controlplane.Kubectl)
	spec := u.specOf(bin.Version)
	spec.Downloads.SHA256 = m.SHA256
	list, err := userdata.DownloadsOf(spec)
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]string{kubectl: sumOf(t, bin.Path(controlplane.Kubectl))}
	for _, d := range list {
		sums[strings.ReplaceAll(d.Path, "$ARCH", "amd64")] = m.SHA256[d.Name+"/amd64"]
	}
	return sums
}

// buildAgent builds the agent with other checksums in its table, and makes it the rig's.
func (u *upgrading) buildAgent(t *testing.T, sums map[string]string) {
	t.Helper()
	file, err := filepath.Abs("../../../userdata/versions.txt")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) == 5 && f[2] == "amd64" {
			path := userdata.PublishedPath(f[0], f[1], f[2])
			if sum := sums[path]; sum != "" {
				line = strings.Replace(line, f[3], sum, 1)
				delete(sums, path)
			}
		}
		table.WriteString(line)
	}
	if len(sums) > 0 {
		t.Fatalf("the agent's table has no line for %v", sums)
	}
	dir := t.TempDir()
	own := filepath.Join(dir, "versions.txt")
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {file: own}})
	if err = errors.Join(err, os.WriteFile(own, []byte(table.String()), 0o600), os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"pause", "image"} {
		if err := os.Symlink(filepath.Join(u.programs, name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := world.BuildAgent(t.Context(), filepath.Join(dir, "autoscaler-agent"), "-overlay", filepath.Join(dir, "overlay.json")); err != nil {
		t.Fatal(err)
	}
	u.programs = dir
}

// firstWorker makes a Deployment of two pods with a budget of one, and the machine of the older minor that they run on.
func (u *upgrading) firstWorker(t *testing.T) (aws.Instance, *worker.Container) {
	t.Helper()
	u.userData(t, u.leaders[0])
	web, two := map[string]string{"app": "web"}, int32(2)
	one := intstr.FromInt32(1)
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.DeploymentSpec{
		Replicas: &two, Selector: &metav1.LabelSelector{MatchLabels: web},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: web}, Spec: halfACore("web")},
	}}
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: policyv1.PodDisruptionBudgetSpec{
		MinAvailable: &one, Selector: &metav1.LabelSelector{MatchLabels: web}}}
	await.Nil(t, "the Deployment is made", func(ctx context.Context) error {
		_, err := u.api.PolicyV1().PodDisruptionBudgets("default").Create(ctx, budget, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		_, err = u.api.AppsV1().Deployments("default").Create(ctx, deployment, metav1.CreateOptions{})
		return err
	})
	i := u.instance(t)
	c := u.worker(t, i)
	u.ready(t, u.api, i.PrivateDNS)
	u.on(t, i, u.parts.Kubernetes)
	return i, c
}

// on waits until both pods run on a machine, and compares its kubelet.
func (u *upgrading) on(t *testing.T, i aws.Instance, version string) {
	t.Helper()
	await.Nil(t, "both pods run on "+i.PrivateDNS, func(ctx context.Context) error {
		list, err := u.api.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=web"})
		if err != nil {
			return err
		}
		running := 0
		for _, p := range list.Items {
			if p.Status.Phase == corev1.PodRunning && p.Spec.NodeName == i.PrivateDNS && p.DeletionTimestamp == nil {
				running++
			}
		}
		if running != 2 {
			return fmt.Errorf("%d do", running)
		}
		return nil
	})
	node, err := u.api.CoreV1().Nodes().Get(t.Context(), i.PrivateDNS, metav1.GetOptions{})
	if err != nil || node.Status.NodeInfo.KubeletVersion != version {
		t.Errorf("the kubelet is %s, want %s; %v", node.Status.NodeInfo.KubeletVersion, version, err)
	}
}

// watchAvailable notes the fewest available pods of the Deployment until the returned function is called.
func (u *upgrading) watchAvailable(t *testing.T) func() int32 {
	ctx, stop := context.WithCancel(t.Context())
	least := make(chan int32, 1)
	go func() {
		fewest := int32(2)
		for ctx.Err() == nil {
			if d, err := u.api.AppsV1().Deployments("default").Get(ctx, "web", metav1.GetOptions{}); err == nil {
				fewest = min(fewest, d.Status.AvailableReplicas)
			}
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
		least <- fewest
	}()
	return func() int32 {
		stop()
		return <-least
	}
}

// leader upgrades one by the page's commands. Further says what takes the place of plan and apply. The images stand for those
// that kubeadm pulls: there is none for kube-proxy and CoreDNS, which kubeadm is told not to miss; this kernel has cgroup v1.
func (u *upgrading) leader(t *testing.T, n int, further string) {
	t.Helper()
	commands := section(t, "upgrade.md", "1. The leaders", "kubeadm upgrade apply")
	replace := func(old, by string) {
		if !strings.Contains(commands, old) {
			t.Fatalf("docs/upgrade.md has no %q below its leaders:\n%s", old, commands)
		}
		commands = strings.ReplaceAll(commands, old, by)
	}
	const ignored = " --ignore-preflight-errors=SystemVerification,ImagePull"
	replace("V=v1.36.3 ", "V="+u.next.Version+" ")
	replace("https://dl.k8s.io/", u.files+"/dl.k8s.io/")
	if further == "" {
		replace("kubeadm upgrade apply $V --yes\n", "kubeadm upgrade apply $V --yes"+ignored+"\n")
	} else {
		replace("kubeadm upgrade plan $V\n", "")
		replace("kubeadm upgrade apply $V --yes\n", further+ignored+"\n")
	}
	c := u.leaders[n]
	for _, name := range u.images {
		must(t, c, "curl -fsS "+u.files+"/"+name+" -o /root/image.tar; ctr -n k8s.io images import /root/image.tar >/dev/null; rm /root/image.tar")
	}
	began := time.Now()
	out := must(t, c, "set -e\n"+commands+" 2>&1")
	t.Logf("%s upgraded in %s:\n%s", u.name(n), time.Since(began).Round(time.Second), upgradeLines(out))
	await.Nil(t, u.name(n)+" has the new version", func(ctx context.Context) error {
		api := clientAt(t, c, controlPlane[n]+":6443")
		v, err := api.Discovery().ServerVersion()
		if err != nil {
			return err
		}
		// Before it has read the roles, an API server that has begun anew forbids everything to kubernetes-admin too.
		if text, err := api.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx); err != nil {
			return fmt.Errorf("it is not ready: %w: %s", err, text)
		}
		node, err := u.api.CoreV1().Nodes().Get(ctx, u.name(n), metav1.GetOptions{})
		if err == nil && (v.GitVersion != u.next.Version || node.Status.NodeInfo.KubeletVersion != u.next.Version) {
			err = fmt.Errorf("its API server has %s, its kubelet %s", v.GitVersion, node.Status.NodeInfo.KubeletVersion)
		}
		return err
	})
	u.ready(t, u.api, u.name(n))
}

func upgradeLines(out string) string {
	var lines []string
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "[upgrade") || strings.Contains(line, "SUCCESS") || strings.Contains(line, ": OK") || strings.Contains(line, "WARNING") {
			lines = append(lines, line)
		}
	}
	return tail(strings.Join(lines, ""))
}

// waitsFor: while one leader is behind, nothing is published and no machine comes, and check names the leader.
func (u *upgrading) waitsFor(t *testing.T, behind string) {
	t.Helper()
	want := fmt.Sprintf("the kubelet of %s has %s", behind, u.parts.Kubernetes)
	await.Nil(t, "check tells which leader is behind", func(ctx context.Context) error {
		out, _ := u.leaders[0].Run(ctx, append(append([]string{"env"}, u.cloudEnv()...), "autoscaler-agent", "check")...)
		if !strings.Contains(out, want) {
			return fmt.Errorf("want %q:\n%s", want, tail(out))
		}
		return nil
	})
	if held := u.newest(t); held != u.parts.Kubernetes {
		t.Errorf("user data for %s is published while %s is behind", held, behind)
	}
	if g, ok := u.cloud.Group(group); !ok || g.Desired != 1 {
		t.Errorf("the group wants %d machines", g.Desired)
	}
}

// newest is the version of Kubernetes that the launch template's newest version installs.
func (u *upgrading) newest(t *testing.T) string {
	t.Helper()
	lt, _ := u.cloud.LatestVersion(group)
	held, err := userdata.Read([]byte(lt.UserData))
	if err != nil {
		t.Fatal(err)
	}
	return held.KubernetesVersion
}

// follows waits until user data of the new version is published: the agent asks the API server for its version every five minutes.
func (u *upgrading) follows(t *testing.T) {
	t.Helper()
	for began := time.Now(); u.newest(t) != u.next.Version; time.Sleep(time.Second) {
		if time.Since(began) > 10*time.Minute {
			t.Fatalf("the newest user data installs %s %s after the last leader was upgraded", u.newest(t), time.Since(began).Round(time.Second))
		}
	}
}

// replaced waits for the machine in place of the old one, and for the end of that.
func (u *upgrading) replaced(t *testing.T, old aws.Instance, machine *worker.Container) aws.Instance {
	t.Helper()
	fresh := u.instance(t)
	u.ended = func(i aws.Instance) {
		if i.ID == old.ID {
			go func() { _ = machine.Halt() }() // the machine is gone, and its kubelet with it
		}
	}
	c := u.worker(t, fresh)
	u.ready(t, u.api, fresh.PrivateDNS)
	if !strings.Contains(c.ConsoleText(), "phase=joined") {
		t.Errorf("the new worker did not say that it joined:\n%s", tail(c.ConsoleText()))
	}
	u.on(t, fresh, u.next.Version)
	await.Nil(t, "the old machine is ended, and its Node gone", func(ctx context.Context) error {
		_, err := u.api.CoreV1().Nodes().Get(ctx, old.PrivateDNS, metav1.GetOptions{})
		if g, ok := u.cloud.Group(group); !ok || g.Desired != 1 || !apierrors.IsNotFound(err) {
			return fmt.Errorf("the group wants %d machines; the Node: %v", g.Desired, err)
		}
		return nil
	})
	for _, i := range u.cloud.Instances() {
		if ended := i.State == "terminated"; ended != (i.ID == old.ID) {
			t.Errorf("%s is %s", i.ID, i.State)
		}
	}
	return fresh
}

// wholeCluster: every machine has the new version, and check and rollout status say so.
func (u *upgrading) wholeCluster(t *testing.T, old, fresh aws.Instance) {
	t.Helper()
	var out string
	await.Nil(t, "check is well", func(ctx context.Context) (err error) {
		out, err = u.leaders[0].Run(ctx, append(append([]string{"env"}, u.cloudEnv()...), "autoscaler-agent", "check")...)
		if err != nil || !strings.Contains(out, u.next.Version+" on 3; the API server has "+u.next.Version) {
			err = fmt.Errorf("%w\n%s", err, tail(out))
		}
		return err
	})
	for _, command := range []string{"nodes", "rollout status"} {
		out, err := u.leaders[0].Run(t.Context(), append([]string{"autoscaler-agent"}, strings.Fields(command)...)...)
		t.Logf("%s: %v\n%s", command, err, out)
		if command == "nodes" && (!strings.Contains(out, fresh.PrivateDNS) || strings.Contains(out, old.PrivateDNS)) {
			t.Errorf("nodes lists %s, or does not list %s", old.PrivateDNS, fresh.PrivateDNS)
		}
	}
}
