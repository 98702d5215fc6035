package externalgrpc

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/externalgrpc/protos"
)

// classOutOfResources is the instanceErrorClass of Cluster Autoscaler for lack of capacity.
const classOutOfResources = 1

// facts are the names and addresses of a machine, from MachineFacts or from groups.yaml.
type facts struct {
	nodeNames, names, addresses []string
	created, failedAt           time.Time
	typ, zone                   string
}

func factsOf(m *protos.MachineFacts) facts {
	return facts{nodeNames: m.GetNodeNames(), names: m.GetDnsNames(), addresses: m.GetAddresses(),
		created: timeOf(m.GetCreated()), failedAt: timeOf(m.GetFailedAt()), typ: m.GetType(), zone: m.GetZone()}
}

// timeOf reads a timestamp. One that is missing, zero or outside of years 1 to 9999 is the
// zero time.
func timeOf(t *timestamppb.Timestamp) time.Time {
	if !t.IsValid() || t.GetSeconds() == 0 && t.GetNanos() == 0 {
		return time.Time{}
	}
	return t.AsTime()
}

// sightLag is how long before its first listing an instance may have been launched: the
// agent reads the groups because of the certificate request of a new machine.
const sightLag = 10 * time.Second

// fill adds the plug-in's instances to g.
func (p *Provider) fill(g *cluster.NodeGroup, list []*protos.Instance, inventory map[string]facts, at time.Time) {
	warn := func(format string, args ...any) { g.Warnings = append(g.Warnings, fmt.Sprintf(format, args...)) }
	typ := g.Template.Labels["node.kubernetes.io/instance-type"]
	known := map[string]bool{}
	for _, i := range list {
		id := i.GetId()
		if id == "" || known[id] {
			warn("the plug-in lists an instance twice or without an ID (%q): it was left out", id)
			continue
		}
		known[id] = true
		s := p.see(g.ID, i, at)
		f, own := inventory[id]
		if !own {
			f = factsOf(i.GetMachine())
		} else if f.created.IsZero() {
			f.created = s.first.Add(-sightLag) // an older certificate request is held, which is safe
		}
		if f.failedAt.IsZero() {
			f.failedAt = s.failed
		}
		in := cluster.Instance{ID: cluster.InstanceID(id), Phase: phaseOf(i), Created: f.created, Type: or(f.typ, typ), Zone: f.zone, Member: true}
		if !s.told.IsZero() && in.Phase != cluster.PhaseDeleting {
			in.Phase = cluster.PhaseDeleting
		}
		for _, n := range f.nodeNames {
			in.NodeNames = append(in.NodeNames, strings.ToLower(n))
		}
		in.Names = slices.Clone(in.NodeNames)
		for _, n := range f.names {
			if n = strings.ToLower(n); !slices.Contains(in.Names, n) {
				in.Names = append(in.Names, n)
			}
		}
		for _, a := range f.addresses {
			ip, err := netip.ParseAddr(a)
			if err != nil || ip.Zone() != "" {
				warn("instance %s: the plug-in reports the address %q, which is no IP address", id, a)
				continue
			}
			in.Addresses = append(in.Addresses, ip.Unmap())
		}
		if in.Phase == cluster.PhaseFailed {
			in.Failure = &cluster.Failure{Cause: causeOf(i.GetStatus().GetErrorInfo()), Text: failureText(i.GetStatus().GetErrorInfo()), Zone: f.zone, At: f.failedAt}
			g.Failures = append(g.Failures, *in.Failure)
		}
		g.Instances = append(g.Instances, in)
	}
	slices.SortStableFunc(g.Failures, func(a, b cluster.Failure) int { return b.At.Compare(a.At) })
}

func failureText(info *protos.InstanceErrorInfo) string {
	if info.GetErrorMessage() == "" {
		return info.GetErrorCode()
	}
	return info.GetErrorCode() + ": " + info.GetErrorMessage()
}

// errorCode is the code of an instance's error; "": there is none.
func errorCode(i *protos.Instance) string { return i.GetStatus().GetErrorInfo().GetErrorCode() }

func isDeleting(i *protos.Instance) bool {
	return i.GetStatus().GetInstanceState() == protos.InstanceStatus_instanceDeleting
}

// phaseOf reads a state. An unspecified one means running, as in Cluster Autoscaler. An
// error counts only while the instance is being created: the Node of a running machine
// shows its state.
func phaseOf(i *protos.Instance) cluster.Phase {
	switch i.GetStatus().GetInstanceState() {
	case protos.InstanceStatus_instanceDeleting:
		return cluster.PhaseDeleting
	case protos.InstanceStatus_instanceCreating:
		if errorCode(i) != "" {
			return cluster.PhaseFailed
		}
		return cluster.PhasePending
	case protos.InstanceStatus_instanceRunning, protos.InstanceStatus_unspecified:
		return cluster.PhaseRunning
	}
	return cluster.PhaseUnknown
}

// see records that an instance is listed.
func (p *Provider) see(group cluster.GroupID, i *protos.Instance, at time.Time) sight {
	p.mu.Lock()
	defer p.mu.Unlock()
	id := cluster.InstanceID(i.GetId())
	s, ok := p.seen[id]
	if !ok {
		s.first = at
	}
	if errorCode(i) == "" {
		s.failed = time.Time{}
	} else if s.failed.IsZero() {
		s.failed = at
	}
	if !s.told.IsZero() && at.Sub(s.told) > toldFor && !isDeleting(i) {
		s.told = time.Time{} // the plug-in accepted the deletion and did not carry it out
	}
	s.group, s.last = group, at
	p.seen[id] = s
	return s
}

// forget drops instances that have not been listed for seenFor, and old answers.
func (p *Provider) forget(at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, s := range p.seen {
		if at.Sub(s.last) > seenFor {
			delete(p.seen, id)
		}
	}
	maps.DeleteFunc(p.answers, func(_ question, a answer) bool { return at.Sub(a.at) > answersFor })
}
