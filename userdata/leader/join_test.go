package leader

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const (
	testKey   = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
	testToken = "abcdef.0123456789abcdef"
	testHash  = "sha256:ffeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100"
)

// vip is a cluster whose endpoint kube-vip holds.
func vip() Spec {
	s := sample()
	s.Machine.Join.Endpoint, s.KubeVIPInterface, s.AdvertiseAddress = "10.0.0.100:6443", "eth0", "10.0.0.11"
	s.KubeVIPDigest = "sha256:" + testKey
	return s
}

func TestJoinGolden(t *testing.T) {
	for name, s := range map[string]Spec{"join-plain": sample(), "join-full": full(), "join-flatcar": flatcar(), "join-vip": vip()} {
		script, err := renderJoin(s)
		if err != nil {
			t.Fatal(err)
		}
		golden(t, name+".sh", script)
		config, err := joinConfiguration(s)
		if err != nil {
			t.Fatal(err)
		}
		golden(t, name+".yaml", config)
		if !bytes.Contains(script, config) {
			t.Errorf("%s: the script does not hold the configuration", name)
		}
		if strings.Contains(string(script), "kubeadm init") || strings.Contains(string(script), "kubectl apply") {
			t.Errorf("%s: it makes a cluster or applies what the cluster has", name)
		}
	}
	values, err := makeJoinValues("v1.36.3")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "values.sh", values)
	script, err := Render(vip())
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "vip.sh", script)
	// Before kubeadm init only super-admin.conf has rights.
	text := string(script)
	if super, init, admin := strings.Index(text, "path: "+superAdminConf), strings.Index(text, "kubeadm init --config"), strings.Index(text, "path: "+adminConf+"}"); super < 0 || super > init || init > admin {
		t.Errorf("kube-vip's kubeconfig: super-admin.conf at %d, kubeadm init at %d, admin.conf at %d", super, init, admin)
	}
	if _, err := exec.LookPath("shellcheck"); err != nil {
		t.Log("shellcheck is not here")
		return
	}
	if out, err := exec.Command("shellcheck", "-s", "sh", "-e", "SC2016,SC2034,SC1091,SC2317,SC2329", "testdata/join-plain.sh", "testdata/join-full.sh", "testdata/join-vip.sh", "testdata/vip.sh", "testdata/values.sh").CombinedOutput(); err != nil {
		t.Errorf("shellcheck: %v\n%s", err, out)
	}
}

