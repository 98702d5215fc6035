package apiserver_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"net/http"

	"github.com/autoscaler-agent/autoscaler-agent/test/world/apiserver"
	"github.com/autoscaler-agent/autoscaler-agent/test/world/wire"
)

// clientOf is client-go's own client of a server.
func clientOf(t *testing.T, s *apiserver.Server, w *wire.Wire, contentType string) *kubernetes.Clientset {
	t.Helper()
	w.Hosts, w.Latency = map[string]wire.Far{"api:6443": {Handler: s, Stream: s.Stream}}, 2*time.Millisecond
	c, err := kubernetes.NewForConfig(&rest.Config{Host: "https://api:6443", BearerToken: "someone", QPS: -1,
		ContentConfig: rest.ContentConfig{ContentType: contentType, AcceptContentTypes: contentType}, WrapTransport: func(http.RoundTripper) http.RoundTripper { return w }})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{"app": name[:1]}}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
}

// TestInformers: client-go's informers hold what the server holds, in both forms, through broken watches, expired
// versions and an hour of bookmarks and timeouts.
func TestInformers(t *testing.T) {
	for _, form := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		t.Run(form, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { testInformers(t, form) }) })
	}
}

func testInformers(t *testing.T, form string) {
	s, w := apiserver.New(apiserver.Options{Seed: 1}), &wire.Wire{}
	client := clientOf(t, s, w, form)
	ctx, stop := context.WithCancel(t.Context())
	factory := informers.NewSharedInformerFactory(client, 0)
	lister := factory.Core().V1().Pods().Lister()
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	defer stop()
	factory.WaitForCacheSync(ctx.Done())
	want := func(what string) {
		t.Helper()
		time.Sleep(time.Minute) // the longest backoff of a Reflector is half of it
		synctest.Wait()
		held, err := lister.List(labels.Everything())
		if err != nil {
			t.Fatal(err)
		}
		var have, there []string
		for _, p := range held {
			have = append(have, fmt.Sprint(p.Name, " ", p.ResourceVersion))
		}
		for _, p := range apiserver.List[*corev1.Pod](s, "/pods", "") {
			there = append(there, fmt.Sprint(p.Name, " ", p.ResourceVersion))
		}
		slices.Sort(have)
		slices.Sort(there)
		if !slices.Equal(have, there) {
			t.Fatalf("%s: the informer holds %v, the server %v", what, have, there)
		}
	}
	pods := client.CoreV1().Pods("default")
	for i := range 5 {
		if _, err := pods.Create(ctx, pod(fmt.Sprint("p", i)), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	want("after 5 creations")
	s.BreakWatches()
	if err := pods.Delete(ctx, "p0", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	want("after a broken watch")
	w.Reset()
	s.Expire()
	if _, err := pods.Patch(ctx, "p1", types.StrategicMergePatchType, []byte(`{"metadata":{"labels":{"x":"y"}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	want("after an expired version")
	time.Sleep(time.Hour)
	if _, err := pods.Patch(ctx, "p2", types.JSONPatchType, []byte(`[{"op":"add","path":"/metadata/labels/x","value":"y"}]`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	want("after an hour")
}

// TestWrites: a version that is not the last is a conflict, a UID that is another's too; a write that changes nothing
// is none; a status is written by itself; a list in parts shows one version.
func TestWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := apiserver.New(apiserver.Options{})
		client := clientOf(t, s, &wire.Wire{}, "application/vnd.kubernetes.protobuf")
		ctx := t.Context()
		nodes := client.CoreV1().Nodes()
		n, err := nodes.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{Phase: corev1.NodeRunning}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := nodes.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
			t.Errorf("a second node n: %v", err)
		}
		n.Spec.Unschedulable, n.Status.Phase = true, corev1.NodePending
		next, err := nodes.Update(ctx, n, metav1.UpdateOptions{})
		if err != nil || !next.Spec.Unschedulable || next.Status.Phase != corev1.NodeRunning {
			t.Errorf("update: %v, %v", next, err)
		}
		if _, err := nodes.Update(ctx, n, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
			t.Errorf("an update of an old version: %v", err)
		}
		again, err := nodes.Update(ctx, next, metav1.UpdateOptions{})
		if err != nil || again.ResourceVersion != next.ResourceVersion {
			t.Errorf("an update that changes nothing: version %s after %s, %v", again.ResourceVersion, next.ResourceVersion, err)
		}
		if st, err := nodes.UpdateStatus(ctx, &corev1.Node{ObjectMeta: again.ObjectMeta, Status: corev1.NodeStatus{Phase: corev1.NodePending}}, metav1.UpdateOptions{}); err != nil ||
			st.Status.Phase != corev1.NodePending || !st.Spec.Unschedulable {
			t.Errorf("status: %v, %v", st, err)
		}
		uid := types.UID("another")
		if err := nodes.Delete(ctx, "n", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}); !apierrors.IsConflict(err) {
			t.Errorf("a deletion of another UID: %v", err)
		}
		for i := range 7 {
			if _, err := client.CoreV1().Pods("default").Create(ctx, pod(fmt.Sprint("q", i)), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		first, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{Limit: 3, FieldSelector: "spec.nodeName="})
		if err != nil || len(first.Items) != 3 {
			t.Fatalf("the first part: %v", err)
		}
		if err := client.CoreV1().Pods("default").Delete(ctx, "q6", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		rest, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{Continue: first.Continue})
		if err != nil || len(rest.Items) != 4 || rest.ResourceVersion != first.ResourceVersion {
			t.Errorf("the rest: %d pods at %s after %s, %v", len(rest.Items), rest.ResourceVersion, first.ResourceVersion, err)
		}
		if _, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{Continue: first.Continue}); !apierrors.IsResourceExpired(err) {
			t.Errorf("the rest again: %v", err)
		}
	})
}

// TestEviction: a budget is spent and then refuses; a pod on a node goes when its grace has passed.
func TestEviction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := apiserver.New(apiserver.Options{})
		client := clientOf(t, s, &wire.Wire{}, "application/vnd.kubernetes.protobuf")
		ctx := t.Context()
		if err := s.Create("policy/poddisruptionbudgets", &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "b", Namespace: "default"},
			Spec:   policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "p"}}},
			Status: policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, DisruptionsAllowed: 1, CurrentHealthy: 2, DesiredHealthy: 1}}); err != nil {
			t.Fatal(err)
		}
		for i := range 2 {
			p := pod(fmt.Sprint("p", i))
			p.Spec.NodeName, p.Status.Phase = "n", corev1.PodRunning
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			if err := s.Create("/pods", p); err != nil {
				t.Fatal(err)
			}
		}
		evict := func(name string) error {
			return client.PolicyV1().Evictions("default").Evict(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}})
		}
		if err := evict("p0"); err != nil {
			t.Fatal(err)
		}
		if err := evict("p1"); !apierrors.IsTooManyRequests(err) || !apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause) {
			t.Errorf("a second eviction: %v", err)
		}
		if p := apiserver.Get[*corev1.Pod](s, "/pods", "default", "p0"); p.DeletionTimestamp == nil || time.Until(p.DeletionTimestamp.Time) > 30*time.Second {
			t.Errorf("p0: deletion at %v", p.DeletionTimestamp)
		}
		if p := apiserver.Get[*corev1.Pod](s, "/pods", "default", "p1"); p.DeletionTimestamp != nil {
			t.Errorf("p1 is deleted")
		}
	})
}

// TestRequests: who makes a certificate request is in it, by the token; an approval changes the conditions alone.
func TestRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := apiserver.New(apiserver.Options{})
		client := clientOf(t, s, &wire.Wire{}, "application/vnd.kubernetes.protobuf")
		csr, err := client.CertificatesV1().CertificateSigningRequests().Create(t.Context(), &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{GenerateName: "csr-"},
			Spec: certificatesv1.CertificateSigningRequestSpec{SignerName: "s", Username: "root"}}, metav1.CreateOptions{})
		if err != nil || csr.Spec.Username != "someone" || len(csr.Name) != 9 {
			t.Fatalf("%v, %v", csr, err)
		}
		csr.Spec.Username, csr.Status.Certificate = "root", []byte("x")
		csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue}}
		csr, err = client.CertificatesV1().CertificateSigningRequests().UpdateApproval(t.Context(), csr.Name, csr, metav1.UpdateOptions{})
		if err != nil || csr.Spec.Username != "someone" || len(csr.Status.Certificate) > 0 || len(csr.Status.Conditions) != 1 {
			t.Errorf("%v, %v", csr, err)
		}
	})
}
