package localapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/internal/version"
)

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
		return fmt.Errorf("listen on socket: %s is there and is no socket (set %s_SOCKET)", path, config.Prefix)
	}
	if c, err := net.DialTimeout("unix", path, time.Second); err == nil {
		return errors.Join(fmt.Errorf("listen on socket: another agent answers on %s (stop it, or set %s_SOCKET to another path)", path, config.Prefix), c.Close())
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

// VersionHeader has the agent's version in each answer: a command of another version may ask what
// the agent does not know.
const VersionHeader = "Autoscaler-Agent-Version"

// versioned adds VersionHeader to each answer.
func versioned(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(VersionHeader, version.Current())
		h.ServeHTTP(w, r)
	})
}

// seen lets a question through once the agent has read the cluster, and the node groups where
// the question is about them. Before that an agent would say that there is no pod, no node and no
// group of any name.
func (s *Server) seen(ofGroups bool, answer http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		why := ""
		if _, at, err := s.Inventory.Last(); at.IsZero() && ofGroups {
			why = "the agent has not read the node groups yet"
			if err != nil {
				why += ": " + err.Error()
			}
		}
		if s.Unready() != "" {
			why = "the agent has not read the cluster yet"
			if stale := s.Observer.Stale(); stale != "" {
				why += ": " + stale
			}
		}
		if why != "" {
			http.Error(w, why, http.StatusServiceUnavailable)
			return
		}
		answer(w, r)
	}
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	_ = e.Encode(v) // the client is gone when this fails
}
