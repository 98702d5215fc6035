package doctor

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/clients"
	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/bootstrap"
	"github.com/autoscaler-agent/autoscaler-agent/csrsigner/rules"
	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
)

// checkControlPlane looks at a control plane of several machines: whether the loss of one can be
// borne, and whether the acting agent, wherever it is, can vouch for each kubelet (R21). It looks at
// each of these Nodes once for each line of the list.
func checkControlPlane(ctx context.Context, cfg config.Config, client *kube.Client) []Finding {
	const about, page = "control plane", "docs/ha.md"
	leaders, err := clients.Leaders(ctx, client)
	if err != nil || len(leaders) < 2 {
		return nil // checkName tells of the error; one leader vouches for itself
	}
	var out []Finding
	if n := len(leaders); n%2 == 0 {
		out = append(out, Finding{Level: LevelWarning, About: about, Text: fmt.Sprintf("%d leaders: etcd needs a majority, so that %d bear the loss of no more machines than %d do", n, n, n-1), Remedy: "make one more: " + page})
	}
	if e, err := bootstrap.ReadEndpoint(ctx, client, cfg.Bootstrap); err == nil {
		host, _, _ := net.SplitHostPort(e.Address)
		for i := range leaders {
			if slices.Contains(nodeAddresses(&leaders[i]), host) {
				out = append(out, Finding{Level: LevelWarning, About: about, Text: fmt.Sprintf("the endpoint %s is the address of Node %s: while this machine is away nothing reaches the others", e.Address, leaders[i].Name),
					Remedy: "an endpoint that leads to a leader which lives: " + page})
			}
		}
	}
	file, err := cfg.ReadGroupsFile()
	if err != nil || !cfg.CSR.Enabled {
		return out // the file has a finding of its own
	}
	listed, err := rules.ParseControlPlane(file.Clouds["controlPlane"])
	if err != nil {
		return out
	}
	for i := range leaders {
		if why := unlisted(&leaders[i], listed); why != "" {
			out = append(out, Finding{Level: LevelWarning, About: about, Text: why + ": the certificate of its kubelet is held while another leader acts",
				Remedy: "correct the section controlPlane of " + cfg.GroupsFile + " on every leader: " + page})
		}
	}
	if len(out) == 0 {
		out = append(out, Finding{Level: LevelOK, About: about, Text: fmt.Sprintf("%d leaders, each with its addresses in the section controlPlane of %s", len(leaders), cfg.GroupsFile)})
	}
	return out
}

// unlisted says what of a Node the operator's list lacks; empty: nothing.
func unlisted(n *corev1.Node, listed []rules.Machine) string {
	at := slices.IndexFunc(listed, func(m rules.Machine) bool { return m.Node == n.Name })
	if at < 0 {
		return "no line is about Node " + n.Name
	}
	m := listed[at]
	var lacks []string
	for _, a := range n.Status.Addresses {
		what := rules.CanonicalName(a.Address)
		if ip, err := netip.ParseAddr(a.Address); err == nil {
			what = rules.CanonicalAddress(ip).String()
		}
		if !m.Has(what) && !slices.Contains(lacks, what) {
			lacks = append(lacks, what)
		}
	}
	switch {
	case len(lacks) > 0:
		return fmt.Sprintf("the line of Node %s lacks %s", n.Name, strings.Join(lacks, ", "))
	case m.Instance != "" && !rules.SameMachine(string(m.Instance), n.Spec.ProviderID):
		return fmt.Sprintf("the line of Node %s says instance %s, and the Node %q", n.Name, m.Instance, n.Spec.ProviderID)
	}
	return ""
}
