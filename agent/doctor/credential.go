package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/bootstrap"
	"github.com/autoscaler-agent/autoscaler-agent/bootstrap/secret"
	"github.com/autoscaler-agent/autoscaler-agent/csrsigner"
	"github.com/autoscaler-agent/autoscaler-agent/internal/apierror"
	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
)

// The policies of units/admission-policy.yaml that are tried. The ones about the Node of an
// approval are tried with the approvals.
const (
	policyTokens    = "autoscaler-agent-tokens"
	policyTokenLife = "autoscaler-agent-token-life"
	policyApprovals = "autoscaler-agent-approvals"
	policyNodes     = "autoscaler-agent-nodes"
	policyNames     = "autoscaler-agent-names"
	policyJoins     = "autoscaler-agent-joins"
	policyJoin      = "autoscaler-agent-join-secret"
)

const (
	aboutCredential = "credential"
	applyPolicies   = "kubectl apply -f admission-policy.yaml -f rbac.yaml"
)

// tooMuch lists rights that the agent never uses and that would hand the cluster to
// whoever steals its credential.
func tooMuch() []right {
	const system = metav1.NamespaceSystem
	return []right{
		{"list", "", "secrets", "", system, ""}, {"watch", "", "secrets", "", system, ""}, {"get", "", "secrets", "", system, "bootstrap-token-000000"},
		{"update", "", "secrets", "", system, "bootstrap-token-000000"}, {"get", "", "secrets", "", metav1.NamespaceDefault, "any"},
		{"create", "", "serviceaccounts", "token", system, "default"}, {"create", "", "pods", "", system, ""}, {"delete", "", "pods", "", system, ""},
		{"create", "", "pods", "exec", system, ""}, {"create", "", "nodes", "", "", ""}, {"update", "", "nodes", "status", "", ""}, {"get", "", "nodes", "proxy", "", ""},
		{"create", "rbac.authorization.k8s.io", "clusterrolebindings", "", "", ""}, {"escalate", "rbac.authorization.k8s.io", "clusterroles", "", "", ""},
		{"bind", "rbac.authorization.k8s.io", "clusterroles", "", "", "cluster-admin"}, {"impersonate", "", "users", "", "", "kubernetes-admin"},
		{"create", "certificates.k8s.io", "certificatesigningrequests", "", "", ""}, {"update", "certificates.k8s.io", "certificatesigningrequests", "status", "", ""},
		{"approve", "certificates.k8s.io", "signers", "", "", certificatesv1.KubeAPIServerClientSignerName},
		{"update", "admissionregistration.k8s.io", "validatingadmissionpolicies", "", "", policyTokens},
		{"delete", "admissionregistration.k8s.io", "validatingadmissionpolicybindings", "", "", policyTokens},
	}
}

// checkCredential proves by trying what the agent's credential could do in a thief's
// hands. Every write is a dry run, which the API server admits or refuses and does not
// store.
func checkCredential(ctx context.Context, cfg config.Config, client *kube.Client) []Finding {
	var out []Finding
	add := func(level Level, text, remedy string) {
		out = append(out, Finding{Level: level, About: aboutCredential, Text: text, Remedy: remedy})
	}
	var more []string
	for _, r := range tooMuch() {
		allowed, err := may(ctx, client, r)
		if err != nil {
			return []Finding{{Level: LevelWarning, About: aboutCredential, Text: err.Error()}}
		}
		if allowed {
			more = append(more, r.String())
		}
	}
	if len(more) > 0 {
		add(LevelWarning, "whoever steals it may do more than the agent needs: "+strings.Join(more, ", "),
			"make a kubeconfig of a user of its own, bound by rbac.yaml alone (docs/install.md)")
	}
	if known, err := servesPolicies(ctx, client); err != nil || !known {
		text := "this Kubernetes has no ValidatingAdmissionPolicy (1.30 or later has): whoever steals it can make any Secret in kube-system and approve any kubelet's certificate, which is the cluster"
		if err != nil {
			text = "it cannot be seen whether the API server has admission policies: " + err.Error()
		}
		add(LevelWarning, text, "upgrade Kubernetes, then "+applyPolicies+"; until then guard the agent's kubeconfig like admin.conf")
		return out
	}
	held, open, unsure := tryPolicies(ctx, client)
	if len(open) > 0 {
		who := "this user"
		if r, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{}); err == nil {
			who = "user " + r.Status.UserInfo.Username
		}
		add(LevelError, fmt.Sprintf("the API server lets %s do what %s of admission-policy.yaml should refuse", who, strings.Join(open, ", ")), applyPolicies+"; they hold the user autoscaler-agent")
	}
	for _, u := range unsure {
		add(LevelWarning, u, "")
	}
	if cfg.Bootstrap.Enabled {
		if f, wrong := tryToken(ctx, cfg, client); wrong {
			out = append(out, f)
		}
	}
	if len(out) == 0 {
		add(LevelOK, fmt.Sprintf("%d rights that it must not have are refused, and so is what %s are for (each tried)", len(tooMuch()), strings.Join(held, ", ")), "")
	}
	return out
}

