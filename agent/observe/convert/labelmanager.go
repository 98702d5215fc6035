package convert

import (
	"encoding/json"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// kubelet is the manager of what a kubelet writes: the name in its User-Agent.
const kubelet = "kubelet"

// KubeletLabels are the labels that a Node's kubelet wrote, as far as the API server tells: the machine registered with them
// (--node-labels), and so will the next one of its group. Those that every kubelet writes are left out.
func KubeletLabels(n *corev1.Node) map[string]string {
	out := map[string]string{}
	for _, m := range n.ManagedFields {
		if m.Manager != kubelet || m.Subresource != "" || m.FieldsV1 == nil {
			continue
		}
		var fields struct {
			Metadata struct {
				Labels map[string]json.RawMessage `json:"f:labels"`
			} `json:"f:metadata"`
		}
		if json.Unmarshal(m.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		for key := range fields.Metadata.Labels {
			key = strings.TrimPrefix(key, "f:")
			value, has := n.Labels[key]
			if has && !strings.HasPrefix(key, "kubernetes.io/") && !strings.HasPrefix(key, "beta.kubernetes.io/") {
				out[key] = value
			}
		}
	}
	return out
}

// labelOwner keeps of the managedFields of a Node what KubeletLabels reads.
func labelOwner(n *corev1.Node) []metav1.ManagedFieldsEntry {
	owned := map[string]struct{}{}
	for key := range KubeletLabels(n) {
		owned["f:"+key] = struct{}{}
	}
	if len(owned) == 0 {
		return nil
	}
	raw, err := json.Marshal(map[string]any{"f:metadata": map[string]any{"f:labels": owned}})
	if err != nil {
		return nil
	}
	return fitting([]metav1.ManagedFieldsEntry{{Manager: kubelet, Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(string(raw))}}, (*metav1.ManagedFieldsEntry).Size)
}
