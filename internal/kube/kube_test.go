package kube

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
)

// recorder notes each request as a line and answers every one with the same Status.
type recorder struct {
	mu    sync.Mutex
	lines []string
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	r.mu.Lock()
	r.lines = append(r.lines, fmt.Sprintf("%s %s accept=%s type=%s agent=%s %q %v", q.Method, q.URL, q.Header.Get("Accept"), q.Header.Get("Content-Type"), q.Header.Get("User-Agent"), body, err))
	r.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusConflict)
	_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409,"message":"of the server"}`)
}

func (r *recorder) taken() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.lines
	r.lines = nil
	return out
}

// all makes every kind of call on a Kind.
func all[T, L any](ctx context.Context, k Kind[T, L], object T) error {
	seconds, dry := int64(300), []string{metav1.DryRunAll}
	_, errGet := k.Get(ctx, "x", metav1.GetOptions{})
	_, errList := k.List(ctx, metav1.ListOptions{Limit: 1, FieldSelector: "metadata.name=x", TimeoutSeconds: &seconds})
	_, errWatch := k.Watch(ctx, metav1.ListOptions{ResourceVersion: "7", AllowWatchBookmarks: true, TimeoutSeconds: &seconds})
	_, errCreate := k.Create(ctx, object, metav1.CreateOptions{DryRun: dry, FieldManager: "m"})
	_, errUpdate := k.Update(ctx, object, metav1.UpdateOptions{DryRun: dry})
	_, errPatch := k.Patch(ctx, "x", types.StrategicMergePatchType, []byte(`{"a":1}`), metav1.PatchOptions{FieldManager: "m"}, "status")
	errDelete := k.Delete(ctx, "x", metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions("u")})
	for _, err := range []error{errGet, errList, errWatch, errCreate, errUpdate, errPatch, errDelete} {
		if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "of the server") {
			return fmt.Errorf("%w is not the server's own error", err)
		}
	}
	return nil
}

// calls are all calls that the product makes, on a clientset of client-go or on a Client.
func calls(ctx context.Context, core Core, leases Kind[*coordinationv1.Lease, *coordinationv1.LeaseList], csrs Requests, evictions Evictor,
	self Creator[*authenticationv1.SelfSubjectReview], access Creator[*authorizationv1.SubjectAccessReview], sink record.EventSink) []error {
	meta := metav1.ObjectMeta{Name: "x", Namespace: "ns"}
	csr := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "x"}}
	event := &corev1.Event{ObjectMeta: meta, Reason: "r"}
	_, errApproval := csrs.UpdateApproval(ctx, "x", csr, metav1.UpdateOptions{FieldManager: "m"})
	_, errSelf := self.Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	_, errAccess := access.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: "u"}}, metav1.CreateOptions{})
	_, errEvent := sink.Create(event)
	_, errSame := sink.Update(event)
	_, errAgain := sink.Patch(event, []byte(`{"count":2}`))
	out := []error{
		all(ctx, core.Nodes(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "x"}}), all(ctx, core.Secrets("ns"), &corev1.Secret{ObjectMeta: meta}),
		all(ctx, core.Pods(""), &corev1.Pod{ObjectMeta: meta}), all(ctx, leases, &coordinationv1.Lease{ObjectMeta: meta}), all(ctx, csrs, csr),
	}
	for _, err := range []error{errApproval, errSelf, errAccess, errEvent, errSame, errAgain, evictions.Evict(ctx, &policyv1.Eviction{ObjectMeta: meta})} {
		if !apierrors.IsConflict(err) {
			out = append(out, fmt.Errorf("%w is not the server's own error", err))
		}
	}
	return out
}

// TestSameRequestsAsClientGo: each call of a Client is the very request that client-go's
// clientset sends, as protobuf and as JSON, and a refusal is the server's own error.
func TestSameRequestsAsClientGo(t *testing.T) {
	for _, contentType := range []string{"", runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} {
		seen := &recorder{}
		srv := httptest.NewServer(seen)
		defer srv.Close()
		cfg := &rest.Config{Host: srv.URL, QPS: -1, UserAgent: "the-agent", ContentConfig: rest.ContentConfig{ContentType: contentType}}
		if contentType == runtime.ContentTypeProtobuf {
			cfg.AcceptContentTypes = contentType + ",application/json"
		}
		theirs, err := kubernetes.NewForConfig(cfg)
		if err != nil {
			t.Fatal(err)
		}
		core := theirs.CoreV1()
		errs := calls(t.Context(), Core{
			Nodes:   func() Kind[*corev1.Node, *corev1.NodeList] { return core.Nodes() },
			Secrets: func(ns string) Kind[*corev1.Secret, *corev1.SecretList] { return core.Secrets(ns) },
			Pods:    func(ns string) Kind[*corev1.Pod, *corev1.PodList] { return core.Pods(ns) },
		}, theirs.CoordinationV1().Leases("ns"), theirs.CertificatesV1().CertificateSigningRequests(), theirs.PolicyV1().Evictions("ns"),
			theirs.AuthenticationV1().SelfSubjectReviews(), theirs.AuthorizationV1().SubjectAccessReviews(), &typedcorev1.EventSinkImpl{Interface: core.Events("")})
		want := seen.taken()
		ours, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		errs = append(errs, calls(t.Context(), ours.Core, ours.CoordinationV1().Leases("ns"), ours.CertificatesV1().CertificateSigningRequests(),
			ours.PolicyV1().Evictions("ns"), ours.AuthenticationV1().SelfSubjectReviews(), ours.AuthorizationV1().SubjectAccessReviews(), EventSink{ours})...)
		for _, err := range errs {
			if err != nil {
				t.Error(err)
			}
		}
		got := seen.taken()
		if len(want) < 40 || len(got) != len(want) {
			t.Fatalf("%d requests, client-go sends %d", len(got), len(want))
		}
		for i := range want {
			if contentType == "" && strings.Contains(want[i], "/events") {
				continue // client-go sends Events as JSON where nothing is set; the agent sets protobuf
			}
			if got[i] != want[i] {
				t.Errorf("request %d as %q:\n%s\nclient-go:\n%s", i, contentType, got[i], want[i])
			}
		}
	}
}

// TestEveryKindIsAtItsPlace: the path of each kind is the one of client-go's clientset, and
// the answer is decoded as that kind.
func TestEveryKindIsAtItsPlace(t *testing.T) {
	paths := map[string]string{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		kind := paths[strings.TrimSuffix(q.URL.Path, "/x")]
		version := strings.TrimPrefix(q.URL.Path[:strings.LastIndex(q.URL.Path, "/v1/")+3], "/")
		_, version, _ = strings.Cut(version, "/")
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"kind":%q,"apiVersion":%q,"metadata":{"name":"x"}}`, kind, version)
	}))
	defer srv.Close()
	c, err := New(&rest.Config{Host: srv.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	check := func(kind, path string, get func() (metav1.Object, error)) {
		t.Helper()
		paths[path] = kind
		if got, err := get(); err != nil || got.GetName() != "x" {
			t.Errorf("%s at %s: %v", kind, path, err)
		}
	}
	for kind, one := range map[string]struct {
		path string
		get  func() (metav1.Object, error)
	}{
		"Node":                      {"/api/v1/nodes", getter(c.Core.Nodes())},
		"Namespace":                 {"/api/v1/namespaces", getter(c.Core.Namespaces())},
		"PersistentVolume":          {"/api/v1/persistentvolumes", getter(c.Core.PersistentVolumes())},
		"PersistentVolumeClaim":     {"/api/v1/namespaces/ns/persistentvolumeclaims", getter(c.Core.PersistentVolumeClaims("ns"))},
		"Pod":                       {"/api/v1/namespaces/ns/pods", getter(c.Core.Pods("ns"))},
		"Secret":                    {"/api/v1/namespaces/ns/secrets", getter(c.Core.Secrets("ns"))},
		"ConfigMap":                 {"/api/v1/namespaces/ns/configmaps", getter(c.Core.ConfigMaps("ns"))},
		"Service":                   {"/api/v1/namespaces/ns/services", getter(c.Core.Services("ns"))},
		"Event":                     {"/api/v1/namespaces/ns/events", getter(c.Core.Events("ns"))},
		"DaemonSet":                 {"/apis/apps/v1/namespaces/ns/daemonsets", getter(c.Apps.DaemonSets("ns"))},
		"ReplicaSet":                {"/apis/apps/v1/namespaces/ns/replicasets", getter(c.Apps.ReplicaSets("ns"))},
		"StatefulSet":               {"/apis/apps/v1/namespaces/ns/statefulsets", getter(c.Apps.StatefulSets("ns"))},
		"Job":                       {"/apis/batch/v1/namespaces/ns/jobs", getter(c.Batch.Jobs("ns"))},
		"PodDisruptionBudget":       {"/apis/policy/v1/namespaces/ns/poddisruptionbudgets", getter(c.Policy.PodDisruptionBudgets("ns"))},
		"StorageClass":              {"/apis/storage.k8s.io/v1/storageclasses", getter(c.Storage.StorageClasses())},
		"CSIDriver":                 {"/apis/storage.k8s.io/v1/csidrivers", getter(c.Storage.CSIDrivers())},
		"CSINode":                   {"/apis/storage.k8s.io/v1/csinodes", getter(c.Storage.CSINodes())},
		"VolumeAttachment":          {"/apis/storage.k8s.io/v1/volumeattachments", getter(c.Storage.VolumeAttachments())},
		"Lease":                     {"/apis/coordination.k8s.io/v1/namespaces/ns/leases", getter(c.Coordination.Leases("ns"))},
		"CertificateSigningRequest": {"/apis/certificates.k8s.io/v1/certificatesigningrequests", getter(Kind[*certificatesv1.CertificateSigningRequest, *certificatesv1.CertificateSigningRequestList](c.Certificates.CertificateSigningRequests()))},
		"ClusterRoleBinding":        {"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", getter(c.Rbac.ClusterRoleBindings())},
		"EndpointSlice":             {"/apis/discovery.k8s.io/v1/namespaces/ns/endpointslices", getter(c.Discovery.EndpointSlices("ns"))},
		"ServiceCIDR":               {"/apis/networking.k8s.io/v1/servicecidrs", getter(c.Networking.ServiceCIDRs())},
	} {
		check(kind, one.path, one.get)
	}
}

func getter[T metav1.Object, L any](k Kind[T, L]) func() (metav1.Object, error) {
	return func() (metav1.Object, error) { return k.Get(context.Background(), "x", metav1.GetOptions{}) }
}

// TestSchemeIsAPartOfClientGos: each kind here is the same Go type under the same name there.
func TestSchemeIsAPartOfClientGos(t *testing.T) {
	n := 0
	for gvk, ours := range Scheme.AllKnownTypes() {
		theirs, ok := scheme.Scheme.AllKnownTypes()[gvk]
		if !ok || theirs != ours {
			t.Errorf("%s is %v here and %v in client-go", gvk, ours, theirs)
		}
		if n++; n > 300 {
			t.Fatal("too many kinds are registered")
		}
	}
}

// TestListsAreStreamed: every informer asks for its first list as a stream, which a server
// that cannot stream refuses; the whole list is then asked for as one answer.
func TestListsAreStreamed(t *testing.T) {
	var mu sync.Mutex
	streamed, listed := map[string]bool{}, map[string]bool{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if q.URL.Query().Get("sendInitialEvents") == "true" {
			streamed[q.URL.Path] = true
			w.WriteHeader(http.StatusUnprocessableEntity)
			_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)
			return
		}
		listed[q.URL.Path] = true
		w.WriteHeader(http.StatusNotFound)
	}))
	defer srv.Close()
	c, err := New(&rest.Config{Host: srv.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	shared := NewInformers(c, nil)
	made := []cache.SharedIndexInformer{shared.Nodes(), shared.Namespaces(), shared.PersistentVolumes(), shared.PersistentVolumeClaims(), shared.DaemonSets(), shared.ReplicaSets(),
		shared.StatefulSets(), shared.Jobs(), shared.PodDisruptionBudgets(), shared.StorageClasses(), shared.CSIDrivers(), shared.CSINodes(), shared.VolumeAttachments(), shared.LimitRanges(), shared.ResourceQuotas(), shared.RuntimeClasses()}
	if shared.Nodes() != made[0] {
		t.Error("two informers of one kind")
	}
	failed := make(chan struct{}, 1000)
	for _, i := range made {
		if err := i.SetWatchErrorHandler(func(*cache.Reflector, error) { failed <- struct{}{} }); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	shared.Start(ctx)
	shared.Start(ctx) // a second start starts nothing again
	for range made {
		<-failed
	}
	cancel()
	shared.Wait()
	if len(streamed) != len(made) || len(listed) != len(made) {
		t.Errorf("%d informers streamed %d lists and asked for %d: %v", len(made), len(streamed), len(listed), streamed)
	}
}
