package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/groups"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/all"
	"github.com/autoscaler-agent/autoscaler-agent/bootstrap"
	"github.com/autoscaler-agent/autoscaler-agent/csrsigner"
	"github.com/autoscaler-agent/autoscaler-agent/csrsigner/rules"
)

// closed tells whether the agent alone approves the client certificates of machines that
// join with its tokens.
func (p Parts) closed() bool { return p.CSR.Enabled && p.CSR.Join == csrsigner.JoinClosed }

// tokenGroups are the auth groups of the agent's join tokens.
func (p Parts) tokenGroups() []string {
	switch {
	case len(p.Bootstrap.TokenGroups) > 0:
		return p.Bootstrap.TokenGroups
	case p.closed():
		return []string{bootstrap.WorkersGroup}
	}
	return []string{bootstrap.KubeadmGroup}
}

// validateJoin finds settings of two services that contradict each other.
func (p Parts) validateJoin() error {
	if p.closed() && slices.Contains(p.Bootstrap.TokenGroups, bootstrap.KubeadmGroup) {
		return fmt.Errorf("%s_BOOTSTRAP_TOKEN_GROUPS names %s while %s_CSR_JOIN is closed: kubeadm lets that group in by itself; leave the groups empty, or set %s_CSR_JOIN=open",
			Prefix, bootstrap.KubeadmGroup, Prefix, Prefix)
	}
	return nil
}

// machinesSection is the name of the operator's own inventory in groups.yaml.
const machinesSection = "machines"

// sections are the readers of all sections of groups.yaml beside the groups themselves.
func sections() map[string]groups.Section {
	out := map[string]groups.Section{}
	for name, read := range all.Sections() {
		out[name] = read
	}
	out[machinesSection] = func(section json.RawMessage) error {
		_, err := rules.ParseMachines(section)
		return err
	}
	return out
}

// Rates of the client that approves certificates: a burst of three hundred machines that
// join is some thousand calls, which no eviction may hold up, nor they it.
const signerQPS, signerBurst = 200, 400

// signer makes the service that approves certificates.
func (p Parts) signer(a *running) (*csrsigner.Service, error) {
	own := rest.CopyConfig(a.rest)
	own.QPS, own.Burst = signerQPS, signerBurst
	client, err := kubernetes.NewForConfig(own)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	return csrsigner.New(p.CSR, csrsigner.Deps{
		Client: client, Rest: a.rest, Informers: a.factory, Inventory: a.inventory, Log: a.entry("csrsigner"),
		Events: a.recorder, Metrics: a.metrics, MayAct: a.gate.MayAct, ActUntil: a.gate.ActUntil,
		OwnNode: a.identity, Machines: machinesOf(a.settings),
		TokenGroup: p.tokenGroups()[0], Token: tokenLookup(client), ReapStale: a.makeRoom, StateDir: a.cfg.StateDir,
	}), nil
}

// machinesOf reads the operator's own inventory as it is in force.
func machinesOf(settings *groups.Live) func() []rules.Machine {
	return func() []rules.Machine {
		list, err := rules.ParseMachines(settings.Section(machinesSection))
		if err != nil {
			return nil // only a section that was read without fault comes into force
		}
		return list
	}
}

func tokenLookup(client kubernetes.Interface) func(context.Context, string) (rules.Token, error) {
	return func(ctx context.Context, id string) (rules.Token, error) {
		m, err := bootstrap.Lookup(ctx, client, id)
		return rules.Token{Problem: m.Problem, Instance: cluster.InstanceID(m.Instance), Machine: m.Machine, Made: m.Made}, err
	}
}

// checkProtected reads what no worker may have in a certificate (R9), as csrsigner does,
// and says what of it cannot be read.
func checkProtected(ctx context.Context, cfg Config, client kubernetes.Interface, config *rest.Config) []Finding {
	if !cfg.Parts.CSR.Enabled {
		return nil
	}
	const about, remedy = "API server's names", "kubectl apply -f rbac.yaml"
	b, err := csrsigner.ReadForbidden(ctx, client, config, cfg.Parts.CSR)
	switch {
	case err != nil:
		return []Finding{{Level: LevelError, About: about, Text: "no certificate is approved (R9): " + err.Error(), Remedy: remedy}}
	case b.Unread != "":
		return []Finding{{Level: LevelWarning, About: about, Text: "part of what no worker may have in a certificate (R9) cannot be read: " + b.Unread, Remedy: remedy}}
	}
	return []Finding{{Level: LevelOK, About: about, Text: fmt.Sprintf("%d names, %d addresses, service ranges %v and the services of %s are kept from workers' certificates (R9)",
		len(b.Names), len(b.Addresses), b.Ranges, b.DNSDomain)}}
}

// checkJoin says which join is in force, and proves it by the API server's own word.
func checkJoin(ctx context.Context, cfg Config, client kubernetes.Interface) []Finding {
	if !cfg.Parts.CSR.Enabled && !cfg.Parts.Bootstrap.Enabled {
		return nil
	}
	const about = "join"
	group := cfg.Parts.tokenGroups()[0]
	proof, err := csrsigner.ProveJoin(ctx, client, group)
	if err != nil {
		return []Finding{{Level: LevelWarning, About: about, Text: err.Error(), Remedy: "kubectl apply -f rbac.yaml"}}
	}
	if len(proof.Missing) > 0 {
		return []Finding{{Level: LevelError, About: about, Text: fmt.Sprintf("machines cannot join: group %s may not %s", group, strings.Join(proof.Missing, ", ")),
			Remedy: "kubectl apply -f rbac.yaml"}}
	}
	by := proof.Reason
	if len(proof.Bindings) > 0 {
		by = "ClusterRoleBinding " + strings.Join(proof.Bindings, ", ")
	}
	switch {
	case cfg.Parts.closed() && proof.SelfApproved:
		return []Finding{{Level: LevelError, About: about, Text: fmt.Sprintf("it should be closed, but the controller manager approves client certificates of group %s by itself (%s)", group, by),
			Remedy: "take the group out of that binding, or say what holds: " + Prefix + "_CSR_JOIN=open"}}
	case cfg.Parts.closed():
		return []Finding{{Level: LevelOK, About: about, Text: fmt.Sprintf("closed: the API server says that nobody approves client certificates of group %s by itself; the agent does, once for each instance", group)}}
	case proof.SelfApproved:
		return []Finding{{Level: LevelOK, About: about, Text: fmt.Sprintf("open: whoever has a join token gets a client certificate for any node name (%s); %s_CSR_JOIN=closed ends that", by, Prefix)}}
	}
	return []Finding{{Level: LevelError, About: about, Text: fmt.Sprintf("open, but nobody approves client certificates of group %s: no machine can join", group),
		Remedy: "set " + Prefix + "_CSR_JOIN=closed, or bind the group to system:certificates.k8s.io:certificatesigningrequests:nodeclient"}}
}
