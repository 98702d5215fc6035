package demo

import (
	"context"
	"fmt"
	"sync"
	"time"

	certv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/autoscaler-agent/autoscaler-agent/test/await"
)

// sights keeps when things were first seen to happen, by this process's own clock:
// conditions in Kubernetes have whole seconds only.
type sights struct {
	mu     sync.Mutex
	first  map[string]time.Time
	pods   map[string]*corev1.Pod
	nodes  map[string]*corev1.Node
	csrs   map[string]*certv1.CertificateSigningRequest
	wake   chan struct{}
	synced []cache.InformerSynced
}

// watchCluster follows pods, nodes and CSRs until ctx ends.
func watchCluster(ctx context.Context, client kubernetes.Interface) (*sights, error) {
	s := &sights{
		first: map[string]time.Time{},
		pods:  map[string]*corev1.Pod{}, nodes: map[string]*corev1.Node{},
		csrs: map[string]*certv1.CertificateSigningRequest{},
		wake: make(chan struct{}, 1),
	}
	f := informers.NewSharedInformerFactory(client, 0)
	add := func(inf cache.SharedIndexInformer) error {
		_, err := inf.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    s.put,
			UpdateFunc: func(_, o any) { s.put(o) },
			DeleteFunc: s.drop,
		})
		s.synced = append(s.synced, inf.HasSynced)
		return err
	}
	for _, inf := range []cache.SharedIndexInformer{
		f.Core().V1().Pods().Informer(), f.Core().V1().Nodes().Informer(),
		f.Certificates().V1().CertificateSigningRequests().Informer(),
	} {
		if err := add(inf); err != nil {
			return nil, fmt.Errorf("watch the cluster: %w", err)
		}
	}
	f.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), s.synced...) {
		return nil, fmt.Errorf("watch the cluster: %w", context.Cause(ctx))
	}
	return s, nil
}

func (s *sights) put(o any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch o := o.(type) {
	case *corev1.Pod:
		if o.Namespace != namespace {
			return
		}
		s.pods[o.Name] = o
		for _, c := range o.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable {
				s.mark("unschedulable", o.Name)
			}
		}
		if o.Spec.NodeName != "" {
			s.mark("bound", o.Name)
		}
		if o.Status.Phase == corev1.PodRunning {
			s.mark("running", o.Name)
		}
	case *corev1.Node:
		s.nodes[o.Name] = o
		s.mark("node", o.Name)
		if nodeReady(o) {
			s.mark("ready", o.Name)
		}
	case *certv1.CertificateSigningRequest:
		s.csrs[o.Name] = o
		if o.Spec.SignerName == certv1.KubeletServingSignerName {
			s.mark("csr", o.Name)
			if len(o.Status.Certificate) > 0 {
				s.mark("issued", o.Name)
			}
		}
	}
	s.poke()
}

func (s *sights) drop(o any) {
	if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = gone.Obj
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch o := o.(type) {
	case *corev1.Pod:
		delete(s.pods, o.Name)
	case *corev1.Node:
		delete(s.nodes, o.Name)
	case *certv1.CertificateSigningRequest:
		delete(s.csrs, o.Name)
	}
	s.poke()
}

// mark remembers the first sight of an event of one object. Callers hold mu.
func (s *sights) mark(event, name string) {
	key := event + "/" + name
	if _, ok := s.first[key]; !ok {
		s.first[key] = time.Now()
	}
}

func (s *sights) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// times returns every first sight of an event, by object name.
func (s *sights) times(event string) map[string]time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]time.Time{}
	for k, t := range s.first {
		if len(k) > len(event) && k[:len(event)+1] == event+"/" {
			out[k[len(event)+1:]] = t
		}
	}
	return out
}

// count is what the status line shows.
type count struct {
	pods, pending, running   int
	nodes, ready             int
	csrs, csrsPending, csrOK int
}

func (s *sights) count() count {
	s.mu.Lock()
	defer s.mu.Unlock()
	var c count
	for _, p := range s.pods {
		c.pods++
		switch {
		case p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil:
			c.running++
		case p.Spec.NodeName == "":
			c.pending++
		}
	}
	for _, n := range s.nodes {
		c.nodes++
		if nodeReady(n) {
			c.ready++
		}
	}
	for _, r := range s.csrs {
		if r.Spec.SignerName != certv1.KubeletServingSignerName {
			continue
		}
		c.csrs++
		if len(r.Status.Certificate) > 0 {
			c.csrOK++
		} else if len(r.Status.Conditions) == 0 {
			c.csrsPending++
		}
	}
	return c
}

// nodeList returns the Nodes as last seen.
func (s *sights) nodeList() []*corev1.Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*corev1.Node
	for _, n := range s.nodes {
		out = append(out, n)
	}
	return out
}

func nodeReady(n *corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// until waits until ok says so, asked after every change seen and each second; it
// ends with an error that says what was last seen when the limit passes, and whether the host was too busy.
func (s *sights) until(ctx context.Context, limit time.Duration, what string, ok func(count) bool, show func(count)) error {
	waited := await.Begin()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		c := s.count()
		show(c)
		if ok(c) {
			return nil
		}
		if waited.Over(limit) {
			return fmt.Errorf("%s: not within %s; last seen: %+v", what, waited.Said(), c)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, context.Cause(ctx))
		case <-s.wake:
		case <-tick.C:
		}
	}
}
