package nodecleaner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/kubetest"
	"github.com/autoscaler-agent/autoscaler-agent/nodecleaner/reaper"
)

// cloud is an inventory that counts its reads.
type cloud struct {
	mu     sync.Mutex
	group  cluster.NodeGroup
	reads  int
	broken error
	asked  []cluster.InstanceID
}

func (c *cloud) Groups(_ context.Context, maxAge time.Duration) ([]cluster.NodeGroup, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken != nil {
		c.reads++
		return nil, c.broken
	}
	if time.Since(c.group.ReadAt) > maxAge {
		c.group.ReadAt = time.Now()
		c.reads++
	}
	g := c.group
	g.Instances = slices.Clone(g.Instances)
	return []cluster.NodeGroup{g}, nil
}

// Instances says of each instance what the list says.
func (c *cloud) Instances(_ context.Context, ids ...cluster.InstanceID) (map[cluster.InstanceID]cluster.Testimony, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, ids...)
	out := map[cluster.InstanceID]cluster.Testimony{}
	for _, id := range ids {
		out[id] = cluster.Testimony{Existence: cluster.InstanceNotFound}
		for _, i := range c.group.Instances {
			switch {
			case i.ID != id:
			case i.Phase == cluster.PhaseGone:
				out[id] = cluster.Testimony{Existence: cluster.InstanceTerminated}
			default:
				out[id] = cluster.Testimony{Existence: cluster.InstanceExists}
			}
		}
	}
	return out, nil
}

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func id(n int) cluster.InstanceID { return cluster.InstanceID(fmt.Sprintf("aws:///z/i-%02d", n)) }

func apiNode(name string, id cluster.InstanceID, ready corev1.ConditionStatus) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(time.Now().Add(-2 * time.Hour)),
		Annotations: map[string]string{cluster.AnnotationGroup: "workers"}},
		Spec:   corev1.NodeSpec{ProviderID: string(id)},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, LastTransitionTime: metav1.NewTime(time.Now())}}}}
}

// loop runs the service in a bubble of fake time over a fake API server, which knows
// neither preconditions nor UIDs: test/suite/services has the real one.
func loop(t *testing.T, c *cloud, change func(*Config, *Deps), nodes []*corev1.Node, story func(client *fake.Clientset, s *Service)) {
	t.Helper()
	client := fake.NewClientset()
	for _, n := range nodes {
		if _, err := client.CoreV1().Nodes().Create(t.Context(), n, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	log := logrus.New()
	log.SetOutput(io.Discard)
	api := kubetest.Client(client)
	shared := kube.NewInformers(api, nil)
	cfg := Config{Mode: ModeDelete, SightInterval: time.Minute, SentGrace: time.Minute, Grace: 10 * time.Minute, KnownFor: time.Hour,
		MaxShare: 0.2, MassHold: 10 * time.Minute, FreezeFor: 5 * time.Minute, UnledgeredEvery: 10 * time.Second,
		BreakErrors: 5, BreakWithin: 10 * time.Minute, DetachFor: 6 * time.Minute, CloudController: CloudControllerAuto}
	deps := Deps{Client: api, Informers: shared, Inventory: c, Witness: c, Log: log.WithField("service", "nodecleaner")}
	if change != nil {
		change(&cfg, &deps)
	}
	s := New(cfg, deps)
	ctx, cancel := context.WithCancel(t.Context())
	shared.Start(ctx)
	done := make(chan error, 1)
	var beats int
	go func() { done <- s.Run(ctx, func() { beats++ }) }()
	story(client, s)
	cancel()
	if err := <-done; err != nil || beats == 0 {
		t.Errorf("Run: %v after %d beats", err, beats)
	}
	shared.Wait()
	synctest.Wait()
}

func has(t *testing.T, client *fake.Clientset, name string) bool {
	t.Helper()
	list, err := client.CoreV1().Nodes().List(context.Background(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(list.Items, func(n corev1.Node) bool { return n.Name == name })
}

func twoNodes() (*cloud, []*corev1.Node) {
	c := &cloud{group: cluster.NodeGroup{ID: "workers", Target: 1, Instances: []cluster.Instance{
		{ID: id(0), Phase: cluster.PhaseGone}, {ID: id(1), Phase: cluster.PhaseRunning, Member: true}}}}
	return c, []*corev1.Node{apiNode("dead", id(0), corev1.ConditionUnknown), apiNode("live", id(1), corev1.ConditionTrue)}
}

func TestLoopDeletesAfterTheSecondSight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		state := t.TempDir()
		c, nodes := twoNodes()
		loop(t, c, func(_ *Config, d *Deps) { d.StateDir = state }, nodes, func(client *fake.Clientset, _ *Service) {
			time.Sleep(59 * time.Second)
			synctest.Wait()
			if !has(t, client, "dead") {
				t.Error("deleted before the second sight")
			}
			time.Sleep(5 * time.Second)
			synctest.Wait()
			if has(t, client, "dead") || !has(t, client, "live") {
				t.Error("the dead Node stays, or the live one goes")
			}
			reads := c.reads
			time.Sleep(30 * time.Minute)
			synctest.Wait()
			if c.reads != reads {
				t.Errorf("%d reads of the cloud in half an idle hour", c.reads-reads)
			}
		})
		info, err := os.Stat(filepath.Join(state, "nodes", "dead-uid-dead.json"))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("manifest: %v %v", info, err)
		}
		if _, err := os.Stat(filepath.Join(state, "nodecleaner.json")); err != nil {
			t.Error(err)
		}
	})
}

