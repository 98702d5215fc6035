package kube

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

// New makes the Client of one API server. Its kinds share the connections and the rate of
// cfg.
func New(cfg *rest.Config) (*Client, error) {
	r, err := restClients(cfg)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	core, apps, storage := r[corev1.SchemeGroupVersion], r[appsv1.SchemeGroupVersion], r[storagev1.SchemeGroupVersion]
	devices := r[resourcev1.SchemeGroupVersion]
	policy, authorization := r[policyv1.SchemeGroupVersion], r[authorizationv1.SchemeGroupVersion]
	return &Client{
		REST: core, ServerVersion: serverVersion(core), Resources: resources(core),
		Core: Core{
			Nodes:                  global(core, "nodes", of[corev1.Node], of[corev1.NodeList]),
			Namespaces:             global(core, "namespaces", of[corev1.Namespace], of[corev1.NamespaceList]),
			PersistentVolumes:      global(core, "persistentvolumes", of[corev1.PersistentVolume], of[corev1.PersistentVolumeList]),
			PersistentVolumeClaims: namespaced(core, "persistentvolumeclaims", of[corev1.PersistentVolumeClaim], of[corev1.PersistentVolumeClaimList]),
			Pods:                   namespaced(core, "pods", of[corev1.Pod], of[corev1.PodList]),
			Secrets:                namespaced(core, "secrets", of[corev1.Secret], of[corev1.SecretList]),
			ConfigMaps:             namespaced(core, "configmaps", of[corev1.ConfigMap], of[corev1.ConfigMapList]),
			Services:               namespaced(core, "services", of[corev1.Service], of[corev1.ServiceList]),
			Events:                 namespaced(core, "events", of[corev1.Event], of[corev1.EventList]),
			LimitRanges:            namespaced(core, "limitranges", of[corev1.LimitRange], of[corev1.LimitRangeList]),
			ResourceQuotas:         namespaced(core, "resourcequotas", of[corev1.ResourceQuota], of[corev1.ResourceQuotaList]),
		},
		Apps: Apps{
			DaemonSets:   namespaced(apps, "daemonsets", of[appsv1.DaemonSet], of[appsv1.DaemonSetList]),
			ReplicaSets:  namespaced(apps, "replicasets", of[appsv1.ReplicaSet], of[appsv1.ReplicaSetList]),
			StatefulSets: namespaced(apps, "statefulsets", of[appsv1.StatefulSet], of[appsv1.StatefulSetList]),
		},
		Batch: Batch{Jobs: namespaced(r[batchv1.SchemeGroupVersion], "jobs", of[batchv1.Job], of[batchv1.JobList])},
		Policy: Policy{
			PodDisruptionBudgets: namespaced(policy, "poddisruptionbudgets", of[policyv1.PodDisruptionBudget], of[policyv1.PodDisruptionBudgetList]),
			Evictions:            func(string) Evictor { return evictor{policy} },
		},
		Storage: Storage{
			StorageClasses:    global(storage, "storageclasses", of[storagev1.StorageClass], of[storagev1.StorageClassList]),
			CSIDrivers:        global(storage, "csidrivers", of[storagev1.CSIDriver], of[storagev1.CSIDriverList]),
			CSINodes:          global(storage, "csinodes", of[storagev1.CSINode], of[storagev1.CSINodeList]),
			VolumeAttachments: global(storage, "volumeattachments", of[storagev1.VolumeAttachment], of[storagev1.VolumeAttachmentList]),
		},
		Coordination: Coordination{Leases: namespaced(r[coordinationv1.SchemeGroupVersion], "leases", of[coordinationv1.Lease], of[coordinationv1.LeaseList])},
		Certificates: Certificates{CertificateSigningRequests: func() Requests { return newRequests(r[certificatesv1.SchemeGroupVersion]) }},
		Authentication: Authentication{
			SelfSubjectReviews: reviews(r[authenticationv1.SchemeGroupVersion], "selfsubjectreviews", of[authenticationv1.SelfSubjectReview]),
		},
		Authorization: Authorization{
			SelfSubjectAccessReviews: reviews(authorization, "selfsubjectaccessreviews", of[authorizationv1.SelfSubjectAccessReview]),
			SubjectAccessReviews:     reviews(authorization, "subjectaccessreviews", of[authorizationv1.SubjectAccessReview]),
		},
		Rbac:       Rbac{ClusterRoleBindings: global(r[rbacv1.SchemeGroupVersion], "clusterrolebindings", of[rbacv1.ClusterRoleBinding], of[rbacv1.ClusterRoleBindingList])},
		Discovery:  Discovery{EndpointSlices: namespaced(r[discoveryv1.SchemeGroupVersion], "endpointslices", of[discoveryv1.EndpointSlice], of[discoveryv1.EndpointSliceList])},
		Networking: Networking{ServiceCIDRs: global(r[networkingv1.SchemeGroupVersion], "servicecidrs", of[networkingv1.ServiceCIDR], of[networkingv1.ServiceCIDRList])},
		Node:       Node{RuntimeClasses: global(r[nodev1.SchemeGroupVersion], "runtimeclasses", of[nodev1.RuntimeClass], of[nodev1.RuntimeClassList])},
		Resource: Resource{
			DeviceClasses:          global(devices, "deviceclasses", of[resourcev1.DeviceClass], of[resourcev1.DeviceClassList]),
			DeviceTaintRules:       global(r[resourcev1beta2.SchemeGroupVersion], "devicetaintrules", of[resourcev1beta2.DeviceTaintRule], of[resourcev1beta2.DeviceTaintRuleList]),
			ResourceSlices:         global(devices, "resourceslices", of[resourcev1.ResourceSlice], of[resourcev1.ResourceSliceList]),
			ResourceClaims:         namespaced(devices, "resourceclaims", of[resourcev1.ResourceClaim], of[resourcev1.ResourceClaimList]),
			ResourceClaimTemplates: namespaced(devices, "resourceclaimtemplates", of[resourcev1.ResourceClaimTemplate], of[resourcev1.ResourceClaimTemplateList]),
		},
	}, nil
}

