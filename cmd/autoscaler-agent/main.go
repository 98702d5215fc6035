// Command autoscaler-agent scales the worker machines of a kubeadm cluster from its
// control-plane machine.
//
// This package is the command line: environment, arguments and signals in, exit code
// out. Each subcommand has a file of its own. No subcommand decides about machines.
// It refuses a subcommand, an argument or a flag that it does not know.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := execute(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
