package page

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/autoscaler-agent/autoscaler-agent/agent/history"
	"github.com/autoscaler-agent/autoscaler-agent/agent/page/fleet"
	"github.com/autoscaler-agent/autoscaler-agent/agent/page/trouble"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// full is a page on which every text is name.
func full(name string) Data {
	d := Data{At: noon, Since: noon.Add(-50 * time.Hour), Troubles: make([]trouble.Trouble, 5), Machines: []fleet.Machine{{Group: "", Created: noon, Price: 1}, {State: fleet.Draining, CPU: 120, Memory: -1, GPU: 30, Pods: 9, Daemons: 1, FirstPods: []string{"", ""}, Drift: []string{""}}}, Nodes: 3, Ready: 2, Pods: 9, Pending: 4, Requests: 1,
		Groups: []Group{{Max: 5}}, Rollouts: []Rollout{{Machines: 20, Replaced: 3, Next: noon}}, Waiting: []Waiting{{Count: 3, Groups: []Refusal{{}}}}, Leaving: []Leaving{{Since: noon.Add(-time.Minute)}}, Verdicts: []Verdict{{Count: 2}}, Judged: []Judged{{At: noon}}, Reaped: []Reaped{{At: noon}}}
	d.History = history.View{Start: noon.Add(-24 * time.Hour), Step: history.Step, Groups: []history.Group{{}},
		Marks: []history.Mark{{At: noon.Add(-time.Hour), Do: "grow", From: 1, To: 2}, {At: noon.Add(-2 * time.Hour), Do: "terminate", Count: 3}}}
	fill(reflect.ValueOf(&d).Elem(), name)
	for i := range d.History.Marks {
		d.History.Marks[i].Do = "grow" // a word of the agent's own
	}
	d.History.Hour = &history.View{Start: noon.Add(-time.Hour), Step: history.FineStep, Pending: make([]int, history.FineSteps), Groups: []history.Group{{Name: name}}}
	for i := range history.Steps {
		d.History.Pending, d.History.Nodes, d.History.Ready = append(d.History.Pending, i%5), append(d.History.Nodes, 3), append(d.History.Ready, i%3)
		d.History.Price = append(d.History.Price, float64(i)/100)
		g := &d.History.Groups[0]
		g.Min, g.Max, g.Target, g.Machines = append(g.Min, 1), append(g.Max, 9), append(g.Target, i%9), append(g.Machines, i%8)
	}
	return d
}

// fill sets every string in v.
func fill(v reflect.Value, to string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(to)
	case reflect.Struct:
		if v.Type() != reflect.TypeFor[time.Time]() {
			for i := range v.NumField() {
				fill(v.Field(i), to)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			fill(v.Index(i), to)
		}
	}
}

// elements are those that the page is made of.
var elements = strings.Fields("html head meta title style body a header h1 p strong ul li dl div dt dd nav main section h2 h3 figure figcaption span time details summary code table thead tbody tr th td script noscript button ol i b small progress")

// attributes are those that the page uses, none of which runs or fetches anything.
var attributes = strings.Fields("lang charset name content http-equiv class href id datetime aria-label aria-labelledby aria-hidden role scope type hidden aria-pressed value max " +
	"data-l data-at data-day-start data-day-step data-day-steps data-hour-start data-hour-step data-hour-steps data-hours data-marks data-unit " +
	"data-line-day data-line-hour data-line-now data-behind-day data-behind-hour data-behind-now data-low-day data-low-hour data-low-now data-high-day data-high-hour data-high-now")

// faults are what is wrong with a page whatever it shows.
func faults(data []byte) (out []string) {
	z := html.NewTokenizer(bytes.NewReader(data))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return out
		case html.StartTagToken, html.SelfClosingTagToken, html.EndTagToken:
			tag := z.Token()
			if !slices.Contains(elements, tag.Data) {
				out = append(out, "element "+tag.Data)
			}
			for _, a := range tag.Attr {
				if !slices.Contains(attributes, a.Key) {
					out = append(out, "attribute "+a.Key)
				}
				if a.Key == "href" && !strings.HasPrefix(a.Val, "#") {
					out = append(out, "a link to "+a.Val)
				}
			}
		case html.CommentToken:
			out = append(out, "a comment")
		}
	}
}

