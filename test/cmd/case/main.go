// Command case plays cases on a real control plane and prints what was decided and what
// kube-scheduler made of it: see package cases and test/cases/README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/test/cases"
)

func main() { os.Exit(run()) }

func run() int {
	agent := flag.String("agent", "", "path of an agent to ask instead of building it")
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), `case plays cases on a real control plane beside an emulated AWS. The exit code is 1
where one does not end as it wants, 2 where a file cannot be played.

  go run ./cmd/case cases/cluster/a01-ds-limits-only.yaml
  go run ./cmd/case cases/cluster/*.yaml

AUTOSCALER_TEST_PATIENCE (2m) is how long each part of the control plane may take to start,
and each step of a case to come about.

`)
		flag.PrintDefaults()
	}
	flag.Parse()
	var list []cases.Case
	for _, file := range flag.Args() { // before anything slow
		c, err := cases.Read(file)
		if err != nil {
			fmt.Fprintln(os.Stderr, "case:", err)
			return 2
		}
		list = append(list, c)
	}
	if len(list) == 0 {
		flag.Usage()
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	wrong, err := play(ctx, list, *agent)
	if err != nil {
		fmt.Fprintln(os.Stderr, "case:", err)
		return 2
	}
	if wrong > 0 {
		return 1
	}
	return 0
}

func play(ctx context.Context, list []cases.Case, agent string) (wrong int, err error) {
	dir, err := os.MkdirTemp("", "autoscaler-case-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	table, err := cases.Open(ctx, cases.Options{Dir: dir, Agent: agent, Progress: os.Stderr})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, table.Close(context.WithoutCancel(ctx))) }()
	var unplayed error
	for _, c := range list {
		began := time.Now()
		faults, err := table.Play(ctx, c, os.Stdout)
		if err != nil {
			unplayed = errors.Join(unplayed, err)
			fmt.Printf("%v\n\n", err)
			continue
		}
		for _, f := range faults {
			fmt.Println("WRONG", f)
		}
		if len(faults) > 0 {
			wrong++
		}
		fmt.Printf("played in %s\n\n", time.Since(began).Round(100*time.Millisecond))
	}
	return wrong, unplayed
}
