package userdata

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strings"
)

// The markers of the parts that stand on their own. The join section turns the join
// information into a running kubelet; the functions are those that it calls. A test that
// plays a machine executes exactly these two.
const (
	JoinBegin      = "# --- join: begin ---"
	JoinEnd        = "# --- join: end ---"
	FunctionsBegin = "# --- functions: begin ---"
	FunctionsEnd   = "# --- functions: end ---"
)

// JoinSection returns the parts of a rendered script between its markers, markers
// included: the functions, where there are any, and the join section.
func JoinSection(script []byte) ([]byte, error) {
	if packed, ok, err := Unpack(script); err != nil {
		return nil, err
	} else if ok {
		token := bytes.TrimPrefix(tokenPlaces.Find(script), []byte("\n"))
		script = packed
		if len(token) > 0 { // that stands beside the packed script
			script = bytes.Replace(script, []byte(tokenOfFile), append(token, '\n'), 1)
		}
	}
	section := between(script, JoinBegin, JoinEnd)
	if section == nil {
		return nil, errors.New("userdata: no join section: the script was not made by autoscaler-agent userdata render, or was cut")
	}
	return append(bytes.Clone(between(script, FunctionsBegin, FunctionsEnd)), section...), nil
}

func between(script []byte, first, last string) []byte {
	begin := bytes.Index(script, []byte("\n"+first+"\n"))
	end := bytes.LastIndex(script, []byte("\n"+last+"\n"))
	if begin < 0 || end < begin {
		return nil
	}
	return script[begin+1 : end+len(last)+2]
}

// join is the join section. The metadata service's session token and the join token travel
// by standard input and by file, never by argument: arguments are readable by every user of
// the machine.
func (s Spec) join(tokenInScript bool) string {
	var b strings.Builder
	b.WriteString("set -eu\n")
	b.WriteString("JOIN_ENDPOINT=" + shellQuote(s.Join.Endpoint) + "\n")
	b.WriteString("JOIN_CERT_HASH=" + shellQuote(strings.Join(s.Join.CACertHashes, ",")) + "\n")
	b.WriteString("umask 077\ndir=${JOIN_DIR:-/run/autoscaler-agent}\n")
	b.WriteString(bare(places[s.Cloud].facts))
	b.WriteString(joinPrepare)
	_, steps := KubeletNodeIP(s.NodeIP)
	b.WriteString(steps)
	b.WriteString(s.tokenSource(tokenInScript))
	b.WriteString(`cat >"$dir/patches/kubeletconfiguration0+merge.yaml" <<PATCH` + "\n" + hereDocument(s.kubeletPatch()) + "PATCH\n")
	b.WriteString(`cat >"$dir/join.yaml" <<JOIN` + "\n" + hereDocument(s.joinConfiguration()) + "JOIN\n")
	b.WriteString(bare(joinSteps))
	return b.String()
}

// joinPrepare follows once the machine knows itself.
const joinPrepare = `mkdir -p "$dir/patches"
chmod 700 "$dir" "$dir/patches"
hashes=$(printf '%s' "$JOIN_CERT_HASH" | sed 's/,/", "/g')
`

// tokenSource sets JOIN_TOKEN. It is the one place that knows where a machine has its join
// token from: the script itself, a file that the format brings along, or the leader. It comes when
// the machine knows itself (NODE_NAME, INSTANCE_ID, REGION, fact), and "$dir" is private.
func (s Spec) tokenSource(tokenInScript bool) string {
	if s.Join.Attest != "" {
		return s.Join.attestation()
	}
	if tokenInScript {
		return "JOIN_TOKEN=" + shellQuote(s.Join.Token) + "\n"
	}
	return tokenOfFile
}

const tokenOfFile = "JOIN_TOKEN=$(cat " + tokenFile + ") || die reason=token-file\n"

// tokenFile holds the token alone where the script is compressed: whoever makes a server
// finds TokenPlaceholder in plain text.
const tokenFile = stateDir + "/token"

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

type object = map[string]any

// joinConfiguration is kubeadm's JoinConfiguration, with references to shell variables.
func (s Spec) joinConfiguration() object {
	api := s.apiVersion()
	bootstrap := object{"apiServerEndpoint": ref("JOIN_ENDPOINT"), "token": ref("JOIN_TOKEN"), "caCertHashes": []string{ref("hashes")}}
	discovery := object{"bootstrapToken": bootstrap}
	registration := object{"name": ref("NODE_NAME"), "criSocket": "unix:///run/containerd/containerd.sock"}
	doc := object{
		"apiVersion":       "kubeadm.k8s.io/" + api,
		"kind":             "JoinConfiguration",
		"discovery":        discovery,
		"nodeRegistration": registration,
		"patches":          object{"directory": ref("dir") + "/patches"},
	}
	// kubeadm writes --hostname-override only where the host name differs at the join: without it a machine that is
	// renamed later starts its kubelet under a name that has no Node and no certificate.
	args := map[string]string{"node-labels": s.nodeLabels(), "hostname-override": ref("NODE_NAME")}
	if s.Downloads.ECR != "" {
		args["image-credential-provider-config"] = "/etc/kubernetes/ecr-credential-provider.yaml"
		args["image-credential-provider-bin-dir"] = ref("bin:-/usr/local/bin")
	}
	if ip, _ := KubeletNodeIP(s.NodeIP); ip != "" {
		args["node-ip"] = ip
	}
	if s.ExternalCloudProvider {
		args["cloud-provider"] = "external"
	}
	timeout := ref("JOIN_DISCOVERY_TIMEOUT:-1m0s")
	if api == "v1beta3" {
		registration["kubeletExtraArgs"] = args
		discovery["timeout"] = timeout
	} else {
		var list []object
		for _, name := range slices.Sorted(maps.Keys(args)) {
			list = append(list, object{"name": name, "value": args[name]})
		}
		registration["kubeletExtraArgs"] = list
		doc["timeouts"] = object{"discovery": timeout}
	}
	if len(s.IgnorePreflight) > 0 {
		registration["ignorePreflightErrors"] = s.IgnorePreflight
	}
	var taints []object
	for _, t := range s.Taints {
		taints = append(taints, object{"key": t.Key, "value": t.Value, "effect": t.Effect})
	}
	if taints != nil {
		registration["taints"] = taints
	}
	return doc
}

// nodeLabels is the kubelet's --node-labels. Without a cloud controller manager
// nobody else sets zone, region and instance type, which the agent's templates and
// many pods' selectors count on.
func (s Spec) nodeLabels() string {
	var own []string
	for _, key := range slices.Sorted(maps.Keys(s.Labels)) {
		own = append(own, key+"="+s.Labels[key])
	}
	cloud := places[s.Cloud].labels
	if cloud == nil { // one variable, which may be empty, and a kubelet takes no empty pair
		if len(own) == 0 {
			return ref("LABELS")
		}
		return ref("LABELS:+") + strings.Join(own, ",")
	}
	var pairs []string
	for _, l := range cloud {
		pairs = append(pairs, l[0]+"="+ref(l[1]))
	}
	return strings.Join(append(pairs, own...), ",")
}
