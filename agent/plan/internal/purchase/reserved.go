package purchase

import (
	"cmp"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// podRun are pods of one class.
type podRun struct{ Class, N int }

// content is the pods of one upcoming machine that still wait.
type content struct {
	Group, Machine int
	Pods           []podRun
	Node           int // of the round, where some of its pods run already; -1: none do
}

// machineNumber is an upcoming machine as the Memory names it.
type machineNumber struct{ group, machine int }

// list gathers contents.
type list struct {
	all []content
	w   *round.State
	at  map[machineNumber]int
}

func (l *list) add(m machineNumber, class, n int) {
	i, known := l.at[m]
	if !known {
		i = len(l.all)
		l.at[m] = i
		l.all = append(l.all, content{Group: m.group, Machine: m.machine, Node: -1})
	}
	c := &l.all[i]
	if last := len(c.Pods) - 1; last >= 0 && c.Pods[last].Class == class {
		c.Pods[last].N += n
	} else {
		c.Pods = append(c.Pods, podRun{class, n})
	}
}

// contentsOf are the contents of the Memory, by group and machine. It costs the reservations, the pods that wait
// and the pods of nodes that are upcoming or have just become Ready.
func contentsOf(w *round.State) []content {
	of := make(map[cluster.PodKey]machineNumber)
	for _, r := range w.Memory.Reservations {
		if g, known := w.ByID[r.Group]; known && r.Machine > 0 {
			for _, key := range r.Pods {
				of[key] = machineNumber{g, r.Machine}
			}
		}
	}
	if len(of)+len(w.Memory.MissingByMachine) == 0 {
		return nil
	}
	l := list{w: w, at: make(map[machineNumber]int)}
	missing := missingByOwner(w)
	for i := range w.Demands {
		k := &w.Demands[i]
		if !k.Buys {
			continue
		}
		others := k.Expected
		for _, key := range k.Keys {
			if m, has := of[key]; has {
				l.add(m, k.Class, 1)
			} else if w.ReservedTo(key) == "" {
				others++ // its controller may have made it since
			}
		}
		l.addMissing(missing[k.Owner], k.Class, others)
	}
	l.findNodes(of)
	out := l.all
	slices.SortFunc(out, func(a, b content) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Machine, b.Machine))
	})
	return out
}

// missingPods are pods of one controller that count on an upcoming machine without a name.
type missingPods struct {
	machineNumber
	n int
}

// missingByOwner are the pods that controllers had still to make when machines were bought for them.
func missingByOwner(w *round.State) map[cluster.UID][]missingPods {
	out := make(map[cluster.UID][]missingPods)
	for _, r := range w.Memory.MissingByMachine {
		if g, known := w.ByID[r.Group]; known && r.Machine > 0 {
			out[r.Owner] = append(out[r.Owner], missingPods{machineNumber{g, r.Machine}, r.Pods})
		}
	}
	return out
}

// addMissing adds at most so many pods of a class, and takes them off the list.
func (l *list) addMissing(from []missingPods, class, most int) {
	for i := range from {
		if n := min(from[i].n, most); n > 0 {
			l.add(from[i].machineNumber, class, n)
			from[i].n -= n
			most -= n
		}
	}
}

// findNodes finds the nodes where some pods of a content run already.
func (l *list) findNodes(of map[cluster.PodKey]machineNumber) {
	w := l.w
	for _, i := range w.NewNodes() {
		for p := range w.Nodes[i].Pods {
			m := of[w.Nodes[i].Pods[p].Key]
			if k, waits := l.at[m]; waits && m.group == w.Nodes[i].Group && l.all[k].Node < 0 {
				l.all[k].Node = i
			}
		}
	}
}
