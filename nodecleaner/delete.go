package nodecleaner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/internal/deadline"
	"github.com/autoscaler-agent/autoscaler-agent/nodecleaner/reaper"
)

// deleteTries is how often a deletion is tried while others update the Node.
const deleteTries = 3

// Nodes get their group written a few in one round, so that a large cluster causes no burst of
// writes at the start: claimsAtOnce, and one in claimShare of the Nodes, because the cost of a
// round grows with them.
const (
	claimsAtOnce = 10
	claimShare   = 100
)

// claims are those of the plan that are written in this round.
func claims(plan reaper.Plan, nodes int) []reaper.Claim {
	return plan.Claims[:min(len(plan.Claims), max(claimsAtOnce, nodes/claimShare))]
}

// act carries out the plan for so many Nodes, as long as this agent may act.
func (s *Service) act(ctx context.Context, plan reaper.Plan, nodes int) error {
	var errs []error
	for _, m := range plan.Shutdown {
		errs = append(errs, s.allowed(ctx, func(ctx context.Context) error { return s.markShutdown(ctx, m) }))
	}
	for _, d := range plan.Fence {
		errs = append(errs, s.allowed(ctx, func(ctx context.Context) error { return s.fence(ctx, d) }))
	}
	for _, d := range plan.Delete {
		errs = append(errs, s.allowed(ctx, func(ctx context.Context) error { return s.deleteOne(ctx, d) }))
	}
	for _, c := range claims(plan, nodes) {
		errs = append(errs, s.allowed(ctx, func(ctx context.Context) error { return s.write(ctx, c) }))
	}
	return errors.Join(errs...)
}

// errNotAllowed ends a write after this agent's right to act has ended; the next round, or
// the next leader, decides anew.
var errNotAllowed = errors.New("this agent may not act any more")

// allowed runs a write while this agent may act, with a deadline at the end of that right. A
// write that must not begin any more is no error.
func (s *Service) allowed(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := deadline.Within(ctx, s.deps.ActUntil)
	defer cancel()
	if s.may(ctx) != nil {
		return nil
	}
	err := do(ctx)
	if errors.Is(err, errNotAllowed) {
		return nil
	}
	if err != nil && errors.Is(context.Cause(ctx), deadline.ErrOver) {
		return fmt.Errorf("%w: %w", deadline.ErrOver, err)
	}
	return err
}

// may reports whether this agent may act. It is asked right before each write: the reads
// before the write take time.
func (s *Service) may(ctx context.Context) error {
	if may, _ := s.deps.MayAct(); !may || ctx.Err() != nil {
		return errNotAllowed
	}
	return nil
}

// deleteOne is rule N: the Node is read live, checked again, saved as a file and deleted
// only as the object that was checked. Its finalizers are not removed: the Node stays until
// their owners have finished.
func (s *Service) deleteOne(ctx context.Context, d reaper.Deletion) error {
	entry := s.entry(d)
	nodes := s.deps.Client.CoreV1().Nodes()
	for range deleteTries {
		live, err := nodes.Get(ctx, string(d.Node), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("delete node %s: %w", d.Node, err)
		}
		if rule, why := reaper.Recheck(toNode(live), d); rule != "" {
			entry.WithFields(logrus.Fields{"rule": rule, "why": why}).Info("node is kept after all")
			s.count("nodecleaner_held_total", "rule", rule)
			return nil
		}
		if err := s.keep(live, d, time.Now()); err != nil {
			return fmt.Errorf("delete node %s: keep its manifest: %w", d.Node, err)
		}
		if err := s.may(ctx); err != nil {
			return err
		}
		uid := types.UID(d.UID)
		err = nodes.Delete(ctx, string(d.Node), metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &live.ResourceVersion}})
		switch {
		case err == nil, apierrors.IsNotFound(err):
			entry.Info("node deleted")
			s.event(d.Node, d.UID, corev1.EventTypeNormal, "NodeDeleted", d.Rule+": "+d.Why)
			s.count("nodecleaner_deleted_total", "rule", d.Rule)
			return nil
		case !apierrors.IsConflict(err):
			return fmt.Errorf("delete node %s: %w", d.Node, err)
		}
	}
	return fmt.Errorf("delete node %s: it changed %d times meanwhile", d.Node, deleteTries)
}

