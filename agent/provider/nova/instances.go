package nova

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/openstack"
)

// The metadata of our servers. Nova takes no slash in a key.
const (
	metaCluster = "autoscaler-agent.cluster"
	metaGroup   = "autoscaler-agent.group"
	metaRequest = "autoscaler-agent.request"
	// For the user data: Nova's metadata service has none of these.
	metaRegion     = "autoscaler-agent.region"
	metaType       = "autoscaler-agent.type"
	metaProviderID = "autoscaler-agent.provider-id" // what stands before the UUID
)

// tagOf is the tag of a cluster's servers, by which Nova itself filters lists.
func tagOf(cluster string) string { return "autoscaler-agent:" + cluster }

// server is one of Nova's.
type server struct{ servers.Server }

// leaving reports whether a server is on its way out: its place is not counted.
func (s *server) leaving() bool {
	switch s.Status {
	case "DELETED", "SOFT_DELETED":
		return true
	}
	return s.TaskState == "deleting" || s.TaskState == "soft-deleting"
}

// failed reports whether a server never ran and never will. One that ran and whose host was
// lost is in ERROR too, and may still run.
func (s *server) failed() bool { return s.Status == "ERROR" && s.LaunchedAt.IsZero() && !s.leaving() }

// phases are those of Nova's statuses that are clear.
var phases = map[string]cluster.Phase{
	"BUILD": cluster.PhasePending, "REBUILD": cluster.PhasePending,
	"ACTIVE": cluster.PhaseRunning, "REBOOT": cluster.PhaseRunning, "HARD_REBOOT": cluster.PhaseRunning, "PASSWORD": cluster.PhaseRunning,
	"MIGRATING": cluster.PhaseRunning, "RESIZE": cluster.PhaseRunning, "VERIFY_RESIZE": cluster.PhaseRunning, "REVERT_RESIZE": cluster.PhaseRunning,
	"SHUTOFF": cluster.PhaseStopped, "SUSPENDED": cluster.PhaseStopped, "PAUSED": cluster.PhaseStopped, "SHELVED": cluster.PhaseStopped,
	"SHELVED_OFFLOADED": cluster.PhaseStopped, "RESCUE": cluster.PhaseStopped,
}

func (s *server) phase() cluster.Phase {
	switch {
	case s.leaving():
		return cluster.PhaseDeleting
	case s.failed():
		return cluster.PhaseFailed
	}
	return phases[s.Status]
}

// failure is the reason why a server could not be started, in Nova's words.
func (s *server) failure() *cluster.Failure {
	f := &cluster.Failure{Cause: cluster.CauseOther, Text: "server " + s.Name + " went into ERROR, and Nova gives no reason", Zone: s.AvailabilityZone, At: s.Updated}
	if s.Fault.Message != "" {
		f.Text, f.Cause = s.Fault.Message, openstack.CauseOf(s.Fault.Message)
		if !s.Fault.Created.IsZero() {
			f.At = s.Fault.Created
		}
	}
	return f
}

// serverID is the server of a provider ID in any form that OpenStack's parts write:
// openstack:///uuid, openstack://region/uuid, openstack://uuid; empty: it is none.
func serverID(id cluster.InstanceID) string {
	rest, ok := strings.CutPrefix(string(id), "openstack://")
	if !ok {
		return ""
	}
	return openstack.UUID(rest[strings.LastIndexByte(rest, '/')+1:])
}

// providerID is what the kubelet of a server writes.
func (s *site) providerID(id string) cluster.InstanceID {
	if s.cloud.ProviderIDRegion {
		return cluster.InstanceID("openstack://" + s.region() + "/" + id)
	}
	return cluster.InstanceID("openstack:///" + id)
}

// idOf is the provider ID in the form that the server was given when it was created:
// a change of the section does not change what its kubelet has written.
func (s *site) idOf(one *server) cluster.InstanceID {
	if form := one.Metadata[metaProviderID]; strings.HasPrefix(form, "openstack://") {
		return cluster.InstanceID(form + one.ID)
	}
	return s.providerID(one.ID)
}

// metadataDomain is the default of Nova's [api]dhcp_domain.
const metadataDomain = "novalocal"

// instance converts a server to the type of the provider contract.
func (s *site) instance(one *server, names map[string]string) cluster.Instance {
	in := cluster.Instance{ID: s.idOf(one), Phase: one.phase(), Created: one.Created, Type: one.flavor("original_name"), Zone: one.AvailabilityZone, Member: !one.leaving()}
	if in.Type == "" {
		in.Type = names[one.flavor("id")]
	}
	for _, name := range []string{one.Name, one.hostname()} {
		name = strings.ToLower(name)
		if name != "" && !slices.Contains(in.NodeNames, name) {
			in.NodeNames = append(in.NodeNames, name)
			in.Names = append(in.Names, name)
		}
	}
	// The host name in the metadata service has the domain of Nova's DHCP.
	if host := strings.ToLower(cmp.Or(one.hostname(), one.Name)); host != "" && !strings.Contains(host, ".") {
		full := host + "." + cmp.Or(s.cloud.DHCPDomain, metadataDomain)
		in.NodeNames, in.Names = append(in.NodeNames, full), append(in.Names, full)
	}
	in.Addresses, in.Source = openstack.Addresses(&one.Server), one.startedFrom(in.Type)
	if one.failed() {
		in.Failure = one.failure()
	}
	return in
}

// flavor is a field of the flavor, which gophercloud leaves untyped: "original_name" from
// 2.47, "id" before.
func (s *server) flavor(field string) string {
	text, _ := s.Flavor[field].(string)
	return text
}

// hostname is the name that the metadata service gives; empty before 2.90.
func (s *server) hostname() string {
	if s.Hostname == nil {
		return ""
	}
	return *s.Hostname
}
