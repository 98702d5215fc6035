// Package chaos plays storms: two agents, as on two control-plane VMs, of which one holds the
// Lease, scale a real cluster on an emulated AWS while agents are killed, stopped and
// frozen, the API server and etcd fail, machines die, and the cloud throttles, fails, loses
// answers and lies. A seed draws what happens and when; it is printed.
//
// It refuses to bound how fast a storm is survived: between two storms everything is
// repaired, and then nothing may have been bought twice, no Node of a live machine may have
// been deleted, and every pod runs.
package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/machine"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/world"
)

const (
	group = "workers"
	// perMachine is how many pods of 100m a machine of 4 cores holds: 3.8 are allocatable.
	perMachine = 38
	// calm is when waiting for the end of a storm's consequences is given up. A change that
	// the cloud did not answer holds its group for a minute, over restarts.
	calm = 8 * time.Minute
)

// quick are the agent's times: everything that a storm waits for is short, and the proofs
// before a deletion stay.
var quick = []string{
	"AUTOSCALER_LEASE_DURATION=9s", "AUTOSCALER_LEASE_RENEW_DEADLINE=6s", "AUTOSCALER_LEASE_RETRY_PERIOD=1s",
	"AUTOSCALER_SCALING_UNNEEDED_FOR=15s", "AUTOSCALER_SCALING_DELAY_AFTER_ADD=15s", "AUTOSCALER_SCALING_DELAY_AFTER_TAINT=500ms",
	"AUTOSCALER_SCALING_DELAY_AFTER_FAILURE=3s", "AUTOSCALER_SCALING_BACKOFF_INITIAL=2s", "AUTOSCALER_SCALING_BACKOFF_MAX=8s",
	"AUTOSCALER_NODECLEANER_SIGHT_INTERVAL=1s", "AUTOSCALER_NODECLEANER_GRACE=5s", "AUTOSCALER_NODECLEANER_FREEZE_FOR=3s",
	"AUTOSCALER_NODECLEANER_MASS_HOLD=5s", "AUTOSCALER_NODECLEANER_UNLEDGERED_EVERY=1s", "AUTOSCALER_NODECLEANER_BREAK_WITHIN=10s",
}

// storms is one world with two agents in it.
type storms struct {
	t      *testing.T
	w      *world.World
	client kubernetes.Interface
	random *rand.Rand
	agents []*agent
	nodes  *nodeWatch
	hurt   *casualties
	pods   int // that are wanted
	long   bool
}

// TestStorms plays storms until AUTOSCALER_TEST_STORMS has passed, one at least: each grows a
// deployment twice and takes it back to nothing. Where the time is set, the machines get another image in between.
func TestStorms(t *testing.T) {
	length, seed := settings(t)
	t.Logf("seed %d (AUTOSCALER_TEST_SEED=%d draws the same troubles; what meets what is the machine's)", seed, seed)
	long := os.Getenv("AUTOSCALER_TEST_STORMS") != "" // a rollout takes minutes: its first machine is on trial for two
	if long {
		quick = append(quick, drifting...)
	}
	s := begin(t, seed)
	s.long = long
	began := time.Now()
	for i := 0; i == 0 || time.Since(began) < length; i++ {
		s.storm(i)
		if t.Failed() {
			return
		}
		t.Logf("storm %d is over %s after the start", i, time.Since(began).Round(time.Second))
	}
}

