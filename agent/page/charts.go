package page

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/history"
)

// openCharts is how many groups have their chart shown at once; the others are one click away.
const openCharts = 12

// series is a value over time: the day's samples, the last hour's, and this moment's.
type series struct {
	day, hour []int // -1: not known
	now       int   // -1: not known
}

// chart is one chart. uPlot draws it from the numbers in its attributes; its caption says the same in words.
type chart struct {
	title, unit string
	line        series
	behind      series // a second line, thinner; empty: none
	low, high   series // the band of what is allowed; empty: none
	scale       int    // what 1 is, where the values are in smaller units; 0: 1
	marks       func(*history.Mark) bool
}

// charts draws the last hour, six hours or day, as far as there is history.
func (w *document) charts(d Data) {
	v := &d.History
	hour := v.Hour
	if hour == nil {
		hour = &history.View{Start: d.At, Step: history.FineStep}
	}
	now := func(n int) int {
		if d.NoCluster {
			return -1
		}
		return n
	}
	w.section("time", "What happened")
	w.put(`<div id="time-charts" data-at="%s" data-day-start="%s" data-day-step="%s" data-day-steps="%s" data-hour-start="%s" data-hour-step="%s" data-hour-steps="%s">`,
		seconds(d.At.Unix()), seconds(v.Start.Unix()), seconds(int64(v.Step.Seconds())), len(v.Pending), seconds(hour.Start.Unix()), seconds(int64(hour.Step.Seconds())), len(hour.Pending))
	w.put(`<div class="spans" role="group" aria-label="Time that the charts show" hidden><button type="button" data-hours="1" aria-pressed="false">1 hour</button><button type="button" data-hours="6" aria-pressed="false">6 hours</button><button type="button" data-hours="24" aria-pressed="true">24 hours</button></div>
<p class="marks small">Decisions stand on the axis: <b class="grow">▲</b> a group was grown, <b class="end">▼</b> machines were ended, <b class="bad">✕</b> failed. A click leads to the decision.</p>
<noscript><p>The charts are drawn by the page's own script, which does not run here. The words beside them say the same.</p></noscript><div class="pictures">`)
	w.chart(v, chart{title: "Pending pods", unit: "pod", line: series{v.Pending, hour.Pending, now(d.Pending)}, marks: func(*history.Mark) bool { return true }})
	w.chart(v, chart{title: "Nodes ready", unit: "node", line: series{v.Ready, hour.Ready, now(d.Ready)}, behind: series{v.Nodes, hour.Nodes, now(d.Nodes)}})
	if len(v.Price) > 0 {
		line := series{hundredths(v.Price), hundredths(hour.Price), -1}
		w.chart(v, chart{title: "Price an hour", line: line, scale: 100})
	}
	w.put("</div>\n<h3>Machines by group, between least and most</h3><div class=\"pictures\">\n")
	w.chartsOfGroups(d, hour)
	w.put("</div></section>\n")
}

func seconds(n int64) string { return strconv.FormatInt(n, 10) }

func hundredths(prices []float64) []int {
	out := make([]int, len(prices))
	for i, p := range prices {
		out[i] = -1
		if p >= 0 {
			out[i] = int(p*100 + 0.5)
		}
	}
	return out
}

// chartsOfGroups draws the groups, those that changed most first.
func (w *document) chartsOfGroups(d Data, hour *history.View) {
	groups := slices.Clone(d.History.Groups)
	slices.SortStableFunc(groups, func(a, b history.Group) int {
		la, ha, _ := span(a.Machines)
		lb, hb, _ := span(b.Machines)
		return cmp.Or(cmp.Compare(hb-lb, ha-la), cmp.Compare(hb, ha), cmp.Compare(a.Name, b.Name))
	})
	fine, now := map[string]*history.Group{}, map[string]*Group{}
	for i := range hour.Groups {
		fine[hour.Groups[i].Name] = &hour.Groups[i]
	}
	for i := range d.Groups {
		now[d.Groups[i].Name] = &d.Groups[i]
	}
	for i := range groups {
		if i == openCharts {
			w.put(`</div><details><summary>%s</summary><div class="pictures">`, cluster.Plural(len(groups)-i, "more group"))
		}
		g, f, n := &groups[i], fine[groups[i].Name], now[groups[i].Name]
		if f == nil {
			f = &history.Group{}
		}
		if n == nil {
			n = &Group{Min: -1, Max: -1, Target: -1, Machines: -1}
		}
		w.chart(&d.History, chart{title: g.Name, unit: "machine", line: series{g.Machines, f.Machines, n.Machines}, behind: series{g.Target, f.Target, n.Target},
			low: series{g.Min, f.Min, n.Min}, high: series{g.Max, f.Max, n.Max}, marks: func(m *history.Mark) bool { return m.Group == g.Name }})
	}
	w.put(`</div>`)
	if len(groups) > openCharts {
		w.put(`</details>`)
	}
	if len(groups) == 0 {
		w.put(`<p>No sample yet: one is taken every minute.</p>`)
	}
}

