package cases

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// How long nothing may have changed before the cluster counts as settled. A pod that
// kube-scheduler has not tried with all nodes may still be tried: its backoff is a second here.
// A controller that makes no pod may be refused its pods (a quota), or be slow.
const (
	quiet       = 500 * time.Millisecond
	quietStale  = 3 * time.Second
	quietUnmade = 8 * time.Second
)

var triedNodes = regexp.MustCompile(`^0/(\d+) nodes are available`)

// settle waits until the controllers have made their pods and kube-scheduler has had its turn
// at each of them.
func (s *scene) settle(ctx context.Context) error {
	last, since := "", time.Now()
	return s.t.poll(ctx, "the cluster to settle", func() (bool, error) {
		print, unmade, err := s.controllers(ctx)
		if err != nil {
			return false, err
		}
		pods, stale, err := s.tried(ctx)
		if err != nil {
			return false, err
		}
		if print += pods; print != last {
			last, since = print, time.Now()
		}
		need := quiet
		if stale {
			need = quietStale
		}
		if unmade {
			need = quietUnmade
		}
		return time.Since(since) >= need, nil
	})
}

// tried tells the state of all pods, and whether kube-scheduler may not have tried one of them
// with the nodes that are there now.
func (s *scene) tried(ctx context.Context) (print string, stale bool, err error) {
	nodes, err := s.t.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", false, err
	}
	list, err := s.t.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", false, err
	}
	var b strings.Builder
	for _, n := range nodes.Items {
		fmt.Fprintln(&b, n.UID, n.ResourceVersion)
	}
	for _, p := range list.Items {
		fmt.Fprintln(&b, p.UID, p.ResourceVersion)
		if p.Spec.NodeName != "" {
			stale = stale || p.Status.Phase == corev1.PodPending || p.DeletionTimestamp != nil
			continue
		}
		said := ""
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodScheduled {
				said = c.Message
			}
		}
		with := strconv.Itoa(len(nodes.Items))
		if m := triedNodes.FindStringSubmatch(said); m != nil {
			stale = stale || m[1] != with
		}
		stale = stale || said == "" || strings.HasPrefix(said, "no nodes available") && with != "0"
	}
	return b.String(), stale, nil
}

// controllers tells the state of what makes pods, and whether some have still to be made.
func (s *scene) controllers(ctx context.Context) (print string, unmade bool, err error) {
	var b strings.Builder
	see := func(m metav1.ObjectMeta, seen int64, made, want int32) {
		fmt.Fprintln(&b, m.UID, m.ResourceVersion)
		unmade = unmade || seen < m.Generation || made < want
	}
	apps, all := s.t.client.AppsV1(), metav1.ListOptions{}
	deployments, err1 := apps.Deployments("").List(ctx, all)
	sets, err2 := apps.ReplicaSets("").List(ctx, all)
	stateful, err3 := apps.StatefulSets("").List(ctx, all)
	daemons, err4 := apps.DaemonSets("").List(ctx, all)
	jobs, err5 := s.t.client.BatchV1().Jobs("").List(ctx, all)
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		return "", false, err
	}
	for _, o := range deployments.Items {
		see(o.ObjectMeta, o.Status.ObservedGeneration, o.Status.Replicas, *o.Spec.Replicas)
	}
	for _, o := range sets.Items {
		see(o.ObjectMeta, o.Status.ObservedGeneration, o.Status.Replicas, *o.Spec.Replicas)
	}
	for _, o := range stateful.Items { // one after the other, by default
		see(o.ObjectMeta, o.Status.ObservedGeneration, o.Status.Replicas, min(1, *o.Spec.Replicas))
	}
	for _, o := range daemons.Items {
		see(o.ObjectMeta, o.Status.ObservedGeneration, o.Status.CurrentNumberScheduled, o.Status.DesiredNumberScheduled)
	}
	for _, o := range jobs.Items {
		want := int32(1)
		for _, c := range o.Status.Conditions {
			if c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed || c.Type == batchv1.JobSuspended) {
				want = 0
			}
		}
		see(o.ObjectMeta, o.Generation, o.Status.Active, want)
	}
	return b.String(), unmade, nil
}

// daemons waits until the DaemonSets have made their pods and kube-scheduler has had its turn
// at these.
func (s *scene) daemons(ctx context.Context) error {
	last, since := "", time.Now()
	return s.t.poll(ctx, "the pods of DaemonSets", func() (bool, error) {
		sets, err := s.t.client.AppsV1().DaemonSets("").List(ctx, metav1.ListOptions{})
		if err != nil || len(sets.Items) == 0 {
			return err == nil, err
		}
		pods, err := s.pods(ctx)
		if err != nil {
			return false, err
		}
		var b strings.Builder
		for _, o := range sets.Items {
			fmt.Fprintln(&b, o.UID, o.ResourceVersion)
		}
		for _, p := range pods {
			if owner := metav1.GetControllerOf(&p); owner != nil && owner.Kind == "DaemonSet" {
				fmt.Fprintln(&b, p.UID, p.ResourceVersion)
			}
		}
		if b.String() != last {
			last, since = b.String(), time.Now()
		}
		return time.Since(since) >= 2*quiet, nil
	})
}

// poll asks until it is told yes.
func (t *Table) poll(ctx context.Context, what string, done func() (bool, error)) error {
	began := time.Now()
	for {
		ok, err := done()
		if ok {
			return nil
		}
		if err == nil && time.Since(began) > t.patience {
			err = errors.New("in vain")
		}
		if err != nil {
			return fmt.Errorf("wait for %s: %w", what, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", what, ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}
