package page

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/autoscaler-agent/autoscaler-agent/agent/history"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// full is a page on which every text is name.
func full(name string) Data {
	d := Data{At: noon, Since: noon.Add(-50 * time.Hour), Faults: []string{""}, Nodes: 3, Ready: 2, Pods: 9, Pending: 4, Requests: 1,
		Groups: []Group{{Max: 5}}, Waiting: []Waiting{{Count: 3, Groups: []Refusal{{}}}}, Leaving: []Leaving{{Since: noon.Add(-time.Minute)}}, Verdicts: []Verdict{{Count: 2}}, Judged: []Judged{{At: noon}}, Reaped: []Reaped{{At: noon}}}
	d.History = history.View{Start: noon.Add(-24 * time.Hour), Step: history.Step, Groups: []history.Group{{}},
		Marks: []history.Mark{{At: noon.Add(-time.Hour), Do: "grow", From: 1, To: 2}, {At: noon.Add(-2 * time.Hour), Do: "terminate", Count: 3}}}
	fill(reflect.ValueOf(&d).Elem(), name)
	for i := range d.History.Marks {
		d.History.Marks[i].Do = "grow" // a word of the agent's own
	}
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
var elements = strings.Fields("html head meta title style body a header h1 p strong ul li dl div dt dd nav main section h2 h3 figure figcaption svg path span time details summary code table thead tbody tr th td")

// attributes are those that the page uses, none of which runs or fetches anything.
var attributes = strings.Fields("lang charset name content http-equiv class href id datetime aria-label aria-labelledby aria-hidden viewbox preserveaspectratio d tabindex role scope")

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

// TestNothingFromOutside: the policy forbids all but the page's own style sheet, stands in
// the document, and names no host.
func TestNothingFromOutside(t *testing.T) {
	data := string(Render(full("calm")))
	if !strings.Contains(data, escape(Policy())) || !strings.HasPrefix(Policy(), "default-src 'none'; style-src 'sha256-") {
		t.Errorf("policy %q", Policy())
	}
	for _, bad := range []string{"http:", "https:", "url(", "@import", "<script", "javascript", "unsafe-inline", " style="} {
		if strings.Contains(data, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
}

// TestPictures: a line goes on while its value does, ends at a gap and begins anew; a
// caption says the same in words; a mark leads to its row.
func TestPictures(t *testing.T) {
	if got, want := steps([]int{-1, 4, 4, 2, -1, -1, 1, 1}, 4), "M1 0H3V50H4M6 75H8"; got != want {
		t.Errorf("steps %q, want %q", got, want)
	}
	p := picture{unit: "machine", line: []int{2, 8, 5, -1}, low: []int{1, 1, 1, -1}, high: []int{9, 9, 20, -1}}
	if got, want := p.caption(), "5 machines now, between 2 and 8; allowed 1 to 20"; got != want {
		t.Errorf("caption %q, want %q", got, want)
	}
	if got := (&picture{line: []int{-1, -1}}).caption(); got != "no sample yet" {
		t.Error(got)
	}
	d := full("web")
	data := string(Render(d))
	for i := range d.History.Marks {
		if strings.Count(data, fmt.Sprintf(`href="#d%d"`, i)) != 2 || strings.Count(data, fmt.Sprintf(`id="d%d"`, i)) != 1 {
			t.Errorf("mark %d does not stand in two pictures and lead to one row", i)
		}
	}
	if len(Render(Data{At: noon})) < 1000 {
		t.Error("a page of nothing is empty")
	}
}

// TestAllIsWell: the first words are the state.
func TestAllIsWell(t *testing.T) {
	for want, d := range map[string]Data{
		"Acting.</strong> Nothing is wrong":   {Acting: true},
		"Not acting:</strong> leader-2 leads": {Why: "leader-2 leads"},
		"<li>the cloud is away</li>":          {Acting: true, Faults: []string{"the cloud is away"}},
	} {
		if !strings.Contains(string(Render(d)), want) {
			t.Errorf("no %q", want)
		}
	}
}
