package services

import (
	"bytes"
	"context"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	certv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/autoscaler-agent/autoscaler-agent/agent/clients"
	"github.com/autoscaler-agent/autoscaler-agent/bootstrap"
	"github.com/autoscaler-agent/autoscaler-agent/bootstrap/secret"
	"github.com/autoscaler-agent/autoscaler-agent/csrsigner"
	"github.com/autoscaler-agent/autoscaler-agent/internal/testing/kubetest"
	"github.com/autoscaler-agent/autoscaler-agent/test/await"
)

const byPolicy = "ValidatingAdmissionPolicy"

// table is every attack that is refused. rights_thief_test.go has what is left to a thief.
func (s *stolen) table() []attack {
	return slices.Concat(s.secretAttacks(), s.approvalAttacks(), s.joinAttacks(), s.nodeAttacks(), s.otherAttacks(), s.formAttacks(), s.eventAttacks())
}

func (s *stolen) secretAttacks() []attack {
	account := func(x *corev1.Secret) {
		x.Type, x.Data = corev1.SecretTypeServiceAccountToken, nil
		x.Annotations = map[string]string{corev1.ServiceAccountNameKey: "clusterrole-aggregation-controller"}
	}
	none := token("asa010", func(x *corev1.Secret) { x.Labels = nil })
	opaque := token("asa011", func(x *corev1.Secret) { x.Type = corev1.SecretTypeOpaque })
	mine := func(x *corev1.Secret) { x.Labels = map[string]string{bootstrap.TokenLabel: "true"} }
	return []attack{
		{name: "token of a service account", try: makes("asa001", account), says: byPolicy},
		{name: "token of a service account under any name", try: makes("asa001", func(x *corev1.Secret) { account(x); x.Name = "mine" }), says: byPolicy},
		{name: "Secret of no type", try: makes("asa001", func(x *corev1.Secret) { x.Type = corev1.SecretTypeOpaque }), says: byPolicy, probe: true},
		{name: "Secret in another namespace", try: makes("asa001", func(x *corev1.Secret) { x.Namespace = "default" }), says: "cannot create"},
		{name: "token of an ID of its own", try: makes("abcdef", nil), says: "asa000 to"},
		{name: "token past the pool", try: makes("asa128", nil), says: "asa000 to"},
		{name: "token of a generated name", try: makes("asa001", func(x *corev1.Secret) { x.Name, x.GenerateName = "", "bootstrap-token-" }), says: "asa000 to"},
		{name: "token without the label", try: makes("asa001", func(x *corev1.Secret) { x.Labels = nil }), says: "label"},
		{name: "token with another label", try: makes("asa001", func(x *corev1.Secret) { x.Labels = map[string]string{bootstrap.TokenLabel: "x"} }), says: "label"},
		{name: "token of the administrators", try: makes("asa001", group("system:masters")), says: "jointokengroups"},
		{name: "token of kubeadm's group", try: makes("asa001", group(bootstrap.KubeadmGroup)), says: "jointokengroups"},
		{name: "token of kubeadm's group beside ours", try: makes("asa001", group(bootstrap.WorkersGroup+","+bootstrap.KubeadmGroup)), says: "jointokengroups"},
		{name: "token of another group", try: makes("asa001", group("system:bootstrappers:mine")), says: "jointokengroups"},
		{name: "token of no group", try: makes("asa001", group("")), says: "jointokengroups"},
		{name: "token whose groups are not there", try: makes("asa001", func(x *corev1.Secret) { delete(x.Data, "auth-extra-groups") }), says: "jointokengroups"},
		{name: "token of a group with a blank", try: makes("asa001", group(" "+bootstrap.KubeadmGroup)), says: "jointokengroups"},
		{name: "token of very many groups", try: makes("asa001", group(strings.Repeat(bootstrap.WorkersGroup+",", 20)+bootstrap.KubeadmGroup)), says: byPolicy},
		{name: "token that never expires", try: makes("asa001", func(x *corev1.Secret) { delete(x.Data, "expiration") }), says: "expiration"},
		{name: "token that lives fifty hours", try: makes("asa001", until(in(50*time.Hour))), says: "49 hours", probe: true},
		{name: "token that lives ten years", try: makes("asa001", until(in(10*365*24*time.Hour))), says: "49 hours"},
		{name: "token until a time with an offset", try: makes("asa001", until("2099-01-01T00:00:00+00:00")), says: "expiration"},
		{name: "token until the year 292", try: makes("asa001", until("9999-12-31T23:59:59Z")), says: "49 hours"},
		{name: "token until no time", try: makes("asa001", until("xxxxxxxxxxxxxxxxxxxx")), says: byPolicy},
		{name: "token with a key more", try: makes("asa001", func(x *corev1.Secret) { x.Data["kubeconfig"] = []byte("x") }), says: "no such key"},
		{name: "our token made to live", try: changes(until(in(500 * time.Hour))), says: "49 hours"},
		{name: "our token opened", try: changes(group(bootstrap.KubeadmGroup)), says: "jointokengroups"},
		{name: "our token without its label", try: changes(func(x *corev1.Secret) { x.Labels = nil }), says: "label"},
		{name: "a person's token taken over", says: "label", try: foreign(none, func(ctx context.Context, s *stolen, x *corev1.Secret) error {
			mine(x)
			_, err := s.thief.CoreV1().Secrets("kube-system").Update(ctx, x, metav1.UpdateOptions{})
			return err
		})},
		{name: "a person's token deleted", says: "label", try: foreign(none, func(ctx context.Context, s *stolen, x *corev1.Secret) error {
			return s.thief.CoreV1().Secrets("kube-system").Delete(ctx, x.Name, metav1.DeleteOptions{})
		})},
		{name: "a Secret under our name deleted", says: byPolicy, try: foreign(opaque, func(ctx context.Context, s *stolen, x *corev1.Secret) error {
			return s.thief.CoreV1().Secrets("kube-system").Delete(ctx, x.Name, metav1.DeleteOptions{})
		})},
		{name: "join information of no type of ours", says: "of type Opaque", probe: true, try: information(func(x *corev1.Secret) { x.Type = "example.com/mine" })},
		{name: "token of a service account under the name of the join information", says: byPolicy, try: information(account)},
		{name: "bootstrap token under the name of the join information", says: "of type Opaque", try: information(func(x *corev1.Secret) { x.Type = "bootstrap.kubernetes.io/token" })},
		{name: "join information without its label", says: "label", try: information(func(x *corev1.Secret) { x.Labels = nil })},
		{name: "join information with a key more", says: "nothing else", try: information(func(x *corev1.Secret) { x.Data["kubeconfig"] = []byte("x") })},
		{name: "join information that is a command", says: "mean something to a shell", try: information(func(x *corev1.Secret) { x.Data["JOIN_ENDPOINT"] = []byte("api:6443;curl${IFS}x|sh") })},
		{name: "join information in two lines", says: "mean something to a shell", try: information(func(x *corev1.Secret) { x.Data["JOIN_TOKEN"] = []byte("asa000.0123456789abcdef\nx=y") })},
		{name: "join information with a quote", says: "mean something to a shell", try: information(func(x *corev1.Secret) { x.Data["JOIN_KUBERNETES_VERSION"] = []byte("v1.36.3'") })},
		{name: "join information with a NUL", says: "mean something to a shell", try: information(func(x *corev1.Secret) { x.Data["JOIN_CERT_HASH"] = []byte("sha256:0\x00") })},
		{name: "join information with a blank", says: "mean something to a shell", try: information(func(x *corev1.Secret) { x.Data["JOIN_ENDPOINT"] = []byte("api:6443 ") })},
		{name: "join information that cannot be changed", says: "nothing else", try: information(func(x *corev1.Secret) { x.Immutable = new(true) })},
		{name: "join information without end", says: "nothing else", try: information(func(x *corev1.Secret) { x.Data["JOIN_TOKEN"] = make([]byte, 8000) })},
		{name: "join information that goes with its owner", says: "no annotations", try: information(func(x *corev1.Secret) {
			x.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "x"}}
		})},
		{name: "join information in another namespace", says: "cannot create", try: information(func(x *corev1.Secret) { x.Namespace = "default" })},
		{name: "join information of a longer name", says: byPolicy, try: information(func(x *corev1.Secret) { x.Name += "s"; x.Type = "bootstrap.kubernetes.io/token" })},
		{name: "join information of a generated name", says: byPolicy, try: information(func(x *corev1.Secret) { x.Name, x.GenerateName = "", secret.Name })},
		{name: "a person's Secret under the name of the join information taken over", says: "label", try: foreign(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: secret.Name}},
			func(ctx context.Context, s *stolen, x *corev1.Secret) error {
				x.Labels = map[string]string{secret.Label: "true"}
				_, err := s.thief.CoreV1().Secrets("kube-system").Update(ctx, x, metav1.UpdateOptions{})
				return err
			})},
		{name: "join information deleted", says: "cannot delete", try: can(func(ctx context.Context, c kubernetes.Interface) error {
			return c.CoreV1().Secrets("kube-system").Delete(ctx, secret.Name, metav1.DeleteOptions{})
		})},
		{name: "every Secret listed", says: "cannot list", try: can(func(ctx context.Context, c kubernetes.Interface) error {
			_, err := c.CoreV1().Secrets("kube-system").List(ctx, metav1.ListOptions{})
			return err
		})},
		{name: "Secrets listed by label", says: "cannot list", try: can(func(ctx context.Context, c kubernetes.Interface) error {
			_, err := c.CoreV1().Secrets("kube-system").List(ctx, metav1.ListOptions{LabelSelector: bootstrap.TokenLabel})
			return err
		})},
		{name: "Secrets watched", says: "cannot watch", try: can(func(ctx context.Context, c kubernetes.Interface) error {
			_, err := c.CoreV1().Secrets("kube-system").Watch(ctx, metav1.ListOptions{})
			return err
		})},
		{name: "a Secret read by a guess of its name", says: "cannot get", try: can(func(ctx context.Context, c kubernetes.Interface) error {
			_, err := c.CoreV1().Secrets("kube-system").Get(ctx, "bootstrap-token-abcdef", metav1.GetOptions{})
			return err
		})},
		{name: "all tokens deleted at once", says: "cannot deletecollection", try: can(func(ctx context.Context, c kubernetes.Interface) error {
			return c.CoreV1().Secrets("kube-system").DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
		})},
		{name: "a token patched", says: "cannot patch", try: can(func(ctx context.Context, c kubernetes.Interface) error {
			_, err := c.CoreV1().Secrets("kube-system").Patch(ctx, "bootstrap-token-asa001", types.MergePatchType, []byte("{}"), metav1.PatchOptions{})
			return err
		})},
	}
}

