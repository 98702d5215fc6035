package lint

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/autoscaler-agent/autoscaler-agent/userdata/lint/internal/yaml11"
)

// joinDocuments judges each JoinConfiguration of a text.
func (l *linter) joinDocuments(text string) {
	if !strings.Contains(text, "JoinConfiguration") {
		return
	}
	d := yaml.NewDecoder(strings.NewReader(text))
	for {
		var doc yaml.Node
		if d.Decode(&doc) != nil || len(doc.Content) == 0 {
			return // a template of another program, or the end
		}
		root := yaml11.Target(doc.Content[0])
		if kind := yaml11.Get(root, "kind"); kind != nil && kind.Value == "JoinConfiguration" {
			l.joinFields(root)
			l.registration(root)
			l.joinConfiguration(root)
		}
	}
}

func (l *linter) joinConfiguration(root *yaml.Node) {
	bad := func(n *yaml.Node, field, why string) {
		l.add(JoinInfo, true, n.Line, "JoinConfiguration: %s %s", field, why)
	}
	if n := yaml11.Get(root, "controlPlane"); n != nil && yaml11.Kind(n) != "null" {
		bad(n, "controlPlane", "makes a control-plane node of each machine of the group: leave it out")
	}
	discovery := yaml11.Get(root, "discovery")
	if discovery == nil || discovery.Kind != yaml.MappingNode {
		l.add(JoinInfo, false, root.Line, "JoinConfiguration names no discovery: kubeadm refuses it unless something adds bootstrapToken or file at boot")
		return
	}
	token, file := yaml11.Get(discovery, "bootstrapToken"), yaml11.Get(discovery, "file")
	switch {
	case token == nil && file == nil:
		bad(discovery, "discovery", "has neither bootstrapToken nor file")
	case token != nil && file != nil:
		bad(discovery, "discovery", "has both bootstrapToken and file")
	case file != nil:
		if p := yaml11.Get(file, "kubeConfigPath"); p == nil && yaml11.Get(file, "kubeConfig") == nil || p != nil && p.Value == "" {
			bad(file, "discovery.file.kubeConfigPath", "is empty")
		}
	default:
		l.bootstrapToken(discovery, token, bad)
	}
}

func (l *linter) bootstrapToken(discovery, token *yaml.Node, bad func(*yaml.Node, string, string)) {
	text := func(n *yaml.Node, field string, judge func(string) string) {
		if n == nil || n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" && n.ShortTag() != "!!null" {
			return // joinFields judges what is no text
		}
		if why := judge(n.Value); why != "" {
			bad(n, field, why)
		}
	}
	if own, tls := yaml11.Get(token, "token"), yaml11.Get(discovery, "tlsBootstrapToken"); own == nil && tls == nil {
		bad(token, "discovery.bootstrapToken.token", "is missing")
	} else {
		text(own, "discovery.bootstrapToken.token", badToken)
		text(tls, "discovery.tlsBootstrapToken", badToken)
	}
	if n := yaml11.Get(token, "apiServerEndpoint"); n == nil {
		bad(token, "discovery.bootstrapToken.apiServerEndpoint", "is missing")
	} else {
		text(n, "discovery.bootstrapToken.apiServerEndpoint", badAddress)
	}
	hashes := yaml11.Get(token, "caCertHashes")
	if skip := yaml11.Get(token, "unsafeSkipCAVerification"); skip != nil && skip.Value == "true" {
		return
	}
	switch {
	case hashes == nil || hashes.Kind == yaml.SequenceNode && len(hashes.Content) == 0 || hashes.Kind == yaml.ScalarNode && !open(hashes.Value):
		bad(token, "discovery.bootstrapToken.caCertHashes", "is empty: kubeadm joins no cluster whose CA is not pinned")
	case hashes.Kind == yaml.SequenceNode:
		for _, h := range hashes.Content {
			text(yaml11.Target(h), "discovery.bootstrapToken.caCertHashes", badHash)
		}
	}
}
