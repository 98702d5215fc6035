package observe

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPodScaleUpDelay(t *testing.T) {
	for text, want := range map[string]time.Duration{"30s": 30 * time.Second, "1m30s": 90 * time.Second, "": 0, "30": 0, "-5s": 0, "soon": 0} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{annotationScaleUpDelay: text, "other": "x"}}}
		if _, err := Strip(p); err != nil {
			t.Fatal(err)
		}
		if got := convertPod(p).ScaleUpDelay.Duration(); got != want {
			t.Errorf("%q is a delay of %s, want %s", text, got, want)
		}
	}
}
