package lint

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/internal/lazyregexp"
	"github.com/autoscaler-agent/autoscaler-agent/userdata"
)

// phase is when a script runs.
type phase int

const (
	once        phase = iota // at the first boot, or when something calls it
	wholeScript              // a script as user data, which some systems run at every boot
	everyBoot
)

// script judges a shell script.
func (l *linter) script(text string, when phase) {
	if when == wholeScript { // what was unpacked is not unpacked again
		if worker, ok, err := userdata.Unpack([]byte(text)); err != nil {
			l.add(Schema, true, 0, "%v", err)
		} else if ok {
			l.in("the packed script", nil).script(string(worker), once)
		}
	}
	if i := strings.Index(text, "\r\n"); i >= 0 {
		l.add(Shell, true, 1+strings.Count(text[:i], "\n"), "the line ends in CR LF, and the shell takes CR as a letter: save the script with LF")
	}
	l.secrets(text)
	l.kubeadm(text)
	l.kubeletArguments(text)
	switch {
	case guarded(text) || !joins(text):
	case when == wholeScript:
		l.add(EveryBoot, userdata.RunsEveryBoot(l.System), 0, "joins without asking whether the machine has joined: Flatcar runs user data at every boot, and kubeadm join then fails; stop where /etc/kubernetes/kubelet.conf exists")
	case when == everyBoot:
		l.add(EveryBoot, userdata.RunsEveryBoot(l.System), 0, "joins at every boot, and kubeadm join fails from the second on: stop where /etc/kubernetes/kubelet.conf exists")
	}
	n := 0
	for line := range strings.Lines(text) {
		n++
		l.line(strings.TrimSpace(line), n)
	}
	if n := strings.Count(text, "JOIN_TOKEN"); n > 0 {
		l.joinValues(text)
	}
	if program := l.parse(text); program != nil {
		l.program(program, text)
	}
}

// guarded tells whether a text asks in some way if the machine has joined.
func guarded(text string) bool {
	return strings.Contains(text, "/etc/kubernetes/kubelet.conf") || strings.Contains(text, "cloud-init-per")
}

// parse returns nil for what is no shell script, and for another language.
func (l *linter) parse(text string) *syntax.File {
	variant := syntax.LangPOSIX
	first, _, _ := strings.Cut(text, "\n")
	if strings.HasPrefix(first, "#!") {
		if !strings.HasSuffix(strings.Fields(first + " x")[0], "sh") && !strings.Contains(first, "env ") && !strings.Contains(first, "sh") {
			return nil // another language
		}
		if strings.Contains(first, "bash") {
			variant = syntax.LangBash
		}
	}
	program, err := syntax.NewParser(syntax.Variant(variant)).Parse(strings.NewReader(text), "")
	if err == nil {
		return program
	}
	where, what, ok := strings.Cut(err.Error(), ": ")
	number, _, _ := strings.Cut(where, ":")
	line, err2 := strconv.Atoi(number)
	if !ok || err2 != nil {
		line, what = 0, err.Error()
	}
	l.add(Shell, true, line, "not a shell script: %s", what)
	return nil
}

var (
	joinToken  = lazyregexp.New(`\b[a-z0-9]{6}\.[a-z0-9]{16}\b`)
	secretText = []struct {
		what string
		form lazyregexp.Regexp
	}{
		{"an access key of AWS", lazyregexp.New(`\b(AKIA|ASIA)[A-Z0-9]{16}\b`)},
		{"a secret key of AWS", lazyregexp.New(`(?i)aws_secret_access_key\s*[=:]\s*["']?[A-Za-z0-9/+]{40}`)},
		{"a private key", lazyregexp.New(`-----BEGIN [A-Z ]*PRIVATE KEY-----`)},
		{"a kubeconfig's client key", lazyregexp.New(`client-key-data:\s*\S{40}`)},
		{"a password of OpenStack", lazyregexp.New(`(?m)^\s*(export\s+)?OS_(PASSWORD|APPLICATION_CREDENTIAL_SECRET)=["']?[^"'$\s]`)},
		{"a bearer token", lazyregexp.New(`\beyJ[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{20,}\.`)},
		{"a password in an address", lazyregexp.New(`https?://[^/\s:@]+:[^/\s:@$]+@`)},
	}
)

// secrets names the kind and the line, never the text.
func (l *linter) secrets(text string) {
	n := 0
	for line := range strings.Lines(text) {
		n++
		for _, s := range secretText {
			if s.form.MatchString(line) {
				l.add(Secret, true, n, "holds %s: every pod that reaches the metadata service could read it; use the machine's role", s.what)
			}
		}
	}
}

