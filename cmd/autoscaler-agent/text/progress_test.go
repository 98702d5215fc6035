package text

import (
	"bytes"
	"testing"
	"time"
)

// TestProgress: a line at each tick, which is gone at the end; nothing in a pipe.
func TestProgress(t *testing.T) {
	var out bytes.Buffer
	tick := make(chan time.Time)
	stop := progress(&out, "reading", tick)
	tick <- time.Time{}
	tick <- time.Time{}
	stop()
	if got, want := out.String(), "\rreading, 1s\rreading, 2s\r\x1b[K"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	out.Reset()
	progress(&out, "reading", tick)()
	Progress(&out, "reading")()
	if out.Len() > 0 {
		t.Errorf("a fast command and a pipe get %q", out.String())
	}
}
