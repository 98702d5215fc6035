package devices

import (
	"math"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// choice is what one alternative may take of a machine's devices, whoever has them.
type choice struct {
	selects []bool
	fails   []bool // its selectors cannot be evaluated there: the search ends
	all     []int  // those that a request for all devices means
}

// asked are the claims without the requests that the device plug-in meets.
func (m *machine) asked(claims []cluster.DeviceClaim) []cluster.DeviceClaim {
	if len(m.plugged) == 0 {
		return claims
	}
	out := slices.Clone(claims)
	for i := range out {
		out[i].Requests = slices.DeleteFunc(slices.Clone(out[i].Requests), func(r cluster.DeviceRequest) bool { return slices.Contains(m.plugged, r.Resource) })
	}
	return out
}

// choices are those of a demand, claim by claim, request by request.
func (m *machine) choices(claims []cluster.DeviceClaim, id int32) (out []choice) {
	for int(id) >= len(m.selected) {
		m.selected = append(m.selected, nil)
	}
	if m.selected[id] != nil {
		return m.selected[id]
	}
	for _, c := range claims {
		for _, r := range c.Requests {
			for i := range r.Alternatives {
				out = append(out, m.choice(&r.Alternatives[i]))
			}
		}
	}
	m.selected[id] = out
	return out
}

func (m *machine) choice(ask *cluster.DeviceAsk) choice {
	c := choice{selects: make([]bool, len(m.Devices.Devices)), fails: make([]bool, len(m.Devices.Devices))}
	for i := range m.Devices.Devices {
		d := &m.Devices.Devices[i]
		c.selects[i] = true
		for _, s := range ask.Selectors { // the first that does not select it is the last that is evaluated
			if _, has := slices.BinarySearch(d.Matches, s); has {
				continue
			}
			_, c.fails[i] = slices.BinarySearch(d.Fails, s)
			c.selects[i] = false
			break
		}
		if c.selects[i] {
			c.all = append(c.all, i)
		}
	}
	return c
}

type outcome int8

const (
	no      outcome = iota
	done            // every claim is allocated
	tooMany         // a claim would have too many devices: an alternative with fewer may do
	stop            // there is no use in going on
)

// search is one attempt to allocate the claims of a pod.
type search struct {
	*machine
	claims   []cluster.DeviceClaim
	choices  []choice
	first    [][]int // of each claim and request, its first choice
	taken    []bool  // before
	picks    []pick
	left     []int64 // of the counters
	match    [][]constraint
	steps    int
	limit    int
	perClaim []int
}

type pick struct {
	claim, device int
	admin         bool
}

// constraint is what is known of one on the way.
type constraint struct {
	value   string
	devices int
	values  map[string]string // of Distinct: the last of each request
}

// search returns who is taken afterwards; nil: the claims cannot be allocated.
func (a *Allocator) search(from, id int32) []bool {
	st := &a.states[from]
	m := &a.machines[st.machine]
	s := &search{machine: m, claims: m.asked(a.demands[id]), taken: st.taken, limit: searchSteps}
	if a.steps > allSteps {
		s.limit = fewSteps
	}
	s.choices = m.choices(s.claims, id)
	defer func() { a.steps += s.steps }()
	if !s.prepare() || s.one(0, 0, 0, 0, false, 0) != done {
		return nil
	}
	taken := slices.Clone(st.taken)
	for _, p := range s.picks {
		taken[p.device] = taken[p.device] || !p.admin
	}
	return taken
}

// prepare tells whether a search makes sense, as the validation of requests does upstream.
func (s *search) prepare() bool {
	s.perClaim = make([]int, len(s.claims))
	s.left = make([]int64, len(s.counters))
	for i := range s.counters {
		s.left[i] = s.counters[i].total
	}
	for d, taken := range s.taken {
		for _, u := range s.uses[d] {
			if taken {
				s.left[u.counter] -= u.amount
			}
		}
	}
	at := 0
	for i := range s.claims {
		c := &s.claims[i]
		s.match = append(s.match, make([]constraint, len(c.Constraints)))
		least, first := 0, []int(nil)
		for k := range c.Requests {
			first = append(first, at)
			fewest := math.MaxInt
			for j := range c.Requests[k].Alternatives {
				ask := &c.Requests[k].Alternatives[j]
				if ask.All && (s.Unready != "" || slices.Contains(s.choices[at].fails, true)) {
					return false
				}
				fewest = min(fewest, s.count(ask, at))
				at++
			}
			least += fewest
		}
		s.first = append(s.first, first)
		if least > mostResults {
			return false
		}
	}
	return true
}

func (s *search) count(ask *cluster.DeviceAsk, choice int) int {
	if ask.All {
		return len(s.choices[choice].all)
	}
	return ask.Count
}

// one allocates one device and all that come after it. chosen: the alternative is. from is the first device to be tried:
// within a request only combinations are.
func (s *search) one(claim, request, alternative, device int, chosen bool, from int) outcome {
	if s.steps++; s.steps > s.limit {
		return stop
	}
	if claim >= len(s.claims) {
		return done
	}
	c := &s.claims[claim]
	if request >= len(c.Requests) {
		if r := s.one(claim+1, 0, 0, 0, false, 0); r != tooMany {
			return r
		}
		return no
	}
	asks := c.Requests[request].Alternatives
	if !chosen {
		out := tooMany
		for i := range asks {
			switch r := s.one(claim, request, i, 0, true, 0); r {
			case tooMany:
			case no:
				out = no
			default:
				return r
			}
		}
		return out
	}
	ask, choice := &asks[alternative], s.first[claim][request]+alternative
	count := s.count(ask, choice)
	switch {
	case ask.All && count == 0:
		return no
	case device >= count:
		return s.one(claim, request+1, 0, 0, false, 0)
	case s.perClaim[claim]+count-device > mostResults:
		return tooMany
	case ask.All:
		d := s.choices[choice].all[device]
		if r := s.take(claim, request, ask, d); r != done {
			if r == stop { // no order of all devices is another one
				return stop
			}
			return no
		}
		r := s.one(claim, request, alternative, device+1, true, 0)
		if r != done {
			s.giveBack(claim, request, ask)
		}
		return r
	}
	return s.some(claim, request, alternative, device, from)
}

// some tries the devices of a request that counts.
func (s *search) some(claim, request, alternative, device, from int) outcome {
	ask, x := &s.claims[claim].Requests[request].Alternatives[alternative], &s.choices[s.first[claim][request]+alternative]
	for d := from; d < len(s.taken); d++ {
		if !s.enough(ask, x, d, ask.Count-device) {
			return no
		}
		if !s.usable(claim, ask, d) {
			continue
		}
		if x.fails[d] {
			return stop
		}
		if !x.selects[d] || s.take(claim, request, ask, d) != done {
			continue
		}
		r := s.one(claim, request, alternative, device+1, true, d+1)
		if r == done {
			return done
		}
		s.giveBack(claim, request, ask)
		if r != no {
			return r
		}
	}
	return no
}

// enough tells whether as many devices are selected from one on as are still asked for. Upstream finds that out by trying.
func (s *search) enough(ask *cluster.DeviceAsk, x *choice, from, count int) bool {
	for d := from; d < len(s.taken) && count > 0; d++ {
		if x.fails[d] {
			return true
		}
		if x.selects[d] && (ask.Admin || !s.taken[d]) {
			count--
		}
	}
	return count <= 0
}

// usable tells whether a device is free; for admin access, whether the claim does not have it yet.
func (s *search) usable(claim int, ask *cluster.DeviceAsk, d int) bool {
	if !ask.Admin && s.taken[d] {
		return false
	}
	return !slices.ContainsFunc(s.picks, func(p pick) bool { return p.device == d && (!ask.Admin || p.claim == claim) })
}

// take takes a device; stop: a constraint is broken by a device that is one of all.
func (s *search) take(claim, request int, ask *cluster.DeviceAsk, d int) outcome {
	if !s.usable(claim, ask, d) || !s.fits(d) {
		return no
	}
	dev := &s.Devices.Devices[d]
	kept := func(t cluster.Taint) bool {
		return !slices.ContainsFunc(ask.Tolerations, func(of cluster.Toleration) bool { return of.Tolerates(&t) })
	}
	if slices.ContainsFunc(dev.Taints, kept) || slices.ContainsFunc(dev.Ruled, kept) {
		return no
	}
	for i := range s.claims[claim].Constraints {
		if !s.add(claim, i, request, ask, dev) {
			for k := i - 1; k >= 0; k-- {
				s.remove(claim, k, request, ask)
			}
			if ask.All {
				return stop
			}
			return no
		}
	}
	for _, u := range s.uses[d] {
		s.left[u.counter] -= u.amount
	}
	s.picks = append(s.picks, pick{claim, d, ask.Admin})
	s.perClaim[claim]++
	return done
}

// giveBack takes back the last device that was taken.
func (s *search) giveBack(claim, request int, ask *cluster.DeviceAsk) {
	last := s.picks[len(s.picks)-1]
	s.picks = s.picks[:len(s.picks)-1]
	s.perClaim[claim]--
	for i := len(s.claims[claim].Constraints) - 1; i >= 0; i-- {
		s.remove(claim, i, request, ask)
	}
	for _, u := range s.uses[last.device] {
		s.left[u.counter] += u.amount
	}
}

// fits tells whether the shared counters of a device's pool allow it. A counter that is overdrawn keeps back all
// devices of its pool that count.
func (s *search) fits(d int) bool {
	if len(s.uses[d]) == 0 {
		return true
	}
	pool := s.counters[s.uses[d][0].counter].pool
	for i, c := range s.counters {
		if c.pool != pool {
			continue
		}
		left := s.left[i]
		for _, u := range s.uses[d] {
			if u.counter == i {
				left -= u.amount
			}
		}
		if left < 0 {
			return false
		}
	}
	return true
}

// concerns tells whether a constraint is about a request, or about the alternative of it.
func concerns(c *cluster.DeviceConstraint, request string, ask *cluster.DeviceAsk) bool {
	return len(c.Requests) == 0 || slices.Contains(c.Requests, request) || ask.Name != "" && slices.Contains(c.Requests, request+"/"+ask.Name)
}

// add holds a device against a constraint. Of a request with several devices, a distinct attribute is compared with that of
// the last: so does kube-scheduler 1.36.
func (s *search) add(claim, i, request int, ask *cluster.DeviceAsk, dev *cluster.Device) bool {
	c, x := &s.claims[claim].Constraints[i], &s.match[claim][i]
	name := s.claims[claim].Requests[request].Name
	if !concerns(c, name, ask) {
		return true
	}
	value, has := dev.Attributes[c.Attribute]
	switch {
	case !has:
		return false
	case c.Distinct:
		for _, v := range x.values {
			if x.devices > 0 && v == value {
				return false
			}
		}
		if x.values == nil {
			x.values = map[string]string{}
		}
		x.values[name] = value
	case x.devices == 0:
		x.value = value
	case x.value != value:
		return false
	}
	x.devices++
	return true
}

func (s *search) remove(claim, i, request int, ask *cluster.DeviceAsk) {
	c, x := &s.claims[claim].Constraints[i], &s.match[claim][i]
	if name := s.claims[claim].Requests[request].Name; concerns(c, name, ask) {
		delete(x.values, name)
		x.devices--
	}
}
