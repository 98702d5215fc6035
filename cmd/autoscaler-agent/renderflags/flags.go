// Package renderflags are the flags of userdata render and userdata downloads, and the user data that they ask for.
//
// It refuses to guess a flag that was not given, to mix the settings of user data with flags (--from), and to
// print or to write anything.
package renderflags

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/bootstrap/attest"
	"github.com/autoscaler-agent/autoscaler-agent/cmd/autoscaler-agent/flagvalue"
	"github.com/autoscaler-agent/autoscaler-agent/cmd/autoscaler-agent/joinfile"
	"github.com/autoscaler-agent/autoscaler-agent/userdata"
)

// Flags are the flags of userdata render.
type Flags struct {
	flags *pflag.FlagSet

	envFile *string
	from    string
	// Those that leader-config declares by other words.
	Endpoint, Version, System, Arch, NodeIP, BeforeJoin, AfterJoin string

	joinFile, cloud, dns, format, instanceStore, attest, caFile  string
	mirrors, noProxy, versions, ignorePreflight, imageRepository string

	sharedToken, externalCloud bool

	server          joinfile.Server
	serverVersion   string // or ""
	downloads       userdata.Downloads
	proxy           userdata.Proxy
	hooks           [2][]byte // before and after the join
	caCert          []byte    // of caFile, with --attest
	registryMirrors flagvalue.Pairs
	checksums       flagvalue.Pairs

	labels   flagvalue.Labels
	taints   flagvalue.Taints
	reserved cluster.Reservation
}

// New declares the flags of userdata render, but for --out.
func New(c *cobra.Command, envFile *string) *Flags {
	f := &Flags{flags: c.Flags(), envFile: envFile, reserved: userdata.DefaultReservation()}
	f.flags.StringVar(&f.joinFile, "join-file", joinfile.Default, "`file` with JOIN_TOKEN, JOIN_CERT_HASH, JOIN_ENDPOINT and JOIN_KUBERNETES_VERSION")
	f.flags.StringVar(&f.from, "from", "", "render user data of a `file` (- for standard input) once more, with its own settings and join values, for --kubernetes-version (default the API server's version)")
	f.flags.StringVar(&f.cloud, "cloud", "aws", "`cloud` that the machines run in: "+strings.Join(userdata.Clouds(), " or "))
	f.flags.BoolVar(&f.sharedToken, "shared-token", false, "on openstack, write the published join token into the user data; without it the agent mints a token for each server")
	f.flags.StringVar(&f.Version, "kubernetes-version", "", "`version` to install where it is missing, for example v1.36.3 (default JOIN_KUBERNETES_VERSION)")
	f.server.Declare(c)
	f.flags.StringVar(&f.Endpoint, "endpoint", "", "`host:port` of the API server (default JOIN_ENDPOINT)")
	f.flags.StringVar(&f.attest, "attest", "", "`host:port` of the leader's attest listener, of several leaders each with commas: the machine proves there which instance it is and gets its join token, and the user data holds no secret (AWS only)")
	f.flags.StringVar(&f.caFile, "ca-file", attest.AuthorityFile, "with --attest, `file` with the cluster's CA certificate, which signed the listener's")
	c.MarkFlagsMutuallyExclusive("attest", "shared-token")
	f.flags.StringVar(&f.dns, "cluster-dns", "", "comma-separated `addresses` of the cluster's DNS (default the cluster's own setting)")
	f.flags.StringVar(&f.System, "os", "", "operating `system` of the image: "+strings.Join(userdata.Systems(), ", ")+" (default a script that finds out at boot)")
	f.flags.StringVar(&f.Arch, "arch", "", "`architecture` of the machines: amd64 or arm64 (default both)")
	f.flags.StringVar(&f.format, "format", "", "`form` of the user data: "+strings.Join(userdata.Formats(), ", ")+" (default ignition for flatcar, else script)")
	f.ecrFlag()
	f.flags.StringVar(&f.instanceStore, "instance-store", "", "put kubelet, containerd and logs on the machine's own NVMe disks: "+strings.Join(userdata.InstanceStores, " or ")+" (`level`, AWS only)")
	f.flags.StringVar(&f.NodeIP, "node-ip", "", "which addresses of the machine its Node has, by `families` in their order: "+strings.Join(userdata.NodeIPs, ", ")+" (default one, which the kubelet chooses)")
	f.flags.BoolVar(&f.externalCloud, "external-cloud-provider", false, "start the kubelet with --cloud-provider=external, for a cluster with a cloud controller manager")
	f.flags.StringVar(&f.imageRepository, "image-repository", "", "`registry` with kubeadm's images in place of registry.k8s.io, as the cluster's own (leader-config --image-repository): the sandbox image comes from there")
	f.flags.StringVar(&f.ignorePreflight, "ignore-preflight-errors", "", "comma-separated `checks` of kubeadm whose failure only warns")
	f.flags.StringVar(&f.BeforeJoin, "before-join", "", "`file` with a script that runs as root when the programs are installed")
	f.flags.StringVar(&f.AfterJoin, "after-join", "", "`file` with a script that runs as root when the Node has joined")
	f.downloadFlags()
	f.flags.Var(&f.labels, "label", "Node label `key=value`; may be repeated")
	f.flags.Var(&f.taints, "taint", "Node taint `key[=value]:effect`; may be repeated")
	f.flags.Int64Var(&f.reserved.MaxPods, "max-pods", f.reserved.MaxPods, "largest number of `pods` on a machine")
	f.flags.Var(flagvalue.Amounts{Of: &f.reserved.Kube}, "kube-reserved", "`amounts` reserved for the kubelet, as cpu=100m,memory=256Mi")
	f.flags.Var(flagvalue.Amounts{Of: &f.reserved.System}, "system-reserved", "`amounts` reserved for the system")
	f.flags.Var(flagvalue.Eviction{Of: &f.reserved}, "eviction-hard", "`amounts` below which the kubelet evicts, as memory.available=100Mi,nodefs.available=10%")
	return f
}

