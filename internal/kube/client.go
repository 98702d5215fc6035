package kube

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
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
)

// Client has a client for each kind in use, by API group; New fills it. It is a table of
// functions so that a test can fill it from client-go's fake clientset.
type Client struct {
	Core           Core
	Apps           Apps
	Batch          Batch
	Policy         Policy
	Storage        Storage
	Coordination   Coordination
	Certificates   Certificates
	Authentication Authentication
	Authorization  Authorization
	Rbac           Rbac
	Discovery      Discovery
	Networking     Networking
	Node           Node
	Resource       Resource

	// ServerVersion asks the API server which version it is.
	ServerVersion func(context.Context) (*version.Info, error)
	// Resources asks which kinds a group version such as "apps/v1" has.
	Resources func(ctx context.Context, groupVersion string) (*metav1.APIResourceList, error)
	// REST is for a path without a kind here; nil in a test's Client.
	REST rest.Interface
	// Unstreamed says that this server streams no lists: client-go's fake.
	Unstreamed bool
}

// The kinds of each API group.
type (
	Core struct {
		Nodes                  func() Kind[*corev1.Node, *corev1.NodeList]
		Namespaces             func() Kind[*corev1.Namespace, *corev1.NamespaceList]
		PersistentVolumes      func() Kind[*corev1.PersistentVolume, *corev1.PersistentVolumeList]
		PersistentVolumeClaims func(namespace string) Kind[*corev1.PersistentVolumeClaim, *corev1.PersistentVolumeClaimList]
		Pods                   func(namespace string) Kind[*corev1.Pod, *corev1.PodList]
		Secrets                func(namespace string) Kind[*corev1.Secret, *corev1.SecretList]
		ConfigMaps             func(namespace string) Kind[*corev1.ConfigMap, *corev1.ConfigMapList]
		Services               func(namespace string) Kind[*corev1.Service, *corev1.ServiceList]
		Events                 func(namespace string) Kind[*corev1.Event, *corev1.EventList]
		LimitRanges            func(namespace string) Kind[*corev1.LimitRange, *corev1.LimitRangeList]
		ResourceQuotas         func(namespace string) Kind[*corev1.ResourceQuota, *corev1.ResourceQuotaList]
	}
	Apps struct {
		DaemonSets   func(namespace string) Kind[*appsv1.DaemonSet, *appsv1.DaemonSetList]
		ReplicaSets  func(namespace string) Kind[*appsv1.ReplicaSet, *appsv1.ReplicaSetList]
		StatefulSets func(namespace string) Kind[*appsv1.StatefulSet, *appsv1.StatefulSetList]
	}
	Batch struct {
		Jobs func(namespace string) Kind[*batchv1.Job, *batchv1.JobList]
	}
	Policy struct {
		PodDisruptionBudgets func(namespace string) Kind[*policyv1.PodDisruptionBudget, *policyv1.PodDisruptionBudgetList]
		Evictions            func(namespace string) Evictor
	}
	Storage struct {
		StorageClasses    func() Kind[*storagev1.StorageClass, *storagev1.StorageClassList]
		CSIDrivers        func() Kind[*storagev1.CSIDriver, *storagev1.CSIDriverList]
		CSINodes          func() Kind[*storagev1.CSINode, *storagev1.CSINodeList]
		VolumeAttachments func() Kind[*storagev1.VolumeAttachment, *storagev1.VolumeAttachmentList]
	}
	Coordination struct {
		Leases func(namespace string) Kind[*coordinationv1.Lease, *coordinationv1.LeaseList]
	}
	Certificates struct {
		CertificateSigningRequests func() Requests
	}
	Authentication struct {
		SelfSubjectReviews func() Creator[*authenticationv1.SelfSubjectReview]
	}
	Authorization struct {
		SelfSubjectAccessReviews func() Creator[*authorizationv1.SelfSubjectAccessReview]
		SubjectAccessReviews     func() Creator[*authorizationv1.SubjectAccessReview]
	}
	Rbac struct {
		ClusterRoleBindings func() Kind[*rbacv1.ClusterRoleBinding, *rbacv1.ClusterRoleBindingList]
	}
	Discovery struct {
		EndpointSlices func(namespace string) Kind[*discoveryv1.EndpointSlice, *discoveryv1.EndpointSliceList]
	}
	Networking struct {
		ServiceCIDRs func() Kind[*networkingv1.ServiceCIDR, *networkingv1.ServiceCIDRList]
	}
	Node struct {
		RuntimeClasses func() Kind[*nodev1.RuntimeClass, *nodev1.RuntimeClassList]
	}
	Resource struct {
		DeviceClasses          func() Kind[*resourcev1.DeviceClass, *resourcev1.DeviceClassList]
		DeviceTaintRules       func() Kind[*resourcev1beta2.DeviceTaintRule, *resourcev1beta2.DeviceTaintRuleList]
		ResourceSlices         func() Kind[*resourcev1.ResourceSlice, *resourcev1.ResourceSliceList]
		ResourceClaims         func(namespace string) Kind[*resourcev1.ResourceClaim, *resourcev1.ResourceClaimList]
		ResourceClaimTemplates func(namespace string) Kind[*resourcev1.ResourceClaimTemplate, *resourcev1.ResourceClaimTemplateList]
	}
)

// The groups under the names of client-go's clientset.

// CoreV1 has Nodes, Pods, Secrets and other kinds of the core group.
func (c *Client) CoreV1() *Core { return &c.Core }

// AppsV1 has the controllers of pods.
func (c *Client) AppsV1() *Apps { return &c.Apps }

// BatchV1 has Jobs.
func (c *Client) BatchV1() *Batch { return &c.Batch }

// PolicyV1 has PodDisruptionBudgets and the Eviction API.
func (c *Client) PolicyV1() *Policy { return &c.Policy }

// StorageV1 has storage classes, CSI drivers and attachments.
func (c *Client) StorageV1() *Storage { return &c.Storage }

// CoordinationV1 has Leases.
func (c *Client) CoordinationV1() *Coordination { return &c.Coordination }

// CertificatesV1 has certificate signing requests.
func (c *Client) CertificatesV1() *Certificates { return &c.Certificates }

// AuthenticationV1 has the review of the caller's own name.
func (c *Client) AuthenticationV1() *Authentication { return &c.Authentication }

// AuthorizationV1 has the reviews of rights.
func (c *Client) AuthorizationV1() *Authorization { return &c.Authorization }

// RbacV1 has ClusterRoleBindings.
func (c *Client) RbacV1() *Rbac { return &c.Rbac }

// DiscoveryV1 has EndpointSlices.
func (c *Client) DiscoveryV1() *Discovery { return &c.Discovery }

// NetworkingV1 has ServiceCIDRs.
func (c *Client) NetworkingV1() *Networking { return &c.Networking }

// NodeV1 has RuntimeClasses.
func (c *Client) NodeV1() *Node { return &c.Node }

// ResourceV1 has the kinds of dynamic resource allocation, of which DeviceTaintRules are v1beta2.
func (c *Client) ResourceV1() *Resource { return &c.Resource }

// IsWatchListSemanticsUnSupported is what client-go's Reflector asks.
func (c *Client) IsWatchListSemanticsUnSupported() bool { return c.Unstreamed }
