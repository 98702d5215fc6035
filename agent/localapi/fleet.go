package localapi

import (
	"net/http"
	"strconv"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/page/fleet"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan"
)

// FleetPath is where the local API tells what the map of all machines shows.
const FleetPath = "/fleet"

// machines are all machines as the map shows them. It costs a look at every machine and its pods, and no
// decision.
func (s *Server) machines(now time.Time) []fleet.Machine {
	look, policy := s.Observer.ReadOnlySnapshot(), s.Policy(now)
	last, _ := s.Last()
	return fleet.Machines(&look, plan.Machines(look, s.Memory(), policy, last), policy.RepairConditions)
}

// serveFleet answers GET /fleet?most=400 with about so many boxes at the most; 0: one for each machine.
func (s *Server) serveFleet(w http.ResponseWriter, r *http.Request) {
	most := 0
	if text := r.FormValue("most"); text != "" {
		var err error
		if most, err = strconv.Atoi(text); err != nil || most < 0 {
			http.Error(w, "most is a number of boxes, such as 400", http.StatusBadRequest)
			return
		}
	}
	writeJSON(w, fleet.Boxes(s.machines(time.Now()), most))
}
