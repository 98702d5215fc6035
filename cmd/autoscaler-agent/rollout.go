package main

import "github.com/autoscaler-agent/autoscaler-agent/cmd/autoscaler-agent/rollout"

// shell is what the commands of package rollout share with the others.
var shell = rollout.Shell{
	Parent: parent, EnvFile: envFileFlag, Output: outputFlag, Socket: socketFlag,
	Print: printData, Failed: failed, Usage: usagef, NoAnswer: noAnswer, FromHere: lookFromHere, Names: completeNames,
}
