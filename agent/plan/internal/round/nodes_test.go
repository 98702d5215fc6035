package round

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// marked gives a node the agent's mark, or somebody else's.
func marked(n *cluster.Node, ours bool) {
	n.Taints = append(n.Taints, cluster.Taint{Key: "a", Effect: "NoSchedule"}, cluster.Taint{Key: cluster.TaintToBeDeleted, Effect: "NoSchedule"})
	if ours {
		n.Annotations = map[string]string{cluster.AnnotationCordoned: "true"}
	}
}

// foreign makes a node one of no group.
func (l *ledger) foreign(n *cluster.Node) { n.ProviderID = "else" }

// starting makes the node young, in a group whose nodes have a label that it lacks.
func (l *ledger) starting(n *cluster.Node) {
	n.Created = l.ago(time.Minute)
	l.g().Template = cluster.Template{Spec: "m", Labels: map[string]string{"late": "yes"}}
	l.s.Classes = []cluster.PodClass{{NodeSelector: map[string]string{"late": "yes"}}}
}

var stateNames = map[NodeState]string{StateOut: "out", StateReady: "ready", StateUpcoming: "upcoming", StateMarked: "marked"}

// TestStateOf: the state of the node n-1, which is a day old; why pods get no room on it; and whether its Node object goes soon.
func TestStateOf(t *testing.T) {
	unready := func(l *ledger, n *cluster.Node, age time.Duration) {
		n.Ready, n.Created = cluster.StatusFalse, l.ago(age)
	}
	silent := func(l *ledger, n *cluster.Node, ago time.Duration) {
		unready(l, n, time.Minute)
		n.Ready, n.ReadySince = cluster.StatusUnknown, l.ago(ago)
	}
	for name, c := range map[string]struct {
		change func(l *ledger, n *cluster.Node)
		want   string
	}{
		"Ready":                                    {func(*ledger, *cluster.Node) {}, "ready"},
		"not Ready":                                {func(l *ledger, n *cluster.Node) { unready(l, n, time.Hour) }, "out [D2] node(s) were not ready"},
		"not Ready yet":                            {func(l *ledger, n *cluster.Node) { unready(l, n, 14*time.Minute) }, "upcoming"},
		"not Ready in its time":                    {func(l *ledger, n *cluster.Node) { unready(l, n, 15*time.Minute) }, "out [D2] node(s) were not ready"},
		"not Ready yet, and of no group":           {func(l *ledger, n *cluster.Node) { unready(l, n, time.Minute); l.foreign(n) }, "out [D2] node(s) were not ready"},
		"not Ready yet, and cordoned":              {func(l *ledger, n *cluster.Node) { unready(l, n, time.Minute); n.Unschedulable = true }, "out [D2] node(s) were not ready"},
		"silent for a moment":                      {func(l *ledger, n *cluster.Node) { silent(l, n, 59*time.Second) }, "upcoming"},
		"silent for a minute":                      {func(l *ledger, n *cluster.Node) { silent(l, n, time.Minute) }, "out [D2] node(s) were not ready"},
		"silent, nobody knows since when":          {func(l *ledger, n *cluster.Node) { silent(l, n, 0); n.ReadySince = time.Time{} }, "upcoming"},
		"not silent for a minute":                  {func(l *ledger, n *cluster.Node) { silent(l, n, time.Minute); n.Ready = cluster.StatusFalse }, "upcoming"},
		"starting":                                 {func(l *ledger, n *cluster.Node) { l.starting(n) }, "upcoming"},
		"it does not become it":                    {func(l *ledger, n *cluster.Node) { l.starting(n); n.Created = l.ago(time.Hour) }, "ready"},
		"starting, after the time to become Ready": {func(l *ledger, n *cluster.Node) { l.starting(n); l.g().Options.MaxNodeStartupTime = new(time.Second) }, "upcoming"},
		"starting and cordoned":                    {func(l *ledger, n *cluster.Node) { l.starting(n); n.Unschedulable = true }, "ready"},
		"starting and asked to go": {func(l *ledger, n *cluster.Node) {
			l.starting(n)
			n.Annotations = map[string]string{cluster.AnnotationRequested: "true"}
		}, "ready"},
		"starting, of no group":          {func(l *ledger, n *cluster.Node) { l.starting(n); l.foreign(n) }, "ready"},
		"young, and all that it will be": {func(l *ledger, n *cluster.Node) { l.starting(n); n.Labels = map[string]string{"late": "yes"} }, "ready"},
		"its machine is stopped":         {func(l *ledger, n *cluster.Node) { l.g().Instances[0].Phase = cluster.PhaseStopped }, "out [D16] node(s) whose instance is on its way out"},
		"its machine failed":             {func(l *ledger, n *cluster.Node) { l.g().Instances[0].Phase = cluster.PhaseFailed }, "out [D16] node(s) whose instance is on its way out"},
		"its machine is ended":           {func(l *ledger, n *cluster.Node) { l.g().Instances[0].Phase = cluster.PhaseDeleting }, "out [D16] node(s) whose instance is on its way out, will be gone"},
		"its machine is gone":            {func(l *ledger, n *cluster.Node) { l.g().Instances[0].Phase = cluster.PhaseGone }, "out [D16] node(s) whose instance is on its way out, will be gone"},
		"its machine is gone for long": {func(l *ledger, n *cluster.Node) {
			l.g().Instances[0].Phase = cluster.PhaseGone
			n.Ready, n.ReadySince = cluster.StatusUnknown, l.ago(15*time.Minute)
		}, "out [D2] node(s) were not ready"},
		"its machine is gone for minutes": {func(l *ledger, n *cluster.Node) {
			l.g().Instances[0].Phase = cluster.PhaseGone
			n.Ready, n.ReadySince = cluster.StatusUnknown, l.ago(14*time.Minute)
		}, "out [D2] node(s) were not ready, will be gone"},
		"its machine was told to go":         {func(l *ledger, n *cluster.Node) { l.m.Deleted = map[cluster.InstanceID]time.Time{"i-1": l.s.Now} }, "out [D16] node(s) whose instance is on its way out, will be gone"},
		"it is deleted":                      {func(_ *ledger, n *cluster.Node) { n.Deleting = true }, "out [D10] node(s) are being deleted, will be gone"},
		"it is deleted and marked":           {func(_ *ledger, n *cluster.Node) { n.Deleting = true; marked(n, true) }, "out [D10] node(s) are being deleted, will be gone"},
		"marked":                             {func(_ *ledger, n *cluster.Node) { marked(n, true) }, "marked, will be gone"},
		"marked and not Ready":               {func(_ *ledger, n *cluster.Node) { marked(n, true); n.Ready = cluster.StatusFalse }, "marked, will be gone"},
		"marked by somebody else":            {func(_ *ledger, n *cluster.Node) { marked(n, false) }, "out [D10] node(s) are marked for deletion by somebody else"},
		"marked, and not Ready, by somebody": {func(_ *ledger, n *cluster.Node) { marked(n, false); n.Ready = cluster.StatusFalse }, "out [D10] node(s) are marked for deletion by somebody else"},
		"marked, and the cloud lists it not": {func(l *ledger, n *cluster.Node) { marked(n, true); l.foreign(n) }, "out [D16] node(s) whose instance is on its way out, will be gone"},
		"marked, and its machine is stopped": {func(l *ledger, n *cluster.Node) { marked(n, true); l.g().Instances[0].Phase = cluster.PhaseStopped }, "out [D16] node(s) whose instance is on its way out"},
		"by somebody else, and not listed":   {func(l *ledger, n *cluster.Node) { marked(n, false); l.foreign(n) }, "out [D10] node(s) are marked for deletion by somebody else"},
		"cordoned by the agent, without a mark": {func(_ *ledger, n *cluster.Node) {
			n.Annotations = map[string]string{cluster.AnnotationCordoned: "true"}
		}, "ready"},
		"not Ready, cordoned by the agent, not listed": {func(l *ledger, n *cluster.Node) {
			n.Annotations = map[string]string{cluster.AnnotationCordoned: "true"}
			n.Ready = cluster.StatusFalse
			n.ReadySince = l.s.Now
			l.foreign(n)
		}, "out [D2] node(s) were not ready"},
	} {
		l := newLedger()
		l.s.Classes = []cluster.PodClass{{}}
		c.change(l, l.s.Nodes[0])
		w := l.count()
		n := &w.Nodes[w.ByName["n-1"]]
		got := stateNames[n.State]
		if n.State == StateOut {
			rule, why := w.NodeRefuses(w.ByName["n-1"], 0)
			got += " [" + rule + "] " + why
		}
		if w.BeingRemoved(n) {
			got += ", will be gone"
		}
		if got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestNodeRefuses: why a node takes no pod, as far as it itself is concerned.
func TestNodeRefuses(t *testing.T) {
	machine := cluster.Resources{MilliCPU: 2000, Memory: 1 << 30, Pods: 9}
	for name, c := range map[string]struct {
		change func(l *ledger, n *cluster.Node)
		want   string
	}{
		"it could":            {func(*ledger, *cluster.Node) {}, " it could"},
		"it lacks a label":    {func(l *ledger, _ *cluster.Node) { l.s.Classes[0].NodeSelector = map[string]string{"a": "b"} }, "F4 node(s) didn't match Pod's node affinity/selector"},
		"it lacks room":       {func(l *ledger, _ *cluster.Node) { l.s.Classes[0].Requests.MilliCPU = 2001 }, "F6 Insufficient cpu"},
		"it is drained":       {func(_ *ledger, n *cluster.Node) { marked(n, true) }, "D14 node(s) are being drained by the agent"},
		"once it has started": {func(l *ledger, n *cluster.Node) { n.Ready, n.Created = cluster.StatusFalse, l.ago(time.Minute) }, " it could, once it has started"},
		"what it will have once it has started": {func(l *ledger, n *cluster.Node) {
			n.Ready, n.Created, n.Allocatable = cluster.StatusFalse, l.ago(time.Minute), cluster.Resources{}
		}, " it could, once it has started"},
	} {
		l := newLedger()
		l.g().Template = cluster.Template{Spec: "m", Allocatable: machine, Capacity: machine}
		for _, n := range l.s.Nodes {
			n.Allocatable, n.Capacity = machine, machine
		}
		l.s.Classes = []cluster.PodClass{{Requests: cluster.Resources{MilliCPU: 2000, Pods: 1}}}
		c.change(l, l.s.Nodes[0])
		rule, why := l.count().NodeRefuses(0, 0)
		if got := rule + " " + why; got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestOptedOut: which annotations keep a node.
func TestOptedOut(t *testing.T) {
	for name, c := range map[string]struct {
		key, value string
		want       bool
	}{
		"no scale-down":         {cluster.AnnotationNoScaleDown, "true", true},
		"the word false":        {cluster.AnnotationNoScaleDown, "false", false},
		"no value":              {cluster.AnnotationKeep, "", true},
		"do not disrupt":        {cluster.AnnotationDoNotDisrupt, "true", true},
		"do not for a time":     {cluster.AnnotationDoNotDisrupt, "1h", false},
		"no scale-down, a time": {cluster.AnnotationNoScaleDown, "1h", true},
		"another":               {"else", "true", false},
	} {
		if got := OptedOut(&cluster.Node{Annotations: map[string]string{c.key: c.value}}); (got == "annotated "+c.key) != c.want || (got == "") == c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestTakes asks for classes and groups twice.
func TestTakes(t *testing.T) {
	l := newLedger()
	l.s.Groups = append(l.s.Groups, cluster.NodeGroup{ID: "x", ReadAt: l.s.Now, Template: cluster.Template{Labels: map[string]string{"a": "b"}}})
	l.s.Classes = []cluster.PodClass{{}, {NodeSelector: map[string]string{"a": "b"}}, {Tolerations: []cluster.Toleration{{Operator: "Exists"}}}}
	w := l.count()
	for range 2 {
		for _, c := range []struct {
			class, group int
			want         bool
		}{{0, 0, true}, {2, 0, true}, {0, 1, true}, {1, 0, false}, {1, 1, true}} {
			_, shape := w.Template(&w.Groups[c.group])
			if got := w.Takes(c.class, c.group, shape); got != c.want {
				t.Errorf("class %d on group %d: %v", c.class, c.group, got)
			}
		}
	}
}

// TestWaitsFor: a pod that is spread over hosts waits for a Node object that will be gone, where its constraint counts this Node.
func TestWaitsFor(t *testing.T) {
	spread := []cluster.Spread{{TopologyKey: "kubernetes.io/hostname", MaxSkew: 1, Selector: &cluster.Selector{}}}
	for name, c := range map[string]struct {
		change func(l *ledger, n *cluster.Node)
		want   bool
	}{
		"a node is drained":     {func(_ *ledger, n *cluster.Node) { marked(n, true) }, true},
		"none is":               {func(*ledger, *cluster.Node) {}, false},
		"taints are honoured":   {func(l *ledger, n *cluster.Node) { marked(n, true); l.s.Classes[0].Spread[0].HonorTaints = true }, false},
		"the pod is not spread": {func(l *ledger, n *cluster.Node) { marked(n, true); l.s.Classes[0].Spread = nil }, false},
	} {
		l := newLedger()
		l.s.Classes = []cluster.PodClass{{Spread: append([]cluster.Spread(nil), spread...)}}
		n := l.s.Nodes[1]
		n.Labels = map[string]string{"kubernetes.io/hostname": "n-2"}
		c.change(l, n)
		if got := l.count().WaitsFor(0); (got != nil) != c.want || got != nil && got.Name != "n-2" {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestReleaseInterrupted: which pods of the node n-1 are pending again because its machine goes, and whether it is drained.
func TestReleaseInterrupted(t *testing.T) {
	goes := func(l *ledger) {
		l.g().Instances[0].Phase, l.g().Instances[0].Interruption = cluster.PhaseDeleting, &cluster.Interruption{}
	}
	gone := func(l *ledger) { l.g().Instances[0].Phase = cluster.PhaseGone }
	const released = "released a, drained"
	for name, c := range map[string]struct {
		change func(l *ledger, n *cluster.Node)
		want   string
	}{
		"nothing goes":        {func(*ledger, *cluster.Node) {}, ""},
		"the cloud ends it":   {func(l *ledger, _ *cluster.Node) { goes(l) }, released},
		"so does its owner":   {func(l *ledger, _ *cluster.Node) { goes(l); l.g().Instances[0].Interruption = nil }, ""},
		"the notice is old":   {func(l *ledger, _ *cluster.Node) { goes(l); l.g().Instances[0].Phase = cluster.PhaseRunning }, ""},
		"it is a leader":      {func(l *ledger, n *cluster.Node) { goes(l); n.ControlPlane = true }, ""},
		"its Node is deleted": {func(l *ledger, n *cluster.Node) { goes(l); n.Deleting = true }, ""},
		"the facts are old":   {func(l *ledger, _ *cluster.Node) { goes(l); l.s.Stale = "no answer" }, ""},
		"the agent has told it to": {func(l *ledger, _ *cluster.Node) {
			goes(l)
			l.m.Deleted = map[cluster.InstanceID]time.Time{"i-1": l.s.Now}
		}, ""},
		"its group is left alone":  {func(l *ledger, _ *cluster.Node) { goes(l); l.g().Pause = &cluster.Pause{} }, ""},
		"it is of no group":        {func(l *ledger, n *cluster.Node) { goes(l); l.foreign(n) }, ""},
		"it is gone":               {func(l *ledger, _ *cluster.Node) { gone(l) }, "released a"},
		"a leader is gone":         {func(l *ledger, n *cluster.Node) { gone(l); n.ControlPlane = true }, ""},
		"it is gone, by old facts": {func(l *ledger, _ *cluster.Node) { gone(l); l.s.Stale = "no answer" }, ""},
		"two go": {func(l *ledger, _ *cluster.Node) {
			goes(l)
			l.g().Instances[1].Phase = cluster.PhaseGone
			l.s.Nodes[1].Pods = []cluster.Pod{{Key: "c", Node: "n-2", Owner: &cluster.Owner{}}}
		}, "released a c, drained"},
		"a pod without a controller":  {func(l *ledger, n *cluster.Node) { goes(l); n.Pods[0].Owner = nil }, "kept a, drained"},
		"a pod that is deleted":       {func(l *ledger, n *cluster.Node) { goes(l); n.Pods[0].Deleting = cluster.At(l.s.Now) }, "kept a, drained"},
		"a DaemonSet's pod":           {func(l *ledger, n *cluster.Node) { goes(l); n.Pods[0].Owner.Kind = "DaemonSet" }, "kept a, drained"},
		"a pod that does not matter":  {func(l *ledger, n *cluster.Node) { goes(l); l.p.ExpendablePodsCutoff = 1 }, "kept a, drained"},
		"a pod that is for this node": {func(l *ledger, n *cluster.Node) { goes(l); l.s.Classes[0].NodeName = "n-1" }, "kept a, drained"},
	} {
		l := newLedger()
		l.s.Classes = []cluster.PodClass{{}}
		n := l.s.Nodes[0]
		n.Pods = []cluster.Pod{{Key: "a", Node: n.Name, Owner: &cluster.Owner{}}}
		c.change(l, n)
		was := fmt.Sprint(n.Pods, l.s.Pods)
		w := New(new(Cache), &l.s, &l.m, &l.p)
		w.Remember()
		w.Index()
		var out []string
		released := ""
		for _, pod := range w.Snapshot.Pods {
			if pod.Node != "" || pod.Unschedulable.IsZero() {
				t.Errorf("%s: %+v is not pending", name, pod)
			}
			released += " " + string(pod.Key)
		}
		if released != "" {
			out = append(out, "released"+released)
		}
		x := &w.Nodes[w.ByName["n-1"]]
		if len(x.Pods) > 0 && (released != "" || x.Original != nil) {
			out = append(out, "kept "+string(x.Pods[0].Key))
		}
		if x.Original != nil {
			out = append(out, "drained")
			if len(x.Original.Pods) != 1 {
				t.Errorf("%s: the drain has lost the pods", name)
			}
		}
		if got := strings.Join(out, ", "); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
		if is := fmt.Sprint(n.Pods, l.s.Pods); is != was {
			t.Errorf("%s: the Snapshot was changed: %s, before %s", name, is, was)
		}
	}
}

// TestTerminatingForTooLong: a pod that is deleted counts as gone half a minute after its grace.
func TestTerminatingForTooLong(t *testing.T) {
	l := newLedger()
	w := l.count()
	for ago, want := range map[time.Duration]bool{TerminatingSlack: false, TerminatingSlack + time.Second: true, time.Second: false} {
		if got := w.Ignored(&cluster.Pod{Owner: &cluster.Owner{}, Deleting: cluster.At(l.ago(ago))}); got != want {
			t.Errorf("%s after its grace: ignored %v", ago, got)
		}
	}
	if w.Ignored(&cluster.Pod{Owner: &cluster.Owner{}}) {
		t.Error("a pod that runs is ignored")
	}
}

// TestTaint finds a taint by its key.
func TestTaint(t *testing.T) {
	n := &cluster.Node{Taints: []cluster.Taint{{Key: "a", Value: "1"}, {Key: "b", Value: "2"}}}
	if b, has := Taint(n, "b"); !has || b.Value != "2" {
		t.Errorf("%v %v", b, has)
	}
	if _, has := Taint(n, "c"); has {
		t.Error("a taint that is not there")
	}
}
