package leader

import (
	_ "embed"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/userdata"
)

var (
	//go:embed addons.txt
	addonsText string
	//go:embed metrics-server.yaml
	metricsServer string
)

// ciliumVersion is what its command line installs.
const ciliumVersion = "1.20.1"

// File is one published file of an addon.
type File struct {
	Name, Version, SHA256, Source string
	// Path is the address without its scheme, and the place below a mirror.
	Path string
}

// key names the file in the script.
func (f File) key() string { return f.Name + "-" + strings.TrimSuffix(path.Base(f.Path), ".yaml") }

// addons is the table of this package.
func addons() ([]File, error) {
	var out []File
	n := 0
	for line := range strings.Lines(addonsText) {
		n++
		f := strings.Fields(line)
		if len(f) == 0 || strings.HasPrefix(f[0], "#") {
			continue
		}
		if len(f) != 5 || len(f[2]) != 64 || strings.Trim(f[2], "0123456789abcdef") != "" || strings.Contains(f[4], "://") {
			return nil, fmt.Errorf("leader: table of addons, line %d: want NAME VERSION SHA256 SOURCE PATH", n)
		}
		out = append(out, File{Name: f[0], Version: f[1], SHA256: f[2], Source: f[3], Path: f[4]})
	}
	return out, nil
}

// addons are the files that s needs.
func (s Spec) addons() ([]File, error) {
	all, err := addons()
	if err != nil {
		return nil, err
	}
	minor := strings.Join(strings.Split(s.Machine.KubernetesVersion, ".")[:2], ".") + "."
	want := func(f File) bool {
		switch f.Name {
		case "flannel":
			return s.Network == "flannel"
		case "cilium-cli-amd64", "cilium-cli-arm64":
			return s.Network == "cilium" && (s.Machine.Arch == "" || strings.HasSuffix(f.Name, s.Machine.Arch))
		case "aws-cloud-controller":
			return s.CloudController == "aws"
		case "openstack-cloud-controller":
			return s.CloudController == "openstack" && strings.HasPrefix(f.Version, minor)
		}
		return false
	}
	return slices.DeleteFunc(all, func(f File) bool { return !want(f) }), nil
}

// Downloads lists what the leader's script may fetch, for a mirror.
func Downloads(s Spec) ([]userdata.Download, error) {
	out, err := userdata.LeaderDownloads(s.Machine)
	if err != nil {
		return nil, err
	}
	files, err := s.addons()
	for _, f := range files {
		out = append(out, userdata.Download{Name: f.key(), URL: "https://" + f.Path, SHA256: f.SHA256, Path: f.Path})
	}
	return out, err
}

// network applies the network of the pods.
func (s Spec) network(files []File) string {
	switch s.Network {
	case "flannel":
		return apply(named(files, "flannel"), "sed 's#\"Network\": \"10.244.0.0/16\"#"+s.flannel()+"#'")
	case "cilium":
		cli := named(files, "cilium-cli")[0]
		return "if ! have cilium; then\n  fetch \"cilium-cli-$ARCH-cilium-linux-$ARCH.tar.gz\" \"" + path.Dir(cli.Path) + "/cilium-linux-$ARCH.tar.gz\" \"$tmp/cilium.tgz\"\n" +
			"  tar -C \"$tmp\" -xzf \"$tmp/cilium.tgz\" cilium\n  place \"$tmp/cilium\"\nfi\n" +
			"kubectl -n kube-system get daemonset cilium >/dev/null 2>&1 ||\n  cilium install --version " + ciliumVersion +
			s.cilium() + " || die reason=cilium\n"
	}
	return ""
}

// podNetworks are the networks of the pods by IP version; "" for a version that they lack.
func (s Spec) podNetworks() (four, six string) {
	for _, n := range strings.Split(s.PodSubnet, ",") {
		if strings.Contains(n, ":") {
			six = n
		} else {
			four = n
		}
	}
	return four, six
}

// flannel is the part of its net-conf.json that names the networks. Without EnableIPv6 it takes
// Network alone, and of IPv4 alone.
func (s Spec) flannel() string {
	four, six := s.podNetworks()
	switch {
	case six == "":
		return `"Network": "` + four + `"`
	case four == "":
		return `"EnableIPv4": false, "EnableIPv6": true, "IPv6Network": "` + six + `"`
	}
	return `"Network": "` + four + `", "EnableIPv6": true, "IPv6Network": "` + six + `"`
}

// cilium are the values of its chart that name the networks. A node's part of IPv6 is a /64, as
// the controller manager's is.
func (s Spec) cilium() string {
	four, six := s.podNetworks()
	out := ""
	if four == "" {
		out += " --set ipv4.enabled=false"
	} else {
		out += " --set 'ipam.operator.clusterPoolIPv4PodCIDRList={" + four + "}'"
	}
	if six != "" {
		out += " --set ipv6.enabled=true --set 'ipam.operator.clusterPoolIPv6PodCIDRList={" + six + "}' --set ipam.operator.clusterPoolIPv6MaskSize=64"
	}
	return out
}

// cloudController applies the cloud controller manager. The one of AWS names an old image in
// its example, and OpenStack's reads the operator's Secret cloud-config.
func (s Spec) cloudController(files []File) string {
	switch s.CloudController {
	case "aws":
		list := named(files, "aws-cloud-controller")
		return apply(list, "sed 's#\\(provider-aws/cloud-controller-manager:\\).*#\\1"+list[0].Version+"#'")
	case "openstack":
		return "kubectl -n kube-system get secret cloud-config >/dev/null 2>&1 ||\n" +
			"  echo 'the cloud controller manager waits for: kubectl -n kube-system create secret generic cloud-config --from-file=cloud.conf'\n" +
			apply(named(files, "openstack-cloud-controller"), "")
	}
	return ""
}

// apply fetches each file, edits it if need be, and hands it to the API server.
func apply(files []File, edit string) string {
	text := ""
	for _, f := range files {
		text += "fetch " + f.key() + " " + f.Path + " \"$tmp/addon.yaml\"\n"
		if edit == "" {
			text += "kubectl apply -f \"$tmp/addon.yaml\" || die reason=addon\n"
		} else {
			text += edit + " \"$tmp/addon.yaml\" | kubectl apply -f - || die reason=addon\n"
		}
	}
	return text
}

func named(files []File, prefix string) (out []File) {
	for _, f := range files {
		if strings.HasPrefix(f.Name, prefix) {
			out = append(out, f)
		}
	}
	return out
}

// metrics applies metrics-server from the configured repository.
func (s Spec) metrics() string {
	if s.WithoutMetrics {
		return ""
	}
	return "kubectl apply -f - <<'" + endOfFile + "' || die reason=addon\n" + s.MetricsServer() + endOfFile + "\n"
}

// MetricsServer is the manifest of metrics-server.
func (s Spec) MetricsServer() string {
	if s.ImageRepository == "" {
		return metricsServer
	}
	return strings.ReplaceAll(metricsServer, "image: registry.k8s.io/", "image: "+s.ImageRepository+"/")
}
