package leader

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/userdata"
)

// Spec is everything that a new cluster and its leader depend on.
type Spec struct {
	// Machine tells of system, architecture, version and programs, as it does of a worker, and
	// Join.Endpoint is the stable address of the API server. Its other fields are not used.
	Machine userdata.Spec
	// CertSANs are further names of the API server.
	CertSANs []string
	// NodeName is the leader's Node; empty: its host name.
	NodeName string
	// AdvertiseAddress is the leader's own address; empty: the one of its default route.
	AdvertiseAddress string
	// ClusterName is kubeadm's name of the cluster; empty: "kubernetes".
	ClusterName string
	// PodSubnet and ServiceSubnet are CIDRs, or two with a comma between them.
	PodSubnet, ServiceSubnet string
	DNSDomain                string
	// ImageRepository replaces registry.k8s.io.
	ImageRepository string
	// ImagePullPolicy is "Never" where every image was imported before; empty: IfNotPresent.
	ImagePullPolicy string
	// KeyAlgorithm is that of the cluster's keys, for example "ECDSA-P256"; empty: kubeadm's.
	KeyAlgorithm string
	// Network is one of Networks.
	Network string
	// CloudController is one of CloudControllers, or empty for none.
	CloudController string
	// KubeVIPInterface has kube-vip hold the endpoint's address on this interface of each machine of
	// the control plane; empty: DNS or a load balancer does. KubeVIPDigest pins its image further.
	KubeVIPInterface, KubeVIPDigest string
	// WithoutMetrics leaves metrics-server out.
	WithoutMetrics bool
	// BeforeInit and AfterInit are scripts of the operator: right before kubeadm init, and at
	// the end.
	BeforeInit, AfterInit []byte
}

// Networks are the known networks of pods. With "none" the operator brings one.
var Networks = []string{"flannel", "cilium", "none"}

// CloudControllers are the known cloud controller managers.
var CloudControllers = []string{"aws", "openstack"}

// KeyAlgorithms are those of kubeadm.
var KeyAlgorithms = []string{"RSA-2048", "RSA-3072", "RSA-4096", "ECDSA-P256", "ECDSA-P384"}

// Defaults of the networks: kubeadm's for Services, flannel's for pods.
const (
	DefaultPodSubnet     = "10.244.0.0/16"
	DefaultServiceSubnet = "10.96.0.0/12"
	DefaultDNSDomain     = "cluster.local"
)

func (s Spec) endpoint() string { return s.Machine.Join.Endpoint }

// host is the endpoint without its port.
func (s Spec) host() string {
	e := s.endpoint()
	return strings.Trim(e[:max(0, strings.LastIndexByte(e, ':'))], "[]")
}

func (s Spec) validate() error {
	errs := []error{s.Machine.JudgeInstall()}
	bad := func(field, format string, args ...any) {
		errs = append(errs, userdata.Faultf("leader", field, format, args...))
	}
	if host := s.host(); userdata.BadEndpoint(s.endpoint()) == "" && (!strings.ContainsAny(host, ".:") || loopback(host)) {
		bad("endpoint", "%q reaches the leader from no other machine: give a DNS name or a fixed address that outlives this machine, for example k8s.example.net:6443", s.endpoint())
	}
	for _, name := range s.CertSANs {
		if _, err := netip.ParseAddr(name); err != nil && !dnsName(strings.TrimPrefix(name, "*.")) {
			bad("certSANs", "%q is neither a lower-case DNS name nor an address", name)
		}
	}
	if s.NodeName != "" && (!dnsName(s.NodeName) || strings.ToLower(s.NodeName) != s.NodeName) {
		bad("nodeName", "%q is not a lower-case DNS name", s.NodeName)
	}
	a, err := netip.ParseAddr(s.AdvertiseAddress)
	told := s.AdvertiseAddress != "" && (err != nil || a.Zone() != "" || !a.Unmap().IsGlobalUnicast())
	if told {
		bad("advertiseAddress", "%q is not an address by which workers reach the leader", s.AdvertiseAddress)
	}
	if s.ClusterName != "" && !dnsName(s.ClusterName) {
		bad("clusterName", "%q: give letters, digits, '-' and '.'", s.ClusterName)
	}
	if !dnsName(s.DNSDomain) {
		bad("dnsDomain", "%q is not a DNS name: give one such as %s", s.DNSDomain, DefaultDNSDomain)
	}
	s.validateSubnets(bad)
	if first, _, _ := strings.Cut(s.ServiceSubnet, ","); !told && s.AdvertiseAddress != "" && strings.Contains(s.AdvertiseAddress, ":") != strings.Contains(first, ":") {
		bad("advertiseAddress", "%q is of another IP version than the first network of Services, %s, and the API server would end: give one of its version, or leave it out", s.AdvertiseAddress, first)
	}
	s.validateChoices(bad)
	s.validateVIP(bad)
	if why := userdata.BadHook(s.BeforeInit); why != "" {
		bad("beforeInit", "%s", why)
	}
	if why := userdata.BadHook(s.AfterInit); why != "" {
		bad("afterInit", "%s", why)
	}
	return errors.Join(errs...)
}

