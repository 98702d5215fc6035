package round

import (
	"math"
	"slices"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// headroomShare is the share of a machine that "a machine kept free" asks for: real nodes
// offer a little less than their template promises, and a node that carries nothing but
// a small stray pod is free all the same.
const headroomShare = 0.95

// HeadroomPieces is the pieces of one headroom that is to be kept free now.
type HeadroomPieces struct {
	Class, Count int
	name         string
}

// OpenHeadroom adds a class for every headroom that is open now, to the list of the round's own Snapshot.
func (w *State) OpenHeadroom() {
	list := slices.Clone(w.Policy.Headroom)
	slices.SortStableFunc(list, func(a, b cluster.Headroom) int { return strings.Compare(a.Name, b.Name) })
	for i := range list {
		h := &list[i]
		open, next := h.Open(w.Now)
		w.WakeAt(next)
		if !open || h.Count <= 0 {
			continue
		}
		piece := h.Piece
		piece.Priority = math.MinInt32 + h.Rank
		piece.Requests.Pods = 1
		if h.Group != "" {
			g, ok := w.ByID[h.Group]
			if !ok || w.Groups[g].Template.Unknown != "" {
				w.Held("headroom", h.Name, decision.RuleHeadroom, "group %s is not known, so neither is the size of its machines", h.Group)
				continue
			}
			piece.Requests = w.freeMachine(&w.Groups[g])
			for _, t := range lastingTaints(w.Groups[g].Template.Taints, w.Policy) {
				piece.Tolerations = append(slices.Clip(piece.Tolerations), cluster.Toleration{Key: t.Key, Operator: "Equal", Value: t.Value, Effect: t.Effect})
			}
		}
		if len(w.headrooms) == 0 { // the list that was handed in is not written to
			w.Snapshot.Classes = slices.Clip(w.Snapshot.Classes)
		}
		w.Snapshot.Classes = append(w.Snapshot.Classes, piece)
		w.headrooms = append(w.headrooms, HeadroomPieces{len(w.Snapshot.Classes) - 1, min(h.Count, cluster.MostPieces), h.Name})
	}
}

// freeMachine is the room that one free machine of a group leaves to pods.
func (w *State) freeMachine(g *Group) cluster.Resources {
	shape := nextMachine(&g.Template, w.Policy)
	r := g.Template.Allocatable
	for d := range w.daemonsOn(&shape) {
		takes, _ := w.Shares().Requests(w.ByID[g.ID], d)
		r = r.Sub(takes)
	}
	out := cluster.Resources{MilliCPU: int64(float64(max(r.MilliCPU, 0)) * headroomShare), Memory: int64(float64(max(r.Memory, 0)) * headroomShare), Pods: 1}
	for name, n := range r.Extended {
		if n > 0 {
			Set(&out.Extended, name, n)
		}
	}
	return out
}

// headroomOwner stands for the controller that a piece of headroom does not have.
func headroomOwner(name string) cluster.UID { return cluster.UID("headroom " + name) }

// demandHeadroom adds the pieces to the pods that want room.
func (w *State) demandHeadroom() {
	for _, s := range w.headrooms {
		w.Demands = append(w.Demands, Demand{Class: s.Class, Expected: s.Count, Owner: headroomOwner(s.name), Buys: true, Headroom: s.name})
	}
}

// KeepHeadroom notes that a node's room is kept free for pieces of headroom. It does not
// bind the node: the pieces move when the node goes.
func (n *Node) KeepHeadroom(class, count int) {
	for i := range n.Headroom {
		if n.Headroom[i].Class == class {
			n.Headroom[i].Count += count
			return
		}
	}
	n.Headroom = append(n.Headroom, HeadroomPieces{Class: class, Count: count})
}

func (w *State) HeadroomName(class int) string {
	for _, s := range w.headrooms {
		if s.Class == class {
			return s.name
		}
	}
	return ""
}
