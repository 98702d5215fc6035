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

// large is a class of so many bytes that no other has.
func large(namespace string, i, size int) cluster.PodClass {
	return cluster.PodClass{Namespace: namespace, Labels: map[string]string{"x": fmt.Sprintf("%0*d", size, i)}}
}

// TestAllowance: one namespace leaves room for the large classes of others, small classes are always
// kept, and there is room again when the pods are gone.
func TestAllowance(t *testing.T) {
	var c classes
	const size = 8 << 10
	var tenant []int
	for i := range 2 * mostLarge / size {
		at, _ := c.intern(large("tenant", i, size))
		tenant = append(tenant, at)
	}
	if got := c.allowance.of["tenant"]; got > mostOfNamespace || got < mostOfNamespace-2*size {
		t.Errorf("the tenant has %d bytes, want %d", got, mostOfNamespace)
	}
	if i, _ := c.intern(large("shop", 1, size)); c.rows[i].TooLarge {
		t.Error("a large class of another namespace is not kept")
	}
	small, _ := c.intern(large("tenant", 1, smallClass/2))
	if c.rows[small].TooLarge {
		t.Error("a small class is not kept")
	}
	last := tenant[len(tenant)-1]
	if row := c.rows[last]; !row.TooLarge || row.Labels != nil || c.withheld != 1 || c.refs[last] < mostLarge/size {
		t.Errorf("what there is no room for: %+v, %d users, %d such classes", row, c.refs[last], c.withheld)
	}
	for n, i := range tenant {
		c.release(i)
		if early := n < mostOfNamespace/size/2-4; early && c.roomAgain {
			t.Fatalf("after %d there is room again", n)
		}
	}
	if !c.roomAgain {
		t.Error("there is no room again")
	}
	if c.release(small); c.withheld != 0 || c.allowance.of["tenant"] != 0 || c.allowance.total > 2*size {
		t.Errorf("left over: %d, %+v", c.withheld, c.allowance)
	}
}
