package kube

import (
	"context"

	certificatesv1 "k8s.io/api/certificates/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// Lister lists and watches the objects of one kind.
type Lister[L any] interface {
	List(ctx context.Context, o metav1.ListOptions) (L, error)
	Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error)
}

// Kind reads and writes the objects of one kind, of one namespace if they are in one. T and
// L are the pointer types of an object and of a list.
type Kind[T, L any] interface {
	Lister[L]
	Creator[T]
	Get(ctx context.Context, name string, o metav1.GetOptions) (T, error)
	Update(ctx context.Context, object T, o metav1.UpdateOptions) (T, error)
	Patch(ctx context.Context, name string, as types.PatchType, patch []byte, o metav1.PatchOptions, subresources ...string) (T, error)
	Delete(ctx context.Context, name string, o metav1.DeleteOptions) error
}

// Creator sends one object: a review, to which the answer is the object with its status.
type Creator[T any] interface {
	Create(ctx context.Context, object T, o metav1.CreateOptions) (T, error)
}

// Requests are the certificate signing requests.
type Requests interface {
	Kind[*certificatesv1.CertificateSigningRequest, *certificatesv1.CertificateSigningRequestList]
	UpdateApproval(ctx context.Context, name string, csr *certificatesv1.CertificateSigningRequest, o metav1.UpdateOptions) (*certificatesv1.CertificateSigningRequest, error)
}

// Evictor asks the Eviction API.
type Evictor interface {
	Evict(ctx context.Context, e *policyv1.Eviction) error
}
