package decision

import (
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// Data is a Plan as a program reads it: `plan --output json`, the local API and the
// flight recorder. Field names are stable; fields may be added.
type Data struct {
	Actions []ActionData `json:"actions"` // in the order in which they are to be done
	Held    []Held       `json:"held"`
	// Rollouts are how the node groups stand whose nodes are replaced.
	Rollouts []Rollout `json:"rollouts,omitempty"`
	// Wake is when a timer next runs out; absent when only a change of the world can
	// matter.
	Wake time.Time `json:"wake,omitzero"`
}

// ActionData is one Action. Kind says which of the other fields mean anything.
type ActionData struct {
	Kind     string             `json:"kind"` // "grow", "cordon", "uncordon", "evict", "terminate"
	Group    cluster.GroupID    `json:"group,omitempty"`
	From     *int               `json:"from,omitempty"`         // grow: the target now
	To       *int               `json:"to,omitempty"`           // grow: the target wanted
	Pods     []cluster.PodKey   `json:"pods,omitempty"`         // grow: the pods that the machines are for
	Expected int                `json:"expectedPods,omitempty"` // grow: pods that their controller has still to make
	Node     cluster.NodeName   `json:"node,omitempty"`
	NodeUID  cluster.UID        `json:"nodeUID,omitempty"`
	Instance cluster.InstanceID `json:"instance,omitempty"`
	Pod      cluster.PodKey     `json:"pod,omitempty"` // evict
	PodUID   cluster.UID        `json:"podUID,omitempty"`
	Grace    float64            `json:"graceSeconds,omitempty"` // evict: cap of the pod's own grace period
	Forced   bool               `json:"forced,omitempty"`       // terminate: with pods that must move
	Rule     string             `json:"rule,omitempty"`
	Why      string             `json:"why,omitempty"`
	Text     string             `json:"text"` // the journal's line
}

// Data returns the plan as values that marshal; lists are never nil, so that a
// program finds an empty list where there is nothing.
func (p Plan) Data() Data {
	d := Data{Actions: make([]ActionData, len(p.Actions)), Held: p.Held, Rollouts: p.Rollouts, Wake: p.Wake}
	for i, a := range p.Actions {
		d.Actions[i] = actionData(a)
	}
	if d.Held == nil {
		d.Held = []Held{}
	}
	return d
}

func actionData(a Action) ActionData {
	d := ActionData{Text: a.String()}
	switch a := a.(type) {
	case Grow:
		d.Kind, d.Group, d.From, d.To, d.Pods, d.Expected, d.Rule, d.Why = "grow", a.Group, &a.From, &a.To, a.Pods, a.Expected, a.Rule, a.Why
	case Cordon:
		d.Kind, d.Node, d.NodeUID, d.Rule, d.Why = "cordon", a.Node, a.UID, a.Rule, a.Why
	case Uncordon:
		d.Kind, d.Node, d.NodeUID, d.Rule, d.Why = "uncordon", a.Node, a.UID, a.Rule, a.Why
	case SoftTaint:
		d.Kind, d.Node, d.NodeUID, d.Rule, d.Why = "soften", a.Node, a.UID, a.Rule, a.Why
		if a.Off {
			d.Kind = "unsoften"
		}
	case Evict:
		d.Kind, d.Pod, d.PodUID, d.Node, d.Grace, d.Why = "evict", a.Pod, a.UID, a.Node, a.Grace.Seconds(), a.Why
	case Terminate:
		d.Kind, d.Group, d.Instance, d.Node, d.NodeUID, d.Forced, d.Rule, d.Why = "terminate", a.Group, a.Instance, a.Node, a.NodeUID, a.Forced, a.Rule, a.Why
	}
	return d
}

// String is Plan.String of the plan that d was made of.
func (d Data) String() string {
	var b strings.Builder
	for _, a := range d.Actions {
		b.WriteString(a.Text + "\n")
	}
	for _, h := range d.Held {
		b.WriteString(h.String() + "\n")
	}
	return b.String()
}
