package join

import (
	"errors"
	"os"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/autoscaler-agent/autoscaler-agent/bootstrap"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/machine"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/world"
	"github.com/autoscaler-agent/autoscaler-agent/userdata"
)

// scene is a world whose agent is started and killed.
type scene struct {
	t      *testing.T
	w      *world.World
	client kubernetes.Interface
	binary string
	agent  *world.Process
}

func newScene(t *testing.T, tune func(*machine.Config), providers ...string) *scene {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a real control plane")
	}
	w, binary := world.ForTest(t, world.Options{Fast: true, Tune: tune, Providers: providers})
	return &scene{t: t, w: w, client: w.ControlPlane.Client(), binary: binary}
}

func (s *scene) start(env ...string) {
	s.t.Helper()
	var err error
	if s.agent, err = s.w.StartAgent(s.t.Context(), s.binary, append(env, "AUTOSCALER_LOG_LEVEL=debug")...); err != nil {
		s.t.Fatal(err)
	}
}

// published reads the file. One that is not whole is an error of the test.
func (s *scene) published() bootstrap.Join {
	s.t.Helper()
	text, err := os.ReadFile(s.w.WorkerEnv())
	if errors.Is(err, os.ErrNotExist) {
		return bootstrap.Join{}
	}
	if err != nil {
		s.t.Fatal(err)
	}
	j, lacks := bootstrap.ReadJoin(text)
	again, err := bootstrap.Render(j)
	if info, _ := os.Stat(s.w.WorkerEnv()); err != nil || len(lacks) > 0 || string(again) != string(text) || info != nil && info.Mode().Perm() != 0o600 {
		s.t.Fatalf("the file is not whole: %v, %v, %d bytes", err, lacks, len(text))
	}
	return j
}

// tokens are the join tokens that there are.
func (s *scene) tokens() []corev1.Secret {
	s.t.Helper()
	list, err := s.client.CoreV1().Secrets("kube-system").List(s.t.Context(), metav1.ListOptions{FieldSelector: "type=bootstrap.kubernetes.io/token"})
	if err != nil {
		s.t.Fatal(err)
	}
	return list.Items
}

// userData is rendered with a token that is good for nothing.
func (s *scene) userData() string {
	s.t.Helper()
	out, err := userdata.Render(userdata.Spec{Cloud: "aws", KubernetesVersion: "v1.36.3", Reservation: userdata.DefaultReservation(),
		Join: userdata.Join{Endpoint: strings.TrimPrefix(s.w.ControlPlane.Endpoint(), "https://"), Token: "abcdef.0123456789abcdef", CACertHashes: s.hashes()}})
	if err != nil {
		s.t.Fatal(err)
	}
	return string(out)
}

// hashes are those of the published file, of an agent that has run.
func (s *scene) hashes() []string {
	if h := s.published().CAHashes; len(h) > 0 {
		return h
	}
	return []string{"sha256:" + strings.Repeat("0", 64)}
}

// group makes a group that follows the newest version of a launch template.
func (s *scene) group(name, userData string, most int) (template string) {
	s.t.Helper()
	template, _ = s.w.Cloud.PutLaunchTemplate(aws.LaunchTemplate{Name: name, InstanceType: "m5.xlarge", UserData: userData, InstanceProfile: "worker", HTTPTokens: "required", HopLimit: 1})
	err := s.w.Cloud.PutGroup(aws.Group{Name: name, Max: most, LaunchTemplate: name, Version: "$Latest", ProtectNew: true, KeepTags: true, SuspendedProcesses: []string{"AZRebalance"},
		Tags: map[string]string{"k8s.io/cluster-autoscaler/enabled": "", "k8s.io/cluster-autoscaler/" + world.ClusterName: ""}})
	if err != nil {
		s.t.Fatal(err)
	}
	return template
}

// deploy makes pods that want a machine each.
func (s *scene) deploy(n int32) {
	s.t.Helper()
	labels := map[string]string{"app": "web"}
	grace := int64(1)
	_, err := s.client.AppsV1().Deployments("default").Create(s.t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{Replicas: &n, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{TerminationGracePeriodSeconds: &grace, Containers: []corev1.Container{{Name: "c", Image: "nginx",
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3")}}}}},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
}

// ready counts the Nodes that are.
func (s *scene) ready() int {
	list, err := s.client.CoreV1().Nodes().List(s.t.Context(), metav1.ListOptions{})
	if err != nil {
		return 0
	}
	n := 0
	for _, node := range list.Items {
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
				n++
			}
		}
	}
	return n
}
