package openstack_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/nova"
	api "github.com/autoscaler-agent/autoscaler-agent/agent/provider/openstack"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/providertest"
	"github.com/autoscaler-agent/autoscaler-agent/test/suite/openstack"
)

// TestOpenStack starts the services once and plays everything against them.
func TestOpenStack(t *testing.T) {
	if os.Getenv("AUTOSCALER_TEST_OPENSTACK") != "1" {
		t.Skip("real OpenStack services take minutes: make e2e-openstack runs this")
	}
	var s *openstack.Stack
	var err error
	if dir := os.Getenv("AUTOSCALER_TEST_OPENSTACK_DIR"); dir != "" {
		s, err = openstack.Attach(t.Context(), dir)
	} else {
		s, err = openstack.Start(t.Context(), t.TempDir(), os.Stderr)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop() })
	for name, value := range s.Env() {
		t.Setenv(name, value)
	}
	for _, one := range []struct {
		name string
		run  func(*testing.T, *openstack.Stack)
	}{
		{"ScaleToTenAndBack", scale}, {"Quota", quota}, {"NoValidHost", noValidHost}, {"Suite", suite}, {"Magnum", magnumStory}, {"MagnumSuite", magnumSuite}, {"AccessRules", restricted}, {"Quickstart", quickstart}, {"NothingLeft", nothingLeft},
	} {
		t.Run(one.name, func(t *testing.T) {
			before := s.CPU()
			one.run(t, s)
			t.Logf("the services took %s of processor time", (s.CPU() - before).Round(100*time.Millisecond))
		})
	}
}

// nothingLeft: of all that the tests before it made and deleted there is no server, no
// port and no volume any more.
func nothingLeft(t *testing.T, s *openstack.Stack) {
	for deadline := time.Now().Add(2 * time.Minute); ; pause(t) {
		left, err := s.Left(t.Context())
		if err == nil && len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("left are %v (%v)", left, err)
		}
	}
}

// pause is one beat of a poll of services that tell nobody when they are done.
func pause(t testing.TB) {
	select {
	case <-time.After(300 * time.Millisecond):
	case <-t.Context().Done():
	}
}

var reservation = cluster.Reservation{Kube: cluster.Resources{MilliCPU: 50, Memory: 64 << 20}, Eviction: cluster.Resources{Memory: 32 << 20}, EvictionStoragePercent: 10, MaxPods: 110}

// world is one cluster of the stack: every case has a name of its own, and sees nothing
// of the others.
type world struct {
	*openstack.Stack
	t       testing.TB
	cluster string

	trouble

	mu     sync.Mutex
	groups map[string]map[string]any
}

var _ providertest.World = (*world)(nil)

var made int

func newWorld(t testing.TB, s *openstack.Stack, change func(map[string]any)) (*world, *nova.Provider) {
	made++
	w := &world{Stack: s, t: t, trouble: trouble{front: s.Front}, cluster: fmt.Sprintf("case-%d-%d", os.Getpid(), made), groups: map[string]map[string]any{}}
	script := filepath.Join(t.TempDir(), "worker.sh")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n# abcdef.0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, bounds := range map[cluster.GroupID][2]int{providertest.Workers: {0, 10}, providertest.Others: {1, 3}} {
		g := map[string]any{"name": string(name), "flavor": "m1.small", "image": "worker", "networks": []any{"workers"}, "key": "ops", "min": bounds[0], "max": bounds[1], "userdata": script}
		if change != nil {
			change(g)
		}
		w.groups[string(name)] = g
	}
	t.Cleanup(func() {
		for _, one := range w.servers("") {
			w.DeleteServer(context.Background(), one.ID)
		}
	})
	p, err := nova.New(nova.Config{ParallelCreates: 3}, api.Config{Timeout: 3 * time.Minute}, w.section, reservation)
	if err != nil {
		t.Fatal(err)
	}
	return w, p
}

func (w *world) section() json.RawMessage {
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []any
	for _, g := range w.groups {
		list = append(list, g)
	}
	raw, err := json.Marshal(map[string]any{"cluster": w.cluster, "groups": list})
	if err != nil {
		panic(err)
	}
	return raw
}

