package store

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/convert"
)

// bareTemplate is a template whose size LimitRanges may add to.
type bareTemplate struct {
	namespace string
	template  *corev1.PodTemplateSpec // as the informer holds it
}

// setTemplate notes what the pods request that a controller makes from now on.
func (s *Store) setTemplate(uid cluster.UID, namespace string, t *corev1.PodTemplateSpec) {
	s.mu.Lock()
	defer s.mu.Unlock()
	size, awaits := convert.TemplateSize(t, s.templates.rangesOf(namespace))
	if awaits {
		s.bare[uid] = bareTemplate{namespace, t}
	} else {
		delete(s.bare, uid)
	}
	s.setSize(uid, size)
}

// readBareTemplates counts the templates of a namespace anew, after a change of a LimitRange.
func (s *Store) readBareTemplates(namespace string) {
	for uid, b := range s.bare {
		if b.namespace == namespace {
			size, _ := convert.TemplateSize(b.template, s.templates.rangesOf(namespace))
			s.setSize(uid, size)
		}
	}
}

func (s *Store) setSize(uid cluster.UID, size cluster.Resources) {
	now := templateSize{size.MilliCPU, size.Memory}
	if s.sizes[uid] == now {
		return
	}
	if s.sizes[uid] = now; now == (templateSize{}) {
		delete(s.sizes, uid)
	}
	if s.podsByController[uid] != nil {
		if s.newSizes == nil {
			s.newSizes = map[cluster.UID]bool{}
		}
		s.newSizes[uid] = true
	}
}

// templateSize is what a controller's template requests of the resources that can be resized in place.
type templateSize struct{ milliCPU, memory int64 }

// setClass gives a pod its class; own is what it is now. A pod that has been resized in place to less than its controller's template
// asks for is of the class of the pod that is made after it, and takes room on its node as what it is.
func (s *Store) setClass(p *cluster.Pod, own cluster.PodClass) {
	p.Class, p.Takes = s.intern(own), 0
	if size, ok := s.ownerSize(p); ok && !own.TooLarge && (size.milliCPU > own.Requests.MilliCPU || size.memory > own.Requests.Memory) {
		p.Takes = int32(p.Class) + 1
		own.Requests.MilliCPU, own.Requests.Memory = max(own.Requests.MilliCPU, size.milliCPU), max(own.Requests.Memory, size.memory)
		p.Class = s.intern(own)
	}
	p.Budgets = s.budgetsOfClass[p.Class]
}

func (s *Store) ownerSize(p *cluster.Pod) (size templateSize, ok bool) {
	if p.Changed && p.Owner != nil {
		size, ok = s.sizes[p.Owner.UID]
	}
	return size, ok
}

// releaseClass removes a pod from its classes.
func (s *Store) releaseClass(p *cluster.Pod) {
	s.classes.release(p.Class)
	if p.Takes > 0 {
		s.classes.release(p.OnNode())
	}
}

// applyNewSizes gives the pods of controllers whose templates have changed their classes anew. It costs all pods, for all templates
// that have changed since the last Snapshot together.
func (s *Store) applyNewSizes() {
	if len(s.newSizes) == 0 {
		return
	}
	s.nodes.updatePods(func(p *cluster.Pod) bool {
		if !p.Changed || p.Owner == nil || !s.newSizes[p.Owner.UID] {
			return false
		}
		old := *p
		s.setClass(p, s.classes.rows[p.OnNode()])
		s.releaseClass(&old)
		return !samePod(&old, p)
	})
	s.newSizes = nil
}
