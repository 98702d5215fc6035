package apiserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"
)

// page is the rest of a list that was read in parts.
type page struct {
	version string
	objects []Object
}

// selector is what the parameters of a list or a watch select.
func (c *call) selector() (func(Object) bool, error) {
	q := c.URL.Query()
	byLabel, err := labels.Parse(q.Get("labelSelector"))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	byField, err := fields.ParseSelector(q.Get("fieldSelector"))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	for _, r := range byField.Requirements() {
		made, err := scheme.Scheme.New(c.collection.kind.gvk())
		if err != nil {
			return nil, err
		}
		if _, known := fieldsOf(made.(Object))[r.Field]; !known {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("%q is not a known field selector of %s", r.Field, c.collection.kind.plural))
		}
	}
	namespace := c.namespace
	return func(o Object) bool {
		return (namespace == "" || o.GetNamespace() == namespace) && (byLabel.Empty() || byLabel.Matches(labels.Set(o.GetLabels()))) &&
			(byField.Empty() || byField.Matches(fieldsOf(o)))
	}, nil
}

// removeAll deletes what a request selects.
func (s *Server) removeAll(c *call, o metav1.DeleteOptions) error {
	matches, err := c.selector()
	if err != nil {
		return err
	}
	for _, key := range c.collection.keys(c.namespace) {
		if is := c.collection.objects[key].Object; matches(is) {
			if _, err := s.remove(c.collection, is.GetNamespace(), is.GetName(), o); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Server) list(c *call) (any, error) {
	q := c.URL.Query()
	if at, err := strconv.ParseInt(q.Get("resourceVersion"), 10, 64); err == nil && at > s.version {
		return nil, apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", at, s.version), 1)
	}
	p := page{version: strconv.FormatInt(s.version, 10)}
	if token := q.Get("continue"); token != "" {
		was, ok := s.pages[token]
		if !ok {
			return nil, apierrors.NewResourceExpired("The provided continue parameter is too old to display a consistent list result.")
		}
		delete(s.pages, token)
		p = was
	} else {
		matches, err := c.selector()
		if err != nil {
			return nil, err
		}
		for _, key := range c.collection.keys(c.namespace) {
			if o := c.collection.objects[key].Object; matches(o) {
				p.objects = append(p.objects, o)
			}
		}
	}
	next := ""
	shown := p.objects
	if limit, err := strconv.Atoi(q.Get("limit")); err == nil && limit > 0 && limit < len(shown) {
		s.names++
		next = "part-" + strconv.FormatUint(s.names, 10)
		s.pages[next] = page{p.version, shown[limit:]}
		shown = shown[:limit]
	}
	return listOf(c.collection.kind, shown, p.version, next), nil
}

// Watch begins the watch that a request asks for. The body of the answer is the watch itself; an error is
// the answer of ServeHTTP.
func (s *Server) Watch(r *http.Request) (*http.Response, error) {
	c := &call{Request: r}
	q := r.URL.Query()
	s.mu.Lock()
	defer s.mu.Unlock()
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	group := ""
	if parts[0] == "apis" {
		group, parts = parts[1], parts[1:]
	}
	parts = parts[min(2, len(parts)):]
	if len(parts) > 2 && parts[0] == "namespaces" {
		c.namespace, parts = parts[1], parts[2:]
	}
	if !s.authenticate(c) {
		return nil, apierrors.NewUnauthorized("Unauthorized")
	}
	if c.collection = s.collections[group+"/"+strings.Join(parts, "/")]; c.collection == nil {
		return nil, apierrors.NewNotFound(schemaOf(group, strings.Join(parts, "/")), "")
	}
	matches, err := c.selector()
	if err != nil {
		return nil, err
	}
	w := &watcher{server: s, collection: c.collection, matches: matches, protobuf: wantsProtobuf(r), bookmarks: q.Get("allowWatchBookmarks") == "true", ready: make(chan struct{}, 1)}
	if err := s.begin(w, q.Get("resourceVersion"), q.Get("sendInitialEvents") == "true"); err != nil {
		return nil, err
	}
	seconds, err := strconv.Atoi(q.Get("timeoutSeconds"))
	if err != nil || seconds <= 0 {
		seconds = 1800 + s.random.IntN(1800) // --min-request-timeout, and as much again at most
	}
	w.timer = time.AfterFunc(time.Duration(seconds)*time.Second, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		w.end()
	})
	if w.bookmarks {
		s.bookmarkLater(w)
	}
	c.collection.watchers[w] = true
	kind := "application/json"
	if w.protobuf {
		kind = protobufType + ";stream=watch"
	}
	return &http.Response{Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {kind}}, Body: w, ContentLength: -1, Request: r}, nil
}