// span is the least and the most of what is known.
func span(values []int) (low, high int, known bool) {
	for _, v := range values {
		if v >= 0 {
			if !known || v < low {
				low = v
			}
			high, known = max(high, v), true
		}
	}
	return low, high, known
}

func (c *chart) words(n int) string {
	switch {
	case c.scale == 100:
		return fmt.Sprintf("%d.%02d", n/100, n%100)
	case c.unit != "":
		return cluster.Plural(n, c.unit)
	}
	return strconv.Itoa(n)
}

// caption says in words what the chart shows: now is this moment, and not a sample.
func (c *chart) caption() string {
	now := latest(c.line)
	low, high, known := span(append(slices.Clone(c.line.day), c.line.hour...))
	if now < 0 && !known {
		return "no sample yet"
	}
	out := c.words(now) + " now"
	if now < 0 {
		out = "not there now"
	}
	if known {
		low, high = min(low, max(now, 0)), max(high, now)
		if low != high {
			out += fmt.Sprintf(", between %s and %s in 24 hours", c.number(low), c.number(high))
		}
	}
	if least, most := latest(c.low), latest(c.high); c.low.day != nil && least >= 0 {
		out += fmt.Sprintf("; allowed %d to %d", least, most)
	}
	return out
}

// latest is the value of this moment, or else the newest sample that is known; -1: none.
func latest(s series) int {
	for _, list := range [][]int{{s.now}, s.hour, s.day} {
		for _, v := range slices.Backward(list) {
			if v >= 0 {
				return v
			}
		}
	}
	return -1
}

func (c *chart) number(n int) string {
	if c.scale > 1 {
		return c.words(n)
	}
	return strconv.Itoa(n)
}

func (w *document) chart(v *history.View, c chart) {
	w.put(`<figure><figcaption><strong>%s</strong> %s <span></span></figcaption><div class="plot" aria-hidden="true"`, c.title, c.caption())
	w.data("line", c.line)
	w.data("behind", c.behind)
	_, top, _ := span(append(slices.Clone(c.line.day), c.line.hour...))
	if _, most, _ := span(c.high.day); most <= top+top/2+1 {
		w.data("low", c.low) // the bound is near: the band is in the picture
		w.data("high", c.high)
	}
	if c.scale > 0 {
		w.put(` data-unit="%s"`, c.scale)
	}
	if c.marks != nil {
		w.put(` data-marks="%s"`, marksOf(v, c.marks))
	}
	w.put("></div></figure>\n")
}

// data writes a series into attributes, as history.Runs does.
func (w *document) data(name string, s series) {
	if s.day == nil {
		return
	}
	w.put(` data-%s-day="%s" data-%s-hour="%s"`, name, history.Runs(s.day), name, history.Runs(s.hour))
	if s.now >= 0 {
		w.put(` data-%s-now="%s"`, name, s.now)
	}
}

// marksOf are the decisions that a chart shows: time, row and kind of each.
func marksOf(v *history.View, of func(*history.Mark) bool) string {
	var out []string
	for i := range v.Marks {
		m := &v.Marks[i]
		if !of(m) {
			continue
		}
		kind := "end"
		switch {
		case m.Error != "":
			kind = "failed"
		case m.Do == "grow":
			kind = "grow"
		}
		out = append(out, fmt.Sprintf("%d:%d:%s", m.At.Unix(), i, kind))
	}
	return strings.Join(out, " ")
}
