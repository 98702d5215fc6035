package csrsigner

import (
	"context"
	"fmt"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/csrsigner/queue"
	"github.com/autoscaler-agent/autoscaler-agent/csrsigner/rules"
	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
)

// Proof is what the API server's own authorizer says about a join with tokens of one
// auth group.
type Proof struct {
	// SelfApproved tells that the controller manager approves such client requests by
	// itself: it asks the very same question (certificates/approver/sarapprove.go).
	SelfApproved bool
	Reason       string // the authorizer's words, where it has some
	// Missing is what a machine needs for kubeadm join and may not do.
	Missing []string
	// Bindings name ClusterRoleBindings that grant SelfApproved, as far as this client
	// may read them.
	Bindings []string
}

// ProveJoin asks the API server what a token of group may do. The client needs the right
// to create SubjectAccessReviews.
func ProveJoin(ctx context.Context, client *kube.Client, group string) (Proof, error) {
	groups := []string{rules.TokensGroup, rules.AuthGroup, group}
	may := func(a authorizationv1.ResourceAttributes) (authorizationv1.SubjectAccessReviewStatus, error) {
		r, err := client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{User: rules.TokenPrefix + "000000", Groups: groups, ResourceAttributes: &a}}, metav1.CreateOptions{})
		if err != nil {
			return authorizationv1.SubjectAccessReviewStatus{}, fmt.Errorf("ask what group %s may do: %w", group, err)
		}
		return r.Status, nil
	}
	const certificates = "certificates.k8s.io"
	status, err := may(authorizationv1.ResourceAttributes{Verb: "create", Group: certificates, Resource: "certificatesigningrequests", Subresource: "nodeclient"})
	if err != nil {
		return Proof{}, err
	}
	p := Proof{SelfApproved: status.Allowed, Reason: status.Reason}
	for _, need := range []struct {
		what string
		authorizationv1.ResourceAttributes
	}{
		{"create certificatesigningrequests", authorizationv1.ResourceAttributes{Verb: "create", Group: certificates, Resource: "certificatesigningrequests"}},
		{"watch certificatesigningrequests", authorizationv1.ResourceAttributes{Verb: "watch", Group: certificates, Resource: "certificatesigningrequests"}},
		{"get nodes", authorizationv1.ResourceAttributes{Verb: "get", Resource: "nodes"}},
		{"get configmap kube-system/kubeadm-config", authorizationv1.ResourceAttributes{Verb: "get", Resource: "configmaps", Namespace: metav1.NamespaceSystem, Name: "kubeadm-config"}},
		{"get configmap kube-system/kubelet-config", authorizationv1.ResourceAttributes{Verb: "get", Resource: "configmaps", Namespace: metav1.NamespaceSystem, Name: "kubelet-config"}},
		{"get configmap kube-system/kube-proxy", authorizationv1.ResourceAttributes{Verb: "get", Resource: "configmaps", Namespace: metav1.NamespaceSystem, Name: "kube-proxy"}},
	} {
		status, err := may(need.ResourceAttributes)
		if err != nil {
			return Proof{}, err
		}
		if !status.Allowed {
			p.Missing = append(p.Missing, need.what)
		}
	}
	if p.SelfApproved {
		p.Bindings = approvingBindings(ctx, client, groups)
	}
	return p, nil
}

// approvingBindings finds bindings of kubeadm's and Kubernetes' approving role to any of
// groups. Reading them is a right that the agent itself does not have; an operator has.
func approvingBindings(ctx context.Context, client *kube.Client, groups []string) []string {
	list, err := client.RbacV1().ClusterRoleBindings().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil // the authorizer's answer stands without their names
	}
	var out []string
	for _, b := range list.Items {
		for _, subject := range b.Subjects {
			for _, g := range groups {
				if b.RoleRef.Name == "system:certificates.k8s.io:certificatesigningrequests:nodeclient" && subject.Kind == "Group" && subject.Name == g {
					out = append(out, b.Name)
				}
			}
		}
	}
	return out
}

// tellProof says once, after the start, when a closed join is not what the cluster's
// bindings make of it.
func (s *Service) tellProof(ctx context.Context) {
	for wait := queue.FirstRetry; ; wait = min(2*wait, queue.LastRetry) {
		p, err := ProveJoin(ctx, s.deps.Client, s.deps.TokenGroup)
		if err == nil {
			switch {
			case p.SelfApproved:
				s.log.WithField("why", p.Reason).Warn("the join is not closed: the cluster approves the client certificates of whoever has a join token (autoscaler-agent check)")
			case len(p.Missing) > 0:
				s.log.WithField("why", strings.Join(p.Missing, ", ")).Error("no machine can join: the join tokens' group lacks rights (kubectl apply -f rbac.yaml)")
			default:
				s.log.WithField("group", s.deps.TokenGroup).Info("the join is closed: client certificates of machines that join are approved here alone")
			}
			return
		}
		if ctx.Err() != nil {
			return
		}
		s.log.WithField("why", err.Error()).Debug("whether the join is closed could not be asked")
		sleep(ctx, wait, nil)
		if wait >= time.Minute {
			return
		}
	}
}
