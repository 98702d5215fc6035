package clusterapi

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/clusterapi/capi"
)

// The prefixes of Cluster Autoscaler's IDs for machines without a provider ID.
const (
	prefixPending  = "pending-machine-"
	prefixFailed   = "failed-machine-"
	prefixDeleting = "deleting-machine-"
)

// instanceID returns the machine's provider ID, or else an ID from its object's name.
func instanceID(m *capi.Machine) cluster.InstanceID {
	switch name := m.Namespace + "_" + m.Name; {
	case m.Spec.ProviderID != "":
		return cluster.InstanceID(m.Spec.ProviderID)
	case m.DeletionTimestamp != nil:
		return cluster.InstanceID(prefixDeleting + name)
	case broken(m):
		return cluster.InstanceID(prefixFailed + name)
	default:
		return cluster.InstanceID(prefixPending + name)
	}
}

// names tells whether id is an ID of the machine, now or earlier.
func names(id cluster.InstanceID, m *capi.Machine) bool {
	if m.Spec.ProviderID != "" && string(id) == m.Spec.ProviderID {
		return true
	}
	for _, prefix := range []string{prefixPending, prefixFailed, prefixDeleting} {
		// A namespace has no underscore, so the first one ends it.
		if string(id) == prefix+m.Namespace+"_"+m.Name {
			return true
		}
	}
	return false
}

// broken tells whether Cluster API reports a terminal failure of the machine.
func broken(m *capi.Machine) bool {
	reason, text := m.Status.Failure()
	return m.Status.Phase == "Failed" || reason+text != ""
}

// instance returns one machine. going: replicas have been lowered for it.
func (p *Provider) instance(g *source, m *capi.Machine, going bool, annotated map[string]string) cluster.Instance {
	in := cluster.Instance{
		ID: instanceID(m), Created: m.CreationTimestamp, Member: true,
		Zone:  cmp.Or(m.Status.FailureDomain, m.Spec.FailureDomain),
		Type:  p.typeOf(g, m),
		Phase: phase(m, going),
	}
	add := func(list *[]string, name string) {
		if name = strings.ToLower(strings.TrimSuffix(name, ".")); name != "" && !slices.Contains(*list, name) {
			*list = append(*list, name)
		}
	}
	add(&in.NodeNames, m.Status.NodeRef.Name)
	if m.Spec.ProviderID == "" && m.Status.NodeRef.Name == "" {
		// The annotation is written by the Node itself, so it counts only without facts of
		// Cluster API.
		add(&in.NodeNames, annotated[m.Namespace+"/"+m.Name])
		add(&in.NodeNames, annotated["/"+m.Name])
	}
	for _, a := range m.Status.Addresses {
		ip, err := netip.ParseAddr(a.Address)
		switch {
		case err == nil:
			if ip = ip.Unmap().WithZone(""); !slices.Contains(in.Addresses, ip) {
				in.Addresses = append(in.Addresses, ip)
			}
		case a.Type == "Hostname" || a.Type == "InternalDNS":
			add(&in.NodeNames, a.Address)
			add(&in.Names, a.Address)
		case a.Type == "ExternalDNS":
			add(&in.Names, a.Address)
		}
	}
	for _, n := range in.NodeNames {
		add(&in.Names, n)
	}
	in.Failure = m.Failure()
	if in.Phase == cluster.PhaseFailed && in.Failure == nil {
		in.Failure = &cluster.Failure{Cause: cluster.CauseOther, Text: "Cluster API reports the machine as Failed", At: m.CreationTimestamp}
	}
	return in
}

// phase returns the phase of a machine. A failed machine with a Node is running: the Node
// shows its state.
func phase(m *capi.Machine, going bool) cluster.Phase {
	switch {
	case m.DeletionTimestamp != nil, m.Status.Phase == "Deleting", going:
		return cluster.PhaseDeleting
	case m.Status.Phase == "Deleted":
		return cluster.PhaseDeleting // the object is still there: two sights decide
	case m.Status.NodeRef.Name != "":
		return cluster.PhaseRunning
	case broken(m):
		return cluster.PhaseFailed
	}
	switch m.Status.Phase {
	case "Running", "Updating", "Provisioned":
		return cluster.PhaseRunning
	case "", "Pending", "Provisioning":
		return cluster.PhasePending
	}
	return cluster.PhaseUnknown
}

// typeOf returns the machine type in the template of the machine's own MachineSet.
func (p *Provider) typeOf(g *source, m *capi.Machine) string {
	t := &g.Spec.Template.Spec
	if s := g.ofSet[m.Owner(kindSet)]; s != nil {
		t = &s.Spec.Template.Spec
	}
	r := t.InfrastructureRef
	return cmp.Or(p.facts.machineType(templateKey(g.Namespace, r)), strings.TrimSuffix(r.Kind, "Template")+"/"+r.Name)
}

// poolInstances returns the instances of a MachinePool whose provider creates no Machine objects.
func (p *Provider) poolInstances(g *source) []cluster.Instance {
	var out []cluster.Instance
	for _, id := range g.Spec.ProviderIDList {
		r := g.Spec.Template.Spec.InfrastructureRef
		out = append(out, cluster.Instance{
			ID: cluster.InstanceID(id), Phase: cluster.PhaseRunning, Created: g.CreationTimestamp, Member: true,
			Type: cmp.Or(p.facts.machineType(templateKey(g.Namespace, r)), r.Kind+"/"+r.Name),
		})
	}
	return out
}

// failures returns the failures of a group: of its machines, and of MachineSets that
// cannot create Machine objects. Each is listed once, newest first.
func (p *Provider) failures(g *source) []cluster.Failure {
	var out []cluster.Failure
	add := func(f *cluster.Failure) {
		if f == nil {
			return
		}
		at := slices.IndexFunc(out, func(o cluster.Failure) bool { return o.Cause == f.Cause && o.Text == f.Text && o.Zone == f.Zone })
		switch {
		case at < 0:
			out = append(out, *f)
		case f.At.After(out[at].At):
			out[at] = *f
		}
	}
	for _, m := range g.machines {
		if m.DeletionTimestamp == nil && m.Status.NodeRef.Name == "" {
			add(m.Failure())
		}
	}
	if len(g.machines) < g.Target() {
		for _, s := range append(slices.Clone(g.sets), g.Scalable) {
			for _, f := range s.Failures() {
				add(f)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b cluster.Failure) int {
		return cmp.Or(b.At.Compare(a.At), strings.Compare(a.Text, b.Text))
	})
	return out
}
