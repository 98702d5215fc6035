package apiserver

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/watch"
)

// keptEvents is how many events of a kind a watch may begin behind, as in a watch cache of Kubernetes that has not grown.
const keptEvents = 100

// entry is one version of an object.
type entry struct {
	Object
	version int64
	proto   []byte // once somebody has asked for it
}

// event is one change.
type event struct {
	kind  watch.EventType
	entry *entry
	old   Object // before; nil: it was made
}

// collection holds the objects of one kind.
type collection struct {
	kind     kind
	objects  map[string]*entry // by key
	events   []event
	lost     int64 // a watch cannot begin before this version
	watchers map[*watcher]bool
	told     []func(kind watch.EventType, was, is Object)
}

// Server is an API server. Its methods may be called from any goroutine.
type Server struct {
	opts Options

	mu          sync.Mutex
	version     int64
	names       uint64
	random      *rand.Rand
	collections map[string]*collection // by group/resource
	pages       map[string]page
	uids        func() types.UID
}

// Options of New. Zero values are usable.
type Options struct {
	Seed uint64
	// Bookmarks is the time between two bookmarks of a watch; zero: a minute, as in Kubernetes.
	Bookmarks time.Duration
	// BeforeGet is told of each read of one object, before it and without a lock: a model may write what changes too often to be
	// written each time.
	BeforeGet func(resource, namespace, name string)
	// Version is GitVersion; empty: v1.36.3.
	Version string
	// Allowed answers access reviews; nil: everything but the approval of a client certificate by itself.
	Allowed func(user string, groups []string, verb, group, resource, subresource string) bool
}

// New makes an empty server, with the namespaces that every cluster has.
func New(o Options) *Server {
	o.Bookmarks = cmp.Or(o.Bookmarks, time.Minute)
	o.Version = cmp.Or(o.Version, "v1.36.3")
	s := &Server{opts: o, version: 1, random: rand.New(rand.NewPCG(o.Seed, 1)), collections: map[string]*collection{}, pages: map[string]page{}, uids: uuid.NewUUID}
	for _, k := range kinds {
		s.collections[k.Group+"/"+k.plural] = &collection{kind: k, objects: map[string]*entry{}, watchers: map[*watcher]bool{}}
	}
	s.uids = func() types.UID {
		return types.UID(fmt.Sprintf("%08x-0000-4000-8000-%012x", s.random.Uint32(), s.random.Uint64()>>16))
	}
	return s
}

func keyOf(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

func (s *Server) collectionOf(resource string) *collection {
	sh := s.collections[resource]
	if sh == nil {
		panic("apiserver: no kind " + resource)
	}
	return sh
}

// Told has f called after each change of a kind ("/pods", "apps/replicasets"), in order and with the
// server locked: f may only take notes.
func (s *Server) Told(resource string, f func(kind watch.EventType, was, is Object)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sh := s.collectionOf(resource)
	sh.told = append(sh.told, f)
}

// put stores a version and tells it. The caller holds s.mu.
func (s *Server) put(sh *collection, o Object, what watch.EventType) *entry {
	s.version++
	o.SetResourceVersion(strconv.FormatInt(s.version, 10))
	o.GetObjectKind().SetGroupVersionKind(sh.kind.gvk())
	key := keyOf(o.GetNamespace(), o.GetName())
	e := &entry{Object: o, version: s.version}
	var old Object
	if before := sh.objects[key]; before != nil {
		old = before.Object
	}
	if what == watch.Deleted {
		delete(sh.objects, key)
	} else {
		sh.objects[key] = e
	}
	ev := event{what, e, old}
	sh.events = append(sh.events, ev)
	if len(sh.events) > 2*keptEvents {
		sh.lost = sh.events[keptEvents-1].entry.version
		sh.events = slices.Clone(sh.events[keptEvents:])
	}
	for w := range sh.watchers {
		w.see(ev)
	}
	for _, f := range sh.told {
		f(what, old, o)
	}
	return e
}

// Expire forgets all events: each watch that runs ends with an error that its version is too old, and one that begins
// at an old version is refused.
func (s *Server) Expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sh := range s.collections {
		sh.events, sh.lost = nil, s.version
		for w := range sh.watchers {
			w.fail(apierrors.NewResourceExpired("The resourceVersion for the provided watch is too old."))
		}
	}
	clear(s.pages)
	s.version++
}

// BreakWatches ends every watch that runs, as a restart of the server does.
func (s *Server) BreakWatches() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sh := range s.collections {
		for w := range sh.watchers {
			w.end()
		}
	}
}

