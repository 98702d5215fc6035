package page

import (
	"fmt"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/page/trouble"
)

// shownTroubles is how many troubles are open at once: more push the remedies off a small screen.
const shownTroubles = 3

// header says in a few words whether all is well, and if not what is wrong, why, and what to do.
func (w *document) header(d Data) {
	w.put(`<header><h1>autoscaler-agent</h1><p class="small">%s on %s, up %s. Drawn at <time datetime="%s">%s</time>; all times are UTC.</p>`,
		d.Version, d.Node, age(d.At.Sub(d.Since)), d.At.UTC().Format(time.RFC3339), d.At.UTC().Format("2006-01-02 15:04:05"))
	switch {
	case d.StandsBy:
		w.put(`<p class="state"><strong>Standing by</strong>, as it should: %s. It acts when the other one no longer does.</p>`, d.Why)
	case !d.Acting && len(d.Troubles) == 0:
		w.put(`<p class="state"><strong>Not acting yet:</strong> %s</p>`, d.Why)
	case !d.Acting:
		w.put(`<p class="state bad"><strong>Not acting.</strong></p>`)
	case len(d.Troubles) == 0 && d.Pending == 0:
		w.put(`<p class="state good"><strong>Acting.</strong> Nothing is wrong.</p>`)
	case len(d.Troubles) == 0:
		w.put(`<p class="state good"><strong>Acting.</strong> Nothing is wrong; %s, and what each waits for stands under <a href="#waiting">Pending</a>.</p>`, isAre(d.Pending, "pod")+" pending")
	default:
		w.put(`<p class="state bad"><strong>Acting, with trouble:</strong></p>`)
	}
	w.troubles(d.Troubles)
	w.put("</header>\n")
}

// troubles lists what is wrong: the first ones whole, the others one click away.
func (w *document) troubles(list []trouble.Trouble) {
	if len(list) == 0 {
		return
	}
	item := func(t trouble.Trouble) {
		w.put(`<li><strong>%s</strong>`, t.What)
		if t.Rule != "" {
			w.put(` <code>%s</code>`, t.Rule)
		}
		w.put(`<p class="cause">%s</p>`, t.Cause)
		if t.Remedy != "" {
			w.put(`<p class="remedy"><b>Do:</b> %s</p>`, t.Remedy)
		}
		if t.Command != "" {
			w.put(`<span class="small">More: <code>%s</code></span>`, t.Command)
		}
		w.put("</li>\n")
	}
	w.put(`<ol class="troubles">`)
	for _, t := range clip(list, shownTroubles) {
		item(t)
	}
	w.put(`</ol>`)
	if len(list) > shownTroubles {
		w.put(`<details><summary class="bad">%s</summary><ol class="troubles">`, cluster.Plural(len(list)-shownTroubles, "more trouble"))
		for _, t := range list[shownTroubles:] {
			item(t)
		}
		w.put(`</ol></details>`)
	}
}

// parts leads to the parts of the page; the state, the troubles and the fleet stand above it.
func (w *document) parts() {
	w.put(`<nav aria-label="Parts of the page"><a href="#fleet">Fleet</a> <a href="#time">Charts</a> <a href="#waiting">Pending</a> <a href="#leaving">On their way out</a> <a href="#groups">Groups</a> <a href="#decisions">Decisions</a> <a href="#certificates">Certificates</a> <a href="#reaped">Dead Nodes</a></nav>
`)
}

// facts are the figures of this moment.
func (w *document) facts(d Data) {
	if why := d.unread(true, false); why != "" {
		w.put(`<p>%s</p>`, why)
		return
	}
	w.put(`<dl class="facts">`)
	for _, f := range []struct {
		name  string
		value string
	}{{"nodes ready", fmt.Sprintf("%d of %d", d.Ready, d.Nodes)}, {"pods", fmt.Sprint(d.Pods)}, {"pending", fmt.Sprint(d.Pending)}, {"price an hour", price(d.History.Price)}} {
		if f.value != "" {
			w.put(`<div><dt>%s</dt><dd>%s</dd></div>`, f.name, f.value)
		}
	}
	w.put("</dl>\n")
}