// joinSecret is the Secret with the join information as the agent makes it.
func joinSecret(t *testing.T) *corev1.Secret {
	t.Helper()
	x, err := secret.Make(bootstrap.Join{Token: "asa000.0123456789abcdef", CAHashes: []string{"sha256:0"}, Endpoint: "api:6443", Expires: time.Now(), Kubernetes: "v1.36.3"})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// information tries to make the Secret with the join information, with change made to it.
func information(change func(*corev1.Secret)) func(*testing.T, *stolen) error {
	return func(t *testing.T, s *stolen) error {
		x := joinSecret(t)
		change(x)
		_, err := s.thief.CoreV1().Secrets(x.Namespace).Create(t.Context(), x, dry)
		return err
	}
}

func (s *stolen) approvalAttacks() []attack {
	approves := func(w wish, change func(*wish)) func(*testing.T, *stolen) error {
		if change != nil {
			w = w.with(change)
		}
		return w.approve
	}
	node := func(cn string, o ...string) func(*wish) {
		return func(w *wish) { w.subject = &pkix.Name{CommonName: cn, Organization: o} }
	}
	asks := func(dns ...string) func(*wish) { return func(w *wish) { w.dns = append(w.dns, dns...) } }
	text := func(f func(string) string) func(*wish) {
		return func(w *wish) { w.pem = func(b []byte) []byte { return []byte(f(string(b))) } }
	}
	return []attack{
		{name: "join as the leader", try: approves(joins("leader"), nil), says: "of the control plane", probe: true},
		{name: "join as the leader, said to be another", try: approves(joins("leader"), func(w *wish) { w.says = "node worker-9: J0-J15" }), says: "subject of the request is not"},
		{name: "join as the leader, said to be nobody", try: approves(joins("leader"), func(w *wish) { w.says = "J0-J15" }), says: byPolicy},
		{name: "join as another Node than said", try: approves(joins("ready"), func(w *wish) { w.says = "node read: x" }), says: "subject of the request is not"},
		{name: "join of the administrators", try: approves(joins("worker-9"), node("system:node:worker-9", "system:masters")), says: "subject of the request is not"},
		{name: "join of two organizations", try: approves(joins("worker-9"), node("system:node:worker-9", "system:nodes", "system:masters")), says: "subject of the request is not"},
		{name: "join as a user", try: approves(joins("worker-9"), node("kubernetes-admin", "system:nodes")), says: "subject of the request is not"},
		{name: "join with the leader's name as well", says: "subject of the request is not", try: approves(joins("worker-9"), func(w *wish) {
			w.subject = &pkix.Name{CommonName: "system:node:worker-9", Organization: []string{"system:nodes"}, ExtraNames: []pkix.AttributeTypeAndValue{
				{Type: oidCN, Value: "system:node:worker-9"}, {Type: oidCN, Value: "system:node:leader"}}}
		})},
		{name: "join as an account", try: approves(joins("worker-9"), func(w *wish) { w.user = "system:serviceaccount:kube-system:default" }), says: "one of its own join tokens"},
		{name: "join with a token of kubeadm's", try: approves(joins("worker-9"), func(w *wish) {
			w.groups = []string{"system:bootstrappers", bootstrap.KubeadmGroup, "system:authenticated"}
		}), says: "one of its own join tokens"},
		{name: "join with a token of two groups", try: approves(joins("worker-9"), func(w *wish) { w.groups = append(w.groups, bootstrap.KubeadmGroup) }), says: "one of its own join tokens"},
		{name: "request of the credential itself", try: approves(joins("worker-9"), func(w *wish) { w.user = "autoscaler-agent"; w.groups = []string{"system:authenticated"} }), says: "one of its own join tokens"},
		{name: "request of an administrator", try: approves(joins("worker-9"), func(w *wish) { w.user = "" }), says: "one of its own join tokens"},
		{name: "rotation of a Node's client certificate", try: approves(joins("worker-9"), func(w *wish) { w.user, w.groups = "system:node:worker-9", []string{"system:nodes"} }), says: "one of its own join tokens"},
		{name: "words before the request", try: approves(joins("leader"), text(func(p string) string { return "x\n" + p })), says: byPolicy},
		{name: "header within the request", says: byPolicy, try: approves(joins("worker-9"), text(func(p string) string {
			return strings.Replace(p, "REQUEST-----\n", "REQUEST-----\nA: b\n\n", 1)
		}))},
		{name: "client of the API server", try: approves(joins("worker-9"), func(w *wish) { w.signer = certv1.KubeAPIServerClientSignerName }), says: "not permitted to approve"},
		{name: "signer of somebody else", try: approves(joins("worker-9"), func(w *wish) { w.signer = "example.com/mine" }), says: "not permitted to approve"},
		{name: "serving certificate of no Node", try: approves(serves("worker-9"), func(w *wish) { w.user = "system:bootstrap:asa001" }), says: "that a Node asks for"},
		{name: "serving certificate for kubernetes", try: approves(serves("worker-9"), asks("kubernetes")), says: "a name of the API server"},
		{name: "serving certificate for Kubernetes", try: approves(serves("worker-9"), asks("KuberNETES")), says: "a name of the API server"},
		{name: "serving certificate for kubernetes.default", try: approves(serves("worker-9"), asks("Kubernetes.Default")), says: "a name of the API server"},
		{name: "serving certificate for a Service", try: approves(serves("worker-9"), asks("web.shop.svc", "zz")), says: "a name of the API server"},
		{name: "serving certificate for a Service in the cluster's domain", try: approves(serves("worker-9"), asks("web.shop.SVC.cluster.local")), says: "asks for a name"},
		{name: "serving certificate for the service address", try: func(t *testing.T, s *stolen) error {
			return serves("worker-9").with(func(w *wish) { w.ips = append(w.ips, s.serviceIP(t)) }).approve(t, s)
		}, says: "address"},
		{name: "many names", says: byPolicy, try: approves(serves("worker-9"), func(w *wish) {
			for range 60 {
				w.dns = append(w.dns, strings.Repeat("a", 60)+"."+strings.Repeat("b", 60)+".example.com")
			}
		})},
		{name: "spec changed with the approval", says: byPolicy, try: approves(joins("leader"), func(w *wish) {
			w.change = func(c *certv1.CertificateSigningRequest) {
				c.Spec.SignerName, c.Spec.Username, c.Spec.Groups = servingSigner, "system:node:leader", []string{"system:nodes"}
			}
		})},
		{name: "approval that ties the request to an owner", says: "no labels, annotations, finalizers or owners", try: approves(serves("ready"), alters(func(c *certv1.CertificateSigningRequest) {
			c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "x"}}
		}))},
		{name: "approval after which the request cannot go", says: "no labels, annotations, finalizers or owners", try: approves(serves("ready"), alters(func(c *certv1.CertificateSigningRequest) { c.Finalizers = []string{"example.com/x"} }))},
		{name: "approval with 200 KB of annotations", says: "no labels, annotations, finalizers or owners", try: approves(serves("ready"), alters(func(c *certv1.CertificateSigningRequest) {
			c.Annotations = map[string]string{"x": strings.Repeat("x", 200<<10)}
		}))},
		{name: "denial with a label", says: "no labels, annotations, finalizers or owners", try: approves(serves("ready"), alters(func(c *certv1.CertificateSigningRequest) {
			c.Status.Conditions[0].Type, c.Labels = certv1.CertificateDenied, map[string]string{"x": "y"}
		}))},
		{name: "pending request of another with an owner and no decision", says: "no labels, annotations, finalizers or owners", try: approves(joins("worker-9"), alters(func(c *certv1.CertificateSigningRequest) {
			c.Status.Conditions, c.OwnerReferences = nil, []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "x"}}
		}))},
		{name: "approval with 200 KB of a message", says: "4096 bytes at most", try: approves(serves("ready"), alters(func(c *certv1.CertificateSigningRequest) {
			c.Status.Conditions[0].Message = strings.Repeat("x", 200<<10)
		}))},
		{name: "approval and a condition more", says: "adds one condition", try: approves(serves("ready"), alters(func(c *certv1.CertificateSigningRequest) {
			c.Status.Conditions = append(c.Status.Conditions, certv1.CertificateSigningRequestCondition{Type: "x", Status: corev1.ConditionTrue})
		}))},
		{name: "request that failed", says: "adds one condition", try: approves(serves("ready"), alters(func(c *certv1.CertificateSigningRequest) { c.Status.Conditions[0].Type = certv1.CertificateFailed }))},
		{name: "request signed", says: "cannot update", try: can(func(ctx context.Context, c kubernetes.Interface) error {
			_, err := c.CertificatesV1().CertificateSigningRequests().UpdateStatus(ctx, &certv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, metav1.UpdateOptions{})
			return err
		})},
		{name: "request made", says: "cannot create", try: can(func(ctx context.Context, c kubernetes.Interface) error {
			_, err := c.CertificatesV1().CertificateSigningRequests().Create(ctx, &certv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, metav1.CreateOptions{})
			return err
		})},
	}
}

