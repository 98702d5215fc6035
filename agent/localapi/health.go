package localapi

import (
	"fmt"
	"html"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/autoscaler-agent/autoscaler-agent/internal/version"
)

// metrics answers on the address of the metrics: /metrics, /healthz (alive), /readyz
// (useful), and / with links to them; the page,
// where the operator asks for it.
func (s *Server) metrics() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", s.exposition())
	mux.HandleFunc("GET /health-check", s.serveHealth) // Cluster Autoscaler's name
	mux.HandleFunc("GET /healthz", s.serveHealth)
	mux.HandleFunc("GET /readyz", s.serveReady)
	mux.HandleFunc("GET /{$}", s.serveLanding)
	if s.Config.ListenPage {
		mux.HandleFunc("GET "+PagePath, s.servePageTo)
	}
	return mux
}

func (s *Server) exposition() http.Handler {
	return promhttp.HandlerFor(s.Metrics.Registry(), promhttp.HandlerOpts{})
}

// serveHealth tells whether every service makes progress. Only a restart mends what it
// tells: a supervisor may restart the agent for it.
func (s *Server) serveHealth(w http.ResponseWriter, _ *http.Request) {
	if late := s.Heartbeats.Late(time.Now()); len(late) > 0 {
		http.Error(w, fmt.Sprintf("late: %v", late), http.StatusInternalServerError)
		return
	}
	_, _ = w.Write([]byte("OK\n")) // the client is gone when this fails
}

// serveReady tells whether the agent can do its work. No restart mends what it tells.
func (s *Server) serveReady(w http.ResponseWriter, _ *http.Request) {
	why := s.Unready()
	if why == "" {
		if _, at, _ := s.Inventory.Last(); at.IsZero() {
			why = "the node groups are not read yet"
		}
	}
	if why == "" {
		why = s.Observer.Stale()
	}
	if why != "" {
		http.Error(w, "not ready: "+why, http.StatusServiceUnavailable)
		return
	}
	_, _ = w.Write([]byte("ready\n")) // the client is gone when this fails
}

// serveLanding is the page of a person who typed the address.
func (s *Server) serveLanding(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'")
	page := ""
	if s.Config.ListenPage {
		page = `<li><a href="` + PagePath + `">the page: what it did and why</a></li>`
	}
	fmt.Fprintf(w, `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>autoscaler-agent</title>
<h1>autoscaler-agent</h1><p>%s on %s</p>
<ul><li><a href="/metrics">metrics</a></li><li><a href="/healthz">healthz: does every service make progress?</a></li><li><a href="/readyz">readyz: can it do its work?</a></li>%s
</ul></html>
`, html.EscapeString(version.Current()), html.EscapeString(s.Node), page)
}
