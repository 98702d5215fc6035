package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// pool is a node group of the simulated cloud and its habits.
type pool struct {
	cluster.NodeGroup
	price float64 // an hour

	boot    time.Duration // median from launch to the Node's registration
	ready   time.Duration // from registration to Ready, at most
	never   float64       // share of machines that never join
	dry     func(time.Time) bool
	dryText string

	machines []*machine
	failures []cluster.Failure
	launched bool // a launch is under way
	removed  []removal
}

// machine is one instance.
type machine struct {
	cluster.Instance
	pool  *pool
	node  *node
	ended time.Time
}

// node is a Node and what runs on it.
type node struct {
	cluster.Node
	machine *machine
	pods    []*pod
	used    cluster.Resources
	taken   bool // its machine was taken away by the cloud
}

func (n *node) marked() bool {
	return slices.ContainsFunc(n.Taints, func(t cluster.Taint) bool { return t.Key == cluster.TaintToBeDeleted })
}

// slowest is the longest that a machine of a pool that does join may take to be Ready.
func (p *pool) slowest() time.Duration { return launchMost + 2*p.boot + p.ready }

func (w *world) slowestBoot() time.Duration {
	var most time.Duration
	for _, p := range w.pools {
		most = max(most, p.slowest())
	}
	return most
}

const (
	launchLeast = time.Second // from a raised target to the instance
	launchMost  = 5 * time.Second
)

// pool adds a node group.
func (w *world) pool(name string, cores, gib int64, price float64, low, high int, change func(*pool)) *pool {
	capacity := cluster.Resources{MilliCPU: cores * 1000, Memory: gib << 30, EphemeralStorage: 100 << 30, Pods: 110}
	allocatable := cluster.Resources{MilliCPU: cores*1000 - 200, Memory: gib<<30 - 612<<20, EphemeralStorage: 90 << 30, Pods: 110}
	p := &pool{price: price, boot: 40 * time.Second, ready: 12 * time.Second}
	p.NodeGroup = cluster.NodeGroup{ID: cluster.GroupID(name), Min: low, Max: high, Price: price, Template: cluster.Template{Spec: "lt-1", Capacity: capacity, Allocatable: allocatable,
		Labels: map[string]string{"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", "pool": name, "topology.kubernetes.io/zone": "zone-a"}}}
	if change != nil {
		change(p)
	}
	w.pools = append(w.pools, p)
	return p
}

// members are the machines that the pool's target counts.
func (p *pool) members() int {
	n := 0
	for _, m := range p.machines {
		if m.Member && m.Phase != cluster.PhaseDeleting && m.Phase != cluster.PhaseGone {
			n++
		}
	}
	return n
}

// fulfil launches what a pool lacks to its target, as a cloud's group does by itself.
func (w *world) fulfil(p *pool) {
	if p.launched || p.members() >= p.Target {
		return
	}
	p.launched = true
	w.after(w.between(launchLeast, launchMost), func() {
		p.launched = false
		if p.dry != nil && p.dry(w.clock.Now) {
			p.failures = append([]cluster.Failure{{Cause: cluster.CauseCapacity, Text: p.dryText, At: w.clock.Now}}, p.failures...)
			w.agent.cloudMoved(w)
			w.after(time.Minute, func() { w.fulfil(p) })
			return
		}
		for p.members() < p.Target {
			p.failures = nil
			w.launch(p)
		}
		w.agent.cloudMoved(w)
	})
}

// launch starts one machine.
func (w *world) launch(p *pool) {
	w.serial++
	m := &machine{pool: p, Instance: cluster.Instance{ID: cluster.InstanceID(fmt.Sprintf("aws:///zone-a/i-%08d", w.serial)), Phase: cluster.PhasePending,
		Created: w.clock.Now, Zone: "zone-a", Member: true, NodeNames: []string{fmt.Sprintf("ip-%08d", w.serial)}}}
	p.machines = append(p.machines, m)
	w.report.Machines++
	w.after(12*time.Second, func() {
		if m.Phase == cluster.PhasePending {
			m.Phase = cluster.PhaseRunning
		}
	})
	if w.r.Float64() < p.never {
		w.report.NeverJoined++
		w.log("cloud: %s will never join", m.ID)
		return
	}
	// A median with a tail to the right: most take about the median, some twice that.
	boot := time.Duration(float64(p.boot) * min(0.8+0.4*w.r.ExpFloat64()*0.7, 2))
	w.after(boot, func() { w.register(m) })
}

