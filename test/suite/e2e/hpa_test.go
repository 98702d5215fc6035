package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/controlplane"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/machine"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/world"
)

// TestHPA is what seeds 001 and 004 are about: load goes up, a HorizontalPodAutoscaler raises
// the replicas, pods find no room, machines come; load goes, and so do pods and machines. The
// real metrics-server reads the kubelets with what leader-config gives it: its manifest's rights
// and arguments, and the cluster's CA, by which it verifies the certificates that the agent
// approved.
func TestHPA(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has all of 127.0.0.0/8, where metrics-server reaches the machines")
	}
	if os.Getenv("AUTOSCALER_TEST_HPA") != "1" {
		t.Skip("metrics-server takes minutes to build: make e2e-hpa runs this")
	}
	program := built(t, "metricsserver", "sigs.k8s.io/metrics-server/cmd/metrics-server")
	var booted atomic.Int32
	var s *scene
	s = newScene(t, func(o *world.Options) {
		// Minutes of a real controller manager; metrics-server measures every ten seconds.
		o.ExtraArgs = map[string][]string{controlplane.ControllerManager: {
			"--horizontal-pod-autoscaler-sync-period=2s", "--horizontal-pod-autoscaler-cpu-initialization-period=1s",
			"--horizontal-pod-autoscaler-initial-readiness-delay=1s", "--horizontal-pod-autoscaler-downscale-stabilization=2s"}}
		o.Tune = func(m *machine.Config) {
			address := fmt.Sprintf("127.0.2.%d", booted.Add(1))
			m.Addresses = []netip.Addr{netip.MustParseAddr(address)}
			_ = s.w.Cloud.Rewire(m.InstanceID, func(n *aws.Network) { n.PrivateIP, n.PrivateDNS, n.PublicIP, n.IPv6 = address, m.Name, "", "" })
		}
	})
	s.start("AUTOSCALER_CSR_ALLOWED_RANGES=127.0.2.0/24", "AUTOSCALER_SCALING_UNNEEDED_FOR=2s", "AUTOSCALER_SCALING_DELAY_AFTER_ADD=2s")
	s.workers(world.Workers{Name: "workers", Min: 1, Max: 5})
	s.startMetricsServer(program)
	s.deploy("web", 1, "500m", "64Mi")
	s.autoscale("web", 70, 12)
	load := s.loadOn("web")

	load.Store(100)
	s.until("the first pod runs and is measured", func() bool { return s.running("web") == 1 && s.measured("namespaces/default/pods", "web") == 1 })
	if n := len(s.resizes()); n > 0 {
		t.Errorf("%d resizes while a seventh of one machine is used", n)
	}
	load.Store(3500) // ten pods at 70 % of 500m: two machines of seven each
	up := s.until("HPA makes ten pods, and machines come for them", func() bool { return s.running("web") >= 9 && len(s.nodes()) >= 2 })
	s.until("every Node is measured", func() bool { return s.measured("nodes", "") == len(s.nodes()) })
	if len(s.resizes()) == 0 {
		t.Error("no machine was asked for")
	}
	load.Store(100)
	down := s.until("the load has gone: one pod and one machine are left", func() bool { return s.running("web") == 1 && len(s.nodes()) == 1 })
	t.Logf("up in %s, down in %s, %d machines booted in all", up.Round(time.Second), down.Round(time.Second), booted.Load())
}

// autoscale makes a HorizontalPodAutoscaler as docs/leader.md shows it.
func (s *scene) autoscale(name string, percent, most int32) {
	s.t.Helper()
	_, err := s.client.AutoscalingV2().HorizontalPodAutoscalers("default").Create(s.t.Context(), &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: name}, MaxReplicas: most,
			Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
				Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &percent}}}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
}

