package plan

import "github.com/autoscaler-agent/autoscaler-agent/agent/cluster"

// Decide stands in until the real one arrives by merge.
func Decide(s cluster.Snapshot, m Memory, p Policy) (Plan, Memory) { return Plan{}, m }
