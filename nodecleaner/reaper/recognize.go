package reaper

import (
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// This file keeps in the ledger which machine an instance was, as long as the cloud says that it exists.

// recognize stores which machine the Node of an existing instance runs on. The first system UUID stays: it was there before
// anybody could take its provider ID.
func (m *Memory) recognize(n cluster.Node, in Input, v *view) {
	id := machine(n.ProviderID)
	r, ok := m.Seen[id]
	if !ok {
		return
	}
	at := v.existed(n, in)
	if at.IsZero() {
		if end := r.over(); r.Beat.IsZero() && !end.IsZero() && in.Now.Sub(end) > ghostFor {
			r.Beat = n.Heartbeat
		}
		m.Seen[id] = r
		return
	}
	if r.Beat = (time.Time{}); !r.Absent.IsZero() && at.Equal(in.AskedAt) {
		r.Absent = at
	}
	if r.SystemUUID == "" && n.Ready == cluster.StatusTrue {
		r.SystemUUID = n.SystemUUID
	}
	same := strings.EqualFold(r.SystemUUID, n.SystemUUID)
	switch rebooted := r.SystemUUID != "" && same; {
	case r.SystemUUID != "" && n.SystemUUID != "" && !same: // another machine, whose boot ID is not the instance's
	case r.BootID == "", r.BootID == n.BootID, rebooted, n.BootID == r.Rebooted && at.After(r.Since):
		r.MachineID, r.BootID, r.Rebooted, r.Since = n.MachineID, n.BootID, "", time.Time{}
	case n.BootID != r.Rebooted:
		r.Rebooted, r.Since = n.BootID, in.Now
	}
	m.Seen[id] = r
}

// existed is the time of the cloud's newest word that n's instance exists, of this moment; zero: there is none.
func (v *view) existed(n cluster.Node, in Input) time.Time {
	if in.Answers[cluster.InstanceID(n.ProviderID)].Existence == cluster.InstanceExists {
		return in.AskedAt
	}
	f, listed := v.instances[machine(n.ProviderID)]
	if !listed || f.group.Stale != "" || f.instance.Phase == cluster.PhaseGone || f.instance.Phase == cluster.PhaseUnknown {
		return time.Time{}
	}
	return f.group.ReadAt
}

// over is since when the instance is known to have ended, or its group not to list it; zero: it is neither.
func (r Record) over() time.Time {
	if r.Gone.IsZero() {
		return r.Absent
	}
	return r.Gone
}
