package main

import (
	"context"
	"fmt"
	"io"
	"runtime"

	"github.com/autoscaler-agent/autoscaler-agent/agent"
)

func versionCommand(_ context.Context, args []string, out, errout io.Writer) int {
	fs := newFlags("version", "Print the version of this binary.", `  autoscaler-agent version
  autoscaler-agent version --output json
`, errout)
	output := outputFlag(fs)
	if code, done := parse(fs, args, out, errout); done {
		return code
	}
	if *output == "json" {
		return printJSON(out, map[string]string{"version": agent.Version(), "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH})
	}
	fmt.Fprintf(out, "autoscaler-agent %s %s %s/%s\n", agent.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return exitOK
}
