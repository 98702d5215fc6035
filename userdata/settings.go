package userdata

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// settings are those of a Spec that nobody could read back from the script. They stand in it as one line of
// JSON, so that the same user data can be rendered for another version of Kubernetes. What the script
// holds anyway (join values, certificates, hooks, checksums) is read from there: EC2 takes few bytes,
// and nothing that only one of the two places has can differ.
type settings struct {
	Cloud           string              `json:"cloud"`
	System          string              `json:"os,omitempty"`
	Arch            string              `json:"arch,omitempty"`
	Reservation     cluster.Reservation `json:"reservation"`
	Labels          map[string]string   `json:"labels,omitempty"`
	Taints          []cluster.Taint     `json:"taints,omitempty"`
	ClusterDNS      []string            `json:"clusterDNS,omitempty"`
	NodeIP          string              `json:"nodeIP,omitempty"`
	ExternalCloud   bool                `json:"externalCloudProvider,omitempty"`
	IgnorePreflight []string            `json:"ignorePreflight,omitempty"`
	KubeadmAPI      string              `json:"kubeadmAPIVersion,omitempty"`
	Mirrors         []string            `json:"mirrors,omitempty"`
	Versions        map[string]string   `json:"versions,omitempty"` // of other programs than Kubernetes, where they were given
	Proxy           *Proxy              `json:"proxy,omitempty"`
	RegistryMirrors map[string]string   `json:"registryMirrors,omitempty"`
	ImageRepository string              `json:"imageRepository,omitempty"`
	InstanceStore   string              `json:"instanceStore,omitempty"`
}

const (
	madeBegin     = "# Made by autoscaler-agent: a worker of Kubernetes "
	settingsBegin = "# Rendered with: "
)

var (
	// settingsLine follows the line that says who made the script, and stands nowhere else.
	settingsLine = regexp.MustCompile(`(?m)^(` + madeBegin + `v[0-9.]+ on [a-z]+\.\n)` + settingsBegin + `(.*)\n`)
	checksumLine = regexp.MustCompile(`(?m)^    ([a-z-]+/[a-z0-9]+)\) echo ([0-9a-f]{64}) ;;$`)
)

// settingsOf is the line of a Spec. Encoding escapes every line end.
func settingsOf(s Spec) string {
	out := settings{
		Cloud: s.Cloud, System: s.System, Arch: s.Arch, Reservation: s.Reservation, Labels: s.Labels, Taints: s.Taints,
		ClusterDNS: s.ClusterDNS, NodeIP: s.NodeIP, ExternalCloud: s.ExternalCloudProvider, IgnorePreflight: s.IgnorePreflight, KubeadmAPI: s.KubeadmAPIVersion,
		Mirrors: s.Downloads.Mirrors, Versions: map[string]string{}, RegistryMirrors: s.RegistryMirrors, ImageRepository: s.ImageRepository, InstanceStore: s.InstanceStore,
	}
	if s.Proxy.HTTP != "" || s.Proxy.HTTPS != "" || len(s.Proxy.No) > 0 {
		out.Proxy = &s.Proxy
	}
	for name, version := range s.Downloads.chosen() {
		if *version != "" {
			out.Versions[name] = *version
		}
	}
	text, err := json.Marshal(out)
	if err != nil {
		panic("userdata: settings of plain values were not encoded: " + err.Error())
	}
	return settingsBegin + string(text) + "\n"
}

// chosen are the versions that may be given, by the program's name.
func (d *Downloads) chosen() map[string]*string {
	return map[string]*string{"containerd": &d.Containerd, "runc": &d.Runc, "cni": &d.CNI, "crictl": &d.Crictl, ecrProvider: &d.ECR}
}

// ErrNoSettings tells that user data cannot be rendered anew.
var ErrNoSettings = errors.New("userdata: it does not tell what it was rendered with: an older release of the agent made it, or somebody wrote it by hand")

