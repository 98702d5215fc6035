package convert

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ownsTaints is what is kept of a managedFields entry that owns spec.taints.
var ownsTaints = metav1.NewFieldsV1(`{"f:spec":{"f:taints":{}}}`)

// taintOwners keeps of the managedFields of a Node who wrote its taints: manager and time.
func taintOwners(n *corev1.Node) (kept []metav1.ManagedFieldsEntry) {
	if len(n.Spec.Taints) == 0 {
		return nil
	}
	for _, m := range n.ManagedFields {
		if m.FieldsV1 == nil || !bytes.Contains(m.FieldsV1.GetRawBytes(), []byte(`"f:taints"`)) {
			continue
		}
		var fields struct {
			Spec struct {
				Taints json.RawMessage `json:"f:taints"`
			} `json:"f:spec"`
		}
		if json.Unmarshal(m.FieldsV1.GetRawBytes(), &fields) == nil && fields.Spec.Taints != nil {
			kept = append(kept, metav1.ManagedFieldsEntry{Manager: m.Manager, Operation: m.Operation, Time: m.Time, FieldsV1: ownsTaints})
		}
	}
	return fitting(slices.Clip(kept), (*metav1.ManagedFieldsEntry).Size)
}

// PersonTaints reports whether a person wrote the taints of a Node last, as far as the API server
// tells. The API server tracks the list of taints as one field: it names only the manager of the last change, also where earlier taints are of other managers.
func PersonTaints(n *corev1.Node) bool {
	owners := taintOwners(n)
	if len(owners) == 0 {
		return false
	}
	last := slices.MaxFunc(owners, func(a, b metav1.ManagedFieldsEntry) int {
		switch {
		case a.Time == nil || b.Time == nil:
			return 0
		default:
			return a.Time.Compare(b.Time.Time)
		}
	})
	return person(last.Manager)
}

// personsClients are how the managers of clients begin that a person works with: a manager is the
// name in the client's User-Agent. Kubelets and controllers have the names of their own programs.
var personsClients = []string{"kubectl", "k9s", "Lens", "OpenLens", "Headlamp", "Mozilla", "node-fetch"}

func person(manager string) bool {
	return slices.ContainsFunc(personsClients, func(p string) bool { return strings.HasPrefix(manager, p) })
}
