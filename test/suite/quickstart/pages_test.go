package quickstart

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/world"
)

// commands are the lines of a page's first block.
func commands(t *testing.T, page string) []string { return block(t, page, "# ") }

// block are the lines of the first block below a heading of a page.
func block(t *testing.T, page, heading string) []string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/" + page)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), heading)
	_, rest, _ = strings.Cut(rest, "```sh\n")
	block, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatalf("%s has no commands", page)
	}
	return strings.Split(strings.TrimSpace(block), "\n")
}

// workstation runs the commands of a page on this machine. Stand-ins replace what a test lacks: ssh
// runs a command on this machine, and what only a leader has is written down and not
// executed.
type workstation struct {
	t              *testing.T
	dir, agent     string
	ca             *x509.Certificate
	leaderCommands bool // the binary has leader-config
}

// recorded are the programs that are written down and not executed.
var recorded = []string{"scp", "apt-get", "systemctl", "kubectl", "install"}

func newWorkstation(t *testing.T) *workstation {
	t.Helper()
	d := &workstation{t: t, dir: t.TempDir()}
	d.agent = filepath.Join(d.dir, "built", "autoscaler-agent")
	if err := world.BuildAgent(t.Context(), d.agent); err != nil {
		t.Fatal(err)
	}
	help, err := exec.Command(d.agent, "--help").Output()
	if err != nil {
		t.Fatal(err)
	}
	d.leaderCommands = strings.Contains(string(help), "\n  leader-config ")
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(root, "deploy"), filepath.Join(d.dir, "deploy")); err != nil {
		t.Fatal(err)
	}
	d.write("home/.ssh/id_ed25519.pub", "ssh-ed25519 AAAA ops\n", 0o600)
	for _, name := range recorded {
		d.write("bin/"+name, "#!/bin/sh\nprintf '%s\\n' \""+name+" $*\" >>\"$DESK/log\"\n", 0o755)
	}
	// The leader's SSH answers at the second question: the scripts wait for it.
	d.write("bin/ssh-keyscan", "#!/bin/sh\nprintf '%s\\n' \"ssh-keyscan $*\" >>\"$DESK/log\"\n[ ! -f \"$DESK/up\" ] || echo a key\n: >\"$DESK/up\"\n", 0o755)
	d.write("bin/ssh", "#!/bin/sh\nprintf '%s\\n' \"ssh $*\" >>\"$DESK/log\"\nshift\nexec sh -c \"$*\"\n", 0o755)
	d.write("bin/sudo", "#!/bin/sh\ncase \"$*\" in 'sh leader.sh') printf '%s\\n' 'sh leader.sh' >>\"$DESK/log\" ;; *) exec \"$@\" ;; esac\n", 0o755)
	known := ""
	if !d.leaderCommands {
		known = "leader-config\\ * | "
	}
	d.write("bin/autoscaler-agent", `#!/bin/sh
printf '%s\n' "autoscaler-agent $*" >>"$DESK/log"
case "$*" in
userdata\ render\ --cloud\ openstack*) exec "$AGENT" "$@" --join-file "$DESK/worker.env" --env-file "$DESK/agent.env" ;;
userdata\ render\ *) exec "$AGENT" "$@" --join-file "$DESK/worker.env" --ca-file "$DESK/pki/ca.crt" --env-file "$DESK/agent.env" ;;
userdata\ render) exec "$AGENT" "$@" --join-file "$DESK/worker.env" --env-file "$DESK/agent.env" ;;
`+known+`install\ * | status) ;;
*) exec "$AGENT" "$@" ;;
esac
`, 0o755)
	d.authority()
	return d
}

func (d *workstation) write(name, text string, mode os.FileMode) {
	d.t.Helper()
	path := filepath.Join(d.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		d.t.Fatal(err)
	}
}

func (d *workstation) read(name string) string {
	d.t.Helper()
	text, err := os.ReadFile(filepath.Join(d.dir, name))
	if err != nil {
		d.t.Fatal(err)
	}
	return string(text)
}

// authority makes the cluster's CA, and the file that the agent publishes: without a token.
func (d *workstation) authority() {
	d.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		d.t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kubernetes"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		d.t.Fatal(err)
	}
	if d.ca, err = x509.ParseCertificate(der); err != nil {
		d.t.Fatal(err)
	}
	d.write("pki/ca.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), 0o600)
	d.write("agent.env", "", 0o600)
	d.write("worker.env", fmt.Sprintf("JOIN_CERT_HASH=sha256:%x\nJOIN_ENDPOINT=10.0.0.4:6443\nJOIN_KUBERNETES_VERSION=v1.36.3\n", sha256.Sum256(d.ca.RawSubjectPublicKeyInfo)), 0o600)
}

// play types the lines in one shell.
func (d *workstation) play(lines []string, env ...string) {
	d.t.Helper()
	if out, err := d.try(strings.Join(lines, "\n"), env...); err != nil {
		d.t.Fatalf("%v\n%s", err, out)
	}
}

