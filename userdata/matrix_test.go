package userdata

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// latest is the newest patch of each minor that the table holds.
func latest(t *testing.T) []string {
	t.Helper()
	table, err := Versions()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for minor := OldestMinor; minor <= NewestMinor; minor++ {
		near := table.near(fmt.Sprintf("v1.%d.0", minor))
		if len(near) == 0 {
			t.Fatalf("the table holds no Kubernetes 1.%d", minor)
		}
		out = append(out, near[0])
	}
	return out
}

// TestMatrix renders every format for every cloud, system, architecture and minor of
// Kubernetes that go together. The golden file holds each one's size and the digest of what
// a machine runs; the scripts are checked by the shell, and by shellcheck and
// systemd-analyze where they are.
func TestMatrix(t *testing.T) {
	var lines []string
	largest := map[string]string{}
	size := map[string]int{}
	checked := map[string]bool{}
	dir := t.TempDir()
	for _, cloud := range Clouds() {
		for _, system := range append([]string{""}, Systems()...) {
			for _, arch := range append([]string{""}, Arches...) {
				for _, format := range Formats() {
					for _, version := range latest(t) {
						s := sample()
						s.Cloud, s.System, s.Arch, s.Format, s.KubernetesVersion = cloud, system, arch, format, version
						name := strings.Join([]string{cloud, or(system, "any"), or(arch, "both"), format, version}, " ")
						if n, _ := minor(version); n == 35 { // the oldest containerd, too
							s.Downloads.Containerd = "v1.7.34"
						}
						out, err := Render(s)
						if why := pairs(system, format); why != "" {
							if err == nil || !strings.Contains(err.Error(), why) {
								t.Errorf("%s: %v, want an error with %q", name, err, why)
							}
							continue
						}
						if err != nil {
							t.Errorf("%s: %v", name, err)
							continue
						}
						script := unpack(t, format, out)
						sum := sha256.Sum256(script)
						lines = append(lines, fmt.Sprintf("%s %s", name, hex.EncodeToString(sum[:8])))
						if len(out) > size[cloud+" "+format] {
							size[cloud+" "+format], largest[cloud+" "+format] = len(out), name
						}
						if !checked[string(script)] {
							checked[string(script)] = true
							file := filepath.Join(dir, fmt.Sprintf("%d.sh", len(checked)))
							if err := os.WriteFile(file, script, 0o600); err != nil {
								t.Fatal(err)
							}
						}
					}
				}
			}
		}
	}
	checkScripts(t, dir)
	for _, key := range sorted(size) {
		cloud, _, _ := strings.Cut(key, " ")
		t.Logf("largest %s: %d of %d bytes (%s)", key, size[key], Limit(cloud), largest[key])
		if size[key] > Limit(cloud) {
			t.Errorf("%s: %d bytes", largest[key], size[key])
		}
	}
	golden(t, "matrix.txt", strings.Join(lines, "\n")+"\n")
}

// pairs tells why a format does not go with a system.
func pairs(system, format string) string {
	switch {
	case system == "flatcar" && (format == "mime" || format == "cloud-config"):
		return "only in part"
	case format == "ignition" && system != "flatcar" && system != "":
		return "does not read Ignition"
	}
	return ""
}

func sorted(m map[string]int) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs from what Render makes: run go test ./userdata -update and read the difference of plain.sh and openstack.sh", file)
	}
}

