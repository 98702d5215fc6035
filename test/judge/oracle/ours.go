package oracle

import (
	"fmt"
	"math/rand/v2"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/binpack"
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/store"
)

// Answer is what fit says about one pod on one node. A held pod is not judged: fit
// names what it does not understand.
type Answer struct {
	Fits  bool
	Held  bool
	Rule  string
	Words string
}

// plugins names the scheduler's filter of each rule.
var plugins = map[string]string{
	fit.RulePorts: "NodePorts", fit.RuleResources: "NodeResourcesFit",
	fit.RuleVolumeRestrictions: "VolumeRestrictions", fit.RuleVolumeLimits: "NodeVolumeLimits",
	fit.RuleVolumeBinding: "VolumeBinding", fit.RuleVolumeZone: "VolumeZone",
	fit.RuleSpread: "PodTopologySpread", fit.RuleInterPod: "InterPodAffinity",
	fit.RuleDevices: "DynamicResources",
}

func init() {
	for _, f := range fit.Filters {
		plugins[f.Rule] = f.Name
	}
}

// bench is a world in the house's own nouns, with what fit keeps of it.
type bench struct {
	snapshot cluster.Snapshot
	space    *fit.Dimensions
	state    *fit.State
	shapes   []fit.NodeInfo
	rooms    [][]int64
	classOf  map[cluster.PodKey]int
	nodeOf   map[cluster.NodeName]int
	promised map[int][]*cluster.Pod // nominated pods by node
}

// Answers judges every waiting pod of a world on every node, as agent/plan does: the
// shape, the room, then the State.
func Answers(w *World) ([][]Answer, error) {
	b, err := seat(w)
	if err != nil {
		return nil, err
	}
	out := make([][]Answer, len(w.Waiting))
	for i, p := range w.Waiting {
		index, ok := b.classOf[keyOf(p)]
		if !ok {
			return nil, fmt.Errorf("pod %s was lost in the conversion", keyOf(p))
		}
		class := &b.snapshot.Classes[index]
		if p.Spec.NodeName != "" {
			own := *class
			own.NodeName = cluster.NodeName(p.Spec.NodeName)
			class = &own
		}
		out[i] = make([]Answer, len(w.Nodes))
		for n := range w.Nodes {
			if out[i][n], err = b.judgeTwice(class, index, n); err != nil {
				return nil, fmt.Errorf("pod %s on node %s: %w", keyOf(p), w.Nodes[n].Name, err)
			}
		}
	}
	return out, nil
}

// Claims are the claimed pods that cannot be put on one of the nodes that they are claimed for. They are put there one after the
// other, as long as the filters allow one more: those for one node first, then one that has a choice, which takes no room of the first
// ones (worlds 100741). Where none of them is allowed, one waiting pod without a claim is put on the first of
// the other nodes that allows it: a topology spread may count it. It asks package fit, which the judgements hold against
// kube-scheduler.
func Claims(w *World, on map[cluster.PodKey][]string, others []string) (refused []cluster.PodKey, err error) {
	b, err := seat(w)
	if err != nil {
		return nil, err
	}
	var unclaimed []cluster.PodKey
	for _, p := range w.Waiting {
		key := keyOf(p)
		if _, claimed := on[key]; claimed {
			refused = append(refused, key)
		} else {
			unclaimed = append(unclaimed, key)
		}
	}
	put := func(key cluster.PodKey, names []string) (done bool) {
		if err == nil {
			done, err = b.putOn(key, names)
		}
		return done
	}
	for moved := true; moved && err == nil; {
		before := len(refused)
		refused = slices.DeleteFunc(refused, func(key cluster.PodKey) bool { return len(on[key]) == 1 && put(key, on[key]) })
		if moved = len(refused) < before; moved || before == 0 {
			continue
		}
		if i := slices.IndexFunc(refused, func(key cluster.PodKey) bool { return len(on[key]) > 1 && put(key, on[key]) }); i >= 0 {
			refused, moved = slices.Delete(refused, i, i+1), true
			continue
		}
		if i := slices.IndexFunc(unclaimed, func(key cluster.PodKey) bool { return put(key, others) }); i >= 0 {
			unclaimed, moved = slices.Delete(unclaimed, i, i+1), true
		}
	}
	return refused, err
}

// putOn puts a pod on the first of some nodes that the filters allow.
func (b *bench) putOn(key cluster.PodKey, names []string) (bool, error) {
	class, known := b.classOf[key]
	if !known {
		return false, fmt.Errorf("pod %s was lost in the conversion", key)
	}
	for _, name := range names {
		n, joined := b.nodeOf[cluster.NodeName(name)]
		if !joined {
			continue
		}
		answer, err := b.judge(&b.snapshot.Classes[class], class, n)
		if err != nil {
			return false, fmt.Errorf("pod %s on node %s: %w", key, name, err)
		}
		if answer.Fits {
			b.state.Put(class, n, 1)
			binpack.Sub(b.rooms[n], b.space.Class(class), 1)
			return true, nil
		}
	}
	return false, nil
}

// judgeTwice follows RunFilterPluginsWithNominatedPods: pods of no less priority that
// are promised to the node count as if they were there, and once more as if they were
// not.
func (b *bench) judgeTwice(class *cluster.PodClass, index, n int) (Answer, error) {
	count := func(by int) (some bool) {
		for _, p := range b.promised[n] {
			if b.snapshot.Classes[p.Class].Priority >= class.Priority {
				b.state.Put(p.Class, n, by)
				binpack.Sub(b.rooms[n], b.space.Class(p.Class), by)
				some = true
			}
		}
		return some
	}
	some := count(1)
	answer, err := b.judge(class, index, n)
	count(-1)
	if !some || !answer.Fits || err != nil {
		return answer, err
	}
	return b.judge(class, index, n)
}

