package admission

import (
	"slices"
	"strings"
	"testing"
	"time"

	certv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/autoscaler-agent/autoscaler-agent/bootstrap"
	"github.com/autoscaler-agent/autoscaler-agent/bootstrap/secret"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/drawn"
)

// write is a call of the agent's user; before is nil where it creates.
func (j *Judge) write(t *testing.T, resource, namespace, name string, before, after kruntime.Object) string {
	t.Helper()
	clock := &coordinationv1.Lease{TypeMeta: metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"}, // of an API server
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "apiserver-x", Labels: map[string]string{"apiserver.kubernetes.io/identity": "kube-apiserver"}}}
	r := request{User: agentUser, Operation: "CREATE", Version: "v1", Resource: resource, Namespace: namespace, Name: name, Object: after, Params: []kruntime.Object{clock}}
	if before != nil {
		r.Operation, r.OldObject = "UPDATE", before
	}
	a, err := j.ask(r)
	if err != nil {
		t.Fatal(err)
	}
	return a.String()
}

// TestEvents: the agent makes and counts its own, and writes to no other.
func TestEvents(t *testing.T) {
	j := start(t, same)
	event := func(change func(*corev1.Event)) *corev1.Event {
		e := &corev1.Event{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Event"}, ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x"}, InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: "worker-1", UID: "x"},
			Reason: "ScaleDown", Message: strings.Repeat("x", 8192), Type: "Warning", Count: 1, FirstTimestamp: metav1.Now(), LastTimestamp: metav1.Now(),
			Source: corev1.EventSource{Component: "autoscaler-agent", Host: "leader"}, ReportingController: "autoscaler-agent", ReportingInstance: "leader"}
		change(e)
		return e
	}
	own := event(func(*corev1.Event) {})
	counted := event(func(e *corev1.Event) { e.Count, e.Message = 2, "(combined from similar events): x" })
	foreign := event(func(e *corev1.Event) { e.Source.Component = "kubelet" })
	for name, c := range map[string]struct {
		before, after *corev1.Event
		says          string
	}{
		"its own": {nil, own, ""}, "counted": {own, counted, ""},
		"a kubelet's": {nil, foreign, "of the source"}, "a kubelet's changed": {foreign, foreign, "of the source"}, "a kubelet's taken over": {foreign, own, "of the source"}, "its own given away": {own, foreign, "of the source"},
		"of no source":     {nil, event(func(e *corev1.Event) { e.Source = corev1.EventSource{} }), "of the source"},
		"a megabyte":       {nil, event(func(e *corev1.Event) { e.Message = strings.Repeat("x", 1<<20) }), "8192 bytes"},
		"grown":            {own, event(func(e *corev1.Event) { e.Message = strings.Repeat("x", 8193) }), "8192 bytes"},
		"a long action":    {nil, event(func(e *corev1.Event) { e.Action = strings.Repeat("x", 8193) }), "8192 bytes"},
		"a long host":      {nil, event(func(e *corev1.Event) { e.Source.Host = strings.Repeat("x", 1025) }), "8192 bytes"},
		"a long object":    {nil, event(func(e *corev1.Event) { e.InvolvedObject.Name = strings.Repeat("x", 1025) }), "8192 bytes"},
		"with a label":     {nil, event(func(e *corev1.Event) { e.Labels = map[string]string{"x": "y"} }), "8192 bytes"},
		"with an owner":    {nil, event(func(e *corev1.Event) { e.OwnerReferences = []metav1.OwnerReference{{Name: "x"}} }), "8192 bytes"},
		"that stays":       {own, event(func(e *corev1.Event) { e.Finalizers = []string{"example.com/x"} }), "8192 bytes"},
		"about two things": {nil, event(func(e *corev1.Event) { e.Related = &corev1.ObjectReference{Name: strings.Repeat("x", 9000)} }), "8192 bytes"},
	} {
		var before kruntime.Object
		if c.before != nil {
			before = c.before
		}
		if said := j.write(t, "events", "default", "x", before, c.after); (said == "") != (c.says == "") || !strings.Contains(said, c.says) {
			t.Errorf("%s: %q, want %q", name, said, c.says)
		}
	}
}

