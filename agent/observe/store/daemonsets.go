package store

import (
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/convert"
)

// templates are what the pods of DaemonSets are made of. The objects are those that the
// informers hold. Not safe for concurrent use.
type templates struct {
	daemonSets     map[cluster.PodKey]*appsv1.DaemonSet
	limitRanges    map[string]map[string]*corev1.LimitRange // by namespace and name
	runtimeClasses map[string]*nodev1.RuntimeClass
	room           allowance
	sizes          map[cluster.PodKey]int // what each DaemonSet takes of the room
}

func newTemplates() templates {
	return templates{daemonSets: map[cluster.PodKey]*appsv1.DaemonSet{}, limitRanges: map[string]map[string]*corev1.LimitRange{}, runtimeClasses: map[string]*nodev1.RuntimeClass{},
		room: allowance{most: mostTemplates}, sizes: map[cluster.PodKey]int{}}
}

// take counts the template of a DaemonSet, instead of the one that was counted before; false: there is no room for it.
func (t *templates) take(d *appsv1.DaemonSet) bool {
	key, size := podKey(d.Namespace, d.Name), d.Spec.Template.Size()
	t.giveBack(d.Namespace, key)
	if !t.room.take(d.Namespace, size) {
		return false
	}
	t.sizes[key] = size
	return true
}

func (t *templates) giveBack(namespace string, key cluster.PodKey) {
	t.room.giveBack(namespace, t.sizes[key])
	delete(t.sizes, key)
}

// StripDaemonSet is the transform of the informer of DaemonSets: convert.Strip, which also drops the template where there
// is no room for it. The next change of the DaemonSet brings the template again, as each Node that joins is one.
func (s *Store) StripDaemonSet(obj any) (any, error) {
	out, err := convert.Strip(obj)
	if d, ok := out.(*appsv1.DaemonSet); ok {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.templates.take(d) {
			convert.DropTemplate(d, noRoomForTemplate)
		}
	}
	return out, err
}

// admission is what the API server completes the pods of a DaemonSet with.
func (t *templates) admission(d *appsv1.DaemonSet) (a convert.Admission) {
	a.LimitRanges = t.rangesOf(d.Namespace)
	if name := d.Spec.Template.Spec.RuntimeClassName; name != nil {
		a.RuntimeClass = t.runtimeClasses[*name]
	}
	return a
}

// rangesOf are the LimitRanges of a namespace, by name.
func (t *templates) rangesOf(namespace string) (out []*corev1.LimitRange) {
	ranges := t.limitRanges[namespace]
	for _, name := range slices.Sorted(maps.Keys(ranges)) {
		out = append(out, ranges[name])
	}
	return out
}

func (s *Store) PutDaemonSet(d *appsv1.DaemonSet) Urgency {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.templates.take(d) // again: the deletion of an earlier one of its name has given back what StripDaemonSet took
	s.templates.daemonSets[podKey(d.Namespace, d.Name)] = d
	return s.readDaemonSet(d)
}

// readDaemonSet converts a DaemonSet, after a change of it or of what completes its pods.
func (s *Store) readDaemonSet(d *appsv1.DaemonSet) Urgency {
	class, completed := convert.DaemonSetClass(d, s.templates.admission(d), s.schedulers)
	row := cluster.DaemonSet{Key: podKey(d.Namespace, d.Name), UID: cluster.UID(d.UID), Completed: completed,
		Revision: d.Annotations[appsv1.DeprecatedTemplateGeneration],
		Settled:  d.Status.ObservedGeneration == d.Generation && d.Status.UpdatedNumberScheduled == d.Status.CurrentNumberScheduled}
	row.Class = s.intern(class)
	if old, had := s.daemonSets.get(row.Key); had {
		s.classes.release(old.Class)
		if old == row {
			return Never
		}
	}
	s.daemonSets.put(row.Key, row)
	return Later
}

// readDaemonSets converts the DaemonSets that a change concerns. It costs the DaemonSets of the
// cluster, at a change of a LimitRange or a RuntimeClass.
func (s *Store) readDaemonSets(concerned func(*appsv1.DaemonSet) bool) Urgency {
	most := Never
	for _, key := range slices.Sorted(maps.Keys(s.templates.daemonSets)) {
		if d := s.templates.daemonSets[key]; concerned(d) {
			most = max(most, s.readDaemonSet(d))
		}
	}
	return most
}

func (s *Store) DeleteDaemonSet(key cluster.PodKey) Urgency {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.templates.daemonSets[key]; d != nil {
		s.templates.giveBack(d.Namespace, key)
		delete(s.templates.daemonSets, key)
	}
	if old, had := s.daemonSets.get(key); had {
		s.classes.release(old.Class)
		s.daemonSets.delete(key)
	}
	return Later
}

func (s *Store) PutLimitRange(l *corev1.LimitRange) Urgency {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.templates.limitRanges[l.Namespace] == nil {
		s.templates.limitRanges[l.Namespace] = map[string]*corev1.LimitRange{}
	}
	s.templates.limitRanges[l.Namespace][l.Name] = l
	return s.rangesChanged(l.Namespace)
}

func (s *Store) DeleteLimitRange(namespace, name string) Urgency {
	s.mu.Lock()
	defer s.mu.Unlock()
	if delete(s.templates.limitRanges[namespace], name); len(s.templates.limitRanges[namespace]) == 0 {
		delete(s.templates.limitRanges, namespace)
	}
	return s.rangesChanged(namespace)
}

// rangesChanged counts anew what LimitRanges of a namespace may add to.
func (s *Store) rangesChanged(namespace string) Urgency {
	s.readBareTemplates(namespace)
	return s.readDaemonSets(func(d *appsv1.DaemonSet) bool { return d.Namespace == namespace })
}

func (s *Store) PutRuntimeClass(c *nodev1.RuntimeClass) Urgency {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.templates.runtimeClasses[c.Name] = c
	return s.readDaemonSets(ofRuntimeClass(c.Name))
}

func (s *Store) DeleteRuntimeClass(name string) Urgency {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.templates.runtimeClasses, name)
	return s.readDaemonSets(ofRuntimeClass(name))
}

// ofRuntimeClass tells the DaemonSets of a RuntimeClass.
func ofRuntimeClass(runtimeClass string) func(*appsv1.DaemonSet) bool {
	return func(d *appsv1.DaemonSet) bool {
		name := d.Spec.Template.Spec.RuntimeClassName
		return name != nil && *name == runtimeClass
	}
}