// loadOn divides a load, in thousandths of a cpu, among the running pods of a deployment, as
// their Service would; no container uses more than one cpu.
func (s *scene) loadOn(name string) *atomic.Int64 {
	total := &atomic.Int64{}
	ctx, done := s.t.Context(), make(chan struct{})
	s.t.Cleanup(func() { <-done })
	go func() {
		defer close(done)
		for tick := time.NewTicker(500 * time.Millisecond); ; {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			pods, err := s.client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=" + name, FieldSelector: "status.phase=Running"})
			if err != nil || len(pods.Items) == 0 {
				continue // asked again with the next tick
			}
			share := fmt.Sprintf("%dm", min(1000, total.Load()/int64(len(pods.Items))))
			for _, p := range pods.Items {
				if p.Annotations[machine.AnnotationCPU] != share {
					patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, machine.AnnotationCPU, share)
					_, _ = s.client.CoreV1().Pods("default").Patch(ctx, p.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
				}
			}
		}
	}()
	return total
}

// measured is how many objects with an app's label (none: all) the metrics API knows.
func (s *scene) measured(path, app string) int {
	get := s.client.CoreV1().RESTClient().Get().AbsPath("/apis/metrics.k8s.io/v1beta1/" + path)
	if app != "" {
		get = get.Param("labelSelector", "app="+app)
	}
	raw, err := get.DoRaw(s.t.Context())
	var list struct{ Items []json.RawMessage }
	if err != nil || json.Unmarshal(raw, &list) != nil {
		return -1
	}
	return len(list.Items)
}

// startMetricsServer applies leader-config's manifest, and runs the program of its Deployment as
// a process of this host, under its ServiceAccount and with its arguments.
func (s *scene) startMetricsServer(program string) {
	s.t.Helper()
	text, err := os.ReadFile("../../../userdata/leader/metrics-server.yaml")
	if err != nil {
		s.t.Fatal(err)
	}
	port := freePort(s.t)
	client, err := dynamic.NewForConfig(s.w.ControlPlane.RESTConfig())
	if err != nil {
		s.t.Fatal(err)
	}
	var args []string
	for _, o := range s.manifests(bytes.NewReader(text)) {
		switch o.GetKind() {
		case "Deployment":
			containers, _, err := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
			if err != nil || len(containers) != 1 {
				s.t.Fatal(containers, err)
			}
			if args, _, err = unstructured.NestedStringSlice(containers[0].(map[string]any), "args"); err != nil {
				s.t.Fatal(err)
			}
			continue
		case "Service": // no pod is behind it: the API server reaches the process by its name
			o.Object["spec"] = map[string]any{"type": "ExternalName", "externalName": "localhost"}
		case "APIService":
			if err := unstructured.SetNestedField(o.Object, int64(port), "spec", "service", "port"); err != nil {
				s.t.Fatal(err)
			}
		}
		s.create(client, o)
	}
	s.runMetricsServer(program, args, port)
}

// create makes an object of a manifest.
func (s *scene) create(client dynamic.Interface, o *unstructured.Unstructured) {
	s.t.Helper()
	kind, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
	var err error
	if ns := o.GetNamespace(); ns != "" {
		_, err = client.Resource(kind).Namespace(ns).Create(s.t.Context(), o, metav1.CreateOptions{})
	} else {
		_, err = client.Resource(kind).Create(s.t.Context(), o, metav1.CreateOptions{})
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		s.t.Fatalf("%s %s: %v", o.GetKind(), o.GetName(), err)
	}
}

// runMetricsServer runs it until the test ends. Later arguments win over the manifest's.
func (s *scene) runMetricsServer(program string, args []string, port int) {
	s.t.Helper()
	dir, ca := s.t.TempDir(), s.w.ControlPlane.CAFile()
	kubeconfig := s.kubeconfig(dir, "kube-system", "metrics-server")
	s.run(dir, program, append(args, "--cert-dir="+dir, "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port), "--metric-resolution=10s", "--kubelet-request-timeout=5s",
		"--kubelet-certificate-authority="+ca, "--kubeconfig="+kubeconfig, "--authentication-kubeconfig="+kubeconfig, "--authorization-kubeconfig="+kubeconfig)...)
}

// manifests are the objects of a YAML stream.
func (s *scene) manifests(text io.Reader) (out []*unstructured.Unstructured) {
	s.t.Helper()
	for objects := yaml.NewYAMLOrJSONDecoder(text, 4096); ; {
		o := &unstructured.Unstructured{}
		if err := objects.Decode(o); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			s.t.Fatal(err)
		}
		out = append(out, o)
	}
}
