package kube

import (
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
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

// Scheme knows the kinds that the agent reads or writes, and no other of their groups: a
// kind that is registered costs memory whether or not anything uses it.
var Scheme = newScheme()

// codecs reads and writes the kinds of Scheme.
var codecs = serializer.NewCodecFactory(Scheme)

var parameters = runtime.NewParameterCodec(Scheme)

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	metav1.AddToGroupVersion(s, schema.GroupVersion{Version: "v1"}) // Status, for every group
	add := func(version schema.GroupVersion, kinds ...runtime.Object) {
		s.AddKnownTypes(version, kinds...)
		metav1.AddToGroupVersion(s, version)
	}
	add(corev1.SchemeGroupVersion, &corev1.Node{}, &corev1.NodeList{}, &corev1.Pod{}, &corev1.PodList{}, &corev1.Secret{}, &corev1.SecretList{},
		&corev1.ConfigMap{}, &corev1.ConfigMapList{}, &corev1.Service{}, &corev1.Event{}, &corev1.Namespace{}, &corev1.NamespaceList{},
		&corev1.PersistentVolume{}, &corev1.PersistentVolumeList{}, &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolumeClaimList{},
		&corev1.LimitRange{}, &corev1.LimitRangeList{}, &corev1.ResourceQuota{}, &corev1.ResourceQuotaList{})
	add(appsv1.SchemeGroupVersion, &appsv1.DaemonSet{}, &appsv1.DaemonSetList{}, &appsv1.ReplicaSet{}, &appsv1.ReplicaSetList{},
		&appsv1.StatefulSet{}, &appsv1.StatefulSetList{})
	add(batchv1.SchemeGroupVersion, &batchv1.Job{}, &batchv1.JobList{})
	add(policyv1.SchemeGroupVersion, &policyv1.PodDisruptionBudget{}, &policyv1.PodDisruptionBudgetList{}, &policyv1.Eviction{})
	add(storagev1.SchemeGroupVersion, &storagev1.StorageClass{}, &storagev1.StorageClassList{}, &storagev1.CSIDriver{}, &storagev1.CSIDriverList{},
		&storagev1.CSINode{}, &storagev1.CSINodeList{}, &storagev1.VolumeAttachment{}, &storagev1.VolumeAttachmentList{})
	add(coordinationv1.SchemeGroupVersion, &coordinationv1.Lease{}, &coordinationv1.LeaseList{})
	add(certificatesv1.SchemeGroupVersion, &certificatesv1.CertificateSigningRequest{}, &certificatesv1.CertificateSigningRequestList{})
	add(authenticationv1.SchemeGroupVersion, &authenticationv1.SelfSubjectReview{})
	add(authorizationv1.SchemeGroupVersion, &authorizationv1.SelfSubjectAccessReview{}, &authorizationv1.SubjectAccessReview{})
	add(rbacv1.SchemeGroupVersion, &rbacv1.ClusterRoleBinding{}, &rbacv1.ClusterRoleBindingList{})
	add(discoveryv1.SchemeGroupVersion, &discoveryv1.EndpointSlice{}, &discoveryv1.EndpointSliceList{})
	add(networkingv1.SchemeGroupVersion, &networkingv1.ServiceCIDR{}, &networkingv1.ServiceCIDRList{})
	add(nodev1.SchemeGroupVersion, &nodev1.RuntimeClass{}, &nodev1.RuntimeClassList{})
	add(resourcev1.SchemeGroupVersion, &resourcev1.DeviceClass{}, &resourcev1.DeviceClassList{}, &resourcev1.ResourceSlice{}, &resourcev1.ResourceSliceList{},
		&resourcev1.ResourceClaim{}, &resourcev1.ResourceClaimList{}, &resourcev1.ResourceClaimTemplate{}, &resourcev1.ResourceClaimTemplateList{})
	add(resourcev1beta2.SchemeGroupVersion, &resourcev1beta2.DeviceTaintRule{}, &resourcev1beta2.DeviceTaintRuleList{})
	return s
}
