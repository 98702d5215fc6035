package e2e

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
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
	s.until("all run", func() bool { return s.wellOn(anywhere, apps...) })
	lt, _ := s.w.Cloud.LatestVersion("workers")
	was := lt.ImageID
	lt.ImageID = "ami-00000000000000002"
	s.w.Cloud.PutLaunchTemplate(lt)
	of := func(image string) func(string) bool {
		return func(node string) bool { return s.imageOf(node) == image }
	}
	s.crashOn(of(lt.ImageID))
	began := time.Now()
	s.patient(4*time.Minute, "the rollout is halted", func() bool {
		out, _ := s.command("rollout", "status", "workers")
		return strings.Contains(out, "halted since") && strings.Contains(out, "CrashLoopBackOff after")
	})
	t.Logf("halted after %s", time.Since(began).Round(time.Second))
	s.patient(2*time.Minute, "the apps are back on the old machines, none of which is cordoned, and the bad machine is gone", func() bool {
		images := s.images()
		return !s.cordoned() && s.wellOn(of(was), apps...) && images[was] == len(apps) && images[lt.ImageID] == 0
	})
}

func (s *scene) cordoned() bool {
	return slices.ContainsFunc(s.nodes(), func(n corev1.Node) bool { return n.Spec.Unschedulable })
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

func anywhere(string) bool { return true }

// wellOn tells that a pod of each app is Ready, on a node of some.
func (s *scene) wellOn(some func(node string) bool, apps ...string) bool {
	return !slices.ContainsFunc(apps, func(app string) bool {
		pods, err := s.client.CoreV1().Pods("default").List(s.t.Context(), metav1.ListOptions{LabelSelector: "app=" + app})
		return err != nil || !slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool {
			ready := slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue })
			return ready && p.DeletionTimestamp == nil && some(p.Spec.NodeName)
		})
	})
}

