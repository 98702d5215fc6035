package topology

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// dimensions tells what each class takes of the dimensions of hosts, what nodes have left of them and what a new machine of a group has;
// "!": the class is placed pod by pod.
func dimensions(b *Topology, r *round.State) string {
	if b == nil {
		return "no constraints"
	}
	base := r.Dimensions.Len()
	tail := func(v []int64) string {
		var out []string
		for _, n := range v[min(base, len(v)):] {
			switch {
			case n == 1<<31-1:
				out = append(out, "any")
			case n > 1<<15:
				out = append(out, fmt.Sprintf("all%+d", n-exclusive))
			default:
				out = append(out, fmt.Sprint(n))
			}
		}
		return "[" + strings.Join(out, " ") + "]"
	}
	sizes := map[string]string{}
	for i := range r.Demands {
		k := &r.Demands[i]
		s := tail(b.Size(k.Class))
		if k.PerPod {
			s += "!"
		}
		c := &r.Snapshot.Classes[k.Class]
		name := c.Labels["app"]
		if c.Namespace != "default" {
			name = c.Namespace + "/" + name
		}
		sizes[name] = s
	}
	var out []string
	for _, app := range slices.Sorted(maps.Keys(sizes)) {
		out = append(out, app+sizes[app])
	}
	for n := range r.Nodes {
		out = append(out, string(r.Nodes[n].Name)+tail(r.Nodes[n].Room))
	}
	for g := range r.Groups {
		if r.Groups[g].Template.Unknown == "" {
			empty, _ := r.Template(&r.Groups[g])
			out = append(out, string(r.Groups[g].ID)+tail(empty))
		}
	}
	return strings.Join(out, " ")
}

// TestTooManyKinds: where there is room for the dimensions of two kinds, the kinds of the most pods have them.
func TestTooManyKinds(t *testing.T) {
	w := newWorld("a")
	classes := []int{w.pods(1, "app"), w.pods(2, "db", apart(KeyHostname, "db")), w.pods(4, "web", apart(KeyHostname, "web")), w.pods(3, "log", apart(KeyHostname, "log"))}
	b, _ := w.compile() // the kinds are those of db, log and web
	for kinds, want := range map[int]string{1: "[2]", 2: "[1 2]", 3: "[0 1 2]", 4: "[0 1 2]"} {
		// As many nodes that a kind costs two of as many numbers.
		b.w.Nodes = make([]round.Node, maxNumbers/2/kinds-len(classes)-1)
		if got := fmt.Sprint(b.withDimensions(b.constraintClasses())); got != want {
			t.Errorf("room for %d: kinds %s, want %s", kinds, got, want)
		}
	}
}

