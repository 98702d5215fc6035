package leader

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/autoscaler-agent/autoscaler-agent/userdata"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func sample() Spec {
	return Spec{
		Machine:   userdata.Spec{System: "debian", Arch: "amd64", KubernetesVersion: "v1.36.3", Join: userdata.Join{Endpoint: "k8s.example.net:6443"}},
		PodSubnet: DefaultPodSubnet, ServiceSubnet: DefaultServiceSubnet, DNSDomain: DefaultDNSDomain, Network: "flannel",
	}
}

// full uses every field.
func full() Spec {
	s := sample()
	s.Machine.System, s.Machine.IgnorePreflight = "ubuntu", []string{"Mem", "NumCPU"}
	s.Machine.Downloads.Mirrors = []string{"https://mirror.example.net"}
	s.Machine.Proxy = userdata.Proxy{HTTPS: "http://proxy.example.net:3128", No: []string{"10.0.0.0/8"}}
	s.CertSANs, s.NodeName, s.AdvertiseAddress, s.ClusterName = []string{"198.51.100.7", "*.example.net"}, "leader.example.net", "192.0.2.10", "production"
	s.PodSubnet, s.ServiceSubnet, s.DNSDomain = "10.32.0.0/12", "10.112.0.0/12", "cluster.example.net"
	s.ImageRepository, s.ImagePullPolicy, s.KeyAlgorithm = "registry.example.net/kubernetes", "Never", "ECDSA-P256"
	s.CloudController = "openstack"
	s.BeforeInit, s.AfterInit = []byte("#!/bin/sh\necho before\n"), []byte("#!/bin/sh\necho after")
	return s
}

func flatcar() Spec {
	s := sample()
	s.Machine.System, s.Machine.KubernetesVersion, s.Machine.Arch = "flatcar", "v1.30.14", ""
	s.Network, s.CloudController, s.WithoutMetrics = "cilium", "aws", true
	return s
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs: run go test ./userdata/leader -update and read the difference", file)
	}
}

func TestGolden(t *testing.T) {
	for name, s := range map[string]Spec{"plain": sample(), "full": full(), "flatcar": flatcar()} {
		config, err := configuration(s)
		if err != nil {
			t.Fatal(err)
		}
		golden(t, name+".yaml", config)
		script, err := Render(s)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(script, config) {
			t.Errorf("%s: the script does not hold the configuration", name)
		}
		golden(t, name+".sh", script)
		if again, _ := Render(s); !bytes.Equal(script, again) {
			t.Errorf("%s: two renderings differ", name)
		}
	}
}

// TestConfiguration: what the agent needs is in each configuration.
func TestConfiguration(t *testing.T) {
	for name, s := range map[string]Spec{"plain": sample(), "full": full(), "flatcar": flatcar()} {
		text, err := configuration(s)
		if err != nil {
			t.Fatal(err)
		}
		docs := map[string]map[string]any{}
		for part := range strings.SplitSeq(string(text), "---\n") {
			var doc map[string]any
			if err := yaml.UnmarshalStrict([]byte(part), &doc); err != nil {
				t.Fatal(err)
			}
			docs[doc["kind"].(string)] = doc
		}
		cluster, kubelet := docs["ClusterConfiguration"], docs["KubeletConfiguration"]
		if cluster["controlPlaneEndpoint"] != "k8s.example.net:6443" || !slices.Contains(cluster["apiServer"].(map[string]any)["certSANs"].([]any), any("k8s.example.net")) {
			t.Errorf("%s: endpoint and names: %v", name, cluster)
		}
		if kubelet["serverTLSBootstrap"] != true || kubelet["rotateCertificates"] != true || kubelet["providerID"] != nil {
			t.Errorf("%s: kubelets: %v", name, kubelet)
		}
		if api := docs["InitConfiguration"]["apiVersion"]; (api == "kubeadm.k8s.io/v1beta3") != (name == "flatcar") {
			t.Errorf("%s: %v", name, api)
		}
	}
}

