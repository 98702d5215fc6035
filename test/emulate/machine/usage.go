package machine

import (
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
)

// AnnotationCPU of a pod is the cpu that its first container uses, as "250m"; it may be changed
// while the pod runs. Without it the container uses none.
const AnnotationCPU = "machine.test/cpu"

// cpuTime is what a pod's containers have used of the processors.
type cpuTime struct {
	seconds float64
	at      time.Time // of the last count; zero: it does not run yet
}

// count adds what the pod has used since the last count.
func (p *podState) count(now time.Time) {
	if rate, err := resource.ParseQuantity(p.pod.Annotations[AnnotationCPU]); err == nil && !p.cpu.at.IsZero() {
		p.cpu.seconds += rate.AsApproximateFloat64() * now.Sub(p.cpu.at).Seconds()
	}
	p.cpu.at = now
}

// resourceMetrics is what a kubelet answers at /metrics/resource, in its form and with its
// names: of the Node and of each container that runs, with the time of the measurement in
// milliseconds. Containers use the cpu of AnnotationCPU and the memory that they request.
func (k *kubelet) resourceMetrics(w io.Writer, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	ms, total, memory := now.UnixMilli(), 0.0, int64(0)
	var lines [5]strings.Builder
	for _, p := range k.pods {
		if !p.running || p.pod.Status.Phase != corev1.PodRunning {
			continue
		}
		p.count(now)
		requests := resourcehelper.PodRequests(p.pod, resourcehelper.PodResourcesOptions{})
		bytes := requests.Memory().Value()
		total, memory = total+p.cpu.seconds, memory+bytes
		pod := fmt.Sprintf("namespace=%q,pod=%q", p.pod.Namespace, p.pod.Name)
		of := fmt.Sprintf("container=%q,%s", p.pod.Spec.Containers[0].Name, pod)
		fmt.Fprintf(&lines[0], "container_cpu_usage_seconds_total{%s} %g %d\n", of, p.cpu.seconds, ms)
		fmt.Fprintf(&lines[1], "container_memory_working_set_bytes{%s} %d %d\n", of, bytes, ms)
		if p.pod.Status.StartTime != nil {
			fmt.Fprintf(&lines[2], "container_start_time_seconds{%s} %d\n", of, p.pod.Status.StartTime.Unix())
		}
		fmt.Fprintf(&lines[3], "pod_cpu_usage_seconds_total{%s} %g %d\n", pod, p.cpu.seconds, ms)
		fmt.Fprintf(&lines[4], "pod_memory_working_set_bytes{%s} %d %d\n", pod, bytes, ms)
	}
	for i, name := range []string{"container_cpu_usage_seconds_total counter", "container_memory_working_set_bytes gauge", "container_start_time_seconds gauge",
		"pod_cpu_usage_seconds_total counter", "pod_memory_working_set_bytes gauge"} {
		if lines[i].Len() > 0 {
			fmt.Fprintf(w, "# TYPE %s\n%s", name, lines[i].String())
		}
	}
	fmt.Fprintf(w, "# TYPE node_cpu_usage_seconds_total counter\nnode_cpu_usage_seconds_total %g %d\n", k.ended+total, ms)
	fmt.Fprintf(w, "# TYPE node_memory_working_set_bytes gauge\nnode_memory_working_set_bytes %d %d\n", memory+256<<20, ms)
	fmt.Fprint(w, "# TYPE resource_scrape_error gauge\nresource_scrape_error 0\n")
}
