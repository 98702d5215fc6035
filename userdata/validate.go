package userdata

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// Fault is one field of a Spec that is wrong: Text says why, and what to write.
type Fault struct{ of, Field, Text string }

func (f Fault) Error() string { return f.of + ": " + f.Field + ": " + f.Text }

// Faultf makes a Fault whose text begins with the name of the package.
func Faultf(of, field, format string, args ...any) Fault {
	return Fault{of, field, fmt.Sprintf(format, args...)}
}

// validate reports every bad field, each as one error with its remedy.
func (s Spec) validate() error {
	var errs []error
	bad := func(field, format string, args ...any) {
		errs = append(errs, Faultf("userdata", field, format, args...))
	}
	if Limit(s.Cloud) == 0 {
		bad("cloud", "%q is not known: use %s", s.Cloud, strings.Join(Clouds(), " or "))
	}
	if _, err := minor(s.KubernetesVersion); err != nil {
		bad("kubernetesVersion", "%v", err)
	}
	switch n, err := minor(s.KubernetesVersion); {
	case s.KubeadmAPIVersion == "":
	case s.KubeadmAPIVersion != "v1beta3" && s.KubeadmAPIVersion != "v1beta4":
		bad("kubeadmAPIVersion", "%q is not known: use v1beta3, v1beta4 or leave it empty", s.KubeadmAPIVersion)
	case err == nil && !APIServes(s.KubeadmAPIVersion, n):
		bad("kubeadmAPIVersion", "the kubeadm of %s does not read %s: leave it empty", s.KubernetesVersion, s.KubeadmAPIVersion)
	}
	s.skew(bad)
	s.validateToken(bad)
	s.Join.validate(bad)
	validateReservation(s.Reservation, bad)
	for _, key := range slices.Sorted(maps.Keys(s.Labels)) {
		if why := badLabel(key, s.Labels[key]); why != "" {
			bad(fmt.Sprintf("labels[%q]", key), "%s", why)
		}
	}
	seen := map[[2]string]bool{}
	for _, t := range s.Taints {
		field := fmt.Sprintf("taints[%q]", t.Key)
		if why := badTaint(t); why != "" {
			bad(field, "%s", why)
		}
		if id := [2]string{t.Key, t.Effect}; seen[id] {
			bad(field, "given twice with effect %s: keep one", t.Effect)
		} else {
			seen[id] = true
		}
	}
	for _, a := range s.ClusterDNS {
		if addr, err := netip.ParseAddr(a); err != nil || addr.Zone() != "" {
			bad("clusterDNS", "%q is not an IP address: give the cluster IP of the DNS service, for example 10.96.0.10", a)
		}
	}
	n, _ := minor(s.KubernetesVersion)
	s.Downloads.validate(bad, n)
	s.Proxy.validate(bad)
	s.validateMachine(bad)
	return errors.Join(errs...)
}

type report = func(field, format string, args ...any)

func (j Join) validate(bad report) {
	if why := badEndpoint(j.Endpoint); why != "" {
		bad("join.endpoint", "%q %s: give host:port of the API server, for example k8s.example.net:6443", j.Endpoint, why)
	}
	if len(j.CACertHashes) == 0 {
		bad("join.caCertHashes", "empty: give at least one, the machine must not trust an unknown cluster; use JOIN_CERT_HASH of the agent's published env file")
	}
	for _, h := range j.CACertHashes {
		hex, ok := strings.CutPrefix(h, "sha256:")
		if !ok || !isSHA256(hex) {
			bad("join.caCertHashes", "%q is not \"sha256:\" and 64 lower-case hex digits: use JOIN_CERT_HASH of the agent's published env file", h)
		}
	}
}

// badAddress: these are of no machine.
func badAddress(a netip.Addr) string {
	if a.IsUnspecified() || a.IsMulticast() {
		return "has an address of no machine"
	}
	return ""
}

