package userdata

import "github.com/autoscaler-agent/autoscaler-agent/agent/cluster"

// Spec is everything that the user data of one kind of worker depends on. The fields that JSON has
// stand in the script as one line, so that the same user data can be rendered for another version of
// Kubernetes (SpecOf). What the script holds anyway (join values, certificates, hooks, checksums) is read
// from there: EC2 takes few bytes, and nothing that only one of the two places has can differ.
type Spec struct {
	// Cloud says where the machine asks for its own name and provider ID: one of Clouds.
	Cloud string `json:"cloud"`
	// System is the operating system of the image: one of Systems, or "" for a script that
	// finds out at boot.
	System string `json:"os,omitempty"`
	// Arch is "amd64", "arm64", or "" for a script that holds the checksums of both.
	Arch string `json:"arch,omitempty"`
	// Format is one of Formats, or "" for the one that fits System.
	Format string `json:"-"`
	// KubernetesVersion is the version to install where it is missing, as "v1.36.3".
	KubernetesVersion string `json:"-"`
	// APIServerVersion is what the cluster's API server says of itself, "" where nobody knows
	// it: a version to install that may not join it is refused (Skew).
	APIServerVersion string `json:"-"`
	Join             Join   `json:"-"`
	// Reservation is what the kubelet keeps back. The agent computes a template's
	// allocatable from the same value, so the two cannot disagree (DESIGN 4.2).
	Reservation cluster.Reservation `json:"reservation"`
	// Labels are set by the kubelet at registration; only those that the
	// NodeRestriction admission plugin lets a kubelet set are accepted. Zone, region
	// and instance type are added by the script itself.
	Labels map[string]string `json:"labels,omitempty"`
	Taints []cluster.Taint   `json:"taints,omitempty"`
	// ClusterDNS overrides the cluster's own setting when it is not empty.
	ClusterDNS []string `json:"clusterDNS,omitempty"`
	// NodeIP says which of its addresses the kubelet registers, the first of them first: one of
	// NodeIPs; empty: the kubelet's own choice, which is one address, of IPv4 where there is one.
	NodeIP string `json:"nodeIP,omitempty"`
	// ExternalCloudProvider starts the kubelet with --cloud-provider=external, for a
	// cluster that runs a cloud controller manager.
	ExternalCloudProvider bool `json:"externalCloudProvider,omitempty"`
	// IgnorePreflight names checks of kubeadm whose failure only warns, for example
	// "SystemVerification" on a kernel with cgroup v1.
	IgnorePreflight []string `json:"ignorePreflight,omitempty"`
	// KubeadmAPIVersion is "v1beta3", "v1beta4", or "" for the one that fits
	// KubernetesVersion.
	KubeadmAPIVersion string    `json:"kubeadmAPIVersion,omitempty"`
	Downloads         Downloads `json:"downloads,omitzero"`
	Proxy             Proxy     `json:"proxy,omitzero"`
	// RegistryMirrors maps an image registry ("registry.k8s.io") to the address that
	// containerd asks first ("https://mirror.example.net").
	RegistryMirrors map[string]string `json:"registryMirrors,omitempty"`
	// ImageRepository has kubeadm's images, where it is not registry.k8s.io: containerd's
	// sandbox image comes from there.
	ImageRepository string `json:"imageRepository,omitempty"`
	// InstanceStore puts kubelet, containerd and logs on the machine's own NVMe disks: one of
	// InstanceStores, or "" for none.
	InstanceStore string `json:"instanceStore,omitempty"`
	// BeforeJoin and AfterJoin are scripts of the operator, each with its #! line. They run
	// as root, after the programs are installed and after the Node has joined.
	BeforeJoin []byte `json:"-"`
	AfterJoin  []byte `json:"-"`
}

// Join is what a machine needs to find and trust its cluster.
type Join struct {
	Endpoint     string   // host:port of the API server
	Token        string   // bootstrap token, "abcdef.0123456789abcdef", or TokenPlaceholder; empty with Attest
	CACertHashes []string // "sha256:" and 64 hex digits; any one of them may match
	// Attest is host:port of the leader's attest listener, or of each leader's with commas between them: the machine proves there which
	// instance it is and gets a token of its own (docs/attested-join.md). CACert holds the
	// cluster's CA certificates in PEM, by which it knows the listener. AWS only.
	Attest string
	CACert []byte
}

// Downloads says which programs are fetched where the image lacks them, and from where.
// Every file has a pinned checksum: from SHA256, else from Table, else from the table of
// this package (versions.txt).
type Downloads struct {
	// Mirrors are base addresses, tried in order in place of the publishers' sites. Below
	// one, a file has its publisher's address without the scheme:
	// https://mirror.example.net/dl.k8s.io/release/v1.36.3/bin/linux/amd64/kubelet.
	Mirrors []string `json:"mirrors,omitempty"`
	// Containerd, Runc, CNI and Crictl are versions, as "v2.3.4"; "" is the default that fits
	// KubernetesVersion.
	Containerd string `json:"containerd,omitempty"`
	Runc       string `json:"runc,omitempty"`
	CNI        string `json:"cni,omitempty"`
	Crictl     string `json:"crictl,omitempty"`
	// ECR is the version of ecr-credential-provider, by which the kubelet pulls images of ECR with
	// the machine's role; "" is none.
	ECR string `json:"ecr,omitempty"`
	// SHA256 pins files: "NAME/ARCH" (for example "kubelet/arm64") to 64 hex digits.
	SHA256 map[string]string `json:"-"`
	Table  Table             `json:"-"`
}

// Proxy is how the machine reaches other networks.
type Proxy struct {
	HTTP, HTTPS string   // addresses, as "http://proxy.example.net:3128"
	No          []string // names, domains and CIDRs that are reached directly, besides the built-in ones
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
