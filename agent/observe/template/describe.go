package template

import (
	"fmt"
	"slices"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// Describe returns the correction in sentences for an operator; none for the zero
// Correction.
func (c Correction) Describe() []string {
	if c.At.IsZero() {
		return nil
	}
	since := " (last shown in the hour from " + c.At.UTC().Format("2006-01-02 15h MST") + ")"
	out := []string{"its nodes report " + formatAmount(c.Allocatable) + " allocatable" + since}
	if c.Static.Pods > 0 {
		out = append(out, "static pods take "+formatAmount(c.Static)+" of each of its nodes")
	}
	if len(c.MissingLabels) > 0 {
		out = append(out, "its nodes do not have the promised labels "+strings.Join(c.MissingLabels, ", "))
	}
	var extra []string
	for k, v := range c.ExtraLabels {
		extra = append(extra, k+"="+v)
	}
	if slices.Sort(extra); len(extra) > 0 {
		out = append(out, "its nodes share labels that no tag promises: "+strings.Join(extra, ", "))
	}
	for _, t := range c.Taints {
		out = append(out, fmt.Sprintf("its nodes register with the taint %s=%s:%s that no tag promises", t.Key, t.Value, t.Effect))
	}
	return out
}

func formatAmount(r cluster.Resources) string {
	said := fmt.Sprintf("cpu %dm, memory %dMi, %d pods", r.MilliCPU, r.Memory>>20, r.Pods)
	var more []string
	for name, n := range r.Extended {
		more = append(more, fmt.Sprintf(", %s %d", name, n))
	}
	slices.Sort(more)
	return said + strings.Join(more, "")
}
