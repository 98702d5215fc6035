package plantest

import "github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/schedsim"

// The model of kube-scheduler, for the tests that hold it against kube-scheduler itself.
type (
	Sim       = schedsim.Sim
	SimConfig = schedsim.Config
	SimNode   = schedsim.Node
)

// NewSim returns a Sim without nodes.
func NewSim(c SimConfig) *Sim { return schedsim.New(c) }
