package page

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	cdp "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/autoscaler-agent/autoscaler-agent/agent/page"
	"github.com/autoscaler-agent/autoscaler-agent/agent/page/trouble"
)

// drawn is how long the page of a day of 5,000 nodes may take from the request to the end
// of its load, in the best of three loads: others use this machine, too.
const drawn = time.Second

// browser is a tab and what it noticed.
type browser struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	requests []string
	errors   []string
}

// open starts a browser with one tab.
func open(t *testing.T) *browser {
	t.Helper()
	if os.Getenv("AUTOSCALER_TEST_PAGE") == "" {
		t.Skip("needs a Chromium and axe-core: make e2e-page installs and runs them")
	}
	path := ""
	for _, name := range []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Fatal("no Chromium: sh test/suite/page/install.sh")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.WSURLReadTimeout(2*time.Minute))
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 5*time.Minute)
	t.Cleanup(cancel)
	b := &browser{t: t, ctx: ctx}
	chromedp.ListenTarget(ctx, b.notice)
	b.do(log.Enable(), network.Enable(), cdp.Enable())
	return b
}

// notice keeps what nobody should see.
func (b *browser) notice(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, e.Request.URL)
	case *cdp.EventExceptionThrown:
		b.errors = append(b.errors, e.ExceptionDetails.Error())
	case *cdp.EventConsoleAPICalled:
		b.errors = append(b.errors, fmt.Sprintf("console %s", e.Type))
	case *log.EventEntryAdded:
		b.errors = append(b.errors, e.Entry.Text)
	}
}

func (b *browser) do(actions ...chromedp.Action) {
	b.t.Helper()
	if err := chromedp.Run(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// eval is what an expression of JavaScript says; the page's own policy forbids scripts, and
// the debugger is none.
func eval[T any](b *browser, expr string) (out T) {
	b.t.Helper()
	b.do(chromedp.Evaluate(expr, &out, func(p *cdp.EvaluateParams) *cdp.EvaluateParams { return p.WithAwaitPromise(true) }))
	return out
}

// serve answers with the page as the agent does.
func serve(t *testing.T, d page.Data) (address string, size int) {
	t.Helper()
	data := page.Render(d)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", page.Policy())
		_, _ = w.Write(data) // the browser is gone when this fails
	}))
	t.Cleanup(s.Close)
	return s.URL + "/page", len(data)
}

// axe runs axe-core's rules on the page as it is shown now.
func (b *browser) axe(view string) {
	b.t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		b.t.Fatal(err)
	}
	source, err := os.ReadFile(filepath.Join(cache, "autoscaler-agent/axe-core-4.10.3/axe.min.js"))
	if err != nil {
		b.t.Fatalf("no axe-core: sh test/suite/page/install.sh: %v", err)
	}
	b.do(chromedp.Evaluate(string(source)+"; null", nil))
	result := eval[string](b, `axe.run({resultTypes:["violations"]}).then(r => JSON.stringify({passes: r.passes.length, violations: r.violations.map(v => v.id + ": " + v.help + ": " + v.nodes.length + " of them, first " + v.nodes[0].html)}))`)
	var found struct {
		Passes     int
		Violations []string
	}
	if err := json.Unmarshal([]byte(result), &found); err != nil {
		b.t.Fatal(err)
	}
	for _, v := range found.Violations {
		b.t.Errorf("%s: %.300s", view, v)
	}
	if found.Passes < 15 {
		b.t.Errorf("%s: only %d of axe-core's rules were tried", view, found.Passes)
	}
}

// quiet: nothing was asked for but the page, and nothing was complained about.
func (b *browser) quiet(address string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.requests) == 0 {
		b.t.Error("no request was seen, not even the page's own")
	}
	for _, r := range b.requests {
		if at, _, _ := strings.Cut(r, "#"); at != address && r != "about:blank" {
			b.t.Errorf("the page asks for %s", r)
		}
	}
	for _, e := range b.errors {
		b.t.Errorf("the console says: %s", e)
	}
}

// shot keeps a picture of the page in AUTOSCALER_TEST_SHOTS, for a person.
func (b *browser) shot(name string) {
	dir := os.Getenv("AUTOSCALER_TEST_SHOTS")
	if dir == "" {
		return
	}
	var png []byte
	b.do(chromedp.CaptureScreenshot(&png))
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// narrow and wide are the screens that the page is looked at on.
var (
	narrow = screen{390, 844, 2, true}
	wide   = screen{1280, 800, 1, false}
)

type screen struct {
	width, height int64
	scale         float64
	mobile        bool
}

// on shows the page on a screen, in light or dark.
func (b *browser) on(s screen, address string, dark bool) {
	b.t.Helper()
	media := emulation.SetEmulatedMedia()
	if dark {
		media = media.WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}})
	}
	b.do(media, emulation.SetDeviceMetricsOverride(s.width, s.height, s.scale, s.mobile), chromedp.Navigate(address))
	if over := eval[string](b, `[...document.querySelectorAll("body *")].filter(e => !e.closest(".tip,thead,.skip") && e.getBoundingClientRect().right > innerWidth + 1).slice(0, 3).map(e => e.outerHTML.slice(0, 120)).join(" | ")`); over != "" {
		b.t.Errorf("at %d pixels these stand out on the right: %s", s.width, over)
	}
	if w := eval[int64](b, `document.documentElement.scrollWidth`); w > s.width {
		b.t.Errorf("at %d pixels the page is %d wide", s.width, w)
	}
}

