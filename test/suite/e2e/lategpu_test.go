package e2e

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/machine"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/world"
)

// TestLateGPUsOfClusterAPI: the capacity annotations of a MachineDeployment without a machine promise
// one GPU each, as Cluster Autoscaler's documents have them. Two pods want one each; the Nodes are
// Ready 8 s before their device plug-in reports the GPU. Two machines are bought, and no third.
func TestLateGPUsOfClusterAPI(t *testing.T) {
	t.Parallel() // it mostly waits
	const gpu = "nvidia.com/gpu"
	s := newScene(t, func(o *world.Options) {
		o.Providers = []string{"clusterapi"}
		o.Pace = world.Pace{Launch: 300 * time.Millisecond, Boot: 300 * time.Millisecond, Terminate: 300 * time.Millisecond, Seed: 7}
		o.Tune = func(c *machine.Config) {
			c.Start.Phases = []machine.Phase{{After: 8 * time.Second, Resources: map[string]int64{gpu: 1}}}
		}
	})
	s.start("AUTOSCALER_SCALING_SCALE_DOWN=false", "AUTOSCALER_OBSERVE_SLOW=2s")
	data, err := s.w.RenderUserData(t.Context(), s.binary)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.w.PutWorkersIn(t.Context(), s.w.Clouds[0], world.Workers{Name: "gpus", Max: 8, InstanceType: "emulated.xlarge", UserData: data}); err != nil {
		t.Fatal(err)
	}
	const capacity = "capacity.cluster-autoscaler.kubernetes.io/"
	cp := s.w.ControlPlane
	annotate := exec.CommandContext(t.Context(), cp.Binaries().Path("kubectl"), "--kubeconfig", cp.Kubeconfig(), "-n", "fleet", "annotate", "machinedeployment", "gpus",
		capacity+"cpu=4", capacity+"memory=16G", capacity+"ephemeral-disk=100Gi", capacity+"gpu-type="+gpu, capacity+"gpu-count=1", capacity+"maxPods=110")
	if out, err := annotate.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := s.w.WaitForGroup(t.Context(), s.binary, "gpus"); err != nil {
		t.Fatal(err)
	}
	labels, n, grace := map[string]string{"app": "train"}, int32(2), int64(1)
	_, err = s.client.AppsV1().Deployments("default").Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "train"},
		Spec: appsv1.DeploymentSpec{Replicas: &n, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{TerminationGracePeriodSeconds: &grace, Containers: []corev1.Container{{Name: "c", Image: "nginx",
				Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{gpu: resource.MustParse("1")}}}}},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s.until("explain node tells that both machines are starting", func() bool {
		told := 0
		for _, node := range s.nodes() {
			if out, _ := s.command("explain", "node", node.Name); strings.Contains(out, "starting: the resource "+gpu+" has not come yet") {
				told++
			}
		}
		return told == 2
	})
	s.until("both pods are Running", func() bool { return s.running("train") == 2 })
	if g, _ := s.w.Clouds[0].Group("gpus"); g.Target != 2 {
		t.Errorf("target %d, want 2: a machine was bought for pods that wait for a device plug-in", g.Target)
	}
}
