package topology

import (
	"fmt"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// TestOfAClass: what a class alone says: when it is placed, whether its terms reach beyond hosts, and its narrowest spread over zones.
func TestOfAClass(t *testing.T) {
	for _, c := range []struct {
		name  string
		terms []term
		rank  int8
		wide  bool
		skew  int
	}{
		{"nothing", nil, RankFree, false, 0},
		{"anti-affinity on hosts", []term{apart(KeyHostname, "web")}, rankAntiAffinity, false, 0},
		{"anti-affinity in zones", []term{apart(zone, "web")}, rankAntiAffinity, true, 0},
		{"a volume", []term{volume("ebs", "v")}, rankAntiAffinity, false, 0},
		{"affinity on hosts", []term{near(KeyHostname, "web")}, rankAffinity, false, 0},
		{"affinity in zones", []term{near(zone, "web")}, rankAffinity, true, 0},
		{"affinity and anti-affinity", []term{near(zone, "web"), apart(KeyHostname, "web")}, rankAffinity, true, 0},
		{"a spread over hosts", []term{spread(KeyHostname, 2, "web")}, RankHosts, false, 0},
		{"a spread over zones", []term{spread(zone, 2, "web")}, RankZones, true, 2},
		{"both", []term{spread(KeyHostname, 1, "web"), spread(zone, 2, "web")}, RankZones, true, 2},
		{"both, the other way round", []term{spread(zone, 2, "web"), spread(KeyHostname, 1, "web")}, RankZones, true, 2},
		{"a narrow one first", []term{spread(zone, 2, "web"), spread("rack", 3, "web")}, RankZones, true, 2},
		{"a narrow one last", []term{spread(zone, 3, "web"), spread("rack", 2, "web")}, RankZones, true, 2},
	} {
		w := newWorld("a")
		class := &w.s.Classes[w.class("web", c.terms...)]
		if rank, wide, skew := rankOf(class), BeyondHosts(class), ZoneSkew(class); rank != c.rank || wide != c.wide || skew != c.skew {
			t.Errorf("%s: rank %d, beyond hosts %v, skew %d; want %d, %v, %d", c.name, rank, wide, skew, c.rank, c.wide, c.skew)
		}
	}
}

// TestEmptyDomains: in which zones a purchase would make the first machine.
func TestEmptyDomains(t *testing.T) {
	w := newWorld("a", "b", "c", "d", "e", "f")
	w.group("b2", zone, "b")
	w.group("elsewhere")
	w.node("n", "a")
	w.coming("c")
	w.g("d").Template.Unknown = "no"
	w.pods(1, "web", spread(zone, 1, "web"))
	_, r := w.compile()
	r.Groups[r.ByID["e"]].Grow = 1
	if got, want := fmt.Sprint(EmptyDomains(r, zone)), "map[b:[1 2] f:[7]]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestWhereAPodMayGo: which groups and nodes take pods of a class, as far as zones, volumes and other pods are concerned.
func TestWhereAPodMayGo(t *testing.T) {
	w := newWorld("a", "b")
	w.group("c")
	w.node("n", "a")
	w.node("m", "b") // the first by name
	w.run(1, "n", "db", apart(KeyHostname, "web"))
	w.run(1, "m", "cache", apart(zone, "log"))
	web := w.pods(2, "web", spread(zone, 1, "web"))
	plain := w.pods(1, "plain", apart(zone, "nobody"))
	log := w.pods(1, "log")
	disk := w.pods(1, "disk", volumeIn("b"))
	both := w.pods(1, "both", spread(zone, 1, "web"), volumeIn("b"))
	alike := w.pods(1, "alike", near(KeyHostname, "alike"))
	aloof := w.pods(1, "aloof", apart(zone, "aloof"))
	b, r := w.compile()
	told := func(yes func(i int) bool, n int) (out string) {
		for i := range n {
			out += map[bool]string{true: "y", false: "-"}[yes(i)]
		}
		return out
	}
	for class, want := range map[int]struct{ reachable, refused, nodes string }{
		web:   {"yy-", "-- F11", "y-"},
		plain: {"yyy", "---", "yy"},    // its term keeps away no pod that there is
		log:   {"yyy", "- F12-", "yy"}, // what keeps it out of zone b is for the division among zones to say
		disk:  {"-yy", " F10--", "y-"}, // as in kube-scheduler a machine without a zone reaches any volume
		both:  {"-y-", " F10- F11", "y-"},
		alike: {"yyy", "---", "yy"},
		aloof: {"yy-", "-- F12", "yy"}, // kube-scheduler would let it on a machine without a zone, which may get one yet
	} {
		app := w.s.Classes[class].Labels["app"]
		if got := told(func(g int) bool { return b.Reachable(class, g) }, 3); got != want.reachable {
			t.Errorf("%s: reachable groups %s, want %s", app, got, want.reachable)
		}
		rules := ""
		for g := range r.Groups {
			_, shape := r.Template(&r.Groups[g])
			rule, words := b.RefusedAs(class, &r.Groups[g], shape)
			if (rule == "") != (words == "") {
				t.Errorf("%s: rule %q, words %q", app, rule, words)
			}
			rules += map[bool]string{true: "-", false: " " + rule}[rule == ""]
		}
		if rules != want.refused {
			t.Errorf("%s: refused by %s, want %s", app, rules, want.refused)
		}
		filter := b.NodeFilter(class)
		if got := told(func(n int) bool { return filter.Passes(n) }, 2); got != want.nodes {
			t.Errorf("%s: nodes %s, want %s", app, got, want.nodes)
		}
	}
	for _, c := range []struct {
		demand round.Demand
		want   string
	}{
		{round.Demand{Class: web}, "yy-"},
		{round.Demand{Class: web, Domain: b.GroupDomain[1]}, "-y-"},
		{round.Demand{Class: log, Domain: b.GroupDomain[2]}, "--y"},
		{round.Demand{Class: web, PerPod: true}, "---"},
		{round.Demand{Class: disk}, "-yy"},
		{round.Demand{Class: disk, Domain: b.GroupDomain[0]}, "---"},
	} {
		if got := told(func(g int) bool { return b.AllowsGroup(&c.demand, g) }, 3); got != c.want {
			t.Errorf("%+v: groups %s, want %s", c.demand, got, c.want)
		}
		if got := told(func(g int) bool { return (*Topology)(nil).AllowsGroup(&c.demand, g) }, 3); got != "yyy" {
			t.Errorf("without constraints groups %s", got)
		}
	}
	if filter := (*Topology)(nil).NodeFilter(web); !filter.Passes(0) {
		t.Error("without constraints a node refuses")
	}
	if rule, words := (*Topology)(nil).RefusedAs(web, &r.Groups[2], nil); rule+words != "" {
		t.Errorf("without constraints %s %s", rule, words)
	}
	_, shape := r.Template(&r.Groups[2])
	if got, none := b.UnknownDomain(web, shape), (*Topology)(nil).UnknownDomain(web, shape); got != zone || none != "" {
		t.Errorf("domain %q is not known, want %q; without constraints %q", got, zone, none)
	}
	if got, want := fmt.Sprint(b.DomainOf(0, 0), b.DomainOf(1, 1), b.DomainOf(-1, 1)), fmt.Sprint(b.NodeDomain[0], b.NodeDomain[1], b.GroupDomain[1]); got != want {
		t.Errorf("domains %s, want %s", got, want)
	}
}

// TestHostSpread: how many pods of a spread over hosts a machine of a group could carry beyond the skew, by dimension.
func TestHostSpread(t *testing.T) {
	check(t, []row{
		{"no constraints", "a", func(w *world) { w.pods(1, "web") }, "none"},
		{"anti-affinity", "a", func(w *world) { w.pods(2, "web", apart(KeyHostname, "web")) }, "none"},
		{"no node", "a", func(w *world) { w.pods(5, "web", spread(KeyHostname, 2, "web")) }, "0: any "},
		{"one empty node", "a", func(w *world) { w.node("n", "a"); w.pods(5, "web", spread(KeyHostname, 2, "web")) }, "0: 0 "},
		{"a node with three", "a", func(w *world) {
			w.node("n", "a")
			w.run(3, "n", "web")
			w.pods(5, "web", spread(KeyHostname, 2, "web"))
		}, "0: 3 "},
		{"two spreads", "a", func(w *world) {
			w.node("n", "a")
			w.run(3, "n", "web")
			w.pods(5, "web", spread(KeyHostname, 2, "web"))
			w.pods(5, "db", spread(KeyHostname, 1, "db"))
			w.pods(5, "app", apart(KeyHostname, "app"))
		}, "1: 0 2: 3 "},
		{"others keep away", "a", func(w *world) {
			w.g("a").Template.Taints = []cluster.Taint{{Key: "k", Effect: "NoSchedule"}}
			w.pods(5, "web", spread(KeyHostname, 2, "web"), spread(KeyHostname, 1, "db"))
		}, "0: any "},
	}, func(b *Topology, r *round.State) string {
		x := b.HostSpread(0)
		if x == nil {
			return "none"
		}
		out := ""
		for i, at := range x.Dims {
			if x.Most[i] > 1<<31 {
				out += fmt.Sprintf("%d: any ", at-r.Dimensions.Len())
			} else {
				out += fmt.Sprintf("%d: %d ", at-r.Dimensions.Len(), x.Most[i])
			}
		}
		return out
	})
}
