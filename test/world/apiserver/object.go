package apiserver

import (
	"bytes"
	"reflect"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
)

var protobufs = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)

// encode is the protobuf form of an object or a list.
func encode(o runtime.Object) []byte {
	var out bytes.Buffer
	if err := protobufs.Encode(o, &out); err != nil {
		panic(err) // each kind has one
	}
	return out.Bytes()
}

// bytes is encode, once for each version. The caller holds the server's lock.
func (e *entry) bytes() []byte {
	if e.proto == nil {
		e.proto = encode(e.Object)
	}
	return e.proto
}

// part is a field of an object, such as Status; an invalid Value where it has none.
func part(o Object, name string) reflect.Value { return reflect.ValueOf(o).Elem().FieldByName(name) }

// merged is what an update makes of was: a status stays as it was in an update of the object, and
// everything else in an update of the status.
func merged(k kind, was, now Object, subresource string) Object {
	switch subresource {
	case "":
		if k.status && k.plural != "services" {
			part(now, "Status").Set(part(was.DeepCopyObject().(Object), "Status"))
		}
		return now
	case "approval":
		out := was.DeepCopyObject().(*certificatesv1.CertificateSigningRequest)
		out.Status.Conditions = now.(*certificatesv1.CertificateSigningRequest).Status.Conditions
		return out
	}
	out := was.DeepCopyObject().(Object)
	if csr, ok := now.(*certificatesv1.CertificateSigningRequest); ok {
		out.(*certificatesv1.CertificateSigningRequest).Status.Certificate = csr.Status.Certificate
		return out
	}
	part(out, "Status").Set(part(now, "Status"))
	return out
}

// changedSpec tells whether the generation moves.
func changedSpec(was, now Object) bool {
	a, b := part(was, "Spec"), part(now, "Spec")
	return a.IsValid() && !reflect.DeepEqual(a.Interface(), b.Interface())
}

// graceOf is the grace period of a deletion in seconds: only a pod on a node has one.
func graceOf(o Object, d metav1.DeleteOptions) int64 {
	pod, ok := o.(*corev1.Pod)
	if !ok || pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return 0
	}
	if d.GracePeriodSeconds != nil {
		return *d.GracePeriodSeconds
	}
	if s := pod.Spec.TerminationGracePeriodSeconds; s != nil {
		return *s
	}
	return 30
}

// listOf is the list of some objects at a version.
func listOf(k kind, objects []Object, version, next string) runtime.Object {
	list, err := scheme.Scheme.New(k.WithKind(k.kind + "List"))
	if err != nil {
		panic(err) // each kind has one
	}
	list.GetObjectKind().SetGroupVersionKind(k.WithKind(k.kind + "List"))
	items := reflect.ValueOf(list).Elem().FieldByName("Items")
	items.Set(reflect.MakeSlice(items.Type(), 0, len(objects)))
	for _, o := range objects {
		items.Set(reflect.Append(items, reflect.ValueOf(o).Elem()))
	}
	meta := list.(metav1.ListInterface)
	meta.SetResourceVersion(version)
	meta.SetContinue(next)
	return list
}
