package decision

import (
	"encoding/json"
	"fmt"
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
	// Machine is the number of the machine on which these pods are put together with those of the
	// group's other reservations of the same number: the next round puts them there again. The
	// numbers are of one round, and name no instance. 0: the pods count on the group's machines as a whole.
	Machine int
	Pods    []cluster.PodKey
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

// Equal tells that the same pods count on the same machines. Two rounds that decide the
// same write it in the same order, so that the maps are seldom asked.
func (p Reservations) Equal(o Reservations) bool {
	alike := func(a, b Reservation) bool {
		return a.Group == b.Group && a.Machine == b.Machine && slices.Equal(a.Pods, b.Pods)
	}
	return slices.EqualFunc(p, o, alike) || maps.Equal(p.places(), o.places())
}

// place is a group and the number of one of its machines.
type place struct {
	group   cluster.GroupID
	machine int
}

func (p Reservations) places() map[cluster.PodKey]place {
	by := make(map[cluster.PodKey]place)
	for i := range p {
		for _, key := range p[i].Pods {
			by[key] = place{p[i].Group, p[i].Machine}
		}
	}
	return by
}

// MarshalJSON writes the group, or a list of the group and the machine's number.
func (p place) MarshalJSON() ([]byte, error) {
	if p.machine == 0 {
		return json.Marshal(p.group)
	}
	return json.Marshal([]any{p.group, p.machine})
}

// UnmarshalJSON reads what MarshalJSON wrote; errors are those of the two forms.
func (p *place) UnmarshalJSON(data []byte) error {
	if p.machine = 0; json.Unmarshal(data, &p.group) == nil {
		return nil
	}
	both := []any{&p.group, &p.machine}
	if err := json.Unmarshal(data, &both); err != nil {
		return err
	}
	if len(both) != 2 || p.machine < 0 {
		return fmt.Errorf("a reservation %s: want a group, or a group and a machine's number", data)
	}
	return nil
}

// MarshalJSON writes an object of groups and machines by pod, which is easier to read in a record.
func (p Reservations) MarshalJSON() ([]byte, error) { return json.Marshal(p.places()) }

// UnmarshalJSON reads what MarshalJSON wrote; errors are those of the object.
func (p *Reservations) UnmarshalJSON(data []byte) error {
	var by map[cluster.PodKey]place
	if err := json.Unmarshal(data, &by); err != nil {
		return err
	}
	*p = nil
	at := make(map[place]int)
	for _, key := range slices.Sorted(maps.Keys(by)) {
		to := by[key]
		if _, has := at[to]; !has {
			at[to] = len(*p)
			*p = append(*p, Reservation{Group: to.group, Machine: to.machine})
		}
		(*p)[at[to]].Pods = append((*p)[at[to]].Pods, key)
	}
	return nil
}
