package chaos

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
)

// storm grows the load twice and takes it away, each with troubles of its own.
func (s *storms) storm(number int) {
	s.t.Helper()
	for _, more := range []int{40 + s.random.IntN(110), 40 + s.random.IntN(110)} {
		s.grow(number, s.pods+more)
		if s.t.Failed() {
			return
		}
	}
	if s.long {
		if s.rollout(number); s.t.Failed() {
			return
		}
	}
	s.hurt = &casualties{}
	over := s.blow(number, "back to nothing")
	s.scale(0)
	over()
	s.until("the group is empty and its Nodes are gone", func() string {
		g, _ := s.w.Cloud.Group(group)
		alive := 0
		for _, i := range s.w.Cloud.Instances() {
			if i.State != "terminated" {
				alive++
			}
		}
		nodes, err := s.client.CoreV1().Nodes().List(s.t.Context(), metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		if g.Desired+alive+len(nodes.Items) == 0 {
			return ""
		}
		return fmt.Sprintf("target %d, %d machines, %d Nodes", g.Desired, alive, len(nodes.Items))
	})
	s.judge()
}

// grow raises the load in a storm, and judges what was bought once all is repaired.
func (s *storms) grow(number, pods int) {
	s.t.Helper()
	s.hurt = &casualties{}
	s.w.Cloud.ResetCalls()
	before := s.running()
	over := s.blow(number, fmt.Sprintf("%d pods", pods))
	s.scale(pods)
	over()
	s.until(fmt.Sprintf("%d pods run", pods), func() string {
		if n := len(s.running()); n != pods {
			g, _ := s.w.Cloud.Group(group)
			return fmt.Sprintf("%d pods run, target %d", n, g.Desired)
		}
		return ""
	})
	hurt := s.hurt.list()
	want := (pods + perMachine - 1) / perMachine
	orders := s.w.Cloud.Calls(func(c aws.Call) bool { return c.Action == "SetDesiredCapacity" && c.Done })
	if n := highest(orders); n > want+len(hurt) {
		s.t.Errorf("bought twice: %d pods need %d machines and the storm broke %q, but the target was raised to %d:\n%s", pods, want, hurt, n, lines(orders))
	}
	if g, _ := s.w.Cloud.Group(group); g.Desired < want || g.Desired > want+len(hurt) {
		s.t.Errorf("target %d for %d pods, want %d; the storm broke %q; orders:\n%s", g.Desired, pods, want, hurt, lines(orders))
	}
	// The pods of a dead machine come back when its Node is gone and the API server has
	// collected them, a minute later; with the times of this test the machine that took its
	// place is unneeded by then.
	if ends := needless(s.w.Cloud.Calls(func(c aws.Call) bool { return c.Done }), hurt); len(ends) > len(hurt) {
		s.t.Errorf("machines that are needed were ended; the storm broke %q:\n%s", hurt, lines(ends))
	}
	if len(hurt) == 0 {
		now := s.running()
		for uid := range maps.Keys(before) {
			if !now[uid] {
				s.t.Errorf("a pod that ran before the storm is lost: %s", uid)
			}
		}
	}
	s.judge()
}

// highest is the highest target that was asked for.
func highest(orders []aws.Call) (most int) {
	for _, c := range orders {
		if n, err := strconv.Atoi(c.Params["DesiredCapacity"]); err == nil {
			most = max(most, n)
		}
	}
	return most
}

// needless are the calls that ended a machine which no trouble had met.
func needless(calls []aws.Call, hurt []string) (out []aws.Call) {
	for _, c := range calls {
		if strings.HasPrefix(c.Action, "TerminateInstance") && !slices.Contains(hurt, c.Params["InstanceId"]) {
			out = append(out, c)
		}
	}
	return out
}

// judge says what no storm may do.
func (s *storms) judge() {
	s.t.Helper()
	for _, words := range s.nodes.wrong() {
		s.t.Error(words)
	}
	for _, a := range s.agents {
		for _, line := range a.panics() {
			s.t.Errorf("agent %s: %s", a.name, line)
		}
	}
}

// blow lets the troubles of one storm loose; over waits until all of them are repaired.
func (s *storms) blow(number int, what string) (over func()) {
	var drawn []draw
	for range 3 + s.random.IntN(4) {
		d := draw{trouble: troubles[s.random.IntN(len(troubles))], at: time.Duration(s.random.Int64N(int64(8 * time.Second))), pick: s.random.IntN(1 << 30)}
		if d.trouble.most > 0 {
			d.for_ = d.trouble.most/4 + time.Duration(s.random.Int64N(int64(d.trouble.most*3/4)))
		}
		drawn = append(drawn, d)
	}
	s.t.Logf("storm %d, %s: %s", number, what, drawn)
	var wg sync.WaitGroup
	for _, d := range drawn {
		wg.Go(func() {
			<-time.After(d.at)
			d.trouble.play(s, d.pick, func() { <-time.After(d.for_) })
		})
	}
	return wg.Wait
}

// nodeWatch looks for Nodes that go while their machine lives.
type nodeWatch struct {
	cloud  *aws.Cloud
	cancel context.CancelFunc
	done   chan struct{}

	mu    sync.Mutex
	found []string
}

// nodeLook is the time between two looks at the Nodes: a machine that ends within it after its
// Node is not told from one that ended before.
const nodeLook = 200 * time.Millisecond

func watchNodes(s *storms) *nodeWatch {
	ctx, cancel := context.WithCancel(context.Background())
	w := &nodeWatch{cloud: s.w.Cloud, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		known := map[types.UID]corev1.Node{}
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(nodeLook):
			}
			list, err := s.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
			if err != nil {
				continue // the API server is down on purpose
			}
			known = w.compare(known, list.Items)
		}
	}()
	return w
}

// compare judges the Nodes that are gone since the last look.
func (w *nodeWatch) compare(known map[types.UID]corev1.Node, list []corev1.Node) map[types.UID]corev1.Node {
	now := make(map[types.UID]corev1.Node, len(list))
	for _, n := range list {
		now[n.UID] = n
	}
	for uid, n := range known {
		if _, there := now[uid]; there {
			continue
		}
		id := n.Spec.ProviderID[strings.LastIndexByte(n.Spec.ProviderID, '/')+1:]
		if i, ok := w.cloud.Instance(id); ok && i.State != "terminated" && i.State != "shutting-down" {
			w.mu.Lock()
			w.found = append(w.found, fmt.Sprintf("Node %s was deleted and its machine %s is %s", n.Name, id, i.State))
			w.mu.Unlock()
		}
	}
	return now
}

func (w *nodeWatch) wrong() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.found
	w.found = nil
	return out
}

func (w *nodeWatch) stop() {
	w.cancel()
	<-w.done
}
