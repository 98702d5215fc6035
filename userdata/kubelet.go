package userdata

import (
	"strconv"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// kubeletPatch is a kubeadm patch of the cluster's KubeletConfiguration. It is a
// patch because kubeadm join ignores a KubeletConfiguration document in the file
// that it is given.
//
// A kubelet whose evictionHard is set does not add its defaults for the signals
// that are missing there, so all five are written.
func (s Spec) kubeletPatch() object {
	r := s.Reservation
	storage := strconv.FormatInt(r.EvictionStoragePercent, 10) + "%"
	if r.Eviction.EphemeralStorage != 0 || r.EvictionStoragePercent == 0 {
		storage = size(r.Eviction.EphemeralStorage)
	}
	patch := object{
		"apiVersion":         "kubelet.config.k8s.io/v1beta1",
		"kind":               "KubeletConfiguration",
		"providerID":         places[s.Cloud].providerID,
		"serverTLSBootstrap": true,
		"rotateCertificates": true,
		"maxPods":            r.MaxPods,
		"kubeReserved":       amounts(r.Kube),
		"systemReserved":     amounts(r.System),
		"evictionHard": map[string]string{
			"memory.available":   size(r.Eviction.Memory),
			"nodefs.available":   storage,
			"nodefs.inodesFree":  "5%",
			"imagefs.available":  "15%",
			"imagefs.inodesFree": "5%",
		},
	}
	if len(s.ClusterDNS) > 0 {
		patch["clusterDNS"] = s.ClusterDNS
	}
	if s.System == "flatcar" { // the kubelet's own default lies in /usr, which is read-only there
		patch["volumePluginDir"] = "/opt/libexec/kubernetes/kubelet-plugins/volume/exec/"
	}
	return patch
}

func amounts(r cluster.Resources) map[string]string {
	out := map[string]string{}
	if r.MilliCPU != 0 {
		out["cpu"] = strconv.FormatInt(r.MilliCPU, 10) + "m"
	}
	if r.Memory != 0 {
		out["memory"] = size(r.Memory)
	}
	if r.EphemeralStorage != 0 {
		out["ephemeral-storage"] = size(r.EphemeralStorage)
	}
	return out
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
