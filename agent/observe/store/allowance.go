package store

import (
	"cmp"
	"fmt"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/convert"
)

// convert.MaxPod bounds one pod, and thousands of pods just below it would take as much memory. So the
// different classes that are not small have a bound together too: there are few of them in an honest
// cluster, since the pods of a controller share one class.
const (
	// smallClass is the size of a class, in bytes of its key, that is always kept. Pods of Jobs have a
	// class each, of some hundred bytes.
	smallClass = 2 << 10
	// mostLarge bounds the larger ones of all namespaces; they take three to eight times as much memory.
	mostLarge = 16 << 20
	// mostOfNamespace leaves room for other tenants.
	mostOfNamespace = mostLarge / 4
	// mostTemplates is the same bound for the templates of DaemonSets, which the informer holds beside their classes.
	mostTemplates = 4 << 20
)

// allowance counts the bytes of large classes.
type allowance struct {
	most  int // 0: mostLarge; one namespace takes a quarter of it
	total int
	of    map[string]int // by namespace
}

// take counts one more class; false: there is no room for it.
func (a *allowance) take(namespace string, size int) bool {
	switch {
	case size <= smallClass:
		return true
	case a.total+size > a.limit(), a.of[namespace]+size > a.limit()/4:
		return false
	case a.of == nil:
		a.of = map[string]int{}
	}
	a.total += size
	a.of[namespace] += size
	return true
}

// giveBack counts one class less; true: half of the room is free.
func (a *allowance) giveBack(namespace string, size int) bool {
	if size <= smallClass {
		return false
	}
	a.total -= size
	if a.of[namespace] -= size; a.of[namespace] <= 0 {
		delete(a.of, namespace)
	}
	return a.total <= a.limit()/2 && a.of[namespace] <= a.limit()/8
}

func (a *allowance) limit() int { return cmp.Or(a.most, mostLarge) }

const usedUp = "its labels, selectors, affinity, tolerations and volumes, which take more than %d KiB: the agent keeps at most %d MiB of such %s, and %d MiB of one namespace, and this is used up"

var (
	noRoom            = fmt.Sprintf(usedUp, smallClass>>10, mostLarge>>20, "pods that differ", mostOfNamespace>>20)
	noRoomForTemplate = fmt.Sprintf(usedUp, smallClass>>10, mostTemplates>>20, "templates of DaemonSets", mostTemplates>>22)
)

// withhold is a class without its constraints.
func withhold(c *cluster.PodClass) cluster.PodClass {
	return convert.TooLarge(c.Namespace, c.Requests, c.Priority, noRoom)
}

func withheld(c *cluster.PodClass) bool { return c.TooLarge && c.NotUnderstood[0] == noRoom }

// TakeRoomAgain tells, once, that pods are kept without their constraints and that there is room for
// them again: a list of all pods takes them up.
func (s *Store) TakeRoomAgain() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	again := s.classes.roomAgain
	s.classes.roomAgain = false
	return again
}
