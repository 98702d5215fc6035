package page

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/history"
)

// openPictures is how many groups have their picture shown at once; the others are one
// click away.
const openPictures = 12

// height is that of a picture in its own units; its width is one unit a sample.
const height = 100

// pictures draws the last 24 hours. Each picture is decoration for a caption that says the
// same in words.
func (w *document) pictures(d Data) {
	v := &d.History
	w.section("last-day", "The last 24 hours")
	w.put(`<div class="pictures">`)
	w.picture(v, picture{title: "Pending pods", unit: "pod", line: v.Pending, marks: func(*history.Mark) bool { return true }})
	w.picture(v, picture{title: "Nodes ready", unit: "node", line: v.Ready, behind: v.Nodes})
	if len(v.Price) > 0 {
		cents := make([]int, len(v.Price))
		for i, p := range v.Price {
			cents[i] = -1
			if p >= 0 {
				cents[i] = int(p*100 + 0.5)
			}
		}
		w.picture(v, picture{title: "Price an hour", line: cents, cents: true})
	}
	w.put("</div>\n<h3>Machines by group, between least and most</h3><div class=\"pictures\">\n")
	groups := slices.Clone(v.Groups)
	slices.SortStableFunc(groups, func(a, b history.Group) int {
		la, ha, _ := span(a.Machines)
		lb, hb, _ := span(b.Machines)
		return cmp.Or(cmp.Compare(hb-lb, ha-la), cmp.Compare(hb, ha), cmp.Compare(a.Name, b.Name))
	})
	for i := range groups {
		if i == openPictures {
			w.put(`</div><details><summary>%s</summary><div class="pictures">`, plural(len(groups)-i, "more group"))
		}
		g := &groups[i]
		w.picture(v, picture{title: g.Name, unit: "machine", line: g.Machines, behind: g.Target, low: g.Min, high: g.Max,
			marks: func(m *history.Mark) bool { return m.Group == g.Name }})
	}
	w.put(`</div>`)
	if len(groups) > openPictures {
		w.put(`</details>`)
	}
	if len(groups) == 0 {
		w.put(`<p>No sample yet: one is taken every five minutes.</p>`)
	}
	w.put("</section>\n")
}