// TestDayOf5000Nodes: the page of a day with 5,000 nodes at its
// peak, is there within a second, asks nobody, complains of nothing, fits a phone, and is used by keyboard.
func TestDayOf5000Nodes(t *testing.T) {
	b := open(t)
	d := day()
	address, size := serve(t, d)
	best := time.Hour
	for range 3 {
		b.on(wide, address, false)
		ms := eval[float64](b, `(() => {const n = performance.getEntriesByType("navigation")[0]; document.body.getBoundingClientRect(); return Math.max(n.loadEventEnd, n.domComplete)})()`)
		best = min(best, time.Duration(ms*float64(time.Millisecond)))
	}
	elements := eval[int](b, `document.getElementsByTagName("*").length`)
	t.Logf("%d machines, %d groups, %d decisions: %d bytes, %d elements, drawn in %s", len(d.Machines), len(d.History.Groups), len(d.History.Marks), size, elements, best)
	if peak(d.History.Nodes) < 5000 || len(d.History.Groups) < 20 || len(d.History.Marks) < 200 {
		t.Error("that is no day of 5,000 nodes")
	}
	if best > drawn {
		t.Errorf("drawn in %s, want %s", best, drawn)
	}
	b.shot("light")
	b.charts()
	b.shot("charts")
	b.marks()
	b.keyboard()
	b.on(narrow, address, false)
	b.shot("phone")
	b.quiet(address)
}

// TestEveryPart: light, dark and on a phone, a page that has every part passes the rules of axe-core. It is short: the rules
// look at each element, and a thousand rows are as good as ten.
func TestEveryPart(t *testing.T) {
	b := open(t)
	d := day()
	d.Machines, d.Troubles = machines(300, d.At, d.History.Groups[:4]), trouble.List(situations[0].facts)
	d.History.Groups, d.History.Marks, d.Groups = d.History.Groups[:openGroups+1], d.History.Marks[:60], d.Groups[:10]
	d.Waiting, d.Leaving, d.Reaped = d.Waiting[:10], d.Leaving[:10], d.Reaped[:10]
	for i := range d.Waiting {
		d.Waiting[i].Groups = d.Waiting[i].Groups[:5]
	}
	address, _ := serve(t, d)
	for name, look := range map[string]struct {
		screen screen
		dark   bool
	}{"light": {wide, false}, "dark": {wide, true}, "phone": {narrow, false}} {
		b.on(look.screen, address, look.dark)
		if ground := eval[string](b, `getComputedStyle(document.body).backgroundColor`); look.dark != (ground == "rgb(20, 23, 27)") {
			t.Errorf("%s: the ground is %s", name, ground)
		}
		b.do(chromedp.Evaluate(`document.querySelectorAll("details").forEach(e => e.open = true)`, nil))
		b.axe(name)
		b.shot("every-" + name)
	}
	b.quiet(address)
}

// openGroups is how many groups have their chart in view; one more makes the page fold the others.
const openGroups = 12

// inked is how many pixels of the first chart are not empty.
const inked = `(() => {const c = document.querySelector(".plot canvas"); return c.getContext("2d").getImageData(0, 0, c.width, c.height).data.filter((v, i) => i % 4 === 3 && v).length})()`

// charts: each open chart is drawn, and a button changes the time that they all show.
func (b *browser) charts() {
	b.t.Helper()
	if n := eval[int](b, `new Promise(done => {
		document.querySelector("#time").scrollIntoView();
		const end = performance.now() + 20000;
		const look = () => {const n = document.querySelectorAll(".plot canvas").length; n >= 3 || performance.now() > end ? done(n) : requestAnimationFrame(look)};
		look()})`); n < 3 {
		b.t.Errorf("%d charts are drawn", n)
	}
	if n := eval[int](b, inked); n < 100 {
		b.t.Errorf("the first chart has %d pixels", n)
	}
	before := eval[string](b, `document.querySelector(".plot canvas").toDataURL()`)
	b.do(chromedp.Evaluate(`document.querySelector(".spans button").focus()`, nil), chromedp.KeyEvent(kb.Enter))
	pressed := eval[string](b, `new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done([...document.querySelectorAll(".spans button")].map(e => e.getAttribute("aria-pressed")).join()))))`)
	if after := eval[string](b, `document.querySelector(".plot canvas").toDataURL()`); pressed != "true,false,false" || after == before {
		b.t.Errorf("the hour is not shown: pressed %s, the same picture: %t", pressed, after == before)
	}
	b.do(chromedp.Evaluate(`document.querySelectorAll(".spans button")[2].click()`, nil))
}

