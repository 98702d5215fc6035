package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/act"
	"github.com/autoscaler-agent/autoscaler-agent/agent/clients"
	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/agent/election"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/priorities"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan"
	"github.com/autoscaler-agent/autoscaler-agent/bootstrap"
	"github.com/autoscaler-agent/autoscaler-agent/bootstrap/secret"
	"github.com/autoscaler-agent/autoscaler-agent/csrsigner"
	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
	"github.com/autoscaler-agent/autoscaler-agent/nodecleaner"
)

// right is one thing that the agent must be allowed to do.
type right struct{ verb, group, resource, sub, namespace, name string }

func (r right) String() string {
	s := r.verb + " " + r.resource
	if r.group != "" {
		s += "." + r.group
	}
	if r.sub != "" {
		s += "/" + r.sub
	}
	if r.name != "" {
		s += " " + r.name
	}
	if r.namespace != "" {
		s += " in " + r.namespace
	}
	return s
}

// dispensable are the rights without which the agent still works, with a little less
// knowledge (agent/observe).
var dispensable = []right{
	{"list", "", "limitranges", "", "", ""}, {"watch", "", "limitranges", "", "", ""},
	{"list", "", "resourcequotas", "", "", ""}, {"watch", "", "resourcequotas", "", "", ""},
	{"list", "node.k8s.io", "runtimeclasses", "", "", ""}, {"watch", "node.k8s.io", "runtimeclasses", "", "", ""},
	{"list", "resource.k8s.io", "deviceclasses", "", "", ""}, {"watch", "resource.k8s.io", "deviceclasses", "", "", ""},
	{"list", "resource.k8s.io", "devicetaintrules", "", "", ""}, {"watch", "resource.k8s.io", "devicetaintrules", "", "", ""},
	{"list", "resource.k8s.io", "resourceslices", "", "", ""}, {"watch", "resource.k8s.io", "resourceslices", "", "", ""},
	{"list", "resource.k8s.io", "resourceclaims", "", "", ""}, {"watch", "resource.k8s.io", "resourceclaims", "", "", ""},
	{"list", "resource.k8s.io", "resourceclaimtemplates", "", "", ""}, {"watch", "resource.k8s.io", "resourceclaimtemplates", "", "", ""},
}

// rights lists what the scaler needs; the services add their own.
func rights(cfg config.Config) []right {
	list := []right{
		{"list", "", "nodes", "", "", ""}, {"watch", "", "nodes", "", "", ""}, {"get", "", "nodes", "", "", ""}, {"update", "", "nodes", "", "", ""},
		{"list", "", "pods", "", "", ""}, {"watch", "", "pods", "", "", ""}, {"create", "", "pods", "eviction", "", ""},
		{"list", "apps", "daemonsets", "", "", ""}, {"watch", "apps", "daemonsets", "", "", ""},
		{"list", "apps", "replicasets", "", "", ""}, {"watch", "apps", "replicasets", "", "", ""},
		{"list", "apps", "statefulsets", "", "", ""}, {"watch", "apps", "statefulsets", "", "", ""},
		{"list", "batch", "jobs", "", "", ""}, {"watch", "batch", "jobs", "", "", ""},
		{"list", "policy", "poddisruptionbudgets", "", "", ""}, {"watch", "policy", "poddisruptionbudgets", "", "", ""},
		{"list", "", "namespaces", "", "", ""}, {"watch", "", "namespaces", "", "", ""},
		{"list", "", "persistentvolumeclaims", "", "", ""}, {"watch", "", "persistentvolumeclaims", "", "", ""},
		{"list", "", "persistentvolumes", "", "", ""}, {"watch", "", "persistentvolumes", "", "", ""},
		{"list", "storage.k8s.io", "csidrivers", "", "", ""}, {"watch", "storage.k8s.io", "csidrivers", "", "", ""},
		{"list", "storage.k8s.io", "csinodes", "", "", ""}, {"watch", "storage.k8s.io", "csinodes", "", "", ""},
		{"list", "storage.k8s.io", "storageclasses", "", "", ""}, {"watch", "storage.k8s.io", "storageclasses", "", "", ""},
		{"list", "storage.k8s.io", "volumeattachments", "", "", ""}, {"watch", "storage.k8s.io", "volumeattachments", "", "", ""},
		{"get", "coordination.k8s.io", "leases", "", cfg.Lease.Namespace, cfg.Lease.Name}, {"create", "coordination.k8s.io", "leases", "", cfg.Lease.Namespace, ""},
		{"update", "coordination.k8s.io", "leases", "", cfg.Lease.Namespace, cfg.Lease.Name},
		{"list", "coordination.k8s.io", "leases", "", cfg.Lease.Namespace, election.OtherLease}, {"watch", "coordination.k8s.io", "leases", "", cfg.Lease.Namespace, election.OtherLease},
		{"create", "", "events", "", "", ""},
	}
	if cfg.Scaler.Enabled && cfg.Scaler.StatusConfigMap {
		o := act.StatusObject
		list = append(list, right{"create", "", "configmaps", "", o.Namespace, ""}, right{"update", "", "configmaps", "", o.Namespace, o.Name}, right{"delete", "", "configmaps", "", o.Namespace, o.Name})
	}
	if plan.UsesPriorities(cfg.Scaling.Expander) {
		for _, verb := range []string{"list", "watch"} {
			list = append(list, right{verb, "", "configmaps", "", cfg.Lease.Namespace, priorities.ConfigMapName})
		}
	}
	return append(list, serviceRights(cfg.Services)...)
}

