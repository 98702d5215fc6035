package bootstrap

import (
	"fmt"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// TestOnDemand is the table of what becomes of tokens while machines come or not.
func TestOnDemand(t *testing.T) {
	at := func(ago time.Duration) time.Time { return noon.Add(-ago) }
	own := func(name string, age, left time.Duration) slot {
		return slot{Name: name, Made: at(age), Ends: noon.Add(left)}
	}
	operators := slot{Name: "o", Made: at(time.Hour), Ends: noon.Add(time.Hour), Standing: true}
	some := Coming{Machines: 2, Oldest: at(time.Minute)}
	for name, c := range map[string]struct {
		slots  []slot
		coming Coming
		idle   time.Duration
		want   string
	}{
		"nothing":                         {nil, Coming{}, time.Hour, "delete[] renew[] mint=false current="},
		"machines come":                   {nil, some, 0, "delete[] renew[] mint=true current="},
		"they have one":                   {[]slot{own("a", time.Minute, 14*time.Minute)}, some, 0, "delete[] renew[] mint=false current=a"},
		"it is a third over":              {[]slot{own("a", 6*time.Minute, 9*time.Minute)}, some, 0, "delete[] renew[a] mint=false current=a"},
		"it is dead":                      {[]slot{{Name: "a", Dead: true}}, some, 0, "delete[a] renew[] mint=true current="},
		"all have joined just now":        {[]slot{own("a", time.Minute, 14*time.Minute)}, Coming{}, time.Minute, "delete[] renew[] mint=false current=a"},
		"a while ago":                     {[]slot{own("a", time.Minute, 14*time.Minute)}, Coming{}, 3 * time.Minute, "delete[] renew[] mint=false current="},
		"long ago":                        {[]slot{own("a", time.Minute, 14*time.Minute)}, Coming{}, 5 * time.Minute, "delete[a] renew[] mint=false current="},
		"two, all have joined":            {[]slot{own("b", time.Minute, time.Minute), own("a", time.Hour, time.Minute)}, Coming{}, time.Minute, "delete[a] renew[] mint=false current=b"},
		"a long growth":                   {[]slot{own("a", time.Hour, 8*time.Minute)}, some, 0, "delete[] renew[a] mint=true current="},
		"one that started with the old":   {[]slot{own("b", 20*time.Minute, 14*time.Minute), own("a", 2*time.Hour, 8*time.Minute)}, Coming{Machines: 1, Oldest: at(21 * time.Minute)}, 0, "delete[] renew[a] mint=false current=b"},
		"one of the moment of the change": {[]slot{own("b", 20*time.Minute, 14*time.Minute), own("a", 2*time.Hour, 8*time.Minute)}, Coming{Machines: 1, Oldest: at(16 * time.Minute)}, 0, "delete[] renew[a] mint=false current=b"},
		"all that started with it joined": {[]slot{own("b", 20*time.Minute, 14*time.Minute), own("a", 2*time.Hour, 8*time.Minute)}, some, 0, "delete[a] renew[] mint=false current=b"},
		"an operator's":                   {[]slot{operators}, Coming{}, time.Hour, "delete[] renew[] mint=false current=o"},
		"an operator's, machines come":    {[]slot{operators}, some, 0, "delete[] renew[] mint=true current="},
		"an operator's, machines joined":  {[]slot{operators, own("a", time.Minute, 14*time.Minute)}, Coming{}, 4 * time.Minute, "delete[] renew[] mint=false current=o"},
	} {
		t.Run(name, func(t *testing.T) {
			todo := onDemand(c.slots, c.coming, at(c.idle), noon)
			if got := fmt.Sprintf("delete%v renew%v mint=%t current=%s", todo.Delete, todo.Renew, todo.Mint, todo.Current); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// TestComing: a target that somebody raised counts before its machines are there, and not
// for ever.
func TestComing(t *testing.T) {
	var g Growths
	group := cluster.NodeGroup{ID: "workers", Target: 3, Instances: []cluster.Instance{
		{ID: "joined", Member: true, Phase: cluster.PhaseRunning, Created: noon.Add(-time.Hour)},
		{ID: "late", Member: true, Phase: cluster.PhaseRunning, Created: noon.Add(-3 * time.Hour)},
		{ID: "leaving", Phase: cluster.PhaseDeleting, Created: noon},
	}}
	count := func(at time.Time) Coming {
		return g.Coming([]cluster.NodeGroup{group}, func(in *cluster.Instance) bool { return in.ID == "joined" }, at, 2*time.Hour)
	}
	if c := count(noon); c.Machines != 1 || !c.Oldest.IsZero() {
		t.Errorf("a raised target: %+v", c)
	}
	if c := count(noon.Add(askedFor + time.Second)); c.Machines != 0 {
		t.Errorf("a machine that the cloud does not start: %+v", c)
	}
	group.Target = 4
	if c := count(noon.Add(askedFor + time.Minute)); c.Machines != 2 {
		t.Errorf("raised again: %+v", c)
	}
	group.Instances = append(group.Instances, cluster.Instance{ID: "new", Member: true, Phase: cluster.PhasePending, Created: noon.Add(time.Hour)})
	if c := count(noon.Add(time.Hour)); c.Machines != 2 || !c.Oldest.Equal(noon.Add(time.Hour)) {
		t.Errorf("one is launched: %+v", c)
	}
}