func (s *Service) entry(d reaper.Deletion) *logrus.Entry {
	return s.log.WithFields(logrus.Fields{"node": d.Node, "instance": d.ProviderID, "group": d.Group, "rule": d.Rule, "why": d.Why})
}

// fence writes the out-of-service taint on a Node: Kubernetes force-deletes its pods and
// detaches its volumes at once (KEP-2268). Only the Node of a terminated instance is fenced;
// a machine that still writes would lose its file system.
func (s *Service) fence(ctx context.Context, d reaper.Deletion) error {
	changed, err := s.update(ctx, d.Node, func(live *corev1.Node) bool {
		if rule, _ := reaper.Recheck(toNode(live), d); rule != "" || reaper.Carries(toNode(live), reaper.TaintOutOfService) {
			return false
		}
		live.Spec.Taints = append(live.Spec.Taints, corev1.Taint{Key: reaper.TaintOutOfService, Value: reaper.OutOfServiceValue, Effect: corev1.TaintEffectNoExecute})
		return true
	})
	if err != nil || !changed {
		return err
	}
	s.entry(d).WithField("rule", "N4").Info("node is put out of service: its volumes are detached")
	s.event(d.Node, d.UID, corev1.EventTypeNormal, "NodeOutOfService", "N4: "+d.Why+"; its volumes are detached before it is deleted")
	s.count("nodecleaner_out_of_service_total")
	return nil
}

// markShutdown writes the taint of a stopped machine on its Node, or removes ours.
func (s *Service) markShutdown(ctx context.Context, m reaper.Mark) error {
	changed, err := s.update(ctx, m.Node, func(live *corev1.Node) bool {
		n := toNode(live)
		if n.UID != m.UID || m.On && (n.Ready == cluster.StatusTrue || reaper.Carries(n, reaper.TaintShutdown)) {
			return false
		}
		if m.On {
			live.Spec.Taints = append(live.Spec.Taints, corev1.Taint{Key: reaper.TaintShutdown, Value: reaper.ShutdownValue, Effect: corev1.TaintEffectNoSchedule})
			return true
		}
		var rest []corev1.Taint
		for _, t := range live.Spec.Taints {
			if t.Key != reaper.TaintShutdown || t.Value != reaper.ShutdownValue {
				rest = append(rest, t)
			}
		}
		changed := len(rest) != len(live.Spec.Taints)
		live.Spec.Taints = rest
		return changed
	})
	if err != nil || !changed {
		return err
	}
	text := "its instance is stopped: it is marked, and kept"
	if !m.On {
		text = "its instance runs again: the mark of the stop is gone"
	}
	s.log.WithFields(logrus.Fields{"node": m.Node, "rule": "G1", "why": text}).Info("node: " + text)
	return nil
}

// write annotates a living Node with the group of its instance and the boot ID of its machine.
func (s *Service) write(ctx context.Context, c reaper.Claim) error {
	_, err := s.update(ctx, c.Node, func(live *corev1.Node) bool {
		if string(live.UID) != string(c.UID) {
			return false
		}
		changed := false
		for key, value := range map[string]string{cluster.AnnotationGroup: string(c.Group), cluster.AnnotationBoot: c.BootID} {
			if value != "" && live.Annotations[key] != value {
				metav1.SetMetaDataAnnotation(&live.ObjectMeta, key, value)
				changed = true
			}
		}
		return changed
	})
	return err
}

// update changes a Node. On a conflict with another writer nothing is changed; the next
// round decides anew.
func (s *Service) update(ctx context.Context, name cluster.NodeName, change func(*corev1.Node) bool) (changed bool, err error) {
	nodes := s.deps.Client.CoreV1().Nodes()
	live, err := nodes.Get(ctx, string(name), metav1.GetOptions{})
	if err == nil && change(live) {
		if err := s.may(ctx); err != nil {
			return false, err
		}
		changed = true
		_, err = nodes.Update(ctx, live, metav1.UpdateOptions{})
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("update node %s: %w", name, err)
	}
	return changed, nil
}

func (s *Service) event(node cluster.NodeName, uid cluster.UID, kind, reason, text string) {
	if s.deps.Events == nil {
		return
	}
	if uid == "" {
		uid = cluster.UID(node)
	}
	s.deps.Events.Event(&corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: string(node), UID: types.UID(uid)}, kind, reason, text)
}
