package report

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/autoscaler-agent/autoscaler-agent/agent/act"
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/kubetest"
)

func TestStatusPage(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 5, time.UTC)
	in := func(id string) cluster.Instance {
		return cluster.Instance{ID: cluster.InstanceID(id), Phase: cluster.PhaseRunning, Member: true}
	}
	s := cluster.Snapshot{Now: now, Groups: []cluster.NodeGroup{
		{ID: "workers", Min: 1, Max: 9, Target: 4, Instances: []cluster.Instance{in("i-1"), in("i-2"), in("i-3"), in("i-4")}}, {ID: "gpu", Max: 2}}}
	old := now.Add(-time.Hour)
	s.Nodes = []*cluster.Node{
		{Name: "plane", ControlPlane: true, Ready: cluster.StatusTrue, Created: old},
		{Name: "a", ProviderID: "i-1", Ready: cluster.StatusTrue, Created: old},
		{Name: "b", ProviderID: "i-2", Created: now.Add(-time.Second)},
		{Name: "c", ProviderID: "i-3", Ready: cluster.StatusTrue, Created: old, Taints: []cluster.Taint{{Key: cluster.TaintToBeDeleted}}},
	}
	m := decision.Memory{Unneeded: map[cluster.NodeName]time.Time{"a": old}, Unregistered: map[cluster.InstanceID]time.Time{"i-4": old},
		Backoff: []decision.Backoff{{Group: "gpu", Cause: cluster.CauseQuota, Text: "no more", Until: now.Add(time.Minute)}}}
	policy := decision.Policy{MaxNodeStartupTime: time.Minute, MaxNodeProvisionTime: 15 * time.Minute}
	since := map[string]transition{}
	first := page(&s, decision.Plan{}, m, policy, since)
	text, err := YAML(first)
	if err != nil {
		t.Fatal(err)
	}
	const want = `time: "2026-11-21 12:00:00.000000005 +0000 UTC"
autoscalerStatus: Running
clusterWide:
  health:
    status: Healthy
    nodeCounts:
      registered:
        total: 4
        ready: 2
        notStarted: 1
        suspended: 0
        beingDeleted: 1
        unready:
          total: 0
          resourceUnready: 0
      longUnregistered: 1
      unregistered: 0
    lastProbeTime: "2026-11-21T12:00:00.000000005Z"
    lastTransitionTime: "2026-11-21T12:00:00.000000005Z"
  scaleUp:
    status: InProgress
    lastProbeTime: "2026-11-21T12:00:00.000000005Z"
    lastTransitionTime: "2026-11-21T12:00:00.000000005Z"
  scaleDown:
    status: CandidatesPresent
    candidates: 1
`
	if !strings.HasPrefix(string(text), want) {
		t.Errorf("%s\nwant\n%s", text, want)
	}
	for _, words := range []string{"  - name: workers\n    health:\n      status: Unhealthy\n", "cloudProviderTarget: 4\n      minSize: 1\n      maxSize: 9\n",
		"      status: Backoff\n      backoffInfo:\n        errorCode: quota\n        errorMessage: no more\n"} {
		if !strings.Contains(string(text), words) {
			t.Errorf("%s\nlacks\n%s", text, words)
		}
	}
	if again := first.at(now.Add(time.Hour)); !again.NodeGroup[0].Health.Probe.Equal(now.Add(time.Hour)) || !first.NodeGroup[0].Health.Probe.Equal(now) || !again.Cluster.Health.Transition.Equal(now) {
		t.Errorf("%+v: want the probe of an hour later alone", again)
	}
	s.Now = now.Add(time.Minute)
	if next := page(&s, decision.Plan{}, m, policy, since); !next.Cluster.Health.Transition.Equal(now) || !next.Cluster.Health.Probe.Equal(s.Now) {
		t.Errorf("%+v: want the transition of before and the probe of now", next.Cluster.Health.caTimes)
	}
}