func servesPolicies(ctx context.Context, client *kube.Client) (bool, error) {
	list, err := client.Resources(ctx, "admissionregistration.k8s.io/v1")
	if err != nil {
		return false, err
	}
	for _, r := range list.APIResources {
		if r.Name == "validatingadmissionpolicies" {
			return true, nil
		}
	}
	return false, nil
}

var dryRun = metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
var dryUpdate = metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}}

// tryPolicies does what each policy has to refuse. unsure says what could not be tried.
func tryPolicies(ctx context.Context, client *kube.Client) (held, open, unsure []string) {
	for _, p := range []struct {
		name string
		try  func(context.Context, *kube.Client) (tried bool, err error)
	}{{policyTokens, foreignSecret}, {policyTokenLife, endlessToken}, {policyNames, foreignLease}, {policyNodes, foreignLabel}, {policyApprovals, foreignApproval}, {policyJoins, joinOfNode}, {policyJoin, foreignJoinSecret}} {
		tried, err := p.try(ctx, client)
		switch {
		case !tried && err == nil: // there is nothing to try it with
		case (apierrors.IsInvalid(err) || apierrors.IsForbidden(err)) && strings.Contains(err.Error(), "ValidatingAdmissionPolicy '"+p.name):
			held = append(held, p.name)
		case err == nil || apierrors.IsAlreadyExists(err) || p.name == policyJoins && apierrors.IsNotFound(err): // the list ships with its policy
			open = append(open, p.name)
		default:
			unsure = append(unsure, fmt.Sprintf("whether %s holds cannot be tried: %s", p.name, apierror.Text(err)))
		}
	}
	return held, open, unsure
}

func foreignSecret(ctx context.Context, client *kube.Client) (bool, error) {
	// In all but its type a join token, so that the other policy lets it pass.
	s, err := bootstrap.Sample(bootstrap.Config{TokenTTL: time.Hour, TokenGroups: []string{bootstrap.WorkersGroup}}, time.Now())
	if err == nil {
		s.Type = corev1.SecretTypeOpaque
		_, err = client.CoreV1().Secrets(metav1.NamespaceSystem).Create(ctx, s, dryRun)
	}
	return true, err
}

// foreignJoinSecret has a key that is no join value.
func foreignJoinSecret(ctx context.Context, client *kube.Client) (bool, error) {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: secret.Name, Labels: map[string]string{secret.Label: "true"}}, Type: corev1.SecretTypeOpaque,
		Data: map[string][]byte{"kubeconfig": []byte("x")}}
	_, err := client.CoreV1().Secrets(metav1.NamespaceSystem).Create(ctx, s, dryRun)
	return true, err
}

func endlessToken(ctx context.Context, client *kube.Client) (bool, error) {
	s, err := bootstrap.Sample(bootstrap.Config{TokenTTL: 365 * 24 * time.Hour, TokenGroups: []string{bootstrap.WorkersGroup}}, time.Now())
	if err == nil {
		_, err = client.CoreV1().Secrets(metav1.NamespaceSystem).Create(ctx, s, dryRun)
	}
	return true, err
}