// alters changes a request beside its approval.
func alters(change func(*certv1.CertificateSigningRequest)) func(*wish) {
	return func(w *wish) { w.change = change }
}

// eventAttacks are Events.
func (s *stolen) eventAttacks() []attack {
	makes := func(change func(*corev1.Event)) func(*testing.T, *stolen) error {
		return func(t *testing.T, s *stolen) error {
			e := agentEvent("default")
			change(e)
			_, err := s.thief.CoreV1().Events(e.Namespace).Create(t.Context(), e, dry)
			return err
		}
	}
	patches := func(patch string) func(*testing.T, *stolen) error {
		return func(t *testing.T, s *stolen) error {
			e := agentEvent("default")
			e.Name, e.Source.Component = "kubelets", "kubelet"
			_, _ = s.admin.CoreV1().Events(e.Namespace).Create(t.Context(), e, metav1.CreateOptions{}) // it may be there
			_, err := s.thief.CoreV1().Events(e.Namespace).Patch(t.Context(), e.Name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
			return err
		}
	}
	return []attack{
		{name: "Event of a megabyte", says: "8192 bytes at most", probe: true, try: makes(func(e *corev1.Event) { e.Message = strings.Repeat("x", 1000<<10) })},
		{name: "Event of a long reason", says: "8192 bytes at most", try: makes(func(e *corev1.Event) { e.Reason = strings.Repeat("x", 9000) })},
		{name: "Event with 200 KB of annotations", says: "nothing that its own have not", try: makes(func(e *corev1.Event) { e.Annotations = map[string]string{"x": strings.Repeat("x", 200<<10)} })},
		{name: "Event about a very long name", says: "8192 bytes at most", try: makes(func(e *corev1.Event) { e.InvolvedObject.FieldPath = strings.Repeat("x", 2000) })},
		{name: "Event that cannot be deleted", says: "nothing that its own have not", try: makes(func(e *corev1.Event) { e.Finalizers = []string{"example.com/x"} })},
		{name: "Event of a kubelet", says: "of the source autoscaler-agent", try: makes(func(e *corev1.Event) { e.Source.Component = "kubelet" })},
		{name: "Event of nobody", says: "of the source autoscaler-agent", try: makes(func(e *corev1.Event) { e.Source = corev1.EventSource{} })},
		{name: "Event of a kubelet changed", says: "of the source autoscaler-agent", try: patches(`{"message":"x"}`)},
		{name: "Event of a kubelet taken over", says: "of the source autoscaler-agent", try: patches(`{"source":{"component":"autoscaler-agent"},"message":"x"}`)},
	}
}

// agentEvent is one as the agent's recorder makes it.
func agentEvent(namespace string) *corev1.Event {
	return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: namespace}, InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: "x"}, Reason: "TriggeredScaleUp", Message: "x",
		Type: corev1.EventTypeNormal, Source: corev1.EventSource{Component: "autoscaler-agent", Host: "leader"}, ReportingController: "autoscaler-agent", ReportingInstance: "leader", Count: 1}
}

