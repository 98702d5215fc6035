package userdata

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The markers of the join section: the part of the script that turns the join
// information into a running kubelet. It stands on its own: a test that plays a
// machine executes exactly this part.
const (
	JoinBegin = "# --- join: begin ---"
	JoinEnd   = "# --- join: end ---"
)

// Render returns the script for s, or every fault of s in one joined error. The
// output holds the join token: whoever stores it must keep it from other users
// (file mode 0600).
func Render(s Spec) ([]byte, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	var b strings.Builder
	fmt.Fprintf(&b, head, s.KubernetesVersion, s.Cloud)
	b.WriteString(s.install())
	b.WriteString(JoinBegin + "\n")
	b.WriteString(s.join())
	b.WriteString(JoinEnd + "\n")
	if limit := Limit(s.Cloud); b.Len() > limit {
		return nil, fmt.Errorf("userdata: %d bytes, and %s takes at most %d: leave out labels, taints or downloads.sha256 entries", b.Len(), s.Cloud, limit)
	}
	return []byte(b.String()), nil
}

// JoinSection returns the part of a rendered script between its markers, markers
// included.
func JoinSection(script []byte) ([]byte, error) {
	begin := bytes.Index(script, []byte("\n"+JoinBegin+"\n"))
	end := bytes.LastIndex(script, []byte("\n"+JoinEnd+"\n"))
	if begin < 0 || end < begin {
		return nil, errors.New("userdata: no join section: the script was not made by autoscaler-agent userdata render, or was cut")
	}
	return script[begin+1 : end+len(JoinEnd)+2], nil
}

// head runs on every boot where coreos-cloudinit (Flatcar) runs user data, and
// once per instance under cloud-init; the guard makes both the same.
const head = `#!/bin/sh
# Worker user data made by autoscaler-agent: Kubernetes %s on %s.
# It holds a join token: keep it from other users. Safe to run at every boot.
set -eu
umask 077
phase() {
  echo "autoscaler-agent: phase=$*"
  c=${JOIN_CONSOLE:-/dev/console}
  if [ -w "$c" ]; then echo "autoscaler-agent: phase=$*" 2>/dev/null >"$c" || :; fi
}
if [ -e /etc/kubernetes/kubelet.conf ]; then
  phase already-joined
  exit 0
fi
trap 'rc=$?; [ "$rc" -eq 0 ] || phase "failed rc=$rc"' EXIT
phase start
`

// joinSteps follows the assignments of the join section. The instance metadata
// token and the join token travel by standard input and by file, never by argument:
// arguments are readable by every user of the machine.
const joinSteps = `umask 077
phase() {
  echo "autoscaler-agent: phase=$*"
  c=${JOIN_CONSOLE:-/dev/console}
  if [ -w "$c" ]; then echo "autoscaler-agent: phase=$*" 2>/dev/null >"$c" || :; fi
}
die() { phase "failed $*"; exit 1; }
dir=${JOIN_DIR:-/run/autoscaler-agent}
`

// joinPrepare follows once the machine knows itself.
const joinPrepare = `mkdir -p "$dir/patches"
chmod 700 "$dir" "$dir/patches"
trap 'rc=$?; rm -f "$dir/join.yaml"; [ "$rc" -eq 0 ] || phase "failed rc=$rc"' EXIT
hashes=$(printf '%s' "$JOIN_CERT_HASH" | sed 's/,/", "/g')
`

// joinRun is the end of the join section. A join that failed half-way leaves files
// that the next attempt's preflight checks refuse, hence the reset. It takes the kubelet's
// key along, and who asks with another key is another machine to the closed join (rules J13
// and J16): so the key is kept. The kubelet takes the one it finds (client-go's
// certificate store, kubelet-client.key.tmp), and finds its own request by it.
const joinRun = `phase "join node=$NODE_NAME"
tries=5
pki=${JOIN_PKI:-/var/lib/kubelet/pki}
until kubeadm join --config "$dir/join.yaml"; do
  tries=$((tries - 1))
  [ "$tries" -gt 0 ] || die reason=kubeadm-join
  phase "retry left=$tries"
  mkdir -p "$dir/pki"
  cp -a "$pki"/kubelet-client* "$dir/pki/" 2>/dev/null || :
  kubeadm reset --force >/dev/null 2>&1 || :
  mkdir -p "$pki"
  cp -a "$dir/pki"/kubelet-client* "$pki/" 2>/dev/null || :
  sleep "${JOIN_PAUSE:-15}"
done
rm -rf "$dir/join.yaml" "$dir/pki"
phase joined
`

