package console

import (
	"fmt"
	"strings"
)

// Mark is one boot phase that the user data told of.
type Mark struct {
	Phase  string            `json:"phase"`
	Values map[string]string `json:"values,omitempty"`
	// Text is the mark as it was written, without what a terminal would act on.
	Text string `json:"text"`
}

// Diagnosis is what a console tells of a join.
type Diagnosis struct {
	// Marks are those of the last boot, in their order, each once where it was repeated.
	Marks []Mark `json:"marks,omitempty"`
	// Where says how far the machine came, Likely what is wrong, Remedy what to do. Likely
	// is empty where nothing is.
	Where  string `json:"where"`
	Likely string `json:"likely,omitempty"`
	Remedy string `json:"remedy,omitempty"`
}

// String is the diagnosis in one line.
func (d Diagnosis) String() string {
	text := d.Where
	if d.Likely != "" {
		text += ": " + d.Likely
	}
	if d.Remedy != "" {
		text += " (" + d.Remedy + ")"
	}
	return text
}

const (
	marker    = "autoscaler-agent: phase="
	maxMarks  = 200
	maxMark   = 160 // bytes
	maxValues = 8
)

// Diagnose reads a console. pending tells that the machine does not run yet.
func Diagnose(text string, pending bool) Diagnosis {
	marks := marksOf(text)
	d := Diagnosis{Marks: marks}
	if len(marks) == 0 {
		d.Where, d.Likely, d.Remedy = unmarked(text, pending)
		return d
	}
	last := marks[len(marks)-1]
	for n := len(marks) - 2; n >= 0 && last.Phase == "failed" && last.Values["reason"] == ""; n-- {
		// A script that ends tells its exit code after the reason.
		if marks[n].Phase != "failed" {
			break
		}
		last = marks[n]
	}
	before := ""
	for _, m := range marks {
		if m.Phase != "failed" && m.Phase != "warning" {
			before = m.Text
		}
	}
	switch last.Phase {
	case "failed":
		d.Where = fmt.Sprintf("the user data failed after %q with %q", before, last.Text)
		d.Likely, d.Remedy = failure(last, before)
	case "joined", "already-joined":
		d.Where = fmt.Sprintf("the user data came to its end (%q)", last.Text)
		d.Likely = "the machine has its certificate; a Node that is missing or NotReady is the kubelet's matter"
		d.Remedy = "autoscaler-agent explain node NAME; kubectl get csr; on the machine journalctl -u kubelet"
	default:
		d.Where = fmt.Sprintf("the user data is, or hangs, in %q", last.Text)
		d.Likely, d.Remedy = hanging(last)
	}
	return d
}

// unmarked is for a console on which the user data has written nothing.
func unmarked(text string, pending bool) (where, likely, remedy string) {
	switch {
	case strings.TrimSpace(text) == "" && pending:
		return "the console is empty", "the machine does not run yet", "wait"
	case strings.TrimSpace(text) == "":
		return "the console is empty", "the cloud shows it some minutes late, or the image writes to no serial console", "ask again in five minutes"
	case strings.Contains(text, "Kernel panic"):
		return "the kernel panicked", "the image does not fit the machine", "look at the image and the instance type"
	case strings.Contains(text, "emergency mode") || strings.Contains(text, "dracut-emergency"):
		return "the machine is in emergency mode", "a disk or a mount of the image failed", "look at the console itself"
	case strings.Contains(text, "grub rescue>"):
		return "the boot loader stopped", "the disk has no system that boots", "look at the image"
	}
	return "the machine boots, and its user data has written nothing", "the user data is not the agent's, is not run by this image, or waits for the network",
		"autoscaler-agent userdata render; compare it with that of the launch template or server"
}

// marksOf finds the marks of the last boot.
func marksOf(text string) []Mark {
	var out []Mark
	for line := range strings.Lines(text) {
		_, rest, ok := strings.Cut(line, marker)
		if !ok {
			continue
		}
		m := markOf(rest)
		switch {
		case m.Phase == "":
			continue
		case m.Phase == "start":
			out = out[:0]
		case len(out) > 0 && out[len(out)-1].Text == m.Text:
			continue // the console shows what a unit prints, too
		}
		if out = append(out, m); len(out) > maxMarks {
			out = out[1:]
		}
	}
	return out
}

func markOf(rest string) Mark {
	rest = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return -1
		}
		return r
	}, strings.TrimRight(rest, "\r\n"))
	if len(rest) > maxMark {
		rest = rest[:maxMark]
	}
	words := strings.Fields(rest)
	if len(words) == 0 || strings.Trim(words[0], "abcdefghijklmnopqrstuvwxyz-") != "" {
		return Mark{}
	}
	m := Mark{Phase: words[0], Text: words[0]}
	for _, w := range words[1:min(len(words), maxValues+1)] {
		key, value, ok := strings.Cut(w, "=")
		if !ok || key == "" || key == "token" {
			break // a terminal's own text may follow on the line
		}
		if m.Values == nil {
			m.Values = map[string]string{}
		}
		m.Values[key] = value
		m.Text += " " + w
	}
	return m
}

// cause is what a reason of the user data means.
type cause struct{ reason, likely, remedy string }