// SpecOf is the Spec by which user data of any format was rendered, join values included: Render of it
// makes the same machine. It has the checksums of Kubernetes and of programs whose versions were given; the
// others have the versions of this release.
func SpecOf(text []byte) (Spec, error) {
	script, err := scriptIn(text)
	if err != nil {
		return Spec{}, err
	}
	line := settingsLine.FindSubmatch(script)
	if line == nil {
		return Spec{}, ErrNoSettings
	}
	var from settings
	decoder := json.NewDecoder(bytes.NewReader(line[2]))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&from); err != nil {
		return Spec{}, fmt.Errorf("userdata: its settings cannot be read (%w): a newer release of the agent made it, or somebody changed it", err)
	}
	held, err := Read(text)
	if err != nil {
		return Spec{}, err
	}
	s := from.spec()
	s.Format, s.KubernetesVersion, s.Join = formatOf(text), held.KubernetesVersion, held.Join
	switch {
	case held.PerServer:
		s.Join.Token = TokenPlaceholder
	case held.Join.Attest != "":
		s.Join.CACert = certificates.Find(between(script, JoinBegin, JoinEnd))
	}
	s.BeforeJoin, s.AfterJoin = hookOf(script, "before-join"), hookOf(script, "after-join")
	s.Downloads.SHA256 = map[string]string{}
	for _, m := range checksumLine.FindAllSubmatch(script, -1) {
		name, _, _ := strings.Cut(string(m[1]), "/")
		version, other := s.Downloads.chosen()[name]
		if !other || *version != "" {
			s.Downloads.SHA256[string(m[1])] = string(m[2])
		}
	}
	return s, nil
}

// For is the Spec with another version of Kubernetes, whose checksums are in a table.
func (s Spec) For(version string) Spec {
	if version != s.KubernetesVersion {
		s.KubernetesVersion, s.Downloads.SHA256 = version, maps.Clone(s.Downloads.SHA256)
		maps.DeleteFunc(s.Downloads.SHA256, func(file, _ string) bool {
			name, _, _ := strings.Cut(file, "/")
			_, other := s.Downloads.chosen()[name]
			return !other
		})
	}
	return s
}

func (f settings) spec() Spec {
	s := Spec{
		Cloud: f.Cloud, System: f.System, Arch: f.Arch, Reservation: f.Reservation, Labels: f.Labels, Taints: f.Taints,
		ClusterDNS: f.ClusterDNS, NodeIP: f.NodeIP, ExternalCloudProvider: f.ExternalCloud, IgnorePreflight: f.IgnorePreflight, KubeadmAPIVersion: f.KubeadmAPI,
		Downloads: Downloads{Mirrors: f.Mirrors}, RegistryMirrors: f.RegistryMirrors, ImageRepository: f.ImageRepository, InstanceStore: f.InstanceStore,
	}
	if f.Proxy != nil {
		s.Proxy = *f.Proxy
	}
	for name, version := range s.Downloads.chosen() {
		*version = f.Versions[name]
	}
	return s
}

// formatOf tells the format of rendered user data by its first bytes. The script that it brings is the same in each.
func formatOf(text []byte) string {
	for format, begin := range map[string]string{"cloud-config": "#cloud-config\n", "mime": "MIME-Version: ", "ignition": "{"} {
		if bytes.HasPrefix(text, []byte(begin)) {
			return format
		}
	}
	return "script"
}

// hookOf is the text of a hook in a script; nil: it has none.
func hookOf(script []byte, name string) []byte {
	_, rest, ok := bytes.Cut(script, []byte("\n"+hookBegin(name)))
	text, _, ended := bytes.Cut(rest, []byte("\n"+hookEnd+"\n"))
	if !ok || !ended {
		return nil
	}
	return append(slices.Clone(text), '\n')
}

// scriptIn is the script that a machine runs, of user data of any format.
func scriptIn(text []byte) ([]byte, error) {
	script := text
	for _, packed := range packedPattern.FindAll(text, -1) {
		plain, err := Gunzip(base64.NewDecoder(base64.StdEncoding, bytes.NewReader(packed)))
		if err == nil && bytes.Contains(plain, []byte("\n"+JoinBegin+"\n")) {
			script = plain
		}
	}
	if between(script, JoinBegin, JoinEnd) == nil {
		return nil, errors.New("userdata: no join section: it was not made by autoscaler-agent userdata render, or was cut")
	}
	return script, nil
}