// try is play for what may fail: it returns all that is printed.
func (d *workstation) try(lines string, env ...string) (string, error) {
	cmd := exec.Command("sh", "-eu", "-c", lines)
	cmd.Dir = d.dir
	cmd.Env = append(os.Environ(), append(env, "PATH="+filepath.Join(d.dir, "bin")+":"+os.Getenv("PATH"), "HOME="+filepath.Join(d.dir, "home"), "AWS_PAGER=",
		"DESK="+d.dir, "AGENT="+d.agent)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// want compares what the leader was told with lines that begin so, in order.
func (d *workstation) want(lines ...string) {
	d.t.Helper()
	log := strings.Split(strings.TrimSpace(d.read("log")), "\n")
	for _, line := range lines {
		i := slices.IndexFunc(log, func(l string) bool { return strings.HasPrefix(l, line) })
		if i < 0 {
			d.t.Errorf("nothing begins with %q any more of\n%s", line, strings.Join(log, "\n"))
			continue
		}
		log = log[i+1:]
	}
}

// settings: every variable that install is told to write is one of the agent's or of
// OpenStack's clients.
func (d *workstation) settings(lines []string) {
	d.t.Helper()
	known, err := exec.Command(d.agent, "check", "--print-env").Output()
	if err != nil {
		d.t.Fatal(err)
	}
	found := 0
	for _, field := range strings.Fields(strings.Join(lines, " ")) {
		name, _, ok := strings.Cut(strings.Trim(field, `"`), "=")
		if !ok || !strings.HasPrefix(name, "AUTOSCALER_") {
			continue
		}
		if found++; !strings.Contains(string(known), "\n#"+name+"=") && !strings.Contains(string(known), "\n"+name+"=") {
			d.t.Errorf("there is no setting %s", name)
		}
	}
	if found == 0 {
		d.t.Error("no settings in the page")
	}
}

// leaderScript: leader-config was executed as the page has it. A binary without that
// command leaves the check out, and says so.
func (d *workstation) leaderScript() {
	d.t.Helper()
	if !d.leaderCommands {
		d.t.Log("this binary has no leader-config: that command was only written down")
		return
	}
	if out, err := exec.Command("sh", "-n", filepath.Join(d.dir, "leader.sh")).CombinedOutput(); err != nil {
		d.t.Errorf("leader.sh: %v: %s", err, out)
	}
	if script := d.read("leader.sh"); !strings.Contains(script, "10.0.0.4:6443") || !strings.Contains(script, "serverTLSBootstrap") {
		d.t.Errorf("leader.sh has no endpoint or no serverTLSBootstrap")
	}
}

// linted: userdata lint finds no fault, and there is no token.
func (d *workstation) linted(cloud, file string) {
	d.t.Helper()
	out, err := exec.Command(d.agent, "userdata", "lint", "--cloud", cloud, filepath.Join(d.dir, file)).CombinedOutput()
	if err != nil || !strings.Contains(string(out), " 0 faults") {
		d.t.Errorf("userdata lint: %v: %s", err, out)
	}
}

// TestQuickstartAWS types docs/quickstart-aws.md from an empty account on; README.md says
// what of it is executed.
func TestQuickstartAWS(t *testing.T) {
	lines := commands(t, "quickstart-aws.md")
	if len(lines) > 12 {
		t.Errorf("%d commands", len(lines))
	}
	d := newWorkstation(t)
	d.settings(lines)
	awsCommand(t)
	c := emptyAccount(t)
	d.play(lines[:8], c.Env()...)
	closedGroup(t, c)
	d.play(append([]string{". ./demo.env"}, lines[8:]...), c.Env()...) // the same shell to a person
	d.want("ssh-keyscan -T 5 "+c.Account().Addresses[0].PublicIP, "ssh-keyscan -T 5 "+c.Account().Addresses[0].PublicIP,
		"scp autoscaler-agent-VERSION-linux-amd64.deb ubuntu@"+c.Account().Addresses[0].PublicIP+":agent.deb", "apt-get -o DPkg::Lock::Timeout=300 install -y ./agent.deb",
		"autoscaler-agent leader-config --os ubuntu --cluster-name demo --endpoint 10.0.0.4:6443 ", "sh leader.sh",
		"autoscaler-agent install --set AUTOSCALER_BOOTSTRAP_TOKENS=none --set AUTOSCALER_BOOTSTRAP_ATTEST_LISTEN=:6444 --set AUTOSCALER_BOOTSTRAP_ATTEST_ACCOUNT=123456789012 --set AUTOSCALER_BOOTSTRAP_ATTEST_ROLES=demo-worker",
		"systemctl enable --now autoscaler-agent", "autoscaler-agent userdata render --attest 10.0.0.4:6444", "kubectl apply -f -", "autoscaler-agent status")
	d.leaderScript()
	d.linted("aws", "worker.sh")
	if data := d.read("worker.sh"); strings.Contains(data, "JOIN_TOKEN='") {
		t.Errorf("the user data has a token")
	}
	judgeAWS(t, c, d.read("worker.sh"))
	buysTen(t, c)
	d.again(c, lines)
	d.furtherGroups(c)
}

// again: a second run of aws.sh leader changes nothing, and new user data is a new version
// of the launch template.
func (d *workstation) again(c *aws.Cloud, lines []string) {
	d.t.Helper()
	before := stateOf(d.t, c)
	d.play(lines[:1], c.Env()...)
	if after := stateOf(d.t, c); after != before {
		d.t.Errorf("a second run of leader changes\n%sto\n%s", before, after)
	}
	d.write("worker.sh", "#!/bin/sh\necho second\n", 0o600)
	publish(d.t, c, "ami-0a1b2c3d4e5f60720", "x86_64")
	d.play(lines[8:9], c.Env()...)
	if i := grow(d.t, c); !strings.Contains(i.UserData, "second") || i.ImageID != image {
		d.t.Errorf("the next machine gets the image %s and %q: new user data is no new image", i.ImageID, i.UserData)
	}
}

// TestQuickstartOpenStack types docs/quickstart-openstack.md with a stand-in for its first
// command, which make e2e-openstack executes; each of that command's options is one of
// openstack.sh.
func TestQuickstartOpenStack(t *testing.T) {
	lines := commands(t, "quickstart-openstack.md")
	if len(lines) > 12 {
		t.Errorf("%d commands", len(lines))
	}
	d := newWorkstation(t)
	d.settings(lines)
	script, err := os.ReadFile(script(t, "openstack.sh"))
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range strings.Fields(lines[0]) {
		if strings.HasPrefix(field, "--") && !strings.Contains(string(script), "\t"+field+") ") {
			t.Errorf("openstack.sh has no option %s", field)
		}
	}
	if err := os.Remove(filepath.Join(d.dir, "deploy")); err != nil {
		t.Fatal(err)
	}
	d.write("deploy/work.yaml", "", 0o600)
	d.write("deploy/cli/openstack.sh", "#!/bin/sh\necho LEADER=198.51.100.1\necho ENDPOINT=10.0.0.4\n", 0o755)
	d.write("bin/install", "#!/bin/sh\nprintf '%s\\n' \"install $*\" >>\"$DESK/log\"\ncase \"$*\" in */dev/stdin*) cat >\"$DESK/worker.sh\" ;; esac\n", 0o755)
	d.play(lines)
	d.want("scp autoscaler-agent-VERSION-linux-amd64.deb clouds.yaml groups.yaml ubuntu@198.51.100.1:", "apt-get -o DPkg::Lock::Timeout=300 install -y", "install -m 0640 -g autoscaler-agent clouds.yaml groups.yaml /etc/autoscaler-agent/",
		"autoscaler-agent leader-config --os ubuntu --cluster-name demo --endpoint 10.0.0.4:6443 ", "sh leader.sh",
		"autoscaler-agent install --set AUTOSCALER_PROVIDER=nova --set AUTOSCALER_OPENSTACK_CLOUD=demo --set OS_CLIENT_CONFIG_FILE=/etc/autoscaler-agent/clouds.yaml",
		"systemctl enable --now autoscaler-agent", "autoscaler-agent userdata render --cloud openstack", "kubectl ", "autoscaler-agent status")
	d.leaderScript()
	d.linted("openstack", "worker.sh")
}

// TestProviderPageAWS types the blocks of docs/providers/aws.md that make a group for a cluster that exists, in the
// order of the page: the group has no room before its machines have user data.
func TestProviderPageAWS(t *testing.T) {
	d := newWorkstation(t)
	awsCommand(t)
	c := emptyAccount(t)
	yours := strings.NewReplacer("ami-0123456789abcdef0", image, `"IamInstanceProfile":{"Name":"worker"},"SecurityGroupIds":["sg-0123456789abcdef0"],`, "", "mycluster", "demo", "eu-west-1a", c.Region()+"a")
	typed := func(heading string) {
		d.play([]string{yours.Replace(strings.Join(block(t, "providers/aws.md", heading), "\n"))}, c.Env()...)
	}
	typed("\n## 1. The group\n")
	if lt, ok := c.LatestVersion("worker"); !ok || lt.UserData != "" || lt.HTTPTokens != "required" || lt.HopLimit != 1 {
		t.Errorf("template %+v", lt)
	}
	if g, ok := c.Group("workers"); !ok || g.Max != 0 || !g.ProtectNew || !slices.Equal(g.SuspendedProcesses, []string{"AZRebalance"}) {
		t.Errorf("group %+v", g)
	}
	d.write("worker.env", d.read("worker.env")+"JOIN_TOKEN=abcdef.0123456789abcdef\n", 0o600)
	typed("\n## 4. The workers\n")
	d.linted("aws", "worker.sh")
	if lt, _ := c.LatestVersion("worker"); lt.UserData != d.read("worker.sh") || lt.HTTPTokens != "required" || lt.ImageID != image {
		t.Errorf("template %+v", lt)
	}
	p := provider(t, c)
	groups, err := p.Groups(t.Context())
	if err != nil || len(groups) != 1 || groups[0].ID != "workers" || groups[0].Max != 10 || len(groups[0].Warnings) > 0 {
		t.Fatalf("the provider finds %+v, %v", groups, err)
	}
}
