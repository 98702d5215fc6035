package e2e

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/openstack"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/world"
)

// Rollouts that went wrong when they were played, on the real control plane: pods that crash on the first machine, an agent that stands by,
// a cloud that throttles; and a rollout on OpenStack.

func rolloutRows(t *testing.T) {
	t.Helper()
	if os.Getenv("AUTOSCALER_TEST_ROLLOUT") != "1" {
		t.Skip("minutes of waiting: make e2e-rollout runs this")
	}
}

// TestRolloutCrash: apps of one replica crash on the first machine of an image. The rollout is halted by the pod's own reason, the old
// node is uncordoned, the app is back on it, and the bad machine goes.
func TestRolloutCrash(t *testing.T) {
	rolloutRows(t)
	t.Parallel() // it mostly waits
	s := newScene(t, nil)
	s.start(rolloutSettings...)
	s.workers(world.Workers{Name: "workers", Max: 10})
	apps := []string{"solo-a", "solo-b", "solo-c"} // each fills a machine
	for _, app := range apps {
		s.deploy(app, 1, "3", "64Mi")
	}
	s.until("all run", func() bool { return s.wellOn("", apps...) })
	lt, _ := s.w.Cloud.LatestVersion("workers")
	was := lt.ImageID
	lt.ImageID = "ami-00000000000000002"
	s.w.Cloud.PutLaunchTemplate(lt)
	s.crashOn(lt.ImageID)
	began := time.Now()
	s.patient(4*time.Minute, "the rollout is halted", func() bool {
		out, _ := s.command("rollout", "status", "workers")
		return strings.Contains(out, "halted since") && strings.Contains(out, "CrashLoopBackOff after")
	})
	t.Logf("halted after %s", time.Since(began).Round(time.Second))
	s.patient(2*time.Minute, "the apps are back on the old machines, none of which is cordoned, and the bad machine is gone", func() bool {
		cordoned := slices.ContainsFunc(s.nodes(), func(n corev1.Node) bool { return n.Spec.Unschedulable })
		of := s.images()
		return !cordoned && s.wellOn(was, apps...) && of[was] == len(apps) && of[lt.ImageID] == 0
	})
}

// imageOf is the image of a node's machine.
func (s *scene) imageOf(node string) string {
	n, err := s.client.CoreV1().Nodes().Get(s.t.Context(), node, metav1.GetOptions{ResourceVersion: "0"})
	if err != nil {
		return ""
	}
	for _, i := range s.w.Cloud.Instances() {
		if strings.HasSuffix(n.Spec.ProviderID, "/"+i.ID) {
			return i.ImageID
		}
	}
	return ""
}

// wellOn tells that a pod of each app is Ready, on a machine of an image; empty: of any.
func (s *scene) wellOn(image string, apps ...string) bool {
	return !slices.ContainsFunc(apps, func(app string) bool {
		pods, err := s.client.CoreV1().Pods("default").List(s.t.Context(), metav1.ListOptions{LabelSelector: "app=" + app})
		return err != nil || !slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool {
			ready := slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue })
			return ready && p.DeletionTimestamp == nil && (image == "" || s.imageOf(p.Spec.NodeName) == image)
		})
	})
}

// crashOn lets each container on machines of an image crash, as a kubelet tells it, until the test ends.
func (s *scene) crashOn(image string) {
	ctx, cancel := context.WithCancel(s.t.Context())
	done := make(chan struct{})
	s.t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			pods, err := s.client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
			if err != nil {
				continue
			}
			for i := range pods.Items {
				if p := &pods.Items[i]; p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil && s.imageOf(p.Spec.NodeName) == image {
					crash(p)
					_, _ = s.client.CoreV1().Pods("default").UpdateStatus(ctx, p, metav1.UpdateOptions{}) // in a second it is tried again
				}
			}
		}
	}()
}

func crash(p *corev1.Pod) {
	for i := range p.Status.ContainerStatuses {
		c := &p.Status.ContainerStatuses[i]
		if c.State.Waiting != nil {
			continue
		}
		c.Ready, c.RestartCount = false, 3
		c.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
		c.LastTerminationState = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", FinishedAt: metav1.Now()}}
	}
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == corev1.PodReady || c.Type == corev1.ContainersReady {
			c.Status, c.Reason = corev1.ConditionFalse, "ContainersNotReady"
		}
	}
}

