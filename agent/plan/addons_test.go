package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
)

const (
	statefulSet = "apps/v1 StatefulSet"
	daemonSet   = "apps/v1 DaemonSet"
	system      = "system-cluster-critical"
)

// addOns are pods of add-ons that clusters have, in the shape that their charts and manifests give them by default: owner, volumes
// (host:, dir:, memory: before the name of a hostPath, an emptyDir and one in memory), priority class and how many disruptions their
// PodDisruptionBudget allows (-1: they have none). blocked are the reasons for which they keep their node.
var addOns = []struct {
	addOn, namespace, pod, owner, volumes, class string
	budget                                       int
	blocked                                      string
}{
	{"Cilium", "kube-system", "cilium", daemonSet, "host:bpf-maps", "system-node-critical", -1, ""},
	{"Cilium", "kube-system", "cilium-operator", replicaSet, "", system, -1, "kube-system"},
	{"Cilium", "kube-system", "hubble-relay", replicaSet, "", "", -1, "kube-system"},
	{"Calico", "kube-system", "calico-node", daemonSet, "host:lib-modules", "system-node-critical", -1, ""},
	{"Calico", "kube-system", "calico-kube-controllers", replicaSet, "", system, 1, ""},
	{"Calico operator", "tigera-operator", "tigera-operator", replicaSet, "host:var-lib-calico", "", -1, "local storage"},
	{"Calico operator", "calico-system", "calico-typha", replicaSet, "", system, 1, ""},
	{"CoreDNS of kubeadm", "kube-system", "coredns", replicaSet, "", system, -1, "kube-system"},
	{"kube-proxy", "kube-system", "kube-proxy", daemonSet, "host:lib-modules", "system-node-critical", -1, ""},
	{"metrics-server", "kube-system", "metrics-server", replicaSet, "dir:tmp", system, -1, "kube-system local storage"},
	{"AWS EBS CSI driver", "kube-system", "ebs-csi-controller", replicaSet, "dir:socket-dir", system, 1, "local storage"},
	{"AWS EBS CSI driver", "kube-system", "ebs-csi-node", daemonSet, "host:kubelet-dir dir:probe-dir", "system-node-critical", -1, ""},
	{"AWS EFS CSI driver", "kube-system", "efs-csi-controller", replicaSet, "dir:socket-dir", system, -1, "kube-system local storage"},
	{"Cinder CSI driver", "kube-system", "csi-cinder-controllerplugin", replicaSet, "dir:socket-dir", "", -1, "kube-system local storage"},
	{"snapshot-controller", "kube-system", "snapshot-controller", replicaSet, "", "", -1, "kube-system"},
	{"AWS Load Balancer Controller", "kube-system", "aws-load-balancer-controller", replicaSet, "", system, -1, "kube-system"},
	{"NVIDIA GPU operator", "gpu-operator", "gpu-operator", replicaSet, "host:host-os-release", "system-node-critical", -1, "local storage"},
	{"NVIDIA GPU operator", "gpu-operator", "nvidia-device-plugin", daemonSet, "host:device-plugin dir:run-nvidia", "system-node-critical", -1, ""},
	{"Node Feature Discovery", "node-feature-discovery", "nfd-master", replicaSet, "", "", -1, ""},
	{"Istio", "istio-system", "istiod", replicaSet, "memory:local-certs", "", 0, "budget"},
	{"Istio", "istio-ingress", "gateway", replicaSet, "dir:workload-socket dir:istio-data memory:istio-envoy", "", -1, "local storage"},
	{"Linkerd", "linkerd", "linkerd-destination", replicaSet, "memory:linkerd-identity-end-entity dir:policy", "", -1, "local storage"},
	{"kube-prometheus-stack", "monitoring", "prometheus", statefulSet, "memory:config-out dir:db", "", -1, "local storage"},
	{"kube-prometheus-stack", "monitoring", "alertmanager", statefulSet, "memory:config-out dir:db", "", -1, "local storage"},
	{"kube-prometheus-stack", "monitoring", "grafana", replicaSet, "dir:storage", "", -1, "local storage"},
	{"kube-prometheus-stack", "monitoring", "kube-state-metrics", replicaSet, "", "", -1, ""},
	{"kube-prometheus-stack", "monitoring", "node-exporter", daemonSet, "host:proc", "", -1, ""},
	{"prometheus-adapter", "monitoring", "prometheus-adapter", replicaSet, "dir:tmp", "", -1, "local storage"},
	{"Loki", "loki", "loki", statefulSet, "dir:tmp dir:sc-rules-volume", "", 1, "local storage"},
	{"Argo CD", "argocd", "argocd-application-controller", statefulSet, "dir:argocd-home", "", -1, "local storage"},
	{"Argo CD", "argocd", "argocd-repo-server", replicaSet, "dir:tmp dir:helm-working-dir", "", -1, "local storage"},
	{"Argo CD", "argocd", "argocd-server", replicaSet, "dir:tmp", "", -1, "local storage"},
	{"Argo CD", "argocd", "argocd-redis", replicaSet, "", "", -1, ""},
	{"Argo Workflows", "argo", "workflow-controller", replicaSet, "", "", -1, ""},
	{"Argo Workflows", "default", "step", "argoproj.io/v1alpha1 Workflow", "dir:var-run-argo", "", -1, "custom controller local storage"},
	{"Tekton", "default", "task", "tekton.dev/v1 TaskRun", "dir:tekton-internal-workspace", "", -1, "custom controller local storage"},
	{"GitHub Actions runners", "arc-runners", "runner", "actions.github.com/v1alpha1 EphemeralRunner", "dir:work", "", -1, "custom controller local storage"},
	{"Kueue", "kueue-system", "kueue-controller-manager", replicaSet, "", system, -1, ""},
	{"KEDA", "keda", "keda-operator", replicaSet, "", "", -1, ""},
	{"Volcano", "default", "task", "batch.volcano.sh/v1alpha1 Job", "", "", -1, "custom controller"},
	{"KubeRay", "default", "ray-worker", "ray.io/v1 RayCluster", "memory:shared-mem", "", -1, "custom controller"},
	{"Strimzi", "kafka", "broker", "core.strimzi.io/v1beta2 StrimziPodSet", "memory:strimzi-tmp", "", 1, "custom controller"},
	{"CloudNativePG", "default", "pg", "postgresql.cnpg.io/v1 Cluster", "dir:scratch-data memory:shm", "", 0, "custom controller local storage budget"},
	{"OpenKruise", "default", "clone", "apps.kruise.io/v1alpha1 CloneSet", "", "", -1, "custom controller"},
	{"OpenKruise", "default", "advanced-daemon", "apps.kruise.io/v1alpha1 DaemonSet", "", "", -1, ""},
	{"cert-manager", "cert-manager", "cert-manager", replicaSet, "", "", -1, ""},
	{"ingress-nginx", "ingress-nginx", "controller", replicaSet, "", "", -1, ""},
	{"external-dns", "external-dns", "external-dns", replicaSet, "", "", -1, ""},
	{"External Secrets", "external-secrets", "external-secrets", replicaSet, "", "", -1, ""},
	{"Flux", "flux-system", "source-controller", replicaSet, "dir:data dir:tmp", system, -1, "local storage"},
	{"Velero", "velero", "velero", replicaSet, "dir:plugins dir:scratch", "", -1, "local storage"},
	{"Gatekeeper", "gatekeeper-system", "gatekeeper-controller-manager", replicaSet, "", system, 1, ""},
	{"Gatekeeper", "gatekeeper-system", "gatekeeper-audit", replicaSet, "dir:tmp-volume", system, -1, "local storage"},
	{"Kyverno", "kyverno", "kyverno-admission-controller", replicaSet, "dir:sigstore", "", -1, "local storage"},
	{"Rook", "rook-ceph", "rook-ceph-operator", replicaSet, "dir:rook-config", "", -1, "local storage"},
	{"Rook", "rook-ceph", "rook-ceph-mon", replicaSet, "host:ceph-daemon-data", "system-node-critical", 1, "local storage"},
	{"Longhorn", "longhorn-system", "instance-manager", "longhorn.io/v1beta2 InstanceManager", "host:host", "", 0, "custom controller local storage budget"},
	{"Elastic Cloud on Kubernetes", "elastic", "elasticsearch", statefulSet, "dir:elastic-internal-elasticsearch-config-local", "", 1, "local storage"},
	{"Vertical Pod Autoscaler", "kube-system", "vpa-recommender", replicaSet, "", "", -1, "kube-system"},
	{"Sealed Secrets", "kube-system", "sealed-secrets-controller", replicaSet, "dir:tmp", "", -1, "kube-system local storage"},
}

