package e2e

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/controlplane"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/world"
)

const deviceDriver = "gpu.example.com"

// publishDevices stands in for the driver of a DaemonSet: some seconds after a Node has joined, it publishes n devices of it.
func (s *scene) publishDevices(n int, late time.Duration) {
	seen := map[string]time.Time{}
	for tick := time.NewTicker(500 * time.Millisecond); s.t.Context().Err() == nil; <-tick.C {
		list, err := s.client.CoreV1().Nodes().List(s.t.Context(), metav1.ListOptions{})
		if err != nil {
			return
		}
		for _, node := range list.Items {
			if seen[node.Name].IsZero() {
				seen[node.Name] = time.Now()
			}
			if time.Since(seen[node.Name]) < late {
				continue
			}
			slice := &resourcev1.ResourceSlice{
				ObjectMeta: metav1.ObjectMeta{Name: node.Name + "-gpu", OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}}},
				Spec:       resourcev1.ResourceSliceSpec{Driver: deviceDriver, NodeName: &node.Name, Pool: resourcev1.ResourcePool{Name: node.Name, Generation: 1, ResourceSliceCount: 1}},
			}
			for i := range n {
				model, numa := "a100", int64(i%2)
				slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{Name: fmt.Sprint("gpu-", i),
					Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"model": {StringValue: &model}, "numa": {IntValue: &numa}},
					Capacity:   map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("40Gi")}}})
			}
			_, _ = s.client.ResourceV1().ResourceSlices().Create(s.t.Context(), slice, metav1.CreateOptions{}) // it may be there
		}
	}
}

// claiming is a Deployment whose pods each claim devices by a template of the same name.
func (s *scene) claiming(name string, replicas int, devices string) {
	s.apply(fmt.Sprintf(`apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: %[1]s, namespace: default}
spec: {spec: {devices: %[3]s}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: default}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      terminationGracePeriodSeconds: 1
      resourceClaims: [{name: gpu, resourceClaimTemplateName: %[1]s}]
      containers: [{name: c, image: nginx, resources: {requests: {cpu: 50m}, claims: [{name: gpu}]}}]
`, name, replicas, devices))
}

// TestDevices: pods with ResourceClaims bring exactly the machines whose devices they can be given, from a group without a machine whose
// devices groups.yaml tells; a driver that publishes late buys no second machine; the real kube-scheduler allocates them all;
// what no machine has says so; a node whose devices are free elsewhere goes.
func TestDevices(t *testing.T) {
	t.Parallel() // it mostly waits
	s := newScene(t, nil)
	go s.publishDevices(2, 4*time.Second)
	s.apply(`apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {selectors: [{cel: {expression: 'device.driver == "gpu.example.com" && device.attributes["gpu.example.com"].model == "a100"'}}]}
`)
	s.start("AUTOSCALER_SCALING_UNNEEDED_FOR=5s", "AUTOSCALER_SCALING_DELAY_AFTER_ADD=5s")
	s.workers(world.Workers{Name: "workers", Max: 8})
	const one = `{requests: [{name: gpu, exactly: {deviceClassName: gpu, selectors: [{cel: {expression: 'device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0'}}]}}]}`
	s.claiming("train", 4, one)
	s.explained("train", "no devices of the group's next machine are known")
	if n := len(s.nodes()); n != 0 {
		t.Fatalf("%d machines whose devices nobody knows", n)
	}
	if err := s.w.PutSection("groups", map[string]any{"workers": map[string]any{"template": map[string]any{"devices": []any{map[string]any{
		"driver": deviceDriver, "count": 2, "attributes": map[string]any{"model": "a100"}, "capacity": map[string]any{"memory": "40Gi"}}}}}}); err != nil {
		t.Fatal(err)
	}
	target := func(want int) {
		t.Helper()
		if g, _ := s.w.Cloud.Group("workers"); g.Desired != want {
			t.Errorf("target %d, want %d", g.Desired, want)
		}
	}
	t.Logf("four pods Running after %s", s.until("four pods on two machines", func() bool { return s.running("train") == 4 }))
	target(2)
	s.claiming("pair", 1, `{requests: [{name: gpu, exactly: {deviceClassName: gpu, count: 2}}], constraints: [{distinctAttribute: gpu.example.com/numa}]}`)
	t.Logf("a pair Running after %s", s.until("two devices at once on a third machine", func() bool { return s.running("pair") == 1 }))
	target(3)
	s.claiming("wide", 1, `{requests: [{name: gpu, exactly: {deviceClassName: gpu, count: 3}}]}`)
	s.explained("wide", "cannot allocate all claims")
	target(3)
	s.kubectl("", "delete", "deployment", "wide", "pair")
	s.until("the machine of the pair goes", func() bool { return len(s.nodes()) == 2 })
	s.scale("train", 2)
	s.until("two devices fit one machine", func() bool { return len(s.nodes()) == 1 && s.running("train") == 2 })
	s.scale("train", 0)
	s.until("no machine", func() bool { return len(s.nodes()) == 0 })
}

