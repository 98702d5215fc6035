package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	plugin "github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/externalgrpc"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/openstack"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/world"
)

// TestSeveralCloudsAtOnce: one cluster on AWS, on OpenStack and on a plug-in. Pods get
// machines of the cloud that they ask for; while one cloud is down the others go on
// growing, and the trouble is named; afterwards everything goes back to nothing.
func TestSeveralCloudsAtOnce(t *testing.T) {
	t.Parallel() // it mostly waits
	types := map[string]string{"asg": "m5.xlarge", "externalgrpc": "m5.2xlarge", "nova": "m1.workers"}
	s := newScene(t, func(o *world.Options) {
		o.Providers = []string{"asg", "externalgrpc", "nova"}
		o.Pace = world.Pace{Launch: 300 * time.Millisecond, Boot: 300 * time.Millisecond, Terminate: 300 * time.Millisecond, Seed: 7}
	})
	settings := []string{"AUTOSCALER_SCALING_UNNEEDED_FOR=2s", "AUTOSCALER_SCALING_DELAY_AFTER_ADD=1s", "AUTOSCALER_OBSERVE_SLOW=2s",
		"AUTOSCALER_NODECLEANER_SIGHT_INTERVAL=1s"}
	s.start(settings...)
	for i, name := range s.w.Providers {
		data, err := s.w.RenderUserData(t.Context(), s.binary, s.w.Clouds[i].RenderFlags()...)
		if err != nil {
			t.Fatal(err)
		}
		g := world.Workers{Name: "on-" + name, Max: 5, InstanceType: types[name], UserData: data}
		if _, err := s.w.PutWorkersIn(t.Context(), s.w.Clouds[i], g); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range s.w.Providers {
		if err := s.w.WaitForGroup(t.Context(), s.binary, "on-"+name); err != nil {
			t.Fatal(err)
		}
		s.deployOn(name, 1, types[name])
	}
	all := func(n int) func() bool {
		return func() bool {
			for _, name := range s.w.Providers {
				if s.running(name) != n {
					return false
				}
			}
			return true
		}
	}
	t.Logf("a pod Running on each cloud after %s", s.until("a pod Running on each cloud", all(1)))
	s.sayClouds()

	// An agent that knows nothing of before, and a plug-in without templates: the group's node shows what its machines are.
	s.w.Clouds[1].(interface {
		InjectPlugIn(plugin.Fault) (stop func())
	}).InjectPlugIn(plugin.Fault{Method: "NodeGroupTemplateNodeInfo", Code: codes.Unimplemented})
	s.agent.Kill()
	if err := os.RemoveAll(s.w.StateDir()); err != nil {
		t.Fatal(err)
	}
	s.start(settings...)

	cloud := s.w.Clouds[2].(interface {
		Inject(openstack.Fault) (stop func() int)
	})
	stop := cloud.Inject(openstack.Fault{Kind: openstack.Unavailable503})
	for _, name := range s.w.Providers {
		s.scale(name, 2)
	}
	took := s.until("a second pod on the clouds that work", func() bool { return s.running("asg") == 2 && s.running("externalgrpc") == 2 })
	t.Logf("a second one on those that work after %s", took)
	s.journal("some node groups could not be read", "nova: ", "503")
	if n := s.running("nova"); n != 1 {
		t.Errorf("%d pods run on the cloud that is down, want the one that ran", n)
	}
	stop()
	t.Logf("on all after %s", s.until("a second pod on each cloud", all(2)))
	s.journal("all node groups can be read again")

	for _, name := range s.w.Providers {
		s.scale(name, 0)
	}
	took = s.until("no machine left on any cloud", func() bool {
		for _, c := range s.w.Clouds {
			for _, i := range c.Instances("") {
				if i.Alive {
					return false
				}
			}
		}
		return len(s.nodes()) == 0
	})
	t.Logf("nothing left after %s", took)
	for _, c := range s.w.Clouds {
		if left := c.Leftovers(); len(left) > 0 {
			t.Errorf("left over: %v", left)
		}
	}
}

// sayClouds wants `check` and `status` to tell the clouds apart.
func (s *scene) sayClouds() {
	s.t.Helper()
	out, code := s.check()
	for _, name := range s.w.Providers {
		if !strings.Contains(out, "provider "+name) {
			s.t.Errorf("check (exit %d) has no line about %s:\n%s", code, name, out)
		}
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), await.Limit)
	defer cancel()
	text, err := exec.CommandContext(ctx, s.binary, "status", "--socket", s.w.Socket()).CombinedOutput()
	if err != nil {
		s.t.Fatalf("status: %v\n%s", err, text)
	}
	for _, name := range s.w.Providers {
		if !containsAll(strings.Join(strings.Fields(string(text)), " "), []string{"GROUP PROVIDER MIN", fmt.Sprintf("on-%s %s 0 1 5 1", name, name)}) {
			s.t.Errorf("status does not say which cloud on-%s is of:\n%s", name, text)
		}
		if said, _ := s.command("explain", "group", "on-"+name); !containsAll(strings.Join(strings.Fields(said), " "), []string{"provider " + name}) {
			s.t.Errorf("explain does not say which cloud on-%s is of:\n%s", name, said)
		}
	}
}

// deployOn makes a deployment of pods that fill most of a machine of one type.
func (s *scene) deployOn(name string, n int32, machineType string) {
	s.t.Helper()
	cpu := map[bool]string{false: "2500m", true: "5"}[machineType == "m5.2xlarge"]
	s.deploySelecting(name, n, cpu, map[string]string{corev1.LabelInstanceTypeStable: machineType})
}

// deploySelecting makes a deployment of pods that go to nodes with some labels.
func (s *scene) deploySelecting(name string, n int32, cpu string, nodes map[string]string) {
	s.t.Helper()
	labels, grace := map[string]string{"app": name}, int64(1)
	_, err := s.client.AppsV1().Deployments("default").Create(s.t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{Replicas: &n, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{TerminationGracePeriodSeconds: &grace, NodeSelector: nodes,
				Containers: []corev1.Container{{Name: "c", Image: "nginx", Resources: requests(cpu, "64Mi")}}},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
}
