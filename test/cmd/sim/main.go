// Command sim plays a day of a cluster against the decision engine in simulated time
// and prints what it came to: see package sim.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/test/judge/sim"
)

func main() { os.Exit(run()) }

func run() int {
	var o sim.Options
	var all, log bool
	flag.StringVar(&o.Curve, "curve", "office", "the kind of day")
	flag.Uint64Var(&o.Seed, "seed", 0, "of everything that is left to chance; 0 picks one and prints it")
	flag.DurationVar(&o.Length, "length", 24*time.Hour, "simulated time")
	flag.DurationVar(&o.Restart, "restart", 0, "mean time between restarts of the agent that lose its memory; 0: none")
	flag.BoolVar(&o.ByAge, "by-age", false, "let the scheduler take waiting pods strictly by age")
	flag.BoolVar(&all, "all", false, "play every curve")
	flag.BoolVar(&log, "log", false, "print every action")
	flag.Usage = func() {
		out := flag.CommandLine.Output()
		fmt.Fprint(out, "sim plays a day of a cluster against the decision engine, in simulated time.\n\n  go run ./cmd/sim -curve office -seed 7\n  AUTOSCALER_SCALING_UNNEEDED_FOR=3m go run ./cmd/sim -curve sawtooth\n\nThe curves:\n")
		for _, c := range sim.Curves {
			fmt.Fprintf(out, "  %-9s %s\n", c.Name, c.Doc)
		}
		fmt.Fprintln(out)
		flag.PrintDefaults()
	}
	flag.Parse()
	if o.Seed == 0 {
		o.Seed = uint64(time.Now().UnixNano())
	}
	if log {
		o.Log = func(line string) { fmt.Println(line) }
	}
	curves := []string{o.Curve}
	if all {
		curves = nil
		for _, c := range sim.Curves {
			curves = append(curves, c.Name)
		}
	}
	for _, name := range curves {
		o.Curve = name
		start := time.Now()
		r, err := sim.Run(o)
		if err != nil {
			fmt.Fprintln(os.Stderr, "sim:", err)
			return 1
		}
		r.Print(os.Stdout)
		fmt.Printf("\nplayed in %s\n\n", time.Since(start).Round(10*time.Millisecond))
	}
	return 0
}