// TestCoarseRoundHidesNothing: the page has one line for the whole cluster.
func TestCoarseRoundHidesNothing(t *testing.T) {
	coarse := decision.Held{Kind: "cluster", Rule: decision.RuleBudget, Why: "spent"}
	unhealthy := decision.Held{Kind: "cluster", Rule: decision.RuleUnhealthy, Why: "not Ready"}
	for _, c := range []struct {
		held          []decision.Held
		status, words string
	}{
		{[]decision.Held{coarse}, "Healthy", "H6: spent"},
		{[]decision.Held{unhealthy, coarse}, "Unhealthy", "H2: not Ready"},
		{[]decision.Held{coarse, unhealthy}, "Unhealthy", "H2: not Ready"},
	} {
		if status, words := clusterHealth(c.held); status != c.status || words != c.words {
			t.Errorf("%v: %s %s", c.held, status, words)
		}
	}
}

// TestStatusConfigMapIsWrittenOnChange: at once, then not within ten seconds, then on
// a change, and once a minute without one; gone when the agent stops.
func TestStatusConfigMapIsWrittenOnChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		log := logrus.NewEntry(logrus.New())
		r := NewStatusPage(kubetest.Client(client), NewChanges(log), func() (bool, string) { return true, "" })
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- r.Run(ctx, func() {}) }()
		written := func() int {
			synctest.Wait()
			n := 0
			for _, a := range client.Actions() {
				if a.GetVerb() == "update" {
					n++
				}
			}
			return n
		}
		round := func(target int) {
			r.Round(&cluster.Snapshot{Now: time.Now(), Groups: []cluster.NodeGroup{{ID: "g", Target: target}}}, decision.Plan{}, decision.Memory{}, decision.Policy{}, 1)
		}
		for i, step := range []struct {
			after  time.Duration
			target int
			writes int
		}{{0, 1, 1}, {time.Second, 2, 1}, {10 * time.Second, 2, 2}, {30 * time.Second, 2, 2}, {31 * time.Second, 2, 3}} {
			time.Sleep(step.after) // the bubble's own clock
			round(step.target)
			if got := written(); got != step.writes {
				t.Errorf("step %d: %d writes, want %d", i, got, step.writes)
			}
			if owed := !r.Due().IsZero(); owed != (i == 1) {
				t.Errorf("step %d: owes a page: %v", i, owed)
			}
		}
		cm, err := client.CoreV1().ConfigMaps("kube-system").Get(t.Context(), act.StatusObject.Name, metav1.GetOptions{})
		if err != nil || !strings.Contains(cm.Data["status"], "autoscalerStatus: Running") || cm.Annotations[annotationLastUpdated] == "" {
			t.Errorf("%+v, %v", cm, err)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if _, err := client.CoreV1().ConfigMaps("kube-system").Get(t.Context(), act.StatusObject.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("it is still there: %v", err)
		}
	})
}

// TestStatusPageTellsThatGroupsYAMLIsNotInForce: also where the cluster stands still.
func TestStatusPageTellsThatGroupsYAMLIsNotInForce(t *testing.T) {
	fault := ""
	sp := NewStatusPage(kubetest.Client(fake.NewClientset()), NewChanges(logrus.NewEntry(logrus.New())), nil)
	sp.SettingsFault = func() string { return fault }
	s := cluster.Snapshot{Now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
	sp.Round(&s, decision.Plan{}, decision.Memory{}, decision.Policy{}, 1)
	fault, s.Now = "groups.yaml:3: groups.w.prize: no such field", s.Now.Add(11*time.Second)
	sp.Refresh(&s, decision.Plan{}, decision.Memory{}, decision.Policy{}, 1)
	if got, want := sp.last.Message, "groups.yaml is not in force: "+fault; got != want {
		t.Errorf("message %q, want %q", got, want)
	}
	fault, s.Now = "", s.Now.Add(11*time.Second)
	if sp.Refresh(&s, decision.Plan{}, decision.Memory{}, decision.Policy{}, 1); sp.last.Message != "" {
		t.Errorf("message %q after the mistake was corrected", sp.last.Message)
	}
}