func foreignLease(ctx context.Context, client *kube.Client) (bool, error) {
	_, err := client.CoordinationV1().Leases(metav1.NamespaceSystem).Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "autoscaler-agent-check"}}, dryRun)
	return true, err
}

func foreignLabel(ctx context.Context, client *kube.Client) (bool, error) {
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil || len(list.Items) == 0 {
		return false, err
	}
	n := list.Items[0].DeepCopy()
	metav1.SetMetaDataLabel(&n.ObjectMeta, "autoscaler-agent/check", "true")
	n.ResourceVersion = "" // whatever the kubelet writes meanwhile
	_, err = client.CoreV1().Nodes().Update(ctx, n, dryUpdate)
	return true, err
}

// foreignApproval tries the approval of a client certificate that is not of a joining
// machine of ours, or under another name than the request's, if there is such a request.
func foreignApproval(ctx context.Context, client *kube.Client) (bool, error) {
	list, err := client.CertificatesV1().CertificateSigningRequests().List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, err
	}
	for i := range list.Items {
		csr := list.Items[i].DeepCopy()
		ours := strings.HasPrefix(csr.Spec.Username, "system:bootstrap:")
		if csr.Spec.SignerName != certificatesv1.KubeAPIServerClientKubeletSignerName || ours && len(csr.Status.Conditions) > 0 {
			continue
		}
		if len(csr.Status.Conditions) == 0 {
			csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue,
				Reason: "AutoscalerAgentCheck", Message: "node autoscaler-agent-check: a dry run"}}
		}
		csr.ResourceVersion = ""
		_, err := client.CertificatesV1().CertificateSigningRequests().UpdateApproval(ctx, csr.Name, csr, dryUpdate)
		return true, err
	}
	return false, nil
}

// joinOfNode puts a Node that is there on the list of joins, if there is one with a Lease.
func joinOfNode(ctx context.Context, client *kube.Client) (bool, error) {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{Limit: nodesTried})
	if err != nil {
		return false, err
	}
	for _, n := range nodes.Items {
		if _, err = client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, n.Name, metav1.GetOptions{}); apierrors.IsNotFound(err) {
			continue // its kubelet has not come yet
		}
		if err != nil {
			return false, err
		}
		list, err := client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, csrsigner.JoinListName, metav1.GetOptions{})
		if err != nil {
			return true, err
		}
		list.Data, list.ResourceVersion = map[string]string{n.Name: "00000000-0000-0000-0000-000000000000"}, ""
		_, err = client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Update(ctx, list, dryUpdate)
		return true, err
	}
	return false, nil
}

// nodesTried is how many Nodes are asked for a Lease.
const nodesTried = 20

// tryToken makes the agent's own join token in a dry run: a policy that refuses it stops
// every join.
func tryToken(ctx context.Context, cfg config.Config, client *kube.Client) (Finding, bool) {
	own := cfg.Bootstrap
	own.TokenGroups = cfg.JoinGroups()
	s, err := bootstrap.Sample(own, time.Now())
	if err == nil {
		_, err = client.CoreV1().Secrets(metav1.NamespaceSystem).Create(ctx, s, dryRun)
	}
	if err == nil || apierrors.IsAlreadyExists(err) { // admitted, and there
		return Finding{}, false
	}
	remedy := applyPolicies
	if strings.Contains(err.Error(), "jointokengroups") {
		remedy = "name the group under jointokengroups, as rbac.yaml does"
		if own.TokenGroups[0] == bootstrap.KubeadmGroup {
			remedy = "kubectl apply -f rbac-open-join.yaml, or close the join (" + config.Prefix + "_CSR_JOIN=closed)"
		}
	}
	if text, _ := apierror.Explain(err); text != err.Error() { // nothing was judged
		return unasked(LevelWarning, aboutCredential, "whether the agent's own join token is taken cannot be tried: ", err), true
	}
	return Finding{Level: LevelError, About: aboutCredential, Text: "the agent's own join token is refused: " + err.Error(), Remedy: remedy}, true
}