// addOn adds the i-th pod of addOns.
func (o *objects) addOn(i int, node string) *corev1.Pod {
	a := &addOns[i]
	p := o.pod(a.pod, node, "100m", a.owner)
	p.Namespace = a.namespace
	p.Spec.Priority = new(map[string]int32{"": 0, system: 2000000000, "system-node-critical": 2000001000}[a.class])
	for _, volume := range strings.Fields(a.volumes) {
		kind, name, _ := strings.Cut(volume, ":")
		v := corev1.Volume{Name: name}
		switch kind {
		case "host":
			v.HostPath = &corev1.HostPathVolumeSource{Path: "/x"}
		case "memory":
			v.EmptyDir = &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}
		default:
			v.EmptyDir = &corev1.EmptyDirVolumeSource{}
		}
		p.Spec.Volumes = append(p.Spec.Volumes, v)
	}
	if a.budget >= 0 {
		o.Budgets = append(o.Budgets, &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: a.pod, UID: types.UID("pdb-" + a.pod)},
			Spec:   policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: p.Labels}, MaxUnavailable: new(intstr.FromInt32(1))},
			Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: int32(a.budget)}})
	}
	return p
}

// blockers are the reasons that explain gives for a pod on an idle node, and whether the node may go.
func (o *objects) blockers(p *corev1.Pod, policy decision.Policy) (names []string, goes bool) {
	s, plan := o.decide(policy)
	x := Explain(s, decision.Memory{}, policy, decision.Query{Kind: "pod", Name: p.Namespace + "/" + p.Name})
	for _, b := range x.Pod.Blockers {
		names = append(names, b.Name)
	}
	slices.Sort(names)
	return names, strings.HasPrefix(held(plan, "node", "n0"), "["+decision.RuleUnneededFor+"]")
}

