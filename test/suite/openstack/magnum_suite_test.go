package openstack_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/magnum"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/providertest"
	"github.com/autoscaler-agent/autoscaler-agent/test/suite/openstack"
)

// suiteWorld is one cluster of real Magnum's with the suite's groups. Every case has it
// anew: what is not as the suite wants it is mended first.
type suiteWorld struct {
	magnumWorld
	trouble
	heals bool // what was killed or never came is asked for again by the next settle

	changed  map[cluster.GroupID]bool
	accepted atomic.Int64 // resizes that Magnum has accepted and its conductor takes up in its own time
}

// The abilities of real Magnum.
var _ interface {
	providertest.World
	providertest.Forms
	providertest.FailLaunches
	providertest.LimitCapacity
	providertest.Furnish
	providertest.ExpireAfter
	providertest.Hang
	providertest.LoseAnswer
} = (*suiteWorld)(nil)

// suiteGroups are the suite's groups, as Magnum is asked for them.
var suiteGroups = map[cluster.GroupID]openstack.NodeGroup{
	providertest.Workers: {Name: string(providertest.Workers), Count: 2, Min: 0, Max: new(10), Flavor: "m1.small"},
	providertest.Others:  {Name: string(providertest.Others), Count: 1, Min: 1, Max: new(3), Flavor: "m1.medium"},
}

func magnumSuite(t *testing.T, s *openstack.Stack) {
	w := &suiteWorld{magnumWorld: magnumWorld{Stack: s, t: t, name: fmt.Sprintf("suite-%d", os.Getpid())}, trouble: trouble{front: s.Front}, changed: map[cluster.GroupID]bool{}}
	w.accepted.Store(int64(s.Resized()))
	if err := s.CreateCluster(t.Context(), w.name, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.t = t; w.remove() })
	s.Watch(w.watch)
	defer s.Watch(nil)
	providertest.Suite{
		New: func(t testing.TB) (provider.Provider, providertest.World) {
			w.t = t
			w.mend()
			return w.connect(magnum.Config{}), w
		},
		Settle: func(testing.TB, providertest.World) { w.settle() },
		Cannot: map[string]string{
			"DeleteMoreThanSurplus": "Magnum ends nodes itself when somebody lowers a node count",
			"DeletionRefusedForOne": "all nodes of one call are removed by one request, which is refused or not",
			"PausedGroup":           "the states in which Magnum resizes nothing are the whole cluster's",
			"ReadLagsBehindWrites":  "Magnum reads its one database; what lags is its conductor (Magnum/OneOperationAtATime)",
			"SourceAfterAChange":    "Magnum changes neither flavor nor image of a node group but by an upgrade, which replaces its nodes",
			"SourceThroughRotation": "Magnum makes the user data, and tells it of no node",
			"SourceTellsUserData":   "Magnum makes the user data, and tells it of no node",
			"TemplateChanges":       "Magnum changes neither flavor nor labels of a node group; the emulated one does",
		},
	}.Run(t)
	w.t = t
	w.settle()
}

// mend makes the groups what the suite wants them to be.
func (w *suiteWorld) mend() {
	w.t.Helper()
	ctx := w.t.Context()
	w.heals = false
	w.takenUp()
	w.free()
	for _, id := range []cluster.GroupID{providertest.Workers, providertest.Others} {
		want := suiteGroups[id]
		if w.changed[id] {
			w.Vanish(id)
		}
		g, err := w.NodeGroup(ctx, w.name, want.Name)
		if err != nil {
			w.create(want)
			delete(w.changed, id)
			continue
		}
		for _, s := range w.serversOf(id) {
			if s.Status == "ERROR" {
				w.end(s.ID)
			}
		}
		if strings.HasSuffix(g.Status, "_FAILED") || g.Count != want.Count || len(w.Alive(id)) != want.Count {
			w.SetTarget(id, want.Count)
			w.free()
		}
	}
}

