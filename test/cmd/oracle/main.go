// Command oracle asks kube-scheduler's own framework whether agent/fit is right, on
// clusters made from a seed. See package test/judge/oracle.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/test/judge/oracle"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ok, err := run(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "oracle:", err)
		os.Exit(1)
	}
	if !ok {
		os.Exit(3)
	}
}

func run(ctx context.Context) (bool, error) {
	judgements := flag.Int64("judgements", 1_000_000, "how many (pod, node, world) judgements to make at least")
	seed := flag.Uint64("seed", 0, "seed of the first world; 0: of the clock")
	workers := flag.Int("workers", 2, "how many judges work at once")
	enough := flag.Int("enough", 1, "stop after so many worlds with disagreements")
	spread := flag.Bool("spread", false, "worlds in which nearly all pods are spread, and other filters seldom refuse one")
	replay := flag.String("replay", "", "hold fit against a file of recorded verdicts instead of a judge")
	flag.Parse()
	if *replay != "" {
		return again(*replay)
	}
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	program, err := oracle.JudgeProgram(ctx)
	if err != nil {
		return false, err
	}
	fmt.Printf("seed %d\n", *seed)
	began := time.Now()
	c, found, err := oracle.Run{Program: program, Seed: *seed, Judgements: *judgements, Workers: *workers, Enough: *enough, Spread: *spread}.Do(ctx)
	if c != nil {
		c.Print(os.Stdout)
		took := time.Since(began)
		fmt.Printf("%d judgements in %s, %.0f/s; worlds with disagreements: %d\n", c.Judgements, took.Round(time.Second/10), float64(c.Judgements)/took.Seconds(), len(found))
	}
	for _, f := range found {
		text, failed := oracle.Minimal(ctx, program, f)
		if failed != nil {
			return false, failed
		}
		fmt.Printf("\n%s", text)
	}
	return len(found) == 0, err
}

// again holds fit against what a judge once said; the mutation test builds this command
// with one rule broken.
func again(file string) (bool, error) {
	f, err := os.Open(file)
	if err != nil {
		return false, err
	}
	defer f.Close()
	difference, judgements, err := oracle.Replay(f)
	if err != nil {
		return false, err
	}
	if difference != "" {
		fmt.Printf("after %d judgements, %s\n", judgements, difference)
	}
	return difference == "", nil
}
