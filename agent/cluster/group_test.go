package cluster

import (
	"slices"
	"testing"
)

// TestPools: each pool is summed up once, with the groups that the cloud does not have yet.
func TestPools(t *testing.T) {
	member, leaving := Instance{ID: "a", Member: true}, Instance{ID: "b"}
	got := Pools([]NodeGroup{
		{ID: "workers", Declared: true, Instances: []Instance{member}},
		{ID: "general-a", Pool: "general", PoolMax: 9, Instances: []Instance{member, leaving}},
		{ID: "gpu-a", Pool: "gpu", PoolMax: 2, Declared: true, Template: Template{Unknown: "no such version"}},
		{ID: "general-b", Pool: "general", PoolMax: 9, Declared: true},
	})
	want := []PoolUse{{Name: "general", Max: 9, Machines: 1, Made: 1, Groups: 2}, {Name: "gpu", Max: 2, Groups: 1, Template: "no such version"}}
	if !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