func (b *bench) judge(class *cluster.PodClass, index, n int) (Answer, error) {
	rule, words := fit.Refused(class, &b.shapes[n])
	if fit.Passes(class, &b.shapes[n]) != (rule == "") {
		return Answer{}, fmt.Errorf("fit.Passes and fit.Refused differ: %q %q", rule, words)
	}
	if rule == "F0" {
		return Answer{Held: true, Rule: rule, Words: words}, nil
	}
	if rule == "" {
		rule, words = b.space.Insufficient(b.rooms[n], b.space.Class(index))
		if (binpack.MaxFit(b.rooms[n], b.space.Class(index)) > 0) != (rule == "") {
			return Answer{}, fmt.Errorf("fit.Most and Space.Short differ: %q %q", rule, words)
		}
	}
	if rule == "" {
		rule, words = b.state.Refused(index, n)
		if b.state.Passes(index, n) != (rule == "") || (b.state.MaxFit(index, n) > 0) != (rule == "") {
			return Answer{}, fmt.Errorf("State.Passes, Most and Refused differ: %q %q", rule, words)
		}
	}
	return Answer{Fits: rule == "", Rule: rule, Words: words}, nil
}

// objects are the world as the agent's informers would list it. A waiting pod that names its node is listed without that name: its volumes and devices
// would count as used on the node (seed 596005).
func (w *World) objects() store.Objects {
	pods := make([]*corev1.Pod, 0, len(w.Pods)+len(w.Waiting)+len(w.Nominated))
	pods = append(pods, w.Pods...)
	for _, p := range w.Waiting {
		if p.Spec.NodeName != "" {
			p = p.DeepCopy()
			p.Spec.NodeName = ""
		}
		pods = append(pods, p)
	}
	pods = append(pods, w.Nominated...)
	return store.Objects{
		Nodes: w.Nodes, Pods: pods, Namespaces: w.Namespaces,
		Claims: w.Claims, Volumes: w.Volumes, StorageClasses: w.Classes, Drivers: w.Drivers, CSINodes: w.CSINodes, Attachments: w.Attached,
		DeviceClasses: w.DeviceClasses, DeviceClaims: w.DeviceClaims, DeviceSlices: w.DeviceSlices,
	}
}

// seat converts a world and puts its bound pods where they are.
func seat(w *World) (*bench, error) {
	b := &bench{snapshot: store.FromObjects(w.objects()), classOf: map[cluster.PodKey]int{}, nodeOf: map[cluster.NodeName]int{}, promised: map[int][]*cluster.Pod{}}
	s := &b.snapshot
	b.space, b.state = fit.NewDimensions(s.Classes), fit.NewState(s.Classes, s.Namespaces)
	byName := map[cluster.NodeName]*cluster.Node{}
	for _, n := range s.Nodes {
		byName[n.Name] = n
	}
	b.shapes = make([]fit.NodeInfo, len(w.Nodes))
	for i, o := range w.Nodes {
		n := byName[cluster.NodeName(o.Name)]
		if n == nil {
			return nil, fmt.Errorf("node %s was lost in the conversion", o.Name)
		}
		b.nodeOf[n.Name] = i
		b.shapes[i] = fit.NodeInfo{Name: n.Name, Labels: n.Labels, Taints: n.Taints, Unschedulable: n.Unschedulable, Devices: n.Devices, Extended: n.Allocatable.Extended}
		room := make([]int64, b.space.Len())
		b.space.Capacity(room, n.Allocatable)
		b.rooms = append(b.rooms, room)
		b.state.AddNode(&b.shapes[i], n.VolumeLimits)
	}
	waiting := map[cluster.PodKey]bool{}
	for _, p := range w.Waiting {
		waiting[keyOf(p)] = true
	}
	var bound []*cluster.Pod
	for p := range s.AllPods() {
		b.classOf[p.Key] = p.Class
		if n, ok := b.nodeOf[p.Nominated]; ok && p.Node == "" && !waiting[p.Key] {
			b.promised[n] = append(b.promised[n], p)
		}
		if _, here := b.nodeOf[p.Node]; here && !waiting[p.Key] && !p.Finished {
			bound = append(bound, p)
		}
	}
	b.settle(bound)
	return b, nil
}

// settle puts the bound pods into the State, on a way that comes and goes: some are
// put elsewhere first and taken away again, so that what is judged is not only a State
// that was built once.
func (b *bench) settle(bound []*cluster.Pod) {
	r := rand.New(rand.NewPCG(uint64(len(bound)), uint64(b.snapshot.PodCount())))
	put := func(p *cluster.Pod, node, n int) {
		if p.Deleting.IsZero() {
			b.state.Put(p.Class, node, n)
		} else {
			b.state.PutTerminating(p.Class, node, n)
		}
	}
	elsewhere := make([]int, len(bound))
	for i := range bound {
		elsewhere[i] = r.IntN(len(b.shapes))
		put(bound[i], elsewhere[i], 1)
	}
	for _, i := range r.Perm(len(bound)) {
		home := b.nodeOf[bound[i].Node]
		put(bound[i], elsewhere[i], -1)
		put(bound[i], home, 1)
		binpack.Sub(b.rooms[home], b.space.Class(bound[i].Class), 1)
	}
}

func keyOf(p *corev1.Pod) cluster.PodKey { return cluster.PodKey(p.Namespace + "/" + p.Name) }