// badEndpoint accepts only what is safe in YAML and what kubeadm can dial.
func badEndpoint(s string) string {
	i := strings.LastIndexByte(s, ':')
	if i <= 0 {
		return "has no port"
	}
	if port, err := strconv.ParseUint(s[i+1:], 10, 16); err != nil || port == 0 || s[i+1] == '0' {
		return "has no valid port"
	}
	host := s[:i]
	if inner, ok := strings.CutPrefix(host, "["); ok {
		addr, err := netip.ParseAddr(strings.TrimSuffix(inner, "]"))
		if err != nil || !addr.Is6() || addr.Zone() != "" || !strings.HasSuffix(host, "]") {
			return "has a malformed IPv6 address"
		}
		return badAddress(addr)
	}
	switch addr, err := netip.ParseAddr(host); {
	case err == nil:
		return badAddress(addr)
	case !isDNSName(host), strings.Contains(host, ".") && strings.Trim(host, "0123456789.") == "": // 10.0.0.256 is no name
		return "has a malformed host"
	case host != strings.ToLower(host): // kubeadm takes no such name
		return "has upper-case letters (write " + strings.ToLower(s) + ")"
	}
	return ""
}

func validateReservation(r cluster.Reservation, bad report) {
	if r.MaxPods < 1 || r.MaxPods > 10000 {
		bad("reservation.maxPods", "%d: give the number of pods that a machine may hold, for example 110", r.MaxPods)
	}
	if p := r.EvictionStoragePercent; p < 0 || p > 99 {
		bad("reservation.evictionStoragePercent", "%d: give 0 to 99", p)
	}
	if r.EvictionStoragePercent != 0 && r.Eviction.EphemeralStorage != 0 {
		bad("reservation.eviction", "nodefs.available is given in bytes and in percent: give one")
	}
	for _, part := range []struct {
		name string
		r    cluster.Resources
	}{{"kube", r.Kube}, {"system", r.System}, {"eviction", r.Eviction}} {
		if part.r.MilliCPU < 0 || part.r.Memory < 0 || part.r.EphemeralStorage < 0 {
			bad("reservation."+part.name, "negative amount: give 0 or more")
		}
		if part.r.Pods != 0 || len(part.r.Extended) > 0 {
			bad("reservation."+part.name, "only cpu, memory and ephemeral-storage can be reserved: leave out pods and extended resources")
		}
	}
	if r.Eviction.MilliCPU != 0 {
		bad("reservation.eviction", "a kubelet cannot evict for CPU: leave cpu out")
	}
}

// kubeletLabels are the reserved labels that NodeRestriction lets a kubelet set on
// its own Node and that are not the kubelet's or the script's own business
// (k8s.io/kubelet/pkg/apis/well_known_labels.go, KubeletLabels and
// kubeletLabelNamespaces).
var kubeletLabels = map[string]bool{
	"failure-domain.beta.kubernetes.io/zone":   true,
	"failure-domain.beta.kubernetes.io/region": true,
	"beta.kubernetes.io/instance-type":         true,
}

// ownLabels are set by the kubelet or by the script from the machine's own facts.
var ownLabels = map[string]bool{
	"kubernetes.io/hostname": true, "kubernetes.io/os": true, "kubernetes.io/arch": true,
	"beta.kubernetes.io/os": true, "beta.kubernetes.io/arch": true,
	"topology.kubernetes.io/zone": true, "topology.kubernetes.io/region": true,
	"node.kubernetes.io/instance-type": true,
}

func badLabel(key, value string) string {
	if why := badQualifiedName(key); why != "" {
		return why
	}
	if !isName(value) && value != "" {
		return fmt.Sprintf("value %q is not a label value: at most 63 of A-Za-z0-9-_. , the first and last a letter or digit", value)
	}
	if ownLabels[key] {
		return "every machine sets this label itself: leave it out"
	}
	if !ReservedLabel(key) {
		return ""
	}
	return "a kubelet may not set this label on its own Node (NodeRestriction): use a key outside kubernetes.io and k8s.io, or one under node.kubernetes.io/"
}