var kubeadmAPI = lazyregexp.New(`kubeadm\.k8s\.io/(v1\w+)`)
var kubernetesVersion = lazyregexp.New(`(?i)(?:KUBERNETES_VERSION|K8S_VERSION)=["']?v?1\.(\d+)\.\d+|dl\.k8s\.io/release/v1\.(\d+)\.\d+|kubernetes-release/release/v1\.(\d+)\.|pkgs\.k8s\.io/core:/stable:/v1\.(\d+)/|\bkube(?:let|adm)[=-]v?1\.(\d+)\.`)

// kubeadm judges kubeadm's documents.
func (l *linter) kubeadm(text string) {
	minor := l.minor(text)
	if l.seen.minor < 0 && minor >= 0 {
		l.seen.minor = minor
		if line := lineOf(text, kubernetesVersion); line > 0 && l.at != nil {
			l.seen.line = max(0, l.at(line))
		}
	}
	if minor >= 0 && (minor < userdata.OldestMinor || minor > userdata.NewestMinor) {
		l.add(API, false, lineOf(text, kubernetesVersion), "Kubernetes 1.%d: this agent knows 1.%d to 1.%d", minor, userdata.OldestMinor, userdata.NewestMinor)
	}
	for _, m := range kubeadmAPI.FindAllStringSubmatchIndex(text, -1) {
		api, line := text[m[2]:m[3]], 1+strings.Count(text[:m[0]], "\n")
		switch {
		case minor >= 0 && !userdata.APIServes(api, minor):
			l.add(API, true, line, "the kubeadm of Kubernetes 1.%d does not read %s", minor, api)
		case !userdata.APIServes(api, userdata.OldestMinor) && !userdata.APIServes(api, userdata.NewestMinor):
			l.add(API, true, line, "no kubeadm since 1.27 reads %s: use v1beta4, or v1beta3 before 1.31", api)
		}
	}
	if strings.Contains(text, "kind: JoinConfiguration") && strings.Contains(text, "kind: KubeletConfiguration") && !strings.Contains(text, "patches") {
		l.add(NoEffect, false, 0, "kubeadm join ignores a KubeletConfiguration beside its JoinConfiguration: use patches")
	}
	if strings.Contains(text, "unsafeSkipCAVerification: true") || strings.Contains(text, "discovery-token-unsafe-skip-ca-verification") {
		l.add(JoinInfo, true, 0, "trusts any cluster: pin the CA with caCertHashes")
	}
}

func (l *linter) minor(text string) int {
	if n, ok := cluster.MinorOf(l.Version); ok {
		return n
	}
	for _, m := range kubernetesVersion.FindAllStringSubmatch(text, -1) {
		for _, number := range m[1:] {
			if n, err := strconv.Atoi(number); err == nil {
				return n
			}
		}
	}
	return -1
}

func lineOf(text string, form lazyregexp.Regexp) int {
	if i := form.FindStringIndex(text); i != nil {
		return 1 + strings.Count(text[:i[0]], "\n")
	}
	return 0
}

var (
	piped     = lazyregexp.New(`\b(curl|wget)\b.*https?://.*\|`)
	fetched   = lazyregexp.New(`\b(curl|wget)\b.*https?://`)
	insecure  = lazyregexp.New(`\bcurl\b.*\s(-k|--insecure)\b|\bwget\b.*--no-check-certificate`)
	traced    = lazyregexp.New(`^set\s+-\w*x|^set -o xtrace`)
	argument  = lazyregexp.New(`kubeadm\s+join\b.*--(token|discovery-token|tls-bootstrap-token)[ =]`)
	published = lazyregexp.New(`\b(tee|install)\b.*\bworker\.env\b|>\s*/etc/worker\.env`)
	// hostNameFile is a name that is written to /etc/hostname.
	hostNameFile = lazyregexp.New(`\b(?:echo|printf)\s+(?:-\S+\s+)*["']?([^\s"'$]+?)(?:\\n)?["']?\s*(?:>|\|\s*(?:sudo\s+)?tee\s)\s*["']?/etc/hostname\b`)
	usrLocal     = lazyregexp.New(`(^|[\s=">])/usr/(local/)?s?bin/?(\s|$|")`)
)

