package doctor

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/nojoin"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe/convert"
	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
)

// checkNodes judges the versions of the Nodes' kubelets beside the API server's, and names the
// Nodes that get no news because their machines answer under other names.
func checkNodes(ctx context.Context, client *kube.Client, server string) []Finding {
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil // checkRights has said so
	}
	nodes := make([]*cluster.Node, 0, len(list.Items))
	for i := range list.Items {
		n := convert.Node(&list.Items[i])
		nodes = append(nodes, &n)
	}
	out := kubeletVersions(nodes, server)
	for _, n := range nodes {
		if other := nojoin.Renamed(nodes, n); other != "" {
			out = append(out, Finding{Level: LevelError, About: "node " + string(n.Name), Text: nojoin.RenamedText(n.Name, other), Remedy: nojoin.RenamedRemedy})
		}
	}
	return out
}