// uid is as long as one.
const uid = "01234567-89ab-cdef-0123-456789abcdef"

// joinAttacks want the certificate of a worker that is there.
func (s *stolen) joinAttacks() []attack {
	data := func(node, value string) func(*corev1.ConfigMap) {
		return func(list *corev1.ConfigMap) { list.Data = map[string]string{node: value} }
	}
	return []attack{
		{name: "join as a worker that is there", try: joins("ready").approve, says: "has a Lease", probe: true},
		{name: "join as a worker that is not Ready", try: joins("ready2").approve, says: "has a Lease"},
		{name: "join as a dead worker", try: joins("dead").approve, says: "has a Lease"},
		{name: "join past the list", try: joins("worker-9").with(func(w *wish) { w.unlisted = true }).approve, says: "does not name this request", probe: true},
		{name: "join as a worker that is there, past the list", try: joins("ready").with(func(w *wish) { w.unlisted = true }).approve, says: "does not name this request"},
		{name: "join with another Node's place on the list", says: "does not name this request", try: func(t *testing.T, s *stolen) error {
			w := joins("ready").with(func(w *wish) { w.unlisted = true })
			csr := w.send(t, s)
			if err := lists("worker-9", string(csr.UID))(t, s); err != nil {
				t.Fatal(err)
			}
			return w.approve(t, s) // another one of the same kind
		}},
		{name: "join with another Node's place on the list, said to be that", says: byPolicy, try: joins("ready").with(func(w *wish) { w.says = "node worker-9: J0-J16" }).approve},
		{name: "place on the list of a worker that has come since", says: "has a Lease", try: func(t *testing.T, s *stolen) error {
			if err := lists("comes", uid)(t, s); err != nil {
				t.Fatal(err)
			}
			node(t, s.cp, "comes", "aws:///a/i-6", corev1.ConditionTrue)
			s.kubelet(t, "comes")
			await.True(t, "the API server's policy sees the Lease", func() bool { return lists("comes2", uid)(t, s) == nil && lists("comes", uid)(t, s) != nil })
			return joins("comes").approve(t, s)
		}},
		{name: "worker that is there beside a new one", says: "has a Lease", try: relists(func(list *corev1.ConfigMap) {
			list.Data = map[string]string{"a-new-one": uid, "ready": uid}
		})},
		{name: "list of words", says: "each by its UID", try: relists(data("worker-9", "x"))},
		{name: "list of very many", says: "32 requests at most", try: relists(func(list *corev1.ConfigMap) {
			list.Data = map[string]string{}
			for i := range 33 {
				list.Data[fmt.Sprint("worker-", i)] = uid
			}
		})},
		{name: "list with bytes", says: "nothing else", try: relists(func(list *corev1.ConfigMap) { list.BinaryData = map[string][]byte{"x": []byte("x")} })},
		{name: "list that cannot be changed", says: "nothing else", try: relists(func(list *corev1.ConfigMap) { list.Immutable = new(true) })},
		{name: "list with a label", says: "no labels", try: relists(func(list *corev1.ConfigMap) { list.Labels = map[string]string{"x": "y"} })},
		{name: "list with an annotation", says: "no labels", try: relists(func(list *corev1.ConfigMap) { metav1.SetMetaDataAnnotation(&list.ObjectMeta, "x", "y") })},
		{name: "list that goes with its owner", says: "no labels", try: relists(func(list *corev1.ConfigMap) {
			list.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "x"}}
		})},
		{name: "list deleted", says: "cannot delete", try: can(func(ctx context.Context, c kubernetes.Interface) error {
			return c.CoreV1().ConfigMaps("kube-system").Delete(ctx, csrsigner.JoinListName, metav1.DeleteOptions{})
		})},
		{name: "list patched", says: "cannot patch", try: can(func(ctx context.Context, c kubernetes.Interface) error {
			_, err := c.CoreV1().ConfigMaps("kube-system").Patch(ctx, csrsigner.JoinListName, types.MergePatchType, []byte("{}"), metav1.PatchOptions{})
			return err
		})},
		{name: "list made anew", says: byPolicy, try: can(mapNamed(csrsigner.JoinListName))},
		{name: "Lease of a worker deleted", says: "cannot delete", try: can(func(ctx context.Context, c kubernetes.Interface) error {
			return c.CoordinationV1().Leases(corev1.NamespaceNodeLease).Delete(ctx, "ready", metav1.DeleteOptions{})
		})},
		{name: "Lease of a worker called otherwise", says: "cannot update", try: can(func(ctx context.Context, c kubernetes.Interface) error {
			_, err := c.CoordinationV1().Leases(corev1.NamespaceNodeLease).Update(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "ready"}}, metav1.UpdateOptions{})
			return err
		})},
	}
}