func (s Spec) validateSubnets(bad func(field, format string, args ...any)) {
	var all []netip.Prefix
	families := map[string]string{} // "4", "6" or both in the order given
	for _, n := range [][2]string{{"podSubnet", s.PodSubnet}, {"serviceSubnet", s.ServiceSubnet}} {
		parts := strings.Split(n[1], ",")
		for _, text := range parts {
			p, err := netip.ParsePrefix(text)
			if err == nil && p != p.Masked() {
				bad(n[0], "%s is an address in a network: write the network, %s", p, p.Masked())
				continue
			}
			if err != nil || len(parts) > 2 {
				bad(n[0], "%q: give a network, for example %s, or two with a comma between them", n[1], DefaultPodSubnet)
				continue
			}
			if i := slices.IndexFunc(all, p.Overlaps); i >= 0 {
				bad(n[0], "%s overlaps %s: give pods and services networks of their own", p, all[i])
			}
			all = append(all, p)
			families[n[0]] += family(p)
			if why := size(n[0], p); why != "" {
				bad(n[0], "%s %s", p, why)
			}
		}
		if f := families[n[0]]; f == "44" || f == "66" {
			bad(n[0], "%q: give one network of IPv4 and one of IPv6, or one network", n[1])
		}
	}
	if pods := families["podSubnet"]; pods != "" && strings.Trim(families["serviceSubnet"], pods) != "" {
		bad("serviceSubnet", "%q is of an IP version that podSubnet %q lacks: give both of one, for example fd00:10:96::/112 with fd00:10:244::/56", s.ServiceSubnet, s.PodSubnet)
	}
}

func family(p netip.Prefix) string {
	if p.Addr().Is4() {
		return "4"
	}
	return "6"
}

// size says what kubeadm and the controller manager would refuse of a network. A node gets a /24
// of IPv4, a /64 of IPv6, and the allocator counts at most 16 bits of nodes.
func size(field string, p netip.Prefix) string {
	node, services := 24, 12
	if !p.Addr().Is4() {
		node, services = 64, 108
	}
	switch {
	case field == "podSubnet" && (p.Bits() > node || p.Bits() < node-16):
		return fmt.Sprintf("cannot be divided among nodes, of which each gets a /%d: give a /%d to a /%d", node, node-16, node)
	case field == "serviceSubnet" && (p.Bits() < services || p.Addr().BitLen()-p.Bits() < 3):
		return fmt.Sprintf("is not of a size that the API server takes: give a /%d to a /%d", services, p.Addr().BitLen()-3)
	}
	return ""
}

func (s Spec) validateChoices(bad func(field, format string, args ...any)) {
	if !slices.Contains(Networks, s.Network) {
		bad("network", "%q is not known: use %s", s.Network, strings.Join(Networks, ", "))
	}
	if s.CloudController != "" && !slices.Contains(CloudControllers, s.CloudController) {
		bad("cloudController", "%q is not known: use %s", s.CloudController, strings.Join(CloudControllers, " or "))
	}
	switch {
	case s.KeyAlgorithm != "" && !slices.Contains(KeyAlgorithms, s.KeyAlgorithm):
		bad("keyAlgorithm", "%q is not known: use %s", s.KeyAlgorithm, strings.Join(KeyAlgorithms, ", "))
	case s.KeyAlgorithm != "" && userdata.KubeadmAPI(s.Machine.KubernetesVersion) == "v1beta3":
		bad("keyAlgorithm", "the kubeadm of %s cannot choose it: leave it out", s.Machine.KubernetesVersion)
	}
	if s.ImagePullPolicy != "" && s.ImagePullPolicy != "Never" {
		bad("imagePullPolicy", "%q: use Never, or leave it out", s.ImagePullPolicy)
	}
	if why := userdata.BadImageRepository(s.ImageRepository); why != "" {
		bad("imageRepository", "%q: %s", s.ImageRepository, why)
	}
	if !slices.Contains([]string{"debian", "ubuntu", "flatcar"}, s.Machine.System) {
		bad("system", "%q: a leader can be made of debian, ubuntu and flatcar", s.Machine.System)
	}
}

func loopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}

func dnsName(s string) bool {
	return s != "" && userdata.BadEndpoint(s+":1") == "" && !strings.ContainsAny(s, "[]:")
}
