// Package kubetest makes a kube.Client of client-go's clientset, for tests.
//
// It refuses a place in the product: it links what package kube leaves out.
package kubetest

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"

	"sync"
)

// madeOf has the clientset of each Client.
var madeOf sync.Map

// Fake is the fake clientset that Client was called with.
func Fake(c *kube.Client) *fake.Clientset {
	of, _ := madeOf.Load(c)
	return of.(*fake.Clientset)
}

// Client makes a Client whose calls go to c, a fake clientset as a rule. It streams no
// lists and has no REST.
func Client(c kubernetes.Interface) *kube.Client {
	apps, policy, storage, authorization := c.AppsV1(), c.PolicyV1(), c.StorageV1(), c.AuthorizationV1()
	out := &kube.Client{
		Unstreamed:    true,
		ServerVersion: func(context.Context) (*version.Info, error) { return c.Discovery().ServerVersion() },
		Resources: func(_ context.Context, groupVersion string) (*metav1.APIResourceList, error) {
			return c.Discovery().ServerResourcesForGroupVersion(groupVersion)
		},
		Core: coreOf(c.CoreV1()),
		Apps: kube.Apps{
			DaemonSets:   func(ns string) kube.Kind[*appsv1.DaemonSet, *appsv1.DaemonSetList] { return apps.DaemonSets(ns) },
			ReplicaSets:  func(ns string) kube.Kind[*appsv1.ReplicaSet, *appsv1.ReplicaSetList] { return apps.ReplicaSets(ns) },
			StatefulSets: func(ns string) kube.Kind[*appsv1.StatefulSet, *appsv1.StatefulSetList] { return apps.StatefulSets(ns) },
		},
		Batch: kube.Batch{Jobs: func(ns string) kube.Kind[*batchv1.Job, *batchv1.JobList] { return c.BatchV1().Jobs(ns) }},
		Policy: kube.Policy{
			PodDisruptionBudgets: func(ns string) kube.Kind[*policyv1.PodDisruptionBudget, *policyv1.PodDisruptionBudgetList] {
				return policy.PodDisruptionBudgets(ns)
			},
			Evictions: func(ns string) kube.Evictor { return policy.Evictions(ns) },
		},
		Storage: kube.Storage{
			StorageClasses: func() kube.Kind[*storagev1.StorageClass, *storagev1.StorageClassList] {
				return storage.StorageClasses()
			},
			CSIDrivers: func() kube.Kind[*storagev1.CSIDriver, *storagev1.CSIDriverList] { return storage.CSIDrivers() },
			CSINodes:   func() kube.Kind[*storagev1.CSINode, *storagev1.CSINodeList] { return storage.CSINodes() },
			VolumeAttachments: func() kube.Kind[*storagev1.VolumeAttachment, *storagev1.VolumeAttachmentList] {
				return storage.VolumeAttachments()
			},
		},
		Coordination: kube.Coordination{Leases: func(ns string) kube.Kind[*coordinationv1.Lease, *coordinationv1.LeaseList] {
			return c.CoordinationV1().Leases(ns)
		}},
		Certificates: kube.Certificates{CertificateSigningRequests: func() kube.Requests { return c.CertificatesV1().CertificateSigningRequests() }},
		Authentication: kube.Authentication{SelfSubjectReviews: func() kube.Creator[*authenticationv1.SelfSubjectReview] {
			return c.AuthenticationV1().SelfSubjectReviews()
		}},
		Authorization: kube.Authorization{
			SelfSubjectAccessReviews: func() kube.Creator[*authorizationv1.SelfSubjectAccessReview] {
				return authorization.SelfSubjectAccessReviews()
			},
			SubjectAccessReviews: func() kube.Creator[*authorizationv1.SubjectAccessReview] { return authorization.SubjectAccessReviews() },
		},
		Rbac: kube.Rbac{ClusterRoleBindings: func() kube.Kind[*rbacv1.ClusterRoleBinding, *rbacv1.ClusterRoleBindingList] {
			return c.RbacV1().ClusterRoleBindings()
		}},
		Discovery: kube.Discovery{EndpointSlices: func(ns string) kube.Kind[*discoveryv1.EndpointSlice, *discoveryv1.EndpointSliceList] {
			return c.DiscoveryV1().EndpointSlices(ns)
		}},
		Networking: kube.Networking{ServiceCIDRs: func() kube.Kind[*networkingv1.ServiceCIDR, *networkingv1.ServiceCIDRList] {
			return c.NetworkingV1().ServiceCIDRs()
		}},
		Resource: kube.Resource{
			DeviceClasses: func() kube.Kind[*resourcev1.DeviceClass, *resourcev1.DeviceClassList] {
				return c.ResourceV1().DeviceClasses()
			},
			ResourceSlices: func() kube.Kind[*resourcev1.ResourceSlice, *resourcev1.ResourceSliceList] {
				return c.ResourceV1().ResourceSlices()
			},
			ResourceClaims: func(namespace string) kube.Kind[*resourcev1.ResourceClaim, *resourcev1.ResourceClaimList] {
				return c.ResourceV1().ResourceClaims(namespace)
			},
			ResourceClaimTemplates: func(namespace string) kube.Kind[*resourcev1.ResourceClaimTemplate, *resourcev1.ResourceClaimTemplateList] {
				return c.ResourceV1().ResourceClaimTemplates(namespace)
			},
		},
		Node: kube.Node{RuntimeClasses: func() kube.Kind[*nodev1.RuntimeClass, *nodev1.RuntimeClassList] {
			return c.NodeV1().RuntimeClasses()
		}},
	}
	madeOf.Store(out, c)
	return out
}

func coreOf(core typedcorev1.CoreV1Interface) kube.Core {
	return kube.Core{
		Nodes:      func() kube.Kind[*corev1.Node, *corev1.NodeList] { return core.Nodes() },
		Namespaces: func() kube.Kind[*corev1.Namespace, *corev1.NamespaceList] { return core.Namespaces() },
		PersistentVolumes: func() kube.Kind[*corev1.PersistentVolume, *corev1.PersistentVolumeList] {
			return core.PersistentVolumes()
		},
		PersistentVolumeClaims: func(ns string) kube.Kind[*corev1.PersistentVolumeClaim, *corev1.PersistentVolumeClaimList] {
			return core.PersistentVolumeClaims(ns)
		},
		Pods:       func(ns string) kube.Kind[*corev1.Pod, *corev1.PodList] { return core.Pods(ns) },
		Secrets:    func(ns string) kube.Kind[*corev1.Secret, *corev1.SecretList] { return core.Secrets(ns) },
		ConfigMaps: func(ns string) kube.Kind[*corev1.ConfigMap, *corev1.ConfigMapList] { return core.ConfigMaps(ns) },
		Services:   func(ns string) kube.Kind[*corev1.Service, *corev1.ServiceList] { return core.Services(ns) },
		Events:     func(ns string) kube.Kind[*corev1.Event, *corev1.EventList] { return core.Events(ns) },
		LimitRanges: func(ns string) kube.Kind[*corev1.LimitRange, *corev1.LimitRangeList] {
			return core.LimitRanges(ns)
		},
		ResourceQuotas: func(ns string) kube.Kind[*corev1.ResourceQuota, *corev1.ResourceQuotaList] {
			return core.ResourceQuotas(ns)
		},
	}
}
