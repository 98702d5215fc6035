package magnum

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/openstack"
)

// providerID is the form that the OpenStack cloud provider writes.
func providerID(uuid string) cluster.InstanceID {
	return cluster.InstanceID("openstack:///" + strings.ToLower(uuid))
}

// parseProviderID returns the server's UUID of a provider ID in any form that is
// written: openstack:///UUID, openstack://REGION/UUID (cloud provider with regions),
// openstack://UUID (Cluster API provider), a bare UUID, or a machine ID without dashes
// (seed 000). Cluster Autoscaler's fake:///GROUP/INDEX names no server.
func parseProviderID(id cluster.InstanceID) (uuid string, ok bool) {
	s := string(id)
	if scheme, rest, found := strings.Cut(s, "://"); found {
		if scheme != "openstack" {
			return "", false
		}
		parts := strings.Split(rest, "/")
		if len(parts) > 2 {
			return "", false
		}
		s = parts[len(parts)-1]
	}
	uuid = openstack.UUID(s)
	return uuid, uuid != ""
}

// phaseOf sorts Nova's states (its API reference, "Server status").
func phaseOf(s *servers.Server) cluster.Phase {
	if s.TaskState == "deleting" || s.TaskState == "soft-deleting" {
		return cluster.PhaseDeleting
	}
	switch s.Status {
	case "BUILD", "REBUILD":
		return cluster.PhasePending
	case "ACTIVE", "REBOOT", "HARD_REBOOT", "PASSWORD", "RESIZE", "VERIFY_RESIZE", "REVERT_RESIZE", "MIGRATING":
		return cluster.PhaseRunning
	case "SHUTOFF", "PAUSED", "SUSPENDED", "SHELVED", "SHELVED_OFFLOADED", "RESCUE":
		return cluster.PhaseStopped
	case "SOFT_DELETED":
		return cluster.PhaseDeleting
	case "DELETED":
		return cluster.PhaseGone
	case "ERROR":
		switch {
		case s.LaunchedAt.IsZero():
			return cluster.PhaseFailed
		case s.PowerState == servers.RUNNING:
			return cluster.PhaseRunning // an operation on it failed; the machine runs
		}
	}
	return cluster.PhaseUnknown
}

// instance converts one server of a group.
func (p *Provider) instance(s *servers.Server, v view, types map[string]string) cluster.Instance {
	in := cluster.Instance{ID: providerID(s.ID), Phase: phaseOf(s), Created: s.Created, Zone: s.AvailabilityZone, Addresses: openstack.Addresses(s)}
	if v.going(openstack.UUID(s.ID)) && in.Phase != cluster.PhaseGone {
		in.Phase = cluster.PhaseDeleting
	}
	in.Member = in.Phase != cluster.PhaseGone
	if id, ok := s.Flavor["id"].(string); ok {
		if in.Type = types[id]; in.Type == "" {
			in.Type = id
		}
	}
	if name, ok := s.Flavor["original_name"].(string); ok {
		in.Type = name
	}
	in.Source = startedFrom(s, in.Type)
	in.NodeNames = names(s.Name)
	in.Names = slices.Clone(in.NodeNames)
	if in.Phase == cluster.PhaseFailed {
		in.Failure = &cluster.Failure{Cause: openstack.CauseOf(s.Fault.Message), Text: faultText(s), Zone: s.AvailabilityZone, At: later(s.Fault.Created, s.Updated, s.Created)}
	}
	return in
}

// startedFrom is what Nova tells of the flavor and the image of a server.
func startedFrom(s *servers.Server, flavor string) cluster.Spec {
	out := cluster.Spec{}
	if flavor != "" {
		out[propertyFlavor] = flavor
	}
	if image, _ := s.Image["id"].(string); openstack.UUID(image) != "" {
		out[propertyImage] = openstack.UUID(image)
	}
	return out
}

func faultText(s *servers.Server) string {
	if s.Fault.Message == "" {
		return "server " + s.Name + " is in ERROR and Nova does not say why"
	}
	return "server " + s.Name + ": " + openstack.Message([]byte(s.Fault.Message))
}

// later returns the first time that is set.
func later(list ...time.Time) time.Time {
	for _, t := range list {
		if !t.IsZero() {
			return t
		}
	}
	return time.Time{}
}

var notInHost = regexp.MustCompile(`[^a-z0-9.-]`)

// names are what a Node of the server may be called: the server's name, the host name
// that Nova makes of it, and that with the domain of clouds that set one.
func names(server string) []string {
	name := strings.ToLower(server)
	host := strings.Trim(notInHost.ReplaceAllString(strings.NewReplacer(" ", "-", "_", "-").Replace(name), ""), ".-")
	list := []string{name, host}
	if host != "" && !strings.Contains(host, ".") {
		list = append(list, host+".novalocal")
	}
	list = slices.DeleteFunc(list, func(s string) bool { return s == "" })
	slices.Sort(list)
	return slices.Compact(list)
}