// serviceRights lists what the services beside the scaler need.
func serviceRights(s config.Services) []right {
	var list []right
	if s.CSR.Enabled {
		list = append(list,
			right{"get", "certificates.k8s.io", "certificatesigningrequests", "", "", ""},
			right{"list", "certificates.k8s.io", "certificatesigningrequests", "", "", ""},
			right{"watch", "certificates.k8s.io", "certificatesigningrequests", "", "", ""},
			right{"update", "certificates.k8s.io", "certificatesigningrequests", "approval", "", ""},
			right{"approve", "certificates.k8s.io", "signers", "", "", "kubernetes.io/kubelet-serving"},
			right{"get", "", "services", "", "default", "kubernetes"},
			right{"list", "networking.k8s.io", "servicecidrs", "", "", ""}, right{"list", "discovery.k8s.io", "endpointslices", "", "default", ""})
	}
	if s.JoinIsClosed() {
		list = append(list,
			right{"approve", "certificates.k8s.io", "signers", "", "", "kubernetes.io/kube-apiserver-client-kubelet"},
			right{"create", "authorization.k8s.io", "subjectaccessreviews", "", "", ""},
			right{"get", "", "configmaps", "", "kube-system", csrsigner.JoinListName}, right{"update", "", "configmaps", "", "kube-system", csrsigner.JoinListName},
			right{"get", "", "secrets", "", "kube-system", bootstrap.PoolNames()[0]})
	}
	if s.Nodecleaner.Enabled {
		list = append(list, right{"delete", "", "nodes", "", "", ""}, right{"update", "", "nodes", "", "", ""},
			right{"list", "storage.k8s.io", "volumeattachments", "", "", ""}, right{"watch", "storage.k8s.io", "volumeattachments", "", "", ""},
			right{"get", "coordination.k8s.io", "leases", "", "kube-node-lease", ""})
		if s.Nodecleaner.CloudController == nodecleaner.CloudControllerAuto {
			list = append(list, right{"list", "coordination.k8s.io", "leases", "", "kube-system", ""})
		}
	}
	if s.Bootstrap.Enabled {
		list = append(list, right{"create", "", "secrets", "", "kube-system", ""})
		names := bootstrap.PoolNames()
		for _, verb := range []string{"get", "update", "delete"} {
			list = append(list, right{verb, "", "secrets", "", "kube-system", names[0]}, right{verb, "", "secrets", "", "kube-system", names[len(names)-1]})
		}
		if s.Bootstrap.Secret {
			list = append(list, right{"get", "", "secrets", "", "kube-system", secret.Name}, right{"update", "", "secrets", "", "kube-system", secret.Name})
		}
		list = append(list, right{"get", "", "configmaps", "", "kube-public", "cluster-info"}, right{"get", "", "configmaps", "", "kube-system", "kubeadm-config"})
	}
	return list
}

func checkRights(ctx context.Context, cfg config.Config, client *kube.Client) []Finding {
	needed := rights(cfg)
	lacks, err := missing(ctx, client, needed)
	if err != nil {
		return []Finding{unasked(LevelError, "rights", "", err)}
	}
	useful, err := missing(ctx, client, dispensable)
	if err != nil {
		return []Finding{unasked(LevelError, "rights", "", err)}
	}
	var out []Finding
	if len(lacks) > 0 {
		out = append(out, Finding{Level: LevelError, About: "rights", Text: "not allowed: " + strings.Join(lacks, ", "), Remedy: "kubectl apply -f rbac.yaml"})
	}
	if len(useful) > 0 {
		out = append(out, Finding{Level: LevelWarning, About: "rights", Remedy: "kubectl apply -f rbac.yaml",
			Text: "not allowed: " + strings.Join(useful, ", ") + ": what LimitRanges and RuntimeClasses add to the pods of DaemonSets is counted once one of the pods runs, and not before; pods with resourceClaims are held"})
	}
	if cfg.CSR.Enabled {
		out = append(out, checkLeadersRight(ctx, client)...)
	}
	if len(out) > 0 {
		return out
	}
	return []Finding{{Level: LevelOK, About: "rights", Text: fmt.Sprintf("all %d are granted", len(needed)+len(dispensable))}}
}

// checkLeadersRight asks for the right by which the policies know the control plane's Nodes.
func checkLeadersRight(ctx context.Context, client *kube.Client) []Finding {
	leaders, err := clients.Leaders(ctx, client)
	var list []right
	for i := range leaders {
		list = append(list, right{"use", "autoscaler-agent", "controlplanenodes", "", "", leaders[i].Name})
	}
	lacks, err2 := missing(ctx, client, list)
	if err = errors.Join(err, err2); err != nil {
		return []Finding{unasked(LevelWarning, "rights", "", err)}
	}
	if len(lacks) == 0 {
		return nil
	}
	return []Finding{{Level: LevelWarning, About: "rights", Text: "not allowed: " + strings.Join(lacks, ", ") + ": a certificate for the address of an API server is not approved for the kubelet of such a Node (admission-policy.yaml)",
		Remedy: "autoscaler-agent install, or name the Node in rbac.yaml (controlplanenodes)"}}
}

// missing are those of some rights that are not granted.
func missing(ctx context.Context, client *kube.Client, list []right) (out []string, err error) {
	for _, r := range list {
		allowed, err := may(ctx, client, r)
		if err != nil {
			return nil, err
		}
		if !allowed {
			out = append(out, r.String())
		}
	}
	return out, nil
}

func may(ctx context.Context, client *kube.Client, r right) (bool, error) {
	review, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: r.namespace, Verb: r.verb, Group: r.group, Resource: r.resource, Subresource: r.sub, Name: r.name,
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return review.Status.Allowed, nil
}