// ReservedLabel tells a label with which a kubelet does not start, and which NodeRestriction refuses.
func ReservedLabel(key string) bool {
	prefix, _, ok := strings.Cut(key, "/")
	if !ok || !inNamespace(prefix, "kubernetes.io") && !inNamespace(prefix, "k8s.io") {
		return false
	}
	return !kubeletLabels[key] && !ownLabels[key] && !inNamespace(prefix, "kubelet.kubernetes.io") && !inNamespace(prefix, "node.kubernetes.io")
}

func inNamespace(prefix, ns string) bool {
	return prefix == ns || strings.HasSuffix(prefix, "."+ns)
}

func badTaint(t cluster.Taint) string {
	if why := badQualifiedName(t.Key); why != "" {
		return why
	}
	if t.Value != "" && !isName(t.Value) {
		return fmt.Sprintf("value %q is not a taint value: at most 63 of A-Za-z0-9-_. , the first and last a letter or digit", t.Value)
	}
	switch t.Effect {
	case "NoSchedule", "PreferNoSchedule", "NoExecute":
		return ""
	}
	return fmt.Sprintf("effect %q: use NoSchedule, PreferNoSchedule or NoExecute", t.Effect)
}

func badQualifiedName(key string) string {
	prefix, name, ok := strings.Cut(key, "/")
	if !ok {
		name = key
	} else if !isDNSName(prefix) || strings.ToLower(prefix) != prefix {
		return fmt.Sprintf("prefix %q is not a lower-case DNS name", prefix)
	}
	if !isName(name) {
		return "not a key: want [prefix/]name, the name at most 63 of A-Za-z0-9-_. , its first and last a letter or digit"
	}
	return ""
}

func (d Downloads) validate(bad report, minor int) {
	for _, u := range d.Mirrors {
		if !isURL(u) || strings.ContainsAny(u, "?#*[") {
			bad("downloads.mirrors", "%q: give an http:// or https:// base address of printable ASCII without spaces, quotes or a query", u)
		}
	}
	for _, v := range []struct{ field, version string }{
		{"downloads.cni", d.CNI}, {"downloads.containerd", d.Containerd}, {"downloads.runc", d.Runc}, {"downloads.crictl", d.Crictl}, {"downloads.ecr", d.ECR},
	} {
		if v.version != "" && !isVersion(v.version) {
			bad(v.field, "%q: give a release tag such as v1.2.3", v.version)
		}
	}
	if d.Containerd != "" && isVersion(d.Containerd) {
		switch old := strings.HasPrefix(d.Containerd, "v1."); {
		case old && !strings.HasPrefix(d.Containerd, "v1.7."):
			bad("downloads.containerd", "%s is too old: use v1.7 or v2", d.Containerd)
		case old && minor >= 36:
			bad("downloads.containerd", "%s: Kubernetes 1.35 is the last that works with containerd 1.7: use v2, for example %s", d.Containerd, defaultContainerd)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.SHA256)) {
		file, arch, _ := strings.Cut(name, "/")
		if !known(file) || !slices.Contains(Arches, arch) {
			bad(fmt.Sprintf("downloads.sha256[%q]", name), "give NAME/ARCH with a name of %s and arch amd64 or arm64", strings.Join(Files, ", "))
		}
		if !isSHA256(d.SHA256[name]) {
			bad(fmt.Sprintf("downloads.sha256[%q]", name), "%q is not 64 lower-case hex digits", d.SHA256[name])
		}
	}
}

func (p Proxy) validate(bad report) {
	for _, u := range []struct{ field, url string }{{"proxy.http", p.HTTP}, {"proxy.https", p.HTTPS}} {
		if u.url != "" && (!isURL(u.url) || strings.ContainsAny(u.url, "$%\\")) {
			bad(u.field, "%q: give an http:// or https:// address, for example http://proxy.example.net:3128", u.url)
		}
	}
	for _, n := range p.No {
		if n == "" || !only(n, ".-:/*_") {
			bad("proxy.no", "%q: give a name, a domain, an address or a CIDR, for example 10.0.0.0/8", n)
		}
	}
}

