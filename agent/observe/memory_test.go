package observe

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/store"
	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
)

const podsPerNode = 30

// fullPod is a running pod as an API server sends it, about 3.4 KB of it as JSON: with a
// token, environment, probes, statuses and managed fields.
func fullPod(i int) *corev1.Pod {
	yes, grace, app := true, int64(30), fmt.Sprintf("shop-%02d", i%podsPerNode)
	at := metav1.NewTime(time.Unix(1700000000+int64(i%5000), 0))
	kind := func(t corev1.PodConditionType) corev1.PodCondition {
		return corev1.PodCondition{Type: t, Status: corev1.ConditionTrue, LastTransitionTime: at, ObservedGeneration: 1}
	}
	image := "registry.example.com/shop/" + app + "@sha256:" + strings.Repeat("4f", 32)
	started := true
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: fmt.Sprintf("%s-6d4b75cb6d-%05x", app, i), GenerateName: app + "-6d4b75cb6d-", UID: types.UID(fmt.Sprintf("%08x-7c1e-4b5a-9d2f-0123456789ab", i)),
			ResourceVersion: fmt.Sprint(100000 + i), Generation: 1, CreationTimestamp: at, Labels: map[string]string{"app": app, "pod-template-hash": "6d4b75cb6d", "tier": "web"},
			Annotations:     map[string]string{"prometheus.io/scrape": "true", "checksum/config": strings.Repeat("ab", 32)},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: app + "-6d4b75cb6d", UID: types.UID("rs-" + app), Controller: &yes, BlockOwnerDeletion: &yes}},
			ManagedFields:   []metav1.ManagedFieldsEntry{{Manager: "kube-controller-manager", Operation: "Update", APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{` + strings.Repeat(`"f:app":{},`, 60) + `"f:tier":{}}}}`)}},
		},
		Spec: corev1.PodSpec{
			NodeName: fmt.Sprintf("ip-10-%d-%d.example.internal", i/podsPerNode/256, i/podsPerNode%256), SchedulerName: "default-scheduler", ServiceAccountName: "default", DeprecatedServiceAccount: "default",
			TerminationGracePeriodSeconds: &grace, RestartPolicy: corev1.RestartPolicyAlways, DNSPolicy: corev1.DNSClusterFirst, EnableServiceLinks: &yes, SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: &yes},
			Containers: []corev1.Container{{
				Name: "web", Image: image, ImagePullPolicy: corev1.PullIfNotPresent, Args: []string{"--listen=:8080", "--config=/etc/shop/config.yaml"},
				Env:                      []corev1.EnvVar{{Name: "LOG_LEVEL", Value: "info"}, {Name: "POD_IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "status.podIP"}}}},
				Ports:                    []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}},
				Resources:                corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("480m"), "memory": resource.MustParse("1966Mi")}, Limits: corev1.ResourceList{"memory": resource.MustParse("1966Mi")}},
				VolumeMounts:             []corev1.VolumeMount{{Name: "kube-api-access-x2x9p", ReadOnly: true, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"}},
				TerminationMessagePath:   "/dev/termination-log",
				TerminationMessagePolicy: corev1.TerminationMessageReadFile,
			}},
			Tolerations: []corev1.Toleration{{Key: "node.kubernetes.io/not-ready", Operator: "Exists", Effect: "NoExecute"}, {Key: "node.kubernetes.io/unreachable", Operator: "Exists", Effect: "NoExecute"}},
			Volumes: []corev1.Volume{{Name: "kube-api-access-x2x9p", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}},
				{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}, Items: []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}}}}}}}}},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, HostIP: "10.0.0.7", PodIP: "10.244.3.9", PodIPs: []corev1.PodIP{{IP: "10.244.3.9"}}, StartTime: &at, QOSClass: corev1.PodQOSBurstable,
			Conditions: []corev1.PodCondition{kind(corev1.PodReadyToStartContainers), kind(corev1.PodInitialized), kind(corev1.PodReady), kind(corev1.ContainersReady), kind(corev1.PodScheduled)},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "web", Ready: true, Started: &started, Image: image, ImageID: image, ContainerID: "containerd://" + strings.Repeat("9c", 32),
				State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}}}},
		},
	}
}

// streamPods serves a list of n pods as protobuf, as an API server does, and holds one of them at a
// time.
func streamPods(tb testing.TB, n int, pod func(int) *corev1.Pod) *rest.Config {
	ends := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", apiruntime.ContentTypeProtobuf)
		if r.URL.Query().Get("watch") != "" {
			w.(http.Flusher).Flush()
			<-ends
			return
		}
		if err := writeList(w, n, pod); err != nil {
			tb.Error(err)
		}
	}))
	tb.Cleanup(srv.Close)
	tb.Cleanup(func() { close(ends) })
	return &rest.Config{Host: srv.URL, ContentConfig: rest.ContentConfig{ContentType: apiruntime.ContentTypeProtobuf}}
}

// writeList writes the protobuf form of a list: a magic number, and a runtime.Unknown whose field
// raw is the list.
func writeList(out io.Writer, n int, pod func(int) *corev1.Pod) error {
	meta := metav1.ListMeta{ResourceVersion: "200000"}
	field := func(number byte, size int) []byte {
		return binary.AppendUvarint([]byte{number<<3 | 2}, uint64(size))
	}
	total := len(field(1, meta.Size())) + meta.Size()
	for i := range n {
		size := pod(i).Size()
		total += len(field(2, size)) + size
	}
	buffered := bufio.NewWriter(out)
	write := func(number byte, m interface{ Marshal() ([]byte, error) }) error {
		raw, err := m.Marshal()
		if err == nil {
			_, _ = buffered.Write(field(number, len(raw)))
			_, err = buffered.Write(raw)
		}
		return err
	}
	_, _ = buffered.WriteString("k8s\x00")
	if err := write(1, &apiruntime.TypeMeta{APIVersion: "v1", Kind: "PodList"}); err != nil {
		return err
	}
	_, _ = buffered.Write(field(2, total))
	if err := write(1, &meta); err != nil {
		return err
	}
	for i := range n {
		if err := write(2, pod(i)); err != nil {
			return err
		}
	}
	return buffered.Flush()
}

// BenchmarkPodMemory is the live heap per pod after the list of a whole cluster is streamed.
// An informer of stripped Pods beside the store took 4,136 bytes.
func BenchmarkPodMemory(b *testing.B) {
	for _, nodes := range []int{1000, 5000} {
		b.Run(fmt.Sprintf("N=%d", nodes), func(b *testing.B) {
			pods := nodes * podsPerNode
			client, err := kube.New(streamPods(b, pods, fullPod))
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				ctx, stop := context.WithCancel(b.Context())
				before := liveHeap()
				s := store.New([]string{corev1.DefaultSchedulerName})
				w := newPodWatch(livePods(client), s, func(store.Urgency) {}, func(err error) { b.Error(err) })
				go w.run(ctx)
				if !cache.WaitForCacheSync(ctx.Done(), w.hasSynced) {
					b.Fatal("not synced")
				}
				if snapshot, _, _ := s.Snapshot(-1); len(snapshot.Pods) != pods {
					b.Fatalf("%d pods in place of %d", len(snapshot.Pods), pods)
				}
				b.ReportMetric(float64(liveHeap()-before)/float64(pods), "heap-B/pod")
				runtime.KeepAlive(s)
				stop()
			}
			b.ReportMetric(peakMB(b), "peak-RSS-MB")
		})
	}
}

// TestPodMemory bounds the live heap per pod. An informer beside the store takes ten times
// as much, and so does a store that keeps decoded Pods.
func TestPodMemory(t *testing.T) {
	const pods = 1500
	client, err := kube.New(streamPods(t, pods, fullPod))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	before := liveHeap()
	s := store.New([]string{corev1.DefaultSchedulerName})
	w := newPodWatch(livePods(client), s, func(store.Urgency) {}, func(err error) { t.Error(err) })
	go w.run(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), w.hasSynced) {
		t.Fatal("not synced")
	}
	if got := len(contents(s)); got != pods {
		t.Errorf("%d pods in place of %d", got, pods)
	}
	if took := (liveHeap() - before) / pods; took > 800 {
		t.Errorf("%d bytes of heap for each pod, want at most 800", took)
	}
	runtime.KeepAlive(s)
}

func liveHeap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// peakMB is the process's peak of resident memory: of a benchmark that runs alone.
func peakMB(b *testing.B) float64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Skip(err)
	}
	var kb float64
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			if _, err := fmt.Sscan(rest, &kb); err != nil {
				b.Fatal(err)
			}
		}
	}
	return kb / 1024
}
