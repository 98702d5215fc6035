package cluster

import "testing"

// TestAllocatableAsTheKubelet: the first figure is of a real kubelet 1.36.3 on a disk of 6 GiB,
// whose share of a tenth is the float32 that is nearest to it.
func TestAllocatableAsTheKubelet(t *testing.T) {
	for _, c := range []struct{ capacity, percent, want int64 }{
		{6442450944, 10, 5798205840},
		{20 << 30, 10, 19327352800},
		{6442450944, 0, 6442450944},
	} {
		v := Reservation{EvictionStoragePercent: c.percent, MaxPods: 110}
		if got := v.Allocatable(Resources{EphemeralStorage: c.capacity}).EphemeralStorage; got != c.want {
			t.Errorf("%d bytes less %d percent: %d, want %d", c.capacity, c.percent, got, c.want)
		}
	}
}
