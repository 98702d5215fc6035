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

// TestHugePagesAreNoMemory: 2 GiB of pages of 2 MiB and one page of 1 GiB are not left for other pods.
func TestHugePagesAreNoMemory(t *testing.T) {
	v := Reservation{Kube: Resources{Memory: 1 << 30}}
	for _, c := range []struct{ memory, small, large, want int64 }{
		{16 << 30, 2 << 30, 1 << 30, 12 << 30},
		{16 << 30, 0, 0, 15 << 30},
		{2 << 30, 2 << 30, 0, 0},
	} {
		got := v.Allocatable(Resources{Memory: c.memory, Extended: map[string]int64{"hugepages-2Mi": c.small, "hugepages-1Gi": c.large, "example.com/hugepages-2Mi": 7}})
		if got.Memory != c.want || got.Extended["hugepages-2Mi"] != c.small {
			t.Errorf("%+v: %+v", c, got)
		}
	}
}
