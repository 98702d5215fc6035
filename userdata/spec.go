package userdata

import "github.com/autoscaler-agent/autoscaler-agent/agent/cluster"

// Spec is everything that the script of one kind of worker depends on.
type Spec struct {
	// Cloud says where the machine asks for its own name and provider ID: one of Clouds.
	Cloud string
	// KubernetesVersion is the version to install where it is missing, as "v1.36.3".
	KubernetesVersion string
	Join              Join
	// Reservation is what the kubelet keeps back. The agent computes a template's
	// allocatable from the same value, so the two cannot disagree (DESIGN 4.2).
	Reservation cluster.Reservation
	// Labels are set by the kubelet at registration; only those that the
	// NodeRestriction admission plugin lets a kubelet set are accepted. Zone, region
	// and instance type are added by the script itself.
	Labels map[string]string
	Taints []cluster.Taint
	// ClusterDNS overrides the cluster's own setting when it is not empty.
	ClusterDNS []string
	// KubeadmAPIVersion is "v1beta3", "v1beta4", or "" for the one that fits
	// KubernetesVersion.
	KubeadmAPIVersion string
	Downloads         Downloads
}

// Join is what a machine needs to find and trust its cluster.
type Join struct {
	Endpoint     string   // host:port of the API server
	Token        string   // bootstrap token, "abcdef.0123456789abcdef", or TokenPlaceholder
	CACertHashes []string // "sha256:" and 64 hex digits; any one of them may match
}

// Downloads overrides where missing programs come from. A machine whose image
// holds them already downloads nothing. The zero value means upstream's own
// release sites and the checksum files published beside them.
type Downloads struct {
	KubernetesURL string // default https://dl.k8s.io/release; /vX.Y.Z/bin/linux/ARCH/NAME is appended
	CNI           Archive
	Containerd    Archive
	Runc          Archive
	// SHA256 pins files: "NAME/ARCH" (for example "kubelet/arm64", "cni/amd64") to 64
	// hex digits. A file that is not listed is checked against the checksum file
	// that is published next to it.
	SHA256 map[string]string
}

// Archive is one release file outside Kubernetes' own site.
type Archive struct {
	Version string // with its leading v
	URL     string // "{version}" (without v), "{tag}" (with v) and "{arch}" are replaced
}

// DefaultReservation is what a worker keeps back when nobody says otherwise: 100m
// CPU and 256 MiB each for the kubelet with its container runtime and for the
// system, the kubelet's own hard eviction thresholds, 110 pods.
func DefaultReservation() cluster.Reservation {
	return cluster.Reservation{
		Kube:                   cluster.Resources{MilliCPU: 100, Memory: 256 << 20},
		System:                 cluster.Resources{MilliCPU: 100, Memory: 256 << 20},
		Eviction:               cluster.Resources{Memory: 100 << 20},
		EvictionStoragePercent: 10,
		MaxPods:                110,
	}
}