// shell runs a script with programs of the test's own before all others.
func shell(t *testing.T, programs, script, input string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command("sh", append([]string{"-c", script, "join.sh"}, args...)...)
	cmd.Env = []string{"PATH=" + programs + ":" + os.Getenv("PATH")}
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestJoinValues: the script takes its secrets from a private file or standard input, and names
// what is wrong with others before it does anything.
func TestJoinValues(t *testing.T) {
	good := "JOIN_TOKEN=" + testToken + "\nJOIN_CERT_HASH=" + testHash + "\nCERTIFICATE_KEY=" + testKey + "\n"
	dir := t.TempDir()
	script := "set -eu\nstate=" + dir + "/state\n" + strings.ReplaceAll(joinValueSteps, "/etc/kubernetes/pki", dir+"/pki") +
		"printf '%s' \"$JOIN_TOKEN $JOIN_CERT_HASH $CERTIFICATE_KEY\"\n"
	want := testToken + " " + testHash + " " + testKey
	for name, c := range map[string]struct {
		text string
		mode os.FileMode
		want string
	}{
		"private":             {good, 0o600, want},
		"read-only":           {good, 0o400, want},
		"no line at the end":  {strings.TrimSuffix(good, "\n"), 0o600, want},
		"the last one counts": {"JOIN_TOKEN=zzzzzz.zzzzzzzzzzzzzzzz\n" + good, 0o600, want},
		"group may read":      {good, 0o640, "others may read"},
		"all may read":        {good, 0o644, "others may read"},
		"empty":               {"", 0o600, "no JOIN_TOKEN"},
		"no hash":             {strings.ReplaceAll(good, "JOIN_CERT_HASH", "X"), 0o600, "no JOIN_CERT_HASH"},
		"hash not pinned":     {strings.ReplaceAll(good, testHash, "none"), 0o600, "no JOIN_CERT_HASH"},
		"no key":              {strings.ReplaceAll(good, "CERTIFICATE_KEY", "X"), 0o600, "no CERTIFICATE_KEY, and the cluster's certificates are not in"},
		"short key":           {strings.ReplaceAll(good, testKey, testKey[1:]), 0o600, "not 64 hex digits"},
		"quotes in the token": {strings.ReplaceAll(good, testToken, `abcdef.0123"56789abcde,`), 0o600, "a character"},
		"shell in the key":    {strings.ReplaceAll(good, testKey, "$(id)"+testKey[5:]), 0o600, "a character"},
		"shell in the hash":   {strings.ReplaceAll(good, testHash, "sha256:`id`"+testHash[11:]), 0o600, "a character"},
		"DOS line ends":       {strings.ReplaceAll(good, "\n", "\r\n"), 0o600, "no JOIN_TOKEN"},
	} {
		file := filepath.Join(dir, "values")
		if err := os.WriteFile(file, []byte(c.text), c.mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, c.mode); err != nil {
			t.Fatal(err)
		}
		out, err := shell(t, dir, script, "", file)
		if good := c.want == want; (err == nil) != good || !strings.Contains(out, c.want) {
			t.Errorf("%s: %v %q, want %q", name, err, out, c.want)
		}
		if c.want != want && strings.Contains(out, testKey[5:]) {
			t.Errorf("%s: the key is printed: %s", name, out)
		}
	}
	if out, err := shell(t, dir, script, good, "-"); err != nil || out != want {
		t.Errorf("standard input: %v %q", err, out)
	}
	if out, err := shell(t, dir, script, "", filepath.Join(dir, "none")); err == nil || !strings.Contains(out, "there is no file") {
		t.Errorf("no file: %v %q", err, out)
	}
	// Certificates that were copied need no key; a machine that has joined needs no values.
	if err := os.MkdirAll(dir+"/pki", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/pki/ca.key", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := shell(t, dir, script, strings.ReplaceAll(good, testKey, ""), "-"); err != nil || out != testToken+" "+testHash+" " {
		t.Errorf("copied certificates: %v %q", err, out)
	}
	if err := os.MkdirAll(dir+"/state/initialized", 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := shell(t, dir, script, "", filepath.Join(dir, "none")); err != nil || out != "  " {
		t.Errorf("joined already: %v %q", err, out)
	}
}

// recordingKubeadm notes its arguments, and the configuration that it is given.
const recordingKubeadm = `#!/bin/sh
d=${0%/*}
echo "$0 $*" >>"$d/args"
case $* in
  'certs certificate-key') echo ` + testKey + ` ;;
  *upload-certs*) cat "${*##* }" >"$d/upload.yaml" ;;
  'token create '*) echo 'kubeadm join k8s.example.net:6443 --token ` + testToken + ` --discovery-token-ca-cert-hash ` + testHash + ` ' ;;
  'join '*) cat "${*##* }" >"$d/join.yaml"; stat -c %a "${*##* }" >"$d/mode"; [ ! -e "$d/fail" ] ;;
esac
`

// plain are the words of an argument list, of every program that the scripts start.
func recorded(t *testing.T, dir string) string {
	t.Helper()
	args, err := os.ReadFile(dir + "/args")
	if err != nil {
		t.Fatal(err)
	}
	return string(args)
}

func programs(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"kubeadm": recordingKubeadm, "kubectl": "#!/bin/sh\necho \"$0 $*\" >>\"${0%/*}/args\"\n"} {
		if err := os.WriteFile(dir+"/"+name, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// Programs that could show a secret in their arguments are recorded and run.
	for _, name := range []string{"sed", "grep", "cat", "install", "stat", "rm", "tail", "wc", "mktemp"} {
		real, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dir+"/"+name, []byte("#!/bin/sh\nprintf '%s\\n' \"$0 $*\" >>\"${0%/*}/args\"\nexec "+real+" \"$@\"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestMakeJoinValues: the values reach the file, which is private, and no argument list.
func TestMakeJoinValues(t *testing.T) {
	dir := programs(t)
	script, err := makeJoinValues("v1.30.14")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("/etc/kubernetes/pki/ca.key", dir+"/kubeadm", "/run/control-plane-join.", dir+"/run.").Replace(string(script))
	file := dir + "/values"
	out, err := shell(t, dir, text, "", file)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got, err := os.ReadFile(file)
	if err != nil || string(got) != "JOIN_TOKEN="+testToken+"\nJOIN_CERT_HASH="+testHash+"\nCERTIFICATE_KEY="+testKey+"\n" {
		t.Errorf("%v %q", err, got)
	}
	if st, err := os.Stat(file); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", err, st.Mode())
	}
	if upload, err := os.ReadFile(dir + "/upload.yaml"); err != nil || !strings.Contains(string(upload), `certificateKey: "`+testKey+`"`) || !strings.Contains(string(upload), "kubeadm.k8s.io/v1beta3") {
		t.Errorf("%v %s", err, upload)
	}
	for _, secret := range []string{testKey, testToken} {
		if args := recorded(t, dir); strings.Contains(args, secret) || strings.Contains(out, secret) {
			t.Errorf("%s is in an argument list or printed:\n%s\n%s", secret, args, out)
		}
	}
	if left, _ := filepath.Glob(dir + "/run.*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if _, err := makeJoinValues("v1.29.0"); err == nil || !strings.Contains(err.Error(), "too old") {
		t.Errorf("1.29: %v", err)
	}
}

// joinPlay is the script from its configuration to its end, on directories of the test.
func joinPlay(t *testing.T, dir string) string {
	t.Helper()
	script, err := renderJoin(sample())
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(script), "\nconfig=")
	if !ok {
		t.Fatal("the script sets no config")
	}
	text := "set -eu\nstate=" + dir + "/state VERSION=v1.36.3 IMAGES= tmp=" + dir + "/tmp\nmkdir -p \"$state\"\nphase() { echo \"phase=$*\"; }\ndie() { echo \"failed $*\"; exit 1; }\nconfigure() { :; }\n" + joinValueSteps + "config=" + rest
	return strings.NewReplacer("/run/autoscaler-agent-leader", dir+"/run", "/etc/kubernetes", dir+"/etc").Replace(text)
}

// TestJoinKeepsSecrets: kubeadm gets the secrets by a private file in memory that is gone after
// it, whether or not it succeeds; the file of values goes when it has succeeded, and so does the token.
func TestJoinKeepsSecrets(t *testing.T) {
	for name, c := range map[string]struct{ fails, copied bool }{"joins": {}, "kubeadm fails": {fails: true}, "certificates are copied": {copied: true}} {
		t.Run(name, func(t *testing.T) {
			dir := programs(t)
			values, key := dir+"/values", testKey
			if c.copied {
				key = ""
				if err := os.MkdirAll(dir+"/etc/pki", 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(dir+"/etc/pki/ca.key", nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(values, []byte("JOIN_TOKEN="+testToken+"\nJOIN_CERT_HASH="+testHash+"\nCERTIFICATE_KEY="+key+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if c.fails {
				if err := os.WriteFile(dir+"/fail", nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			out, err := shell(t, dir, joinPlay(t, dir), "", values)
			if (err != nil) != c.fails || strings.Contains(out, "phase=leader-ready") == c.fails {
				t.Fatalf("%v\n%s", err, out)
			}
			text, err := os.ReadFile(dir + "/join.yaml")
			if err != nil {
				t.Fatal(err)
			}
			var doc struct {
				ControlPlane struct{ CertificateKey string }
				Discovery    struct {
					BootstrapToken struct {
						Token        string
						CACertHashes []string
					}
				}
			}
			if err := yaml.Unmarshal(text, &doc); err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			if b := doc.Discovery.BootstrapToken; b.Token != testToken || !slices.Equal(b.CACertHashes, []string{testHash}) || doc.ControlPlane.CertificateKey != key {
				t.Errorf("kubeadm reads %+v", doc)
			}
			if mode, _ := os.ReadFile(dir + "/mode"); strings.TrimSpace(string(mode)) != "600" {
				t.Errorf("its configuration has mode %s", mode)
			}
			if _, err := os.Stat(dir + "/run/kubeadm-join.yaml"); !os.IsNotExist(err) {
				t.Errorf("its configuration stays: %v", err)
			}
			if _, err := os.Stat(values); (err == nil) != c.fails {
				t.Errorf("the values: %v", err)
			}
			args := recorded(t, dir)
			for _, secret := range []string{testKey, testToken} {
				if strings.Contains(args, secret) || strings.Contains(out, secret) {
					t.Errorf("%s is in an argument list or printed:\n%s\n%s", secret, args, out)
				}
			}
			if strings.Contains(args, "delete secret bootstrap-token-abcdef") == c.fails {
				t.Errorf("the token's end:\n%s", args)
			}
		})
	}
}

func TestValidateVIP(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Spec)
		want   string
	}{
		"name":           {func(s *Spec) { s.Machine.Join.Endpoint = "k8s.example.net:6443" }, "holds an address"},
		"shell":          {func(s *Spec) { s.KubeVIPInterface = "eth0;id" }, "not the name of a network interface"},
		"long":           {func(s *Spec) { s.KubeVIPInterface = "abcdefghijklmnop" }, "not the name of a network interface"},
		"no interface":   {func(s *Spec) { s.KubeVIPInterface = "" }, "name the network interface"},
		"own address":    {func(s *Spec) { s.AdvertiseAddress = "10.0.0.100" }, "the machine's own address"},
		"digest":         {func(s *Spec) { s.KubeVIPDigest = "sha256:abc" }, "kubeVIPDigest"},
		"digest no sha":  {func(s *Spec) { s.KubeVIPDigest = testKey }, "kubeVIPDigest"},
		"digest shouted": {func(s *Spec) { s.KubeVIPDigest = "sha256:" + strings.ToUpper(testKey) }, "kubeVIPDigest"},
	} {
		s := vip()
		c.change(&s)
		_, script := Render(s)
		_, join := renderJoin(s)
		_, config := joinConfiguration(s)
		for _, err := range []error{script, join, config} {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %q", name, err, c.want)
			}
		}
	}
}