// TestAddOns: a machine is bought for each add-on that waits; on an idle node each keeps it for the reasons of its row and no others, and
// what docs/scaling-rules.md says frees the node.
func TestAddOns(t *testing.T) {
	names := map[string]bool{}
	for i := range addOns {
		a := &addOns[i]
		names[a.addOn] = true
		name := fmt.Sprintf("%s: %s", a.addOn, a.pod)
		o := newObjects()
		o.addOn(i, "")
		_, plan := o.decide(policy())
		if machines, _ := boughtOf(plan); (machines == 1) == strings.HasSuffix(a.owner, " DaemonSet") || machines > 1 {
			t.Errorf("%s waits, and %d machines are bought", name, machines)
		}
		o = newObjects()
		o.node("n0")
		o.node("n1")
		o.pod("busy", "n1", "2500m", replicaSet)
		p := o.addOn(i, "n0")
		want := reasons(a.blocked)
		if got, goes := o.blockers(p, policy()); !slices.Equal(got, want) || goes != (a.blocked == "") {
			t.Errorf("%s keeps its node for %q, want %q; the node goes: %v", name, got, want, goes)
		}
		free := policy()
		free.SkipNodesWithCustomPods = false
		p.Annotations = map[string]string{cluster.AnnotationSafeVolumes: volumeNames(p)}
		if len(o.Budgets) == 0 {
			o.Budgets = []*policyv1.PodDisruptionBudget{{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: "free"}}}
			o.Budgets[0].Spec.Selector = &metav1.LabelSelector{MatchLabels: p.Labels}
		}
		o.Budgets[0].Status.DisruptionsAllowed = 1
		if got, goes := o.blockers(p, free); len(got) > 0 || !goes {
			t.Errorf("%s still keeps its node for %q; the node goes: %v", name, got, goes)
		}
		o.Budgets, p.Annotations = nil, map[string]string{cluster.AnnotationSafeToEvict: "true"}
		if got, goes := o.blockers(p, policy()); len(got) > 0 || !goes {
			t.Errorf("%s keeps its node in spite of safe-to-evict for %q; the node goes: %v", name, got, goes)
		}
	}
	if len(names) < 30 {
		t.Errorf("%d add-ons", len(names))
	}
}

// reasons are the names of blockers in a row of addOns, in their order.
func reasons(row string) (out []string) {
	for _, name := range []string{"budget", "custom controller", "kube-system", "local storage"} {
		if strings.Contains(row, name) {
			out = append(out, name)
		}
	}
	return out
}

func volumeNames(p *corev1.Pod) string {
	var names []string
	for i := range p.Spec.Volumes {
		names = append(names, p.Spec.Volumes[i].Name)
	}
	return strings.Join(names, ", ")
}
