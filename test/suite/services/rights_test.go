package services

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	certv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/retry"

	"github.com/autoscaler-agent/autoscaler-agent/bootstrap"
	"github.com/autoscaler-agent/autoscaler-agent/csrsigner"
	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/controlplane"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/world"
)

// stolen is the agent's credential in the hands of a thief: a client of the user that
// units/rbac.yaml binds, on an API server with the manifests that ship.
type stolen struct {
	cp                 *controlplane.ControlPlane
	admin              kubernetes.Interface
	thief              kubernetes.Interface
	config             *rest.Config // of the thief
	kubeconfig, binary string
	serial             int
}

// TestStolenCredential plays what a thief of the agent's kubeconfig would do, and what the
// agent itself does, against units/rbac.yaml and units/admission-policy.yaml.
func TestStolenCredential(t *testing.T) {
	cp := controlplane.ForTest(t, controlplane.Options{Fast: true, NodeMonitorGrace: 10 * time.Minute, CertSANs: []string{endpointName, sanAddress, sanAddress6}})
	s := &stolen{cp: cp, admin: cp.Client()}
	s.steal(t)
	if err := world.ApplyUnits(t.Context(), cp, "rbac.yaml"); err != nil {
		t.Fatal(err)
	}
	s.controlPlane(t)
	node(t, cp, "ready", "aws:///a/i-1", corev1.ConditionTrue)
	node(t, cp, "ready2", "aws:///a/i-3", corev1.ConditionFalse)
	node(t, cp, "dead", "aws:///a/i-2", corev1.ConditionFalse)
	node(t, cp, "plain", "", corev1.ConditionTrue)
	node(t, cp, "tainted", "aws:///a/i-4", corev1.ConditionTrue, "example.com/dedicated")
	node(t, cp, "marked", "aws:///a/i-7", corev1.ConditionTrue, "ToBeDeletedByClusterAutoscaler")
	for _, name := range []string{"ready", "ready2", "dead", "plain", "tainted", "marked"} {
		s.kubelet(t, name)
	}
	t.Run("check without the policies", s.checkWithout)
	if err := world.ApplyUnits(t.Context(), cp, "admission-policy.yaml"); err != nil {
		t.Fatal(err)
	}
	s.inForce(t)
	t.Run("check with the policies", s.checkWith)
	t.Run("the agent's own work", s.honest)
	t.Run("attacks", s.attacks)
	t.Run("calls of the thief's table", s.calls)
	t.Run("drawn certificate requests", s.drawn)
	t.Run("cost of the list of joins", s.cost)
}

// steal makes the agent's kubeconfig as docs/install.md does.
func (s *stolen) steal(t *testing.T) {
	t.Helper()
	s.binary = filepath.Join(t.TempDir(), "autoscaler-agent")
	if err := world.BuildAgent(t.Context(), s.binary); err != nil {
		t.Fatal(err)
	}
	file, err := world.UserKubeconfig(s.cp, world.AgentUser, filepath.Join(t.TempDir(), "kubeconfig"))
	s.kubeconfig = file
	if err == nil {
		s.config, err = clientcmd.BuildConfigFromFlags("", file)
	}
	if err == nil {
		s.config.QPS, s.config.Burst = 1000, 1000
		s.thief, err = kubernetes.NewForConfig(s.config)
	}
	if err == nil {
		// Whoever asks for certificates here may ask: their approval is what is tried.
		_, err = s.admin.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "rights"},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:node-bootstrapper"},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "rights:anybody"}}}, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// playing is a client that the API server takes for user.
func playing(t *testing.T, by *rest.Config, user string, groups ...string) kubernetes.Interface {
	t.Helper()
	cfg := rest.CopyConfig(by)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// kubelet makes the Lease that the kubelet of a Node makes.
func (s *stolen) kubelet(t *testing.T, node string) {
	t.Helper()
	n, err := s.admin.CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{})
	if err == nil {
		now := metav1.NowMicro()
		_, err = s.admin.CoordinationV1().Leases(corev1.NamespaceNodeLease).Create(t.Context(), &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: node, OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node, UID: n.UID}}},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &node, RenewTime: &now}}, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// serviceIP is the API server's address as a Service.