// hostile are names that end a text, an attribute or a style sheet in a careless page.
var hostile = []string{`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `' onload='alert(1)`, `</style><script>`, `</title><svg onload=x>`, "]]>--><!--", "&lt;script&gt;", "%s%d%!v(MISSING)",
	"javascript:alert(1)", "a\x00b", "\xff\xfe<b>", "\u202ebidi", "line\nbreak\u2028", "`${x}`", strings.Repeat("long", 2000)}

// TestHostileNames: whatever a pod, a node, a group, a cloud or a rule is called, the page
// has its own elements and attributes only, and shows the name as text.
func TestHostileNames(t *testing.T) {
	calm := strings.Count(string(Render(full("calm"))), "<")
	for _, name := range hostile {
		data := Render(full(name))
		if f := faults(data); len(f) > 0 {
			t.Errorf("%.40q: %v", name, f)
		}
		if n := strings.Count(string(data), "<"); n != calm {
			t.Errorf("%.40q makes %d tags of %d", name, n, calm)
		}
		root, err := html.Parse(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		if want := html.UnescapeString(escape(name)); !strings.Contains(words(root), want) {
			t.Errorf("%.40q is not to be read", name)
		}
	}
}

func words(n *html.Node) string {
	if n.Type == html.TextNode {
		return n.Data
	}
	var b strings.Builder
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		b.WriteString(words(c))
	}
	return b.String()
}

// FuzzRender draws pages of any names.
func FuzzRender(f *testing.F) {
	for _, name := range hostile {
		f.Add(name)
	}
	calm := strings.Count(string(Render(full("calm"))), "<")
	f.Fuzz(func(t *testing.T, name string) {
		if name == "" {
			return // an empty text is left out
		}
		data := Render(full(name))
		if wrong := faults(data); len(wrong) > 0 || strings.Count(string(data), "<") != calm {
			t.Errorf("%q: %v", name, wrong)
		}
	})
}

// TestNothingFromOutside: the policy forbids all but the page's own style sheet and script, by the hashes of what
// stands in the document, and beside uPlot's own heading the page names no host.
func TestNothingFromOutside(t *testing.T) {
	data := string(Render(full("calm")))
	if !strings.Contains(data, escape(Policy())) {
		t.Errorf("policy %q", Policy())
	}
	parts := regexp.MustCompile(`(?s)<(style|script)>(.*?)</(?:style|script)>`).FindAllStringSubmatch(data, -1)
	if len(parts) != 2 || strings.Count(data, "<script") != 1 {
		t.Fatalf("%d style sheets and scripts", len(parts))
	}
	want := "default-src 'none'"
	for _, p := range parts {
		want += "; " + p[1] + "-src " + hash(p[2])
	}
	if want += "; base-uri 'none'; form-action 'none'"; Policy() != want {
		t.Errorf("policy %q, want %q", Policy(), want)
	}
	for _, bad := range []string{"http:", "https:", "url(", "@import", "javascript:", "unsafe-inline", " style=", "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "fetch(", "XMLHttpRequest", "import(", "Function("} {
		if strings.Contains(strings.Replace(data, "/*! https://github.com/leeoniya/uPlot", "", 1), bad) {
			t.Errorf("the page has %q", bad)
		}
	}
}

// TestChartLibrary: the script is the release of uPlot that docs/dependencies.md names, byte by byte.
func TestChartLibrary(t *testing.T) {
	sum := sha256.Sum256([]byte(chartScript))
	docs, err := os.ReadFile("../../docs/dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	if want := hex.EncodeToString(sum[:]); !strings.HasPrefix(chartScript, "/*! https://github.com/leeoniya/uPlot (v1.6.32) */") || !strings.Contains(string(docs), want) {
		t.Errorf("docs/dependencies.md does not name uPlot 1.6.32 with SHA-256 %s", want)
	}
}

// TestCharts: a caption says in words what the chart shows, now is this moment and no sample, and a mark leads to its row.
func TestCharts(t *testing.T) {
	for want, c := range map[string]chart{
		"4 machines now, between 2 and 8 in 24 hours; allowed 1 to 20": {unit: "machine", line: series{[]int{2, 8, 5, -1}, []int{5, 5}, 4}, low: series{[]int{1, 1, 1, -1}, nil, -1}, high: series{[]int{9, 9, 20, -1}, nil, -1}},
		"9 pods now, between 0 and 9 in 24 hours":                      {unit: "pod", line: series{[]int{0, 7}, []int{7}, 9}},
		"3 pods now":    {unit: "pod", line: series{now: 3}},
		"1.05 now":      {scale: 100, line: series{[]int{105}, nil, -1}},
		"no sample yet": {line: series{[]int{-1, -1}, nil, -1}},
		"0 pods now, between 0 and 7 in 24 hours": {unit: "pod", line: series{[]int{7, 7}, []int{7}, 0}},
	} {
		if got := c.caption(); got != want {
			t.Errorf("caption %q, want %q", got, want)
		}
	}
	d := full("web")
	d.Pending = 2
	data := string(Render(d))
	for i := range d.History.Marks {
		if n := strings.Count(data, fmt.Sprintf(":%d:failed", i)); n != 2 || strings.Count(data, fmt.Sprintf(`id="d%d"`, i)) != 1 {
			t.Errorf("mark %d stands in %d charts and does not lead to one row", i, n)
		}
	}
	if !strings.Contains(data, `data-line-now="2"`) || !strings.Contains(data, `data-line-hour="0x60"`) {
		t.Error("the numbers of the charts are not those of the history")
	}
	if len(Render(Data{At: noon})) < 1000 {
		t.Error("a page of nothing is empty")
	}
}

// TestFirstWords: the first words are the state: a standby that stands by is well, pods that wait are told, and each
// trouble has its cause and its remedy.
func TestFirstWords(t *testing.T) {
	sick := []trouble.Trouble{{What: "The facts are old", Cause: "the cloud is away", Remedy: "look at it", Command: "agent check", Rule: "U13"}}
	for want, d := range map[string]Data{
		`<p class="state good"><strong>Acting.</strong> Nothing is wrong.`:                         {Acting: true},
		`<p class="state good"><strong>Acting.</strong> Nothing is wrong; 3 pods are pending`:      {Acting: true, Pending: 3},
		`<p class="state"><strong>Standing by</strong>, as it should: standing by: leader-2 holds`: {StandsBy: true, Why: "standing by: leader-2 holds"},
		`<p class="state"><strong>Not acting yet:</strong> reading`:                                {Why: "reading"},
		`<p class="state bad"><strong>Not acting.`:                                                 {Troubles: sick},
		`<p class="state bad"><strong>Acting, with trouble:`:                                       {Acting: true, Pending: 3, Troubles: sick},
		`<strong>The facts are old</strong> <code>U13</code><p class="cause">the cloud is away</p><p class="remedy"><b>Do:</b> look at it</p><span class="small">More: <code>agent check</code>`: {StandsBy: true, Troubles: sick},
	} {
		if !strings.Contains(string(Render(d)), want) {
			t.Errorf("no %q", want)
		}
	}
	if n := strings.Count(string(Render(Data{Troubles: make([]trouble.Trouble, 7)})), `<summary class="bad">4 more troubles`); n != 1 {
		t.Errorf("%d times that there are more", n)
	}
}

// machines are so many in a few groups and zones.
func machines(n int) []fleet.Machine {
	out := make([]fleet.Machine, n)
	for i := range out {
		out[i] = fleet.Machine{Name: fmt.Sprintf("ip-10-0-%d-%d.eu-west-1.compute.internal", i/250, i%250), Group: fmt.Sprintf("workers-%02d", i*20/n), Zone: fmt.Sprintf("eu-west-1%c", 'a'+i*60/n%3), Type: "m5.2xlarge",
			State: fleet.States[i%7].Name, CPU: i % 101, Memory: i % 97, GPU: i%3 - 1, Pods: 20, Daemons: 4, FirstPods: []string{"shop/web-7d4b9c6f5-abcde", "shop/cart-7d4b9c6f5-abcde", "shop/pay-7d4b9c6f5-abcde"},
			Price: 0.096, Created: noon.Add(-3 * time.Hour), Rule: "D4", Why: "requests are 63% of the larger of cpu and memory, above the threshold of 50%"}
	}
	slices.SortStableFunc(out, func(a, b fleet.Machine) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.State, b.State))
	})
	return out
}

// TestMapIsBounded: each of 1,000 machines has its box, ten times as many make no larger page, and every one is counted.
func TestMapIsBounded(t *testing.T) {
	size := func(n int) (bytes, boxes int) {
		data := string(Render(Data{At: noon, Acting: true, Machines: machines(n)}))
		if f := faults([]byte(data)); len(f) > 0 {
			t.Errorf("%d machines: %v", n, f)
		}
		return len(data), strings.Count(data, `<li><a class="box `)
	}
	base, _ := size(1)
	one, boxes := size(1000)
	if boxes != 1000 {
		t.Errorf("%d boxes of 1,000 machines", boxes)
	}
	ten, most := size(10_000)
	if bound := manyBoxes + 20*3*7; most > bound || most < 400 {
		t.Errorf("%d boxes of 10,000 machines, at most %d", most, bound)
	}
	t.Logf("bytes: %d with one machine, %d with 1,000 (%d each), %d with 10,000 in %d boxes", base, one, (one-base)/999, ten, most)
	if one > base+1_000_000 || ten > 2*one {
		t.Error("the page is too large")
	}
}
