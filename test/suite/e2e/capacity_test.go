package e2e

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/world"
)

// definition is a kind of autoscaling.x-k8s.io as far as the API server has to know it; the schema of the published definition is closer.
func definition(kind, plural, version string) string {
	return fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[2]s.autoscaling.x-k8s.io, annotations: {api-approved.kubernetes.io: "https://github.com/kubernetes/autoscaler/pull/8151"}}
spec:
  group: autoscaling.x-k8s.io
  scope: Namespaced
  names: {kind: %[1]s, plural: %[2]s, singular: %[3]s}
  versions:
  - name: %[4]s
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true}, status: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}
`, kind, plural, strings.ToLower(kind), version)
}

// capacityScene is a scene with CapacityBuffers and ProvisioningRequests, and a group of machines that hold two of the pods of PodTemplate web.
func capacityScene(t *testing.T) *scene {
	s := newScene(t, nil)
	if err := world.ApplyUnits(t.Context(), s.w.ControlPlane, "rbac-capacity.yaml"); err != nil {
		t.Fatal(err)
	}
	s.apply(definition("CapacityBuffer", "capacitybuffers", "v1beta1") + "---\n" + definition("ProvisioningRequest", "provisioningrequests", "v1"))
	s.kubectl("", "wait", "--for=condition=Established", "crd/capacitybuffers.autoscaling.x-k8s.io", "crd/provisioningrequests.autoscaling.x-k8s.io", "--timeout=60s")
	s.start("AUTOSCALER_SCALING_UNNEEDED_FOR=2s", "AUTOSCALER_SCALING_DELAY_AFTER_ADD=2s")
	s.workers(world.Workers{Name: "workers", Max: 8})
	s.apply(spare)
	return s
}

const spare = `apiVersion: v1
kind: PodTemplate
metadata: {name: web, namespace: default}
template: {metadata: {labels: {app: spare}}, spec: {containers: [{name: c, image: nginx, resources: {requests: {cpu: 1500m}}}]}}
`

// TestCapacityBuffer: room for four pods is kept free before any of them is there; two pods find it, and it is made full again; a buffer of half a
// Deployment follows its size, down to none; a buffer of nothing says so, and so does one whose template goes or whose limits are below one pod's;
// without buffers and pods the machines go.
func TestCapacityBuffer(t *testing.T) {
	t.Parallel() // it mostly waits
	s := capacityScene(t)
	s.apply(`apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata: {name: fixed, namespace: default}
spec: {podTemplateRef: {name: web}, replicas: 4}
---
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata: {name: nothing, namespace: default}
spec: {podTemplateRef: {name: absent}, replicas: 4}
`)
	s.until("two machines for four pods that are not there", func() bool { return len(s.nodes()) == 2 })
	s.condition("capacitybuffer", "fixed", "Provisioning", "True")
	s.condition("capacitybuffer", "nothing", "ReadyForProvisioning", "there is no podtemplates absent in the namespace")
	if n := s.kubectl("", "get", "pods", "-A", "-o", "name"); strings.Contains(n, "spare") {
		t.Errorf("pods were created for the buffer: %s", n)
	}
	s.deploy("web", 2, "1500m", "64Mi")
	t.Logf("two pods Running after %s", s.until("two pods find the room", func() bool { return s.running("web") == 2 }))
	s.until("the buffer is full again", func() bool { return len(s.nodes()) == 3 })
	s.apply(`apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata: {name: half, namespace: default}
spec: {scalableRef: {apiGroup: apps, kind: Deployment, name: web}, percentage: 50}
`)
	s.until("half of two pods", func() bool { return s.field("capacitybuffer", "half", "{.status.replicas}") == "1" })
	s.scale("web", 3)
	s.until("half of three pods", func() bool { return s.field("capacitybuffer", "half", "{.status.replicas}") == "2" })
	s.scale("web", 0)
	s.until("half of no pods", func() bool { return s.field("capacitybuffer", "half", "{.status.replicas}") == "0" })
	s.kubectl("", "delete", "podtemplate", "web")
	s.condition("capacitybuffer", "fixed", "ReadyForProvisioning", "there is no podtemplates web in the namespace")
	s.until("no machine for a buffer of nothing and one of no pods", func() bool { return len(s.nodes()) == 0 })
	if got := s.field("capacitybuffer", "fixed", "{.status.replicas}{.status.podTemplateRef}") + s.field("capacitybuffer", "fixed", conditionPath("Provisioning")); got != "" {
		t.Errorf("a buffer without its template still says %s", got)
	}
	s.apply(spare + `---
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata: {name: small, namespace: default}
spec: {podTemplateRef: {name: web}, replicas: 4, limits: {cpu: 1499m}}
`)
	s.until("two machines again", func() bool { return len(s.nodes()) == 2 })
	s.condition("capacitybuffer", "fixed", "Provisioning", "True")
	s.until("limits below one pod's", func() bool { return s.field("capacitybuffer", "small", "{.status.replicas}") == "0" })
	for _, empty := range []string{"half", "small"} {
		s.condition("capacitybuffer", empty, "ReadyForProvisioning", "keeps room for no pod")
	}
	s.kubectl("", "patch", "capacitybuffer", "small", "--type=merge", "-p", `{"spec": {"limits": {"cpu": "3"}}}`)
	s.until("limits of two pods", func() bool { return s.field("capacitybuffer", "small", "{.status.replicas}") == "2" })
	s.until("a machine for them", func() bool { return len(s.nodes()) == 3 })
	s.kubectl("", "delete", "capacitybuffers", "--all")
	s.until("no machine", func() bool { return len(s.nodes()) == 0 })
}

// TestProvisioningRequest: what cannot be whole buys nothing and says why; eight pods are four machines, and the pods that come for them buy no other.
func TestProvisioningRequest(t *testing.T) {
	t.Parallel() // it mostly waits
	s := capacityScene(t)
	ask := func(name, class string, count int) {
		s.apply(fmt.Sprintf(`apiVersion: autoscaling.x-k8s.io/v1