func (s *stolen) serviceIP(t *testing.T) net.IP {
	t.Helper()
	svc, err := s.admin.CoreV1().Services("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return net.ParseIP(svc.Spec.ClusterIP)
}

// inForce waits until the API server has compiled each policy: it refuses what that one
// alone refuses.
func (s *stolen) inForce(t *testing.T) {
	t.Helper()
	for _, a := range s.table() {
		if a.probe {
			await.True(t, a.name+" is refused by its policy", func() bool {
				err := a.try(t, s)
				return err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy")
			})
		}
	}
}

// attack is one thing that a thief tries. says is part of the refusal.
type attack struct {
	name  string
	try   func(*testing.T, *stolen) error
	says  string
	probe bool // only one policy refuses it

	// Of the calls that docs/security-rules.md has in a table (rights_thief_test.go):
	with   string // whose credential: the agent's, or one that a call before gave
	by     string // what refuses it: a key of refusers, or the name of a policy; "x*": one of several
	passes bool
	beside bool // it passes, and the chain to cluster-admin does without it
}

func (a attack) judge(t *testing.T, err error) {
	t.Helper()
	words, known := refusers[a.by]
	switch {
	case !known && a.by == "":
		words = []string{""}
	case !known:
		words = []string{strings.TrimSuffix(byPolicy+" '"+a.by+"'", "*'")}
	}
	switch {
	case a.passes && err != nil:
		t.Errorf("docs/security-rules.md says that it passes: %v", err)
	case !a.passes && err == nil:
		t.Error("the API server lets the thief do it")
	case !a.passes && (!apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) && !apierrors.IsTooManyRequests(err) || !slices.ContainsFunc(words, func(w string) bool { return strings.Contains(err.Error(), w) }) || !strings.Contains(err.Error(), a.says)):
		t.Errorf("refused with %q, want %q and %q", err, words, a.says)
	}
}

func (s *stolen) attacks(t *testing.T) {
	refused := 0
	for _, a := range s.table() {
		if t.Run(a.name, func(t *testing.T) { a.judge(t, a.try(t, s)) }) {
			refused++
		}
	}
	t.Logf("%d of %d attacks refused", refused, len(s.table()))
}

// token is a join token as the agent makes it, with change made to it.
func token(id string, change func(*corev1.Secret)) *corev1.Secret {
	x := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "bootstrap-token-" + id, Labels: map[string]string{bootstrap.TokenLabel: "true"}},
		Type:       "bootstrap.kubernetes.io/token",
		Data: map[string][]byte{"token-id": []byte(id), "token-secret": []byte("0123456789abcdef"), "description": []byte("x"),
			"usage-bootstrap-signing": []byte("true"), "usage-bootstrap-authentication": []byte("true"),
			"auth-extra-groups": []byte(bootstrap.WorkersGroup), "expiration": []byte(time.Now().Add(48 * time.Hour).UTC().Format(time.RFC3339))},
	}
	if change != nil {
		change(x)
	}
	return x
}