// Words are the flags that take one of a few words.
func Words() map[string][]string {
	return map[string][]string{
		"cloud": userdata.Clouds(), "os": userdata.Systems(), "arch": userdata.Arches, "format": userdata.Formats(), "instance-store": userdata.InstanceStores, "node-ip": userdata.NodeIPs,
	}
}

// NewLeader declares the flags of leader-config that are a worker's, too.
func NewLeader(c *cobra.Command) *Flags {
	f := &Flags{flags: c.Flags()}
	f.downloadFlags()
	return f
}

// NewDownloads declares the flags of userdata downloads.
func NewDownloads(c *cobra.Command) *Flags {
	f := &Flags{flags: c.Flags(), cloud: "aws"}
	f.flags.StringVar(&f.Version, "kubernetes-version", "", "`version` of Kubernetes, for example v1.36.3")
	f.flags.StringVar(&f.Arch, "arch", "", "`architecture` of the machines: amd64 or arm64 (default both)")
	f.ecrFlag()
	f.downloadFlags()
	return f
}

func (f *Flags) ecrFlag() {
	f.flags.StringVar(&f.downloads.ECR, "ecr-credential-provider", "", "`version` of the program by which the kubelet pulls images of ECR with the machine's role, as v1.29.0 (default none; AWS only)")
}

// downloadFlags say what is fetched, from where and through which proxy.
func (f *Flags) downloadFlags() {
	f.flags.StringVar(&f.mirrors, "mirror", "", "comma-separated base `addresses`, tried in order in place of the publishers' sites")
	f.flags.StringVar(&f.downloads.Containerd, "containerd", "", "`version` of containerd to install where it is missing, as v2.3.4 or v1.7.34")
	f.flags.StringVar(&f.downloads.Runc, "runc", "", "`version` of runc, as v1.4.3")
	f.flags.StringVar(&f.downloads.CNI, "cni", "", "`version` of the CNI plugins, as v1.9.1")
	f.flags.StringVar(&f.downloads.Crictl, "crictl", "", "`version` of crictl, as v1.36.0")
	f.flags.Var(&f.checksums, "checksum", "SHA-256 of a file that the built-in table lacks, as `NAME/ARCH=HEX`, for example kubelet/amd64=...; may be repeated")
	f.flags.StringVar(&f.versions, "versions", "", "`file` with more versions and checksums, as make versions writes it")
	f.flags.Var(&f.registryMirrors, "registry-mirror", "address that containerd asks first for a registry's images, as `REGISTRY=URL`; may be repeated")
	f.flags.StringVar(&f.proxy.HTTP, "http-proxy", "", "`address` of the proxy for http")
	f.flags.StringVar(&f.proxy.HTTPS, "https-proxy", "", "`address` of the proxy for https")
	f.flags.StringVar(&f.noProxy, "no-proxy", "", "comma-separated `names` and CIDRs that are reached directly: give at least the networks of Services and pods")
}