func (s *stolen) nodeAttacks() []attack {
	return []attack{
		{name: "Ready Node deleted", try: deletes("ready"), says: "no Node that is Ready", probe: true},
		{name: "control-plane Node deleted", try: deletes("leader"), says: "of the control plane"},
		{name: "control-plane Node cordoned", try: touches("leader", func(n *corev1.Node) { n.Spec.Unschedulable = true }), says: "of the control plane"},
		{name: "worker made a control-plane Node", try: touches("ready", func(n *corev1.Node) {
			n.Labels = map[string]string{"node-role.kubernetes.io/control-plane": ""}
		}), says: "no label of a Node"},
		{name: "worker kept from load balancers as if by an operator", try: touches("ready", func(n *corev1.Node) {
			n.Labels = map[string]string{"node.kubernetes.io/exclude-from-external-load-balancers": ""}
		}), says: "no label of a Node"},
		{name: "replacement asked for in other words", try: touches("ready", annotate("autoscaler-agent/replace-requested", "now")), says: "replace-requested true"},
		{name: "worker's labels", try: touches("dead", func(n *corev1.Node) { n.Labels = map[string]string{"tier": "secret"} }), says: "no label of a Node"},
		{name: "worker's finalizers", try: touches("dead", func(n *corev1.Node) { n.Finalizers = []string{"example.com/x"} }), says: "no finalizers"},
		{name: "worker's annotations", try: touches("dead", func(n *corev1.Node) { n.Annotations = map[string]string{"autoscaler-agent/keep": ""} }), says: "no annotation"},
		{name: "worker's provider ID", try: touches("plain", func(n *corev1.Node) { n.Spec.ProviderID = "aws:///a/i-0" }), says: "nothing of a Node's spec"},
		{name: "worker's own taint taken", try: touches("tainted", func(n *corev1.Node) { n.Spec.Taints = nil }), says: "no taints"},
		{name: "worker under a taint that ends its pods", try: touches("ready", taint("example.com/x", "1", corev1.TaintEffectNoExecute)), says: "no taints"},
		{name: "Ready Node out of service", try: touches("ready", taint("node.kubernetes.io/out-of-service", "nodeshutdown", corev1.TaintEffectNoExecute)), says: "out of service"},
		{name: "status of a Node", says: "cannot update", try: can(func(ctx context.Context, c kubernetes.Interface) error {
			_, err := c.CoreV1().Nodes().UpdateStatus(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "ready"}}, metav1.UpdateOptions{})
			return err
		})},
		{name: "Node made", says: "cannot create", try: can(func(ctx context.Context, c kubernetes.Interface) error {
			_, err := c.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, dry)
			return err
		})},
		{name: "Node's kubelet asked", says: "cannot get", try: can(func(ctx context.Context, c kubernetes.Interface) error {
			return c.CoreV1().RESTClient().Get().Resource("nodes").Name("ready").SubResource("proxy").Do(ctx).Error()
		})},
	}
}

