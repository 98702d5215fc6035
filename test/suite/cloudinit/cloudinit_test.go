package cloudinit

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/controlplane"
	"github.com/autoscaler-agent/autoscaler-agent/userdata"
	"github.com/autoscaler-agent/autoscaler-agent/userdata/lint"
)

//go:embed judge.py
var judge []byte

//go:embed tree.sh
var treeScript []byte

const inputs = "../../../userdata/lint/testdata/"

// verdict is what cloud-init did.
type verdict struct {
	Refused    map[string]string // modules that ended with an exception
	Complaints []string          // warnings while parts were handled
	Late       []string          // warnings of modules
	Config     []string          // keys of the merged cloud-config
	Files      map[string]struct{ Mode, Content string }
	Hooks      map[string]string // what the kernel says of each boothook
	Scripts    map[string]struct{ Where, Form, Text string }
	Types      []string
}

// tree makes the root directory once for each form of its script.
func tree(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("not root: chroot into a directory with Debian's cloud-init needs root")
	}
	for _, program := range []string{"apt-get", "dpkg-deb", "chroot"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("no %s: cloud-init comes from Debian's or Ubuntu's packages", program)
		}
	}
	root, err := controlplane.CacheDir("cloudinit")
	if err != nil {
		t.Fatal(err)
	}
	release, _ := os.ReadFile("/etc/os-release")
	dir := filepath.Join(root, fmt.Sprintf("tree-%08x", crc32.ChecksumIEEE(append(slices.Clone(treeScript), release...))))
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		t.Fatal(err)
	}
	building, err := os.MkdirTemp(root, "building-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(building)
	cmd := exec.CommandContext(t.Context(), "sh", "-s", building)
	cmd.Stdin = bytes.NewReader(treeScript)
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("fetch cloud-init: %v\n%s", err, said)
	}
	if err := os.Chmod(building, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(building, dir); err != nil {
		if _, there := os.Stat(dir); there != nil { // else another test was first
			t.Fatal(err)
		}
	}
	return dir
}

func ask(t *testing.T, texts map[string]string) map[string]verdict {
	t.Helper()
	dir := tree(t)
	type input struct {
		Name string `json:"name"`
		Data []byte `json:"data"`
	}
	var list []input
	for name, text := range texts {
		list = append(list, input{name, []byte(text)})
	}
	in, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "chroot", dir, "/usr/bin/python3", "-c", string(judge))
	cmd.Stdin = bytes.NewReader(in)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	verdicts := map[string]verdict{}
	if err := json.Unmarshal(out.Bytes(), &verdicts); err != nil {
		t.Fatal(err)
	}
	if len(verdicts) != len(texts) {
		t.Fatalf("%d verdicts on %d inputs", len(verdicts), len(texts))
	}
	return verdicts
}

// refusals are what cloud-init or the kernel does not take, and mild ones what cloud-init passes
// over with a warning: lint tells it, as a fault or not.
func (v verdict) refusals() (hard, mild []string) {
	for module, why := range v.Refused {
		if strings.Contains(why, "Unknown user or group") && !strings.Contains(why, "'0'") {
			mild = append(mild, why) // the image may have it
			continue
		}
		hard = append(hard, module+": "+why)
	}
	for _, said := range slices.Concat(v.Complaints, v.Late) {
		switch {
		case strings.HasPrefix(said, "DEPRECATED"):
		case strings.HasPrefix(said, "Unhandled unknown"), strings.HasPrefix(said, "Unknown encoding"), strings.HasPrefix(said, "Format for"):
			mild = append(mild, said)
		default:
			hard = append(hard, said)
		}
	}
	for name, s := range v.Scripts {
		if s.Form != "" {
			hard = append(hard, name+": "+s.Form)
		}
	}
	if len(hard)+len(mild) == 0 && len(v.Config)+len(v.Scripts)+len(v.Hooks) == 0 && !slices.Contains(v.Types, "text/part-handler") {
		hard = append(hard, "nothing was done")
	}
	return hard, mild
}

var token = regexp.MustCompile(`\b[a-z0-9]{6}\.[a-z0-9]{16}\b`)

