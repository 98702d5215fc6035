package localapi

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

// withNumbers adds to "Insufficient cpu" of a group what the pod needs and what the group's
// next machine offers. The words before it are kube-scheduler's.
func withNumbers(x *decision.Explanation, s *cluster.Snapshot) {
	if x.Pod == nil || x.Pod.Groups == nil {
		return
	}
	at := slices.IndexFunc(s.Pods, func(p cluster.Pod) bool { return string(p.Key) == x.Name })
	if at < 0 || s.Pods[at].Class >= len(s.Classes) {
		return
	}
	needs := s.Classes[s.Pods[at].Class].Requests
	for i := range x.Pod.Groups.Refusals {
		r := &x.Pod.Groups.Refusals[i]
		g := slices.IndexFunc(s.Groups, func(g cluster.NodeGroup) bool { return string(g.ID) == r.Name })
		if g < 0 || !strings.Contains(r.Why, "Insufficient ") {
			continue
		}
		if said := short(needs, s.Groups[g].Template.Allocatable); said != "" {
			r.Why += ": " + said
		}
	}
}

// short names each resource of which a machine offers less than a pod needs.
func short(needs, offers cluster.Resources) string {
	var said []string
	say := func(need, offer int64, words func(int64) string, name string) {
		if need > offer {
			said = append(said, fmt.Sprintf("needs %s %s, the machine offers %s", words(need), name, words(offer)))
		}
	}
	say(needs.MilliCPU, offers.MilliCPU, cores, "cpu")
	say(needs.Memory, offers.Memory, gibibytes, "memory")
	say(needs.EphemeralStorage, offers.EphemeralStorage, gibibytes, "ephemeral-storage")
	for _, name := range slices.Sorted(maps.Keys(needs.Extended)) {
		say(needs.Extended[name], offers.Extended[name], func(n int64) string { return strconv.FormatInt(n, 10) }, name)
	}
	return strings.Join(said, "; ")
}

func cores(n int64) string { return strconv.FormatFloat(float64(n)/1000, 'f', -1, 64) }

func gibibytes(n int64) string {
	return strconv.FormatFloat(float64(n*10/(1<<30))/10, 'f', -1, 64) + "Gi"
}
