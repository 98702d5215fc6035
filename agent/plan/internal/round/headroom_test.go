package round

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// TestOpenHeadroom: which room is kept free now, and when that changes.
func TestOpenHeadroom(t *testing.T) {
	window := func(l *ledger, from, to time.Duration) []cluster.Window {
		return []cluster.Window{{From: l.s.Now.Add(from), To: l.s.Now.Add(to)}}
	}
	small := cluster.PodClass{Requests: cluster.Resources{MilliCPU: 100}}
	for name, c := range map[string]struct {
		change func(l *ledger)
		want   string
	}{
		"none": {func(*ledger) {}, ""},
		"one":  {func(l *ledger) { l.p.Headroom = []cluster.Headroom{{Name: "a", Piece: small, Count: 2}} }, "2 of a a: 100 0 map[] tolerates 0, priority true"},
		"two, by name": {func(l *ledger) {
			l.p.Headroom = []cluster.Headroom{{Name: "b", Piece: small, Count: 1}, {Name: "a", Piece: small, Count: 2}}
		}, "2 of a a: 100 0 map[] tolerates 0, priority true; 1 of b b: 100 0 map[] tolerates 0, priority true"},
		"no piece": {func(l *ledger) { l.p.Headroom = []cluster.Headroom{{Name: "a", Piece: small}} }, ""},
		"too many pieces": {func(l *ledger) {
			l.p.Headroom = []cluster.Headroom{{Name: "a", Piece: small, Count: cluster.MostPieces + 1}}
		}, "5000 of a a: 100 0 map[] tolerates 0, priority true"},
		"open for an hour": {func(l *ledger) {
			l.p.Headroom = []cluster.Headroom{{Name: "a", Piece: small, Count: 2, Scheduled: true, Windows: window(l, -time.Hour, time.Hour)}}
		}, "2 of a a: 100 0 map[] tolerates 0, priority true; wake in 1h0m0s"},
		"in an hour": {func(l *ledger) {
			l.p.Headroom = []cluster.Headroom{{Name: "a", Piece: small, Count: 2, Scheduled: true, Windows: window(l, time.Hour, 2*time.Hour)}}
		}, "wake in 1h0m0s"},
		"a machine":                    {func(l *ledger) { l.p.Headroom = []cluster.Headroom{{Name: "a", Piece: small, Count: 1, Group: "w"}} }, "1 of a a: 950 1900 map[gpu:1] tolerates 1, priority true"},
		"of a group that is not there": {func(l *ledger) { l.p.Headroom = []cluster.Headroom{{Name: "a", Piece: small, Count: 1, Group: "z"}} }, "[U23] group z is not known, so neither is the size of its machines"},
		"of one that is not known": {func(l *ledger) {
			l.p.Headroom = []cluster.Headroom{{Name: "a", Piece: small, Count: 1, Group: "w"}}
			l.g().Template.Unknown = "x"
		}, "[U23] group w is not known, so neither is the size of its machines"},
	} {
		l := newLedger()
		l.s.Classes = append(make([]cluster.PodClass, 0, 8), cluster.PodClass{Namespace: "own"})
		l.g().Template = cluster.Template{Allocatable: cluster.Resources{MilliCPU: 1000, Memory: 2000, Pods: 9, Extended: map[string]int64{"gpu": 1, "none": 0}}, Taints: []cluster.Taint{{Key: "team", Value: "x", Effect: "NoSchedule"}}}
		c.change(l)
		w := New(new(Cache), &l.s, &l.m, &l.p)
		w.OpenHeadroom()
		w.Index()
		w.demandHeadroom()
		var out []string
		for _, d := range w.Demands {
			class := &w.Snapshot.Classes[d.Class]
			out = append(out, fmt.Sprintf("%d of %s %s: %d %d %v tolerates %d, priority %v", d.Expected, d.Headroom, w.HeadroomName(d.Class), class.Requests.MilliCPU, class.Requests.Memory, class.Requests.Extended, len(class.Tolerations), class.Priority < 0))
		}
		for _, h := range w.Plan.Held {
			out = append(out, "["+h.Rule+"] "+h.Why)
		}
		if !w.Plan.Wake.IsZero() {
			out = append(out, "wake in "+w.Plan.Wake.Sub(w.Now).String())
		}
		if got := strings.Join(out, "; "); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
		if own := l.s.Classes[:2][1]; own.Priority != 0 || len(l.s.Classes) != 1 || w.HeadroomName(0) != "" {
			t.Errorf("%s: the list that was handed in was written to: %+v", name, own)
		}
	}
}

// TestKeepHeadroom adds up the pieces of one class.
func TestKeepHeadroom(t *testing.T) {
	n := &Node{}
	for _, class := range []int{1, 2, 1} {
		n.KeepHeadroom(class, 3)
	}
	if want := []HeadroomPieces{{Class: 1, Count: 6}, {Class: 2, Count: 3}}; !slices.Equal(n.Headroom, want) {
		t.Errorf("%+v", n.Headroom)
	}
}
