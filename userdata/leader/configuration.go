package leader

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/autoscaler-agent/autoscaler-agent/userdata"
)

type object = map[string]any

// flexVolumes is where Flatcar keeps what lies in /usr elsewhere, which is read-only there.
const flexVolumes = "/opt/libexec/kubernetes/kubelet-plugins/volume/exec/"

// configuration is what kubeadm init --config reads.
func configuration(s Spec) ([]byte, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	// Install judges the version and the machine.
	if _, err := s.Machine.Install(userdata.LeaderFiles, nil); err != nil {
		return nil, err
	}
	return s.configuration()
}

func (s Spec) configuration() ([]byte, error) {
	var out bytes.Buffer
	for i, doc := range []object{s.initConfiguration(), s.clusterConfiguration(), kubeletConfiguration()} {
		text, err := yaml.Marshal(doc)
		if err != nil {
			return nil, fmt.Errorf("leader: encode the configuration: %w", err)
		}
		if i > 0 {
			out.WriteString("---\n")
		}
		out.Write(text)
	}
	return out.Bytes(), nil
}

func (s Spec) api() string { return userdata.KubeadmAPI(s.Machine.KubernetesVersion) }

// arguments is kubeadm's form of a program's flags: a map until v1beta3, a list since.
func (s Spec) arguments(flags map[string]string) any {
	if s.api() == "v1beta3" {
		return flags
	}
	var list []object
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		list = append(list, object{"name": name, "value": flags[name]})
	}
	return list
}

// registration is how the machine's kubelet registers, at an init as at a join; both stands for two addresses.
func (s Spec) registration(both string) object {
	registration := object{"criSocket": "unix:///run/containerd/containerd.sock"}
	flags := map[string]string{}
	if s.NodeName != "" {
		// kubeadm sets the flag only where the host has another name, and a host's name may
		// change with its address.
		registration["name"], flags["hostname-override"] = s.NodeName, s.NodeName
	}
	switch ip, steps := userdata.KubeletNodeIP(s.nodeIP()); {
	case steps != "":
		flags["node-ip"] = both
	case ip != "":
		flags["node-ip"] = ip
	}
	if s.CloudController != "" {
		flags["cloud-provider"] = "external"
	}
	if s.Machine.System == "flatcar" {
		flags["volume-plugin-dir"] = flexVolumes
	}
	if len(flags) > 0 {
		registration["kubeletExtraArgs"] = s.arguments(flags)
	}
	if s.ImagePullPolicy != "" {
		registration["imagePullPolicy"] = s.ImagePullPolicy
	}
	if len(s.Machine.IgnorePreflight) > 0 {
		registration["ignorePreflightErrors"] = s.Machine.IgnorePreflight
	}
	return registration
}

func (s Spec) initConfiguration() object {
	doc := object{
		"apiVersion": "kubeadm.k8s.io/" + s.api(), "kind": "InitConfiguration",
		"nodeRegistration": s.registration(nodeIPs),
		// kubeadm always makes a token; the agent makes those that workers join with.
		"bootstrapTokens": []object{{"ttl": "1m0s", "description": "made by kubeadm init; nothing uses it"}},
	}
	if a := s.advertised(); a != "" {
		doc["localAPIEndpoint"] = object{"advertiseAddress": a}
	}
	return doc
}

// nodeIPs stands in the configuration for both addresses of the machine, until its script knows them.
const nodeIPs = "${NODE_IPS}"

// nodeIP is which addresses the kubelet registers: of the pods' IP versions, and its own choice where that is IPv4 alone.
// AWS's cloud controller manager knows addresses of IPv4 only, unless it is configured otherwise, and leaves a Node without
// initialization that names another.
func (s Spec) nodeIP() string {
	if s.Machine.NodeIP != "" {
		return s.Machine.NodeIP
	}
	families := []string{}
	for n := range strings.SplitSeq(s.PodSubnet, ",") {
		families = append(families, map[bool]string{false: "ipv4", true: "ipv6"}[strings.Contains(n, ":")])
	}
	if families[0] == "ipv4" && len(families) == 1 || s.CloudController == "aws" && len(families) > 1 {
		return ""
	}
	return strings.Join(families, ",")
}

// advertised is the API server's address; empty: of IPv4, where the machine has one. It is of the IP version of the first
// network of Services, or the API server ends. kubeadm takes the unspecified address for the wish for a version.
func (s Spec) advertised() string {
	first, _, _ := strings.Cut(s.ServiceSubnet, ",")
	if s.AdvertiseAddress == "" && strings.Contains(first, ":") {
		return "::"
	}
	return s.AdvertiseAddress
}

func (s Spec) clusterConfiguration() object {
	doc := object{
		"apiVersion": "kubeadm.k8s.io/" + s.api(), "kind": "ClusterConfiguration",
		"kubernetesVersion":    s.Machine.KubernetesVersion,
		"controlPlaneEndpoint": s.endpoint(),
		"apiServer":            object{"certSANs": s.names()},
		"networking":           object{"podSubnet": s.PodSubnet, "serviceSubnet": s.ServiceSubnet, "dnsDomain": s.DNSDomain},
	}
	if s.ClusterName != "" {
		doc["clusterName"] = s.ClusterName
	}
	if s.ImageRepository != "" {
		doc["imageRepository"] = s.ImageRepository
	}
	if s.KeyAlgorithm != "" {
		doc["encryptionAlgorithm"] = s.KeyAlgorithm
	}
	if s.Machine.System == "flatcar" {
		doc["controllerManager"] = object{"extraArgs": s.arguments(map[string]string{"flex-volume-plugin-dir": flexVolumes})}
	}
	return doc
}

// names are those of the API server's certificate: the endpoint first.
func (s Spec) names() []string {
	out := []string{s.host()}
	for _, name := range append(slices.Clone(s.CertSANs), s.AdvertiseAddress) {
		if name != "" && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// kubeletConfiguration is that of every kubelet of the cluster: kubeadm uploads it. Workers get
// their own amounts by their user data.
func kubeletConfiguration() object {
	return object{
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
		"serverTLSBootstrap": true,
		"rotateCertificates": true,
		"cgroupDriver":       "systemd",
	}
}