// crashOn lets each container on some nodes crash, as a kubelet tells it, until the test ends.
func (s *scene) crashOn(some func(node string) bool) {
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
				if p := &pods.Items[i]; p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil && some(p.Spec.NodeName) {
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

// TestRolloutNova: new user data in groups.yaml reaches every server, one after the other. Then user data, a flavor and an image on which
// pods crash are halted on the first server, and an image that runs for a while after it has proven itself. rollout back says what to
// write, user data as userdata render --from makes it of a server's; once it is written, each server is of the former source, and no node is cordoned.
func TestRolloutNova(t *testing.T) {
	rolloutRows(t)
	t.Parallel() // it mostly waits
	s := newScene(t, func(o *world.Options) {
		o.Providers = []string{"nova"}
		o.Pace = world.Pace{Launch: 300 * time.Millisecond, Boot: 300 * time.Millisecond, Terminate: 300 * time.Millisecond, Seed: 7}
	})
	s.start(rolloutSettings...)
	cloud := s.w.Clouds[0].(novaCloud)
	apps := []string{"solo-a", "solo-b", "solo-c"} // each fills a server
	v := &novaRollout{scene: s, cloud: cloud, now: world.Workers{Name: "workers", Max: 10}}
	v.put(func(g *world.Workers) { g.UserData = v.render() })
	if err := s.w.WaitForGroup(t.Context(), s.binary, "workers"); err != nil {
		t.Fatal(err)
	}
	for _, app := range apps {
		s.deploy(app, 1, "3", "64Mi")
	}
	s.until("all run", func() bool { return s.wellOn(anywhere, apps...) })
	first := v.sources()
	v.put(func(g *world.Workers) { g.UserData = v.render("--max-pods", "90") })
	s.patient(6*time.Minute, "every server has the new user data", func() bool {
		of := v.sources()
		same := slices.ContainsFunc(slices.Collect(maps.Keys(of)), func(source string) bool { return first[source] > 0 })
		return len(of) == 1 && !same && s.wellOn(anywhere, apps...)
	})
	good := slices.Collect(maps.Keys(v.sources()))[0]
	var crashes atomic.Bool
	of := func(is bool) func(string) bool {
		return func(node string) bool { return (v.sourceOf(node) == good) == is }
	}
	s.crashOn(func(node string) bool { return crashes.Load() && of(false)(node) })

	second := cloud.PutImage(openstack.Image{Name: "ubuntu-next", MinDisk: 10, Properties: map[string]string{"os_distro": "ubuntu"}})
	cloud.PutFlavor(openstack.Flavor{Name: "m1.next", VCPUs: 4, RAM: 16384, Disk: 40})
	for _, bad := range []struct {
		name, word string // what rollout back says
		late       bool   // pods crash only when a server of it has proven itself
		change     func(*world.Workers)
	}{
		{"user data", "user data: sha256:", false, func(g *world.Workers) { g.UserData = v.render("--max-pods", "80") }},
		{"flavor", "flavor: m1.workers (now m1.next)", false, func(g *world.Workers) { g.InstanceType = "m1.next" }},
		{"image", "image: " + openstack.ImageID + " (now " + second.ID + ")", true, func(g *world.Workers) { g.Image = second.Name }},
	} {
		was := v.now
		crashes.Store(!bad.late)
		v.put(bad.change)
		if bad.late {
			s.patient(5*time.Minute, "a second server has the new "+bad.name, func() bool { return v.sources()[good] == 1 && s.wellOn(anywhere, apps...) })
			crashes.Store(true)
		}
		began := time.Now()
		s.patient(4*time.Minute, "the rollout of the "+bad.name+" is halted", func() bool {
			out, _ := s.command("rollout", "status", "workers")
			return strings.Contains(out, "halted since") && strings.Contains(out, "CrashLoopBackOff after")
		})
		t.Logf("%s: halted after %s", bad.name, time.Since(began).Round(time.Second))
		if !bad.late {
			s.patient(2*time.Minute, "the apps are back on the old servers, none of which is cordoned, and the bad server is gone", func() bool {
				return !s.cordoned() && s.wellOn(of(true), apps...) && len(v.sources()) == 1
			})
		}
		out, code := s.command("rollout", "back", "workers")
		if !strings.Contains(out, bad.word) || !strings.Contains(out, "groups.yaml") || code == 0 {
			t.Errorf("%s: exit code %d: %s", bad.name, code, out)
		}
		t.Log(out)
		if strings.Contains(out, "render --from FILE") {
			was.UserData = v.anew(good)
		}
		v.put(func(g *world.Workers) { *g = was })
		s.patient(5*time.Minute, "the way back from the "+bad.name, func() bool {
			status, _ := s.command("rollout", "status", "workers", "--output", "json")
			of := v.sources()
			return len(of) == 1 && of[good] == len(apps) && !s.cordoned() && s.wellOn(anywhere, apps...) && !strings.Contains(status, decision.RolloutHalted)
		})
	}
}

type novaCloud interface {
	world.Cloud
	Servers() []openstack.Server
	PutImage(openstack.Image) openstack.Image
	PutFlavor(openstack.Flavor) openstack.Flavor
}

// novaRollout is a group in groups.yaml.
type novaRollout struct {
	*scene
	cloud novaCloud
	now   world.Workers
}

func (v *novaRollout) put(change func(*world.Workers)) {
	v.t.Helper()
	change(&v.now)
	if _, err := v.w.PutWorkersIn(v.t.Context(), v.cloud, v.now); err != nil {
		v.t.Fatal(err)
	}
}

func (v *novaRollout) render(flags ...string) []byte {
	v.t.Helper()
	data, err := v.w.RenderUserData(v.t.Context(), v.binary, append(v.cloud.RenderFlags(), flags...)...)
	if err != nil {
		v.t.Fatal(err)
	}
	return data
}

// anew does what rollout back says of user data, with that of a server of the source.
func (v *novaRollout) anew(source string) []byte {
	v.t.Helper()
	servers := v.cloud.Servers()
	at := slices.IndexFunc(servers, func(server openstack.Server) bool { return sourceOf(server) == source })
	file := filepath.Join(v.w.Dir, "user-data.txt")
	if err := os.WriteFile(file, servers[at].UserData, 0o600); err != nil {
		v.t.Fatal(err)
	}
	out, code := v.command("userdata", "render", "--from", file, "--join-file", v.w.WorkerEnv())
	if code != 0 {
		v.t.Fatal(out)
	}
	return []byte(out)
}

func sourceOf(server openstack.Server) string {
	return strings.Join([]string{server.Metadata["autoscaler-agent.source.user-data"], server.Flavor.Name, server.ImageID}, " ")
}

// sources counts the servers by what they were started from.
func (v *novaRollout) sources() map[string]int {
	out := map[string]int{}
	for _, server := range v.cloud.Servers() {
		out[sourceOf(server)]++
	}
	return out
}

// sourceOf is what a node's server was started from.
func (v *novaRollout) sourceOf(node string) string {
	n, err := v.client.CoreV1().Nodes().Get(v.t.Context(), node, metav1.GetOptions{ResourceVersion: "0"})
	if err != nil {
		return ""
	}
	for _, server := range v.cloud.Servers() {
		if strings.HasSuffix(n.Spec.ProviderID, "/"+server.ID) {
			return sourceOf(server)
		}
	}
	return ""
}