// register makes the Node of a machine, with the taints of its start.
func (w *world) register(m *machine) {
	if m.Phase != cluster.PhaseRunning {
		return
	}
	name := cluster.NodeName(m.NodeNames[0])
	t := &m.pool.Template
	labels := map[string]string{"kubernetes.io/hostname": string(name)}
	for k, v := range t.Labels {
		labels[k] = v
	}
	n := &node{machine: m, Node: cluster.Node{Name: name, UID: cluster.UID(name), ProviderID: string(m.ID), Created: w.clock.Now, Labels: labels,
		Taints:   append(slices.Clone(t.Taints), cluster.Taint{Key: "node.kubernetes.io/not-ready", Effect: "NoSchedule"}),
		Capacity: t.Capacity, Allocatable: t.Allocatable, Ready: cluster.StatusFalse, ReadySince: w.clock.Now}}
	m.node = n
	w.nodes = append(w.nodes, n)
	w.byName[name] = n
	for i := range w.daemons {
		w.daemonPod(n, &w.daemons[i])
	}
	w.starts.begin(w, n)
	w.agent.soon(w)
	w.after(w.between(m.pool.ready/3, m.pool.ready), func() {
		if n.taken || w.byName[name] != n {
			return
		}
		n.Ready, n.ReadySince = cluster.StatusTrue, w.clock.Now
		n.Taints = slices.DeleteFunc(slices.Clone(n.Taints), func(x cluster.Taint) bool { return x.Key == "node.kubernetes.io/not-ready" })
		w.report.boot(w.clock.Now.Sub(m.Created))
		w.agent.soon(w)
		w.scheduler.flush(w)
	})
}

// daemonPod is the pod that a DaemonSet has on every node.
func (w *world) daemonPod(n *node, ds *cluster.DaemonSet) {
	w.serial++
	p := &pod{boundAt: w.clock.Now}
	p.Pod = cluster.Pod{Key: cluster.PodKey(fmt.Sprintf("%s-%06d", ds.Key, w.serial)), UID: cluster.UID(fmt.Sprint("pod-", w.serial)), Class: ds.Class, Node: n.Name,
		Created: cluster.At(w.clock.Now), Owner: &cluster.Owner{Kind: "DaemonSet", Name: string(ds.Key), UID: ds.UID}, GracePeriod: 30}
	w.pods = append(w.pods, p)
	w.scheduler.place(w, n, p)
}

// terminate is the cloud's part of a Terminate: the target goes down at once, the
// machine after a while, its Node when the node cleaner has seen that.
func (w *world) terminate(m *machine) {
	m.pool.Target--
	m.Phase = cluster.PhaseDeleting
	m.ended = w.clock.Now
	w.after(w.between(15*time.Second, 40*time.Second), func() { w.vanish(m) })
}

// vanish ends a machine; its group and its Node notice later.
func (w *world) vanish(m *machine) {
	m.Phase, m.Member = cluster.PhaseGone, false
	if m.ended.IsZero() {
		m.ended = w.clock.Now
	}
	w.report.ran(m)
	w.after(10*time.Second, func() {
		m.pool.machines = slices.DeleteFunc(m.pool.machines, func(x *machine) bool { return x == m })
		w.fulfil(m.pool)
	})
	n := m.node
	if n == nil {
		return
	}
	w.after(40*time.Second, func() {
		n.Ready, n.ReadySince = cluster.StatusUnknown, w.clock.Now
		n.Taints = append(slices.Clone(n.Taints), cluster.Taint{Key: "node.kubernetes.io/unreachable", Effect: "NoSchedule"})
		w.agent.soon(w)
	})
	w.after(w.between(45*time.Second, 60*time.Second), func() { w.reap(n) })
}

// reap removes a Node whose machine is gone, and then its pods: their controllers
// make others.
func (w *world) reap(n *node) {
	delete(w.byName, n.Name)
	w.nodes = slices.DeleteFunc(w.nodes, func(x *node) bool { return x == n })
	w.scheduler.flush(w) // the end of a Node is an event of PodTopologySpread (EventsToRegister)
	w.agent.soon(w)
	for _, p := range slices.Clone(n.pods) {
		s := p.service
		gone := p.Finished || !p.Deleting.IsZero()
		w.drop(p)
		if s == nil || s.job || gone {
			continue
		}
		s.owed = append(s.owed, lost)
		w.reconcile(s, 1)
	}
}

// interrupt takes a machine away without a word, as clouds do with spot capacity.
func (w *world) interrupt(p *pool) {
	var up []*machine
	for _, m := range p.machines {
		if m.Phase == cluster.PhaseRunning && m.node != nil && m.node.Ready == cluster.StatusTrue {
			up = append(up, m)
		}
	}
	if len(up) == 0 {
		return
	}
	m := up[w.r.IntN(len(up))]
	m.node.taken = true
	w.report.Interrupted++
	w.log("cloud: takes %s away", m.node.Name)
	w.vanish(m)
}
