// Package e2e tests the agent as users run it: the built binary, its own process, a
// real control plane, an AWS that speaks the true wire protocol, and machines that
// join with what the generated user data says.
//
// It refuses to use anything of the product but its binary and its unit files.
package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/world"
)

// scene is one world with an agent in it.
type scene struct {
	t      *testing.T
	w      *world.World
	client kubernetes.Interface
	binary string
	agent  *world.Process
}

// newScene starts a world with fast machines; mutate may change the options.
func newScene(t *testing.T, mutate func(*world.Options)) *scene {
	t.Helper()
	opts := world.Options{
		Fast: true,
		Cloud: aws.Options{
			Region: "eu-west-1", LaunchDelay: 300 * time.Millisecond, BootDelay: 500 * time.Millisecond,
			TerminateDelay: 500 * time.Millisecond, Jitter: 0.3,
		},
	}
	if mutate != nil {
		mutate(&opts)
	}
	w, binary := world.ForTest(t, opts)
	return &scene{t: t, w: w, client: w.ControlPlane.Client(), binary: binary}
}

// start runs the agent; env wins over the demo's settings.
func (s *scene) start(env ...string) {
	s.t.Helper()
	var err error
	if s.agent, err = s.w.StartAgent(s.t.Context(), s.binary, env...); err != nil {
		s.t.Fatal(err)
	}
}

// workers makes a group whose machines join with freshly rendered user data.
func (s *scene) workers(g world.Workers) {
	s.t.Helper()
	data, err := s.w.RenderUserData(s.t.Context(), s.binary)
	if err != nil {
		s.t.Fatal(err)
	}
	g.UserData = data
	if g.InstanceType == "" {
		g.InstanceType = "m5.xlarge"
	}
	if err := s.w.PutWorkers(g); err != nil {
		s.t.Fatal(err)
	}
	if err := s.w.WaitForGroup(s.t.Context(), s.binary, g.Name); err != nil {
		s.t.Fatal(err)
	}
}

// deploy makes a deployment of n pods with the given requests.
func (s *scene) deploy(name string, n int, cpu, memory string) {
	s.t.Helper()
	labels := map[string]string{"app": name}
	replicas, grace := int32(n), int64(1)
	_, err := s.client.AppsV1().Deployments("default").Create(s.t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: &grace,
					Containers:                    []corev1.Container{{Name: "c", Image: "nginx", Resources: requests(cpu, memory)}},
				},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
}

func requests(cpu, memory string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory),
	}}
}

func (s *scene) scale(name string, n int) {
	s.t.Helper()
	_, err := s.client.AppsV1().Deployments("default").UpdateScale(s.t.Context(), name, &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Spec: autoscalingv1.ScaleSpec{Replicas: int32(n)},
	}, metav1.UpdateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
}

// running counts the Running pods of a deployment that are not going.
func (s *scene) running(name string) int {
	pods, err := s.client.CoreV1().Pods("default").List(s.t.Context(), metav1.ListOptions{LabelSelector: "app=" + name, ResourceVersion: "0"})
	if err != nil {
		return -1 // the API server may be down on purpose
	}
	n := 0
	for _, p := range pods.Items {
		if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
			n++
		}
	}
	return n
}

func (s *scene) nodes() []corev1.Node {
	nodes, err := s.client.CoreV1().Nodes().List(s.t.Context(), metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil
	}
	return nodes.Items
}

// until polls a condition of the test's own; the agent under test never polls.
func (s *scene) until(what string, ok func() bool) time.Duration {
	s.t.Helper()
	began := time.Now()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for time.Since(began) < await.Limit {
		if ok() {
			return time.Since(began)
		}
		if s.agent != nil {
			select {
			case <-s.agent.Done:
				s.t.Fatalf("%s: the agent ended: %v", what, s.agent.Err)
			default:
			}
		}
		<-tick.C
	}
	s.t.Fatalf("waited %s in vain: %s", await.Limit, what)
	return 0
}

// resizes are the SetDesiredCapacity calls that the cloud carried out.
func (s *scene) resizes() []aws.Call {
	return s.w.Cloud.Calls(func(c aws.Call) bool { return c.Action == "SetDesiredCapacity" && c.Done })
}

// journal waits until the agent's journal has a line that contains all the words.
func (s *scene) journal(words ...string) {
	s.t.Helper()
	s.until(fmt.Sprintf("a journal line with %q", words), func() bool { return s.said(words...) != "" })
}

// said is the first line of the agent's journal that has all words; empty: none has.
func (s *scene) said(words ...string) string {
	b, _ := os.ReadFile(s.agent.Log)
	for line := range strings.Lines(string(b)) {
		if containsAll(line, words) {
			return line
		}
	}
	return ""
}

func containsAll(line string, words []string) bool {
	for _, w := range words {
		if !strings.Contains(strings.ToLower(line), strings.ToLower(w)) {
			return false
		}
	}
	return true
}

// check runs `autoscaler-agent check` and returns its output and exit code.
func (s *scene) check(env ...string) (string, int) {
	s.t.Helper()
	kubeconfig, err := s.w.AgentKubeconfig(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), await.Limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.binary, "check")
	cmd.Env = append(s.w.AgentEnv(kubeconfig), env...)
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		s.t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}