// TestDimensions: constraints on hosts as room of machines.
func TestDimensions(t *testing.T) {
	host := KeyHostname
	check(t, []row{
		{"none", "a", func(w *world) { w.pods(1, "web") }, "no constraints"},
		{"a pod of its own kind only", "a", func(w *world) { w.node("n", "a"); w.pods(3, "web", apart(host, "web")) }, "web[1] n[1] a[1]"},
		{"where one runs", "a", func(w *world) {
			w.node("n", "a")
			w.run(1, "n", "web", apart(host, "web"))
			w.pods(3, "web", apart(host, "web"))
		}, "web[1] n[0] a[1]"},
		{"two that keep away from each other", "a", func(w *world) {
			w.pods(3, "web", apart(host, "web"), apart(host, "db"))
			w.pods(3, "db")
		}, "db[1] web[all+0] a[all+0]"},
		{"where the other runs", "a", func(w *world) {
			w.node("n", "a")
			w.node("m", "a")
			w.run(1, "n", "db")
			w.pods(3, "web", apart(host, "web"), apart(host, "db"))
			w.pods(3, "db")
		}, "db[1] web[all+0] m[all+0] n[all-1] a[all+0]"},
		{"two of which one keeps the other away", "a", func(w *world) {
			w.pods(3, "web", apart(host, "db"))
			w.pods(3, "db")
		}, "db[] web[]! a[]"},
		{"one that keeps away what is not there", "a", func(w *world) { w.pods(3, "web", apart(host, "db")) }, "no constraints"},
		{"with a term on zones too", "a b", func(w *world) { w.pods(3, "web", apart(host, "web"), apart(zone, "cache")) }, "web[1] a[1] b[1]"},
		{"a term on zones only", "a b", func(w *world) { w.pods(2, "web", apart(zone, "web")) }, "web[] a[] b[]"},
		{"a plain class beside it", "a", func(w *world) { w.pods(3, "web", apart(host, "web")); w.pods(3, "app") }, "app[0] web[1] a[1]"},
		{"two kinds that do not touch", "a", func(w *world) {
			w.pods(3, "web", apart(host, "web"))
			w.pods(3, "db", apart(host, "db"))
		}, "db[1 0] web[0 1] a[1 1]"},
		{"one kind of two sizes", "a", func(w *world) {
			w.pods(3, "web", apart(host, "web"))
			w.pods(3, "web", apart(host, "web"), cores(1))
		}, "web[1] a[1]"},
		{"other namespaces", "a", func(w *world) {
			w.pods(3, "web", apart(host, "web"))
			w.pods(3, "web", in("other"), cores(1))
		}, "other/web[0] web[1] a[1]"},
		{"affinity on hosts", "a", func(w *world) { w.pods(3, "web", near(host, "web")); w.pods(1, "app", apart(host, "app")) }, "app[1] web[0]! a[1]"},
		{"affinity in zones", "a", func(w *world) { w.pods(3, "web", near(zone, "web")) }, "web[] a[]"},
		{"affinity on hosts beside anti-affinity", "a", func(w *world) {
			w.pods(3, "web", near(host, "db"))
			w.pods(3, "db", apart(host, "db"))
		}, "db[1] web[0]! a[1]"},
		{"a spread", "a", func(w *world) { w.node("n", "a"); w.pods(3, "web", spread(host, 2, "web")) }, "web[1] n[any] a[2]"},
		{"a spread beside pods that run", "a", func(w *world) {
			w.node("n", "a")
			w.node("m", "a")
			w.run(2, "n", "web")
			w.pods(3, "web", spread(host, 3, "web"))
		}, "web[1] m[5] n[1] a[3]"},
		{"a spread and one over zones", "a b", func(w *world) { w.pods(3, "web", spread(host, 3, "web"), spread(zone, 1, "web")) }, "web[1] a[3] b[3]"},
		{"a spread over zones only", "a b", func(w *world) { w.pods(3, "web", spread(zone, 3, "web")) }, "web[] a[] b[]"},
		{"two spreads", "a", func(w *world) { w.pods(3, "web", spread(host, 3, "web"), spread(host, 2, "db")) }, "web[1] a[3]"},
		{"a spread that does not count its own pods", "a", func(w *world) {
			w.node("n", "a")
			w.pods(3, "web", spread(host, 3, "db"), spread(host, 2, "db"))
		}, "web[0] n[any] a[2]"},
		{"one that counts others with a spread", "a", func(w *world) {
			w.pods(3, "web", spread(host, 3, "db"))
			w.pods(3, "db", spread(host, 2, "db"))
		}, "db[1 1] web[0 0] a[2 3]"},
		{"one that counts others without", "a", func(w *world) { w.pods(3, "web", spread(host, 3, "db")); w.pods(3, "db") }, "db[0] web[0] a[3]"},
		{"one that keeps away what runs", "a b", func(w *world) {
			w.node("n", "a")
			w.run(1, "n", "cache")
			w.pods(3, "web", apart(host, "cache"))
			w.pods(1, "db", apart(host, "db"))
		}, "db[1] web[0] n[1] a[1] b[1]"},
		{"classes of one kind that select machines", "a", func(w *world) {
			w.pods(3, "web", spread(host, 2, "web"), on("disk", "ssd"))
			w.pods(3, "web", spread(host, 2, "web"), on("disk", "hdd"))
		}, "web[1] a[2]"},
		{"classes of one kind that keep apart", "a", func(w *world) {
			w.group("b", zone, "a", "disk", "hdd")
			w.g("a").Template.Labels["disk"] = "ssd"
			w.pods(3, "web", apart(host, "web"), spread(zone, 5, "web"), on("disk", "ssd"))
			w.pods(3, "web", apart(host, "web"), spread(zone, 5, "web"), on("disk", "hdd"))
		}, "web[1] a[1] b[1]"},
		{"a narrower spread over zones", "a b", func(w *world) { w.pods(3, "web", spread(host, 3, "db"), spread(zone, 1, "db")) }, "web[0] a[3] b[3]"},
		{"two spreads of one width", "a", func(w *world) {
			w.pods(3, "web", spread(host, 2, "web"))
			w.pods(3, "db", spread(host, 2, "db"))
		}, "db[1 0] web[0 1] a[2 2]"},
		{"a spread of one beside anti-affinity", "a", func(w *world) { w.pods(3, "web", spread(host, 1, "web"), apart(host, "web")) }, "web[1 1] a[1 1]"},
		{"a spread of any domains", "a", func(w *world) {
			w.pods(3, "web", spread(host, 2, "web"), func(c *cluster.PodClass) { c.Spread[0].MinDomains = 5 })
		}, "web[1] a[2]"},
		{"a spread of selected machines", "a", func(w *world) {
			w.pods(3, "web", spread(host, 2, "web"), on("disk", "ssd"))
		}, "web[1] a[2]"},
		{"a spread that honors taints", "a", func(w *world) {
			w.pods(3, "web", spread(host, 2, "web"), func(c *cluster.PodClass) { c.Spread[0].HonorTaints = true })
		}, "web[1] a[2]"},
		{"two kinds that count the same", "a", func(w *world) {
			both := func(c *cluster.PodClass) { c.Labels["part"] = "of" }
			same := &cluster.Selector{Requirements: []cluster.Requirement{{Key: "part", Operator: "Exists"}}}
			by := func(c *cluster.PodClass) {
				c.Spread = []cluster.Spread{{TopologyKey: host, MaxSkew: 2, Selector: same}}
			}
			w.pods(3, "web", both, by)
			w.pods(3, "db", both, by)
		}, "db[1] web[1] a[2]"},
		{"volumes of a driver", "a", func(w *world) {
			w.g("a").Template.VolumeLimits = map[string]int64{"ebs": 3}
			w.node("n", "a").VolumeLimits = map[string]int64{"ebs": 3, "efs": 9}
			w.run(1, "n", "old", volume("ebs", "x"), volume("efs", "y"))
			w.pods(1, "web", volume("ebs", "v1"), volume("ebs", "v2"), volume("ebs", "v1"))
			w.pods(1, "db", volume("efs", "v3"), volume("", "v4"), cores(1))
		}, "db[0 1] web[2 0] n[2 8] a[3 any]"},
		{"a node without a limit", "a", func(w *world) {
			w.node("n", "a")
			w.run(1, "n", "old", volume("ebs", "x"))
			w.pods(1, "web", volume("ebs", "v1"))
		}, "web[1] n[any] a[any]"},
		{"volumes of pods that have ended", "a", func(w *world) {
			w.node("n", "a").VolumeLimits = map[string]int64{"ebs": 3}
			w.run(2, "n", "old", volume("ebs", "x"))
			w.s.Pods[0].Finished, w.s.Pods[1].Finished = true, true
			w.pods(1, "web", volume("ebs", "v1"))
		}, "web[1] n[3] a[any]"},
		{"volumes of two pods", "a", func(w *world) {
			w.node("n", "a").VolumeLimits = map[string]int64{"ebs": 3}
			w.run(2, "n", "old", volume("ebs", "x"), volume("ebs", "y"), volume("efs", "z"))
			w.pods(1, "web", volume("ebs", "v1"))
		}, "web[1] n[1] a[any]"},
		{"more volumes than the limit", "a", func(w *world) {
			w.node("n", "a").VolumeLimits = map[string]int64{"ebs": 1}
			w.run(2, "n", "old", volume("ebs", "x"), volume("ebs", "y"))
			w.pods(1, "web", volume("ebs", "v1"))
		}, "web[1] n[0] a[any]"},
		{"a volume that one pod uses", "a", func(w *world) {
			w.pods(1, "web", volume("ebs", "v1"), func(c *cluster.PodClass) { c.Volumes[0].OnePod = true })
		}, "web[1]! a[any]"},
		{"a group of unknown machines", "a b", func(w *world) {
			w.g("b").Template.Unknown = "no"
			w.pods(3, "web", apart(host, "web"))
		}, "web[1] a[1]"},
		{"nodes that are out", "a", func(w *world) {
			w.node("n", "a").Ready = cluster.StatusFalse
			w.pods(3, "web", apart(host, "web"))
			w.pods(3, "db", spread(host, 2, "db"))
		}, "db[1 0] web[0 1] n[0 0] a[2 1]"},
	}, dimensions)
}
