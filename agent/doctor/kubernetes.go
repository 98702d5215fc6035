package doctor

import (
	"context"
	"crypto/x509"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/autoscaler-agent/autoscaler-agent/agent/clients"
	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/agent/election"
	"github.com/autoscaler-agent/autoscaler-agent/internal/apierror"
	"github.com/autoscaler-agent/autoscaler-agent/internal/kube"
	"github.com/autoscaler-agent/autoscaler-agent/internal/servingcert"
)

// checkKubernetes tries the kubeconfig, the API server and everything that it has to allow.
func checkKubernetes(ctx context.Context, cfg config.Config) []Finding {
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	kubeconfig, err := clients.Rest(cfg, true)
	if err != nil {
		return []Finding{{Level: LevelError, About: "kubeconfig", Text: err.Error()}}
	}
	path, err := cfg.KubeconfigPath(true)
	if err != nil {
		path = "the account of its pod" // clients.Rest found no file and took that
	}
	client, err := clients.Services(kubeconfig)
	if err != nil {
		return []Finding{{Level: LevelError, About: "kubeconfig", Text: err.Error(), Remedy: "correct the file or set " + config.Prefix + "_KUBECONFIG"}}
	}
	if err := clients.Answers(ctx, kubeconfig, client); err != nil {
		return append([]Finding{{Level: LevelError, About: "API server", Text: err.Error() + ", by " + path}}, checkServer(ctx, kubeconfig.Host, thisMachine(cfg))...)
	}
	v, err := client.ServerVersion(ctx)
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
	out = append(out, checkTokens(ctx, cfg, client)...)
	out = append(out, checkAnnotations(ctx, client)...)
	out = append(out, checkNodes(ctx, client, v.GitVersion)...)
	out = append(out, checkPowers(ctx, client)...)
	out = append(out, checkProtected(ctx, cfg, client, kubeconfig)...)
	out = append(out, checkLeader(ctx, cfg, client, kubeconfig, func(ctx context.Context) (*x509.Certificate, error) { return servingcert.Fetch(ctx, kubeconfig) }, thisMachine(cfg))...)
	out = append(out, checkControlPlane(ctx, cfg, client)...)
	out = append(out, checkHolder(ctx, cfg, client)...)
	return append(out, checkOther(ctx, cfg, client))
}

// checkHolder looks for another agent that holds the Lease by this one's name.
func checkHolder(ctx context.Context, cfg config.Config, client *kube.Client) []Finding {
	lease, err := client.CoordinationV1().Leases(cfg.Lease.Namespace).Get(ctx, cfg.Lease.Name, metav1.GetOptions{})
	name, unnamed := cfg.Identity()
	if err != nil || unnamed != nil || lease.Spec.HolderIdentity == nil || lease.Spec.RenewTime == nil || time.Since(lease.Spec.RenewTime.Time) > cfg.Lease.Duration {
		return nil // what is wrong with either is another finding
	}
	if holder := *lease.Spec.HolderIdentity; election.Twin(holder, name, cfg.Instance()) {
		return []Finding{{Level: LevelError, About: "name in the Lease", Text: election.TwinWords(holder)}}
	}
	return nil
}

// checkOther looks for an in-cluster Cluster Autoscaler that is at work.
func checkOther(ctx context.Context, cfg config.Config, client *kube.Client) Finding {
	f := Finding{Level: LevelOK, About: "other autoscaler"}
	lease, err := client.CoordinationV1().Leases(cfg.Lease.Namespace).Get(ctx, election.OtherLease, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		f.Text = "none has a Lease"
	case err != nil:
		f.Level, f.Text = LevelWarning, err.Error()
	default:
		if f.Text = election.OtherAtWork(cfg.Lease, lease); f.Text != "" {
			f.Level = LevelError
		} else {
			f.Text = "its Lease is no longer renewed"
		}
	}
	return f
}

// unasked is the finding for a question that the API server has not answered. Where it refuses the question, a right is
// missing and rbac.yaml is the remedy; where it does not answer at all, the remedy is another one.
func unasked(level Level, about, what string, err error) Finding {
	text, remedy := apierror.Explain(err)
	return Finding{Level: level, About: about, Text: what + text, Remedy: remedy}
}
