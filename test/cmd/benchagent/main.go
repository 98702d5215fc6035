// Command benchagent measures the whole agent from outside, on a real etcd and API server
// that are filled with nodes and pods, and an emulated AWS with EC2's token buckets: memory,
// the start, processor time at rest and in churn, requests and bytes of the API server, calls
// of the cloud, and a burst of 1,000 pods. With -write it puts its rows into
// docs/performance.md.
//
//	make bench-agent
//	cd test && go run ./cmd/benchagent -nodes 500,1000
//	cd test && go run ./cmd/benchagent -binary ./cluster-autoscaler -args '--kubeconfig={kubeconfig} --cloud-provider=aws ...'
//
// It refuses to judge: figures of a busy machine are upper bounds, and it prints the load.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/klog/v2"
)

// options are the flags.
type options struct {
	nodes   []int
	pods    int // of each node
	groups  int
	phase   time.Duration // how long rest and churn are each measured
	churn   int           // pods a second
	burst   int
	binary  string
	args    []string
	metrics string
	dir     string
	write   string
}

func main() { os.Exit(run()) }

func run() int {
	var o options
	var nodes, args string
	flag.StringVar(&nodes, "nodes", "500,1000", "numbers of nodes, each a run of its own: 500,1000,2000,5000")
	flag.IntVar(&o.pods, "pods", 30, "pods of each node")
	flag.IntVar(&o.groups, "groups", 10, "node groups, each with a launch template of its own")
	flag.DurationVar(&o.phase, "phase", time.Minute, "how long rest and churn are measured, each")
	flag.IntVar(&o.churn, "churn", 20, "pods that are replaced each second of the churn")
	flag.IntVar(&o.burst, "burst", 1000, "pods of the burst, of ten ReplicaSets")
	flag.StringVar(&o.binary, "binary", "", "another autoscaler's program (default: this checkout's agent, which is built)")
	flag.StringVar(&args, "args", "", "its arguments; {kubeconfig}, {cluster} and {metrics} are replaced")
	flag.StringVar(&o.metrics, "metrics", "127.0.0.1:18085", "where it serves cluster_autoscaler_last_activity")
	flag.StringVar(&o.dir, "dir", "", "directory for logs, kept afterwards (default: a temporary one)")
	flag.StringVar(&o.write, "write", "", "the page whose rows are replaced: docs/performance.md")
	flag.Parse()
	for text := range strings.SplitSeq(nodes, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < o.groups {
			fmt.Fprintf(os.Stderr, "benchagent: -nodes: %q is no number of nodes of %d groups\n", text, o.groups)
			return 2
		}
		o.nodes = append(o.nodes, n)
	}
	o.args = strings.Fields(args)
	klog.SetLogger(klog.Logger{})
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var rows []figures
	for _, n := range o.nodes {
		row, err := measure(ctx, o, n)
		if err != nil {
			fmt.Fprintf(os.Stderr, "benchagent: %d nodes: %v\n", n, err)
			return 1
		}
		rows = append(rows, row)
	}
	text := table(o, rows)
	fmt.Print(text)
	if o.write != "" {
		if err := replace(o.write, text); err != nil {
			fmt.Fprintln(os.Stderr, "benchagent:", err)
			return 1
		}
	}
	return 0
}
