package volumes

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// Use is how one pod uses volumes.
type Use struct {
	uid           cluster.UID
	node          cluster.NodeName
	inline        []cluster.Volume
	notUnderstood []string // what the pod's class lists as not understood without its claims
	claims        []claimUse
}

type claimUse struct {
	claim     string // "namespace/name"
	ephemeral bool
}

// PodUse returns how a pod uses volumes.
func PodUse(p *corev1.Pod) Use {
	out := Use{uid: cluster.UID(p.UID), node: cluster.NodeName(p.Spec.NodeName)}
	for i := range p.Spec.Volumes {
		v := &p.Spec.Volumes[i]
		switch {
		case v.PersistentVolumeClaim != nil:
			out.claims = append(out.claims, claimUse{claim: p.Namespace + "/" + v.PersistentVolumeClaim.ClaimName})
		case v.Ephemeral != nil:
			out.claims = append(out.claims, claimUse{claim: p.Namespace + "/" + p.Name + "-" + v.Name, ephemeral: true})
		default:
			if a := attachedInline(v); a.driver != "" {
				out.inline = append(out.inline, cluster.Volume{Driver: a.driver, Handle: a.handle})
			}
		}
	}
	return out
}
