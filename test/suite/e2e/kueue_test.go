package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/world"
)

const (
	kueueNamespace = "kueue-system"
	kueueWebhooks  = "kueue-webhook-service"
)

// TestKueue plays Kueue's own manager of its Go module, with its manifests, rights and webhooks, and the published ProvisioningRequest: a Job that
// needs four machines starts with exactly four, and no pod of it is there before; one that cannot be whole buys none, its workload says why, and
// is given up after the tries that Kueue is told; one with check-capacity starts in the room that there is, and buys nothing.
func TestKueue(t *testing.T) {
	if os.Getenv("AUTOSCALER_TEST_KUEUE") != "1" {
		t.Skip("Kueue takes minutes to build: make e2e-kueue runs this")
	}
	program := built(t, "kueue", "sigs.k8s.io/kueue/cmd/kueue")
	s := newScene(t, nil)
	if err := world.ApplyUnits(t.Context(), s.w.ControlPlane, "rbac-capacity.yaml"); err != nil {
		t.Fatal(err)
	}
	s.kubectl("", "apply", "-f", filepath.Join(source(t, "kueue", "k8s.io/autoscaler/cluster-autoscaler/apis"), "config", "crd", "autoscaling.x-k8s.io_provisioningrequests.yaml"))
	s.kubectl("", "wait", "--for=condition=Established", "crd/provisioningrequests.autoscaling.x-k8s.io", "--timeout=60s")
	s.startKueue(program)
	s.start("AUTOSCALER_SCALING_UNNEEDED_FOR=20s", "AUTOSCALER_SCALING_DELAY_AFTER_ADD=20s")
	s.workers(world.Workers{Name: "workers", Max: 6})
	s.apply(`apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: default}
spec: {nodeLabels: {kubernetes.io/os: linux}}
`)
	s.kueueQueue("whole", "best-effort-atomic-scale-up", "")
	s.kueueQueue("brief", "best-effort-atomic-scale-up", `parameters: {ValidUntilSeconds: "4"}, `)
	s.kueueQueue("room", "check-capacity", "")

	target := func(want int) {
		t.Helper()
		if g, _ := s.w.Cloud.Group("workers"); g.Desired != want {
			t.Errorf("target %d, want %d", g.Desired, want)
		}
	}
	s.kueueJob("wide", "brief", 7, "2500m")
	s.workloadSays("wide", "CapacityIsNotFound")
	t.Log(s.kubectl("", "get", "workloads", "-o", `jsonpath={range .items[*]}{.metadata.name}: {.status.admissionChecks[*].message}{"\n"}{end}`))
	s.kueueJob("room-none", "room", 1, "100m")
	s.workloadSays("room-none", "no room")
	target(0)
	s.kueueJob("four", "whole", 4, "2500m")
	t.Logf("a Job of four machines runs after %s", s.until("four pods Running", func() bool { return s.running("four") == 4 }))
	target(4)
	s.workloadSays("wide", "active:false")
	if said := s.kubectl("", "get", "events", "-o", `jsonpath={range .items[*]}{.message}{"\n"}{end}`); !strings.Contains(said, "Retrying after failure: ValidUntilSeconds have passed: ") || !strings.Contains(said, "-brief-2\"") {
		t.Errorf("the events do not tell of a second try and why the first failed:\n%s", said)
	}
	s.kueueJob("rest", "room", 4, "500m")
	t.Logf("a Job in the room that is left runs after %s", s.until("four pods Running in the room that is left", func() bool { return s.running("rest") == 4 }))
	target(4)
	if n := len(s.nodes()); n != 4 {
		t.Errorf("%d Nodes, want 4", n)
	}
	s.kubectl("", "delete", "jobs", "--all", "--cascade=foreground")
	s.until("no machine", func() bool { return len(s.nodes()) == 0 })
}

// workloadSays waits until the workload of a Job, its admission check or its ProvisioningRequests say something.
func (s *scene) workloadSays(job, words string) {
	s.t.Helper()
	s.until(job+": "+words, func() bool {
		return strings.Contains(s.kubectl("", "get", "workloads,provisioningrequests", "-o", `jsonpath={range .items[*]}{.kind} {.metadata.name} active:{.spec.active} {.status.admissionChecks} {.status.conditions}{"\n"}{end}`), words)
	})
}

// kueueQueue makes a queue whose workloads wait for a ProvisioningRequest of a class.
func (s *scene) kueueQueue(name, class, parameters string) {
	s.apply(fmt.Sprintf(`apiVersion: kueue.x-k8s.io/v1beta2
kind: ProvisioningRequestConfig
metadata: {name: %[1]s}
spec: {provisioningClassName: %[2]s.autoscaling.x-k8s.io, %[3]smanagedResources: [cpu], retryStrategy: {backoffLimitCount: 1, backoffBaseSeconds: 1, backoffMaxSeconds: 1}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: AdmissionCheck
metadata: {name: %[1]s}
spec: {controllerName: kueue.x-k8s.io/provisioning-request, parameters: {apiGroup: kueue.x-k8s.io, kind: ProvisioningRequestConfig, name: %[1]s}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: %[1]s}
spec:
  namespaceSelector: {}
  admissionChecksStrategy: {admissionChecks: [{name: %[1]s}]}
  resourceGroups: [{coveredResources: [cpu], flavors: [{name: default, resources: [{name: cpu, nominalQuota: 1000}]}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: %[1]s, namespace: default}
spec: {clusterQueue: %[1]s}
`, name, class, parameters))
}

