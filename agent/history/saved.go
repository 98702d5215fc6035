package history

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// Saved is a History as a file keeps it. A reader of another version is refused its fields.
type Saved struct {
	Version int        `json:"version"`
	Day     savedTrack `json:"day"`
	Hour    savedTrack `json:"hour"`
	Marks   []Mark     `json:"marks,omitempty"`
}

// savedTrack is the samples of one resolution, oldest first, each list as Runs writes it.
type savedTrack struct {
	Last    int64  `json:"last"` // number of the newest sample
	Pending string `json:"pending"`
	Nodes   string `json:"nodes"`
	Ready   string `json:"ready"`
	Price   string `json:"price"` // in hundredths of a hundredth; nothing: no group had one
	// Groups are minimum, maximum, target and machines by name.
	Groups map[string][4]string `json:"groups,omitempty"`
}

// Decisions is how many decisions there were since the start or the restore: a writer of files
// compares it.
func (h *History) Decisions() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.marked
}

// Save is what Restore reads.
func (h *History) Save() Saved {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.begun()
	out := Saved{Day: h.day.save(), Hour: h.hour.save()}
	for i := range h.marks {
		out.Marks = append(out.Marks, h.marks[(h.oldest+i)%len(h.marks)])
	}
	return out
}

const priceUnits = 10_000

func (t *track) save() savedTrack {
	v := t.view(time.Unix(t.number*int64(t.step/time.Second), 0))
	out := savedTrack{Last: t.number, Pending: Runs(v.Pending), Nodes: Runs(v.Nodes), Ready: Runs(v.Ready), Groups: map[string][4]string{}}
	prices := make([]int, len(v.Price))
	for i, p := range v.Price {
		prices[i] = -1
		if p >= 0 {
			prices[i] = int(math.Round(p * priceUnits))
		}
	}
	out.Price = Runs(prices)
	for _, g := range v.Groups {
		out.Groups[g.Name] = [4]string{Runs(g.Min), Runs(g.Max), Runs(g.Target), Runs(g.Machines)}
	}
	return out
}

// Restore takes what an earlier run has saved. Samples and decisions of the future are left out: the
// clock was set back. An error leaves the History empty.
func (h *History) Restore(s Saved, now time.Time) error {
	day, hour := newTrack(Step, Steps), newTrack(FineStep, FineSteps)
	if err := errors.Join(day.restore(s.Day, now), hour.restore(s.Hour, now)); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.day, h.hour, h.marks, h.oldest = day, hour, nil, 0
	for _, m := range s.Marks[max(0, len(s.Marks)-maxMarks):] {
		if !m.At.After(now) {
			m.Group, m.Node, m.Rule = cut(m.Group, nameBytes), cut(m.Node, nameBytes), cut(m.Rule, nameBytes)
			m.Do, m.Why, m.Error = cut(m.Do, nameBytes), cut(m.Why, wordBytes), cut(m.Error, wordBytes)
			m.Instances = cut(m.Instances, idsBytes)
			h.marks = append(h.marks, m)
		}
	}
	return nil
}

func (t *track) restore(s savedTrack, now time.Time) error {
	if s.Last <= 0 || s.Last > t.numberOf(now) {
		return nil
	}
	n := len(t.total)
	var lists [4][]int
	for i, text := range []string{s.Pending, s.Nodes, s.Ready, s.Price} {
		var err error
		if lists[i], err = runs(text, n); err != nil && (i < 3 || text != "") {
			return err
		}
	}
	t.number = s.Last
	first := s.Last - int64(n) + 1
	for i := range n {
		if lists[0][i] < 0 {
			continue
		}
		is := total{number: first + int64(i), pending: int32(lists[0][i]), nodes: int32(max(lists[1][i], 0)), ready: int32(max(lists[2][i], 0))}
		if s.Price != "" {
			is.price, is.priced = float32(max(lists[3][i], 0))/priceUnits, true
		}
		t.total[t.at(is.number)] = is
	}
	for name, texts := range s.Groups {
		if err := t.restoreGroup(name, texts, first); err != nil {
			return fmt.Errorf("group %s: %w", name, err)
		}
	}
	return nil
}

func (t *track) restoreGroup(name string, texts [4]string, first int64) error {
	var lists [4][]int
	for i, text := range texts {
		var err error
		if lists[i], err = runs(text, len(t.total)); err != nil {
			return err
		}
	}
	g := t.of(cluster.GroupID(name))
	if g == nil {
		return nil // more groups than are kept
	}
	for i, machines := range lists[3] {
		if number := first + int64(i); machines >= 0 {
			at := t.at(number)
			g.seen = number
			g.min[at], g.max[at], g.target[at], g.membership[at] = small(lists[0][i]), small(lists[1][i]), small(lists[2][i]), small(machines)
		}
	}
	return nil
}

// Runs writes a list of numbers as runs of equal ones: "0x12 3 -x5" is twelve times 0, once 3 and five
// times an unknown number. The page's script and Restore read it.
func Runs(values []int) string {
	var b []byte
	for from := 0; from < len(values); {
		to := from + 1
		for to < len(values) && values[to] == values[from] {
			to++
		}
		if from > 0 {
			b = append(b, ' ')
		}
		if values[from] < 0 {
			b = append(b, '-')
		} else {
			b = strconv.AppendInt(b, int64(values[from]), 10)
		}
		if to-from > 1 {
			b = append(b, 'x')
			b = strconv.AppendInt(b, int64(to-from), 10)
		}
		from = to
	}
	return string(b)
}

// runs reads n numbers of Runs, none of which is larger than a count of machines or pods can be.
func runs(text string, n int) ([]int, error) {
	out := make([]int, 0, n)
	for part := range strings.FieldsSeq(text) {
		number, times, many := strings.Cut(part, "x")
		value, count := -1, 1
		var err error
		if number != "-" {
			if value, err = strconv.Atoi(number); err != nil || value < 0 || value > math.MaxInt32 {
				return nil, fmt.Errorf("%.20q is no number", number)
			}
		}
		if many {
			if count, err = strconv.Atoi(times); err != nil || count < 1 {
				return nil, fmt.Errorf("%.20q is no run", part)
			}
		}
		if count > n-len(out) {
			return nil, fmt.Errorf("more than %d numbers", n)
		}
		for range count {
			out = append(out, value)
		}
	}
	if len(out) != n {
		return nil, fmt.Errorf("%d numbers, not %d", len(out), n)
	}
	return out, nil
}
