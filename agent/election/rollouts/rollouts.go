// Package rollouts keeps on the agent's own Lease what must outlive a leader of the rollouts of node groups: what operators
// ordered (AnnotationOrders, which commands write) and which rollouts were halted (AnnotationHalts, which the leader writes). Each agent, a
// standby too, reads the Lease every few seconds anyway: an order needs no further request and no further right.
//
// It refuses to decide what an order does (agent/plan), and to guess at an annotation that it cannot read: then every rollout
// is paused.
package rollouts

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/election"
	"github.com/autoscaler-agent/autoscaler-agent/internal/bounded"
	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
)

// The annotations of the Lease, as JSON.
const (
	AnnotationOrders = "autoscaler-agent/rollout-orders"
	AnnotationHalts  = "autoscaler-agent/halted-rollouts"
)

// maxWhy bounds what the Lease holds of the reason of a halt.
const maxWhy = 400

// Store is what the Lease says, for the agent that runs. The zero value has read nothing.
type Store struct {
	Changed func() // is called when it says something else; nil: nothing is

	mu     sync.Mutex
	text   [2]string // as they were read
	known  bool
	orders cluster.RolloutOrders
	halts  []decision.Halt
	own    string // what this agent writes as AnnotationHalts
	judged bool   // a round has judged with what the Lease says
}

// Noted takes the annotations of the Lease.
func (s *Store) Noted(annotations map[string]string) {
	text := [2]string{annotations[AnnotationOrders], annotations[AnnotationHalts]}
	s.mu.Lock()
	same := s.known && s.text == text
	if !same {
		s.known, s.text = true, text
		s.orders, s.halts = Parse(annotations)
	}
	s.mu.Unlock()
	if !same && s.Changed != nil {
		s.Changed()
	}
}

// Fill fills in what a round is to know. Orders that are not nil say that the Lease was read.
func (s *Store) Fill(p *decision.Policy) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.Rollouts, p.Halts = s.orders, s.halts
}

// Decided notes the halts that a round of the leader left; a nil policy: the round was not the leader's, and what it left before is out
// of date. A round that was made before the Lease was read says nothing of those of others.
func (s *Store) Decided(p *decision.Policy, halts []decision.Halt) {
	text := encode(halts)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case p == nil:
		s.judged = false
	case p.Rollouts != nil:
		s.own, s.judged = text, true
	}
}

// Notes are the annotations that the leader writes: nothing before it has judged.
func (s *Store) Notes() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.judged {
		return nil
	}
	return map[string]string{AnnotationHalts: s.own}
}

func encode(halts []decision.Halt) string {
	if len(halts) == 0 {
		return ""
	}
	short := make([]decision.Halt, len(halts))
	for i, h := range halts {
		if h.At = h.At.UTC().Truncate(time.Second); len(h.Why) > maxWhy {
			h.Why = h.Why[:maxWhy] + "..."
		}
		short[i] = h
	}
	text, _ := json.Marshal(short) // strings and times: it cannot fail
	return string(text)
}

// Parse reads the annotations of the Lease. The orders are never nil. Where they cannot be read, all rollouts are paused. A time of
// the far future counts as now: a machine that is well again ends a halt some time after it began.
func Parse(annotations map[string]string) (orders cluster.RolloutOrders, halts []decision.Halt) {
	orders = cluster.RolloutOrders{}
	fault := func(name string, err error) {
		orders = cluster.RolloutOrders{cluster.AllGroups: {Paused: true, Reason: fmt.Sprintf("annotation %s of the agent's Lease cannot be read: %v", name, err)}}
	}
	if text := annotations[AnnotationOrders]; text != "" {
		if err := json.Unmarshal([]byte(text), &orders); err != nil || orders == nil {
			fault(AnnotationOrders, err)
		}
	}
	if text := annotations[AnnotationHalts]; text != "" {
		if err := json.Unmarshal([]byte(text), &halts); err != nil {
			fault(AnnotationHalts, err)
		}
	}
	now := time.Now()
	bounded.Times(&orders, now)
	bounded.Times(&halts, now)
	return orders, halts
}

// Read reads the Lease once, for a command. A Lease that does not exist says nothing.
func Read(ctx context.Context, client *kube.Client, cfg election.Config) (cluster.RolloutOrders, []decision.Halt, error) {
	lease, err := client.CoordinationV1().Leases(cfg.Namespace).Get(ctx, cfg.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return cluster.RolloutOrders{}, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read Lease %s/%s: %w", cfg.Namespace, cfg.Name, err)
	}
	orders, halts := Parse(lease.Annotations)
	return orders, halts, nil
}

// Order changes the orders on the Lease. A leader that renews the Lease meanwhile loses nothing, and neither does another
// command: the API server refuses the older write, and the change is made anew.
func Order(ctx context.Context, client *kube.Client, cfg election.Config, change func(cluster.RolloutOrders)) error {
	leases := client.CoordinationV1().Leases(cfg.Namespace)
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		lease, err := leases.Get(ctx, cfg.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		orders, _ := Parse(map[string]string{AnnotationOrders: lease.Annotations[AnnotationOrders]})
		change(orders)
		return write(ctx, leases, lease, orders)
	})
	if err != nil {
		return fmt.Errorf("write annotation %s of Lease %s/%s: %w", AnnotationOrders, cfg.Namespace, cfg.Name, err)
	}
	return nil
}

func write(ctx context.Context, leases kube.Kind[*coordinationv1.Lease, *coordinationv1.LeaseList], lease *coordinationv1.Lease, orders cluster.RolloutOrders) error {
	for g, o := range orders {
		if o == (cluster.RolloutOrder{}) {
			delete(orders, g)
		}
	}
	text, err := json.Marshal(orders)
	if err != nil {
		return err
	}
	if lease.Annotations == nil {
		lease.Annotations = map[string]string{}
	}
	if lease.Annotations[AnnotationOrders] = string(text); len(orders) == 0 {
		delete(lease.Annotations, AnnotationOrders)
	}
	_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
	return err
}