// unpack returns the script that a machine runs, from each format as the machine's own
// system unpacks it, and checks what stands beside it.
func unpack(t *testing.T, format string, out []byte) []byte {
	t.Helper()
	token := sample().Join.Token
	var script []byte
	switch format {
	case "script":
		if packed, ok, err := Unpack(out); ok || err != nil {
			if !strings.Contains(string(out), "\nJOIN_TOKEN='"+token+"'\n") || err != nil {
				t.Errorf("the token does not stand beside the packed script: %v", err)
			}
			return packed
		}
		_, rest, ok := strings.Cut(string(out), "<<'"+scriptEnd+"'\n")
		body, _, ok2 := strings.Cut(rest, "\n"+scriptEnd+"\n")
		if !ok || !ok2 {
			t.Fatal("no script in the script")
		}
		return []byte(body + "\n")
	case "mime":
		m, err := mail.ReadMessage(bytes.NewReader(out))
		if err != nil {
			t.Fatal(err)
		}
		_, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
		if err != nil {
			t.Fatal(err)
		}
		r := multipart.NewReader(m.Body, params["boundary"])
		part, err := r.NextPart()
		if err != nil {
			t.Fatal(err)
		}
		inner, err := io.ReadAll(part)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.NextPart(); err != io.EOF {
			t.Errorf("a second part, or none ended: %v", err)
		}
		return unpack(t, "cloud-config", inner)
	case "cloud-config":
		text, ok := bytes.CutPrefix(out, []byte("#cloud-config\n"))
		if !ok {
			t.Fatal("no #cloud-config")
		}
		_, text, _ = bytes.Cut(text, []byte("\n")) // a comment
		var doc struct {
			Files []struct{ Path, Permissions, Encoding, Content string } `json:"write_files"`
			Run   [][]string                                              `json:"runcmd"`
		}
		strict(t, text, &doc)
		if len(doc.Files) != 3 || doc.Files[0].Content != token || doc.Files[0].Permissions != "0600" || doc.Files[1].Permissions != "0700" || len(doc.Run) != 3 {
			t.Errorf("files %+v, commands %v", doc.Files, doc.Run)
		}
		script = gunzip(t, doc.Files[1].Content)
	case "ignition":
		var doc struct {
			Ignition struct{ Version string }
			Storage  struct {
				Files []struct {
					Path     string
					Mode     int
					Contents struct{ Source, Compression string }
				}
			}
			Systemd struct {
				Units []struct {
					Name, Contents string
					Enabled        bool
				}
			}
		}
		strict(t, out, &doc)
		f := doc.Storage.Files
		if len(f) != 2 || f[0].Contents.Source != "data:,"+token || f[0].Mode != 0o600 || f[1].Mode != 0o700 || f[1].Contents.Compression != "gzip" {
			t.Errorf("files %+v", f)
		}
		if u := doc.Systemd.Units; len(u) != 1 || !u[0].Enabled || !strings.Contains(u[0].Contents, "ConditionPathExists=!/etc/kubernetes/kubelet.conf\n") {
			t.Errorf("units %+v", u)
		}
		script = gunzip(t, strings.TrimPrefix(f[1].Contents.Source, "data:;base64,"))
	}
	if bytes.Contains(script, []byte(token)) {
		t.Errorf("%s: the compressed script holds the token", format)
	}
	return script
}

func strict(t *testing.T, text []byte, into any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
}

func gunzip(t *testing.T, text string) []byte {
	t.Helper()
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// checkScripts runs the syntax check of sh over all, and shellcheck over a few: it takes a
// second for each.
func checkScripts(t *testing.T, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.sh"))
	if err != nil || len(files) < 100 {
		t.Fatalf("%d scripts, %v", len(files), err)
	}
	if out, err := exec.Command("sh", append([]string{"-c", `for f; do sh -n "$f" || exit 1; done`, "sh"}, files...)...).CombinedOutput(); err != nil {
		t.Errorf("sh -n: %v\n%s", err, out)
	}
	if _, err := exec.LookPath("shellcheck"); err != nil {
		t.Log("shellcheck is not here: the scripts were checked by sh -n alone")
		return
	}
	args := []string{"-s", "sh", "-S", "warning", files[0], files[len(files)/2], files[len(files)-1]}
	if out, err := exec.Command("shellcheck", args...).CombinedOutput(); err != nil {
		t.Errorf("shellcheck: %v\n%s", err, out)
	}
}

// TestUnits: systemd-analyze finds no fault in the units, also in the units that the script writes.
func TestUnits(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("systemd-analyze is not here")
	}
	dir := t.TempDir()
	units := map[string]string{"autoscaler-agent-join.service": strings.ReplaceAll(unit, scriptFile, "/dev/null")}
	for _, name := range []string{"containerd", "kubelet"} {
		_, rest, _ := strings.Cut(programSteps, "u=/etc/systemd/system/"+name+".service\n")
		_, rest, _ = strings.Cut(rest, "$u.new <<UNIT\n")
		body, _, ok := strings.Cut(rest, "UNIT\n")
		if !ok {
			t.Fatalf("no unit for %s", name)
		}
		units[name+".service"] = strings.NewReplacer("$(command -v "+name+")", "/bin/true", "$bin", "/usr/local/bin").Replace(body)
	}
	args := []string{"verify"}
	for name, text := range units {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, file)
	}
	out, err := exec.Command("systemd-analyze", args...).CombinedOutput()
	var said []string
	for line := range strings.Lines(string(out)) { // the host's own units are not ours to judge
		if strings.Contains(line, dir) || strings.Contains(line, "autoscaler-agent-join") || strings.Contains(line, "kubelet.service") || strings.Contains(line, "containerd.service") {
			said = append(said, line)
		}
	}
	if len(said) > 0 || err != nil && len(out) == 0 {
		t.Errorf("%v\n%s", err, strings.Join(said, ""))
	}
}

