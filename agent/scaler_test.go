package agent

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"

	"github.com/autoscaler-agent/autoscaler-agent/agent/act"
	"github.com/autoscaler-agent/autoscaler-agent/agent/capacity"
	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/history"
	"github.com/autoscaler-agent/autoscaler-agent/agent/inventory"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/report"
	"github.com/autoscaler-agent/autoscaler-agent/agent/statefile"
	"github.com/autoscaler-agent/autoscaler-agent/internal/flight"
	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/kubetest"
)

// counted counts the reads of a cloud.
type counted struct {
	provider.Provider
	groups []cluster.NodeGroup
	whole  atomic.Int64
	some   atomic.Int64
	last   atomic.Pointer[[]cluster.GroupID] // of the last read of some groups
}

func (c *counted) Groups(ctx context.Context) ([]cluster.NodeGroup, error) {
	if only := provider.Only(ctx); only != nil {
		c.some.Add(1)
		c.last.Store(&only)
	} else {
		c.whole.Add(1)
	}
	return slices.Clone(c.groups), nil
}

func (c *counted) Resize(context.Context, cluster.GroupID, int, int) error { return nil }

// TestMarksReadNoCloud: soft-tainting 387 nodes costs no read of the cloud and two requests
// to the API server each; growing one of 20 groups has that group read and no other.
func TestMarksReadNoCloud(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 387
		client := fake.NewClientset()
		api := kubetest.Client(client)
		p := decision.Plan{}
		for i := range n {
			name := fmt.Sprintf("node-%d", i)
			if _, err := client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			p.Actions = append(p.Actions, decision.SoftTaint{Node: cluster.NodeName(name)})
		}
		log := logrus.New()
		log.SetOutput(io.Discard)
		entry := log.WithField("service", "test")
		cloud := &counted{}
		for i := range 20 {
			cloud.groups = append(cloud.groups, cluster.NodeGroup{ID: cluster.GroupID(fmt.Sprintf("g%02d", i))})
		}
		inv := inventory.New(cloud, 2*time.Second, 30*time.Second, 25*time.Second, entry)
		observer, err := observe.New(observe.Config{}, api, kube.NewInformers(api, nil), inv, entry)
		if err != nil {
			t.Fatal(err)
		}
		recorder := record.NewFakeRecorder(10 * n)
		s := &scaler{inventory: inv, observer: observer, buffers: capacity.NewBuffers(capacity.Deps{}), requested: capacity.NewRequests(capacity.Deps{}), metrics: report.NewMetrics(), history: &history.History{}, log: entry, could: true, events: report.Events{Recorder: recorder},
			decided: func(p *decision.Policy, _ []decision.Halt) {
				if p != nil {
					t.Error("an agent that may not act writes down which rollouts are halted")
				}
			}, executor: &act.Executor{Client: api, Cloud: cloud, Recorder: recorder, Log: entry}}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- inv.Run(ctx, func() {}) }()
		defer func() { cancel(); <-done }()
		time.Sleep(time.Second)

		snapshot := cluster.Snapshot{Now: time.Now(), Groups: cloud.groups}
		client.ClearActions()
		s.follow(&snapshot, p, true)
		s.act(ctx, &snapshot, p, &report.RoundTimes{})
		time.Sleep(20 * time.Second)
		if w, o := cloud.whole.Load(), cloud.some.Load(); w != 1 || o != 0 {
			t.Errorf("%d reads of everything and %d of some groups, want the first one alone", w, o)
		}
		if got := len(client.Actions()); got != 2*n {
			t.Errorf("%d requests to the API server, want %d", got, 2*n)
		}
		grow := decision.Plan{Actions: []decision.Action{decision.Grow{Group: "g07", To: 1}}}
		s.act(ctx, &snapshot, grow, &report.RoundTimes{})
		synctest.Wait()
		if w, o := cloud.whole.Load(), cloud.some.Load(); w != 1 || o != 1 || !slices.Equal(*cloud.last.Load(), []cluster.GroupID{"g07"}) {
			t.Errorf("%d reads of everything and %d of some groups after growing g07, want one of it alone", w, o)
		}
		s.days, s.file, s.recorder = statefile.HistoryIn(t.TempDir()), statefile.In(t.TempDir()), flight.New(flightBudget)
		s.policy = func(time.Time) decision.Policy { return decision.Policy{} }
		s.mayAct = func() (bool, string) { return false, "the test ends" }
		ended, end := context.WithCancel(ctx)
		end()
		if err := s.Run(ended, func() {}); err != nil {
			t.Error(err)
		}
		next := &history.History{}
		if err := s.days.Load(next, time.Now()); err != nil || len(next.View(time.Now()).Marks) == 0 {
			t.Errorf("after a stop the file of the history has no decision: %v", err)
		}
	})
}

// TestStandbyReadsSlowly: an agent that may not act waits for nothing, and reads everything
// once when it may.
func TestStandbyReadsSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := logrus.New()
		log.SetOutput(io.Discard)
		cloud := &counted{groups: []cluster.NodeGroup{{ID: "g", Target: 3}}}
		inv := inventory.New(cloud, 2*time.Second, 30*time.Second, 25*time.Second, log.WithField("service", "test"))
		s := &scaler{inventory: inv}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- inv.Run(ctx, func() {}) }()
		defer func() { cancel(); <-done }()
		time.Sleep(time.Second)
		snapshot := cluster.Snapshot{Now: time.Now(), Groups: cloud.groups}
		s.follow(&snapshot, decision.Plan{}, false)
		time.Sleep(5 * time.Minute)
		if w, o := cloud.whole.Load(), cloud.some.Load(); w != 11 || o != 0 {
			t.Errorf("%d and %d reads in five minutes of standby, want 11 of everything", w, o)
		}
		s.follow(&snapshot, decision.Plan{}, true)
		synctest.Wait()
		if w := cloud.whole.Load(); w != 12 {
			t.Errorf("%d reads of everything once it may act, want one more", w)
		}
		time.Sleep(20 * time.Second)
		if o := cloud.some.Load(); o < 9 || o > 11 {
			t.Errorf("%d reads in 20 seconds of waiting, want about 10", o)
		}
	})
}
