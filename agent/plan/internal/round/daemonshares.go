package round

import (
	"iter"
	"slices"
	"strconv"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

// This file works out what the pods of DaemonSets take of a machine: what they really
// request on the nodes of its group, where some run, and what their template says elsewhere.
//
// A template says less than the pods get wherever an admission webhook writes requests (the
// Vertical Pod Autoscaler), or a LimitRange is not known: a group would be bought up to its
// maximum for a pod that its DaemonSets leave no room for. Pods of an earlier revision of a template
// are not counted: these do not come to a new machine.

// DaemonPod is a pod of a DaemonSet, as far as this package reads it.
type DaemonPod struct {
	Owner cluster.UID
	Class int32
}

// DaemonShares holds the room that the DaemonSets of one Snapshot take of the machines of each group.
type DaemonShares struct {
	sets    []cluster.DaemonSet
	classes []cluster.PodClass
	of      [][]seen                            // by DaemonSet: the classes of its pods of the current revision
	groups  []cluster.GroupID                   // by index
	known   map[remembered]*decision.DaemonPods // from earlier rounds
	vectors [][][]int64                         // see Vector; by group, the first are nodes of no group, and DaemonSet. nil: not asked yet
}

type remembered struct {
	group cluster.GroupID
	set   cluster.UID
}

// seen are the classes of pods of a DaemonSet that request the same, by one of them, and the
// groups that have such a pod on their nodes.
type seen struct {
	class int
	on    []uint64 // a bit for each group
}

// collectDaemons reads the pods of DaemonSets. pods yields each with the index of the group on whose
// node it is, or for whose node it is meant; -1: of no group. It costs these pods and, for each
// amount that they request, a bit a group.
func collectDaemons(s *cluster.Snapshot, groups []cluster.GroupID, known []decision.DaemonPods, pods iter.Seq2[int, DaemonPod]) *DaemonShares {
	e := &DaemonShares{sets: s.DaemonSets, classes: s.Classes, of: make([][]seen, len(s.DaemonSets)), groups: groups,
		known: make(map[remembered]*decision.DaemonPods, len(known)), vectors: make([][][]int64, len(groups)+1)}
	for i := range known {
		if !s.Now.Before(known[i].Seen.Add(lifetime)) {
			continue
		}
		e.known[remembered{known[i].Group, known[i].DaemonSet}] = &known[i]
	}
	sets := make(map[cluster.UID]int, len(s.DaemonSets))
	for d := range s.DaemonSets {
		sets[s.DaemonSets[d].UID] = d
	}
	type place struct{ set, at int32 } // one more than each index; 0: not met yet
	places := make([]place, len(s.Classes))
	alike := make(map[string]place)
	for g, pod := range pods {
		p := &places[pod.Class] // no two DaemonSets make pods of one class: its labels name the revision
		if *p == (place{}) {
			d, ok := sets[pod.Owner]
			if !ok {
				continue
			}
			key := alikeKey(d, &s.Classes[pod.Class])
			if *p, ok = alike[key]; !ok {
				e.of[d] = append(e.of[d], seen{class: int(pod.Class), on: make([]uint64, len(groups)/64+1)})
				*p = place{int32(d + 1), int32(len(e.of[d]))}
				alike[key] = *p
			}
		}
		if g >= 0 {
			e.of[p.set-1][p.at-1].on[g/64] |= 1 << (g % 64)
		}
	}
	for d := range e.of {
		e.of[d] = current(&s.DaemonSets[d], e.of[d], s.Classes)
	}
	return e
}

// alikeKey tells apart the pods of a DaemonSet that differ in what they take, or in their
// revision. Pods that wait for their nodes have a class each.
func alikeKey(set int, c *cluster.PodClass) string {
	only := cluster.PodClass{Requests: c.Requests, HostPorts: c.HostPorts, Labels: map[string]string{
		cluster.LabelTemplateGeneration: c.Labels[cluster.LabelTemplateGeneration], cluster.LabelRevisionHash: c.Labels[cluster.LabelRevisionHash]}}
	return string(cluster.AppendClass(strconv.AppendInt(nil, int64(set), 10), &only))
}

// MeantFor is the node that the DaemonSet controller made a pod for.
func MeantFor(c *cluster.PodClass) cluster.NodeName {
	for _, term := range c.Affinity {
		for _, r := range term.Fields {
			if r.Key == "metadata.name" && len(r.Values) == 1 {
				return cluster.NodeName(r.Values[0])
			}
		}
	}
	return ""
}

// current leaves the classes of pods of the current revision, by the DaemonSet controller's own
// rule (util.IsPodUpdated): the generation of the template, or the hash of the revision, which
// an undone change of the template keeps. Hashes are known by the pods of the generation alone; so
// while all pods are of the current revision, as the controller says, all of them count.
func current(ds *cluster.DaemonSet, all []seen, classes []cluster.PodClass) []seen {
	if ds.Settled || ds.Revision == "" {
		return all
	}
	label := func(s seen, key string) string { return classes[s.class].Labels[key] }
	var hashes []string
	for _, s := range all {
		if h := label(s, cluster.LabelRevisionHash); h != "" && label(s, cluster.LabelTemplateGeneration) == ds.Revision {
			hashes = append(hashes, h)
		}
	}
	return slices.DeleteFunc(all, func(s seen) bool {
		return label(s, cluster.LabelTemplateGeneration) != ds.Revision && !slices.Contains(hashes, label(s, cluster.LabelRevisionHash))
	})
}

// evidence are the pods that say what a DaemonSet takes of a machine of a group (-1: of no
// group), by their classes: the pods on the group's nodes; where there are none, what these
// showed within a day; else the pods on all nodes, and what is remembered of other groups; else
// the template.
type evidence struct {
	classes    []int
	remembered []*decision.DaemonPods
	source     decision.DaemonSource
}

func (e *DaemonShares) evidence(g, set int) (v evidence) {
	ds := &e.sets[set]
	if v.classes = e.on(g, set); len(v.classes) > 0 {
		v.source = decision.DaemonOnGroup
		return v
	}
	if known := e.remembered(g, ds); known != nil {
		v.remembered, v.source = []*decision.DaemonPods{known}, decision.DaemonRemembered
		return v
	}
	for _, s := range e.of[set] {
		v.classes, v.source = append(v.classes, s.class), decision.DaemonElsewhere
	}
	if len(v.classes) > 0 {
		return v
	}
	for other := range e.groups {
		if known := e.remembered(other, ds); known != nil {
			v.remembered, v.source = append(v.remembered, known), decision.DaemonRemembered
		}
	}
	if len(v.remembered) == 0 {
		v.classes, v.source = []int{ds.Class}, decision.DaemonTemplate
	}
	return v
}

// on are the classes of the DaemonSet's pods on a group's nodes.
func (e *DaemonShares) on(g, set int) (out []int) {
	if g < 0 {
		return nil
	}
	for _, s := range e.of[set] {
		if s.on[g/64]&(1<<(g%64)) != 0 {
			out = append(out, s.class)
		}
	}
	return out
}

func (e *DaemonShares) remembered(g int, ds *cluster.DaemonSet) *decision.DaemonPods {
	if g < 0 {
		return nil
	}
	if k := e.known[remembered{e.groups[g], ds.UID}]; k != nil && k.Revision == ds.Revision {
		return k
	}
	return nil
}

// Vector is the room that the pod of a DaemonSet takes of a machine of a group, over the Dimensions; -1:
// of no group. The caller does not change it.
func (e *DaemonShares) Vector(g, set int, d *fit.Dimensions) []int64 {
	row := &e.vectors[g+1]
	if *row == nil {
		*row = make([][]int64, len(e.sets))
	}
	if (*row)[set] == nil {
		(*row)[set] = e.vector(e.evidence(g, set), set, d)
	}
	return (*row)[set]
}

func (e *DaemonShares) vector(v evidence, set int, d *fit.Dimensions) []int64 {
	if len(v.classes) == 1 {
		return d.Class(v.classes[0])
	}
	var out []int64
	add := func(size []int64) {
		if out == nil {
			out = slices.Clone(size)
		}
		for i := range size {
			out[i] = max(out[i], size[i])
		}
	}
	for _, class := range v.classes {
		add(d.Class(class))
	}
	for _, k := range v.remembered {
		size := slices.Clone(d.Class(e.sets[set].Class)) // for its ports
		d.Requests(size, k.Requests)
		add(size)
	}
	return out
}

// Requests is the same as amounts, and from where it is known.
func (e *DaemonShares) Requests(g, set int) (cluster.Resources, decision.DaemonSource) {
	v := e.evidence(g, set)
	return e.requests(v), v.source
}

func (e *DaemonShares) requests(v evidence) (out cluster.Resources) {
	for _, class := range v.classes {
		out = out.Max(e.classes[class].Requests)
	}
	for _, k := range v.remembered {
		out = out.Max(k.Requests)
	}
	return out
}