// TestRolloutBesideAStandby: one agent replaces machines, the cloud throttles each second change of a target, and another agent stands by for
// longer than a machine may take to come. Nothing is halted at any moment, the other agent goes on when the first is killed, and no machine
// is started twice.
func TestRolloutBesideAStandby(t *testing.T) {
	rolloutRows(t)
	t.Parallel() // it mostly waits
	const machines, image = 4, "ami-00000000000000002"
	s := newScene(t, nil)
	s.start(append([]string{"AUTOSCALER_NODE_NAME=first"}, rolloutSettings...)...)
	s.workers(world.Workers{Name: "workers", Max: 10})
	s.deploy("web", 2*machines, "1500m", "64Mi")
	s.until("web Running", func() bool { return s.running("web") == 2*machines })
	dir := filepath.Join(s.w.Dir, "second")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "agent.sock")
	second, err := s.w.StartAgentAs(t.Context(), "second", s.binary, append([]string{"AUTOSCALER_NODE_NAME=second", "AUTOSCALER_STATE_DIR=" + dir,
		"AUTOSCALER_SOCKET=" + socket, "AUTOSCALER_BOOTSTRAP_FILE=" + filepath.Join(dir, "worker.env")}, rolloutSettings...)...)
	if err != nil {
		t.Fatal(err)
	}
	lt, _ := s.w.Cloud.LatestVersion("workers")
	lt.ImageID = image
	stop := s.w.Cloud.Inject(aws.Fault{Kind: aws.Throttle, Action: "SetDesiredCapacity", Probability: 0.5})
	s.w.Cloud.PutLaunchTemplate(lt)
	well := func() {
		lease, err := s.client.CoordinationV1().Leases("kube-system").Get(t.Context(), "autoscaler-agent", metav1.GetOptions{})
		if err == nil && lease.Annotations["autoscaler-agent/halted-rollouts"] != "" {
			t.Fatalf("it is halted: %s", lease.Annotations["autoscaler-agent/halted-rollouts"])
		}
	}
	s.patient(6*time.Minute, "half of the machines have the new image", func() bool { well(); return s.images()[image] >= machines/2 })
	s.agent.Kill()
	s.agent = second
	s.patient(8*time.Minute, "the other agent replaces the rest", func() bool {
		well()
		of := s.images()
		return len(of) == 1 && of[image] == machines && s.running("web") == 2*machines
	})
	started := 0
	for _, i := range s.w.Cloud.Instances() {
		if i.ImageID == image {
			started++
		}
	}
	if throttled := stop(); throttled == 0 || started > machines+1 { // the leader may have been killed after an order that nobody remembers
		t.Errorf("%d machines of the new image were started for %d; %d changes were throttled", started, machines, throttled)
	}
	if out, code := s.command("rollout", "status", "workers", "--socket", socket); code != 0 || strings.Contains(out, decision.RolloutHalted) {
		t.Errorf("exit code %d: %s", code, out)
	}
}

// TestRolloutNova: new user data in groups.yaml reaches every server, one after the other.
func TestRolloutNova(t *testing.T) {
	rolloutRows(t)
	t.Parallel() // it mostly waits
	s := newScene(t, func(o *world.Options) {
		o.Providers = []string{"nova"}
		o.Pace = world.Pace{Launch: 300 * time.Millisecond, Boot: 300 * time.Millisecond, Terminate: 300 * time.Millisecond, Seed: 7}
	})
	s.start(rolloutSettings...)
	cloud := s.w.Clouds[0]
	put := func(data []byte) {
		t.Helper()
		if _, err := s.w.PutWorkersIn(t.Context(), cloud, world.Workers{Name: "workers", Max: 10, UserData: data}); err != nil {
			t.Fatal(err)
		}
	}
	render := func(flags ...string) []byte {
		t.Helper()
		data, err := s.w.RenderUserData(t.Context(), s.binary, append(cloud.RenderFlags(), flags...)...)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	put(render())
	if err := s.w.WaitForGroup(t.Context(), s.binary, "workers"); err != nil {
		t.Fatal(err)
	}
	const machines, pods = 3, 6
	s.deploy("web", pods, "1500m", "64Mi")
	s.until("web Running", func() bool { return s.running("web") == pods })
	sources := func() map[string]int {
		out := map[string]int{}
		for _, server := range cloud.(interface{ Servers() []openstack.Server }).Servers() {
			out[server.Metadata["autoscaler-agent.source.user-data"]]++
		}
		return out
	}
	first := sources()
	good := render("--max-pods", "90")
	put(good)
	s.patient(6*time.Minute, "every server has the new user data", func() bool {
		of := sources()
		same := slices.ContainsFunc(slices.Collect(maps.Keys(of)), func(source string) bool { return first[source] > 0 })
		return len(of) == 1 && !same && s.running("web") == pods
	})
}
