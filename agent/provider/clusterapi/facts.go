package clusterapi

import (
	"sync"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// rememberedFor is how long a former member is remembered. Its deletion is a success, and
// the API server has no object left that shows it.
const rememberedFor = time.Hour

// facts has facts that do not change: former members of a group, the shape of a node of a
// template, the contents of an immutable template.
type facts struct {
	mu      sync.Mutex
	members map[cluster.GroupID]map[cluster.InstanceID]time.Time // when last seen
	shapes  map[string]shape                                     // by Template.Spec
	types   map[string]string                                    // machine type by templateKey
	denied  time.Time                                            // when deleting a Machine was last forbidden
}

// deniedFor is how long a forbidden deletion is not tried again.
const deniedFor = 10 * time.Minute

func (f *facts) denyDelete() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.denied = time.Now()
}

func (f *facts) mayNotDelete() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.denied.IsZero() && time.Since(f.denied) < deniedFor
}

// shape has the resources and labels of a node of a template.
type shape struct {
	capacity, allocatable cluster.Resources
	labels                map[string]string
}

func (f *facts) saw(id cluster.GroupID, instances []cluster.Instance, at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.members == nil {
		f.members = map[cluster.GroupID]map[cluster.InstanceID]time.Time{}
	}
	known := f.members[id]
	if known == nil {
		known = map[cluster.InstanceID]time.Time{}
		f.members[id] = known
	}
	for _, in := range instances {
		known[in.ID] = at
	}
	for instance, seen := range known {
		if at.Sub(seen) > rememberedFor {
			delete(known, instance)
		}
	}
}

func (f *facts) wasMember(id cluster.GroupID, instance cluster.InstanceID) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, ok := f.members[id][instance]
	return ok
}

func (f *facts) shape(spec string) (shape, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, ok := f.shapes[spec]
	return s, ok
}

func (f *facts) learn(spec string, s shape) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.shapes == nil || len(f.shapes) > 1000 {
		f.shapes = map[string]shape{}
	}
	f.shapes[spec] = s
}

func (f *facts) machineType(key string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.types[key]
}

func (f *facts) learnType(key, typ string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.types == nil || len(f.types) > 1000 {
		f.types = map[string]string{}
	}
	f.types[key] = typ
}
