package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"text/tabwriter"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent"
)

func statusCommand(ctx context.Context, args []string, out, errout io.Writer) int {
	fs := newFlags("status", "Print what the running agent on this machine does now.", `  autoscaler-agent status
  autoscaler-agent status --output json | jq .held
  autoscaler-agent status --socket /tmp/agent.sock
`, errout)
	envFile, output := envFileFlag(fs), outputFlag(fs)
	socket := fs.String("socket", "", "the agent's `socket` (default: AUTOSCALER_SOCKET's)")
	if code, done := parse(fs, args, out, errout); done {
		return code
	}
	if *socket == "" {
		cfg, err := load(*envFile)
		if err != nil {
			return complain(errout, "configuration", err)
		}
		*socket = cfg.Socket
	}
	s, err := askStatus(ctx, *socket)
	if err != nil {
		if request, ok := errors.AsType[*url.Error](err); ok {
			err = request.Err
		}
		fmt.Fprintf(errout, "autoscaler-agent: no agent answers on %s: %v (systemctl status autoscaler-agent tells whether it runs; --socket names another)\n", *socket, err)
		return exitFailed
	}
	if *output == "json" {
		return printJSON(out, s)
	}
	printStatus(out, s)
	return exitOK
}

func askStatus(ctx context.Context, socket string) (agent.Status, error) {
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://agent/status", nil)
	if err != nil {
		return agent.Status{}, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return agent.Status{}, err
	}
	defer func() { _ = resp.Body.Close() }() // read to its end below
	if resp.StatusCode != http.StatusOK {
		return agent.Status{}, fmt.Errorf("it answers %s", resp.Status)
	}
	var s agent.Status
	if err := json.NewDecoder(resp.Body).Decode(&s); err != nil {
		return agent.Status{}, fmt.Errorf("read its answer: %w", err)
	}
	return s, nil
}

func printStatus(out io.Writer, s agent.Status) {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	row := func(name, format string, args ...any) { fmt.Fprintf(w, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
	row("agent", "%s on %s, up %s", s.Version, s.Node, time.Since(s.Since).Round(time.Second))
	if s.Acting {
		row("acting", "yes")
	} else {
		row("acting", "no: %s", s.Why)
	}
	if s.Stale != "" {
		row("kubernetes", "%s", s.Stale)
	}
	switch {
	case s.Cloud != "":
		row("cloud", "%s", s.Cloud)
	case s.CloudAt.IsZero():
		row("cloud", "not read yet")
	default:
		row("cloud", "read %s ago", time.Since(s.CloudAt).Round(time.Second))
	}
	for _, l := range s.Late {
		row("late", "%s", l)
	}
	row("cluster", "%d nodes (%d ready), %d pods (%d pending)", s.Nodes, s.Ready, s.Pods, s.Pending)
	_ = w.Flush() // out is a terminal or a pipe; nobody reads a broken one
	if len(s.Groups) > 0 {
		fmt.Fprintln(w, "\nGROUP\tMIN\tTARGET\tMAX\tINSTANCES")
		for _, g := range s.Groups {
			fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\n", g.ID, g.Min, g.Target, g.Max, g.Instances)
		}
		_ = w.Flush()
		for _, g := range s.Groups {
			if text := remark(g); text != "" {
				fmt.Fprintf(out, "  %s: %s\n", g.ID, wrap(text, columns(out)-4-len(g.ID), "    "))
			}
		}
	}
	if s.Plan != "" {
		fmt.Fprintf(out, "\nlast plan, %s ago:\n%s", time.Since(s.LastPlan).Round(time.Second), s.Plan)
	}
}

func remark(g agent.GroupStatus) string {
	for _, list := range [][]string{{g.Stale, g.Paused, g.Template}, g.Failures, g.Warnings} {
		for _, text := range list {
			if text != "" {
				return text
			}
		}
	}
	return ""
}
