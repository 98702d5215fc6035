package oracle

import (
	"fmt"
)

// Difference is one pod on one node on which fit and kube-scheduler differ.
type Difference struct {
	Pod, Node int // indexes into Waiting and Nodes
	Real      Judgement
	Ours      Answer
}

// String tells both verdicts.
func (d Difference) String() string {
	real, ours := "fits", "fits"
	if !d.Real.Fits {
		real = d.Real.Filter + ": " + d.Real.Reason
	}
	if !d.Ours.Fits {
		ours = d.Ours.Rule + " " + plugins[d.Ours.Rule] + ": " + d.Ours.Words
	}
	return fmt.Sprintf("kube-scheduler: %s; fit: %s", real, ours)
}

// Compare lists the differences of a world. What fit holds by name is no difference:
// it is not judged; where a filter of kube-scheduler fails with an error, there is no
// verdict to compare.
func Compare(w *World, real *Ruling, ours [][]Answer) []Difference {
	var out []Difference
	for p := range w.Waiting {
		for n := range w.Nodes {
			r, o := real.Cells[p][n], ours[p][n]
			if !o.Held && !r.Failed() && r.Fits != o.Fits {
				out = append(out, Difference{Pod: p, Node: n, Real: r, Ours: o})
			}
		}
	}
	return out
}
