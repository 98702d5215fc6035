package page

import "time"

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
		w.put(`<tr><th scope="row">%s</th><td>%s</td><td><progress value="%s" max="%s" aria-label="machines replaced"></progress> %s of %s</td><td>%s</td><td>%s</td></tr>`+"\n",
			r.Group, r.State, r.Replaced, max(r.Machines, 1), r.Replaced, r.Machines, next, r.Remark)
	}
	w.endTable()
	w.more(len(list), shownGroups, "autoscaler-agent rollout status")
	w.put("</section>\n")
}