func suite(t *testing.T, s *openstack.Stack) {
	providertest.Suite{
		New: func(t testing.TB) (provider.Provider, providertest.World) {
			w, p := newWorld(t, s, nil)
			for id, n := range map[cluster.GroupID]int{providertest.Workers: 2, providertest.Others: 1} {
				if err := p.Resize(t.Context(), id, 0, n); err != nil {
					t.Fatal(err)
				}
			}
			w.settle(t)
			return p, w
		},
		Settle: func(t testing.TB, w providertest.World) { w.(*world).settle(t) },
		Cannot: map[string]string{
			"GoneInstanceIsPhaseGone": "nobody replaces a server that somebody else deleted; the emulated OpenStack plays the rest",
			"PartialRead":             "there is one region; the emulated OpenStack has two",
			"DeleteMoreThanSurplus":   "the target is the number of servers: there is no surplus",
			"DeletionRefusedForOne":   "Nova's policy refuses all of them or none; the emulated OpenStack refuses one",
			"CapacityIsExhausted":     "Nova does not try again by itself; NoValidHost plays what there is",
			"PausedGroup":             "Nova has no groups, so nobody can tell it to leave one alone; groups.yaml pauses any",
			"ReadLagsBehindWrites":    "these services read one database; the emulated OpenStack lags",
		},
	}.Run(t)
}

func (w *world) servers(id cluster.GroupID) []openstack.Server {
	list, err := w.Servers(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	return slices.DeleteFunc(list, func(s openstack.Server) bool {
		return s.Metadata["autoscaler-agent.cluster"] != w.cluster && s.Metadata["of"] != w.cluster || id != "" && s.Metadata["autoscaler-agent.group"] != string(id)
	})
}

func (w *world) members(id cluster.GroupID) []openstack.Server {
	return slices.DeleteFunc(w.servers(id), openstack.Server.Going)
}

func (w *world) settle(t testing.TB) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Minute); ; pause(t) {
		busy, err := w.Busy(t.Context(), w.cluster)
		if err == nil && busy == "0" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the servers do not settle, %s are busy (%v): %+v", busy, err, w.servers(""))
		}
	}
}

func (w *world) Target(id cluster.GroupID) int { return len(w.members(id)) }

func (w *world) Alive(id cluster.GroupID) []cluster.InstanceID {
	var out []cluster.InstanceID
	for _, s := range w.members(id) {
		if s.Status != "ERROR" {
			out = append(out, instance(s))
		}
	}
	slices.Sort(out)
	return out
}

func instance(s openstack.Server) cluster.InstanceID {
	return cluster.InstanceID("openstack:///" + s.ID)
}

func (w *world) server(id cluster.InstanceID) openstack.Server {
	for _, s := range w.servers("") {
		if instance(s) == id {
			return s
		}
	}
	return openstack.Server{}
}

func (w *world) Foreign(t testing.TB) cluster.InstanceID {
	id, err := w.CreateServer(t.Context(), "foreign", map[string]string{"of": w.cluster}, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.settle(t)
	return cluster.InstanceID("openstack:///" + id)
}

func (w *world) ForeignAlive(id cluster.InstanceID) bool {
	s := w.server(id)
	return s.ID != "" && !s.Going()
}

func (w *world) Node(id cluster.InstanceID) cluster.Node { return nodeOf(w.server(id)) }

// nodeOf is the Node that the kubelet on a server would register.
func nodeOf(s openstack.Server) cluster.Node {
	n := cluster.Node{Name: cluster.NodeName(s.Name), ProviderID: string(instance(s)), SystemUUID: s.ID}
	for _, list := range s.Addresses {
		for _, a := range list {
			n.Addresses = append(n.Addresses, a.Addr)
		}
	}
	return n
}

func (w *world) SetTarget(id cluster.GroupID, n int) {
	for list := w.members(id); len(list) < n; list = w.members(id) {
		if _, err := w.CreateServer(context.Background(), "by-hand", list[0].Metadata, list[0].Tags); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *world) Kill(id cluster.InstanceID) { w.DeleteServer(context.Background(), w.server(id).ID) }

func (w *world) Vanish(id cluster.GroupID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.groups, string(id))
}

// Quota leaves no room beside what is there, once nothing that others deleted makes
// room any more.
func (w *world) Quota(t testing.TB, on bool) {
	var limit int
	for deadline := time.Now().Add(5 * time.Minute); on; pause(t) {
		list, err := w.Servers(t.Context())
		if err != nil || time.Now().After(deadline) {
			t.Fatal("the servers of earlier cases do not go: ", err)
		}
		if limit = len(list); !slices.ContainsFunc(list, openstack.Server.Going) {
			break
		}
	}
	play(t, on, func(on bool) error {
		return w.Stack.Quota(context.Background(), map[bool]int{true: limit, false: 100}[on])
	})
}

func (w *world) BreakRead(t testing.TB, _ bool) { t.Skip("see Cannot") }

func (w *world) Throttle(t testing.TB, on bool) { w.throttle(t, on) }

func (w *world) Expire(t testing.TB, on bool) { w.expire(t, w.Stack, on) }

func (w *world) RefuseDeletes(t testing.TB, on bool) {
	play(t, on, func(on bool) error {
		return w.Policy("nova", map[bool]string{true: `"os_compute_api:servers:delete": "rule:context_is_admin"`}[on])
	})
}

func readGroup(t testing.TB, p provider.Provider) cluster.NodeGroup {
	t.Helper()
	groups, err := p.Groups(t.Context())
	for _, g := range groups {
		if g.ID == providertest.Workers && err == nil {
			return g
		}
	}
	t.Fatalf("workers is not among %d groups: %v", len(groups), err)
	return cluster.NodeGroup{}
}

// withPorts gives every server a port and a volume of its own, so that leaks would show.
func withPorts(g map[string]any) {
	g["networks"] = []any{map[string]any{"network": "workers", "allowedAddresses": []string{"10.244.0.0/16"}}}
	g["min"], g["serverGroup"], g["bootVolume"] = 0, "soft-anti-affinity", map[string]any{"size": 1}
}

// grow does what the agent does: after a transient failure the next round reads again and
// asks for what is still missing.
func grow(t testing.TB, p provider.Provider, to int) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Minute); ; {
		target := readGroup(t, p).Target
		err := p.Resize(t.Context(), providertest.Workers, target, to)
		if err == nil {
			return
		}
		if provider.KindOf(err) != provider.Transient || time.Now().After(deadline) {
			t.Fatal(err)
		}
		t.Logf("once more: %v", err)
	}
}

