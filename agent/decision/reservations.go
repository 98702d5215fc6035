package decision

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// Reservations say which group's upcoming machines pending pods were counted on. They are lists
// and no map by pod: one is written in every round that buys, for tens of thousands of
// pods, and looked into only by rounds that follow with these pods still pending. What
// is in them is shared with the plan and never written to again.
type Reservations []Reservation

// Reservation is one group and the pods that count on it. No pod is in two.
type Reservation struct {
	Group cluster.GroupID
	Pods  []cluster.PodKey
}

// ByPod is the group that each pod counts on; nil when no pod does.
func (p Reservations) ByPod() map[cluster.PodKey]cluster.GroupID {
	total := 0
	for i := range p {
		total += len(p[i].Pods)
	}
	if total == 0 {
		return nil
	}
	by := make(map[cluster.PodKey]cluster.GroupID, total)
	for i := range p {
		for _, key := range p[i].Pods {
			by[key] = p[i].Group
		}
	}
	return by
}

// Of is the group that one pod counts on; empty: none.
func (p Reservations) Of(pod cluster.PodKey) cluster.GroupID {
	for i := range p {
		if slices.Contains(p[i].Pods, pod) {
			return p[i].Group
		}
	}
	return ""
}

// Equal tells that the same pods count on the same groups. Two rounds that decide the
// same write it in the same order, so that the maps are seldom asked.
func (p Reservations) Equal(o Reservations) bool {
	alike := func(a, b Reservation) bool { return a.Group == b.Group && slices.Equal(a.Pods, b.Pods) }
	return slices.EqualFunc(p, o, alike) || maps.Equal(p.ByPod(), o.ByPod())
}

// MarshalJSON writes an object of groups by pod, which is easier to read in a record.
func (p Reservations) MarshalJSON() ([]byte, error) { return json.Marshal(p.ByPod()) }

// UnmarshalJSON reads what MarshalJSON wrote; errors are those of the object.
func (p *Reservations) UnmarshalJSON(data []byte) error {
	var by map[cluster.PodKey]cluster.GroupID
	if err := json.Unmarshal(data, &by); err != nil {
		return err
	}
	*p = nil
	at := make(map[cluster.GroupID]int)
	for _, key := range slices.Sorted(maps.Keys(by)) {
		g := by[key]
		if _, has := at[g]; !has {
			at[g] = len(*p)
			*p = append(*p, Reservation{Group: g})
		}
		(*p)[at[g]].Pods = append((*p)[at[g]].Pods, key)
	}
	return nil
}
