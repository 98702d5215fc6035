// Command controlplane builds, starts and torments a real Kubernetes control plane
// on the loopback of this machine, for people; tests use package controlplane.
//
// It refuses to run in the background: what `up` started ends with `up`.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/controlplane"
)

const usage = `A real Kubernetes control plane on 127.0.0.1, built from Go modules.

Usage:
  controlplane up      [flags]       start it and stay in the foreground; Ctrl-C stops it
  controlplane down    [--dir DIR]   stop the one that runs in DIR
  controlplane status  [--dir DIR]   parts, states, process ids
  controlplane stop    PART          end a part as systemd would (SIGTERM)
  controlplane kill    PART          end a part at once (SIGKILL)
  controlplane start   PART          start it again with the same arguments and ports
  controlplane pause   PART          freeze it (SIGSTOP): connections stay open, nothing answers
  controlplane resume  PART          let it go on (SIGCONT)
  controlplane build                 build the programs into the cache and print their directory

PART is one of: etcd, kube-apiserver, kube-controller-manager, kube-scheduler

Flags:
  --dir DIR                  state, PKI, kubeconfigs and logs (default: beside the cache)
  --port N                   up: port of the API server (default: a free one)
  --fast                     up: no rate limits in controller manager and scheduler
  --node-monitor-grace D     up: silence after which a Node is NotReady (default 50s)
  --node-lease-seconds N     up: lease duration that joining kubelets are told (default 40)
  --kubeadm-token            up: keep the join token that kubeadm init makes
  --extra PART=--flag=value  up: one more argument for a part; may be repeated

Examples:
  go run ./cmd/controlplane up --fast
  export KUBECONFIG=... (the line that up prints); kubectl get --raw /readyz
  go run ./cmd/controlplane kill kube-apiserver && go run ./cmd/controlplane start kube-apiserver
  go run ./cmd/controlplane up --dir /tmp/cp --port 6443 --extra kube-apiserver=--v=4

Environment:
  AUTOSCALER_TEST_CACHE   where the programs are cached (default: autoscaler-agent in the user's cache directory)
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second Ctrl-C ends us at once; the children die with us.
	context.AfterFunc(ctx, stop)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	var bad usageError
	switch {
	case err == nil:
	case errors.As(err, &bad):
		fmt.Fprintf(os.Stderr, "controlplane: %v\nSee controlplane --help.\n", err)
		os.Exit(2)
	default:
		fmt.Fprintf(os.Stderr, "controlplane: %v\n", err)
		os.Exit(1)
	}
}

// usageError is a mistake in the command line.
type usageError string

func (e usageError) Error() string { return string(e) }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	verb, words, opts, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, usage)
		return nil
	}
	if err != nil {
		return err
	}
	wantWords := 0
	switch verb {
	case "start", "stop", "kill", "pause", "resume":
		wantWords = 1
	}
	if len(words) != wantWords {
		return usageError(fmt.Sprintf("%s takes %d arguments, not %d %q", verb, wantWords, len(words), words))
	}
	switch verb {
	case "up":
		opts.Log = stderr
		return up(ctx, opts, stdout)
	case "build":
		bin, err := controlplane.Binaries(ctx, stderr)
		if err != nil {
			return err
		}
		fmt.Fprintln(stdout, bin.Dir)
		return nil
	case "status":
		return status(ctx, opts.Dir, stdout)
	case "down":
		return ask(ctx, opts.Dir, "POST", "/down", stdout)
	case "start", "stop", "kill", "pause", "resume":
		return ask(ctx, opts.Dir, "POST", "/"+verb+"/"+words[0], stdout)
	}
	return usageError(fmt.Sprintf("no such command %q", verb))
}

// parse takes flags before, between and after the words.
func parse(args []string) (verb string, words []string, opts controlplane.Options, err error) {
	fs := flag.NewFlagSet("controlplane", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&opts.Dir, "dir", "", "")
	fs.IntVar(&opts.APIPort, "port", 0, "")
	fs.BoolVar(&opts.Fast, "fast", false, "")
	fs.DurationVar(&opts.NodeMonitorGrace, "node-monitor-grace", 0, "")
	fs.IntVar(&opts.NodeLeaseSeconds, "node-lease-seconds", 0, "")
	fs.BoolVar(&opts.KubeadmToken, "kubeadm-token", false, "")
	fs.Func("extra", "", func(value string) error {
		part, arg, ok := strings.Cut(value, "=")
		if !ok || !strings.HasPrefix(arg, "-") {
			return errors.New("want PART=--flag=value")
		}
		if opts.ExtraArgs == nil {
			opts.ExtraArgs = map[string][]string{}
		}
		opts.ExtraArgs[part] = append(opts.ExtraArgs[part], arg)
		return nil
	})
	for len(args) > 0 {
		if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
			return "", nil, opts, err
		} else if err != nil {
			return "", nil, opts, usageError(err.Error())
		}
		if args = fs.Args(); len(args) > 0 {
			words, args = append(words, args[0]), args[1:]
		}
	}
	if len(words) == 0 || words[0] == "help" {
		return "", nil, opts, flag.ErrHelp
	}
	if opts.Dir == "" {
		opts.Dir, err = controlplane.DefaultDir()
	} else {
		opts.Dir, err = filepath.Abs(opts.Dir)
	}
	return words[0], words[1:], opts, err
}

// up runs until a signal or `down`.
func up(ctx context.Context, opts controlplane.Options, stdout io.Writer) error {
	cp, err := controlplane.Start(ctx, opts)
	if err != nil {
		return err
	}
	halt := func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		return cp.Stop(ctx)
	}
	down, closeSocket, err := serve(cp)
	if err != nil {
		return errors.Join(err, halt())
	}
	defer closeSocket()
	fmt.Fprintf(stdout, "export KUBECONFIG=%s\nexport PATH=%s:$PATH\n", quote(cp.Kubeconfig()), quote(cp.Binaries().Dir))
	fmt.Fprintf(opts.Log, "controlplane: Ctrl-C stops it; logs are in %s\n", filepath.Join(cp.Dir(), "log"))
	select {
	case <-ctx.Done():
		fmt.Fprintln(opts.Log, "controlplane: stopping")
		return halt()
	case answer := <-down:
		err := halt()
		answer <- err
		return err
	}
}

// quote makes one word of a POSIX shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
