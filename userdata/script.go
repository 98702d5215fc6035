package userdata

import (
	_ "embed"
	"maps"
	"slices"
	"strconv"
	"strings"
)

var (
	//go:embed steps/functions.sh
	functionSteps string
	//go:embed steps/start.sh
	startSteps string
	//go:embed steps/install.sh
	installSteps string
	//go:embed steps/packages.sh
	packageSteps string
	//go:embed steps/containerd.sh
	containerdSteps string
	//go:embed steps/ecr.sh
	ecrSteps string
	//go:embed steps/disks.sh
	diskSteps string
	//go:embed steps/programs.sh
	programSteps string
	//go:embed steps/join.sh
	joinSteps string
)

// worker is the whole script that a machine runs. Each format brings it to the machine and
// starts it by the same unit. sums holds the checksums by NAME/ARCH.
func (s Spec) worker(sums map[string]string, tokenInScript bool) string {
	var b strings.Builder
	write := func(parts ...string) {
		for _, p := range parts {
			b.WriteString(p)
		}
	}
	write("#!/bin/sh\n", madeBegin, s.KubernetesVersion, " on ", s.Cloud, ".\n", settingsOf(s))
	write("set -eu\n", FunctionsBegin, "\n", bare(functionSteps), FunctionsEnd, "\n", bare(startSteps))
	write(s.settings(), s.proxy(), "phase install\n", s.architecture(), s.addresses(), checksums(sums), bare(installSteps))
	write(bare(s.packages()), bare(s.disks()), bare(s.containerd()), s.ecr(), bare(programSteps))
	write(hook("before-join", s.BeforeJoin))
	write(JoinBegin, "\n", s.join(tokenInScript), JoinEnd, "\n")
	write("rm -rf ", stateDir, "\n", hook("after-join", s.AfterJoin)) // no boot runs the script again: the token goes before a hook may fail
	if len(s.AfterJoin) > 0 {
		write("rm -rf ", stateDir, "\n")
	}
	return b.String()
}

