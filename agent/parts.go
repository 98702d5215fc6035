package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/all"
	"github.com/autoscaler-agent/autoscaler-agent/agent/supervise"
	"github.com/autoscaler-agent/autoscaler-agent/bootstrap"
	"github.com/autoscaler-agent/autoscaler-agent/csrsigner"
	"github.com/autoscaler-agent/autoscaler-agent/nodecleaner"
)

// Parts are the configurations of the packages that this one wires, under their own
// names.
type Parts struct {
	all.Config  // AUTOSCALER_AWS_* and those of every other cloud
	CSR         csrsigner.Config
	Nodecleaner nodecleaner.Config
	Bootstrap   bootstrap.Config
}

func (p Parts) validate(provider string) error {
	return errors.Join(p.Config.Validate(provider), p.CSR.Validate(), p.Nodecleaner.Validate(), p.Bootstrap.Validate(), p.validateJoin())
}

// provider makes the configured clouds, as one; section is groups.yaml's, for those that
// have one.
func (p Parts) provider(ctx context.Context, c Config, section func(provider string) json.RawMessage) (provider.Provider, error) {
	p.Section = section
	// Without a file the agent stands in a pod, and so does the provider.
	p.Config.Kubeconfig, _ = c.KubeconfigPath(false)
	s := c.Scaling
	p.Defaults = cluster.Options{
		ScaleDownUtilization: &s.UtilizationThreshold, ScaleDownGPUUtilization: &s.GPUUtilizationThreshold, ScaleDownUnneededTime: &s.UnneededFor,
		ScaleDownUnreadyTime: &s.UnreadyFor, MaxNodeProvisionTime: &s.MaxNodeProvisionTime, IgnoreDaemonSetsUtilization: &s.IgnoreDaemonSetsUtilization,
	}
	return all.New(ctx, c.Provider, p.Config, c.Kubelet.Reservation())
}

// services makes the services beside the scaler that are switched on.
func (p Parts) services(a *running) []supervise.Service {
	var list []supervise.Service
	if p.Nodecleaner.Enabled {
		a.cleaner = nodecleaner.New(p.Nodecleaner, nodecleaner.Deps{
			Client: a.client, Informers: a.factory, Inventory: a.inventory, Witness: a.witness, Log: a.entry("nodecleaner"),
			Events: a.recorder, Metrics: a.metrics, MayAct: a.gate.MayAct, ActUntil: a.gate.ActUntil, Blind: a.observer.Stale,
			Sent: a.scaler.sent, OwnNode: a.identity, Host: thisHost(), StateDir: a.cfg.StateDir,
		})
	}
	if a.signer != nil {
		list = append(list, supervise.Service{Name: "csrsigner", Budget: 2 * time.Minute, Run: a.signer.Run})
	}
	if a.cleaner != nil {
		list = append(list, supervise.Service{Name: "nodecleaner", Budget: 3 * time.Minute, Run: a.cleaner.Run})
	}
	if p.Bootstrap.Enabled {
		cfg := p.Bootstrap
		cfg.TokenGroups = p.tokenGroups()
		publisher := bootstrap.New(cfg, bootstrap.Deps{
			Client: a.client, Rest: a.rest, Log: a.entry("bootstrap"), Metrics: a.metrics, MayAct: a.gate.MayAct, Pool: a.tokens,
		})
		list = append(list, supervise.Service{Name: "bootstrap", Budget: 3 * time.Minute, Run: publisher.Run})
	}
	return list
}

// makeRoom asks the nodecleaner to delete the Node called name, if it is proven gone, so
// that a new machine of the same name may join (rule S1; see
// nodecleaner.Service.ReapStale). Without the nodecleaner nobody does.
func (a *running) makeRoom(ctx context.Context, name string) error {
	if a.cleaner == nil {
		return fmt.Errorf("make room for node %s: the nodecleaner is switched off (%s_NODECLEANER_ENABLED)", name, Prefix)
	}
	return a.cleaner.ReapStale(ctx, name)
}

// check looks at what the parts need on this machine.
func (p Parts) check() []Finding {
	if !p.Bootstrap.Enabled || p.Bootstrap.File == "" {
		return nil
	}
	target := p.Bootstrap.File
	if to, err := os.Readlink(target); err == nil { // it may dangle until the first publication
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(target), to)
		}
		target = to
	}
	return checkWritable("publish directory", filepath.Dir(target), Prefix+"_BOOTSTRAP_FILE")
}

// rights lists what the services beside the scaler need.
func (p Parts) rights() []right {
	var list []right
	if p.CSR.Enabled {
		list = append(list,
			right{"get", "certificates.k8s.io", "certificatesigningrequests", "", "", ""},
			right{"list", "certificates.k8s.io", "certificatesigningrequests", "", "", ""},
			right{"watch", "certificates.k8s.io", "certificatesigningrequests", "", "", ""},
			right{"update", "certificates.k8s.io", "certificatesigningrequests", "approval", "", ""},
			right{"approve", "certificates.k8s.io", "signers", "", "", "kubernetes.io/kubelet-serving"},
			right{"get", "", "services", "", "default", "kubernetes"},
			right{"list", "networking.k8s.io", "servicecidrs", "", "", ""}, right{"list", "discovery.k8s.io", "endpointslices", "", "default", ""})
	}
	if p.closed() {
		list = append(list,
			right{"approve", "certificates.k8s.io", "signers", "", "", "kubernetes.io/kube-apiserver-client-kubelet"},
			right{"create", "authorization.k8s.io", "subjectaccessreviews", "", "", ""},
			right{"get", "", "secrets", "", "kube-system", bootstrap.PoolNames()[0]})
	}
	if p.Nodecleaner.Enabled {
		list = append(list, right{"delete", "", "nodes", "", "", ""}, right{"update", "", "nodes", "", "", ""},
			right{"list", "storage.k8s.io", "volumeattachments", "", "", ""}, right{"watch", "storage.k8s.io", "volumeattachments", "", "", ""},
			right{"get", "coordination.k8s.io", "leases", "", "kube-node-lease", ""})
		if p.Nodecleaner.CloudController == nodecleaner.CloudControllerAuto {
			list = append(list, right{"list", "coordination.k8s.io", "leases", "", "kube-system", ""})
		}
	}
	if p.Bootstrap.Enabled {
		list = append(list, right{"create", "", "secrets", "", "kube-system", ""})
		names := bootstrap.PoolNames()
		for _, verb := range []string{"get", "update", "delete"} {
			list = append(list, right{verb, "", "secrets", "", "kube-system", names[0]}, right{verb, "", "secrets", "", "kube-system", names[len(names)-1]})
		}
		list = append(list, right{"get", "", "configmaps", "", "kube-public", "cluster-info"}, right{"get", "", "configmaps", "", "kube-system", "kubeadm-config"})
	}
	return list
}