// TestPerServerToken: the placeholder stands in plain text in every format, once, so that
// whoever makes a server finds it.
func TestPerServerToken(t *testing.T) {
	for _, c := range []struct{ system, format string }{{"debian", "script"}, {"debian", "cloud-config"}, {"debian", "mime"}, {"flatcar", "ignition"}} {
		s := sample()
		s.Cloud, s.Join.Token, s.System, s.Format = "openstack", TokenPlaceholder, c.system, c.format
		out, err := Render(s)
		if err != nil || bytes.Count(out, []byte(TokenPlaceholder)) != 1 {
			t.Errorf("%s: %d placeholders, %v", c.format, bytes.Count(out, []byte(TokenPlaceholder)), err)
		}
	}
}

// TestTable: the table holds every file for both architectures and names its sources.
func TestTable(t *testing.T) {
	table, err := Versions()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range table {
		if !slices.Contains([]string{"kops", "kubespray", "kops+kubespray", "publisher"}, p.Source) {
			t.Errorf("%s %s %s: source %q", p.Name, p.Version, p.Arch, p.Source)
		}
		for _, arch := range Arches {
			if table.Sum(p.Name, p.Version, arch) == "" {
				t.Errorf("%s %s lacks %s", p.Name, p.Version, arch)
			}
		}
	}
	for text, want := range map[string]string{
		"kubelet v1.36.3 amd64 00 kops":                                               "line 1: want NAME VERSION",
		"x v1.36.3 amd64 " + strings.Repeat("0", 64) + " kops":                        "line 1: want NAME VERSION",
		strings.Repeat("kubelet v1.36.3 amd64 "+strings.Repeat("0", 64)+" kops\n", 2): "line 2: kubelet v1.36.3 amd64 is listed twice",
		"# a comment\n\nkubelet v1.36 amd64 " + strings.Repeat("0", 64) + " kops":     "line 3: want NAME VERSION",
	} {
		if _, err := ParseTable(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestOwnTable: a table and a checksum of the operator's own make a version usable that the
// built-in table lacks.
func TestOwnTable(t *testing.T) {
	s := sample()
	s.Arch, s.KubernetesVersion = "arm64", "v1.36.99"
	table, err := ParseTable("kubelet v1.36.99 arm64 " + strings.Repeat("1", 64) + " publisher\n")
	if err != nil {
		t.Fatal(err)
	}
	s.Downloads.Table = table
	s.Downloads.SHA256 = map[string]string{"kubeadm/arm64": strings.Repeat("2", 64)}
	out, err := Render(s)
	if err != nil {
		t.Fatal(err)
	}
	script := string(unpack(t, "script", out))
	for _, want := range []string{"kubelet/arm64) echo 1111", "kubeadm/arm64) echo 2222"} {
		if !strings.Contains(script, want) {
			t.Errorf("no %q", want)
		}
	}
	if strings.Contains(string(out), "amd64") {
		t.Error("user data for arm64 speaks of amd64")
	}
}
