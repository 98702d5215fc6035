package doctor_test

import (
	"fmt"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/doctor"
)

// A node group with its bounds the wrong way round is an error with its remedy.
func ExampleGroup() {
	for _, f := range doctor.Group(cluster.NodeGroup{ID: "workers", Min: 3, Max: 1}) {
		fmt.Printf("%s %s: %s\n%s\n", f.Level, f.About, f.Text, f.Remedy)
	}
	// Output:
	// error group workers: min 3 is above max 1
	// set a min that is at most max; until then nothing is grown or deleted in it
}
