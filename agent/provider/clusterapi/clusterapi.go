package clusterapi

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/clusterapi/capi"
)

// Provider implements provider.Provider with Cluster API. Its methods are safe for
// concurrent use.
type Provider struct {
	cfg         Config
	set         settings
	reservation cluster.Reservation
	management  *capi.Client
	workload    *capi.Client
	now         func() time.Time
	facts       facts
	infra       infraMachines
	locks       provider.Locks // held from the read to the write of a change of a group
}

var _ provider.Provider = (*Provider)(nil)

// Call describes one call to the API, for metrics.
type Call = capi.Call

// Option configures a Provider.
type Option func(*Provider)

// WithCallHook calls hook after every single call to the management or the workload
// cluster. hook must be safe for concurrent use.
func WithCallHook(hook func(Call)) Option {
	return func(p *Provider) { p.management.Hook, p.workload.Hook = hook, hook }
}

// New validates c, reads the kubeconfigs and returns a Provider. It makes no call: Check and
// the first Groups show whether the credentials are valid.
//
// kubeconfig is the path of the agent's own; empty where the agent is a pod of the
// cluster. reservation is what the kubelets of the groups reserve.
func New(_ context.Context, c Config, kubeconfig string, reservation cluster.Reservation, opts ...Option) (*Provider, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	set, err := c.parse()
	if err != nil {
		return nil, err
	}
	management, workload, err := c.configs(kubeconfig)
	if err != nil {
		return nil, err
	}
	p := &Provider{cfg: c, set: set, reservation: reservation, now: time.Now}
	if p.management, err = capi.NewClient(management, c.Timeout); err != nil {
		return nil, err
	}
	if p.workload, err = capi.NewClient(workload, c.Timeout); err != nil {
		return nil, err
	}
	for _, o := range opts {
		o(p)
	}
	return p, nil
}

// Check tells whether the management cluster accepts the credentials, serves Cluster
// API, and has a node group of this agent. Its error carries a *provider.Error with a remedy.
func (p *Provider) Check(ctx context.Context) error {
	groups, err := p.Groups(ctx)
	if err != nil || len(groups) > 0 {
		return err
	}
	var rules []string
	for _, r := range p.set.rules {
		rules = append(rules, r.String())
	}
	return fail("read", "", "", provider.NotFound,
		"put "+p.set.keys.minSize()+" and "+p.set.keys.maxSize()+" on the MachineDeployments, and check the rules",
		"no annotated MachineDeployment, MachineSet or MachinePool matches %s", strings.Join(rules, " or "))
}

// The scalable kinds, in the order of the lists.
const (
	kindDeployment = "MachineDeployment"
	kindSet        = "MachineSet"
	kindPool       = "MachinePool"
)

var resources = map[string]string{kindDeployment: "machinedeployments", kindSet: "machinesets", kindPool: "machinepools"}

// idOf returns the group ID, in Cluster Autoscaler's own form.
func idOf(kind, namespace, name string) cluster.GroupID {
	return cluster.GroupID(kind + "/" + namespace + "/" + name)
}

var errNoGroup = errors.New("no such MachineDeployment, MachineSet or MachinePool of this agent")

func parseID(id cluster.GroupID) (kind, namespace, name string, ok bool) {
	parts := strings.Split(string(id), "/")
	if len(parts) != 3 || resources[parts[0]] == "" || parts[1] == "" || parts[2] == "" {
		return "", "", "", false
	}
	return parts[0], parts[1], parts[2], true
}
