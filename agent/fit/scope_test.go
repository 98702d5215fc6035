package fit

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// FuzzScope holds a State within a scope against one of classes that have no other terms.
func FuzzScope(f *testing.F) {
	for seed := range uint64(300) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 2))
		var classes []cluster.PodClass
		for range 2 + r.IntN(4) {
			classes = append(classes, someTied(r))
		}
		namespaces := []cluster.Namespace{{Name: "n1", Labels: someLabels(r, []string{"team", "env"}, 3)}, {Name: "n2"}}
		without := pick(r, topologyKeys[:1], topologyKeys[1:], topologyKeys, nil)
		scope := Scope{NoLimits: r.IntN(2) == 0}
		if without != nil {
			scope.Without = func(key string) bool { return slices.Contains(without, key) }
		}
		some, all := NewState(classes, namespaces).Within(scope), NewState(stripped(classes, without, scope.NoLimits), namespaces)
		for i := range 2 + r.IntN(4) {
			shape := someShape(r, pick(r, "", fmt.Sprint("node-", i)))
			limits := pick(r, nil, map[string]int64{"ebs": 1, "nfs": 1})
			some.AddNode(shape, limits)
			all.AddNode(shape, limits)
		}
		for range r.IntN(12) {
			class, node := r.IntN(len(classes)), r.IntN(len(some.shapeOf))
			some.Put(class, node, 1)
			all.Put(class, node, 1)
		}
		for class := range classes {
			if some.Constrained(class) != all.Constrained(class) || some.Component(class) != all.Component(class) {
				t.Errorf("without %v: class %d is tied %v in component %d, want %v, %d", without, class, some.Constrained(class), some.Component(class), all.Constrained(class), all.Component(class))
			}
			for node := range len(some.shapeOf) {
				rule, words := some.Refused(class, node)
				wantRule, wantWords := all.Refused(class, node)
				if rule != wantRule || words != wantWords || some.MaxFit(class, node) != all.MaxFit(class, node) {
					t.Errorf("without %v: class %d on node %d: %q %q, at most %d; want %q %q, %d\n%+v", without, class, node, rule, words, some.MaxFit(class, node), wantRule, wantWords, all.MaxFit(class, node), classes[class])
				}
			}
		}
	})
}

// stripped are the classes without what a scope leaves out.
func stripped(classes []cluster.PodClass, without []string, noLimits bool) []cluster.PodClass {
	out := slices.Clone(classes)
	for i := range out {
		c := &out[i]
		term := func(t cluster.PodTerm) bool { return slices.Contains(without, t.TopologyKey) }
		c.PodAffinity = slices.DeleteFunc(slices.Clone(c.PodAffinity), term)
		c.PodAntiAffinity = slices.DeleteFunc(slices.Clone(c.PodAntiAffinity), term)
		c.Spread = slices.DeleteFunc(slices.Clone(c.Spread), func(t cluster.Spread) bool { return slices.Contains(without, t.TopologyKey) })
		c.Volumes = slices.Clone(c.Volumes)
		for k := range c.Volumes {
			if noLimits {
				c.Volumes[k].Driver, c.Volumes[k].Handle = "", ""
			}
		}
	}
	return out
}
