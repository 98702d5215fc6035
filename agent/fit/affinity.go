package fit

import (
	"slices"
	"strconv"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// selected follows nodeaffinity.RequiredNodeAffinity: nodeSelector and required
// node affinity must both hold.
func selected(c *cluster.PodClass, s *NodeInfo) bool {
	if len(s.InZones) > 0 {
		return inEachZone(s, func(in *NodeInfo) bool { return selected(c, in) })
	}
	for k, v := range c.NodeSelector {
		if got, ok := s.Labels[k]; !ok || got != v {
			return false
		}
	}
	if c.Affinity == nil {
		return true
	}
	for i := range c.Affinity {
		if term(&c.Affinity[i], s) {
			return true
		}
	}
	return false
}

// term tells whether all requirements of a term hold; an empty term matches nothing.
func term(t *cluster.NodeTerm, s *NodeInfo) bool {
	if len(t.Labels) == 0 && len(t.Fields) == 0 {
		return false
	}
	for i := range t.Labels {
		if !label(&t.Labels[i], s.Labels) {
			return false
		}
	}
	for i := range t.Fields {
		if !field(&t.Fields[i], s.Name) {
			return false
		}
	}
	return true
}

// label judges one matchExpression. A requirement that the API would not accept
// (labels.NewRequirement) matches nothing, as in kube-scheduler.
func label(r *cluster.Requirement, labels map[string]string) bool {
	value, has := labels[r.Key]
	switch r.Operator {
	case "In":
		return has && slices.Contains(r.Values, value)
	case "NotIn":
		return len(r.Values) > 0 && (!has || !slices.Contains(r.Values, value))
	case "Exists":
		return len(r.Values) == 0 && has
	case "DoesNotExist":
		return len(r.Values) == 0 && !has
	case "Gt", "Lt":
		if len(r.Values) != 1 {
			return false
		}
		got, err := strconv.ParseInt(value, 10, 64) // a label that is missing is no number
		if err != nil {
			return false
		}
		bound, err := strconv.ParseInt(r.Values[0], 10, 64)
		if err != nil {
			return false
		}
		return r.Operator == "Gt" && got > bound || r.Operator == "Lt" && got < bound
	}
	return false
}

// field judges one matchField: metadata.name, In or NotIn, exactly one value.
func field(r *cluster.Requirement, name cluster.NodeName) bool {
	if r.Key != "metadata.name" || len(r.Values) != 1 {
		return false
	}
	switch r.Operator {
	case "In":
		return r.Values[0] == string(name)
	case "NotIn":
		return r.Values[0] != string(name)
	}
	return false
}
