package localapi

import (
	"fmt"
	"slices"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// TestNames: what a shell is offered are the names of the kind, in order, each once,
// and never more than a person can read.
func TestNames(t *testing.T) {
	s := cluster.Snapshot{
		Pods:   []cluster.Pod{{Key: "default/web-1"}, {Key: "default/web-0"}, {Key: "kube-system/dns"}},
		Nodes:  []*cluster.Node{{Name: "n1", Pods: []cluster.Pod{{Key: "default/web-2"}, {Key: "default/web-0"}}}},
		Groups: []cluster.NodeGroup{{ID: "workers"}},
	}
	for _, c := range []struct {
		kind, prefix string
		want         []string
	}{
		{"pod", "default/w", []string{"default/web-0", "default/web-1", "default/web-2"}},
		{"node", "", []string{"n1"}}, {"node", "x", nil}, {"group", "work", []string{"workers"}}, {"queen", "", nil},
	} {
		if got := firstNames(namesOf(s, c.kind), c.prefix); !slices.Equal(got, c.want) || got == nil {
			t.Errorf("%s %q: %v, want %v", c.kind, c.prefix, got, c.want)
		}
	}
	for i := range 3 * maxNames {
		s.Pods = append(s.Pods, cluster.Pod{Key: cluster.PodKey(fmt.Sprintf("default/p-%04d", i))})
	}
	if got := firstNames(namesOf(s, "pod"), "default/p-"); len(got) != maxNames || got[0] != "default/p-0000" {
		t.Errorf("%d names, the first is %s", len(got), got[0])
	}
}
