package cluster

import "time"

// Headroom is room that an operator wants kept free for pods that do not exist yet. It
// is Count pieces; each is looked at like a pending pod of the lowest priority that is
// never created, so every real pod comes before it.
type Headroom struct {
	Name string `json:"name"`
	// Piece is what one piece asks of a node: requests, node selector, tolerations.
	Piece PodClass `json:"piece"`
	// Templates are the ResourceClaimTemplates ("namespace/name") that its claims are made from.
	Templates []string `json:"templates,omitempty"`
	Count     int      `json:"count"`
	// Rank is who has room first: the headroom of the higher one.
	Rank int32 `json:"rank,omitempty"`
	// Group makes each piece as large as a machine of that group, its DaemonSets taken
	// off; Piece's own requests do not count then.
	Group GroupID `json:"group,omitempty"`
	// Scheduled tells that the room is kept only within Windows; else always.
	Scheduled bool     `json:"scheduled,omitempty"`
	Windows   []Window `json:"windows,omitempty"`
}

// MostPieces bounds the pieces of one headroom (Cluster Autoscaler's limit for pods that it injects).
const MostPieces = 5000

// Window is a time from From on, before To.
type Window struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// Open tells whether the room is to be kept free at now, and when that changes next;
// zero: not within the windows that are known.
func (h *Headroom) Open(now time.Time) (open bool, next time.Time) {
	if !h.Scheduled {
		return true, time.Time{}
	}
	for _, w := range h.Windows {
		edge := w.From
		if !now.Before(w.From) {
			if !now.Before(w.To) {
				continue
			}
			open, edge = true, w.To
		}
		if next.IsZero() || edge.Before(next) {
			next = edge
		}
	}
	return open, next
}