// causes are told by the first whose reason the mark's begins with.
var causes = []cause{
	{"checksum", "a file is not the one whose checksum is pinned: a mirror has another one, or the transfer broke", "compare the file of the mirror with the pinned SHA-256"},
	{"download", "a file could not be fetched: no way to the site or mirror, or it does not have the file", "try the URL from the same subnet; routes, NAT, proxy, security groups"},
	{"package-index", "the distribution's package index could not be read", "try it from the same subnet; or bake the package into the image"},
	{"package", "a package could not be installed", "try it from the same subnet; or bake the package into the image"},
	{"containerd-config", "containerd does not run: its program does not fit the machine", "another --containerd; or bake it into the image"},
	{"services", "containerd or kubelet could not be started", "on the machine journalctl -u containerd -u kubelet"},
	{"install", "a setting or a directory of the system could not be written", "the image: its file systems must be writable"},
	{"disks-too-few", "the machine has fewer disks of its own than the layout wants", "another instance type, or userdata render --instance-store raid0"},
	{"disk-not-blank", "a disk of the machine has data on it already", "userdata render formats blank disks alone: an instance that was stopped has new ones"},
	{"disks", "the machine's own disks could not be made a file system", "look at the console itself; the instance type"},
	{"no-space", "the disk is full", "give the launch template or flavor a larger root disk"},
	{"architecture", "the machine's architecture is not served", "amd64 and arm64 are"},
	{"system", "the image is of another system than the user data was rendered for", "userdata render --os, or another image"},
	{"attest-unreachable", "the leader's attest listener does not answer, or its certificate is not of the cluster's CA", "security group of the leader; AUTOSCALER_BOOTSTRAP_ATTEST_*; autoscaler-agent check"},
	{"attest-role", "the machine has no instance role", "give the launch template an instance profile"},
	{"attest-key", "neither openssl nor ssh-keygen could make a key", "put one of them into the image"},
	{"attest", "the leader refused the machine's attestation", "docs/attested-join.md has the rule; the agent's journal has the reason"},
	{"imds", "the metadata service did not answer", "IMDSv2 must be enabled for the machine"},
	{"metadata", "neither metadata service nor configuration drive answered", "look at the network's metadata service, or set config_drive"},
	{"bad-metadata", "the metadata service told something that cannot be a name or an ID", "look at the server's name and at the VPC's DHCP options"},
	{"token-file", "the token file of the user data is missing", "render the user data anew"},
	{"no-token", "no join token was published when the machine asked", "autoscaler-agent token list; the agent's journal"},
	{"join-token", "the token has ended or was revoked: cluster-info is not signed with it", "autoscaler-agent token list; render the user data anew where the token is pasted into it"},
	{"cluster-info-signature", "the token's secret is not the one that cluster-info is signed with, or somebody changed cluster-info on its way", "autoscaler-agent check --join, from the same subnet; render the user data anew"},
	{"ca-pin", "the cluster's CA is not the one that is pinned", "autoscaler-agent check --join; render the user data anew"},
	{"cluster-info-changed", "cluster-info was another one when it was read with the cluster's CA: somebody may stand between the machine and the API server", "autoscaler-agent check --join, from the same subnet"},
	{"preflight", "kubeadm's preflight checks failed", "the checks that the mark names; the image"},
	{"endpoint", "the API server's endpoint does not answer", "security groups, the load balancer; autoscaler-agent check --join"},
	{"node-name", "a Ready Node has the machine's name already: two machines have one name", "autoscaler-agent explain node NAME; give each machine a name of its own"},
	{"kubeadm-join", "kubeadm join failed each time: wrong token, pin or endpoint, or its client certificate is held", "autoscaler-agent check --join; autoscaler-agent explain csr NAME; the console itself"},
	{"before-join", "the operator's own hook failed", "look at the hook"},
	{"after-join", "the operator's own hook failed", "look at the hook"},
}

func failure(m Mark, before string) (likely, remedy string) {
	reason := m.Values["reason"]
	for _, c := range causes {
		if reason != "" && strings.HasPrefix(reason, c.reason) {
			likely = c.likely
			if f := m.Values["file"]; f != "" {
				likely = f + ": " + likely
			}
			if r := m.Values["rule"]; r != "" {
				likely += " by rule " + r
			}
			return likely, c.remedy
		}
	}
	if reason == "" {
		return "a command of that phase failed", "look at the console itself"
	}
	return "for the reason " + reason, "look at the console itself"
}

// hanging is for a machine that is in the middle of something.
func hanging(m Mark) (likely, remedy string) {
	switch m.Phase {
	case "start", "install", "services", "disks":
		return "installing takes long, or hangs", "look at the console itself"
	case "download", "package":
		return "the site or mirror is slow, or swallows connections", "routes, NAT, proxy, security groups"
	case "metadata":
		return "the metadata service is not reached", "IMDSv2 and its hop limit; the network's metadata service"
	case "attest":
		if r := m.Values["reason"]; r != "" {
			return "the leader does not let it in yet: " + r, "docs/attested-join.md has the rule; the agent's journal has the reason"
		}
		return "the leader does not answer", "security group of the leader; autoscaler-agent check"
	case "token":
		return "it waits for a token to be published", "autoscaler-agent token list; the agent's journal"
	case "join", "retry":
		return "kubeadm waits for the API server, for the token's signature or for the approval of its client certificate", "autoscaler-agent check --join; kubectl get csr; autoscaler-agent explain csr NAME"
	}
	return "", ""
}
