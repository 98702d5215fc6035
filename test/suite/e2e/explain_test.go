package e2e

import (
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/world"
)

// TestTheAgentExplainsItself: a pod that no group can help, a node that stays and a
// group that is backed off are explained by the running agent and without it; the
// Events are where kubectl describe shows them, the status ConfigMap is Cluster
// Autoscaler's, and a recorded round is decided once more as it was.
func TestTheAgentExplainsItself(t *testing.T) {
	t.Parallel() // it mostly waits
	s := newScene(t, nil)
	s.start("AUTOSCALER_SCALING_UNNEEDED_FOR=1h")
	s.workers(world.Workers{Name: "workers", Max: 5})
	s.deploy("web", 2, "100m", "64Mi")
	s.until("web Running", func() bool { return s.running("web") == 2 })
	node := string(s.nodes()[0].Name)

	s.lonely("naked", "100m")
	s.lonely("huge", "100")
	s.explains("explain pod huge", "no node group can help", "0/1 node groups can help: 1 Insufficient cpu", "workers: [F6] Insufficient cpu", "0/1 nodes are available: 1 Insufficient cpu")
	s.until("naked Running", func() bool { return s.phase("naked") == corev1.PodRunning })
	s.explains("explain node "+node, "has no controller to make it again", "NO   D6", "its group has more machines than its minimum")
	s.explains("explain pod naked", "it keeps its node from being removed")
	s.explains("explain group workers", "it can grow", "minimum 0, target 1, maximum 5")
	if out, code := s.command("explain", "pod", "nobody"); code != 1 || !strings.Contains(out, "there is no pod nobody") {
		t.Errorf("code %d: %s", code, out)
	}

	stop := s.w.Cloud.Inject(aws.Fault{Action: "SetDesiredCapacity", Kind: aws.Forbidden})
	s.deploy("more", 30, "250m", "64Mi")
	s.until("a backed-off group", func() bool {
		out, _ := s.command("explain", "group", "workers")
		return containsAll(out, []string{"[U9] backed off until", "(refused)"})
	})
	s.statusPage("Backoff")
	stop()

	s.event("Pod", "huge", "NotTriggerScaleUp", "1 Insufficient cpu (group workers)")
	s.event("ConfigMap", "cluster-autoscaler-status", "ScaledUpGroup", "setting group workers size to 1 instead of 0 (max: 5)")
	s.event("ConfigMap", "cluster-autoscaler-status", "FailedToScaleUpGroup", "SetDesiredCapacity")
	s.described(s.podOf("web"), "TriggeredScaleUp", "[{workers 0->1 (max: 5)}]")

	var plan struct {
		Actions []struct{ Kind string }
		Held    []struct{ Kind, Name, Rule, Why string }
	}
	out, code := s.command("plan", "--output", "json")
	if err := json.Unmarshal([]byte(out), &plan); err != nil || code != 0 || len(plan.Held) == 0 || plan.Held[0].Rule == "" {
		t.Errorf("plan --output json: code %d, %v\n%s", code, err, out)
	}
	file := filepath.Join(t.TempDir(), "rounds.json.gz")
	s.explains("status --record "+file, "replay "+file)
	if out, code := s.command("replay", file); code != 0 || !strings.Contains(out, "equal") || strings.Contains(out, "differs") {
		t.Errorf("replay: code %d\n%s", code, out)
	}
	if out, code := s.command("replay", file, "--policy", "MAX_NODES_TOTAL=1"); code != 1 || !strings.Contains(out, "differs") {
		t.Errorf("replay with another policy: code %d\n%s", code, out)
	}
	if kept, _ := filepath.Glob(filepath.Join(s.w.StateDir(), "flight", "*.json.gz")); len(kept) == 0 {
		t.Error("no round that acted is on disk")
	} else {
		s.explains("replay "+kept[0], "equal")
	}

	if err := s.agent.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	s.agent = nil
	if _, err := s.client.CoreV1().ConfigMaps("kube-system").Get(t.Context(), "cluster-autoscaler-status", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the status ConfigMap is still there after a stop: %v", err)
	}
	s.explains("explain pod huge --output yaml", "summary: no node has room for it and no node group can help", "looking at the cluster and the cloud from here")
}

// lonely makes a pod without a controller.
func (s *scene) lonely(name, cpu string) {
	s.t.Helper()
	grace := int64(1)
	_, err := s.client.CoreV1().Pods("default").Create(s.t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
		TerminationGracePeriodSeconds: &grace, Containers: []corev1.Container{{Name: "c", Image: "nginx", Resources: requests(cpu, "64Mi")}}}}, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	s.until(name+" judged by the scheduler", func() bool {
		pod, err := s.client.CoreV1().Pods("default").Get(s.t.Context(), name, metav1.GetOptions{})
		return err == nil && len(pod.Status.Conditions) > 0
	})
}

