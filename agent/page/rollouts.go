package page

import (
	"fmt"
	"time"
)

// Rollout is how one node group stands whose nodes are replaced.
type Rollout struct {
	Group, State       string
	Machines, Replaced int
	Remark             string    // why it does not go on, and how it does
	Next               time.Time // when a disruption budget lets nodes go again; zero: one does now
}

// rollouts lists the groups whose nodes are replaced; without one there is no such part.
func (w *document) rollouts(list []Rollout) {
	if len(list) == 0 {
		return
	}
	w.section("rollouts", "Machines that are replaced")
	w.table("Rollouts of node groups", "Group", "State", "Replaced", "Next window", "What it waits for")
	for _, r := range clip(list, shownGroups) {
		next := "-"
		if !r.Next.IsZero() {
			next = r.Next.UTC().Format("2006-01-02 15:04")
		}
		w.row("", heading(r.Group), r.State, bar(r.Replaced, r.Machines), next, r.Remark)
		w.endRow()
	}
	w.endTable()
	w.more(len(list), shownGroups, "autoscaler-agent rollout status")
	w.put("</section>\n")
}

// bar shows how many machines are replaced.
func bar(replaced, machines int) markup {
	return markup(fmt.Sprintf(`<progress value="%d" max="%d" aria-label="machines replaced"></progress> %d of %d`, replaced, max(machines, 1), replaced, machines))
}