func (s *stolen) otherAttacks() []attack {
	return []attack{
		{name: "Lease of somebody else's name", try: can(leaseNamed("kube-controller-manager")), says: byPolicy, probe: true},
		{name: "Lease of an API server", try: can(leaseNamed("apiserver-mine")), says: byPolicy},
		{name: "ConfigMap of its own", try: can(mapNamed("aws-auth")), says: byPolicy},
		{name: "kubeadm's ConfigMap", says: "cannot update", try: can(func(ctx context.Context, c kubernetes.Interface) error {
			_, err := c.CoreV1().ConfigMaps("kube-system").Update(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kubeadm-config"}}, metav1.UpdateOptions{})
			return err
		})},
		{name: "cluster-info", says: "cannot update", try: can(func(ctx context.Context, c kubernetes.Interface) error {
			_, err := c.CoreV1().ConfigMaps("kube-public").Update(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "cluster-info"}}, metav1.UpdateOptions{})
			return err
		})},
		{name: "itself an administrator", try: can(binding), says: "cannot create"},
		{name: "its own role widened", says: "cannot update", try: can(func(ctx context.Context, c kubernetes.Interface) error {
			_, err := c.RbacV1().ClusterRoles().Update(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "autoscaler-agent"}}, metav1.UpdateOptions{})
			return err
		})},
		{name: "policy deleted", says: "cannot delete", try: can(func(ctx context.Context, c kubernetes.Interface) error {
			return c.AdmissionregistrationV1().ValidatingAdmissionPolicies().Delete(ctx, "autoscaler-agent-tokens", metav1.DeleteOptions{})
		})},
		{name: "binding of a policy changed", says: "cannot update", try: can(func(ctx context.Context, c kubernetes.Interface) error {
			_, err := c.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Update(ctx, &admissionv1.ValidatingAdmissionPolicyBinding{
				ObjectMeta: metav1.ObjectMeta{Name: "autoscaler-agent-tokens"}}, metav1.UpdateOptions{})
			return err
		})},
		{name: "another user played", says: "cannot impersonate", try: func(t *testing.T, s *stolen) error {
			_, err := playing(t, s.config, "kubernetes-admin", "system:masters").CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
			return err
		}},
		{name: "token of a service account by request", says: "cannot create", try: can(func(ctx context.Context, c kubernetes.Interface) error {
			return c.CoreV1().RESTClient().Post().Namespace("kube-system").Resource("serviceaccounts").Name("default").SubResource("token").Do(ctx).Error()
		})},
		{name: "pod made", says: "cannot create", try: can(func(ctx context.Context, c kubernetes.Interface) error {
			_, err := c.CoreV1().Pods("kube-system").Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, dry)
			return err
		})},
		{name: "pod deleted past its budget", says: "cannot delete", try: can(func(ctx context.Context, c kubernetes.Interface) error {
			return c.CoreV1().Pods("kube-system").Delete(ctx, "x", metav1.DeleteOptions{})
		})},
		{name: "budget taken away", says: "cannot delete", try: can(func(ctx context.Context, c kubernetes.Interface) error {
			return c.PolicyV1().PodDisruptionBudgets("default").Delete(ctx, "x", metav1.DeleteOptions{})
		})},
		{name: "budget widened", says: "cannot update", try: can(func(ctx context.Context, c kubernetes.Interface) error {
			_, err := c.PolicyV1().PodDisruptionBudgets("default").Update(ctx, &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, metav1.UpdateOptions{})
			return err
		})},
		{name: "another Lease renewed", says: "cannot update", try: can(func(ctx context.Context, c kubernetes.Interface) error {
			l, err := c.CoordinationV1().Leases("kube-system").List(ctx, metav1.ListOptions{LabelSelector: "apiserver.kubernetes.io/identity=kube-apiserver"})
			if err != nil || len(l.Items) == 0 {
				return err
			}
			_, err = c.CoordinationV1().Leases("kube-system").Update(ctx, &l.Items[0], metav1.UpdateOptions{})
			return err
		})},
	}
}

