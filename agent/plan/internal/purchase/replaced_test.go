package purchase

import (
	"slices"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// TestWorthwhile: of a pool in three zones with a machine type that another one replaces one group is left; of what pods tell apart, what has too few machines, is
// alone in taking a pod, or may be alone in reaching a volume, none is left out.
func TestWorthwhile(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*market, *cluster.PodClass)
		want   []string
	}{
		"one of the cheapest":                 {func(*market, *cluster.PodClass) {}, []string{"large-a"}},
		"pods are spread over zones":          {func(_ *market, c *cluster.PodClass) { spreadOver(c, zoneLabel) }, []string{"large-a", "large-b", "large-c"}},
		"running pods are kept apart by zone": {func(k *market, _ *cluster.PodClass) { apart(k.waiting(0, 1, 1), zoneLabel) }, []string{"large-a", "large-b", "large-c"}},
		"there are too few of it":             {func(k *market, _ *cluster.PodClass) { k.g("large-a").Max = 9 }, []string{"large-a", "large-b"}},
		"it may not grow":                     {func(k *market, _ *cluster.PodClass) { k.g("large-a").Max = 0 }, []string{"large-b"}},
		"a pod asks for a dearer one": {func(k *market, _ *cluster.PodClass) {
			k.waiting(1, 1, 1).NodeSelector = map[string]string{"pool": "small-c"}
		}, []string{"large-a", "small-c"}},
		"a dearer one has more memory": {func(k *market, _ *cluster.PodClass) { k.group("wide", "a", 1000, 9000, 3) }, []string{"large-a", "wide"}},
		"volumes are somewhere": {func(_ *market, c *cluster.PodClass) { c.Volumes = []cluster.Volume{{}} },
			[]string{"large-a", "small-a", "large-b", "small-b", "large-c", "small-c"}},
	} {
		k := newMarket()
		for _, zone := range []string{"a", "b", "c"} {
			k.group(cluster.GroupID("large-"+zone), zone, 4000, 4000, 1)
			k.group(cluster.GroupID("small-"+zone), zone, 2000, 4000, 1.5)
		}
		c.change(k, k.waiting(10, 100, 100))
		b := k.buyer()
		left := b.worthwhile(b.orderedCosts())
		if slices.Contains(left, false) != (name == "it may not grow") {
			t.Errorf("%s: of so few groups one is left out: %v", name, left)
		}
		b.leaveOut(left, b.orderedCosts())
		var got []string
		for g, is := range left {
			if is {
				got = append(got, string(b.Groups[g].ID))
			}
		}
		if slices.Sort(c.want); !slices.Equal(slices.Sorted(slices.Values(got)), c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
