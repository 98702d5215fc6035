// Package localapi is what a running agent tells on its own machine: status, plan, explain,
// nodes, names, recorded rounds and profiles as HTTP on a unix socket, metrics and health on a TCP
// address of the host. Its types are the JSON that the commands print, whether the running
// agent answered or the command looked for itself (agent/oneshot).
//
// It refuses to change anything (POST /reload asks the agent to read its settings again), and to ask the API server or a cloud for an answer: it
// tells what the agent has in memory.
package localapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"path/filepath"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/election"
	"github.com/autoscaler-agent/autoscaler-agent/agent/history"
	"github.com/autoscaler-agent/autoscaler-agent/agent/inventory"
	"github.com/autoscaler-agent/autoscaler-agent/agent/nojoin"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan"
	"github.com/autoscaler-agent/autoscaler-agent/agent/report"
	"github.com/autoscaler-agent/autoscaler-agent/csrsigner"
	"github.com/autoscaler-agent/autoscaler-agent/internal/flight"
	"github.com/autoscaler-agent/autoscaler-agent/internal/heartbeat"
	"github.com/autoscaler-agent/autoscaler-agent/internal/version"
	"github.com/autoscaler-agent/autoscaler-agent/nodecleaner"
)

// Server answers for a running agent.
type Server struct {
	Config     config.Config
	Node       string // the agent's name in the Lease
	Since      time.Time
	Services   []string
	Heartbeats *heartbeat.Monitor
	Metrics    *report.Metrics
	Leadership *election.Leadership
	Observer   *observe.Observer
	Inventory  *inventory.Inventory
	Signer     *csrsigner.Service   // nil: switched off
	Cleaner    *nodecleaner.Service // nil: switched off
	Flight     io.WriterTo          // the recorded rounds
	// Known is what the agent knows of an instance, by a provider ID or the cloud's own ID.
	Known func(s *cluster.Snapshot, id string) nojoin.Known
	// Reload takes changed settings; its error names what is not in force. nil: there is none.
	Reload func() ([]string, error)
	// SettingsFault says why groups.yaml as it is now is not in force; nil: it is not known.
	SettingsFault func() string
	// Policy is the one in force, Memory the engine's after the last round, Last the plan of
	// the last round and its time.
	Policy func(now time.Time) decision.Policy
	Memory func() decision.Memory
	Last   func() (decision.Plan, time.Time)
	// History is what the page draws.
	History *history.History
	// Unready says what the agent waits for before its services work; empty: nothing.
	Unready func() string
}

// ServeMetrics serves what metrics describes on Config.Listen.
func (s *Server) ServeMetrics(ctx context.Context, beat func()) error {
	listener, err := net.Listen("tcp", s.Config.Listen)
	if err != nil {
		return fmt.Errorf("listen for metrics: %w (set %s_LISTEN to a free address, or to off)", err, config.Prefix)
	}
	return serve(ctx, listener, s.metrics(), beat)
}

// questions leads each question of the socket to its answer.
func (s *Server) questions() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", s.exposition())
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, s.status()) })
	mux.HandleFunc("GET /plan", func(w http.ResponseWriter, _ *http.Request) {
		p, _ := plan.Decide(s.Observer.ReadOnlySnapshot(), s.Memory(), s.Policy(time.Now()))
		writeJSON(w, p.Data())
	})
	mux.HandleFunc("GET "+HistoryPath, func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, s.History.View(time.Now())) })
	mux.HandleFunc("GET "+PagePath, s.servePage)
	mux.HandleFunc("GET "+FleetPath, s.serveFleet)
	mux.HandleFunc("GET /explain", s.serveExplain)
	mux.HandleFunc("GET "+NodesPath, s.seen(true, s.serveNodes))
	mux.HandleFunc("GET "+RolloutsPath, s.seen(true, s.serveRollouts))
	mux.HandleFunc("GET "+NamesPath, s.serveNames)
	mux.HandleFunc("GET /flight", s.serveFlight)
	mux.HandleFunc("POST "+ReloadPath, s.serveReload)
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return versioned(mux)
}

// ServeSocket serves the local API on Config.Socket, for its own user and group only.
func (s *Server) ServeSocket(ctx context.Context, beat func()) error {
	if err := os.MkdirAll(filepath.Dir(s.Config.Socket), 0o750); err != nil {
		return fmt.Errorf("make directory of socket: %w (set %s_SOCKET)", err, config.Prefix)
	}
	if err := removeDeadSocket(s.Config.Socket); err != nil {
		return err
	}
	listener, err := net.Listen("unix", s.Config.Socket)
	if err != nil {
		return fmt.Errorf("listen on socket: %w (set %s_SOCKET)", err, config.Prefix)
	}
	if err := os.Chmod(s.Config.Socket, 0o660); err != nil { // #nosec G302 -- who may connect to a socket may write it
		return errors.Join(fmt.Errorf("protect socket: %w", err), listener.Close())
	}
	return serve(ctx, listener, s.questions(), beat)
}

// serveFlight answers GET /flight with the rounds that were kept, and, asked for
// full=1, with one of this moment after them, whatever its size.
func (s *Server) serveFlight(w http.ResponseWriter, r *http.Request) {
	var now []byte
	if r.FormValue("full") == "1" {
		look, memory := s.Observer.ReadOnlySnapshot(), s.Memory()
		policy := s.Policy(look.Now)
		p, after := plan.Decide(look, memory, policy)
		var err error
		if now, err = flight.Pack(version.Current(), look, memory, policy, p.Data(), after, p.String()); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	w.Header().Set("Content-Type", "application/gzip")
	if _, err := s.Flight.WriteTo(w); err == nil {
		_, _ = w.Write(now) // the client is gone when this fails
	}
}