// TestAgrees compares cloud-init with lint, input by input.
func TestAgrees(t *testing.T) {
	texts := table(t)
	verdicts := ask(t, texts)
	refused := 0
	for name, v := range verdicts {
		found := lint.Check([]byte(texts[name]), lint.Options{})
		has := func(rule string, faultsOnly bool) bool {
			return slices.ContainsFunc(found, func(f lint.Finding) bool { return f.Rule == rule && (f.Fails || !faultsOnly) })
		}
		hard, mild := v.refusals()
		switch fault := has(lint.Schema, true); {
		case len(hard) > 0 && !fault:
			t.Errorf("%s: cloud-init refuses it, lint does not say so: %q; lint: %+v", name, hard, found)
		case len(hard)+len(mild) > 0 && len(found) == 0:
			t.Errorf("%s: cloud-init warns, lint has no finding: %q", name, mild)
		case len(hard)+len(mild) == 0 && fault:
			t.Errorf("%s: lint says that cloud-init refuses it, and cloud-init takes it: %+v", name, found)
		}
		if len(hard) > 0 {
			refused++
		}
		open := false
		for _, f := range v.Files {
			mode, err := strconv.ParseInt(f.Mode, 8, 64)
			open = open || err != nil || mode&0o004 != 0 && token.MatchString(f.Content)
		}
		if open != has(lint.Exposed, true) && (open || len(v.Files) > 0 && len(v.Scripts) == 0) {
			t.Errorf("%s: a file with a token that every user may read: %v, lint: %+v", name, open, found)
		}
	}
	t.Logf("%d inputs, of which cloud-init refuses %d", len(texts), refused)
	if refused < 100 || len(texts)-refused < 100 {
		t.Errorf("cloud-init refuses %d of %d inputs: is it asked at all?", refused, len(texts))
	}
}

// TestTakesWhatIsRendered: cloud-init takes the agent's own user data without a warning.
func TestTakesWhatIsRendered(t *testing.T) {
	texts := map[string]string{}
	for _, format := range userdata.Formats() {
		if format == "ignition" {
			continue
		}
		out, err := userdata.Render(userdata.Spec{
			Cloud: "aws", Format: format, KubernetesVersion: "v1.36.3", Reservation: userdata.DefaultReservation(),
			Join: userdata.Join{Endpoint: "k8s.example.net:6443", Token: "abcdef.0123456789abcdef", CACertHashes: []string{"sha256:" + strings.Repeat("0a", 32)}},
		})
		if err != nil {
			t.Fatal(err)
		}
		texts[format] = string(out)
	}
	for format, v := range ask(t, texts) {
		if hard, mild := v.refusals(); len(hard)+len(mild) > 0 {
			t.Errorf("%s: %q %q", format, hard, mild)
		}
	}
}

// TestKnowsEveryKey: lint knows the keys of cloud-init's own schema.
func TestKnowsEveryKey(t *testing.T) {
	file := filepath.Join(tree(t), "usr/lib/python3/dist-packages/cloudinit/config/schemas/schema-cloud-config-v1.json")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Defs map[string]struct {
			Properties map[string]json.RawMessage `json:"properties"`
		} `json:"$defs"`
		AllOf []struct {
			Ref string `json:"$ref"`
		} `json:"allOf"`
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, part := range schema.AllOf {
		for key := range schema.Defs[strings.TrimPrefix(part.Ref, "#/$defs/")].Properties {
			n++
			for _, f := range lint.Check([]byte("#cloud-config\n"+key+": 1\n"), lint.Options{}) {
				if strings.Contains(f.Text, "knows no key") {
					t.Errorf("%s is a key of cloud-init", key)
				}
			}
		}
	}
	if n < 80 {
		t.Errorf("the schema has %d keys", n)
	}
}

// table reads lint's own inputs.
func table(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	text, err := os.ReadFile(inputs + "cases.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		column := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 3)
		input, err := strconv.Unquote(column[len(column)-1])
		if err != nil {
			t.Fatalf("%s: %v", column[0], err)
		}
		out[column[0]] = input
	}
	files, err := filepath.Glob(inputs + "reported/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no reported inputs: %v", err)
	}
	for _, f := range files {
		input, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		out[filepath.Base(f)] = string(input)
	}
	return out
}