// TestDevicesAskedFor: buffers and requests have room for pods with claims, and for pods whose extended resource a DeviceClass backs, before any pod asks for
// devices.
func TestDevicesAskedFor(t *testing.T) {
	t.Parallel() // it mostly waits
	s := capacityScene(t)
	go s.publishDevices(2, time.Second)
	if err := s.w.PutSection("groups", map[string]any{"workers": map[string]any{"template": map[string]any{"devices": []any{map[string]any{"driver": deviceDriver, "count": 2, "attributes": map[string]any{"model": "a100"}}}}}}); err != nil {
		t.Fatal(err)
	}
	s.apply(`apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {extendedResourceName: example.com/gpu, selectors: [{cel: {expression: 'device.driver == "gpu.example.com"'}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one, namespace: default}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu, selectors: [{cel: {expression: 'device.attributes["gpu.example.com"].model == "a100"'}}]}}]}}}
---
apiVersion: v1
kind: PodTemplate
metadata: {name: claiming, namespace: default}
template: {metadata: {labels: {app: spare}}, spec: {resourceClaims: [{name: gpu, resourceClaimTemplateName: one}], containers: [{name: c, image: nginx, resources: {requests: {cpu: 50m}, claims: [{name: gpu}]}}]}}
---
apiVersion: v1
kind: PodTemplate
metadata: {name: plain, namespace: default}
template: {metadata: {labels: {app: spare}}, spec: {containers: [{name: c, image: nginx, resources: {requests: {cpu: 50m}, limits: {example.com/gpu: "1"}}}]}}
---
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata: {name: spare, namespace: default}
spec: {podTemplateRef: {name: claiming}, limits: {cpu: 170m}}
`)
	s.until("two machines for three pods", func() bool { return len(s.nodes()) == 2 })
	s.condition("capacitybuffer", "spare", "Provisioning", "True")
	ask := func(name, class, template string, count int) {
		s.apply(fmt.Sprintf("apiVersion: autoscaling.x-k8s.io/v1\nkind: ProvisioningRequest\nmetadata: {name: %s, namespace: default}\nspec: {provisioningClassName: %s.autoscaling.x-k8s.io, podSets: [{podTemplateRef: {name: %s}, count: %d}]}\n", name, class, template, count))
	}
	ask("five", "check-capacity", "plain", 5)
	s.condition("provisioningrequest", "five", "Provisioned", "False")
	ask("four", "check-capacity", "plain", 4)
	s.condition("provisioningrequest", "four", "Provisioned", "True")
	ask("more", "best-effort-atomic-scale-up", "claiming", 20)
	s.condition("provisioningrequest", "more", "Provisioned", "False")
	s.apply(`apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: part, namespace: default}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu, capacity: {requests: {memory: 1Gi}}}}]}}}
---
apiVersion: v1
kind: PodTemplate
metadata: {name: part, namespace: default}
template: {metadata: {labels: {app: spare}}, spec: {resourceClaims: [{name: gpu, resourceClaimTemplateName: part}], containers: [{name: c, image: nginx, resources: {requests: {cpu: 50m}, claims: [{name: gpu}]}}]}}
`)
	ask("part", "best-effort-atomic-scale-up", "part", 1)
	s.condition("provisioningrequest", "part", "Provisioned", "request gpu asks for capacity")
	s.until("two machines more for the buffer", func() bool { return len(s.nodes()) == 4 })
	s.kubectl("", "delete", "capacitybuffers,provisioningrequests", "--all")
	s.until("no machine", func() bool { return len(s.nodes()) == 0 })
}

