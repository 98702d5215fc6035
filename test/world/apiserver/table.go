package apiserver

import (
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Object is what is stored. Nobody changes one that is stored.
type Object interface {
	runtime.Object
	metav1.Object
}

// kind is a row of the table of kinds.
type kind struct {
	schema.GroupVersion
	plural, kind string
	namespaced   bool
	status       bool // it has the subresource status
}

func (k kind) gvk() schema.GroupVersionKind { return k.WithKind(k.kind) }
func (k kind) resource() schema.GroupResource {
	return schema.GroupResource{Group: k.Group, Resource: k.plural}
}

func v1(group string) schema.GroupVersion { return schema.GroupVersion{Group: group, Version: "v1"} }

// kinds are the kinds that are stored.
var kinds = []kind{
	{v1(""), "nodes", "Node", false, true},
	{v1(""), "namespaces", "Namespace", false, true},
	{v1(""), "pods", "Pod", true, true},
	{v1(""), "secrets", "Secret", true, false},
	{v1(""), "configmaps", "ConfigMap", true, false},
	{v1(""), "services", "Service", true, true},
	{v1(""), "events", "Event", true, false},
	{v1(""), "limitranges", "LimitRange", true, false},
	{v1(""), "resourcequotas", "ResourceQuota", true, true},
	{v1(""), "persistentvolumes", "PersistentVolume", false, true},
	{v1(""), "persistentvolumeclaims", "PersistentVolumeClaim", true, true},
	{v1("apps"), "deployments", "Deployment", true, true},
	{v1("apps"), "daemonsets", "DaemonSet", true, true},
	{v1("apps"), "replicasets", "ReplicaSet", true, true},
	{v1("apps"), "statefulsets", "StatefulSet", true, true},
	{v1("batch"), "jobs", "Job", true, true},
	{v1("policy"), "poddisruptionbudgets", "PodDisruptionBudget", true, true},
	{v1("storage.k8s.io"), "storageclasses", "StorageClass", false, false},
	{v1("storage.k8s.io"), "csidrivers", "CSIDriver", false, false},
	{v1("storage.k8s.io"), "csinodes", "CSINode", false, false},
	{v1("storage.k8s.io"), "volumeattachments", "VolumeAttachment", false, true},
	{v1("coordination.k8s.io"), "leases", "Lease", true, false},
	{v1("certificates.k8s.io"), "certificatesigningrequests", "CertificateSigningRequest", false, true},
	{v1("rbac.authorization.k8s.io"), "clusterrolebindings", "ClusterRoleBinding", false, false},
	{v1("discovery.k8s.io"), "endpointslices", "EndpointSlice", true, false},
	{v1("networking.k8s.io"), "servicecidrs", "ServiceCIDR", false, true},
	{v1("node.k8s.io"), "runtimeclasses", "RuntimeClass", false, false},
	{v1("resource.k8s.io"), "deviceclasses", "DeviceClass", false, false},
	{v1("resource.k8s.io"), "resourceslices", "ResourceSlice", false, false},
	{v1("resource.k8s.io"), "resourceclaims", "ResourceClaim", true, true},
	{v1("resource.k8s.io"), "resourceclaimtemplates", "ResourceClaimTemplate", true, false},
}

// fieldsOf are the fields of an object that a selector may name.
func fieldsOf(o Object) fields.Set {
	out := fields.Set{"metadata.name": o.GetName(), "metadata.namespace": o.GetNamespace()}
	switch o := o.(type) {
	case *corev1.Pod:
		out["spec.nodeName"], out["status.phase"], out["spec.schedulerName"] = o.Spec.NodeName, string(o.Status.Phase), o.Spec.SchedulerName
	case *corev1.Secret:
		out["type"] = string(o.Type)
	case *corev1.Node:
		out["spec.unschedulable"] = "false"
		if o.Spec.Unschedulable {
			out["spec.unschedulable"] = "true"
		}
	case *corev1.Event:
		out["involvedObject.name"], out["involvedObject.kind"], out["reason"] = o.InvolvedObject.Name, o.InvolvedObject.Kind, o.Reason
	case *certificatesv1.CertificateSigningRequest:
		out["spec.signerName"] = o.Spec.SignerName
	}
	return out
}