// restClients makes one REST client for each group version of Scheme, on one transport
// and one rate limiter.
func restClients(cfg *rest.Config) (map[schema.GroupVersion]*rest.RESTClient, error) {
	shared := rest.CopyConfig(cfg)
	if shared.UserAgent == "" {
		shared.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	if shared.RateLimiter == nil && shared.QPS > 0 {
		shared.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(shared.QPS, shared.Burst)
	}
	transport, err := rest.HTTPClientFor(shared)
	if err != nil {
		return nil, err
	}
	out := map[schema.GroupVersion]*rest.RESTClient{}
	for _, version := range Scheme.PrioritizedVersionsAllGroups() {
		own := *shared
		own.GroupVersion, own.APIPath = &version, "/apis"
		if version.Group == "" {
			own.APIPath = "/api"
		}
		own.NegotiatedSerializer = rest.CodecFactoryForGeneratedClient(Scheme, codecs).WithoutConversion()
		if out[version], err = rest.RESTClientForConfigAndClient(&own, transport); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func of[T any]() *T { return new(T) }

func namespaced[T object, L runtime.Object](r rest.Interface, name string, one func() T, list func() L) func(string) Kind[T, L] {
	return func(namespace string) Kind[T, L] { return resource[T, L]{r, name, namespace, one, list} }
}

func global[T object, L runtime.Object](r rest.Interface, name string, one func() T, list func() L) func() Kind[T, L] {
	return func() Kind[T, L] { return resource[T, L]{r, name, "", one, list} }
}

func reviews[T object](r rest.Interface, name string, one func() T) func() Creator[T] {
	return func() Creator[T] { return resource[T, *metav1.List]{r, name, "", one, nil} }
}

// requests adds the subresource approval.
type requests struct {
	resource[*certificatesv1.CertificateSigningRequest, *certificatesv1.CertificateSigningRequestList]
}

func newRequests(r rest.Interface) Requests {
	return requests{resource[*certificatesv1.CertificateSigningRequest, *certificatesv1.CertificateSigningRequestList]{
		r, "certificatesigningrequests", "", of[certificatesv1.CertificateSigningRequest], of[certificatesv1.CertificateSigningRequestList]}}
}

// UpdateApproval implements Requests. A request's name is given twice, as in client-go.
func (c requests) UpdateApproval(ctx context.Context, _ string, csr *certificatesv1.CertificateSigningRequest, o metav1.UpdateOptions) (*certificatesv1.CertificateSigningRequest, error) {
	return c.put(ctx, csr, o, "approval")
}

type evictor struct{ rest rest.Interface }

// Evict implements Evictor.
func (e evictor) Evict(ctx context.Context, eviction *policyv1.Eviction) error {
	return e.rest.Post().AbsPath("/api/v1").Namespace(eviction.Namespace).Resource("pods").Name(eviction.Name).SubResource("eviction").Body(eviction).Do(ctx).Error()
}

func serverVersion(r rest.Interface) func(context.Context) (*version.Info, error) {
	return func(ctx context.Context) (*version.Info, error) {
		return getJSON[version.Info](ctx, r, "/version")
	}
}

func resources(r rest.Interface) func(context.Context, string) (*metav1.APIResourceList, error) {
	return func(ctx context.Context, groupVersion string) (*metav1.APIResourceList, error) {
		if groupVersion == "v1" {
			return getJSON[metav1.APIResourceList](ctx, r, "/api/v1")
		}
		return getJSON[metav1.APIResourceList](ctx, r, "/apis/"+groupVersion)
	}
}

func getJSON[T any](ctx context.Context, r rest.Interface, path string) (*T, error) {
	answer := r.Get().AbsPath(path).SetHeader("Accept", "application/json").Do(ctx)
	if err := answer.Error(); err != nil { // with the server's own text
		return nil, err
	}
	raw, err := answer.Raw()
	if err != nil {
		return nil, err
	}
	out := new(T)
	if err := json.Unmarshal(raw, out); err != nil {
		return nil, fmt.Errorf("read the answer to %s: %w", path, err)
	}
	return out, nil
}
