package fit

import (
	"slices"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// NodeInfo holds the facts about a node that the filters read besides its room.
type NodeInfo struct {
	Name          cluster.NodeName // empty for a template
	Labels        map[string]string
	Taints        []cluster.Taint
	Unschedulable bool
	// InZones is the machine as it is in each of the zones of which the cloud picks one; empty:
	// Labels say all. See NextMachine.
	InZones []NodeInfo
	// Devices are those that ResourceSlices offer; nil: none are known.
	Devices *cluster.Devices
	// Extended are the extended resources that it has, of a device plug-in.
	Extended map[string]int64
	// Daemons are the classes of the DaemonSets' pods that are still to come to the node.
	// AddNode counts them as there: pods may need them on their host, or keep off them.
	Daemons []int
}

// Filter is one of kube-scheduler's filters. Words says why the class is refused,
// in the scheduler's style; empty means that the node passes.
type Filter struct {
	Rule  string
	Name  string // the scheduler's plugin
	words func(c *cluster.PodClass, s *NodeInfo) string
}

// Filters are the filters that look at a node's shape, in kube-scheduler's order.
// Ports (F5) and resources (F6) follow; they look at the room that is left and are
// judged by Dimensions.
var Filters = []Filter{
	{"F0", "understood", func(c *cluster.PodClass, _ *NodeInfo) string {
		if len(c.NotUnderstood) == 0 {
			return ""
		}
		if c.TooLarge {
			return "not judged, for their size: " + c.NotUnderstood[0]
		}
		return "not judged: " + strings.Join(slices.Sorted(slices.Values(c.NotUnderstood)), ", ")
	}},
	{"F1", "NodeUnschedulable", func(c *cluster.PodClass, s *NodeInfo) string {
		if !s.Unschedulable || tolerated(c.Tolerations, cluster.Taint{Key: "node.kubernetes.io/unschedulable", Effect: noSchedule}) {
			return ""
		}
		return "node(s) were unschedulable"
	}},
	{"F2", "NodeName", func(c *cluster.PodClass, s *NodeInfo) string {
		if c.NodeName == "" || c.NodeName == s.Name {
			return ""
		}
		return "node(s) didn't match the requested node name"
	}},
	{"F3", "TaintToleration", func(c *cluster.PodClass, s *NodeInfo) string {
		words := "" // of the first by name, so that the order of taints means nothing
		for _, t := range s.Taints {
			if (t.Effect == noSchedule || t.Effect == noExecute) && !tolerated(c.Tolerations, t) {
				if w := "node(s) had untolerated taint {" + t.Key + ": " + t.Value + "}"; words == "" || w < words {
					words = w
				}
			}
		}
		return words
	}},
	{"F4", "NodeAffinity", func(c *cluster.PodClass, s *NodeInfo) string {
		if selected(c, s) {
			return ""
		}
		return "node(s) didn't match Pod's node affinity/selector"
	}},
}

// The rules of the two filters that look at the room left.
const (
	RulePorts     = "F5" // NodePorts
	RuleResources = "F6" // NodeResourcesFit
)

// Refused runs the shape filters in order and returns the first refusal; an empty
// rule means that the shape passes.
func Refused(c *cluster.PodClass, s *NodeInfo) (rule, words string) {
	for i := range Filters {
		if w := Filters[i].words(c, s); w != "" {
			return Filters[i].Rule, w
		}
	}
	return "", ""
}

// Passes is Refused without the words, and without allocating.
func Passes(c *cluster.PodClass, s *NodeInfo) bool {
	if len(c.NotUnderstood) > 0 || c.NodeName != "" && c.NodeName != s.Name {
		return false
	}
	if s.Unschedulable && !tolerated(c.Tolerations, cluster.Taint{Key: "node.kubernetes.io/unschedulable", Effect: noSchedule}) {
		return false
	}
	return toleratesAll(c, s) && selected(c, s)
}

// UnknownDomain is the first topology key of a class's required terms that a template says nothing about; empty: there is
// none. The label may be one that the machine's Node gets, and its value is not known. A Node without the label is in
// no domain (InterPodAffinity, PodTopologySpread), and the filters judge it. A class that is not constrained goes to any
// domain, and nil is a State in which none is. It costs the terms.
func (s *State) UnknownDomain(class int, n *NodeInfo) string {
	if s == nil || !s.Constrained(class) {
		return ""
	}
	return unknownDomain(&s.classes[class], n)
}

func unknownDomain(c *cluster.PodClass, s *NodeInfo) (first string) {
	if s.Name != "" {
		return ""
	}
	TopologyKeys(c, func(key string) {
		if _, has := s.Labels[key]; !has && key != labelHostname && (first == "" || key < first) {
			first = key
		}
	})
	return first
}

// TopologyKeys visits the topology keys of a class's required terms and spread constraints.
func TopologyKeys(c *cluster.PodClass, visit func(key string)) {
	for i := range c.PodAffinity {
		visit(c.PodAffinity[i].TopologyKey)
	}
	for i := range c.PodAntiAffinity {
		visit(c.PodAntiAffinity[i].TopologyKey)
	}
	for i := range c.Spread {
		visit(c.Spread[i].TopologyKey)
	}
}

// toleratesAll tells whether no taint keeps the class away.
func toleratesAll(c *cluster.PodClass, s *NodeInfo) bool {
	for i := range s.Taints {
		if t := &s.Taints[i]; (t.Effect == noSchedule || t.Effect == noExecute) && !tolerated(c.Tolerations, *t) {
			return false
		}
	}
	return true
}

const (
	noSchedule = "NoSchedule"
	noExecute  = "NoExecute"
)

func tolerated(ts []cluster.Toleration, taint cluster.Taint) bool {
	return slices.ContainsFunc(ts, func(t cluster.Toleration) bool { return t.Tolerates(&taint) })
}

// startupKeys are the taints that a node loses by itself on its way to Ready, or
// that mark its way out. None of them says what the group's next node will carry.
var startupKeys = []string{
	"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable", "node.kubernetes.io/unschedulable",
	"node.kubernetes.io/network-unavailable", "node.kubernetes.io/memory-pressure",
	"node.kubernetes.io/disk-pressure", "node.kubernetes.io/pid-pressure",
	"node.cloudprovider.kubernetes.io/uninitialized", "node.cloudprovider.kubernetes.io/shutdown",
	cluster.TaintToBeDeleted, cluster.TaintDeletionCandidate,
}

var startupPrefixes = []string{
	"startup-taint.cluster-autoscaler.kubernetes.io/", "status-taint.cluster-autoscaler.kubernetes.io/",
	"ignore-taint.cluster-autoscaler.kubernetes.io/",
}

// Startup tells whether a taint belongs to a node's life and not to its kind.
func Startup(t cluster.Taint) bool {
	if slices.Contains(startupKeys, t.Key) {
		return true
	}
	for _, p := range startupPrefixes {
		if strings.HasPrefix(t.Key, p) {
			return true
		}
	}
	return false
}

// Status tells whether a taint says by its prefix that it tells the state of a node: it says
// nothing of the group's next node, and nothing of its own end.
func Status(t cluster.Taint) bool {
	return strings.HasPrefix(t.Key, "status-taint.cluster-autoscaler.kubernetes.io/")
}

// WithoutStartupTaints returns the taints that stay: all but the startup ones.
func WithoutStartupTaints(ts []cluster.Taint) []cluster.Taint {
	if !slices.ContainsFunc(ts, Startup) {
		return ts
	}
	return slices.DeleteFunc(slices.Clone(ts), Startup)
}

// daemonTolerations are the tolerations that the DaemonSet controller adds to every pod it makes
// (util.AddOrUpdateDaemonPodTolerations). Effect is left empty where the controller
// writes one, which is wider only for taints that Kubernetes itself never sets.
var daemonTolerations = []cluster.Toleration{
	{Key: "node.kubernetes.io/not-ready", Operator: "Exists"},
	{Key: "node.kubernetes.io/unreachable", Operator: "Exists"},
	{Key: "node.kubernetes.io/disk-pressure", Operator: "Exists"},
	{Key: "node.kubernetes.io/memory-pressure", Operator: "Exists"},
	{Key: "node.kubernetes.io/pid-pressure", Operator: "Exists"},
	{Key: "node.kubernetes.io/unschedulable", Operator: "Exists"},
	{Key: "node.kubernetes.io/network-unavailable", Operator: "Exists"},
}

// DaemonRunsOn tells whether a DaemonSet of this class puts a pod on a node of this
// shape. Features that fit does not judge do not keep it away: its room is reserved
// rather than forgotten.
func DaemonRunsOn(c *cluster.PodClass, s *NodeInfo) bool {
	for _, t := range s.Taints {
		if (t.Effect == noSchedule || t.Effect == noExecute) && !tolerated(c.Tolerations, t) && !tolerated(daemonTolerations, t) {
			return false
		}
	}
	if c.NodeName != "" && c.NodeName != s.Name {
		return false
	}
	for i := range s.InZones {
		if selected(c, &s.InZones[i]) {
			return true
		}
	}
	return selected(c, s)
}
