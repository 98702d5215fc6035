package election_test

import (
	"fmt"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/election"
)

// An agent that has not campaigned may change nothing, and no write may begin.
func ExampleLeadership_MayAct() {
	leadership := election.New(election.Config{Namespace: "kube-system", Name: "autoscaler-agent"}, election.Deps{Identity: "cp-1"})
	fmt.Println(leadership.MayAct())
	fmt.Println(leadership.ActUntil().After(time.Now()))
	// Output:
	// false waiting for Lease kube-system/autoscaler-agent
	// false
}