// create stores a new object.
func (s *Server) create(sh *collection, o Object, dry bool) (Object, error) {
	if o.GetName() == "" && o.GetGenerateName() != "" {
		const letters = "bcdfghjklmnpqrstvwxz2456789"
		suffix := make([]byte, 5)
		for i := range suffix {
			suffix[i] = letters[s.random.IntN(len(letters))]
		}
		o.SetName(o.GetGenerateName() + string(suffix))
	}
	if o.GetName() == "" {
		return nil, apierrors.NewBadRequest("metadata.name is empty")
	}
	if o.GetResourceVersion() != "" {
		return nil, apierrors.NewBadRequest("resourceVersion should not be set on objects to be created")
	}
	if sh.objects[keyOf(o.GetNamespace(), o.GetName())] != nil {
		return nil, apierrors.NewAlreadyExists(sh.kind.resource(), o.GetName())
	}
	setDefaults(o)
	if pod, ok := o.(*corev1.Pod); ok {
		if err := s.withinQuotas(pod); err != nil {
			return nil, err
		}
	}
	o.SetUID(s.uids())
	o.SetGeneration(1)
	o.SetCreationTimestamp(metav1.Now().Rfc3339Copy())
	o.SetDeletionTimestamp(nil)
	if dry {
		return o, nil
	}
	return s.put(sh, o, watch.Added).Object, nil
}

// update stores a new version of an object; o is the caller's own. subresource says which part of it
// counts.
func (s *Server) update(sh *collection, o Object, subresource string, dry bool) (Object, error) {
	was := sh.objects[keyOf(o.GetNamespace(), o.GetName())]
	if was == nil {
		return nil, apierrors.NewNotFound(sh.kind.resource(), o.GetName())
	}
	if v := o.GetResourceVersion(); v != "" && v != was.GetResourceVersion() {
		return nil, apierrors.NewConflict(sh.kind.resource(), o.GetName(), fmt.Errorf("the object has been modified; please apply your changes to the latest version and try again"))
	}
	if uid := o.GetUID(); uid != "" && uid != was.GetUID() {
		return nil, apierrors.NewConflict(sh.kind.resource(), o.GetName(), fmt.Errorf("precondition failed: UID in precondition: %v, UID in object meta: %v", uid, was.GetUID()))
	}
	o = merged(sh.kind, was.Object, o, subresource)
	o.SetUID(was.GetUID())
	o.SetCreationTimestamp(was.GetCreationTimestamp())
	o.SetDeletionTimestamp(was.GetDeletionTimestamp())
	o.SetDeletionGracePeriodSeconds(was.GetDeletionGracePeriodSeconds())
	o.SetGeneration(was.GetGeneration())
	o.SetResourceVersion(was.GetResourceVersion())
	o.GetObjectKind().SetGroupVersionKind(sh.kind.gvk())
	if changedSpec(was.Object, o) {
		o.SetGeneration(was.GetGeneration() + 1)
	}
	if dry || same(was, o) {
		return o, nil
	}
	if o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0 && sh.kind.plural != "pods" {
		return s.put(sh, o, watch.Deleted).Object, nil
	}
	return s.put(sh, o, watch.Modified).Object, nil
}

// same tells that o is what is stored: such a write is none.
func same(was *entry, o Object) bool {
	return bytes.Equal(was.bytes(), encode(o))
}

// remove deletes an object, or begins to.
func (s *Server) remove(sh *collection, namespace, name string, o metav1.DeleteOptions) (Object, error) {
	was := sh.objects[keyOf(namespace, name)]
	if was == nil {
		return nil, apierrors.NewNotFound(sh.kind.resource(), name)
	}
	if p := o.Preconditions; p != nil {
		if p.UID != nil && *p.UID != was.GetUID() {
			return nil, apierrors.NewConflict(sh.kind.resource(), name, fmt.Errorf("the UID in the precondition (%s) does not match the UID in record (%s). The object might have been deleted and then recreated", *p.UID, was.GetUID()))
		}
		if p.ResourceVersion != nil && *p.ResourceVersion != was.GetResourceVersion() {
			return nil, apierrors.NewConflict(sh.kind.resource(), name, fmt.Errorf("the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s). The object might have been modified", *p.ResourceVersion, was.GetResourceVersion()))
		}
	}
	next := was.DeepCopyObject().(Object)
	if slices.Contains(o.DryRun, metav1.DryRunAll) {
		return next, nil
	}
	grace := graceOf(next, o)
	if grace == 0 && len(next.GetFinalizers()) == 0 {
		return s.put(sh, next, watch.Deleted).Object, nil
	}
	if next.GetDeletionTimestamp() != nil && (next.GetDeletionGracePeriodSeconds() == nil || *next.GetDeletionGracePeriodSeconds() <= grace) {
		return next, nil
	}
	at := metav1.NewTime(time.Now().Add(time.Duration(grace) * time.Second)).Rfc3339Copy()
	next.SetDeletionTimestamp(&at)
	next.SetDeletionGracePeriodSeconds(&grace)
	return s.put(sh, next, watch.Modified).Object, nil
}

// keys are the keys of a namespace, all with "", sorted.
func (sh *collection) keys(namespace string) []string {
	var out []string
	for key := range maps.Keys(sh.objects) {
		if namespace == "" || strings.HasPrefix(key, namespace+"/") {
			out = append(out, key)
		}
	}
	slices.Sort(out)
	return out
}