// marks: a click on a decision in a chart leads to its row, and the row is marked.
func (b *browser) marks() {
	b.t.Helper()
	const place = `(() => {document.querySelector(".plot").scrollIntoView({block: "center"}); const r = document.querySelector(".plot .u-over").getBoundingClientRect(); return [r.left, r.top, r.width, r.height]})()`
	row := ""
	for x := 2.0; row == "" && x < 1280; x += 8 {
		r := eval[[]float64](b, place)
		if x > r[2] {
			break
		}
		b.do(chromedp.MouseClickXY(r[0]+x, r[1]+r[3]/2))
		row = eval[string](b, `(() => {const r = document.querySelector("tr:target"); return r ? "#" + r.id + (r.checkVisibility() ? " shown" : " hidden") : ""})()`)
	}
	if row != eval[string](b, `location.hash`)+" shown" {
		b.t.Errorf("a mark leads to %q", row)
	}
}

// keyboard: the first stop is the link over the header, the map is one stop in which arrows go from machine to machine
// and show what there is to say of it, each folded part is a stop, and Enter unfolds.
func (b *browser) keyboard() {
	b.t.Helper()
	b.do(chromedp.Evaluate(`document.activeElement.blur(); window.getSelection().removeAllRanges(); location.hash = ""; window.scrollTo(0,0); document.body.setAttribute("tabindex","-1"); document.body.focus(); document.body.removeAttribute("tabindex")`, nil))
	stops := map[string]int{}
	first := ""
	for range 40 {
		b.do(chromedp.KeyEvent(kb.Tab))
		at := eval[string](b, `(() => {const e = document.activeElement; return e.className.split(" ")[0] || e.tagName.toLowerCase()})()`)
		if first == "" {
			first = at
		}
		if at == "box" && stops[at] == 0 {
			b.arrows()
		}
		if stops[at]++; at == "summary" {
			break
		}
	}
	if first != "skip" || stops["a"] < 7 || stops["box"] != 1 || stops["button"] != 3 || stops["summary"] == 0 {
		b.t.Errorf("Tab stops first at %q, and at %v", first, stops)
	}
	b.do(chromedp.KeyEvent(kb.Enter))
	if !eval[bool](b, `document.activeElement.parentElement.open`) {
		b.t.Error("Enter does not unfold a part of the page")
	}
}

// arrows goes through the map: each step has another machine, whose words are to be read at the bottom of the screen.
func (b *browser) arrows() {
	b.t.Helper()
	seen := map[string]bool{}
	for _, key := range []string{kb.ArrowRight, kb.ArrowRight, kb.ArrowDown, kb.End, kb.ArrowUp, kb.Home} {
		b.do(chromedp.KeyEvent(key))
		said := eval[string](b, `(() => {const t = document.activeElement.querySelector(".tip"); if (!t) return ""; const r = t.getBoundingClientRect(); return r.width > 300 && r.bottom <= innerHeight + 1 && r.top > 0 ? document.activeElement.id + " " + t.innerText : "hidden " + r.top})()`)
		for _, want := range []string{"m", "eu-west-1", "cpu ", "memory ", "pods", "an hour", " old", "D4"} {
			if !strings.Contains(said, want) {
				b.t.Errorf("after %q of a machine is said %q, without %q", key, said, want)
			}
		}
		seen[strings.Fields(said + " none")[0]] = true
	}
	if len(seen) != 6 {
		b.t.Errorf("six steps through the map lead to %d machines", len(seen))
	}
}

// TestHostileNamesInABrowser: names that would be scripts in a careless page are text.
func TestHostileNamesInABrowser(t *testing.T) {
	b := open(t)
	d := day()
	for i, name := range []string{`<script>window.ran=1</script>`, `"><img src=x onerror="window.ran=1">`, `</style><svg onload="window.ran=1">`, `' autofocus onfocus='window.ran=1`} {
		d.Waiting[i].Name, d.Waiting[i].Why, d.Groups[i].Name, d.Groups[i].Remark, d.Leaving[i].Node, d.Reaped[i].Why = name, name, name, name, name, name
		d.History.Groups[i].Name, d.History.Marks[i].Why, d.History.Marks[i].Error = name, name, name
	}
	d.Node, d.Troubles = `</title><script>window.ran=1</script>`, []trouble.Trouble{{What: `<iframe src="javascript:parent.ran=1">`}}
	d.Machines[0].Name, d.Machines[0].State, d.Machines[0].Group = `"><script>window.ran=1</script>`, `x" onmouseover="window.ran=1`, `</h3><script>window.ran=1</script>`
	address, _ := serve(t, d)
	b.do(chromedp.Navigate(address))
	if eval[bool](b, `window.ran === 1`) {
		t.Error("a name ran as a script")
	}
	if n := eval[int](b, `document.querySelectorAll("script ~ script,main script,header script,img,iframe,[onload],[onerror],[onfocus]").length`); n != 0 {
		t.Errorf("%d elements of a name", n)
	}
	b.quiet(address)
}
