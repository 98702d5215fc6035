package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/flight"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan"
	"github.com/autoscaler-agent/autoscaler-agent/agent/version"
)

// Status is what the local API tells under /status.
type Status struct {
	Version  string          `json:"version"`
	Node     string          `json:"node"`
	Since    time.Time       `json:"since"`
	Acting   bool            `json:"acting"`
	Why      string          `json:"why,omitempty"` // why it does not act
	Stale    string          `json:"stale,omitempty"`
	Cloud    string          `json:"cloud,omitempty"` // what is wrong with the last read
	CloudAt  time.Time       `json:"cloudAt,omitzero"`
	Late     []string        `json:"late,omitempty"`
	Services []string        `json:"services"`
	Nodes    int             `json:"nodes"`
	Ready    int             `json:"ready"`
	Pods     int             `json:"pods"`
	Pending  int             `json:"pending"`
	Groups   []GroupStatus   `json:"groups"`
	LastPlan time.Time       `json:"lastPlan,omitzero"`
	Plan     string          `json:"plan,omitempty"`
	Held     []decision.Held `json:"held,omitempty"`
}

// GroupStatus is one node group in Status.
type GroupStatus struct {
	ID        string   `json:"id"`
	Provider  string   `json:"provider,omitempty"` // where there are several
	Min       int      `json:"min"`
	Max       int      `json:"max"`
	Target    int      `json:"target"`
	Instances int      `json:"instances"`
	Stale     string   `json:"stale,omitempty"`
	Paused    string   `json:"paused,omitempty"`
	Busy      string   `json:"busy,omitempty"`
	Keeps     string   `json:"keeps,omitempty"`
	Template  string   `json:"template,omitempty"` // why it is not known
	Warnings  []string `json:"warnings,omitempty"`
	Failures  []string `json:"failures,omitempty"`
}

// groupStatus sums up one group.
func groupStatus(g cluster.NodeGroup) GroupStatus {
	out := GroupStatus{ID: string(g.ID), Provider: g.Provider, Min: g.Min, Max: g.Max, Target: g.Target, Stale: g.Stale, Paused: g.Paused, Busy: g.Busy, Keeps: g.Keeps,
		Template: cmp.Or(g.TemplateStale, g.Template.Unknown), Warnings: g.Warnings}
	for _, in := range g.Instances {
		if in.Member {
			out.Instances++
		}
	}
	for i, f := range g.Failures {
		if i == 3 {
			break
		}
		out.Failures = append(out.Failures, fmt.Sprintf("%s %s: %s", f.At.UTC().Format(time.RFC3339), f.Cause, f.Text))
	}
	return out
}

// status gathers Status now.
func (a *running) status() Status {
	s := Status{Version: version.Current(), Node: a.identity, Since: a.started, Stale: a.observer.Stale(), Services: a.serviceNames}
	s.Acting, s.Why = a.gate.MayAct()
	groups, at, err := a.inventory.Last()
	s.CloudAt = at
	if err != nil {
		s.Cloud = err.Error()
	}
	for _, g := range groups {
		s.Groups = append(s.Groups, groupStatus(g))
	}
	for _, l := range a.heartbeats.Late(time.Now()) {
		s.Late = append(s.Late, l.String())
	}
	look := a.observer.ReadOnlySnapshot()
	s.Nodes, s.Pods = len(look.Nodes), look.PodCount()
	for _, n := range look.Nodes {
		if n.Ready == cluster.StatusTrue {
			s.Ready++
		}
	}
	for _, p := range look.Pods {
		if !p.Unschedulable.IsZero() {
			s.Pending++
		}
	}
	a.scaler.mu.Lock()
	s.LastPlan, s.Plan, s.Held = a.scaler.lastAt, a.scaler.last.String(), a.scaler.last.Held
	a.scaler.mu.Unlock()
	return s
}