func (s *Server) bookmarkLater(w *watcher) {
	w.bookmark = time.AfterFunc(s.opts.Bookmarks, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if c := w.collection.watchers[w]; c {
			w.mark(false)
			s.bookmarkLater(w)
		}
	})
}

// begin sends what a watch begins with.
func (s *Server) begin(w *watcher, version string, initial bool) error {
	at, err := strconv.ParseInt(version, 10, 64)
	if version != "" && err != nil {
		return apierrors.NewBadRequest("resourceVersion " + version + " is no version")
	}
	switch {
	case at > s.version:
		return apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", at, s.version), 1)
	case initial || at == 0:
		for _, key := range w.collection.keys("") {
			if e := w.collection.objects[key]; w.matches(e.Object) {
				w.send("ADDED", e)
			}
		}
		if initial {
			w.mark(true)
		}
		return nil
	case at < w.collection.lost:
		return apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", at, w.collection.lost))
	}
	for _, ev := range w.collection.events {
		if ev.entry.version > at {
			w.see(ev)
		}
	}
	return nil
}

func (s *Server) post(c *call) (any, error) {
	if c.name != "" {
		switch c.subresource {
		case "eviction":
			return s.evict(c)
		case "binding":
			b := &corev1.Binding{}
			if err := c.decode(b); err != nil {
				return nil, err
			}
			return success, s.bind(c.namespace, c.name, b.Target.Name)
		}
		return nil, apierrors.NewMethodNotSupported(c.collection.kind.resource(), c.Method)
	}
	o, err := c.object()
	if err != nil {
		return nil, err
	}
	if csr, ok := o.(*certificatesv1.CertificateSigningRequest); ok {
		csr.Spec.Username, csr.Spec.Groups, csr.Status = c.user, c.groups, certificatesv1.CertificateSigningRequestStatus{}
	}
	return s.create(c.collection, o, c.dry())
}

var success = &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess, Code: http.StatusCreated}

// bind puts a pod on a node.
func (s *Server) bind(namespace, name, node string) error {
	sh := s.collections["/pods"]
	e := sh.objects[keyOf(namespace, name)]
	if e == nil {
		return apierrors.NewNotFound(sh.kind.resource(), name)
	}
	pod := e.DeepCopyObject().(*corev1.Pod)
	if pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil {
		return apierrors.NewConflict(sh.kind.resource(), name, fmt.Errorf("pod %s is already assigned to node %q, or is being deleted", name, pod.Spec.NodeName))
	}
	pod.Spec.NodeName = node
	pod.Status.Conditions = withCondition(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()})
	s.put(sh, pod, "MODIFIED")
	return nil
}

func withCondition(in []corev1.PodCondition, c corev1.PodCondition) []corev1.PodCondition {
	for i := range in {
		if in[i].Type == c.Type {
			in[i] = c
			return in
		}
	}
	return append(in, c)
}

// evict is the Eviction API: a pod that a budget covers is deleted while the budget allows it.
func (s *Server) evict(c *call) (any, error) {
	ev := &policyv1.Eviction{}
	if err := c.decode(ev); err != nil {
		return nil, err
	}
	options := metav1.DeleteOptions{}
	if ev.DeleteOptions != nil {
		options = *ev.DeleteOptions
	}
	e := c.collection.objects[keyOf(c.namespace, c.name)]
	if e == nil {
		return nil, apierrors.NewNotFound(c.collection.kind.resource(), c.name)
	}
	pod := e.Object.(*corev1.Pod)
	if free := pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodPending; !free {
		if err := s.spend(pod, options); err != nil {
			return nil, err
		}
	}
	if _, err := s.remove(c.collection, c.namespace, c.name, options); err != nil {
		return nil, err
	}
	return success, nil
}

