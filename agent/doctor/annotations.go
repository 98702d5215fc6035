package doctor

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/internal/apierror"
	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
)

// Pods are listed so many at once, and so many of them are named.
const (
	podsAtOnce = 500
	podsNamed  = 3
)

// checkAnnotations looks for pods whose annotation safe-to-evict says nothing: they keep their nodes. There is a finding
// only if there are some.
func checkAnnotations(ctx context.Context, client *kube.Client) []Finding {
	const about = "annotations"
	var named []string
	found := 0
	for from := ""; ; {
		list, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{Limit: podsAtOnce, Continue: from})
		if err != nil {
			text, remedy := apierror.Explain(err)
			return []Finding{{Level: LevelWarning, About: about, Text: "pods cannot be listed: " + text, Remedy: remedy}}
		}
		for i := range list.Items {
			p := &list.Items[i]
			value := p.Annotations[cluster.AnnotationSafeToEvict]
			if cluster.KnownSafeToEvict(value) {
				continue
			}
			if found++; found <= podsNamed {
				named = append(named, fmt.Sprintf("%s/%s (%q)", p.Namespace, p.Name, value))
			}
		}
		if from = list.Continue; from == "" {
			break
		}
	}
	if found == 0 {
		return nil
	}
	if more := found - len(named); more > 0 {
		named = append(named, fmt.Sprintf("%d more", more))
	}
	return []Finding{{Level: LevelWarning, About: about, Text: fmt.Sprintf("%s of %s is none of true, false and %s, so that no drain evicts the pod and its node stays", cluster.AnnotationSafeToEvict, strings.Join(named, ", "), cluster.SafeOnCompletion),
		Remedy: "correct the value in the template of the pods' controller"}}
}
