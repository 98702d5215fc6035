package priorities

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus/hooks/test"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/kubetest"
)

func TestParsePriorities(t *testing.T) {
	got, err := parse(map[string]string{"priorities": "10:\n  - .*t2\\.large.*\n  - .*t3\\.large.*\n50:\n  - .*m4\\.4xlarge.*\n"})
	want := []cluster.PriorityTier{{Priority: 50, Patterns: []string{`.*m4\.4xlarge.*`}}, {Priority: 10, Patterns: []string{`.*t2\.large.*`, `.*t3\.large.*`}}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	for text, word := range map[string]string{"": "empty", "high: [a]": `"high"`, "10: ['(']": "regular expression", "10: a": "YAML", "10: [a]\n10: [b]": "already set", "- a": "YAML"} {
		if _, err := parse(map[string]string{"priorities": text}); err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := parse(nil); err == nil {
		t.Error("no key and no error")
	}
}

func TestPrioritiesAreLive(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	client := fake.NewClientset()
	log, hook := test.NewNullLogger()
	events := record.NewFakeRecorder(10)
	woken := make(chan struct{}, 100)
	p, err := New(kubetest.Client(client), "kube-system", events, log.WithField("service", "observe"), func() { woken <- struct{}{} })
	if err != nil {
		t.Fatal(err)
	}
	p.Start(ctx)
	expect := func(what string, tiers int, fault string) {
		t.Helper()
		for deadline := time.After(10 * time.Second); ; {
			got, why := p.Current()
			if len(got) == tiers && strings.Contains(why, fault) && (why == "") == (fault == "") {
				return
			}
			select {
			case <-woken:
			case <-deadline:
				t.Fatalf("%s: %v, %q", what, got, why)
			}
		}
	}
	expect("before", 0, "does not exist")
	maps := client.CoreV1().ConfigMaps("kube-system")
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: ConfigMapName, Namespace: "kube-system"}, Data: map[string]string{"priorities": "10: [a]\n20: [b]"}}
	if _, err := maps.Create(ctx, cm, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	expect("created", 2, "")
	cm.Data["priorities"] = "ten: [a]"
	if _, err := maps.Update(ctx, cm, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	expect("broken", 2, `"ten"`)
	if e := <-events.Events; !strings.Contains(e, "PriorityConfigMapInvalid") || !strings.Contains(e, `"ten"`) {
		t.Errorf("event %q", e)
	}
	warned := 0
	for _, e := range hook.AllEntries() {
		if strings.Contains(e.Message, "invalid priorities") {
			warned++
		}
	}
	if warned != 1 {
		t.Errorf("warned %d times", warned)
	}
	cm.Data["priorities"] = "30: [c]"
	if _, err := maps.Update(ctx, cm, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	expect("mended", 1, "")
	if err := maps.Delete(ctx, ConfigMapName, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	expect("deleted", 0, "does not exist")
}