// spend takes a disruption off the budget of a pod.
func (s *Server) spend(pod *corev1.Pod, o metav1.DeleteOptions) error {
	if p := o.Preconditions; p != nil && p.UID != nil && *p.UID != pod.UID {
		return apierrors.NewConflict(s.collections["/pods"].kind.resource(), pod.Name, fmt.Errorf("the UID in the precondition does not match"))
	}
	sh := s.collections["policy/poddisruptionbudgets"]
	var covering []*policyv1.PodDisruptionBudget
	for _, key := range sh.keys(pod.Namespace) {
		b := sh.objects[key].Object.(*policyv1.PodDisruptionBudget)
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err == nil && selector.Matches(labels.Set(pod.Labels)) {
			covering = append(covering, b)
		}
	}
	switch {
	case len(covering) == 0:
		return nil
	case len(covering) > 1:
		return apierrors.NewInternalError(fmt.Errorf("this pod has more than one PodDisruptionBudget, which the eviction subresource does not support"))
	}
	b := covering[0]
	if !ready(pod) && b.Status.CurrentHealthy >= b.Status.DesiredHealthy && b.Status.DesiredHealthy > 0 {
		return nil
	}
	if b.Status.ObservedGeneration < b.Generation {
		return tooMany("The disruption budget "+b.Name+" is still being processed by the server.", 10)
	}
	if b.Status.DisruptionsAllowed <= 0 {
		return tooMany("Cannot evict pod as it would violate the pod's disruption budget.", 0)
	}
	next := b.DeepCopy()
	next.Status.DisruptionsAllowed--
	if next.Status.DisruptedPods == nil {
		next.Status.DisruptedPods = map[string]metav1.Time{}
	}
	next.Status.DisruptedPods[pod.Name] = metav1.Now()
	s.put(sh, next, "MODIFIED")
	return nil
}

func tooMany(text string, seconds int) error {
	err := apierrors.NewTooManyRequests(text, seconds)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause, Message: text}}
	return err
}

func ready(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func (s *Server) patch(c *call) (any, error) {
	was := c.collection.objects[keyOf(c.namespace, c.name)]
	if was == nil {
		return nil, apierrors.NewNotFound(c.collection.kind.resource(), c.name)
	}
	before, err := json.Marshal(was.Object)
	if err != nil {
		return nil, err
	}
	var after []byte
	switch kind, _, _ := strings.Cut(c.Header.Get("Content-Type"), ";"); types.PatchType(kind) {
	case types.MergePatchType:
		after, err = jsonpatch.MergePatch(before, c.body)
	case types.StrategicMergePatchType:
		var made runtime.Object
		if made, err = scheme.Scheme.New(c.collection.kind.gvk()); err == nil {
			after, err = strategicpatch.StrategicMergePatch(before, c.body, made)
		}
	case types.JSONPatchType:
		var p jsonpatch.Patch
		if p, err = jsonpatch.DecodePatch(c.body); err == nil {
			after, err = p.Apply(before)
		}
	default:
		return nil, apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, c.Method, c.collection.kind.resource(), c.name, "this server does not apply a patch of type "+kind, 0, true)
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	made, err := scheme.Scheme.New(c.collection.kind.gvk())
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(after, made); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return s.update(c.collection, made.(Object), c.subresource, c.dry())
}

// review answers the kinds that are asked and not stored; nil: it is none.
func (s *Server) review(c *call, resource string) runtime.Object {
	attributes := func(user string, groups []string, a *authorizationv1.ResourceAttributes) authorizationv1.SubjectAccessReviewStatus {
		if a == nil {
			return authorizationv1.SubjectAccessReviewStatus{Allowed: true}
		}
		return authorizationv1.SubjectAccessReviewStatus{Allowed: s.allowed(user, groups, a)}
	}
	switch resource {
	case "authentication.k8s.io/selfsubjectreviews":
		out := &authenticationv1.SelfSubjectReview{Status: authenticationv1.SelfSubjectReviewStatus{UserInfo: authenticationv1.UserInfo{Username: c.user, Groups: c.groups}}}
		out.SetGroupVersionKind(authenticationv1.SchemeGroupVersion.WithKind("SelfSubjectReview"))
		return out
	case "authorization.k8s.io/selfsubjectaccessreviews":
		out := &authorizationv1.SelfSubjectAccessReview{}
		if c.decode(out) != nil {
			return nil
		}
		out.SetGroupVersionKind(authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectAccessReview"))
		out.Status = attributes(c.user, c.groups, out.Spec.ResourceAttributes)
		return out
	case "authorization.k8s.io/subjectaccessreviews":
		out := &authorizationv1.SubjectAccessReview{}
		if c.decode(out) != nil {
			return nil
		}
		out.SetGroupVersionKind(authorizationv1.SchemeGroupVersion.WithKind("SubjectAccessReview"))
		out.Status = attributes(out.Spec.User, out.Spec.Groups, out.Spec.ResourceAttributes)
		return out
	}
	return nil
}

func (s *Server) allowed(user string, groups []string, a *authorizationv1.ResourceAttributes) bool {
	if s.opts.Allowed != nil {
		return s.opts.Allowed(user, groups, a.Verb, a.Group, a.Resource, a.Subresource)
	}
	return a.Subresource != "nodeclient" && a.Subresource != "selfnodeclient"
}

// expired tells that a bootstrap token has ended.
func expired(data map[string][]byte) bool {
	at, err := time.Parse(time.RFC3339, string(data["expiration"]))
	return err == nil && !time.Now().Before(at)
}