// validateMachine judges what depends on the machine and its image.
func (s Spec) validateMachine(bad report) {
	sys, known := systems[s.System]
	if s.System != "" && !known {
		bad("system", "%q is not known: use %s", s.System, strings.Join(Systems(), ", "))
	}
	if s.Arch != "" && !slices.Contains(Arches, s.Arch) {
		bad("arch", "%q is not known: use %s", s.Arch, strings.Join(Arches, " or "))
	}
	if s.Format != "" && formats[s.Format] == nil {
		bad("format", "%q is not known: use %s", s.Format, strings.Join(Formats(), ", "))
	}
	switch {
	case s.Format == "ignition" && known && sys.format != "ignition":
		bad("format", "%s does not read Ignition: use script, cloud-config or mime", s.System)
	case s.System == "flatcar" && (s.Format == "mime" || s.Format == "cloud-config"):
		bad("format", "Flatcar reads %s only in part: use ignition or script", s.Format)
	}
	if s.Downloads.ECR != "" && s.Cloud != "aws" {
		bad("downloads.ecr", "only machines of AWS have credentials for ECR: leave it out on %s", s.Cloud)
	}
	if s.InstanceStore != "" {
		switch {
		case !slices.Contains(InstanceStores, s.InstanceStore):
			bad("instanceStore", "%q is not known: use %s", s.InstanceStore, strings.Join(InstanceStores, " or "))
		case s.Cloud != "aws":
			bad("instanceStore", "only the NVMe disks of AWS instances are known: leave it out on %s", s.Cloud)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.RegistryMirrors)) {
		host, port, ok := strings.Cut(name, ":")
		if !isDNSName(host) || ok && (port == "" || strings.Trim(port, "0123456789") != "") {
			bad(fmt.Sprintf("registryMirrors[%q]", name), "give the registry's host, for example registry.k8s.io")
		}
		if u := s.RegistryMirrors[name]; !isURL(u) || strings.ContainsAny(u, "$") {
			bad(fmt.Sprintf("registryMirrors[%q]", name), "%q: give an http:// or https:// address", u)
		}
	}
	if why := badNodeIP(s.NodeIP); why != "" {
		bad("nodeIP", "%q: %s", s.NodeIP, why)
	}
	if why := BadImageRepository(s.ImageRepository); why != "" {
		bad("imageRepository", "%q: %s", s.ImageRepository, why)
	}
	for _, check := range s.IgnorePreflight {
		if !isName(check) {
			bad("ignorePreflight", "%q: give the name of a check as kubeadm prints it, for example SystemVerification", check)
		}
	}
	for _, h := range []struct {
		field string
		text  []byte
	}{{"beforeJoin", s.BeforeJoin}, {"afterJoin", s.AfterJoin}} {
		if why := badHook(h.text); why != "" {
			bad(h.field, "%s", why)
		}
	}
}

func badHook(text []byte) string {
	switch {
	case len(text) == 0:
		return ""
	case bytes.HasPrefix(text, []byte("\ufeff")):
		return "begins with a byte order mark, with which no interpreter is found: write it as UTF-8 without one"
	case !strings.HasPrefix(string(text), "#!/"):
		return "give a script whose first line names its interpreter, for example #!/bin/sh"
	case !utf8.Valid(text) || strings.ContainsAny(string(text), "\x00\r"):
		return "give text in UTF-8 with Unix line ends"
	}
	for line := range strings.Lines(string(text)) {
		switch line = strings.TrimSuffix(line, "\n"); line {
		case hookEnd, scriptEnd, JoinBegin, JoinEnd, FunctionsBegin, FunctionsEnd:
			return "the line " + line + " is reserved: change it"
		}
		if strings.Contains(line, TokenPlaceholder) {
			return "the text " + TokenPlaceholder + " is reserved: a server's join token is put there"
		}
	}
	return ""
}