func (s *scene) kueueJob(name, queue string, pods int, cpu string) {
	s.apply(fmt.Sprintf(`apiVersion: batch/v1
kind: Job
metadata: {name: %[1]s, namespace: default, labels: {kueue.x-k8s.io/queue-name: %[2]s}}
spec:
  parallelism: %[3]d
  completions: %[3]d
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {restartPolicy: Never, terminationGracePeriodSeconds: 1, containers: [{name: c, image: nginx, resources: {requests: {cpu: %[4]s}}}]}
`, name, queue, pods, cpu))
}

// startKueue applies what Kueue's module deploys, and runs the program of its Deployment as a process of this host, under its ServiceAccount. The API
// server reaches its webhooks by the name of their Service.
func (s *scene) startKueue(program string) {
	s.t.Helper()
	dir, webhooks, health := s.t.TempDir(), freePort(s.t), freePort(s.t)
	var config string
	var all bytes.Buffer
	manifests := s.kubectl("", "kustomize", filepath.Join(source(s.t, "kueue", "sigs.k8s.io/kueue"), "config", "default"))
	for _, o := range s.manifests(strings.NewReader(manifests)) {
		switch o.GetKind() {
		case "Deployment", "APIService":
			continue
		case "ConfigMap":
			config, _, _ = unstructured.NestedString(o.Object, "data", "controller_manager_config.yaml")
		case "Service":
			if o.GetName() == kueueWebhooks {
				o.Object["spec"] = map[string]any{"type": "ExternalName", "externalName": "localhost"}
			}
		}
		atPort(o.Object, int64(webhooks))
		text, err := sigsyaml.Marshal(o.Object)
		if err != nil {
			s.t.Fatal(err)
		}
		fmt.Fprintf(&all, "---\n%s", text)
	}
	s.kubectl(all.String(), "apply", "--server-side", "-f", "-")

	c := map[string]any{}
	if err := sigsyaml.Unmarshal([]byte(config), &c); err != nil {
		s.t.Fatal(err)
	}
	c["health"] = map[string]any{"healthProbeBindAddress": fmt.Sprintf("127.0.0.1:%d", health)}
	c["metrics"] = map[string]any{"bindAddress": "0"}
	c["webhook"] = map[string]any{"port": webhooks, "host": "127.0.0.1", "certDir": dir}
	c["leaderElection"] = map[string]any{"leaderElect": false}
	c["featureGates"] = map[string]any{"VisibilityOnDemand": false} // it has an API server of its own
	c["integrations"] = map[string]any{"frameworks": []string{"batch/job"}}
	text, err := sigsyaml.Marshal(c)
	if err != nil {
		s.t.Fatal(err)
	}
	file := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.run(dir, program, "--kubeconfig="+s.kubeconfig(dir, kueueNamespace, "kueue-controller-manager"), "--config="+file, "--zap-log-level=2")
	s.until("Kueue makes the certificate of its webhooks", func() bool { return s.mountSecret(kueueNamespace, "kueue-webhook-server-cert", dir) })
	s.until("Kueue is ready", func() bool {
		said, _ := os.ReadFile(filepath.Join(dir, "log"))
		for line := range strings.Lines(string(said)) {
			if containsAll(line, []string{`"level":"error"`, `"logger":"setup"`}) {
				s.t.Fatalf("Kueue has not started: %s", line)
			}
		}
		answer, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/readyz", health))
		if err == nil {
			answer.Body.Close()
		}
		return err == nil && answer.StatusCode == http.StatusOK
	})
}

// mountSecret writes the keys of a Secret into a directory, as a kubelet does.
func (s *scene) mountSecret(namespace, name, dir string) bool {
	secret, err := s.client.CoreV1().Secrets(namespace).Get(s.t.Context(), name, metav1.GetOptions{})
	if err != nil || len(secret.Data[corev1.TLSCertKey]) == 0 {
		return false
	}
	for key, value := range secret.Data {
		if err := os.WriteFile(filepath.Join(dir, key), value, 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
	return true
}

// atPort makes every reference to the Service of Kueue's webhooks one to a port.
func atPort(of any, port int64) {
	switch of := of.(type) {
	case map[string]any:
		if service, ok := of["service"].(map[string]any); ok && service["name"] == kueueWebhooks {
			service["port"] = port
		}
		for _, v := range of {
			atPort(v, port)
		}
	case []any:
		for _, v := range of {
			atPort(v, port)
		}
	}
}
