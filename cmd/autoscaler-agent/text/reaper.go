package text

import "github.com/autoscaler-agent/autoscaler-agent/nodecleaner/reaper"

// reaper writes the nodecleaner's verdict on a Node.
func (p page) reaper(v *reaper.Verdict) {
	if v == nil {
		return
	}
	word := "the Node object stays"
	switch {
	case v.Deletes:
		word = "the Node object is deleted"
	case v.Would:
		word = "the Node object would be deleted"
	}
	p.head("nodecleaner (mode " + v.Mode + "): " + word)
	p.line("  ", "[%s] %s", v.Rule, v.Why)
	for _, text := range v.Facts {
		p.line("  ", "%s", text)
	}
	for _, b := range v.Breakers {
		p.line("  ", "open breaker %s", b)
	}
	if v.Rule == "L0" {
		return
	}
	for _, c := range v.Checks {
		sign := "yes"
		if !c.OK {
			sign = "NO "
		}
		p.line("  ", "%s  %-4s %s", sign, c.Rule, c.Why)
	}
}