// TestMatrix renders every choice for every minor of Kubernetes. The golden file holds the
// digests; the scripts are checked by the shell, and by shellcheck where it is.
func TestMatrix(t *testing.T) {
	var lines []string
	dir := t.TempDir()
	table, err := userdata.Versions()
	if err != nil {
		t.Fatal(err)
	}
	newest := map[string]string{}
	for _, p := range table {
		minor := p.Version[:strings.LastIndexByte(p.Version, '.')]
		if p.Name == "kubectl" && newest[minor] == "" {
			newest[minor] = p.Version
		}
	}
	if len(newest) != userdata.NewestMinor-userdata.OldestMinor+1 {
		t.Fatalf("the table has kubectl of %v", newest)
	}
	for _, system := range []string{"debian", "ubuntu", "flatcar"} {
		for _, arch := range append([]string{""}, userdata.Arches...) {
			for minor := userdata.OldestMinor; minor <= userdata.NewestMinor; minor++ {
				for _, network := range Networks {
					for _, cloud := range append([]string{""}, CloudControllers...) {
						s := sample()
						s.Machine.System, s.Machine.Arch, s.Network, s.CloudController = system, arch, network, cloud
						s.Machine.KubernetesVersion = newest[fmt.Sprintf("v1.%d", minor)]
						script, err := Render(s)
						if err != nil {
							t.Fatal(err)
						}
						sum := sha256.Sum256(script)
						lines = append(lines, fmt.Sprintf("%s %q %s %s %q %s", system, arch, s.Machine.KubernetesVersion, network, cloud, hex.EncodeToString(sum[:8])))
						if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%03d.sh", len(lines))), script, 0o600); err != nil {
							t.Fatal(err)
						}
						list, err := Downloads(s)
						if err != nil {
							t.Fatal(err)
						}
						for _, d := range list { // what a mirror holds is what the script asks for
							at := strings.NewReplacer("amd64", "$ARCH", "arm64", "$ARCH").Replace(d.Path[strings.LastIndexByte(d.Path, '/')+1:])
							if !bytes.Contains(script, []byte(d.SHA256)) || !bytes.Contains(script, []byte(at)) && !slices.Contains([]string{"kubelet", "kubeadm", "kubectl"}, d.Name) {
								t.Errorf("%s is listed and not fetched", d.Path)
							}
						}
					}
				}
			}
		}
	}
	golden(t, "matrix.txt", []byte(strings.Join(lines, "\n")+"\n"))
	if out, err := exec.Command("sh", "-c", `for f in "$0"/*.sh; do sh -n "$f" || exit 1; done`, dir).CombinedOutput(); err != nil {
		t.Errorf("sh -n: %v\n%s", err, out)
	}
	if _, err := exec.LookPath("shellcheck"); err != nil {
		t.Log("shellcheck is not here: the scripts were checked by sh -n alone")
		return
	}
	if out, err := exec.Command("shellcheck", "-s", "sh", "-e", "SC2016,SC2034,SC1091,SC2317,SC2329", "testdata/plain.sh", "testdata/full.sh", "testdata/flatcar.sh").CombinedOutput(); err != nil {
		t.Errorf("shellcheck: %v\n%s", err, out)
	}
}