func scale(t *testing.T, s *openstack.Stack) {
	w, p := newWorld(t, s, withPorts)
	began := time.Now()
	grow(t, p, 10)
	w.settle(t)
	up := time.Since(began)
	g := readGroup(t, p)
	names := map[string]bool{}
	for _, i := range g.Instances {
		if i.Phase != cluster.PhaseRunning || len(i.Addresses) != 1 || len(i.NodeNames) == 0 || i.Type != "m1.small" {
			t.Errorf("%+v", i)
		}
		names[i.NodeNames[0]] = true
	}
	if g.Target != 10 || len(names) != 10 {
		t.Errorf("target %d, %d names", g.Target, len(names))
	}
	if left, err := s.Left(t.Context()); err != nil || len(left) != 30 {
		t.Errorf("want 10 servers, 10 ports and 10 volumes: %v, %v", left, err)
	}
	began = time.Now()
	if err := p.Delete(t.Context(), providertest.Workers, w.Alive(providertest.Workers)...); err != nil {
		t.Fatal(err)
	}
	w.settle(t)
	g = readGroup(t, p)
	for _, i := range g.Instances {
		if i.Phase != cluster.PhaseGone {
			t.Errorf("%+v", i)
		}
	}
	if g.Target != 0 {
		t.Errorf("target %d", g.Target)
	}
	t.Logf("0 to 10 in %s, back to 0 in %s", up.Round(time.Second), time.Since(began).Round(time.Second))
}

func quota(t *testing.T, s *openstack.Stack) {
	w, p := newWorld(t, s, withPorts)
	w.Quota(t, true)
	defer w.Quota(t, false)
	err := p.Resize(t.Context(), providertest.Workers, 0, 3)
	if provider.KindOf(err) != provider.Exhausted {
		t.Errorf("%v", err)
	}
	if n := len(w.servers("")); n != 0 {
		t.Errorf("%d servers", n)
	}
}

func noValidHost(t *testing.T, s *openstack.Stack) {
	w, p := newWorld(t, s, func(g map[string]any) { withPorts(g); g["flavor"] = []string{"too.big", "m1.medium"} })
	grow(t, p, 1)
	w.settle(t)
	g := readGroup(t, p)
	if len(g.Instances) != 1 || g.Instances[0].Phase != cluster.PhaseFailed || g.Instances[0].Failure.Cause != cluster.CauseCapacity || !strings.Contains(g.Instances[0].Failure.Text, "No valid host") {
		t.Fatalf("%+v", g.Instances)
	}
	if err := p.Delete(t.Context(), providertest.Workers, g.Instances[0].ID); err != nil {
		t.Fatal(err)
	}
	w.settle(t)
	grow(t, p, 1)
	w.settle(t)
	if list := w.members(providertest.Workers); len(list) != 1 || list[0].Status != "ACTIVE" {
		t.Errorf("the second flavor was not taken: %+v", list)
	}
	if err := p.Delete(t.Context(), providertest.Workers, w.Alive(providertest.Workers)...); err != nil {
		t.Error(err)
	}
}