// file judges a file that user data writes.
func (l *linter) file(path, body string, mode int64) {
	if mode&0o004 != 0 && joinToken.MatchString(body) {
		l.add(Exposed, true, 0, "%s holds a join token and every user may read it: give it permissions 0600", path)
	}
	if l.System == "flatcar" && (strings.HasPrefix(path, "/usr/") || strings.HasPrefix(path, "/lib/")) {
		l.add(ReadOnly, true, 0, "%s: /usr is read-only on Flatcar: use /opt or /etc", path)
	}
	if strings.HasPrefix(body, "#!") {
		l.script(body, once)
		return
	}
	if strings.Contains(body, "kubeadm.k8s.io/") {
		l.seen.joinFiles[path] = l.seen.joinFiles[path] || strings.Contains(body, "JoinConfiguration") || open(body)
	}
	l.secrets(body)
	l.kubeadm(body)
	l.kubeletArguments(body)
	l.joinDocuments(body)
	if unitFile.MatchString(path) {
		l.unit(body)
	}
	if path == "/etc/hostname" {
		l.hostName(strings.TrimSpace(body), path, 1)
	}
}

var (
	unitFile = lazyregexp.New(`^/(etc|run|usr/lib|lib)/systemd/system/.+\.(service|conf)$`)
	executes = lazyregexp.New(`^Exec\w+\s*=[-@:+!|\s]*(.*)$`)
)

// unit judges what a systemd unit, or a drop-in of one, runs.
func (l *linter) unit(text string) {
	if joins(text) && !guarded(text) {
		l.add(EveryBoot, false, 0, "joins at every boot, and kubeadm join fails from the second on: add ConditionPathExists=!/etc/kubernetes/kubelet.conf")
	}
	lines := strings.Split(text, "\n")
	for n := 0; n < len(lines); n++ {
		first, line := n+1, strings.TrimSpace(lines[n])
		for strings.HasSuffix(line, `\`) && n+1 < len(lines) {
			n++
			line = line[:len(line)-1] + strings.TrimSpace(lines[n])
		}
		if m := executes.FindStringSubmatch(line); m != nil {
			l.line(m[1], first)
		}
	}
}

const tokenInArguments = "the token is in kubeadm's arguments, which every user of the machine reads: use --config with a file of mode 0600"

// line judges one line by what has been seen to go wrong.
func (l *linter) line(line string, n int) {
	if strings.HasPrefix(line, "#") {
		return
	}
	switch {
	case insecure.MatchString(line):
		l.add(Unchecked, true, n, "downloads from anybody: leave the check of certificates on")
	case strings.HasPrefix(line, "curl") && strings.Contains(line, "169.254.169.254"):
	case piped.MatchString(line):
		l.add(Unchecked, false, n, "uses a download before anything has checked it: fetch it to a file and compare its SHA-256")
	case fetched.MatchString(line) && !strings.Contains(line, "169.254.169.254"):
		l.add(Unchecked, false, n, "a download without a pinned SHA-256")
	}
	if strings.Contains(line, "storage.googleapis.com/kubernetes-release") {
		l.add(NoEffect, false, n, "storage.googleapis.com/kubernetes-release gets no new versions: use dl.k8s.io/release")
	}
	if traced.MatchString(line) {
		l.add(Exposed, true, n, "set -x writes the join token to the log")
	}
	if argument.MatchString(line) {
		l.add(Exposed, true, n, tokenInArguments)
	}
	if published.MatchString(line) && !strings.Contains(line, "600") {
		l.add(Exposed, false, n, "worker.env becomes readable by every user: write it with mode 0600")
	}
	if m := hostNameFile.FindStringSubmatch(line); m != nil {
		l.hostName(m[1], "/etc/hostname", n)
	}
	if l.System == "flatcar" && usrLocal.MatchString(line) && !strings.Contains(line, "PATH=") && !strings.Contains(line, "command -v") {
		l.add(ReadOnly, true, n, "/usr is read-only on Flatcar: use /opt/bin")
	}
}

var assigned = lazyregexp.New(`(?m)^\s*(?:export\s+)?(JOIN_TOKEN|JOIN_CERT_HASH|JOIN_ENDPOINT)=(.*)$`)

// joinValues: an empty value strands every machine.
func (l *linter) joinValues(text string) {
	for _, m := range assigned.FindAllStringSubmatchIndex(text, -1) {
		name, value, line := text[m[2]:m[3]], strings.Trim(text[m[4]:m[5]], `"' `), 1+strings.Count(text[:m[0]], "\n")
		switch {
		case value == "":
			l.add(JoinInfo, true, line, "%s is empty: take it from the file that the agent publishes", name)
		case name == "JOIN_CERT_HASH" && !strings.Contains(value, "sha256:") && !strings.Contains(value, "$"):
			l.add(JoinInfo, true, line, "JOIN_CERT_HASH is not \"sha256:\" and 64 hex digits")
		}
	}
}