func TestValidate(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Spec)
		want   string
	}{
		"no endpoint":      {func(s *Spec) { s.Machine.Join.Endpoint = "" }, "endpoint: \"\" has no port"},
		"bare host":        {func(s *Spec) { s.Machine.Join.Endpoint = "leader:6443" }, "from no other machine"},
		"loopback":         {func(s *Spec) { s.Machine.Join.Endpoint = "127.0.0.1:6443" }, "from no other machine"},
		"shell in name":    {func(s *Spec) { s.NodeName = "a$(id)" }, "nodeName"},
		"SAN":              {func(s *Spec) { s.CertSANs = []string{"a b"} }, "certSANs"},
		"address":          {func(s *Spec) { s.AdvertiseAddress = "127.0.0.1" }, "advertiseAddress"},
		"overlap":          {func(s *Spec) { s.PodSubnet = "10.96.0.0/16" }, "overlaps"},
		"host bits":        {func(s *Spec) { s.PodSubnet = "10.244.0.1/16" }, "podSubnet"},
		"one and two":      {func(s *Spec) { s.ServiceSubnet = "10.96.0.0/12,fd01::/112" }, "of an IP version that podSubnet"},
		"six and four":     {func(s *Spec) { s.PodSubnet = "fd00:10:244::/56" }, "of an IP version that podSubnet"},
		"two of IPv4":      {func(s *Spec) { s.PodSubnet = "10.244.0.0/16,10.200.0.0/16" }, "one network of IPv4 and one of IPv6"},
		"small network":    {func(s *Spec) { s.PodSubnet = "10.244.0.0/25" }, "give a /8 to a /24"},
		"large network":    {func(s *Spec) { s.PodSubnet, s.ServiceSubnet = "fd00::/32", "fd01::/112" }, "give a /48 to a /64"},
		"large services":   {func(s *Spec) { s.PodSubnet, s.ServiceSubnet = "fd00::/48", "fd01::/64" }, "give a /108 to a /125"},
		"network":          {func(s *Spec) { s.Network = "weave" }, "network"},
		"cloud":            {func(s *Spec) { s.CloudController = "gcp" }, "cloudController"},
		"keys":             {func(s *Spec) { s.KeyAlgorithm = "ED25519" }, "keyAlgorithm"},
		"keys of 1.30":     {func(s *Spec) { s.KeyAlgorithm, s.Machine.KubernetesVersion = "ECDSA-P256", "v1.30.14" }, "cannot choose"},
		"pull policy":      {func(s *Spec) { s.ImagePullPolicy = "Always" }, "imagePullPolicy"},
		"repository":       {func(s *Spec) { s.ImageRepository = "https://registry.example.net" }, "imageRepository"},
		"system":           {func(s *Spec) { s.Machine.System = "rocky-9" }, "debian, ubuntu and flatcar"},
		"no version":       {func(s *Spec) { s.Machine.KubernetesVersion = "latest" }, "give it as v1.36.3"},
		"half a version":   {func(s *Spec) { s.Machine.KubernetesVersion = "v1" }, "give it as v1.36.3"},
		"version":          {func(s *Spec) { s.Machine.KubernetesVersion = "v1.29.0" }, "too old"},
		"unknown checksum": {func(s *Spec) { s.Machine.KubernetesVersion = "v1.36.999" }, "no checksum is known for kubeadm"},
		"hook":             {func(s *Spec) { s.BeforeInit = []byte("#!/bin/sh\nEND-OF-HOOK\n") }, "reserved"},
		"cluster name":     {func(s *Spec) { s.ClusterName = "a b" }, "clusterName"},
		"domain":           {func(s *Spec) { s.DNSDomain = "" }, "dnsDomain"},
	} {
		s := sample()
		c.change(&s)
		_, errScript := Render(s)
		_, errConfig := configuration(s)
		for _, err := range []error{errScript, errConfig} {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %q", name, err, c.want)
			}
		}
	}
}

// TestAddons: every minor has what each choice needs, from one version.
func TestAddons(t *testing.T) {
	for minor := userdata.OldestMinor; minor <= userdata.NewestMinor; minor++ {
		for name, want := range map[string]int{"flannel": 1, "cilium": 2, "aws": 5, "openstack": 3} {
			s := sample()
			s.Machine.KubernetesVersion, s.Machine.Arch, s.Network = fmt.Sprintf("v1.%d.0", minor), "", "none"
			if slices.Contains(Networks, name) {
				s.Network = name
			} else {
				s.CloudController = name
			}
			files, err := s.addons()
			if err != nil || len(files) != want {
				t.Errorf("1.%d %s: %d files %v, want %d", minor, name, len(files), err, want)
			}
		}
	}
}