// settings are those of the variables: without AUTOSCALER_TEST_SEED always the same seed, and by
// the clock where it is 0.
func settings(t *testing.T) (length time.Duration, seed uint64) {
	t.Helper()
	length, seed = 30*time.Second, 1795404279453406260
	var err error
	if v := os.Getenv("AUTOSCALER_TEST_STORMS"); v != "" {
		if length, err = time.ParseDuration(v); err != nil {
			t.Fatal(err)
		}
	}
	switch v := os.Getenv("AUTOSCALER_TEST_SEED"); v {
	case "":
	case "0":
		seed = uint64(time.Now().UnixNano())
	default:
		if seed, err = strconv.ParseUint(v, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	return length, seed
}

// startsWithin is the longest time from a Node's registration to the end of its start.
const startsWithin = 5 * time.Second

// begin starts a world with two agents and a group of workers.
func begin(t *testing.T, seed uint64) *storms {
	t.Helper()
	w, err := world.Start(t.Context(), world.Options{
		Dir: t.TempDir(), Fast: true, NodeMonitorGrace: 6 * time.Second, NodeLeaseSeconds: 8, Tune: machine.SeededStart(seed, startsWithin),
		Cloud: aws.Options{Region: "eu-west-1", LaunchDelay: 300 * time.Millisecond, BootDelay: 500 * time.Millisecond,
			TerminateDelay: 500 * time.Millisecond, Jitter: 0.3, MaxPage: 5, Seed: seed | 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := &storms{t: t, w: w, client: w.ControlPlane.Client(), random: rand.New(rand.NewPCG(seed, 0)), hurt: &casualties{}}
	t.Cleanup(s.end)
	binary := filepath.Join(w.Dir, "autoscaler-agent")
	if err := world.BuildAgent(t.Context(), binary); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"leader", "leader-2"} {
		a := &agent{t: t, w: w, binary: binary, name: name}
		s.agents = append(s.agents, a)
		if err := a.start(); err != nil {
			t.Fatal(err)
		}
		if name != "leader" {
			continue
		}
		data, err := w.RenderUserData(t.Context(), binary)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.PutWorkers(world.Workers{Name: group, Max: 60, InstanceType: "m5.xlarge", UserData: data}); err != nil {
			t.Fatal(err)
		}
		if err := w.WaitForGroup(t.Context(), binary, group); err != nil {
			t.Fatal(err)
		}
	}
	s.deployment()
	s.nodes = watchNodes(s)
	return s
}

// end stops everything; a failed test shows what the agents and the cloud said.
func (s *storms) end() {
	if s.nodes != nil {
		s.nodes.stop()
	}
	for _, a := range s.agents {
		a.thaw()
		if s.t.Failed() {
			s.t.Logf("the last lines of agent %s:\n%s", a.name, a.tail())
		}
	}
	if s.t.Failed() {
		s.t.Logf("the cloud:\n%s", s.w.Cloud)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := s.w.Stop(ctx); err != nil {
		s.t.Error(err)
	}
}

// deployment makes the deployment that storms scale.
func (s *storms) deployment() {
	s.t.Helper()
	labels, grace := map[string]string{"app": "load"}, int64(1)
	_, err := s.client.AppsV1().Deployments("default").Create(s.t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "load"},
		Spec: appsv1.DeploymentSpec{Replicas: new(int32), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{TerminationGracePeriodSeconds: &grace, Containers: []corev1.Container{{Name: "c", Image: "nginx",
					Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("64Mi")}}}}}}},
	}, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
}

// scale sets the replicas. The API server may be down on purpose: it is asked until it is not.
func (s *storms) scale(n int) {
	s.t.Helper()
	s.pods = n
	s.until(fmt.Sprintf("%d replicas are accepted", n), func() string {
		_, err := s.client.AppsV1().Deployments("default").UpdateScale(s.t.Context(), "load", &autoscalingv1.Scale{
			ObjectMeta: metav1.ObjectMeta{Name: "load", Namespace: "default"}, Spec: autoscalingv1.ScaleSpec{Replicas: int32(n)}}, metav1.UpdateOptions{})
		if err != nil {
			return err.Error()
		}
		return ""
	})
}

// until waits until waiting names nothing any more. Agents that have ended of themselves are
// started again meanwhile, as their unit does it.
func (s *storms) until(what string, waiting func() string) {
	s.t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	began := time.Now()
	for {
		left := waiting()
		if left == "" {
			return
		}
		if time.Since(began) > calm {
			s.t.Fatalf("waited %s in vain: %s: %s", calm, what, left)
		}
		for _, a := range s.agents {
			a.revive()
		}
		<-tick.C
	}
}

// running lists the pods that run on machines that live, by UID: those of a dead one go on being
// listed as running until they are collected. nil: the API server does not answer.
func (s *storms) running() map[string]bool {
	list, err := s.client.CoreV1().Pods("default").List(s.t.Context(), metav1.ListOptions{})
	if err != nil {
		return nil
	}
	nodes, err := s.client.CoreV1().Nodes().List(s.t.Context(), metav1.ListOptions{})
	if err != nil {
		return nil
	}
	alive := map[string]bool{}
	for _, n := range nodes.Items {
		i, ok := s.w.Cloud.Instance(n.Spec.ProviderID[strings.LastIndexByte(n.Spec.ProviderID, '/')+1:])
		alive[n.Name] = ok && i.State == "running"
	}
	out := map[string]bool{}
	for _, p := range list.Items {
		if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil && alive[p.Spec.NodeName] {
			out[string(p.UID)] = true
		}
	}
	return out
}

func lines(list []aws.Call) string {
	var out []string
	for _, c := range list {
		out = append(out, c.At.Format("15:04:05.000 ")+c.String())
	}
	return strings.Join(out, "\n")
}
