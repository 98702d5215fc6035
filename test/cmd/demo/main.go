// Command demo plays the project's whole story on this machine: see package demo.
// `make demo` runs it; DEMO_FLAGS passes flags.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/world"
	"github.com/autoscaler-agent/autoscaler-agent/test/suite/demo"
)

func main() { os.Exit(run()) }

func run() int {
	var o demo.Options
	known := strings.Join(world.Providers(), ", ")
	flag.StringVar(&o.Provider, "provider", "asg", "provider whose emulated cloud the story plays in: "+known)
	flag.IntVar(&o.Replicas, "replicas", 300, "replicas that autoscaler-demo is scaled to")
	flag.IntVar(&o.Small, "small", 3, "replicas when the load has gone (must fit one machine)")
	flag.IntVar(&o.Max, "max", 40, "maximum size of the worker group")
	flag.StringVar(&o.InstanceType, "instance-type", "", "instance type or flavor of the workers (default: the cloud's of about 4 cores and 16 GiB)")
	flag.StringVar(&o.CPU, "cpu", "100m", "CPU request of each pod")
	flag.StringVar(&o.Memory, "memory", "128Mi", "memory request of each pod")
	flag.Uint64Var(&o.Seed, "seed", 0, "seed of the emulated cloud; 0 picks one and prints it")
	flag.BoolVar(&o.Keep, "keep", false, "leave everything running at the end, until Ctrl-C")
	flag.StringVar(&o.Dir, "dir", "", "directory for logs and files, kept afterwards (default: a temporary one)")
	flag.StringVar(&o.Agent, "agent", "", "path of an agent to run instead of building it")
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), `demo plays the whole story of autoscaler-agent on this machine, without a cloud account.

  make demo
  make demo PROVIDER=asg             # or any of: `+known+`
  make demo DEMO_FLAGS="--replicas 1000 --max 100"
  make demo DEMO_FLAGS=--keep        # leaves it running and prints the KUBECONFIG line

`)
		flag.PrintDefaults()
	}
	flag.Parse()
	if !slices.Contains(world.Providers(), o.Provider) {
		fmt.Fprintf(os.Stderr, "demo: provider %q is not known; known are: %s\n", o.Provider, known)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := demo.Run(ctx, o); err != nil {
		if ctx.Err() != nil {
			fmt.Fprintln(os.Stderr, "interrupted; everything that was started has been stopped")
			if o.Keep {
				return 0
			}
			return 130
		}
		fmt.Fprintln(os.Stderr, "demo:", err)
		return 1
	}
	return 0
}
