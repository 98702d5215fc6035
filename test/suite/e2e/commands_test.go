package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/world"
)

var updatePage = flag.Bool("update-commands", false, "write docs/commands.md with the output of this run")

const commandsPage = "../../../docs/commands.md"

// shownPages are the pages whose commands are run, with the fewest commands that each has.
// docs/commands.md names the environment file or the socket in each command; on the other
// pages a command has the agent's own environment, as it has on a machine with agent.env.
var shownPages = []struct {
	path    string
	least   int
	settled bool
}{
	{commandsPage, 20, false}, {"../../../README.md", 4, true}, {"../../../docs/troubleshooting.md", 12, true},
}

// TestCommandsPage runs every command of docs/commands.md, README.md and
// docs/troubleshooting.md in the cluster that the first of them describes and compares the
// output with the page's, line by line, less what differs from cluster to cluster: numbers,
// times, durations and drawn names. After a change of an output:
// go test ./suite/e2e -run TestCommandsPage -update-commands
func TestCommandsPage(t *testing.T) {
	t.Parallel() // it mostly waits
	texts := make([]string, len(shownPages))
	for i, page := range shownPages {
		text, err := os.ReadFile(page.path)
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = string(text)
	}
	s := newScene(t, nil)
	p := s.commandsWorld()
	for i, page := range shownPages {
		if p.settled = page.settled; i == len(shownPages)-1 {
			p.heldRequest() // a younger request would change what is shown of the first
		}
		fresh, ran := p.run(texts[i])
		if ran < page.least {
			t.Errorf("%s: only %d commands: the pattern no longer fits the page", page.path, ran)
		}
		if *updatePage {
			if err := os.WriteFile(page.path, []byte(fresh), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	help, err := exec.CommandContext(t.Context(), s.binary, "--help").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^  ([a-z-]+) +[A-Z]`).FindAllStringSubmatch(string(help), -1) {
		if !strings.Contains(texts[0], "\n## "+m[1]+"\n") && m[1] != "help" {
			t.Errorf("docs/commands.md has no section %s", m[1])
		}
	}
}

// run runs the commands of a page and returns the page with their output.
func (p *pageWorld) run(page string) (fresh string, ran int) {
	for _, block := range regexp.MustCompile("(?s)```console\n(.*?)```").FindAllStringSubmatch(page, -1) {
		var text strings.Builder
		for _, one := range strings.Split(block[1], "$ ")[1:] {
			command, want, _ := strings.Cut(one, "\n")
			ran++
			if strings.Contains(command, "autoscaler-agent version") { // cmd/autoscaler-agent runs it with the Makefile's linker flags
				text.WriteString("$ " + one)
				continue
			}
			got := p.compare(command, want)
			fmt.Fprintf(&text, "$ %s\n%s", p.written(command), got)
		}
		page = strings.Replace(page, block[0], "```console\n"+text.String()+"```", 1)
	}
	return page, ran
}

// pageWorld runs the page's commands in a scene: the page's paths and names stand for
// those of the scene.
type pageWorld struct {
	*scene
	dir                string
	node, deleted, csr string
	broken             string // an instance whose console tells of a failed boot
	settled            bool   // commands have the agent's environment
	agentEnv           []string
	paths              [][2]string // the page's, the scene's
	version            string
}

// commandsWorld is the cluster of docs/commands.md: a node that a pod without a
// controller keeps, a pod that fits no group, and a Node that was deleted.
func (s *scene) commandsWorld() *pageWorld {
	s.t.Helper()
	s.start()
	s.workers(world.Workers{Name: "workers", Max: 5})
	s.lonely("report", "100m")
	s.until("report Running", func() bool { return s.phase("report") == corev1.PodRunning })
	s.deploy("web", 2, "100m", "64Mi")
	s.deploy("batch", 2, "3", "64Mi")
	s.until("web and batch Running", func() bool { return s.running("web") == 2 && s.running("batch") == 2 })
	for _, n := range s.nodes() {
		label := []byte(`{"metadata":{"labels":{"example.net/team":"blue"}}}`)
		if _, err := s.client.CoreV1().Nodes().Patch(s.t.Context(), n.Name, types.MergePatchType, label, metav1.PatchOptions{}); err != nil {
			s.t.Fatal(err)
		}
	}
	s.scale("batch", 0)
	p := &pageWorld{scene: s, dir: s.t.TempDir()}
	s.until("the second Node deleted", func() bool {
		kept, _ := filepath.Glob(filepath.Join(s.w.StateDir(), "nodes", "*.json"))
		return len(kept) == 1 && len(s.nodes()) == 1
	})
	s.lonely("huge", "100")
	p.node = s.nodes()[0].Name
	var kept []struct{ Name string }
	if out, code := s.command("node", "restore", "--list", "--output", "json"); code != 0 || json.Unmarshal([]byte(out), &kept) != nil || len(kept) != 1 {
		s.t.Fatalf("code %d: %s", code, out)
	}
	p.deleted = kept[0].Name
	p.failedBoot()
	requests, err := s.client.CertificatesV1().CertificateSigningRequests().List(s.t.Context(), metav1.ListOptions{FieldSelector: "spec.signerName=kubernetes.io/kubelet-serving"})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, r := range requests.Items {
		if r.Spec.Username == "system:node:"+p.node {
			p.csr = r.Name
		}
	}
	p.environment()
	return p
}

// failedBoot writes the marks of a boot that failed to the console of an instance that has ended,
// in place of its own.
func (p *pageWorld) failedBoot() {
	p.t.Helper()
	kept, _ := filepath.Glob(filepath.Join(p.w.StateDir(), "nodes", "*.json"))
	if len(kept) != 1 {
		p.t.Fatalf("kept Nodes: %q", kept)
	}
	data, err := os.ReadFile(kept[0])
	if err != nil {
		p.t.Fatal(err)
	}
	p.broken = regexp.MustCompile(`i-[0-9a-f]{17}`).FindString(string(data))
	if p.broken == "" {
		p.t.Fatalf("no instance in %s", kept[0])
	}
	p.w.Cloud.Console(p.broken, strings.Repeat("\n", 64<<10)) // a cloud keeps so much of the end
	for _, phase := range []string{"start", "install", "download file=kubelet", "failed reason=checksum file=kubelet"} {
		p.w.Cloud.Console(p.broken, "autoscaler-agent: phase="+phase+"\n")
	}
}

// heldRequest makes a serving certificate request of the node with a name that is not the
// machine's. It stays held.
func (p *pageWorld) heldRequest() {
	p.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", p.w.ControlPlane.Kubeconfig())
	if err != nil {
		p.t.Fatal(err)
	}
	user := "system:node:" + p.node
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:nodes", "system:authenticated"}}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		p.t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		p.t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{Organization: []string{"system:nodes"}, CommonName: user}, DNSNames: []string{p.node, "db.example.net"}}, key)
	if err != nil {
		p.t.Fatal(err)
	}
	made, err := client.CertificatesV1().CertificateSigningRequests().Create(p.t.Context(), &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "csr-held1"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			SignerName: "kubernetes.io/kubelet-serving", Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth}}}, metav1.CreateOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	p.csr = made.Name
}

// journal is a stand-in for journalctl, which has no journal here: the lines of the agent's log
// whose rule is the one of RULE=, in the words that agent/report gives to the journal.
const journal = `#!/bin/sh
rule=.
for arg; do case $arg in RULE=*) rule="rule=${arg#RULE=}\b" ;; esac; done
grep -e "$rule" LOG | sed 's/^time="[^"]*" level=[a-z]* msg="\([^"]*\)".* rule=\([A-Z0-9]*\).* why="\([^"]*\)".*/\1 [\2]: \3/'
`

// files writes what the commands of the pages read.
func (p *pageWorld) files(kubeconfig string) {
	p.t.Helper()
	config, err := os.ReadFile(kubeconfig)
	if err != nil {
		p.t.Fatal(err)
	}
	for name, text := range map[string]string{
		"journalctl":  strings.ReplaceAll(journal, "LOG", p.agent.Log),
		"groups.yaml": "groups:\n  workers:\n    prise: 0.192\n",
		"kubeconfig":  regexp.MustCompile(`server: .*`).ReplaceAllString(string(config), "server: https://127.0.0.1:1"),
	} {
		if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o700); err != nil {
			p.t.Fatal(err)
		}
	}
}

// environment writes the agent's environment to a file, as it is for a unit.
func (p *pageWorld) environment() {
	p.t.Helper()
	kubeconfig, err := p.w.AgentKubeconfig(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	p.files(kubeconfig)
	p.agentEnv = p.w.AgentEnv(kubeconfig)
	var file strings.Builder
	for _, pair := range p.agentEnv {
		name, value, _ := strings.Cut(pair, "=")
		fmt.Fprintf(&file, "%s=\"%s\"\n", name, strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`").Replace(value))
	}
	env := filepath.Join(p.dir, "agent.env")
	if err := os.WriteFile(env, []byte(file.String()), 0o600); err != nil {
		p.t.Fatal(err)
	}
	p.paths = [][2]string{
		{"/etc/autoscaler-agent/agent.env", env}, {"/etc/autoscaler-agent/kubeconfig", kubeconfig}, {"/etc/autoscaler-agent/groups.yaml", p.w.GroupsFile()},
		{"/etc/kubernetes/admin.conf", p.w.ControlPlane.Kubeconfig()}, {"/etc/worker.env", p.w.WorkerEnv()},
		{"/var/lib/autoscaler-agent", p.w.StateDir()}, {"/run/autoscaler-agent/agent.sock", p.w.Socket()},
		{"/run/autoscaler-agent", p.w.Dir}, // whatever else is in the scene's directory
		{"/root", p.dir},
	}
	var build struct{ Version string }
	out, code := p.command("version", "--output", "json")
	if err := json.Unmarshal([]byte(out), &build); err != nil || code != 0 {
		p.t.Fatalf("code %d, %v: %s", code, err, out)
	}
	p.version = build.Version
}

var (
	pageNode    = regexp.MustCompile(`(explain node) \S+`)
	pageCSR     = regexp.MustCompile(`(explain csr) \S+`)
	pageBroken  = regexp.MustCompile(`(explain instance) \S+`)
	pageDeleted = regexp.MustCompile(`(node restore) [^-]\S*`)
)

// written is a command as the page would write it in this cluster.
func (p *pageWorld) written(command string) string {
	command = pageNode.ReplaceAllString(command, "$1 "+p.node)
	command = pageBroken.ReplaceAllString(command, "$1 "+p.broken)
	command = pageCSR.ReplaceAllString(command, "$1 "+p.csr)
	return pageDeleted.ReplaceAllString(command, "$1 "+p.deleted)
}

// compare runs a command of the page in a shell until its output has the page's
// shape: what the cluster tells takes a moment to be known. It returns the output as
// the page would show it.
func (p *pageWorld) compare(command, want string) (shown string) {
	p.t.Helper()
	line := p.written(command)
	for _, path := range p.paths {
		line = strings.ReplaceAll(line, path[0], path[1])
	}
	deadline := time.Now().Add(await.Limit)
	if *updatePage || p.t.Failed() { // one command that differs has waited for the rest
		deadline = time.Now()
	}
	for {
		ctx, cancel := context.WithTimeout(p.t.Context(), await.Limit)
		cmd := exec.CommandContext(ctx, "/bin/sh", "-c", line)
		cmd.Dir, cmd.Env = p.dir, []string{}
		if p.settled {
			cmd.Env = append(cmd.Env, p.agentEnv...)
		}
		cmd.Env = append(cmd.Env, "PATH="+p.dir+":"+filepath.Dir(p.binary)+":"+os.Getenv("PATH"), "HOME="+p.dir)
		out, err := cmd.CombinedOutput()
		cancel()
		if cmd.ProcessState == nil {
			p.t.Fatal(err)
		}
		shown = string(out)
		for _, path := range p.paths {
			shown = strings.ReplaceAll(shown, path[1], path[0])
		}
		shown = strings.ReplaceAll(shown, "agent    "+p.version+" on", "agent    v1.4.0 on")
		if cut, _, ok := strings.Cut(want, "...\n"); ok {
			lines := strings.SplitAfter(shown, "\n")
			shown = strings.Join(lines[:min(len(lines)-1, strings.Count(cut, "\n"))], "") + "...\n"
		}
		if shape(shown) == shape(want) {
			return shown
		}
		if time.Now().After(deadline) {
			break
		}
		<-time.After(300 * time.Millisecond)
	}
	if !*updatePage {
		p.t.Errorf("$ %s\n--- the page\n%s--- this cluster\n%s--- as shapes\n%s---\n%s", line, want, shown, shape(want), shape(shown))
	}
	return shown
}

// differs are the parts of an output that differ from cluster to cluster, with what
// stands for them.
var differs = []struct {
	from *regexp.Regexp
	to   string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`), "TIME"},
	{regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`), "UID"},
	{regexp.MustCompile(`\b[0-9a-f]{8}\b`), "DIGEST"}, // of a source
	{regexp.MustCompile(`\b(i|lt|vol|subnet|sg|ami)-[0-9a-f]{8,17}\b`), "$1-X"},
	{regexp.MustCompile(`\b(web|batch)-[a-z0-9]{6,10}-[a-z0-9]{5}\b`), "$1-X"},
	{regexp.MustCompile(`\bcsr-[a-z0-9]{5}\b`), "csr-X"},
	{regexp.MustCompile(`eu-west-1[a-c]`), "ZONE"},
	{regexp.MustCompile(`\d+(\.\d+)?`), "N"},
	{regexp.MustCompile(`(N(h|ms|m|µs|s))+`), "DURATION"},
	{regexp.MustCompile(`[ \t]+`), " "},
}

// shape is an output without what differs from cluster to cluster.
func shape(out string) string {
	for _, d := range differs {
		out = d.from.ReplaceAllString(out, d.to)
	}
	return out
}
