package fleet

// Box stands for one machine, or for several of one group, zone and state.
type Box struct {
	Machine     // the first one; its shares are the averages of all
	Count   int `json:"count"`
}

// Boxes are the machines in their order, as at most so many boxes and one more for each group, zone
// and state. Up to most machines have a box of their own.
func Boxes(list []Machine, most int) []Box {
	each := 1
	if most > 0 && len(list) > most {
		each = (len(list) + most - 1) / most
	}
	out := make([]Box, 0, min(len(list), most+1))
	for from := 0; from < len(list); {
		to := from + 1
		for to < len(list) && to-from < each && sameKind(&list[from], &list[to]) {
			to++
		}
		b := Box{Machine: list[from], Count: to - from}
		if b.Count > 1 {
			b.average(list[from:to])
		}
		out = append(out, b)
		from = to
	}
	return out
}

func sameKind(a, b *Machine) bool {
	return a.Group == b.Group && a.Zone == b.Zone && a.State == b.State
}

// average makes the shares of a box those of all its machines.
func (b *Box) average(of []Machine) {
	mean := func(share func(*Machine) int) int {
		sum, known := 0, 0
		for i := range of {
			if n := share(&of[i]); n != Unknown {
				sum, known = sum+n, known+1
			}
		}
		if known == 0 {
			return Unknown
		}
		return sum / known
	}
	b.CPU, b.Memory, b.GPU = mean(func(m *Machine) int { return m.CPU }), mean(func(m *Machine) int { return m.Memory }), mean(func(m *Machine) int { return m.GPU })
	b.Pods, b.Daemons = 0, 0
	for i := range of {
		b.Pods, b.Daemons = b.Pods+of[i].Pods, b.Daemons+of[i].Daemons
	}
}

// Count is how many machines of each state a list of boxes stands for.
func Count(boxes []Box) map[string]int {
	out := map[string]int{}
	for i := range boxes {
		out[boxes[i].State] += boxes[i].Count
	}
	return out
}