// honest is what the agent does all day: none of it may be refused.
func (s *stolen) honest(t *testing.T) {
	long := "ip-10-0-0-5." + strings.Repeat("abcdefgh.", 11) + "compute.internal" // as long as a common name of 127 to 130 bytes
	for name, try := range map[string]func(*testing.T, *stolen) error{
		"token made":                   makes("asa000", nil),
		"token at the end of the pool": makes("asa127", nil),
		"token of one machine": makes("asa004", func(x *corev1.Secret) {
			x.Labels[bootstrap.TokenLabel], x.Annotations = "machine", map[string]string{bootstrap.MachineAnnotation: "worker-9"}
		}),
		"token of a machine that has attested": makes("asa006", func(x *corev1.Secret) {
			x.Labels[bootstrap.TokenLabel] = "machine"
			x.Annotations = map[string]string{bootstrap.InstanceAnnotation: "aws:///eu-west-1a/i-0123456789abcdef0", bootstrap.MachineAnnotation: "ip-10-0-0-5.ec2.internal", bootstrap.KeyAnnotation: strings.Repeat("0a", 32)}
		}),
		"token of an operator": makes("asa007", func(x *corev1.Secret) { x.Annotations = map[string]string{bootstrap.StandingAnnotation: "true"} }),
		"token renewed":        changes(until(in(47 * time.Hour))),
		"token renewed that an operator has annotated": foreign(token("asa008", func(x *corev1.Secret) {
			x.Annotations, x.Finalizers = map[string]string{"example.com/note": "mine"}, []string{"example.com/x"}
		}),
			func(ctx context.Context, s *stolen, x *corev1.Secret) error {
				until(in(47 * time.Hour))(x)
				_, err := s.thief.CoreV1().Secrets("kube-system").Update(ctx, x, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
				return err
			}),
		"token revoked": changes(until(in(-time.Second))),
		"token deleted": foreign(token("asa005", nil), func(ctx context.Context, s *stolen, x *corev1.Secret) error {
			return s.thief.CoreV1().Secrets("kube-system").Delete(ctx, x.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &x.UID}})
		}),
		"join information made":            information(func(*corev1.Secret) {}),
		"join information without a token": information(func(x *corev1.Secret) { x.Data["JOIN_TOKEN"], x.Data["JOIN_TOKEN_EXPIRES"] = nil, nil }),
		"join information made by its sink, and changed": func(t *testing.T, s *stolen) error {
			sink := secret.New(kubetest.Client(s.thief))
			join := bootstrap.Join{Token: "asa000.0123456789abcdef", CAHashes: []string{"sha256:0"}, Endpoint: "api:6443", Expires: time.Now(), Kubernetes: "v1.36.3"}
			for _, token := range []string{join.Token, "asa001.fedcba9876543210", ""} {
				join.Token = token
				if err := sink.Publish(t.Context(), join); err != nil {
					return err
				}
				x, err := s.admin.CoreV1().Secrets("kube-system").Get(t.Context(), secret.Name, metav1.GetOptions{})
				if held, seen := sink.Holds(t.Context(), join); err != nil || seen != nil || !held || string(x.Data["JOIN_TOKEN"]) != token {
					return fmt.Errorf("it holds %t, %v, %v", held, seen, err)
				}
			}
			return s.admin.CoreV1().Secrets("kube-system").Delete(t.Context(), secret.Name, metav1.DeleteOptions{})
		},
		"join of a new machine": joins("worker-9").approve,
		"join of a long name":   joins(long).approve,
		"join of a longer name": joins(long + ".x").approve,
		"join with the common name before the organization": joins("worker-9").with(func(w *wish) {
			w.subject = &pkix.Name{ExtraNames: []pkix.AttributeTypeAndValue{{Type: oidCN, Value: "system:node:worker-9"}, {Type: oidO, Value: "system:nodes"}}}
		}).approve,
		"join over a Node that went": func(t *testing.T, s *stolen) error {
			node(t, s.cp, "former", "aws:///a/i-5", corev1.ConditionFalse)
			s.kubelet(t, "former")
			if err := s.thief.CoreV1().Nodes().Delete(t.Context(), "former", metav1.DeleteOptions{}); err != nil {
				return err
			}
			await.True(t, "Kubernetes takes the Lease after the Node", func() bool { return lists("former", uid)(t, s) == nil })
			return joins("former").approve(t, s)
		},
		"list of joins emptied": relists(func(list *corev1.ConfigMap) { list.Data = nil }),
		"list of joins of a full batch": relists(func(list *corev1.ConfigMap) {
			list.Data = map[string]string{}
			for i := range 32 {
				list.Data[fmt.Sprintf("ip-10-0-0-%d.eu-west-1.compute.internal", i)] = uid
			}
		}),
		"serving certificate":       serves("ready").approve,
		"serving of the leader":     serves("leader").approve,
		"serving of a telling name": serves("kubernetes-worker-1").approve,
		"serving with many names": serves("ready").with(func(w *wish) {
			w.dns = []string{"ready", "a.example.com", "svc.example.com", "b.svcs.example.com"}
			w.ips = append(w.ips, net.ParseIP("2001:db8::1"))
		}).approve,
		"denial of what is no request of a Node": joins("worker-9").with(func(w *wish) {
			w.subject = &pkix.Name{CommonName: "kubernetes-admin", Organization: []string{"system:masters"}}
			w.change = func(c *certv1.CertificateSigningRequest) { c.Status.Conditions[0].Type = certv1.CertificateDenied }
		}).approve,
		"denial of what no machine asks for": joins("worker-9").with(func(w *wish) {
			w.user, w.groups = "system:serviceaccount:kube-system:default", []string{"system:authenticated"}
			w.change = func(c *certv1.CertificateSigningRequest) { c.Status.Conditions[0].Type = certv1.CertificateDenied }
		}).approve,
		"request in lines of another length": joins("worker-9").with(func(w *wish) {
			w.pem = func(p []byte) []byte { return bytes.Replace(p, []byte("MII"), []byte("M\nII"), 1) }
		}).approve,
		"cordon": touches("ready", func(n *corev1.Node) {
			taint("ToBeDeletedByClusterAutoscaler", "1700000000", corev1.TaintEffectNoSchedule)(n)
			n.Spec.Unschedulable, n.Annotations["autoscaler-agent/cordoned"] = true, "2026-11-27T12:00:00Z D10"
			n.Labels = map[string]string{"node.kubernetes.io/exclude-from-external-load-balancers": "autoscaler-agent"}
		}),
		"replacement asked for":                 touches("ready", annotate("autoscaler-agent/replace-requested", "true")),
		"soft taint beside another":             touches("tainted", taint("DeletionCandidateOfClusterAutoscaler", "1700000000", corev1.TaintEffectPreferNoSchedule)),
		"dead Node out of service":              touches("dead", taint("node.kubernetes.io/out-of-service", "nodeshutdown", corev1.TaintEffectNoExecute)),
		"stopped Node marked":                   touches("dead", taint("node.cloudprovider.kubernetes.io/shutdown", "autoscaler-agent", corev1.TaintEffectNoSchedule)),
		"dead Node deleted":                     deletes("dead"),
		"mark of another autoscaler taken away": touches("marked", func(n *corev1.Node) { n.Spec.Taints = nil }),
		"cordon beside the mark of another":     touches("marked", func(n *corev1.Node) { n.Spec.Unschedulable = true }),
		"cordon by no rule":                     touches("ready", annotate("autoscaler-agent/cordoned", "2026-11-27T12:00:00Z")),
		"group of a Node":                       touches("ready", annotate("autoscaler-agent/group", "kube-system/Workers of zone a (größer)")),
		"boot ID of a Node's machine":           touches("ready", annotate("autoscaler-agent/boot-id", "0b7c6a5e-2c1f-4f0e-9a53-6f1d6d0a8a11")),
		"its Lease":                             can(leaseNamed("autoscaler-agent")),
		"its Lease with what outlives a leader": can(func(ctx context.Context, c kubernetes.Interface) error {
			_, err := c.CoordinationV1().Leases("kube-system").Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "autoscaler-agent",
				Annotations: map[string]string{"autoscaler-agent/unanswered-writes": "[]", "autoscaler-agent/rollout-orders": "{}", "autoscaler-agent/halted-rollouts": "[]"}}}, dry)
			return err
		}),
		"its status": can(mapNamed("cluster-autoscaler-status")),
		"an Event by its recorder, and the count of it": func(t *testing.T, s *stolen) error {
			recorder, stop, err := clients.Recorder(s.config, "leader")
			if err != nil {
				return err
			}
			defer stop()
			for range 2 {
				recorder.Event(&corev1.ObjectReference{Kind: "Node", Name: "ready", UID: "ready"}, corev1.EventTypeWarning, "Rights", strings.Repeat("x", 1000))
			}
			await.True(t, "the Event is counted", func() bool {
				list, err := s.admin.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{FieldSelector: "reason=Rights"})
				return err == nil && len(list.Items) == 1 && list.Items[0].Count == 2
			})
			return nil
		},
		"serving of the leader for an address of the API server": func(t *testing.T, s *stolen) error {
			return serves("leader").with(func(w *wish) { w.ips = append(w.ips, net.ParseIP(leaderAddress), net.ParseIP(serverAddress)) }).approve(t, s)
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := try(t, s); err != nil {
				t.Error(err)
			}
		})
	}
}