func (s Spec) join() string {
	var b strings.Builder
	b.WriteString("set -eu\n")
	for _, v := range []struct{ name, value string }{
		{"JOIN_ENDPOINT", s.Join.Endpoint},
		{"JOIN_TOKEN", s.Join.Token},
		{"JOIN_CERT_HASH", strings.Join(s.Join.CACertHashes, ",")},
	} {
		b.WriteString(v.name + "=" + shellQuote(v.value) + "\n")
	}
	b.WriteString(joinSteps)
	b.WriteString(places[s.Cloud].facts)
	b.WriteString(joinPrepare)
	b.WriteString(`cat >"$dir/patches/kubeletconfiguration0+merge.yaml" <<PATCH` + "\n" + s.kubeletPatch() + "PATCH\n")
	b.WriteString(`cat >"$dir/join.yaml" <<JOIN` + "\n" + s.joinConfiguration() + "JOIN\n")
	b.WriteString(joinRun)
	return b.String()
}

// apiVersion is the kubeadm configuration version: v1beta4 came with 1.31, and
// v1beta3 is gone from 1.36 (kubernetes/kubernetes#136016).
func (s Spec) apiVersion() string {
	if s.KubeadmAPIVersion != "" {
		return s.KubeadmAPIVersion
	}
	if n, _ := minor(s.KubernetesVersion); n >= 31 {
		return "v1beta4"
	}
	return "v1beta3"
}

// joinConfiguration is text for an unquoted here-document: $NAME is the shell's.
func (s Spec) joinConfiguration() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	api := s.apiVersion()
	line("apiVersion: kubeadm.k8s.io/%s", api)
	line("kind: JoinConfiguration")
	line("discovery:")
	line("  bootstrapToken:")
	line(`    apiServerEndpoint: "$JOIN_ENDPOINT"`)
	line(`    token: "$JOIN_TOKEN"`)
	line(`    caCertHashes: ["$hashes"]`)
	line("nodeRegistration:")
	line(`  name: "$NODE_NAME"`)
	line("  criSocket: unix:///run/containerd/containerd.sock")
	line("  kubeletExtraArgs:")
	if api == "v1beta3" {
		line("    node-labels: %s", s.nodeLabels())
	} else {
		line("    - name: node-labels")
		line("      value: %s", s.nodeLabels())
	}
	if len(s.Taints) > 0 {
		line("  taints:")
	}
	for _, t := range s.Taints {
		line("    - {key: %s, value: %s, effect: %s}", hereYAML(t.Key), hereYAML(t.Value), hereYAML(t.Effect))
	}
	line("patches:")
	line(`  directory: "$dir/patches"`)
	return b.String()
}

// nodeLabels is the kubelet's --node-labels. Without a cloud controller manager
// nobody else sets zone, region and instance type, which the agent's templates and
// many pods' selectors count on.
func (s Spec) nodeLabels() string {
	pairs := slices.Clone(places[s.Cloud].labels)
	for _, key := range slices.Sorted(maps.Keys(s.Labels)) {
		pairs = append(pairs, hereQuote(key+"="+s.Labels[key]))
	}
	if len(pairs) > 1 && pairs[0] == "$LABELS" { // it may be empty, and a kubelet takes no empty pair
		pairs[1] = "${LABELS:+$LABELS,}" + pairs[1]
		pairs = pairs[1:]
	}
	return `"` + strings.Join(pairs, ",") + `"`
}
