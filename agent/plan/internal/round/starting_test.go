package round

import (
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// TestTellStarting: what is said and remembered of the start of the node n-1, and since when kube-scheduler can use it.
func TestTellStarting(t *testing.T) {
	passing := []cluster.Taint{{Key: "start", Effect: "NoSchedule"}}
	// remembered is a start that is over, or whose taint is still there.
	remembered := func(l *ledger, passed time.Duration) {
		start := decision.Start{Taints: passing}
		if passed > 0 {
			start = decision.Start{Passed: l.ago(passed)}
		}
		l.m.Starting = map[cluster.NodeName]decision.Start{"n-1": start}
	}
	tainted := func(l *ledger, n *cluster.Node, age time.Duration) {
		n.Created, n.Taints = l.ago(age), passing
	}
	for name, c := range map[string]struct {
		change func(l *ledger, n *cluster.Node)
		want   string
	}{
		"an old node":                     {func(*ledger, *cluster.Node) {}, ""},
		"starting":                        {func(l *ledger, n *cluster.Node) { tainted(l, n, time.Minute) }, "starts, I6"},
		"not Ready yet":                   {func(l *ledger, n *cluster.Node) { tainted(l, n, time.Minute); n.Ready = cluster.StatusFalse }, ""},
		"Ready, of what nothing is known": {func(l *ledger, n *cluster.Node) { tainted(l, n, time.Hour) }, ""},
		"it has just passed":              {func(l *ledger, n *cluster.Node) { remembered(l, 0) }, "passed 0s"},
		"it has passed":                   {func(l *ledger, n *cluster.Node) { remembered(l, 9*time.Second) }, "passed 9s"},
		"it has passed a while ago":       {func(l *ledger, n *cluster.Node) { remembered(l, 10*time.Second) }, ""},
		"it has not passed in its time":   {func(l *ledger, n *cluster.Node) { tainted(l, n, time.Hour); remembered(l, 0) }, "overdue, I7"},
		"its group says nothing of it": {func(l *ledger, n *cluster.Node) {
			tainted(l, n, time.Minute)
			remembered(l, 0)
			l.g().Template.Taints = passing
		}, ""},
		"it is of no group any more": {func(l *ledger, n *cluster.Node) { remembered(l, 0); l.foreign(n) }, ""},
		"it is not Ready any more":   {func(l *ledger, n *cluster.Node) { remembered(l, 0); n.Ready = cluster.StatusFalse }, ""},
	} {
		l := newLedger()
		l.s.Classes = []cluster.PodClass{{}}
		l.g().Template.Spec = "m"
		n := l.s.Nodes[0]
		n.ReadySince = l.ago(time.Minute)
		c.change(l, n)
		w := l.count()
		w.Plan.Held = nil
		w.TellStarting()
		start, known := w.Next.Starting["n-1"]
		var out []string
		switch {
		case start.Overdue:
			out = append(out, "overdue")
		case !start.Passed.IsZero():
			out = append(out, "passed "+w.Now.Sub(start.Passed).String())
		case known:
			out = append(out, "starts")
		}
		for _, h := range w.Plan.Held {
			out = append(out, h.Rule)
		}
		if got := strings.Join(out, ", "); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
		since := n.ReadySince
		if start.Passed.After(since) {
			since = start.Passed
		}
		if got := w.UsableSince(&w.Nodes[0]); got != since {
			t.Errorf("%s: usable since %s, want %s", name, got, since)
		}
	}
}

// TestTemplateChanges: what a node still lacks is worked out anew when its group has another template.
func TestTemplateChanges(t *testing.T) {
	l, cache := newLedger(), new(Cache)
	l.starting(l.s.Nodes[0])
	for label, want := range map[string]NodeState{"late": StateUpcoming, "": StateReady} {
		l.g().Template.Labels = nil
		if label != "" {
			l.g().Template.Labels = map[string]string{label: "yes"}
		}
		w := New(cache, &l.s, &l.m, &l.p)
		w.Index()
		if got := w.Nodes[0].State; got != want {
			t.Errorf("with the label %q in the template the node is %s", label, stateNames[got])
		}
	}
}
