package days

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// The acts of a scaler: the same for all of them. An error is the cloud's or the API server's
// refusal, with its kind.

type refusal struct{ kind, text string }

func (r *refusal) Error() string { return r.text }

// group is the group of an ID; nil: there is none.
func (w *world) group(id cluster.GroupID) *group {
	i := slices.IndexFunc(w.groups, func(g *group) bool { return g.ID == id })
	if i < 0 {
		return nil
	}
	return w.groups[i]
}

// node is the node of a name; nil: there is none.
func (w *world) node(name string) *node {
	i := slices.IndexFunc(w.nodes, func(n *node) bool { return n.object.Name == name })
	if i < 0 {
		return nil
	}
	return w.nodes[i]
}

// grow sets a group's target to a higher one.
func (w *world) grow(g *group, to int, why string, pods []cluster.PodKey, order bool) {
	w.log(fmt.Sprintf("%s grow %s %d->%d %s", w.clock.Now.Format("15:04:05"), g.ID, g.Target, to, why))
	w.report.bought(w, g, to-g.Target, pods, order)
	g.Target = to
	w.launch(g)
}

// mark cordons a node and taints it for deletion, or takes that back.
func (w *world) mark(n *node, on bool) {
	w.untaint(n, cluster.TaintToBeDeleted)
	n.object.Spec.Unschedulable, n.object.Annotations = on, nil
	if on {
		n.object.Spec.Taints = append(n.object.Spec.Taints, corev1.Taint{Key: cluster.TaintToBeDeleted, Value: fmt.Sprint(w.clock.Now.Unix()), Effect: corev1.TaintEffectNoSchedule})
		n.object.Annotations = map[string]string{cluster.AnnotationCordoned: "true"}
	} else {
		w.kick(true)
	}
	w.putNode(n)
}

// soften asks kube-scheduler to prefer other nodes, or takes that back.
func (w *world) soften(n *node, on bool) {
	if on == w.tainted(n, cluster.TaintDeletionCandidate) {
		return
	}
	w.untaint(n, cluster.TaintDeletionCandidate)
	if on {
		n.object.Spec.Taints = append(n.object.Spec.Taints, corev1.Taint{Key: cluster.TaintDeletionCandidate, Value: fmt.Sprint(w.clock.Now.Unix()), Effect: corev1.TaintEffectPreferNoSchedule})
	}
	w.putNode(n)
}

// evict is the Eviction API.
func (w *world) evict(p *pod) error {
	s := p.service
	if p.deleting {
		return nil
	}
	if s.Budget && s.allowed < 1 {
		return &refusal{"TooManyRequests", "the budget allows no disruption"}
	}
	w.log(fmt.Sprintf("%s evict %s from %s", w.clock.Now.Format("15:04:05"), p.object.Name, p.object.Spec.NodeName))
	if w.clock.Now.After(w.from) {
		w.report.Evictions++
	}
	runs := p.runs
	w.evicting = true
	defer func() { w.evicting = false }()
	w.remove(p)
	if s.Job {
		w.create(s, runs) // begins anew
	}
	w.budget(s)
	w.reconcile(s)
	return nil
}

// terminate ends an instance and lowers its group's target, unless pods run on it.
func (w *world) terminate(m *machine, why string) error {
	if m == nil || !m.ended.IsZero() {
		return nil // idempotent
	}
	if n := m.node; n != nil {
		for _, p := range n.pods {
			if !p.deleting {
				return &refusal{"conflict", fmt.Sprintf("pod %s has come to node %s", p.object.Name, n.object.Name)}
			}
		}
	}
	if m.group.Target <= m.group.Min {
		return &refusal{"invalid", "the group is at its minimum"}
	}
	w.log(fmt.Sprintf("%s terminate %s %s %s", w.clock.Now.Format("15:04:05"), m.group.ID, m.NodeNames[0], why))
	m.group.Target--
	m.group.removed = w.clock.Now
	m.group.dear = m.dear
	m.Phase, m.ended = cluster.PhaseDeleting, w.clock.Now
	w.report.ran(w, m)
	w.launch(m.group) // the cloud keeps the target
	w.clock.After(w.between(15*time.Second, 40*time.Second), func() { w.vanish(m) })
	return nil
}
