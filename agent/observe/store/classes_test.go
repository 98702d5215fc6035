package store

import (
	"fmt"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// TestIntern: an equal class is found again, and a class without users leaves nothing.
func TestIntern(t *testing.T) {
	var c classes
	const n = 5
	class := func(i int) cluster.PodClass { return cluster.PodClass{Namespace: fmt.Sprint(i)} }
	for i := range n {
		if at, fresh := c.intern(class(i)); !fresh || at != i {
			t.Errorf("class %d is taken for %d", i, at)
		}
	}
	for i := range n {
		if at, fresh := c.intern(class(i)); fresh || at != i {
			t.Errorf("class %d again is %d, fresh %v", i, at, fresh)
		}
		c.release(i)
		c.release(i)
	}
	if len(c.free) != n || len(c.index) != 0 {
		t.Errorf("%d rows free, %d keys left after every release", len(c.free), len(c.index))
	}
}