// bare is steps without their comments: EC2 takes few bytes.
func bare(steps string) string {
	var b strings.Builder
	for line := range strings.Lines(steps) {
		if text := strings.TrimSpace(line); !strings.HasPrefix(text, "# ") || strings.HasPrefix(text, "# shellcheck ") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// stateDir holds the script and, in some formats, the token until the machine has joined.
const stateDir = "/var/lib/autoscaler-agent-join"

func (s Spec) architecture() string {
	text := "case $(uname -m) in\n"
	for _, a := range s.arches() {
		text += "  " + map[string]string{"amd64": "x86_64", "arm64": "aarch64 | arm64"}[a] + ") ARCH=" + a + " ;;\n"
	}
	return text + "  *) die \"reason=architecture-$(uname -m)\" ;;\nesac\n"
}

func (s Spec) addresses() string {
	bases := s.Downloads.Mirrors
	if len(bases) == 0 {
		bases = []string{"https:/"}
	}
	text := "BASES=" + shellQuote(joinEach(bases, "/")) + "\n"
	for _, f := range []struct{ variable, name string }{{"CONTAINERD", "containerd"}, {"RUNC", "runc"}, {"CNI", "cni"}, {"CRICTL", "crictl"}} {
		text += f.variable + "=" + s.path(f.name) + "\n"
	}
	return text + "KUBERNETES=" + strings.TrimSuffix(s.path("kubelet"), "/kubelet") + "\n"
}

func joinEach(list []string, end string) string {
	var out []string
	for _, v := range list {
		out = append(out, strings.TrimSuffix(v, end)+end)
	}
	return strings.Join(out, " ")
}

func checksums(sums map[string]string) string {
	text := "sum() {\n  case $1/$ARCH in\n"
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		text += "    " + name + ") echo " + sums[name] + " ;;\n"
	}
	return text + "  esac\n}\n"
}

func (s Spec) packages() string {
	text := packageSteps
	for _, n := range s.needs() {
		switch systems[s.System].packages {
		case "apt", "none":
			text += "need " + n[0] + " " + n[1] + "\n"
		case "dnf":
			text += "need " + n[0] + " " + n[2] + "\n"
		default:
			text += "if [ $pm = dnf ]; then need " + n[0] + " " + n[2] + "; else need " + n[0] + " " + n[1] + "; fi\n"
		}
	}
	switch s.System {
	case "rocky-9", "":
		text += selinux
	}
	return text
}

// InstanceStores are the ways to use a machine's own disks: one file system on the only
// disk or striped over all, or striped over mirrored pairs.
var InstanceStores = []string{"raid0", "raid10"}

func (s Spec) disks() string {
	if s.InstanceStore == "" {
		return ""
	}
	least := 1
	if s.InstanceStore == "raid10" {
		least = 4
	}
	return "LEVEL=" + strings.TrimPrefix(s.InstanceStore, "raid") + " LEAST_DISKS=" + strconv.Itoa(least) + "\n" + diskSteps
}

// proxy exports the settings to this script and to the services that reach other networks.
// What the machine needs of its own network is never asked of the proxy.
func (s Spec) proxy() string {
	if s.Proxy.HTTP == "" && s.Proxy.HTTPS == "" {
		return ""
	}
	host := s.Join.Endpoint[:strings.LastIndexByte(s.Join.Endpoint, ':')]
	none := append([]string{"127.0.0.1", "localhost", "169.254.169.254", strings.Trim(host, "[]"), ".svc", ".cluster.local"}, s.Proxy.No...)
	text, unit := "", "[Service]\n"
	for _, v := range [][2]string{{"HTTP_PROXY", s.Proxy.HTTP}, {"HTTPS_PROXY", s.Proxy.HTTPS}, {"NO_PROXY", strings.Join(none, ",")}} {
		if v[1] != "" {
			lower := strings.ToLower(v[0])
			text += v[0] + "=" + shellQuote(v[1]) + " " + lower + "=" + shellQuote(v[1]) + "\nexport " + v[0] + " " + lower + "\n"
			unit += "Environment=\"" + v[0] + "=" + strings.ReplaceAll(v[1], "%", "%%") + "\"\n"
		}
	}
	return text + "for u in containerd kubelet; do\n  mkdir -p /etc/systemd/system/$u.service.d\n" +
		"  cat >/etc/systemd/system/$u.service.d/10-proxy.conf <<'UNIT'\n" + unit + "UNIT\n" +
		"  chmod -R u=rwX,go=rX /etc/systemd/system/$u.service.d\ndone\n"
}

// containerd is how containerd is configured, and which images it takes from where. kubeadm and
// containerd name different sandbox images, and mirrors and ImageRepository have kubeadm's.
func (s Spec) containerd() string {
	const dir = "/etc/containerd/certs.d"
	asked, hosts := "", ""
	for _, name := range slices.Sorted(maps.Keys(s.RegistryMirrors)) {
		asked = dir
		hosts += "mkdir -p " + dir + "/" + name + "\ncat >" + dir + "/" + name + "/hosts.toml <<'TOML'\nserver = " + yamlQuote("https://"+name) +
			"\n[host." + yamlQuote(s.RegistryMirrors[name]) + "]\n  capabilities = [\"pull\", \"resolve\"]\nTOML\n"
	}
	if hosts != "" {
		hosts += "chmod -R u=rwX,go=rX " + dir + "\n"
	}
	return "VERSION=" + s.KubernetesVersion + " IMAGES=" + shellQuote(s.ImageRepository) + " REGISTRIES=" + asked + "\n" + containerdSteps + hosts
}

// ecr installs the kubelet's credential provider for ECR.
func (s Spec) ecr() string {
	if s.Downloads.ECR == "" {
		return ""
	}
	return "ECR=" + s.path(ecrProvider) + "\n" + ecrSteps
}

// hook runs a script of the operator. Its text is in a quoted here-document, whose end
// validate refuses inside it.
func hook(name string, text []byte) string {
	if len(text) == 0 {
		return ""
	}
	body := string(text)
	if !strings.HasSuffix(body, "\n") {
		body += "\n"
	}
	file := stateDir + "/" + name
	return "phase " + name + "\nmkdir -p " + stateDir + "\n" + hookBegin(name) + body + hookEnd + "\nchmod 700 " + file + "\n" +
		file + " || die \"reason=" + name + " rc=$?\"\n"
}

// hookBegin is the line before the text of a hook.
func hookBegin(name string) string { return "cat >" + stateDir + "/" + name + " <<'" + hookEnd + "'\n" }

const hookEnd = "END-OF-HOOK"