func (s *scene) phase(name string) corev1.PodPhase {
	pod, err := s.client.CoreV1().Pods("default").Get(s.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return corev1.PodUnknown
	}
	return pod.Status.Phase
}

func (s *scene) podOf(deployment string) string {
	s.t.Helper()
	pods, err := s.client.CoreV1().Pods("default").List(s.t.Context(), metav1.ListOptions{LabelSelector: "app=" + deployment})
	if err != nil || len(pods.Items) == 0 {
		s.t.Fatalf("no pod of %s: %v", deployment, err)
	}
	return pods.Items[0].Name
}

// command runs the binary as a user on the leader does and returns what it says.
func (s *scene) command(args ...string) (out string, code int) {
	s.t.Helper()
	kubeconfig, err := s.w.AgentKubeconfig(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), await.Limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.binary, args...)
	cmd.Env = s.w.AgentEnv(kubeconfig)
	text, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		s.t.Fatal(err)
	}
	return string(text), cmd.ProcessState.ExitCode()
}

// explains waits until a command does not fail and says all the words: what the API
// server knows takes a moment to be known to the agent.
func (s *scene) explains(command string, words ...string) {
	s.t.Helper()
	var out string
	var code int
	missing := func() (list []string) {
		out, code = s.command(strings.Fields(command)...)
		for _, w := range words {
			if !strings.Contains(out, w) {
				list = append(list, w)
			}
		}
		return list
	}
	deadline := time.Now().Add(await.Limit)
	lacks := missing()
	for (len(lacks) > 0 || code != 0) && time.Now().Before(deadline) {
		<-time.After(300 * time.Millisecond)
		lacks = missing()
	}
	s.t.Logf("$ autoscaler-agent %s\n%s", command, out)
	if len(lacks) > 0 || code != 0 {
		s.t.Errorf("code %d, no %q in the last answer", code, lacks)
	}
}

// event waits for an Event on an object.
func (s *scene) event(kind, name, reason, words string) {
	s.t.Helper()
	s.until(reason+" on "+kind+" "+name, func() bool {
		list, err := s.client.CoreV1().Events("").List(s.t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.kind=" + kind + ",involvedObject.name=" + name + ",reason=" + reason})
		if err != nil {
			return false
		}
		for _, e := range list.Items {
			if strings.Contains(e.Message, words) {
				return true
			}
		}
		return false
	})
}

// described waits until kubectl describe shows the words about a pod.
func (s *scene) described(pod string, words ...string) {
	s.t.Helper()
	cp := s.w.ControlPlane
	s.until(strings.Join(words, " ")+" in kubectl describe pod", func() bool {
		out, err := exec.CommandContext(s.t.Context(), cp.Binaries().Path("kubectl"), "--kubeconfig", cp.Kubeconfig(), "describe", "pod", pod).Output()
		return err == nil && containsAll(string(out), words)
	})
}

// statusPage waits until the status ConfigMap says so of the group's growth.
func (s *scene) statusPage(growth string) {
	s.t.Helper()
	type page struct {
		AutoscalerStatus string
		ClusterWide      struct {
			Health struct {
				Status     string
				NodeCounts struct {
					Registered struct{ Total, Ready int }
				}
			}
		}
		NodeGroups []struct {
			Name   string
			Health struct{ CloudProviderTarget, MinSize, MaxSize int }
			// ScaleUp is what the test waits for.
			ScaleUp struct {
				Status      string
				BackoffInfo struct{ ErrorCode, ErrorMessage string }
			}
		}
	}
	var p page
	s.until("the status page with "+growth, func() bool {
		cm, err := s.client.CoreV1().ConfigMaps("kube-system").Get(s.t.Context(), "cluster-autoscaler-status", metav1.GetOptions{})
		p = page{}
		return err == nil && cm.Annotations["cluster-autoscaler.kubernetes.io/last-updated"] != "" && yaml.Unmarshal([]byte(cm.Data["status"]), &p) == nil &&
			len(p.NodeGroups) == 1 && p.NodeGroups[0].ScaleUp.Status == growth
	})
	g := p.NodeGroups[0]
	if p.AutoscalerStatus != "Running" || p.ClusterWide.Health.Status != "Healthy" || p.ClusterWide.Health.NodeCounts.Registered.Ready != 1 ||
		g.Name != "workers" || g.Health.CloudProviderTarget != 1 || g.Health.MaxSize != 5 || g.ScaleUp.BackoffInfo.ErrorCode != "refused" {
		s.t.Errorf("status page %+v", p)
	}
}