// makes tries to create a Secret.
func makes(id string, change func(*corev1.Secret)) func(*testing.T, *stolen) error {
	return func(t *testing.T, s *stolen) error {
		x := token(id, change)
		_, err := s.thief.CoreV1().Secrets(x.Namespace).Create(t.Context(), x, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
}

// changes tries to update a token that is there as the agent made it.
func changes(change func(*corev1.Secret)) func(*testing.T, *stolen) error {
	return func(t *testing.T, s *stolen) error {
		secrets := s.admin.CoreV1().Secrets("kube-system")
		_ = secrets.Delete(t.Context(), "bootstrap-token-asa009", metav1.DeleteOptions{}) // there may be none
		x, err := secrets.Create(t.Context(), token("asa009", nil), metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		change(x)
		_, err = s.thief.CoreV1().Secrets("kube-system").Update(t.Context(), x, metav1.UpdateOptions{})
		return err
	}
}

// foreign puts a Secret of somebody else's under one of the agent's names and tries to do
// something to it.
func foreign(made *corev1.Secret, do func(context.Context, *stolen, *corev1.Secret) error) func(*testing.T, *stolen) error {
	return func(t *testing.T, s *stolen) error {
		secrets := s.admin.CoreV1().Secrets("kube-system")
		_ = secrets.Delete(t.Context(), made.Name, metav1.DeleteOptions{}) // there may be none
		x, err := secrets.Create(t.Context(), made.DeepCopy(), metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return do(t.Context(), s, x)
	}
}

func group(value string) func(*corev1.Secret) {
	return func(x *corev1.Secret) { x.Data["auth-extra-groups"] = []byte(value) }
}

func until(value string) func(*corev1.Secret) {
	return func(x *corev1.Secret) { x.Data["expiration"] = []byte(value) }
}

func in(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339) }

// wish is a certificate request and what the thief approves it with.
type wish struct {
	node, user, signer, says string
	groups                   []string
	subject                  *pkix.Name
	dns                      []string
	ips                      []net.IP
	pem                      func([]byte) []byte
	change                   func(*certv1.CertificateSigningRequest)
	usages                   []certv1.KeyUsage
	unlisted                 bool // the thief leaves the list of joins alone
}

const clientSigner, servingSigner = certv1.KubeAPIServerClientKubeletSignerName, certv1.KubeletServingSignerName

// joins is a request for a client certificate with one of the agent's tokens.
func joins(node string) wish {
	return wish{node: node, user: "system:bootstrap:asa001", signer: clientSigner, says: "node " + node + ": J0-J15: witnessed",
		groups: []string{"system:bootstrappers", bootstrap.WorkersGroup, "system:authenticated"}, usages: []certv1.KeyUsage{certv1.UsageDigitalSignature, certv1.UsageClientAuth}}
}

// serves is a request for a serving certificate.
func serves(node string) wish {
	return wish{node: node, user: "system:node:" + node, signer: servingSigner, says: "R0-R20: witnessed", dns: []string{node}, ips: []net.IP{net.IPv4(10, 0, 0, 5)},
		groups: []string{"system:nodes", "system:authenticated"}, usages: []certv1.KeyUsage{certv1.UsageDigitalSignature, certv1.UsageServerAuth}}
}

func (w wish) with(change func(*wish)) wish { change(&w); return w }

// send makes the request as its requester.
func (w wish) send(t *testing.T, s *stolen) *certv1.CertificateSigningRequest {
	t.Helper()
	csr, err := w.create(t, s)
	if err != nil {
		t.Fatalf("the request itself: %v", err)
	}
	return csr
}

func (w wish) create(t *testing.T, s *stolen) (*certv1.CertificateSigningRequest, error) {
	t.Helper()
	name := w.subject
	if name == nil {
		name = &pkix.Name{CommonName: "system:node:" + w.node, Organization: []string{"system:nodes"}}
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: *name, DNSNames: w.dns, IPAddresses: w.ips}, ecKey)
	if err != nil {
		t.Fatal(err)
	}
	data := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	if w.pem != nil {
		data = w.pem(data)
	}
	requester := s.admin
	if w.user != "" {
		requester = playing(t, s.cp.RESTConfig(), w.user, append(w.groups, "rights:anybody")...)
	}
	s.serial++
	return requester.CertificatesV1().CertificateSigningRequests().Create(t.Context(), &certv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("wish-%d", s.serial)},
		Spec:       certv1.CertificateSigningRequestSpec{Request: data, SignerName: w.signer, Usages: w.usages}}, metav1.CreateOptions{})
}

// approve makes the request and approves it with the stolen credential.
func (w wish) approve(t *testing.T, s *stolen) error {
	t.Helper()
	return w.approval(t, s, w.send(t, s))
}

