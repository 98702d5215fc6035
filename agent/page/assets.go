package page

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"sync"
)

// The page's style sheet and script, and those of uPlot 1.6.32 (MIT, https://github.com/leeoniya/uPlot), which
// draws the charts: the document holds them whole.
var (
	//go:embed page.css
	ownStyle string
	//go:embed page.js
	ownScript string
	//go:embed uplot/uPlot.min.css
	chartStyle string
	//go:embed uplot/uPlot.iife.min.js
	chartScript string
)

// assets are what stands in every document.
type assets struct{ style, script, policy string }

// together puts the assets together at the first page: other commands of the binary need none.
var together = sync.OnceValue(func() assets {
	a := assets{style: chartStyle + "\n" + ownStyle, script: chartScript + "\n" + ownScript}
	a.policy = "default-src 'none'; style-src " + hash(a.style) + "; script-src " + hash(a.script) + "; base-uri 'none'; form-action 'none'"
	return a
})

// hash names a text in a policy: that text may stand in the document, and no other.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// Policy is the Content-Security-Policy of the page, for the header of an answer; the
// document carries it too.
func Policy() string { return together().policy }