// TestPlanOfDevices: plan and explain, with no agent and no pod, know of headroom that a DeviceClass backs its extended resource: they wait for the classes.
func TestPlanOfDevices(t *testing.T) {
	t.Parallel() // it mostly waits
	s := newScene(t, nil)
	s.apply(`apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {extendedResourceName: example.com/gpu, selectors: [{cel: {expression: 'device.driver == "gpu.example.com"'}}]}
`)
	machine := map[string]any{"template": map[string]any{"devices": []any{map[string]any{"driver": deviceDriver, "count": 2}}}}
	room := func(name, resource string) map[string]any {
		return map[string]any{"name": name, "pods": map[string]any{"count": 3, "cpu": "50m", resource: 1}}
	}
	if err := errors.Join(s.w.PutWorkers(world.Workers{Name: "workers", Max: 8, InstanceType: "m5.xlarge"}), s.w.PutSection("groups", map[string]any{"workers": machine}),
		s.w.PutSection("headroom", []any{room("spare", "example.com/gpu"), room("strange", "example.com/fpga")})); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		out, code := s.command("plan")
		if code != 0 || !strings.Contains(out, "keeps 3 pieces of headroom free") || strings.Contains(out, "spare") || !strings.Contains(out, "strange") {
			t.Errorf("code %d:\n%s", code, out)
		}
		if out, code := s.command("explain", "headroom", "spare"); code != 0 || strings.Contains(out, "no room") {
			t.Errorf("code %d:\n%s", code, out)
		}
	}
}

