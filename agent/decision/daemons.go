package decision

import (
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// DaemonPods is what the pods of a DaemonSet requested on the nodes of a group when they last
// showed it, where that is not what its template says.
type DaemonPods struct {
	Group     cluster.GroupID   `json:"group"`
	DaemonSet cluster.UID       `json:"daemonSet"`
	Revision  string            `json:"revision,omitempty"` // cluster.DaemonSet.Revision
	Requests  cluster.Resources `json:"requests"`           // the largest of each resource
	Seen      time.Time         `json:"seen"`
}

// DaemonSource is where it is known from what a DaemonSet takes of a machine.
type DaemonSource string

// The sources, the surest first.
const (
	DaemonOnGroup    DaemonSource = "group"      // its pods on nodes of the group
	DaemonRemembered DaemonSource = "remembered" // what these showed before the last of them went
	DaemonElsewhere  DaemonSource = "elsewhere"  // its pods on other nodes
	DaemonTemplate   DaemonSource = "template"   // its template, completed as the API server does
)

// DaemonShare is what one DaemonSet takes of a group's next machine.
type DaemonShare struct {
	DaemonSet cluster.PodKey    `json:"daemonSet"`
	Requests  cluster.Resources `json:"requests"`
	Source    DaemonSource      `json:"source"`
	Why       string            `json:"why"`
}
