package doctor

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/apierror"
	"github.com/autoscaler-agent/autoscaler-agent/agent/clients"
	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/agent/election"
)

func checkKubernetes(ctx context.Context, cfg config.Config) []Finding {
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	path, err := cfg.KubeconfigPath(true)
	if err != nil {
		return []Finding{{Level: LevelError, About: "kubeconfig", Text: err.Error()}}
	}
	kubeconfig, err := clients.Rest(cfg, true)
	if err != nil {
		return []Finding{{Level: LevelError, About: "kubeconfig", Text: err.Error()}}
	}
	client, err := clients.Services(kubeconfig)
	if err != nil {
		return []Finding{{Level: LevelError, About: "kubeconfig", Text: err.Error(), Remedy: "mend the file or set " + config.Prefix + "_KUBECONFIG"}}
	}
	v, err := client.Discovery().ServerVersion()
	if err != nil {
		text, remedy := apierror.Explain(err)
		if remedy == "" {
			remedy = "see that the server named in " + path + " answers and takes its credentials"
		}
		return []Finding{{Level: LevelError, About: "API server", Text: text + ", by " + path, Remedy: remedy}}
	}
	out := []Finding{{Level: LevelOK, About: "API server", Text: v.GitVersion + " by " + path}}
	out = append(out, checkRights(ctx, cfg, client)...)
	out = append(out, checkCredential(ctx, cfg, client)...)
	out = append(out, checkJoin(ctx, cfg, client)...)
	out = append(out, checkProtected(ctx, cfg, client, kubeconfig)...)
	lease, err := client.CoordinationV1().Leases(cfg.Lease.Namespace).Get(ctx, election.OtherLease, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		out = append(out, Finding{Level: LevelOK, About: "other autoscaler", Text: "none has a Lease"})
	case err != nil:
		out = append(out, Finding{Level: LevelWarning, About: "other autoscaler", Text: err.Error()})
	default:
		if why := election.OtherAtWork(cfg.Lease, lease); why != "" {
			out = append(out, Finding{Level: LevelError, About: "other autoscaler", Text: why})
		} else {
			out = append(out, Finding{Level: LevelOK, About: "other autoscaler", Text: "its Lease is no longer renewed"})
		}
	}
	return out
}