// serveMetrics serves /metrics, /health-check and /healthz on cfg.Listen.
func (a *running) serveMetrics(ctx context.Context, beat func()) error {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(a.metrics.Registry(), promhttp.HandlerOpts{}))
	health := func(w http.ResponseWriter, _ *http.Request) {
		if late := a.heartbeats.Late(time.Now()); len(late) > 0 {
			http.Error(w, fmt.Sprintf("late: %v", late), http.StatusInternalServerError)
			return
		}
		_, _ = w.Write([]byte("OK\n")) // the client is gone when this fails
	}
	mux.HandleFunc("GET /health-check", health)
	mux.HandleFunc("GET /healthz", health)
	listener, err := net.Listen("tcp", a.cfg.Listen)
	if err != nil {
		return fmt.Errorf("listen for metrics: %w (set %s_LISTEN to a free address, or to off)", err, Prefix)
	}
	return serve(ctx, listener, mux, beat)
}

// serveSocket serves the local API on cfg.Socket, for its own user and group only.
func (a *running) serveSocket(ctx context.Context, beat func()) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, a.status()) })
	mux.HandleFunc("GET /plan", func(w http.ResponseWriter, _ *http.Request) {
		p, _ := plan.Decide(a.observer.ReadOnlySnapshot(), a.scaler.remembered(), a.policy(time.Now()))
		writeJSON(w, p.Data())
	})
	mux.HandleFunc("GET /explain", a.serveExplain)
	mux.HandleFunc("GET "+NamesPath, a.serveNames)
	mux.HandleFunc("GET /flight", a.serveFlight)
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	if err := os.MkdirAll(filepath.Dir(a.cfg.Socket), 0o750); err != nil {
		return fmt.Errorf("make directory of socket: %w (set %s_SOCKET)", err, Prefix)
	}
	if err := removeDeadSocket(a.cfg.Socket); err != nil {
		return err
	}
	listener, err := net.Listen("unix", a.cfg.Socket)
	if err != nil {
		return fmt.Errorf("listen on socket: %w (set %s_SOCKET)", err, Prefix)
	}
	if err := os.Chmod(a.cfg.Socket, 0o660); err != nil {
		return errors.Join(fmt.Errorf("protect socket: %w", err), listener.Close())
	}
	return serve(ctx, listener, mux, beat)
}

// serveFlight answers GET /flight with the rounds that were kept, and, asked for
// full=1, with one of this moment after them, whatever its size.
func (a *running) serveFlight(w http.ResponseWriter, r *http.Request) {
	var now []byte
	if r.FormValue("full") == "1" {
		s, memory := a.observer.ReadOnlySnapshot(), a.scaler.remembered()
		policy := a.policy(s.Now)
		p, after := plan.Decide(s, memory, policy)
		var err error
		if now, err = flight.Pack(version.Current(), s, memory, policy, p.Data(), after, p.String()); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	w.Header().Set("Content-Type", "application/gzip")
	if _, err := a.scaler.recorder.WriteTo(w); err == nil {
		_, _ = w.Write(now) // the client is gone when this fails
	}
}

// removeDeadSocket clears what a killed agent left behind; a socket that somebody
// answers on is another running agent's.
func removeDeadSocket(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at socket: %w", err)
	}
	if info.Mode()&os.ModeSocket == 0 {
		return fmt.Errorf("listen on socket: %s is there and is no socket (set %s_SOCKET)", path, Prefix)
	}
	if c, err := net.DialTimeout("unix", path, time.Second); err == nil {
		return errors.Join(fmt.Errorf("listen on socket: another agent answers on %s (stop it, or set %s_SOCKET to another path)", path, Prefix), c.Close())
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("remove dead socket: %w", err)
	}
	return nil
}

// serve serves until ctx ends and beats while it does: an accept loop has no rounds,
// so a beat means that the process's scheduler still runs it.
func serve(ctx context.Context, l net.Listener, h http.Handler, beat func()) error {
	server := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second}
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	tick := time.NewTicker(10 * time.Second)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			return fmt.Errorf("serve %s: %w", l.Addr(), err)
		case <-tick.C:
			beat()
		case <-ctx.Done():
			bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			if server.Shutdown(bounded) != nil {
				_ = server.Close() // a client that hangs does not hold up the stop
			}
			<-done
			return nil
		}
	}
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	_ = e.Encode(v) // the client is gone when this fails
}