// TestJoinValues: the policy lets the agent's own join values pass, and refuses a value that a shell would execute.
func TestJoinValues(t *testing.T) {
	j := start(t, same)
	for _, join := range []bootstrap.Join{
		{Token: "asa000.0123456789abcdef", CAHashes: []string{"sha256:" + strings.Repeat("0a", 32), "sha256:" + strings.Repeat("ff", 32)}, Endpoint: "[fd00:1::1]:6443", Expires: time.Now(), Kubernetes: "v1.36.3+k3s1"},
		{CAHashes: []string{"sha256:0"}, Endpoint: "API_1.example.com:6443", Kubernetes: "v1.36.3"},
	} {
		x, err := secret.Make(join)
		if err != nil {
			t.Fatal(err)
		}
		x.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}
		if said := j.write(t, "secrets", "kube-system", x.Name, nil, x); said != "" {
			t.Errorf("%+v: %s", join, said)
		}
		for b := range 256 {
			for _, value := range []string{string([]byte{byte(b)}), "ab" + string([]byte{byte(b)}), "a" + string([]byte{byte(b)}) + "b", string([]byte{byte(b)}) + "abc"} {
				y := x.DeepCopy()
				y.Data["JOIN_ENDPOINT"] = []byte(value)
				literal := strings.Trim(string([]byte{byte(b)}), "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,:-_+/@[]") == ""
				if said := j.write(t, "secrets", "kube-system", x.Name, x, y); (said == "") != literal || said != "" && !strings.Contains(said, "mean something to a shell") {
					t.Errorf("%q: %q", value, said)
				}
			}
			if b == 127 && join.Token == "" {
				break
			}
		}
	}
}

// TestApprovalsChangeNothingElse: a decision is one condition, and no part of the request.
func TestApprovalsChangeNothingElse(t *testing.T) {
	j, s, c := start(t, same), scene(drawn.Seed(t)), cluster()
	pem := encode(s.around(s.key(), "worker-1", dnsName("worker-1")))
	owner := []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "x"}}
	given := certv1.CertificateSigningRequestCondition{Type: "example.com/seen", Status: corev1.ConditionTrue, Message: "by another"}
	for name, x := range map[string]struct {
		before, after func(*certv1.CertificateSigningRequest)
		says          string
	}{
		"approved":                    {nil, nil, ""},
		"approved beside a condition": {func(r *certv1.CertificateSigningRequest) { r.Status.Conditions = append(r.Status.Conditions, given) }, nil, ""},
		"denied": {nil, func(r *certv1.CertificateSigningRequest) {
			r.Status.Conditions[len(r.Status.Conditions)-1].Type = "Denied"
		}, ""},
		"of an owner that stays": {func(r *certv1.CertificateSigningRequest) { r.OwnerReferences = owner }, nil, ""},
		"an owner":               {nil, func(r *certv1.CertificateSigningRequest) { r.OwnerReferences = owner }, "no labels"},
		"an owner taken away":    {func(r *certv1.CertificateSigningRequest) { r.OwnerReferences = owner }, func(r *certv1.CertificateSigningRequest) { r.OwnerReferences = nil }, "no labels"},
		"a finalizer":            {nil, func(r *certv1.CertificateSigningRequest) { r.Finalizers = []string{"example.com/x"} }, "no labels"},
		"a label":                {nil, func(r *certv1.CertificateSigningRequest) { r.Labels = map[string]string{"x": "y"} }, "no labels"},
		"an annotation": {nil, func(r *certv1.CertificateSigningRequest) {
			r.Annotations = map[string]string{"x": strings.Repeat("x", 200<<10)}
		}, "no labels"},
		"an owner and no decision": {nil, func(r *certv1.CertificateSigningRequest) { r.OwnerReferences, r.Status.Conditions = owner, nil }, "no labels"},
		"two decisions": {nil, func(r *certv1.CertificateSigningRequest) {
			r.Status.Conditions = append(r.Status.Conditions, certv1.CertificateSigningRequestCondition{Type: "Denied", Status: corev1.ConditionTrue})
		}, "one condition"},
		"a failure":       {nil, func(r *certv1.CertificateSigningRequest) { r.Status.Conditions[0].Type = "Failed" }, "one condition"},
		"a long message":  {nil, func(r *certv1.CertificateSigningRequest) { r.Status.Conditions[0].Message = strings.Repeat("x", 4097) }, "one condition"},
		"a long reason":   {nil, func(r *certv1.CertificateSigningRequest) { r.Status.Conditions[0].Reason = strings.Repeat("x", 4097) }, "one condition"},
		"another's words": {func(r *certv1.CertificateSigningRequest) { r.Status.Conditions = append(r.Status.Conditions, given) }, func(r *certv1.CertificateSigningRequest) { r.Status.Conditions[0].Message = "x" }, "one condition"},
		"another's condition taken away": {func(r *certv1.CertificateSigningRequest) { r.Status.Conditions = append(r.Status.Conditions, given) },
			func(r *certv1.CertificateSigningRequest) {
				r.Status.Conditions = slices.Delete(r.Status.Conditions, 0, 1)
			}, "one condition"},
	} {
		a, err := j.approveServing(c, "worker-1", pem, x.before, x.after)
		if said := a.String(); err != nil || (said == "") != (x.says == "") || !strings.Contains(said, x.says) {
			t.Errorf("%s: %v, %q, want %q", name, err, said, x.says)
		}
	}
}
