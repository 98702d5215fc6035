package fit

import (
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// constraintClasses groups pod classes by everything that F7 to F12 read of them. Classes
// that differ in their requests alone share a group.
type constraintClasses struct {
	classes []cluster.PodClass
	known   namespaceSet
	of      []int32 // per class
	first   []int32 // per constraint class, the first class that has it
}

func newConstraintClasses(classes []cluster.PodClass, namespaces []cluster.Namespace) *constraintClasses {
	t := &constraintClasses{classes: classes, known: make(namespaceSet, len(namespaces)), of: make([]int32, len(classes)), first: make([]int32, 0, len(classes))}
	for _, n := range namespaces {
		t.known[n.Name] = n.Labels
	}
	ids := make(map[string]int32)
	var key []byte
	for i := range classes {
		c := &classes[i]
		next := int32(len(t.first))
		// Who has no terms costs nothing to compile, and who has volumes or claims seldom has a like.
		if len(c.PodAffinity)+len(c.PodAntiAffinity)+len(c.Spread) > 0 && len(c.Volumes)+len(c.Claims) == 0 {
			key = appendConstraintClass(key[:0], c)
			if tie, ok := ids[string(key)]; ok {
				t.of[i] = tie
				continue
			}
			ids[string(key)] = next
		}
		t.of[i], t.first = next, append(t.first, int32(i))
	}
	return t
}

// example is a class of a constraint class.
func (t *constraintClasses) example(tie int32) *cluster.PodClass { return &t.classes[t.first[tie]] }

// ConstraintClass is the number of what F7 to F12 read of a class: classes of one number are
// counted, refused and keep others out alike. Numbers are dense from 0.
func (s *State) ConstraintClass(class int) int { return int(s.of[class]) }

// appendConstraintClass writes all that is read of a class without volumes.
func appendConstraintClass(b []byte, c *cluster.PodClass) []byte {
	b = cluster.AppendPodDemands(cluster.AppendLabels(cluster.AppendString(b, c.Namespace), c.Labels), c)
	if len(c.Spread) == 0 {
		return b // what it asks of nodes matters to nobody's spread
	}
	return cluster.AppendTolerations(cluster.AppendNodeTerms(cluster.AppendLabels(b, c.NodeSelector), c.Affinity), c.Tolerations)
}
