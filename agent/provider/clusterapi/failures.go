package clusterapi

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// creation are the conditions of a Machine that tell how its machine is being made, in
// the words of either contract.
var creation = []string{"InfrastructureReady", "BootstrapReady", "BootstrapConfigReady"}

// failureOf is what the machine's object says against it; nil: nothing, or it has a
// Node and so was made.
func failureOf(m *machineObject) *cluster.Failure {
	old := m.Status.Deprecated.V1Beta1
	reason, text := cmp.Or(m.Status.FailureReason, old.FailureReason), cmp.Or(m.Status.FailureMessage, old.FailureMessage)
	if reason+text != "" {
		at := m.CreationTimestamp
		for _, c := range m.Status.conditions() {
			if c.Status == "False" && c.LastTransitionTime.After(at) {
				at = c.LastTransitionTime
			}
		}
		return failure(reason, text, m.Spec.FailureDomain, at)
	}
	if m.Status.NodeRef.Name != "" || m.DeletionTimestamp != nil {
		return nil
	}
	for _, c := range m.Status.conditions() {
		if c.Status == "False" && slices.Contains(creation, c.Type) && bad(c) {
			return failure(c.Reason, c.Message, m.Spec.FailureDomain, orTime(c.LastTransitionTime, m.CreationTimestamp))
		}
	}
	return nil
}

func orTime(a, b time.Time) time.Time {
	if a.IsZero() {
		return b
	}
	return a
}

// unseen is v1beta2's reason for "FooMachine does not exist", which every Machine may
// carry for a moment: the controller makes the infrastructure's object before it, and
// sees the two through two caches (seen of v1.13).
const unseen = "ObjectDoesNotExist"

// bad tells a condition that reports a failure from one that waits. v1beta1 has a
// severity for it; in v1beta2 the infrastructure provider's own reason must do.
func bad(c condition) bool {
	if c.Reason == unseen {
		return false
	}
	if c.Severity != "" {
		return c.Severity == "Error" || c.Severity == "Warning" && causeOf(c.Reason+" "+c.Message) != cluster.CauseOther
	}
	reason := strings.ToLower(c.Reason)
	for _, word := range []string{"fail", "error", "invalid", "exceed", "insufficient"} {
		if strings.Contains(reason, word) {
			return true
		}
	}
	return causeOf(c.Reason+" "+c.Message) != cluster.CauseOther
}

func failure(reason, text, zone string, at time.Time) *cluster.Failure {
	words := strings.TrimPrefix(strings.TrimSpace(reason+": "+strings.TrimSpace(text)), ": ")
	words = strings.TrimSuffix(words, ":")
	return &cluster.Failure{Cause: causeOf(words), Text: words, Zone: zone, At: at}
}

// causes are the words by which clouds say why they start no machine, as
// infrastructure providers hand them on. The first list that fits holds.
var causes = []struct {
	cause cluster.Cause
	words []string
}{
	{cluster.CauseQuota, []string{"quota", "limitexceeded", "limit exceeded", "vcpulimit", "overlimit", "maximum number of", "operationnotallowed"}},
	{cluster.CauseCapacity, []string{"insufficientinstancecapacity", "insufficient capacity", "no valid host", "novalidhost", "not enough capacity",
		"out of capacity", "zone_resource_pool_exhausted", "resource_pool_exhausted", "stockout", "skunotavailable", "allocationfailed", "insufficientresources"}},
	{cluster.CauseInvalid, []string{"invalidconfiguration", "unsupportedchange", "invalid", "not found", "notfound", "does not exist", "unauthorized", "forbidden"}},
}

func causeOf(text string) cluster.Cause {
	text = strings.ToLower(text)
	for _, c := range causes {
		if slices.ContainsFunc(c.words, func(w string) bool { return strings.Contains(text, w) }) {
			return c.cause
		}
	}
	return cluster.CauseOther
}

// failures are the group's: of its machines, and of MachineSets that cannot even make
// the Machine objects. Each is listed once, newest first.
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
			add(failureOf(m))
		}
	}
	if len(g.machines) < g.target() {
		for _, s := range append(slices.Clone(g.sets), g.scalable) {
			for _, c := range s.Status.conditions() {
				if c.Status == "False" && c.Type == "MachinesCreated" {
					add(failure(c.Reason, c.Message, "", orTime(c.LastTransitionTime, s.CreationTimestamp)))
				}
			}
			old := s.Status.Deprecated.V1Beta1
			if reason, text := cmp.Or(s.Status.FailureReason, old.FailureReason), cmp.Or(s.Status.FailureMessage, old.FailureMessage); reason+text != "" {
				add(failure(reason, text, "", s.CreationTimestamp))
			}
		}
	}
	slices.SortStableFunc(out, func(a, b cluster.Failure) int {
		return cmp.Or(b.At.Compare(a.At), strings.Compare(a.Text, b.Text))
	})
	return out
}
