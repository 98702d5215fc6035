package doctor

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/internal/apierror"
	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
)

const aboutPowers = "pods on workers"

// accountsAsked is of how many service accounts the API server is asked.
const accountsAsked = 60

// powers are rights each of which is the cluster, the gravest first.
var powers = []right{
	{"*", "*", "*", "", "", ""},
	{"get", "", "secrets", "", "", ""}, {"list", "", "secrets", "", "", ""}, {"get", "", "secrets", "", metav1.NamespaceSystem, ""},
	{"create", "", "pods", "", "", ""}, {"create", "", "pods", "", metav1.NamespaceSystem, ""}, {"create", "", "serviceaccounts", "token", "", ""},
	{"impersonate", "", "users", "", "", ""}, {"escalate", "rbac.authorization.k8s.io", "clusterroles", "", "", ""}, {"bind", "rbac.authorization.k8s.io", "clusterroles", "", "", ""},
	{"create", "", "nodes", "proxy", "", ""}, {"update", "admissionregistration.k8s.io", "mutatingwebhookconfigurations", "", "", ""},
}

// account is a service account with a pod that a worker runs, or may run.
type account struct{ namespace, name string }

// checkPowers names pods on workers whose service accounts have rights that are the cluster. A Node gets the
// tokens of the service accounts of its pods, so that who has one worker, or makes a pod move to his (a thief of
// the agent's credential evicts it), has what the pod may do. It costs the pods, and the rights of sixty
// service accounts at most.
func checkPowers(ctx context.Context, client *kube.Client) []Finding {
	unsure := func(what string, err error) []Finding {
		text, remedy := apierror.Explain(err)
		return []Finding{{Level: LevelWarning, About: aboutPowers, Text: what + ": " + text,
			Remedy: cmp.Or(remedy, "ask by hand: kubectl auth can-i --list --as=system:serviceaccount:NAMESPACE:NAME")}}
	}
	accounts, err := accountsOnWorkers(ctx, client)
	if err != nil {
		return unsure("pods and Nodes cannot be listed", err)
	}
	list := slices.SortedFunc(maps.Keys(accounts), func(a, b account) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
	})
	rest := len(list) - min(len(list), accountsAsked)
	var named []string
	for _, a := range list[:len(list)-rest] {
		power, err := powerOf(ctx, client, a)
		if err != nil {
			return unsure("the rights of the service accounts of pods on workers cannot be asked for", err)
		}
		if power != "" {
			named = append(named, fmt.Sprintf("%s (service account %s may %s)", accounts[a], a.name, power))
		}
	}
	if len(named) == 0 {
		return nil
	}
	if more := len(named) - accountsNamed; more > 0 {
		named = append(named[:accountsNamed], fmt.Sprintf("%d more", more))
	}
	if rest > 0 {
		named = append(named, fmt.Sprintf("%d service accounts were not looked at", rest))
	}
	return []Finding{{Level: LevelWarning, About: aboutPowers, Text: "whoever has a worker, or the agent's credential, gets what these pods may do, which is the cluster: " + strings.Join(named, ", "),
		Remedy: "give the service accounts fewer rights, or keep the pods on control-plane nodes or a node group of their own (nodeSelector and toleration): docs/security.md, What a thief gains"}}
}

// accountsNamed is how many pods a finding names.
const accountsNamed = 5

// accountsOnWorkers are the service accounts of pods that are not bound to Nodes of the control plane, each with
// one of the pods.
func accountsOnWorkers(ctx context.Context, client *kube.Client) (map[account]string, error) {
	control := map[string]bool{}
	for _, label := range cluster.ControlPlaneLabels {
		nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: label})
		if err != nil {
			return nil, err
		}
		for i := range nodes.Items {
			control[nodes.Items[i].Name] = true
		}
	}
	out := map[account]string{}
	for from := ""; ; {
		list, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{Limit: podsAtOnce, Continue: from})
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			p := &list.Items[i]
			a := account{p.Namespace, cmp.Or(p.Spec.ServiceAccountName, "default")}
			if _, mirror := p.Annotations[corev1.MirrorPodAnnotationKey]; !mirror && !control[p.Spec.NodeName] && out[a] == "" {
				out[a] = p.Namespace + "/" + p.Name
			}
		}
		if from = list.Continue; from == "" {
			return out, nil
		}
	}
}

// powerOf is the gravest of the powers that a service account has; empty: it has none.
func powerOf(ctx context.Context, client *kube.Client, a account) (string, error) {
	for _, r := range powers {
		review, err := client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:   "system:serviceaccount:" + a.namespace + ":" + a.name,
			Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + a.namespace, "system:authenticated"},
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: r.verb, Group: r.group, Resource: r.resource, Subresource: r.sub,
				Namespace: r.namespace},
		}}, metav1.CreateOptions{})
		if err != nil {
			return "", err
		}
		if review.Status.Allowed {
			return r.power(), nil
		}
	}
	return "", nil
}

// power is a right in words that name its scope.
func (r right) power() string {
	switch {
	case r.verb == "*":
		return "do everything"
	case r.namespace == "":
		return r.String() + " everywhere"
	}
	return r.String()
}
