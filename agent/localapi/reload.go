package localapi

import (
	"net/http"
	"strings"
)

// ReloadPath is where the agent is asked to take changed settings (POST).
const ReloadPath = "/reload"

// Reloaded is the answer: what is in force now, and what is not.
type Reloaded struct {
	Done   []string `json:"done,omitempty"`
	Faults []string `json:"faults,omitempty"`
}

// serveReload answers POST /reload.
func (s *Server) serveReload(w http.ResponseWriter, _ *http.Request) {
	if s.Reload == nil {
		http.Error(w, "this agent takes no settings while it runs", http.StatusNotImplemented)
		return
	}
	done, err := s.Reload()
	out := Reloaded{Done: done}
	if err != nil {
		out.Faults = strings.Split(err.Error(), "\n") // one a line
	}
	writeJSON(w, out)
}