// picture is one chart over time.
type picture struct {
	title, unit string
	line        []int // -1: not known
	behind      []int // a second line, thinner; nil: none
	low, high   []int // the band of what is allowed; nil: none
	cents       bool  // line is in hundredths
	marks       func(*history.Mark) bool
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

func (p *picture) words(n int) string {
	switch {
	case p.cents:
		return fmt.Sprintf("%d.%02d", n/100, n%100)
	case p.unit != "":
		return plural(n, p.unit)
	}
	return strconv.Itoa(n)
}

// caption says in words what the picture shows.
func (p *picture) caption() string {
	low, high, known := span(p.line)
	if !known {
		return "no sample yet"
	}
	now := p.line[len(p.line)-1]
	for i := len(p.line) - 1; now < 0; i-- {
		now = p.line[i]
	}
	out := p.words(now) + " now"
	if low != high {
		out += fmt.Sprintf(", between %s and %s", p.number(low), p.number(high))
	}
	if p.low != nil {
		if i := last(p.low); i >= 0 {
			out += fmt.Sprintf("; allowed %d to %d", p.low[i], p.high[i])
		}
	}
	return out
}

func (p *picture) number(n int) string {
	if p.cents {
		return p.words(n)
	}
	return strconv.Itoa(n)
}

// last is the index of the newest known value; -1: none.
func last(values []int) int {
	for i := len(values) - 1; i >= 0; i-- {
		if values[i] >= 0 {
			return i
		}
	}
	return -1
}

func (w *document) picture(v *history.View, p picture) {
	_, top, _ := span(p.line)
	_, other, _ := span(p.behind)
	_, floor, _ := span(p.low)
	top = max(top, other, floor, 1)
	if _, most, _ := span(p.high); most <= top+top/2+1 {
		top = max(top, most) // the bound is near: it is in the picture
	}
	w.put(`<figure><figcaption><strong>%s</strong> %s</figcaption><div class="plot" aria-hidden="true"><span class="top">%s</span><span class="zero">0</span><svg viewBox="0 0 %s %s" preserveAspectRatio="none">`,
		p.title, p.caption(), p.number(top), len(p.line), height)
	if p.low != nil {
		w.band(p.low, p.high, top)
	}
	w.put(`<path class="grid" d="M0 0H%s M0 50H%s M0 100H%s"/>`, len(p.line), len(p.line), len(p.line))
	if p.behind != nil {
		w.put(`<path class="behind" d="%s"/>`, markup(steps(p.behind, top)))
	}
	w.put(`<path class="line" d="%s"/>`, markup(steps(p.line, top)))
	w.hours(v, &p)
	if p.marks != nil {
		w.marks(v, &p)
	}
	w.put(`</svg></div><div class="hours" aria-hidden="true">`)
	for i := range 5 {
		w.put(`<span>%s</span>`, v.Start.Add(time.Duration(i*len(p.line)/4)*v.Step).Format("15:04"))
	}
	w.put("</div></figure>\n")
}

// y is the height of a value in the picture.
func y(value, top int) int { return height - min(value*height/top, height) }

// steps is the path of a line that changes at samples only.
func steps(values []int, top int) string {
	var b []byte
	was := -1
	for x, v := range values {
		switch at := y(max(v, 0), top); {
		case v < 0 && was >= 0:
			b = append(b, 'H')
			b = strconv.AppendInt(b, int64(x), 10)
			was = -1
		case v < 0:
		case was < 0:
			b = fmt.Appendf(b, "M%d %d", x, at)
			was = at
		case at != was:
			b = fmt.Appendf(b, "H%dV%d", x, at)
			was = at
		}
	}
	if was >= 0 {
		b = append(b, 'H')
		b = strconv.AppendInt(b, int64(len(values)), 10)
	}
	return string(b)
}

// band fills what lies between two bounds.
func (w *document) band(low, high []int, top int) {
	var b []byte
	for from := 0; from < len(low); {
		to := from + 1
		for to < len(low) && low[to] == low[from] && high[to] == high[from] {
			to++
		}
		if low[from] >= 0 {
			a, z := y(low[from], top), y(high[from], top)
			b = fmt.Appendf(b, "M%d %dH%dV%dH%dZ", from, z, to, a, from)
		}
		from = to
	}
	w.put(`<path class="band" d="%s"/>`, markup(b))
}

// hours lets a pointer read the value of each hour.
func (w *document) hours(v *history.View, p *picture) {
	each := max(1, int(time.Hour/max(v.Step, time.Second)))
	for x := 0; x < len(p.line); x += each {
		end := min(x+each, len(p.line))
		low, high, known := span(p.line[x:end])
		if !known {
			continue
		}
		text := p.words(high)
		if low != high {
			text = p.number(low) + " to " + text
		}
		w.put(`<path class="hour" d="M%s 0h%sv100h-%sz"><title>%s: %s</title></path>`, x, end-x, end-x, v.Start.Add(time.Duration(x)*v.Step).Format("15:04"), text)
	}
}

// marks draws the decisions; each leads to its row. The keyboard goes through the rows.
func (w *document) marks(v *history.View, p *picture) {
	for i := range v.Marks {
		m := &v.Marks[i]
		x := int(m.At.Sub(v.Start) / max(v.Step, 1))
		if !p.marks(m) || x < 0 || x >= len(p.line) {
			continue
		}
		class := "mark " + m.Do // of this package's own few words
		if m.Error != "" {
			class = "mark failed"
		}
		w.put(`<a href="#d%s" tabindex="-1"><path class="%s" d="M%s 0V100"/><title>%s</title></a>`, i, class, x,
			join("; ", m.At.Format("15:04")+" "+what(m), join(" ", m.Rule, m.Why), m.Error))
	}
}
