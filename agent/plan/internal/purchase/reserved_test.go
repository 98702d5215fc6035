package purchase

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

var now = time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)

// reservedTo counts pods, by their names, on a machine of a group.
func reservedTo(g cluster.GroupID, machine int, pods ...cluster.PodKey) decision.Reservation {
	return decision.Reservation{Group: g, Machine: machine, Pods: pods}
}

// missingOn counts pods that are not made yet on a machine of a group.
func missingOn(g cluster.GroupID, machine, pods int) decision.MissingReservation {
	return decision.MissingReservation{Group: g, Machine: machine, Owner: "rs", Pods: pods}
}

// TestOf: the pods a1, a2, b1 and b2 wait, of classes 0 and 1, and c1, of which nothing is bought; the pods of class 1 are of a controller.
func TestOf(t *testing.T) {
	type bound = [2]string // a pod and the node that it runs on; the nodes n1 and n2 are of group g, z1 of group h
	for name, c := range map[string]struct {
		reserved []decision.Reservation
		missing  []decision.MissingReservation
		running  []bound
		want     string
	}{
		"nothing is reserved":      {nil, nil, nil, ""},
		"one machine":              {[]decision.Reservation{reservedTo("g", 1, "a1", "a2", "b1")}, nil, nil, " g1[0x2 1x1]"},
		"by two reservations":      {[]decision.Reservation{reservedTo("g", 1, "a1"), reservedTo("g", 1, "a2")}, nil, nil, " g1[0x2]"},
		"machines of two groups":   {[]decision.Reservation{reservedTo("h", 1, "a1"), reservedTo("g", 2, "a2"), reservedTo("g", 1, "b1")}, nil, nil, " g1[1x1] g2[0x1] h1[0x1]"},
		"a group as a whole":       {[]decision.Reservation{reservedTo("g", 0, "a1")}, nil, nil, ""},
		"a group that is gone":     {[]decision.Reservation{reservedTo("gone", 1, "a1")}, nil, nil, ""},
		"pods that buy nothing":    {[]decision.Reservation{reservedTo("g", 1, "a1", "c1")}, nil, nil, " g1[0x1]"},
		"pods that have been made": {nil, []decision.MissingReservation{missingOn("g", 1, 2)}, nil, " g1[1x2]"},
		"more than have been made": {nil, []decision.MissingReservation{missingOn("g", 1, 1), missingOn("g", 2, 5), missingOn("g", 3, 1)}, nil, " g1[1x1] g2[1x1]"},
		"beside pods with a name":  {[]decision.Reservation{reservedTo("g", 1, "b1")}, []decision.MissingReservation{missingOn("g", 1, 5)}, nil, " g1[1x2]"},
		"beside a group's pods":    {[]decision.Reservation{reservedTo("g", 0, "b1")}, []decision.MissingReservation{missingOn("g", 1, 5)}, nil, " g1[1x1]"},
		"missing, of no machine":   {nil, []decision.MissingReservation{missingOn("g", 0, 2)}, nil, ""},
		"missing, of no group":     {nil, []decision.MissingReservation{missingOn("gone", 1, 2)}, nil, ""},
		"none is missing":          {nil, []decision.MissingReservation{missingOn("g", 1, 0)}, nil, ""},
		"some run":                 {[]decision.Reservation{reservedTo("g", 1, "a1", "r1")}, nil, []bound{{"r1", "n2"}}, " g1[0x1]n2"},
		"on two nodes":             {[]decision.Reservation{reservedTo("g", 1, "a1", "r1", "r2")}, nil, []bound{{"r1", "n2"}, {"r2", "n1"}}, " g1[0x1]n1"},
		"on a node of another":     {[]decision.Reservation{reservedTo("g", 1, "a1", "r1")}, nil, []bound{{"r1", "z1"}}, " g1[0x1]"},
		"all of another one run":   {[]decision.Reservation{reservedTo("g", 1, "a1"), reservedTo("g", 2, "r1")}, nil, []bound{{"r1", "n2"}}, " g1[0x1]"},
		"pods that count on none":  {[]decision.Reservation{reservedTo("g", 1, "a1")}, nil, []bound{{"r1", "n2"}}, " g1[0x1]"},
	} {
		s := cluster.Snapshot{Now: now, Classes: []cluster.PodClass{{Namespace: "a"}, {Namespace: "b"}, {Namespace: "c"}}}
		for class, keys := range [][]cluster.PodKey{{"a1", "a2"}, {"b1", "b2"}, {"c1"}} {
			for _, key := range keys {
				pod := cluster.Pod{Key: key, Class: class, Created: cluster.At(now), Unschedulable: cluster.At(now)}
				switch class {
				case 1:
					pod.Owner = &cluster.Owner{Kind: "ReplicaSet", UID: "rs"}
				case 2:
					pod.Unschedulable = 0
				}
				s.Pods = append(s.Pods, pod)
			}
		}
		s.Groups = []cluster.NodeGroup{{ID: "g", ReadAt: now}, {ID: "h", ReadAt: now}}
		for i, id := range []string{"n1", "n2", "z1"} {
			g := &s.Groups[i/2]
			g.Instances = append(g.Instances, cluster.Instance{ID: cluster.InstanceID("x:///" + id), Phase: cluster.PhaseRunning, Member: true, Created: now})
			n := &cluster.Node{Name: cluster.NodeName(id), ProviderID: "x:///" + id, Created: now, Ready: cluster.StatusTrue, ReadySince: now}
			for _, b := range c.running {
				if b[1] == id {
					n.Pods = append(n.Pods, cluster.Pod{Key: cluster.PodKey(b[0]), Node: n.Name, Created: cluster.At(now)})
				}
			}
			s.Nodes = append(s.Nodes, n)
		}
		m := decision.Memory{Reservations: c.reserved, MissingByMachine: c.missing, ReservedMissing: map[string]int{round.MissingPodsKey("g", "rs"): 2}}
		w := round.New(new(round.Cache), &s, &m, &decision.Policy{})
		w.Index()
		w.Account()
		w.Gather()
		if got := show(w, contentsOf(w)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// show writes contents as " g1[0x2 1x1]n2": two pods of class 0 and one of class 1 on the first machine of group g, which is node n2.
func show(w *round.State, list []content) string {
	out := ""
	for _, c := range list {
		out += fmt.Sprintf(" %s%d[", w.Groups[c.Group].ID, c.Machine)
		var runs []string
		for _, r := range c.Pods {
			runs = append(runs, fmt.Sprintf("%dx%d", r.Class, r.N))
		}
		if out += strings.Join(runs, " ") + "]"; c.Node >= 0 {
			out += string(w.Nodes[c.Node].Name)
		}
	}
	return out
}
