package convert

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

func TestPodScaleUpDelay(t *testing.T) {
	for text, want := range map[string]time.Duration{"30s": 30 * time.Second, "1m30s": 90 * time.Second, "": 0, "30": 0, "-5s": 0, "soon": 0} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{cluster.AnnotationScaleUpDelay: text, "other": "x"}}}
		if _, err := Strip(p); err != nil {
			t.Fatal(err)
		}
		if got := Pod(p); got.Asked().ScaleUpDelay != want {
			t.Errorf("%q is a delay of %s, want %s", text, got.Asked().ScaleUpDelay, want)
		}
	}
}

func TestRareAnnotations(t *testing.T) {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{cluster.AnnotationDoNotDisrupt: "45m", cluster.AnnotationEvictDaemon: "true"}}}
	if _, err := Strip(p); err != nil {
		t.Fatal(err)
	}
	if got := Pod(p); got.DoNotDisrupt || got.Asked().KeepFor != 45*time.Minute || got.Asked().EvictDaemon != "true" {
		t.Errorf("%+v, %+v", got, got.Asked())
	}
	p = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{cluster.AnnotationDoNotDisrupt: "true"}}}
	if got := Pod(p); !got.DoNotDisrupt || got.Wishes != nil {
		t.Errorf("%+v", got)
	}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"other": "x", cluster.AnnotationRequested: "true", cluster.AnnotationDelay + "backup": "x"}}}
	if got := Node(n).Annotations; len(got) != 2 {
		t.Errorf("a Node keeps %v", got)
	}
}

// TestPodAnnotations holds how the annotations of Cluster Autoscaler are read, whatever their writer's habits.
func TestPodAnnotations(t *testing.T) {
	disk := func(names ...string) (out []corev1.Volume) {
		for _, n := range names {
			out = append(out, corev1.Volume{Name: n, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
		}
		return out
	}
	for _, c := range []struct {
		key, value string
		volumes    []corev1.Volume
		want       func(cluster.Pod) bool
	}{
		{cluster.AnnotationSafeVolumes, "data, cache", disk("data", "cache"), func(p cluster.Pod) bool { return p.LocalStorage == "" }},
		{cluster.AnnotationSafeVolumes, " data ,\tcache\n", disk("data", "cache"), func(p cluster.Pod) bool { return p.LocalStorage == "" }},
		{cluster.AnnotationSafeVolumes, "data,,", disk("data"), func(p cluster.Pod) bool { return p.LocalStorage == "" }},
		{cluster.AnnotationSafeVolumes, "data cache", disk("data", "cache"), func(p cluster.Pod) bool { return p.LocalStorage == "data" }},
		{cluster.AnnotationSafeVolumes, "data", disk("data", "cache"), func(p cluster.Pod) bool { return p.LocalStorage == "cache" }},
		{cluster.AnnotationSafeToEvict, "on-completion", nil, func(p cluster.Pod) bool {
			return p.SafeToEvict == cluster.SafeOnCompletion && cluster.KnownSafeToEvict(p.SafeToEvict)
		}},
		{cluster.AnnotationSafeToEvict, "True", nil, func(p cluster.Pod) bool { return p.SafeToEvict == "True" && !cluster.KnownSafeToEvict(p.SafeToEvict) }},
		{cluster.AnnotationSafeToEvict, " true", nil, func(p cluster.Pod) bool { return !cluster.KnownSafeToEvict(p.SafeToEvict) }},
		{cluster.AnnotationSafeToEvict, "", nil, func(p cluster.Pod) bool { return cluster.KnownSafeToEvict(p.SafeToEvict) }},
		{cluster.AnnotationDaemonPod, "true", nil, func(p cluster.Pod) bool { return p.Asked().Daemon }},
		{cluster.AnnotationDaemonPod, "false", nil, func(p cluster.Pod) bool { return !p.Asked().Daemon }},
		{cluster.AnnotationEvictDaemon, "false", nil, func(p cluster.Pod) bool { return p.Asked().EvictDaemon == "false" }},
		{cluster.AnnotationDoNotDisrupt, "true", nil, func(p cluster.Pod) bool { return p.DoNotDisrupt }},
	} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{c.key: c.value}}, Spec: corev1.PodSpec{Volumes: c.volumes}}
		if _, err := Strip(p); err != nil {
			t.Fatal(err)
		}
		if got := Pod(p); !c.want(got) {
			t.Errorf("%s: %q is read as %+v, %+v", c.key, c.value, got, got.Asked())
		}
	}
}