func TestLoopObserves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, nodes := twoNodes()
		loop(t, c, func(cfg *Config, _ *Deps) { cfg.Mode = ModeObserve }, nodes, func(client *fake.Clientset, _ *Service) {
			time.Sleep(time.Hour)
			synctest.Wait()
			if !has(t, client, "dead") {
				t.Error("mode observe deleted a Node")
			}
		})
	})
}

func TestLoopDoesNothingWhileAnotherLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, nodes := twoNodes()
		c.group.ReadAt = time.Now() // by the inventory's own loop
		var lead sync.Map
		mayAct := func() (bool, string) { _, ok := lead.Load("yes"); return ok, "another agent leads" }
		loop(t, c, func(_ *Config, d *Deps) { d.MayAct = mayAct }, nodes, func(client *fake.Clientset, _ *Service) {
			time.Sleep(time.Hour)
			synctest.Wait()
			if !has(t, client, "dead") || c.reads != 0 {
				t.Errorf("an agent that does not lead deletes, or reads the cloud (%d)", c.reads)
			}
			lead.Store("yes", true)
			time.Sleep(70 * time.Second)
			synctest.Wait()
			if has(t, client, "dead") {
				t.Error("the new leader does not delete: taking the lead is no outage")
			}
		})
	})
}

func TestLoopAsksABrokenCloudSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, nodes := twoNodes()
		c.broken = os.ErrPermission
		loop(t, c, nil, nodes, func(client *fake.Clientset, _ *Service) {
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			if !has(t, client, "dead") {
				t.Error("deleted without a read")
			}
			if c.reads > 150 {
				t.Errorf("%d reads in ten minutes of a cloud that refuses", c.reads)
			}
		})
	})
}

// TestLoadSweepsWhatACrashLeft: temporary files of the ledger and of kept manifests go, a
// directory in the ledger's place is set aside, and the service saves again.
func TestLoadSweepsWhatACrashLeft(t *testing.T) {
	dir := t.TempDir()
	log := logrus.New()
	log.SetOutput(io.Discard)
	s := &Service{deps: Deps{StateDir: dir}, log: log.WithField("service", "nodecleaner")}
	for _, d := range []string{statePath(dir), manifestDir(dir)} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	temporary := []string{filepath.Join(dir, "."+filepath.Base(statePath(dir))+".42"), filepath.Join(manifestDir(dir), ".n-uid.json.42")}
	for _, f := range temporary {
		if err := os.WriteFile(f, []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.load()
	for _, f := range temporary {
		if _, err := os.Stat(f); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left: %v", f, err)
		}
	}
	s.save(time.Now(), true)
	if _, err := Peek(dir); s.saveError != "" || err != nil {
		t.Errorf("saved %q, read %v", s.saveError, err)
	}
}

func TestLoadSetsATornFileAside(t *testing.T) {
	dir := t.TempDir()
	log := logrus.New()
	log.SetOutput(io.Discard)
	s := &Service{deps: Deps{StateDir: dir}, log: log.WithField("service", "nodecleaner")}
	s.memory = reaper.Memory{Seen: map[cluster.InstanceID]reaper.Record{id(0): {Group: "workers", First: noon, Last: noon, Sent: true}},
		Watch: map[cluster.NodeName]reaper.Watch{"n": {UID: "u"}}, LastRound: time.Now().Add(-time.Hour)}
	s.save(time.Now(), true)
	if m := s.load(); len(m.Seen) != 1 || !m.Seen[id(0)].Sent || len(m.Watch) != 1 || m.LastRound.IsZero() {
		t.Errorf("loaded %+v", m)
	} else if _, next := reaper.Decide(reaper.Input{Now: time.Now()}, m, Config{SightInterval: time.Minute, FreezeFor: 5 * time.Minute}.Policy()); next.FrozenUntil.Before(time.Now()) {
		t.Error("what was watched an hour ago is believed without a freeze")
	}
	if err := os.WriteFile(statePath(dir), []byte(`{"version":1,"memory":{"se`), 0o600); err != nil {
		t.Fatal(err)
	}
	if m := s.load(); m.Seen != nil {
		t.Errorf("a torn file gave %+v", m)
	}
	if kept, err := filepath.Glob(statePath(dir) + ".bad-*"); err != nil || len(kept) != 1 {
		t.Errorf("the torn file is not set aside: %v, %v", kept, err)
	}
}