func (w wish) approval(t *testing.T, s *stolen, csr *certv1.CertificateSigningRequest) error {
	t.Helper()
	said, _, named := strings.Cut(strings.TrimPrefix(w.says, "node "), ": ")
	listed := named && w.signer == clientSigner && w.change == nil && !w.unlisted
	if listed {
		if err := lists(said, string(csr.UID))(t, s); err != nil {
			return err
		}
	}
	var err error
	for end := time.Now().Add(await.Limit); ; {
		// The controller manager writes to some of them meanwhile.
		err = retry.RetryOnConflict(retry.DefaultBackoff, func() (err error) {
			if csr, err = s.admin.CertificatesV1().CertificateSigningRequests().Get(t.Context(), csr.Name, metav1.GetOptions{}); err != nil {
				return err
			}
			if len(csr.Status.Conditions) == 0 {
				csr.Status.Conditions = []certv1.CertificateSigningRequestCondition{{Type: certv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Stolen", Message: w.says}}
			}
			if w.change != nil {
				w.change(csr)
			}
			_, err = s.thief.CertificatesV1().CertificateSigningRequests().UpdateApproval(t.Context(), csr.Name, csr, metav1.UpdateOptions{})
			return err
		})
		// The API server's policy sees the list a moment later than the thief.
		if err == nil || !listed || !strings.Contains(err.Error(), "does not name this request") || time.Now().After(end) {
			return err
		}
	}
}

// relists changes the list of joins with the stolen credential.
func relists(change func(*corev1.ConfigMap)) func(*testing.T, *stolen) error {
	return func(t *testing.T, s *stolen) error {
		return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			list, err := s.thief.CoreV1().ConfigMaps("kube-system").Get(t.Context(), csrsigner.JoinListName, metav1.GetOptions{})
			if err != nil {
				return err
			}
			list.ManagedFields = []metav1.ManagedFieldsEntry{{}} // as the agent does
			change(list)
			_, err = s.thief.CoreV1().ConfigMaps("kube-system").Update(t.Context(), list, metav1.UpdateOptions{})
			return err
		})
	}
}

// lists puts one Node on the list of joins, and nothing else.
func lists(node, uid string) func(*testing.T, *stolen) error {
	return relists(func(list *corev1.ConfigMap) { list.Data = map[string]string{node: uid} })
}

// touches tries to change a Node with the stolen credential.
func touches(name string, change func(*corev1.Node)) func(*testing.T, *stolen) error {
	return updates(name, change, metav1.DryRunAll)
}

// updates changes a Node with the stolen credential.
func updates(name string, change func(*corev1.Node), dryRun ...string) func(*testing.T, *stolen) error {
	return func(t *testing.T, s *stolen) error {
		// The controller manager writes to some of them meanwhile.
		return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			n, err := s.thief.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			change(n)
			_, err = s.thief.CoreV1().Nodes().Update(t.Context(), n, metav1.UpdateOptions{DryRun: dryRun})
			return err
		})
	}
}

func taint(key, value string, effect corev1.TaintEffect) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Value: value, Effect: effect})
	}
}

func annotate(key, value string) func(*corev1.Node) {
	return func(n *corev1.Node) { metav1.SetMetaDataAnnotation(&n.ObjectMeta, key, value) }
}

func deletes(name string) func(*testing.T, *stolen) error {
	return func(t *testing.T, s *stolen) error {
		return s.thief.CoreV1().Nodes().Delete(t.Context(), name, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
	}
}

var dry = metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}

// can is an attack that RBAC alone refuses.
func can(do func(context.Context, kubernetes.Interface) error) func(*testing.T, *stolen) error {
	return func(t *testing.T, s *stolen) error { return do(t.Context(), s.thief) }
}

func leaseNamed(name string) func(context.Context, kubernetes.Interface) error {
	return func(ctx context.Context, c kubernetes.Interface) error {
		_, err := c.CoordinationV1().Leases("kube-system").Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}}, dry)
		return err
	}
}

