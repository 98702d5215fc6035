package fit

// pageCounter counts per topology domain. Its pages appear where something is counted, so
// that a term on hostname that three pods share costs three pages and not a number
// for each of 5,000 nodes.
type pageCounter struct{ pages []*page }

type page [1 << pageBits]int32

const pageBits = 6

func (t *pageCounter) at(domain int32) int32 {
	p := int(domain >> pageBits)
	if p >= len(t.pages) || t.pages[p] == nil {
		return 0
	}
	return t.pages[p][domain&(1<<pageBits-1)]
}

// add returns what is counted now.
func (t *pageCounter) add(domain, n int32) int32 {
	p := int(domain >> pageBits)
	for p >= len(t.pages) {
		t.pages = append(t.pages, nil)
	}
	if t.pages[p] == nil {
		t.pages[p] = new(page)
	}
	at := &t.pages[p][domain&(1<<pageBits-1)]
	*at += n
	return *at
}

// counter counts pods per domain of one topology key: the pods that a selector selects,
// or the pods that own a term.
type counter struct {
	key      int32
	eligible int32 // where pods count: index into State.eligibleNodes; -1: on every node that has the key
	minimum  int32 // index into State.minimums; -1: no constraint asks for the minimum
	sum      int64
	count    pageCounter
}

// eligibleNodes is the set of nodes that a spread constraint counts on, and the domains of
// its topology key that hold at least one of them.
type eligibleNodes struct {
	key, eligibility int32
	nodes            pageCounter // per domain
	domains          int32
	counters         []int32 // those that count on these nodes; fixed by NewState
}

// lowCounts is how far the counts of domains are kept as a histogram. A node holds
// about a hundred pods, so that hostname stays below; zones go beyond and are few.
const lowCounts = 128

// domainMinimum follows the smallest count over the domains of a set of eligible nodes that count anything. How many
// count nothing is not kept, so that a domain comes and goes without a look at each counter.
type domainMinimum struct {
	min     int32            // of counting domains, where there are any
	nonZero int32            // domains that count anything
	hist    [lowCounts]int32 // of these, domains by their count
}

// enter tells that a domain has its first eligible node.
func (s *State) enter(c *counter, domain int32) { s.move(c, 0, c.count.at(domain)) }

// leave tells that a domain has lost its last one.
func (s *State) leave(c *counter, domain int32) { s.move(c, c.count.at(domain), 0) }

// move tells that a domain's count went from one number to another.
func (s *State) move(c *counter, from, to int32) {
	l := &s.minimums[c.minimum]
	if to > 0 {
		if to < lowCounts {
			l.hist[to]++
		}
		if l.nonZero == 0 {
			l.min = to
		}
		l.min = min(l.min, to)
		l.nonZero++
	}
	if from > 0 {
		if from < lowCounts {
			l.hist[from]--
		}
		l.nonZero--
		if from == l.min && (from >= lowCounts || l.hist[from] == 0) && l.nonZero > 0 {
			l.min = s.minimumFrom(c, from, -1)
		}
	}
}

// least is the smallest count over all domains of the counter's eligible nodes; none where there is no domain.
func (s *State) least(c *counter) int32 {
	switch l := &s.minimums[c.minimum]; {
	case s.eligibleNodes[c.eligible].domains > l.nonZero:
		return 0
	case l.nonZero == 0:
		return none
	default:
		return l.min
	}
}

// minimumFrom is the smallest count that is not below from, over all domains of the
// counter's eligible nodes but one (-1: over all); none when there is no such domain.
func (s *State) minimumFrom(c *counter, from, but int32) int32 {
	l := &s.minimums[c.minimum]
	own := int32(-1)
	if but >= 0 {
		own = c.count.at(but)
	}
	g := &s.eligibleNodes[c.eligible]
	for n := from; n < lowCounts; n++ {
		left := l.hist[n]
		if n == 0 {
			left = g.domains - l.nonZero
		}
		if n == own {
			left--
		}
		if left > 0 {
			return n
		}
	}
	smallest := int32(none)
	for p := range g.nodes.pages {
		if g.nodes.pages[p] == nil {
			continue
		}
		for i, nodes := range g.nodes.pages[p] {
			if domain := int32(p<<pageBits + i); nodes > 0 && domain != but {
				if n := c.count.at(domain); n >= from {
					smallest = min(smallest, n)
				}
			}
		}
	}
	return smallest
}

// none is the minimum over no domain.
const none = 1<<31 - 1