func (w *suiteWorld) create(g openstack.NodeGroup) {
	w.t.Helper()
	if err := w.CreateNodeGroup(w.t.Context(), w.name, g); err != nil {
		w.t.Fatal(err)
	}
	w.shows(g.Name)
	w.free()
}

// watch counts what Magnum accepted.
func (w *suiteWorld) watch(r *http.Request, _ []byte, status int) {
	if strings.HasSuffix(r.URL.Path, "/actions/resize") && status == http.StatusAccepted {
		w.accepted.Add(1)
	}
}

// takenUp waits until Magnum's conductor has taken up what Magnum accepted.
func (w *suiteWorld) takenUp() {
	w.t.Helper()
	w.until(func() string {
		if int64(w.Resized()) < w.accepted.Load() {
			return "the conductor takes up a resize"
		}
		return ""
	})
}

// settle lets Magnum finish. A healer, or an operator, asks for what was lost: it resizes
// to what Magnum counts already.
func (w *suiteWorld) settle() {
	w.t.Helper()
	w.takenUp()
	w.free()
	if w.heals {
		w.heals = false
		for id := range suiteGroups {
			if n := w.Target(id); n >= 0 {
				w.SetTarget(id, n)
				w.free()
			}
		}
	}
}

func (w *suiteWorld) serversOf(id cluster.GroupID) []openstack.Server {
	w.t.Helper()
	g, err := w.NodeGroup(w.t.Context(), w.name, string(id))
	if err != nil {
		return nil
	}
	list, err := w.Servers(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return slices.DeleteFunc(list, func(s openstack.Server) bool { return s.Metadata["e2e_group"] != g.UUID || s.Going() })
}

func (w *suiteWorld) Target(id cluster.GroupID) int {
	w.takenUp()
	g, err := w.NodeGroup(w.t.Context(), w.name, string(id))
	if err != nil {
		return -1
	}
	return g.Count
}

func (w *suiteWorld) Alive(id cluster.GroupID) []cluster.InstanceID {
	w.takenUp()
	var out []cluster.InstanceID
	for _, s := range w.serversOf(id) {
		if s.Status != "ERROR" {
			out = append(out, instance(s))
		}
	}
	slices.Sort(out)
	return out
}

func (w *suiteWorld) Foreign(t testing.TB) cluster.InstanceID {
	id, err := w.CreateServer(t.Context(), "foreign", map[string]string{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.DeleteServer(context.Background(), id) })
	return cluster.InstanceID("openstack:///" + id)
}

func (w *suiteWorld) find(id cluster.InstanceID) openstack.Server {
	list, err := w.Servers(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	if at := slices.IndexFunc(list, func(s openstack.Server) bool { return instance(s) == id }); at >= 0 {
		return list[at]
	}
	return openstack.Server{}
}

func (w *suiteWorld) ForeignAlive(id cluster.InstanceID) bool {
	s := w.find(id)
	return s.ID != "" && !s.Going()
}

func (w *suiteWorld) Node(id cluster.InstanceID) cluster.Node { return nodeOf(w.find(id)) }

func (w *suiteWorld) SetTarget(id cluster.GroupID, n int) {
	w.t.Helper()
	if err := w.ResizeNodeGroup(w.t.Context(), w.name, string(id), n); err != nil {
		w.t.Fatal(err)
	}
	w.accepted.Add(1)
	w.takenUp()
}

// end deletes a server past Magnum, to the end.
func (w *suiteWorld) end(uuid string) {
	w.t.Helper()
	w.DeleteServer(w.t.Context(), uuid)
	w.until(func() string {
		if w.find(cluster.InstanceID("openstack:///"+uuid)).ID != "" {
			return "a server that was deleted is there"
		}
		return ""
	})
}

func (w *suiteWorld) Kill(id cluster.InstanceID) {
	w.takenUp()
	w.heals = true
	w.DeleteServer(w.t.Context(), w.find(id).ID)
}

func (w *suiteWorld) Vanish(id cluster.GroupID) {
	w.t.Helper()
	if err := w.DeleteNodeGroup(w.t.Context(), w.name, string(id)); err != nil {
		w.t.Fatal(err)
	}
	w.until(func() string {
		if _, err := w.NodeGroup(w.t.Context(), w.name, string(id)); err == nil {
			return "a node group that was deleted is there"
		}
		return ""
	})
	w.free()
}

// Quota leaves no room beside what is there. Taking it back is followed by the operator's
// own resize, since Magnum tries once.
func (w *suiteWorld) Quota(t testing.TB, on bool) {
	limit := 100
	w.until(func() string {
		list, err := w.Servers(t.Context())
		limit = len(list)
		if err != nil || slices.ContainsFunc(list, openstack.Server.Going) {
			return fmt.Sprintf("the servers of earlier cases go (%v)", err)
		}
		return ""
	})
	play(t, on, func(on bool) error {
		return w.Stack.Quota(context.Background(), map[bool]int{true: limit, false: 100}[on])
	})
	w.heals = !on
}

// LimitCapacity closes the host. When it is open again the operator deletes what is in
// ERROR and has it made anew.
func (w *suiteWorld) LimitCapacity(t testing.TB, on bool) {
	play(t, on, func(on bool) error { return w.CloseHost(context.Background(), on) })
	for _, s := range w.serversOf(providertest.Workers) {
		if s.Status == "ERROR" && !on {
			w.end(s.ID)
		}
	}
	w.heals = !on
}

func (w *suiteWorld) FailLaunches(t testing.TB, on bool) {
	play(t, on, func(on bool) error { return w.HideImage(context.Background(), on) })
}

func (w *suiteWorld) Throttle(t testing.TB, on bool) { w.throttle(t, on) }

func (w *suiteWorld) Expire(t testing.TB, on bool) { w.expire(t, w.Stack, on) }

// ExpireAfter counts requests, of which a method makes up to a dozen: the moments that are
// played are three apart.
func (w *suiteWorld) ExpireAfter(t testing.TB, calls int) { w.expireAfter(t, 3*calls) }

// LoseAnswer lets the next resize be taken up and not heard of.
func (w *suiteWorld) LoseAnswer(t testing.TB) {
	w.fault(t, "lose", true, openstack.Fault{Kind: openstack.LoseAnswer, Times: 1, Then: w.takenUp, Match: func(r *http.Request) bool {
		return strings.HasSuffix(r.URL.Path, "/actions/resize")
	}})
}

func (w *suiteWorld) RefuseDeletes(t testing.TB, on bool) {
	play(t, on, func(on bool) error {
		return w.Policy("magnum", map[bool]string{true: `"cluster:resize": "!"`}[on])
	})
}

func (w *suiteWorld) BreakRead(t testing.TB, on bool) {
	g, err := w.NodeGroup(t.Context(), w.name, string(providertest.Workers))
	if err != nil {
		t.Fatal(err)
	}
	w.fault(t, "read", on, openstack.Fault{Kind: openstack.Unavailable, Match: func(r *http.Request) bool {
		return strings.HasSuffix(r.URL.Path, "/nodegroups/"+g.UUID) || strings.HasSuffix(r.URL.Path, "/nodegroups/"+g.Name)
	}})
}

func (w *suiteWorld) Forms(id cluster.InstanceID) []string {
	u := strings.TrimPrefix(string(id), "openstack:///")
	return []string{string(id), "openstack://RegionOne/" + u, "openstack://" + u, "openstack:///" + strings.ToUpper(u), u, strings.ReplaceAll(u, "-", "")}
}

// Furnish makes the group anew: Magnum changes no labels.
func (w *suiteWorld) Furnish(testing.TB) {
	w.t.Helper()
	g, taint := suiteGroups[providertest.Workers], providertest.FurnishTaint
	g.Labels = map[string]any{"kubelet_options": "--node-labels=" + providertest.FurnishLabel[0] + "=" + providertest.FurnishLabel[1] +
		" --register-with-taints=" + taint.Key + "=" + taint.Value + ":" + taint.Effect}
	w.Vanish(providertest.Workers)
	w.create(g)
	w.changed[providertest.Workers] = true
}
