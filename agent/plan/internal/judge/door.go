package judge

import (
	"fmt"

	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/budget"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/packing"
	"github.com/autoscaler-agent/autoscaler-agent/agent/plan/internal/round"
)

// Judge judges the purchases of one round.
type Judge struct {
	*round.State
	packer   *packing.Packer
	Budget   int    // steps that it may take
	Steps    int    // that it took; 0: nothing was judged
	cut      bool   // it ended for lack of steps
	tooLarge string // the number by which the round is too large to be judged, in words; empty: it is judged
}

// size tells how large a round is whose pods cannot be bound once within the steps of a round.
func (w *Judge) size() string {
	pods := 0
	for i := range w.Demands {
		pods += w.Demands[i].Count()
	}
	return fmt.Sprintf("%d pods of %d classes on %d nodes", pods, len(w.Demands), len(w.Nodes))
}

// New begins the judging of a round.
func New(w *packing.Packer) *Judge {
	return &Judge{State: w.State, packer: w, Budget: budget.Search.Budget()}
}
