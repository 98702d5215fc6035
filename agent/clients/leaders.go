package clients

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
)

// Leaders reads the Nodes of the control plane, by each label that marks one: a selector cannot ask for either of two keys.
func Leaders(ctx context.Context, client *kube.Client) ([]corev1.Node, error) {
	var out []corev1.Node
	for _, label := range cluster.ControlPlaneLabels {
		list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: label})
		if err != nil {
			return nil, fmt.Errorf("read the leaders' Nodes: %w", err)
		}
		for _, n := range list.Items {
			if !slices.ContainsFunc(out, func(known corev1.Node) bool { return known.Name == n.Name }) {
				out = append(out, n)
			}
		}
	}
	return out, nil
}