func mapNamed(name string) func(context.Context, kubernetes.Interface) error {
	return func(ctx context.Context, c kubernetes.Interface) error {
		_, err := c.CoreV1().ConfigMaps("kube-system").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, dry)
		return err
	}
}

func binding(ctx context.Context, c kubernetes.Interface) error {
	_, err := c.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "mine"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: world.AgentUser}}}, dry)
	return err
}

// finding is a line of `autoscaler-agent check`.
type finding struct{ Level, About, Text, Remedy string }

// check runs the agent's own command with a kubeconfig and returns what it says of the
// credential.
func (s *stolen) check(t *testing.T, kubeconfig string, env ...string) []finding {
	t.Helper()
	command := exec.CommandContext(t.Context(), s.binary, "check", "--output", "json")
	command.Env = append(append(os.Environ(), "AUTOSCALER_KUBECONFIG="+kubeconfig, "AUTOSCALER_STATE_DIR="+t.TempDir(), "AUTOSCALER_BOOTSTRAP_FILE=",
		"AUTOSCALER_PROVIDER=externalgrpc", "AUTOSCALER_EXTERNALGRPC_ADDRESS=127.0.0.1:1", "AUTOSCALER_EXTERNALGRPC_INSECURE=true"), env...)
	out, err := command.Output() // there is no cloud, so that it always fails
	var all, own []finding
	if jsonErr := json.Unmarshal(out, &all); jsonErr != nil {
		var said []byte
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			said = exit.Stderr
		}
		t.Fatalf("%v, %v: %s%s", err, jsonErr, out, said)
	}
	for _, f := range all {
		if f.About == "rights" && f.Level != "ok" {
			t.Errorf("rights: %s", f.Text)
		}
		if f.About == "credential" {
			own = append(own, f)
		}
	}
	return own
}

// checkWithout: without the policies the check says which of them are missing, and how to
// get them.
func (s *stolen) checkWithout(t *testing.T) {
	// A kubelet renews its certificate: what approvals are tried with.
	renewal := joins("ready").with(func(w *wish) {
		w.user, w.groups = "system:node:ready", []string{"system:nodes", "system:authenticated"}
	})
	renewal.send(t, s)
	found := s.check(t, s.kubeconfig)
	if len(found) != 1 || found[0].Level != "error" || !strings.Contains(found[0].Remedy, "kubectl apply -f admission-policy.yaml") {
		t.Fatalf("%+v", found)
	}
	for _, policy := range []string{"autoscaler-agent-tokens", "autoscaler-agent-token-life", "autoscaler-agent-names", "autoscaler-agent-nodes", "autoscaler-agent-approvals", "autoscaler-agent-joins", "user autoscaler-agent"} {
		if !strings.Contains(found[0].Text, policy) {
			t.Errorf("%q does not name %s", found[0].Text, policy)
		}
	}
}

// checkWith: with them it is content, finds a join that they would stop, and a credential
// that may do more than the agent's.
func (s *stolen) checkWith(t *testing.T) {
	found := s.check(t, s.kubeconfig)
	if len(found) != 1 || found[0].Level != "ok" || !strings.Contains(found[0].Text, "autoscaler-agent-approvals") || !strings.Contains(found[0].Text, "autoscaler-agent-joins") {
		t.Errorf("%+v", found)
	}
	open := s.check(t, s.kubeconfig, "AUTOSCALER_CSR_JOIN=open")
	if len(open) != 1 || open[0].Level != "error" || !strings.Contains(open[0].Remedy, "rbac-open-join.yaml") {
		t.Errorf("an open join: %+v", open)
	}
	admin := s.check(t, s.cp.Kubeconfig())
	if len(admin) != 2 || admin[0].Level != "warning" || !strings.Contains(admin[0].Text, "impersonate users") || admin[1].Level != "error" {
		t.Errorf("an administrator: %+v", admin)
	}
}
