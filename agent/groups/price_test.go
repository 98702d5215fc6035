package groups

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

func sized(id string, cores, gib int64) cluster.NodeGroup {
	return cluster.NodeGroup{ID: cluster.GroupID(id), Template: cluster.Template{Capacity: cluster.Resources{MilliCPU: cores * 1000, Memory: gib << 30}}}
}

// TestPrices has a group with a price of its cloud (a), one with a typed price in another
// currency (b), one without any (c), one whose provider computed it (d) and one of unknown size (e).
func TestPrices(t *testing.T) {
	world := func() []cluster.NodeGroup {
		list := []cluster.NodeGroup{sized("a", 2, 8), sized("b", 4, 16), sized("c", 8, 32), sized("d", 2, 8), sized("e", 0, 0)}
		list[0].Price, list[0].PriceSource = 10*provider.ComputedPrice(list[0].Template.Capacity), "price list"
		list[3].Price, list[3].PriceSource, list[3].PriceComputed = 7, "computed for spot", true
		return list
	}
	base := provider.ComputedPrice(sized("", 2, 8).Template.Capacity)
	typed := 20 * base // b: ten times its size
	f := File{Groups: map[string]Group{"b": {Price: &typed}}}
	tests := []struct {
		which    string
		prices   [5]float64
		sources  [5]string
		computed [5]bool
	}{
		{PricesTyped, [5]float64{1: 20 * base}, [5]string{1: "groups.yaml"}, [5]bool{}},
		{PricesTold, [5]float64{10 * base, 20 * base}, [5]string{"price list", "groups.yaml"}, [5]bool{}},
		{PricesComputed, [5]float64{10 * base, 20 * base, 40 * base, 70, 0}, [5]string{"price list", "groups.yaml", computedSource, "computed for spot", ""}, [5]bool{2: true, 3: true}},
	}
	for _, test := range tests {
		f.Prices = test.which
		list := world()
		f.Apply(list, cluster.Reservation{})
		for i, g := range list {
			if math.Abs(g.Price-test.prices[i]) > 1e-9 || g.PriceSource != test.sources[i] || g.PriceComputed != test.computed[i] {
				t.Errorf("%s: %s: %g %q %v, want %g %q %v", test.which, g.ID, g.Price, g.PriceSource, g.PriceComputed, test.prices[i], test.sources[i], test.computed[i])
			}
		}
	}
}

// narrowed answers as a cloud that knows WithOnly.
type narrowed struct {
	provider.Provider
	list []cluster.NodeGroup
}

func (s narrowed) Groups(ctx context.Context) (out []cluster.NodeGroup, err error) {
	only := provider.Only(ctx)
	for _, g := range s.list {
		if only == nil || slices.Contains(only, g.ID) {
			out = append(out, g)
		}
	}
	return out, nil
}

// TestPriceOfANarrowedRead wants the price of a group to be the same whether it is read alone or with the others.
func TestPriceOfANarrowedRead(t *testing.T) {
	cloud := narrowed{list: []cluster.NodeGroup{sized("a", 2, 8), sized("b", 4, 16)}}
	cloud.list[0].Price = 3 // of the provider's own section
	l, err := Open("", nil, PricesComputed, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := l.Overlay(cloud, cluster.Reservation{})
	whole, _ := p.Groups(t.Context())
	alone, _ := p.Groups(provider.WithOnly(t.Context(), []cluster.GroupID{"b"}))
	if len(whole) != 2 || len(alone) != 1 || whole[1].Price != alone[0].Price || whole[1].Price != 6 || whole[0].PriceSource != "groups.yaml" {
		t.Errorf("%+v\n%+v", whole, alone)
	}
}