// TestMetricsServer: kubelets are verified, and no worker is kept by it.
func TestMetricsServer(t *testing.T) {
	text := sample().MetricsServer()
	if strings.Contains(text, "insecure-tls") || !strings.Contains(text, "--kubelet-certificate-authority=") {
		t.Error("kubelets are not verified")
	}
	if !strings.Contains(text, `node-role.kubernetes.io/control-plane: ""`) {
		t.Error("it may run on a worker")
	}
	if got := full().MetricsServer(); strings.Contains(got, "registry.k8s.io") || !strings.Contains(got, "image: registry.example.net/kubernetes/metrics-server/") {
		t.Error("the image does not come from the repository")
	}
}

// TestPodNetworks: each network plug-in gets the networks in the form that it reads, of one IP
// version or of both. The line is that of flannel's manifest, and flannel's fields are those of
// pkg/subnet/config.go at the version in addons.txt.
func TestPodNetworks(t *testing.T) {
	const manifest = "      \"Network\": \"10.244.0.0/16\",\n"
	for subnets, want := range map[[2]string]struct {
		flannel map[string]any
		cilium  []string
	}{
		{"10.200.0.0/16", "10.96.0.0/12"}: {map[string]any{"Network": "10.200.0.0/16"}, []string{"clusterPoolIPv4PodCIDRList={10.200.0.0/16}"}},
		{"fd00:10:244::/56", "fd00:10:96::/112"}: {map[string]any{"EnableIPv4": false, "EnableIPv6": true, "IPv6Network": "fd00:10:244::/56"},
			[]string{"ipv4.enabled=false", "ipv6.enabled=true", "clusterPoolIPv6PodCIDRList={fd00:10:244::/56}", "clusterPoolIPv6MaskSize=64"}},
		{"10.200.0.0/16,fd00:10:244::/56", "10.96.0.0/12,fd00:10:96::/112"}: {map[string]any{"Network": "10.200.0.0/16", "EnableIPv6": true, "IPv6Network": "fd00:10:244::/56"},
			[]string{"clusterPoolIPv4PodCIDRList={10.200.0.0/16}", "ipv6.enabled=true", "clusterPoolIPv6PodCIDRList={fd00:10:244::/56}"}},
		{"fd00:10:244::/56,10.200.0.0/16", "fd00:10:96::/112,10.96.0.0/12"}: {map[string]any{"Network": "10.200.0.0/16", "EnableIPv6": true, "IPv6Network": "fd00:10:244::/56"},
			[]string{"clusterPoolIPv4PodCIDRList={10.200.0.0/16}", "ipv6.enabled=true", "clusterPoolIPv6PodCIDRList={fd00:10:244::/56}"}},
	} {
		s := sample()
		s.PodSubnet, s.ServiceSubnet = subnets[0], subnets[1]
		script, err := Render(s)
		if err != nil {
			t.Fatal(err)
		}
		edit := regexp.MustCompile(`(?m)^sed '(.*)' "\$tmp/addon.yaml" \| kubectl apply`).FindSubmatch(script)
		if edit == nil {
			t.Fatalf("%s: no edit of flannel's manifest", subnets)
		}
		sed := exec.Command("sed", string(edit[1]))
		sed.Stdin = strings.NewReader(manifest)
		line, err := sed.Output()
		var got map[string]any
		if err == nil {
			err = json.Unmarshal([]byte("{"+strings.TrimRight(strings.TrimSpace(string(line)), ",")+"}"), &got)
		}
		if err != nil || !reflect.DeepEqual(got, want.flannel) {
			t.Errorf("%s: flannel reads %v, %v, want %v", subnets, got, err, want.flannel)
		}
		s.Network = "cilium"
		if script, err = Render(s); err != nil {
			t.Fatal(err)
		}
		for _, part := range want.cilium {
			if !bytes.Contains(script, []byte(part)) {
				t.Errorf("%s: cilium is not told %s", subnets, part)
			}
		}
		if four := bytes.Contains(script, []byte("clusterPoolIPv4")); four != strings.Contains(subnets[0], "10.") {
			t.Errorf("%s: cilium is told of IPv4: %t", subnets, four)
		}
	}
}