// TestExampleDriver plays Kubernetes' example driver of its Go module on each machine, with the ResourceSlices that it publishes: pods with claims, pods of
// one claim, pods with an extended resource that its DeviceClass backs, and a DeviceTaintRule, which keeps pods off what is bought as well.
func TestExampleDriver(t *testing.T) {
	if os.Getenv("AUTOSCALER_TEST_DRA") != "1" {
		t.Skip("the driver takes minutes to build: make e2e-dra runs this")
	}
	program := built(t, "draexample", "sigs.k8s.io/dra-example-driver/cmd/dra-example-kubeletplugin")
	gate := "--feature-gates=DRADeviceTaintRules=true"
	s := newScene(t, func(o *world.Options) {
		o.ExtraArgs = map[string][]string{controlplane.APIServer: {gate, "--runtime-config=resource.k8s.io/v1beta2=true"}, controlplane.Scheduler: {gate}, controlplane.ControllerManager: {gate}}
	})
	s.apply(`apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu.example.com}
spec: {extendedResourceName: example.com/gpu, selectors: [{cel: {expression: "device.driver == 'gpu.example.com'"}}]}
`)
	s.start("AUTOSCALER_SCALING_UNNEEDED_FOR=10s", "AUTOSCALER_SCALING_DELAY_AFTER_ADD=10s")
	s.workers(world.Workers{Name: "workers", Max: 8})
	if err := s.w.PutSection("groups", map[string]any{"workers": map[string]any{"template": map[string]any{"devices": []any{map[string]any{
		"driver": deviceDriver, "count": 2, "attributes": map[string]any{"model": "LATEST-GPU-MODEL"}, "capacity": map[string]any{"memory": "80Gi"}}}}}}); err != nil {
		t.Fatal(err)
	}
	running := map[string]func(){}
	reached := func(what string, machines int, ok func() bool) {
		t.Helper()
		t.Logf("%s after %s", what, s.until(what, func() bool {
			s.drive(program, running)
			return ok()
		}))
		if g, _ := s.w.Cloud.Group("workers"); g.Desired != machines {
			t.Errorf("%s: target %d, want %d", what, g.Desired, machines)
		}
	}
	s.claiming("train", 4, `{requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com, selectors: [{cel: {expression: 'device.attributes["gpu.example.com"].model == "LATEST-GPU-MODEL" && device.capacity["gpu.example.com"].memory.compareTo(quantity("80Gi")) >= 0'}}]}}]}`)
	reached("four pods with a device each run on two machines", 2, func() bool { return s.running("train") == 4 })
	s.apply(`apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: one, namespace: default}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: together, namespace: default}
spec:
  replicas: 3
  selector: {matchLabels: {app: together}}
  template:
    metadata: {labels: {app: together}}
    spec: {terminationGracePeriodSeconds: 1, resourceClaims: [{name: gpu, resourceClaimName: one}], containers: [{name: c, image: nginx, resources: {requests: {cpu: 50m}, claims: [{name: gpu}]}}]}
`)
	reached("three pods of one claim run on one machine", 3, func() bool { return s.running("together") == 3 })
	s.apply(`apiVersion: apps/v1
kind: Deployment
metadata: {name: plain, namespace: default}
spec:
  replicas: 3
  selector: {matchLabels: {app: plain}}
  template:
    metadata: {labels: {app: plain}}
    spec: {terminationGracePeriodSeconds: 1, containers: [{name: c, image: nginx, resources: {requests: {cpu: 50m}, limits: {example.com/gpu: "1"}}}]}
`)
	reached("three pods with an extended resource run, one of them on what was left", 4, func() bool { return s.running("plain") == 3 })
	s.apply(`apiVersion: resource.k8s.io/v1beta2
kind: DeviceTaintRule
metadata: {name: sick}
spec: {deviceSelector: {driver: gpu.example.com}, taint: {key: sick, effect: NoSchedule}}
`)
	s.scale("plain", 4)
	s.explained("plain", "cannot allocate all claims")
	reached("nothing is bought", 4, func() bool { return s.running("plain") == 3 })
	s.kubectl("", "delete", "devicetaintrule", "sick")
	reached("the fourth runs", 5, func() bool { return s.running("plain") == 4 })
	s.kubectl("", "delete", "deployment", "--all")
	s.until("no machine", func() bool { return len(s.nodes()) == 0 })
}

// drive runs the driver of each Node, and ends that of one that has gone.
func (s *scene) drive(program string, running map[string]func()) {
	s.t.Helper()
	gone := maps.Clone(running)
	for _, n := range s.nodes() {
		delete(gone, n.Name)
		if running[n.Name] != nil {
			continue
		}
		dir, err := os.MkdirTemp("", "dra") // a socket's path is short
		if err != nil {
			s.t.Fatal(err)
		}
		s.t.Cleanup(func() { os.RemoveAll(dir) })
		if err := os.Mkdir(dir+"/registry", 0o700); err != nil {
			s.t.Fatal(err)
		}
		running[n.Name] = s.run(dir, program, "--node-name="+n.Name, "--num-devices=2", "--kubeconfig="+s.w.ControlPlane.Kubeconfig(),
			"--cdi-root="+dir+"/cdi", "--kubelet-registrar-directory-path="+dir+"/registry", "--kubelet-plugins-directory-path="+dir+"/plugins")
	}
	for name, stop := range gone {
		stop()
		delete(running, name)
	}
}

// explained waits until explain says something of a pod of the Deployment that has no node.
func (s *scene) explained(deployment, words string) {
	s.t.Helper()
	waiting := ""
	s.until("a pod of "+deployment+" that waits", func() bool {
		pods, err := s.client.CoreV1().Pods("default").List(s.t.Context(), metav1.ListOptions{LabelSelector: "app=" + deployment, FieldSelector: "spec.nodeName="})
		if err != nil || len(pods.Items) == 0 {
			return false
		}
		waiting = pods.Items[0].Name
		return true
	})
	s.explains("explain pod default/"+waiting, words)
}