kind: ProvisioningRequest
metadata: {name: %s, namespace: default}
spec: {provisioningClassName: %s.autoscaling.x-k8s.io, podSets: [{podTemplateRef: {name: web}, count: %d}]}
`, name, class, count))
	}
	ask("room", "check-capacity", 2)
	ask("whole", "best-effort-atomic-scale-up", 40)
	s.condition("provisioningrequest", "room", "Provisioned", "False")
	s.condition("provisioningrequest", "whole", "Provisioned", "False")
	if n := len(s.nodes()); n != 0 {
		t.Errorf("%d machines for requests that cannot be whole", n)
	}
	ask("eight", "best-effort-atomic-scale-up", 8)
	s.condition("provisioningrequest", "eight", "Provisioned", "True")
	s.until("four machines", func() bool { return len(s.nodes()) == 4 })
	s.condition("provisioningrequest", "room", "Provisioned", "False") // the room is another's
	s.apply(`apiVersion: batch/v1
kind: Job
metadata: {name: eight, namespace: default}
spec:
  parallelism: 8
  completions: 8
  template:
    metadata: {labels: {app: eight}, annotations: {autoscaling.x-k8s.io/consume-provisioning-request: eight}}
    spec: {restartPolicy: Never, containers: [{name: c, image: nginx, resources: {requests: {cpu: 1500m}}}]}
`)
	s.until("eight pods Running", func() bool { return s.running("eight") == 8 })
	if g, _ := s.w.Cloud.Group("workers"); g.Desired != 4 {
		t.Errorf("target %d, want 4", g.Desired)
	}
}

// TestRequestsCompete: a node with room for two pods is promised once, to the older request, whatever their names and sizes; a buffer, which keeps room for
// pods that come, gives way to a request, and has it back when that one's time is over.
func TestRequestsCompete(t *testing.T) {
	t.Parallel() // it mostly waits
	s := capacityScene(t)
	s.apply(`apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata: {name: spare, namespace: default}
spec: {podTemplateRef: {name: web}, replicas: 16}
`)
	s.until("all machines", func() bool { return len(s.nodes()) == 8 })
	s.condition("capacitybuffer", "spare", "Provisioning", "True")
	ask := func(name, class string, count int) string {
		return fmt.Sprintf(`---
apiVersion: autoscaling.x-k8s.io/v1
kind: ProvisioningRequest
metadata: {name: %s, namespace: default}
spec: {provisioningClassName: %s.autoscaling.x-k8s.io, podSets: [{podTemplateRef: {name: web}, count: %d}]}
`, name, class, count)
	}
	s.apply(ask("z", "check-capacity", 10))
	s.condition("provisioningrequest", "z", "Provisioned", "True")
	s.condition("capacitybuffer", "spare", "Provisioning", "10 of 16 pieces have no room")
	s.apply(ask("a", "check-capacity", 8) + ask("b", "best-effort-atomic-scale-up", 8))
	s.condition("provisioningrequest", "a", "Provisioned", "False")
	s.condition("provisioningrequest", "b", "Provisioned", "False")
	s.apply(ask("c", "check-capacity", 4) + ask("d", "check-capacity", 4)) // at once: there is room for one of them
	found := func(name string) bool {
		return strings.HasPrefix(s.field("provisioningrequest", name, conditionPath("Provisioned")), "True")
	}
	s.condition("provisioningrequest", "c", "Provisioned", "e ") // True or False
	s.condition("provisioningrequest", "d", "Provisioned", "e ")
	if found("c") == found("d") {
		t.Errorf("the room of one of two requests: found for c %v, for d %v", found("c"), found("d"))
	}
	s.kubectl("", "patch", "provisioningrequest", "z", "--subresource=status", "--type=merge", "-p", fmt.Sprintf(`{"status": {"conditions": [{"type": "Provisioned", "status": "True", "reason": "CapacityIsFound", "message": "", "lastTransitionTime": %q}]}}`, time.Now().Add(-11*time.Minute).UTC().Format(time.RFC3339)))
	s.condition("provisioningrequest", "z", "BookingExpired", "True")
	s.until("the other one, and one of those that were too large", func() bool { return found("c") && found("d") && found("a") != found("b") })
	s.kubectl("", "delete", "provisioningrequests", "--all")
	s.condition("capacitybuffer", "spare", "Provisioning", "True")
}

func conditionPath(kind string) string {
	return fmt.Sprintf(`{.status.conditions[?(@.type=="%s")].status} {.status.conditions[?(@.type=="%s")].message}`, kind, kind)
}

func (s *scene) condition(of, name, kind, words string) {
	s.t.Helper()
	s.until(name+": "+kind+" "+words, func() bool { return strings.Contains(s.field(of, name, conditionPath(kind)), words) })
}

func (s *scene) field(of, name, path string) string {
	return strings.TrimSpace(s.kubectl("", "get", of, name, "-o", "jsonpath="+path))
}

func (s *scene) apply(manifest string) { s.kubectl(manifest, "apply", "-f", "-") }

// kubectl runs the administrator's kubectl.
func (s *scene) kubectl(input string, args ...string) string {
	s.t.Helper()
	cp := s.w.ControlPlane
	cmd := exec.CommandContext(s.t.Context(), cp.Binaries().Path("kubectl"), append([]string{"--kubeconfig", cp.Kubeconfig()}, args...)...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("kubectl %v: %v\n%s", args, err, out)
	}
	return string(out)
}
