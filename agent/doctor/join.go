package doctor

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/csrsigner"
	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
)

// checkProtected reads what no worker may have in a certificate (R9), as csrsigner does,
// and says what of it cannot be read.
func checkProtected(ctx context.Context, cfg config.Config, client *kube.Client, kubeconfig *rest.Config) []Finding {
	if !cfg.CSR.Enabled {
		return nil
	}
	const about, remedy = "API server's names", "kubectl apply -f rbac.yaml"
	b, err := csrsigner.ReadForbidden(ctx, client, kubeconfig, cfg.CSR)
	switch {
	case err != nil:
		return []Finding{unasked(LevelError, about, "no certificate is approved (R9): ", err)}
	case b.Unread != "":
		return []Finding{{Level: LevelWarning, About: about, Text: "part of what no worker may have in a certificate (R9) cannot be read: " + b.Unread, Remedy: remedy}}
	}
	return []Finding{{Level: LevelOK, About: about, Text: fmt.Sprintf("%d names, %d addresses, service ranges %v and the services of %s are kept from workers' certificates (R9)",
		len(b.Names), len(b.Addresses), b.Ranges, b.DNSDomain)}}
}

// checkJoin says which join is in force, and proves it by the API server's own word.
func checkJoin(ctx context.Context, cfg config.Config, client *kube.Client) []Finding {
	if !cfg.CSR.Enabled && !cfg.Bootstrap.Enabled {
		return nil
	}
	const about = "join"
	group := cfg.JoinGroups()[0]
	proof, err := csrsigner.ProveJoin(ctx, client, group)
	if err != nil {
		return []Finding{unasked(LevelWarning, about, "", err)}
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
	case cfg.JoinIsClosed() && proof.SelfApproved:
		return []Finding{{Level: LevelError, About: about, Text: fmt.Sprintf("it should be closed, but the controller manager approves client certificates of group %s by itself (%s)", group, by),
			Remedy: "take the group out of that binding, or say what holds: " + config.Prefix + "_CSR_JOIN=open"}}
	case cfg.JoinIsClosed():
		return []Finding{{Level: LevelOK, About: about, Text: fmt.Sprintf("closed: the API server says that nobody approves client certificates of group %s by itself; the agent does, once for each instance", group)}}
	case proof.SelfApproved:
		return []Finding{{Level: LevelOK, About: about, Text: fmt.Sprintf("open: whoever has a join token gets a client certificate for any node name (%s); %s_CSR_JOIN=closed ends that", by, config.Prefix)}}
	}
	return []Finding{{Level: LevelError, About: about, Text: fmt.Sprintf("open, but nobody approves client certificates of group %s: no machine can join", group),
		Remedy: "set " + config.Prefix + "_CSR_JOIN=closed, or bind the group to system:certificates.k8s.io:certificatesigningrequests:nodeclient"}}
}
