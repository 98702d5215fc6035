package userdata

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// kubeletPatch is a kubeadm patch of the cluster's KubeletConfiguration. It is a
// patch because kubeadm join ignores a KubeletConfiguration document in the file
// that it is given. The text goes into an unquoted here-document.
//
// A kubelet whose evictionHard is set does not add its defaults for the signals
// that are missing there, so all five are written.
func (s Spec) kubeletPatch() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	r := s.Reservation
	line("apiVersion: kubelet.config.k8s.io/v1beta1")
	line("kind: KubeletConfiguration")
	line("providerID: \"%s\"", places[s.Cloud].providerID)
	line("serverTLSBootstrap: true")
	line("rotateCertificates: true")
	line("maxPods: %d", r.MaxPods)
	line("kubeReserved: {%s}", amounts(r.Kube))
	line("systemReserved: {%s}", amounts(r.System))
	line("evictionHard:")
	line("  memory.available: %q", size(r.Eviction.Memory))
	storage := strconv.FormatInt(r.EvictionStoragePercent, 10) + "%"
	if r.Eviction.EphemeralStorage != 0 || r.EvictionStoragePercent == 0 {
		storage = size(r.Eviction.EphemeralStorage)
	}
	line("  nodefs.available: %q", storage)
	line(`  nodefs.inodesFree: "5%%"`)
	line(`  imagefs.available: "15%%"`)
	line(`  imagefs.inodesFree: "5%%"`)
	if len(s.ClusterDNS) > 0 {
		line("clusterDNS:")
		for _, a := range s.ClusterDNS {
			line("  - %s", hereYAML(a))
		}
	}
	return b.String()
}

func amounts(r cluster.Resources) string {
	var out []string
	if r.MilliCPU != 0 {
		out = append(out, fmt.Sprintf("cpu: %q", strconv.FormatInt(r.MilliCPU, 10)+"m"))
	}
	if r.Memory != 0 {
		out = append(out, fmt.Sprintf("memory: %q", size(r.Memory)))
	}
	if r.EphemeralStorage != 0 {
		out = append(out, fmt.Sprintf("ephemeral-storage: %q", size(r.EphemeralStorage)))
	}
	return strings.Join(out, ", ")
}

// size writes bytes as a Kubernetes quantity without losing any.
func size(bytes int64) string {
	for _, u := range []struct {
		shift uint
		name  string
	}{{30, "Gi"}, {20, "Mi"}, {10, "Ki"}} {
		if n := bytes >> u.shift; n != 0 && n<<u.shift == bytes {
			return strconv.FormatInt(n, 10) + u.name
		}
	}
	return strconv.FormatInt(bytes, 10)
}
