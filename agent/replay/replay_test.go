package replay

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan"
	"github.com/autoscaler-agent/autoscaler-agent/internal/flight"
)

// recorded is one round of 300 pending pods, packed as the agent does it.
func recorded(t *testing.T, tamper func(*decision.Data)) []byte {
	t.Helper()
	now := time.Date(2026, 11, 21, 12, 0, 0, 123456789, time.FixedZone("", 3600))
	amount := cluster.Resources{MilliCPU: 4000, Memory: 16 << 30, Pods: 110}
	s := cluster.Snapshot{Now: now, Classes: []cluster.PodClass{{Namespace: "default", Requests: cluster.Resources{MilliCPU: 500, Memory: 1 << 30, Pods: 1}}}}
	for _, id := range []cluster.GroupID{"b", "a"} {
		s.Groups = append(s.Groups, cluster.NodeGroup{ID: id, Max: 20, ReadAt: now, Template: cluster.Template{Spec: "lt", Capacity: amount, Allocatable: amount}})
	}
	for i := range 300 {
		s.Pods = append(s.Pods, cluster.Pod{Key: cluster.PodKey("default/p-" + string(rune('a'+i%26)) + strings.Repeat("x", i/26)), Created: cluster.At(now), Unschedulable: cluster.At(now)})
	}
	policy := decision.Policy{Expander: "least-waste", MaxNodeProvisionTime: 15 * time.Minute, ScaleDown: true, ScaleDownUnready: true, FreshFor: time.Minute}
	memory := decision.Memory{Unneeded: map[cluster.NodeName]time.Time{"gone": now}}
	p, after := plan.Decide(s, memory, policy)
	d := p.Data()
	if tamper != nil {
		tamper(&d)
	}
	b, err := flight.Pack("v1", s, memory, policy, d, after, p.String())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestReplayIsBitForBit(t *testing.T) {
	got, err := Rounds(bytes.NewReader(recorded(t, nil)), nil)
	if err != nil || len(got) != 1 || !got[0].Equal || len(got[0].Now.Actions) == 0 {
		t.Fatalf("%+v, %v", got, err)
	}
	if x := got[0].Explain("group", "a"); !x.Found {
		t.Errorf("%+v", x)
	}
}

func TestReplayShowsADifference(t *testing.T) {
	got, err := Rounds(bytes.NewReader(recorded(t, func(d *decision.Data) { *d.Actions[0].To++; d.Actions[0].Text = "grow other" })), nil)
	if err != nil || got[0].Equal || got[0].Diff[0] != "- grow other" || !strings.HasPrefix(got[0].Diff[1], "+ grow ") {
		t.Fatalf("%+v, %v", got, err)
	}
}

func TestReplayWithAnotherPolicy(t *testing.T) {
	got, err := Rounds(bytes.NewReader(recorded(t, nil)), []string{"MAX_NODES_TOTAL=3", "AUTOSCALER_SCALING_SCALE_DOWN=false", "BackoffMax=1h"})
	if err != nil || got[0].Equal || !strings.Contains(strings.Join(got[0].Diff, "\n"), "limit of 3 nodes") {
		t.Fatalf("%+v, %v", got, err)
	}
	for _, bad := range []string{"MAX_NODES_TOTAL", "MAX_NODES_TOTAL=x", "NO_SUCH=1", "UNNEEDED_FOR=5"} {
		if _, err := Rounds(bytes.NewReader(recorded(t, nil)), []string{bad}); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
}
