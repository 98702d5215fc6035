package plan

import (
	"github.com/autoscaler-agent/autoscaler-agent/agent/fit"
)

// passes tells whether a class may go on a place, room aside.
func (v *solver) passes(class int, p *bin) bool {
	w := v.w
	if p.node < 0 {
		_, shape := w.template(&w.groups[p.group])
		return w.takes(class, p.group, shape)
	}
	return w.passes(class, p.node)
}

// takes tells whether a group's machines let a class on by their shape. Most classes
// ask nothing of a shape, and that is one answer for all of them.
func (w *roundState) takes(class, g int, shape *fit.NodeInfo) bool {
	c := &w.s.Classes[class]
	if len(c.NodeSelector)+len(c.Tolerations)+len(c.NotUnderstood) > 0 || c.Affinity != nil || c.NodeName != "" {
		return fit.Passes(c, shape)
	}
	known := &w.groups[g].anyone
	if *known == 0 {
		*known = -1
		if fit.Passes(c, shape) {
			*known = 1
		}
	}
	return *known > 0
}
