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
)

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
	s.Downloads.SHA256, s.Downloads.Table = nil, nil // else the field is not zero
	text, err := json.Marshal(s)
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
	var s Spec
	decoder := json.NewDecoder(bytes.NewReader(line[2]))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&s); err != nil {
		return Spec{}, fmt.Errorf("userdata: its settings cannot be read (%w): a newer release of the agent made it, or somebody changed it", err)
	}
	held, err := Read(text)
	if err != nil {
		return Spec{}, err
	}
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
