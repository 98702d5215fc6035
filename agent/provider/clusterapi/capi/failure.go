package capi

import (
	"slices"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// creation names the conditions of a Machine that report its creation, in both contracts.
var creation = []string{"InfrastructureReady", "BootstrapReady", "BootstrapConfigReady"}

// Failure returns the failure that a Machine reports. nil: it reports none, or it has a
// Node, so that its machine was created.
func (m *Machine) Failure() *cluster.Failure {
	if reason, text := m.Status.Failure(); reason+text != "" {
		at := m.CreationTimestamp
		for _, c := range m.Status.AllConditions() {
			if c.Status == "False" && c.LastTransitionTime.After(at) {
				at = c.LastTransitionTime
			}
		}
		return failure(reason, text, m.Spec.FailureDomain, at)
	}
	if m.Status.NodeRef.Name != "" || m.DeletionTimestamp != nil {
		return nil
	}
	for _, c := range m.Status.AllConditions() {
		if c.Status == "False" && slices.Contains(creation, c.Type) && bad(c) {
			return c.failure(m.Spec.FailureDomain, m.CreationTimestamp)
		}
	}
	return nil
}

// Failures returns the failures of the group itself: Machines that could not be created,
// and the failure in its status.
func (o *Scalable) Failures() []*cluster.Failure {
	var out []*cluster.Failure
	for _, c := range o.Status.AllConditions() {
		if c.Status == "False" && c.Type == "MachinesCreated" {
			out = append(out, c.failure("", o.CreationTimestamp))
		}
	}
	if reason, text := o.Status.Failure(); reason+text != "" {
		out = append(out, failure(reason, text, "", o.CreationTimestamp))
	}
	return out
}

// failure is the condition as a failure. created is its time when the condition has none.
func (c Condition) failure(zone string, created time.Time) *cluster.Failure {
	at := c.LastTransitionTime
	if at.IsZero() {
		at = created
	}
	return failure(c.Reason, c.Message, zone, at)
}

// unseen is v1beta2's reason for "FooMachine does not exist". A new Machine may have it for
// a moment, because the controller reads the Machine and its infrastructure object through
// two caches (observed with v1.13).
const unseen = "ObjectDoesNotExist"

// bad tells a condition that reports a failure from one that reports progress. v1beta1 has
// a severity for it; v1beta2 has only the infrastructure provider's reason.
func bad(c Condition) bool {
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

// causes has the words of clouds for why a machine does not start, as infrastructure
// providers pass them on. The first list with a match applies.
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
